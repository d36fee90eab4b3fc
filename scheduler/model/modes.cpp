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
    if (mode.name.empty() || !names.insert(mode.name).second) {
      return fail(Code::kConfiguration, where + "modes have names, each its own");
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

}  // namespace takt::sched
