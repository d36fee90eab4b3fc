#include "scheduler/model/modes.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "scheduler/model/subject.h"

namespace takt::sched {

Result<std::vector<Tick>> common_ticks(const std::vector<Problem>& modes) {
  std::int64_t unit = 0;  // the longest time that all hyperperiods are whole multiples of
  for (const Problem& mode : modes) unit = std::gcd(unit, mode.hyperperiod.ns);
  if (unit <= 0) return fail(Code::kConfiguration, "modes: a hyperperiod is not positive");
  __extension__ using Wide = __int128;
  Wide step = 1;  // ticks of one unit are a multiple of it
  for (const Problem& mode : modes) {
    std::int64_t jobs = 1000;
    for (const Stage& stage : mode.stages) {
      for (const std::int64_t rate : stage.rates) {
        jobs = std::lcm(jobs, rate);
        if (jobs > 100'000'000'000) {
          return fail(Code::kConfiguration,
                      "modes: the rates of '" + mode.name + "' have no practical common multiple");
        }
      }
    }
    const std::int64_t own = jobs / std::gcd(jobs, mode.hyperperiod.ns / unit);
    step = step / std::gcd(static_cast<std::int64_t>(step), own) * own;
    if (step > unit) break;
  }
  const Wide least = (unit + 999) / 1000;  // tick <= 1 us
  const Wide per_unit = (least + step - 1) / step * step;
  if (per_unit > unit) {
    return fail(Code::kConfiguration,
                "modes: no tick between 1 ns and 1 us divides every hyperperiod and every period of the modes; choose "
                "hyperperiods with a longer common divisor");
  }
  std::vector<Tick> out;
  for (const Problem& mode : modes) out.push_back(mode.hyperperiod.ns / unit * static_cast<Tick>(per_unit));
  return out;
}

namespace {

// Hyperperiods of one mode that a walk across a change takes for one of another mode, and for a drain.
constexpr std::int64_t kMostTurns = 1000;
constexpr std::int64_t kMostTurnsOfDrain = 10'000;

// A change is judged hyperperiod by hyperperiod of the shorter table.
Status check_lengths(const ModeSet& set, std::size_t& at) {
  const auto shorter = [](const ModeSpec& a, const ModeSpec& b) {
    return a.problem.hyperperiod < b.problem.hyperperiod;
  };
  const ModeSpec& shortest = *std::min_element(set.modes.begin(), set.modes.end(), shorter);
  const auto too_long = [&](const ModeSpec& mode, const std::string& what, std::int64_t most) {
    return fail(Code::kConfiguration, "mode '" + mode.name + "': its " + what + " is longer than " +
                                          std::to_string(most) + " hyperperiods of mode '" + shortest.name +
                                          "'; give that mode a longer one");
  };
  for (const ModeSpec& mode : set.modes) {
    at = static_cast<std::size_t>(&mode - set.modes.data());
    if (mode.problem.hyperperiod > shortest.problem.hyperperiod * kMostTurns) {
      return too_long(mode, "hyperperiod", kMostTurns);
    }
    if (mode.entry_drain > shortest.problem.hyperperiod * kMostTurnsOfDrain) {
      return too_long(mode, "drain", kMostTurnsOfDrain);
    }
  }
  return {};
}

// A mode that is entered because the reference of the phase lock is lost does without it: nothing of what it says would
// hold otherwise.
Status check_lost_modes(const ModeSet& set, std::size_t& at) {
  for (const ModeSpec& mode : set.modes) {
    if (!mode.lost || !mode.problem.phase_lock) continue;
    const std::uint32_t reference = mode.problem.phase_lock->sensor;
    const std::string& sensor = mode.problem.sensors[reference].name;
    at = *mode.lost;
    const ModeSpec& lost = set.modes[at];
    const std::string where =
        "mode '" + lost.name + "': it is where '" + mode.name + "' goes when sensor '" + sensor + "' is lost, and ";
    if (lost.problem.phase_lock) {
      return fail(Code::kConfiguration,
                  where + "its own table is locked to a sensor; say 'locked: false' in '" + lost.name + "'");
    }
    for (const Chain& chain : lost.problem.chains) {
      if (chain.sensor != reference) continue;
      return fail(Code::kConfiguration, where + "its chain '" + chain.name +
                                            "' begins there, so that no bound of it would hold; list in 'chains' of '" +
                                            lost.name + "' only the others, or take the input away with 'without'");
    }
  }
  return {};
}

// A mode to which a stage degrades is there, and can be entered from one that runs the stage.
Status check_degraded_modes(const ModeSet& set, std::size_t& at) {
  for (std::size_t m = 0; m < set.modes.size(); ++m) {
    at = m;
    for (const Stage& stage : set.modes[m].problem.stages) {
      if (stage.degraded_mode.empty() || stage.degraded_mode == set.modes[m].name) continue;
      const auto leads_there = [&](const ModeSpec& mode) {
        const auto& stages = mode.problem.stages;
        return std::any_of(stages.begin(), stages.end(), [&](const Stage& s) { return s.name == stage.name; }) &&
               std::any_of(mode.exits.begin(), mode.exits.end(),
                           [&](std::uint32_t exit) { return set.modes[exit].name == stage.degraded_mode; });
      };
      if (std::any_of(set.modes.begin(), set.modes.end(), leads_there)) continue;
      return fail(Code::kConfiguration, "mode '" + set.modes[m].name + "': stage '" + stage.name +
                                            "' degrades to mode '" + stage.degraded_mode +
                                            "', which is no exit of a mode that runs it");
    }
  }
  return {};
}

}  // namespace

Status check(const ModeSet& set) {
  ModeSubject unasked;
  return check(set, unasked);
}

Status check(const ModeSet& set, ModeSubject& subject) {
  std::size_t& at = subject.mode;
  at = set.modes.size();
  if (set.modes.empty()) return fail(Code::kConfiguration, "modes: none");
  if (set.modes.size() > kMostModes) {
    return fail(Code::kConfiguration, "modes: " + std::to_string(set.modes.size()) + " of them; at most " +
                                          std::to_string(kMostModes) + " are possible");
  }
  std::set<std::string> names;
  for (std::size_t i = 0; i < set.modes.size(); ++i) {
    const ModeSpec& mode = set.modes[i];
    at = i;
    const std::string where = "mode '" + mode.name + "': ";
    if (mode.name.empty()) return fail(Code::kConfiguration, "mode " + std::to_string(i) + ": it has no name");
    if (!names.insert(mode.name).second) {
      return fail(Code::kConfiguration,
                  where +
                      "another mode before it has the same name, and an exit that leads there could mean either; "
                      "give each its own");
    }
    TAKT_RETURN_IF_ERROR(check(mode.problem).map_error([&](Error error) {
      return std::move(error).with_context("mode '" + mode.name + "'");
    }));
    if (mode.entry_drain.ns < 0 || mode.entry_drain > kLongestDrain || mode.dwell.ns < 0 ||
        mode.dwell > kLongestDwell) {
      return fail(Code::kConfiguration, where + "the drain lies in 0 to 100 s, the dwell in 0 to 100000 s");
    }
    std::set<std::uint32_t> exits;
    for (const std::uint32_t exit : mode.exits) {
      if (exit >= set.modes.size() || exit == i || !exits.insert(exit).second) {
        return fail(Code::kConfiguration, where + "an exit leads to another mode, once");
      }
    }
    if (mode.lost && exits.count(*mode.lost) == 0) {
      return fail(Code::kConfiguration, where + "the mode for a lost reference must be one of its exits");
    }
    if (mode.lost && !mode.problem.phase_lock) {
      return fail(Code::kConfiguration, where + "there is no phase lock whose reference could be lost");
    }
  }
  TAKT_RETURN_IF_ERROR(check_lengths(set, at));
  TAKT_RETURN_IF_ERROR(check_degraded_modes(set, at));
  TAKT_RETURN_IF_ERROR(check_lost_modes(set, at));
  at = set.modes.size();
  std::vector<bool> reached(set.modes.size(), false);
  std::vector<std::uint32_t> open{0};
  while (!open.empty()) {
    const std::uint32_t mode = open.back();
    open.pop_back();
    if (reached[mode]) continue;
    reached[mode] = true;
    open.insert(open.end(), set.modes[mode].exits.begin(), set.modes[mode].exits.end());
  }
  for (std::size_t i = 0; i < reached.size(); ++i) {
    at = i;
    if (!reached[i]) {
      return fail(Code::kConfiguration, "mode '" + set.modes[i].name + "': no sequence of exits leads there from '" +
                                            set.modes.front().name + "'");
    }
  }
  return {};
}

namespace {

template <class Named>
Result<std::uint32_t> index_in(const std::vector<Named>& list, const std::string& name, const std::string& what) {
  for (std::uint32_t i = 0; i < list.size(); ++i) {
    if (list[i].name == name) return i;
  }
  return fail(Code::kConfiguration, what + " '" + name + "' is of no mode alone: the whole has no such " + what);
}

std::array<std::optional<Duration>, kQuantities> limits_of(const Chain& chain) {
  std::array<std::optional<Duration>, kQuantities> out;
  std::copy(std::begin(chain.limits), std::end(chain.limits), out.begin());
  return out;
}

// Indices of a mode in the whole.
struct Places {
  std::vector<std::uint32_t> stages, chains;
  std::vector<std::vector<std::uint32_t>> inputs, variants;  // by stage of the mode
};

Result<Places> places_in(const Problem& whole, const Problem& mode) {
  Places out;
  for (const Stage& stage : mode.stages) {
    TAKT_ASSIGN(const std::uint32_t at, index_in(whole.stages, stage.name, "stage"));
    out.stages.push_back(at);
    out.inputs.emplace_back();
    for (const Input& input : stage.inputs) {
      TAKT_ASSIGN(const std::uint32_t place, index_in(whole.stages[at].inputs, input.name, "input"));
      out.inputs.back().push_back(place);
    }
    out.variants.emplace_back();
    for (const Variant& variant : stage.variants) {
      TAKT_ASSIGN(const std::uint32_t place, index_in(whole.stages[at].variants, variant.name, "variant"));
      out.variants.back().push_back(place);
    }
  }
  for (const Chain& chain : mode.chains) {
    TAKT_ASSIGN(const std::uint32_t at, index_in(whole.chains, chain.name, "chain"));
    out.chains.push_back(at);
  }
  return out;
}

}  // namespace

ModeTable only_table(const Problem& problem, const Schedule& schedule) {
  ModeTable out;
  out.name = problem.name;
  out.schedule = schedule;
  for (const Stage& stage : problem.stages) {
    out.reads.emplace_back(stage.inputs.size(), std::uint8_t{1});
    out.degraded.push_back(degraded_variant(stage));
  }
  out.phase_lock = problem.phase_lock;
  for (const Chain& chain : problem.chains) out.limits.push_back(limits_of(chain));
  return out;
}

Result<std::vector<ModeTable>> tables_of(const Problem& whole, const ModeSet& set,
                                         const std::vector<Schedule>& schedules) {
  std::vector<ModeTable> out;
  for (std::size_t m = 0; m < set.modes.size(); ++m) {
    const ModeSpec& mode = set.modes[m];
    const Schedule& own = schedules[m];
    TAKT_ASSIGN(const Places places, places_in(whole, mode.problem));
    ModeTable& table = out.emplace_back();
    table.name = mode.name;
    table.phase_lock = mode.problem.phase_lock;
    table.entry_drain = mode.entry_drain;
    table.dwell = mode.dwell;
    table.exits = mode.exits;
    table.lost = mode.lost;
    table.schedule.clock = own.clock;
    table.schedule.choices.resize(whole.stages.size());
    table.degraded.resize(whole.stages.size());
    for (const Stage& stage : whole.stages) table.reads.emplace_back(stage.inputs.size(), std::uint8_t{0});
    for (std::size_t s = 0; s < places.stages.size(); ++s) {
      Choice& choice = table.schedule.choices[places.stages[s]];
      choice = own.choices[s];
      choice.variant = places.variants[s][choice.variant];
      const std::optional<std::uint32_t> degraded = degraded_variant(mode.problem.stages[s]);
      if (degraded) table.degraded[places.stages[s]] = places.variants[s][*degraded];
      for (const std::uint32_t input : places.inputs[s]) table.reads[places.stages[s]][input] = 1;
    }
    for (Slot slot : own.slots) {
      slot.stage = places.stages[slot.stage];
      table.schedule.slots.push_back(std::move(slot));
    }
    for (Binding binding : own.bindings) {
      binding.input = places.inputs[binding.stage][binding.input];
      binding.stage = places.stages[binding.stage];
      binding.producer_stage = places.stages[binding.producer_stage];
      table.schedule.bindings.push_back(binding);
    }
    table.limits.resize(whole.chains.size());
    for (ChainBound bound : own.bounds) {
      bound.chain = places.chains[bound.chain];
      table.schedule.bounds.push_back(std::move(bound));
    }
    for (std::size_t c = 0; c < places.chains.size(); ++c) {
      table.limits[places.chains[c]] = limits_of(mode.problem.chains[c]);
    }
  }
  return out;
}

}  // namespace takt::sched
