#include "scheduler/analysis/validate.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>

#include "scheduler/analysis/load.h"
#include "scheduler/model/text.h"

namespace takt::sched {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// What of a table is checked. Scaled budgets keep bindings that a shorter producer would no longer make exact.
struct Scope {
  bool limits = true;
  bool exact_bindings = true;
  bool recorded_bounds = true;
};

class Validator {
 public:
  Validator(const Problem& problem, const Schedule& schedule, const Scope& scope)
      : problem_(problem), schedule_(schedule), scope_(scope) {}

  Status run() {
    TAKT_RETURN_IF_ERROR(check(problem_));
    const auto rule = [&](const char* name) { rule_ = name; };
    rule("choices");
    TAKT_RETURN_IF_ERROR(choices());
    rule("clock");
    TAKT_RETURN_IF_ERROR(clock());
    rule("jobs");
    TAKT_RETURN_IF_ERROR(slots());
    rule("windows");
    TAKT_RETURN_IF_ERROR(windows());
    rule("resources");
    TAKT_RETURN_IF_ERROR(resources());
    rule("slack");
    TAKT_RETURN_IF_ERROR(slack());
    rule("memory");
    TAKT_RETURN_IF_ERROR(memory());
    rule("idle");
    TAKT_RETURN_IF_ERROR(idle());
    rule("bindings");
    TAKT_RETURN_IF_ERROR(bindings());
    return bounds();
  }

 private:
  [[nodiscard]] std::string name(const Slot& slot) const {
    return "slot of stage '" + problem_.stages[slot.stage].name + "', job " + std::to_string(slot.job) + " at " +
           ms_text({start_ns(slot)});
  }
  [[nodiscard]] std::int64_t start_ns(const Slot& slot) const { return schedule_.clock.start_at(0, slot.start).ns; }
  [[nodiscard]] std::int64_t end_ns(const Slot& slot) const { return schedule_.clock.end_at(0, slot.end).ns; }
  [[nodiscard]] tl::unexpected<Error> refuse(const std::string& message) const {
    return fail(Code::kGate, std::string("the table is not valid (rule '") + rule_ + "'): " + message);
  }
  [[nodiscard]] const Slot& slot_of(std::uint32_t stage, std::uint32_t job) const { return *by_job_[stage][job]; }

  Status choices() const {
    if (schedule_.choices.size() != problem_.stages.size()) {
      return refuse("it has choices for " + std::to_string(schedule_.choices.size()) + " stages instead of " +
                    std::to_string(problem_.stages.size()));
    }
    for (std::size_t i = 0; i < problem_.stages.size(); ++i) {
      const Stage& stage = problem_.stages[i];
      const Choice& choice = schedule_.choices[i];
      if (std::find(stage.rates.begin(), stage.rates.end(), choice.rate) == stage.rates.end()) {
        return refuse("stage '" + stage.name + "' runs " + std::to_string(choice.rate) +
                      " times per hyperperiod, a rate it does not declare");
      }
      if (choice.variant >= stage.variants.size()) return refuse("stage '" + stage.name + "' uses an unknown variant");
      const Variant& variant = stage.variants[choice.variant];
      // More time than declared does no harm: a table made for two cores may be run on one where its slots suffice.
      const bool declared = std::any_of(variant.budgets.begin(), variant.budgets.end(), [&](const Budget& budget) {
        return budget.cores == choice.budget.cores && budget.time <= choice.budget.time;
      });
      if (!declared) {
        return refuse("stage '" + stage.name + "' uses a budget of " + ms_text(choice.budget.time) + " on " +
                      std::to_string(choice.budget.cores) + " cores that variant '" + variant.name +
                      "' does not declare");
      }
    }
    return {};
  }

  Status clock() const {
    const TickClock& clock = schedule_.clock;
    if (clock.hyperperiod != problem_.hyperperiod) {
      return refuse("its hyperperiod is " + ms_text(clock.hyperperiod) + " instead of " +
                    ms_text(problem_.hyperperiod));
    }
    if (clock.ticks <= 0 || clock.ticks < (clock.hyperperiod.ns + 999) / 1000)
      return refuse("its tick is longer than 1 us");
    for (const Choice& choice : schedule_.choices) {
      if (clock.ticks % (1000 * choice.rate) != 0) {
        return refuse(std::to_string(clock.ticks) + " ticks are no multiple of 1000 x " + std::to_string(choice.rate) +
                      " jobs");
      }
    }
    return {};
  }

  // Each stage has its jobs, in order, on its home cores.
  Status slots() {
    by_job_.resize(problem_.stages.size());
    for (std::size_t i = 0; i < problem_.stages.size(); ++i) {
      by_job_[i].assign(static_cast<std::size_t>(schedule_.choices[i].rate), nullptr);
    }
    const Slot* before = nullptr;
    for (const Slot& slot : schedule_.slots) {
      if (slot.stage >= problem_.stages.size()) return refuse("a slot names an unknown stage");
      if (slot.job >= by_job_[slot.stage].size()) {
        return refuse("a slot of stage '" + problem_.stages[slot.stage].name + "' has job number " +
                      std::to_string(slot.job) + " of " + std::to_string(by_job_[slot.stage].size()));
      }
      const Slot*& entry = by_job_[slot.stage][slot.job];
      if (entry != nullptr) return refuse(name(slot) + " appears twice");
      entry = &slot;
      if (slot.start < 0 || slot.start >= schedule_.clock.ticks)
        return refuse(name(slot) + " begins outside the hyperperiod");
      if (slot.end <= slot.start) return refuse(name(slot) + " ends before it begins");
      if (before != nullptr &&
          std::tie(before->start, before->stage, before->job) >= std::tie(slot.start, slot.stage, slot.job)) {
        return refuse(name(slot) + " is out of order");
      }
      before = &slot;
      const auto gang = static_cast<std::size_t>(schedule_.choices[slot.stage].budget.cores);
      const std::set<std::uint32_t> distinct(slot.cores.begin(), slot.cores.end());
      if (slot.cores.size() != gang || distinct.size() != gang) {
        return refuse(name(slot) + " names " + std::to_string(distinct.size()) + " cores, its budget is for " +
                      std::to_string(gang));
      }
      if (*distinct.rbegin() >= problem_.board.cores.size()) return refuse(name(slot) + " names an unknown core");
    }
    for (const std::vector<const Slot*>& jobs : by_job_) {
      for (std::size_t job = 0; job < jobs.size(); ++job) {
        if (jobs[job] == nullptr) {
          return refuse("stage '" + problem_.stages[static_cast<std::size_t>(&jobs - by_job_.data())].name +
                        "' has no slot for job " + std::to_string(job));
        }
        if (jobs[job]->cores != jobs[0]->cores) return refuse(name(*jobs[job]) + " is not on the stage's home cores");
        if (job > 0 && jobs[job]->start <= jobs[job - 1]->start)
          return refuse(name(*jobs[job]) + " does not follow its predecessor");
      }
    }
    return {};
  }

  Status windows() const {
    for (const Slot& slot : schedule_.slots) {
      std::int64_t wakeup = 0;
      std::int64_t publish = 0;
      for (const std::uint32_t core : slot.cores) {
        wakeup = std::max(wakeup, problem_.board.cores[core].wakeup_window.ns);
        publish = std::max(publish, problem_.board.cores[core].publish_window.ns);
      }
      const std::int64_t need = wakeup + schedule_.choices[slot.stage].budget.time.ns + publish;
      const std::int64_t have = end_ns(slot) - start_ns(slot);
      if (have < need) {
        return refuse(name(slot) + " is " + ms_text({have}) + " long; w + budget + p is " + ms_text({need}));
      }
    }
    return {};
  }

  [[nodiscard]] std::vector<const Slot*> on_core(std::uint32_t core) const {
    std::vector<const Slot*> here;
    for (const Slot& slot : schedule_.slots) {
      if (std::find(slot.cores.begin(), slot.cores.end(), core) != slot.cores.end()) here.push_back(&slot);
    }
    return here;
  }

  Status resources() const {
    for (std::uint32_t core = 0; core < problem_.board.cores.size(); ++core) {
      const std::vector<const Slot*> here = on_core(core);
      for (std::size_t i = 0; i < here.size(); ++i) {
        const Slot& slot = *here[i];
        const bool wraps = i + 1 == here.size();
        const Slot& next = *here[wraps ? 0 : i + 1];
        const Tick next_start = next.start + (wraps ? schedule_.clock.ticks : 0);
        const std::int64_t next_ns = start_ns(next) + (wraps ? problem_.hyperperiod.ns : 0);
        if (next_start < slot.end || next_ns < end_ns(slot)) {
          return refuse(name(slot) + " overlaps the " + name(next) + " on " + problem_.board.cores[core].name + " by " +
                        ms_text({end_ns(slot) - next_ns}));
        }
      }
    }
    return {};
  }

  Status slack() const {
    for (std::uint32_t core = 0; core < problem_.board.cores.size(); ++core) {
      const std::vector<const Slot*> here = on_core(core);
      for (std::size_t i = 0; i < here.size(); ++i) {
        const Slot& slot = *here[i];
        const bool wraps = i + 1 == here.size();
        const Slot& next = *here[wraps ? 0 : i + 1];
        const std::int64_t free = start_ns(next) + (wraps ? problem_.hyperperiod.ns : 0) - end_ns(slot);
        const Duration wanted = problem_.stages[slot.stage].slack;
        if (free >= wanted.ns) continue;
        return refuse(name(slot) + " is followed by the " + name(next) + " after " + ms_text({free}) +
                      "; its slack is " + ms_text(wanted));
      }
    }
    return {};
  }

  // Resident bytes of the chosen variants, and the arenas of jobs that run at the same time.
  Status memory() const {
    if (problem_.board.memory == 0) return {};
    std::int64_t resident = 0;
    std::vector<std::pair<std::int64_t, std::int64_t>> changes;  // instant, bytes; what is given back comes first
    for (std::size_t i = 0; i < problem_.stages.size(); ++i) {
      resident += problem_.stages[i].variants[schedule_.choices[i].variant].resident;
    }
    for (const Slot& slot : schedule_.slots) {
      const std::int64_t arena = problem_.stages[slot.stage].variants[schedule_.choices[slot.stage].variant].arena;
      for (const std::int64_t turn : {std::int64_t{0}, problem_.hyperperiod.ns}) {
        changes.emplace_back(start_ns(slot) + turn, arena);
        changes.emplace_back(end_ns(slot) + turn, -arena);
      }
    }
    std::sort(changes.begin(), changes.end());
    std::int64_t now = 0;
    std::int64_t most = 0;
    for (const auto& [when, by] : changes) most = std::max(most, now += by);
    if (resident + most > problem_.board.memory) {
      return refuse(bytes_text(resident) + " stay resident and jobs that run together use " + bytes_text(most) +
                    "; the board has " + bytes_text(problem_.board.memory));
    }
    return {};
  }

  Status idle() const {
    for (std::uint32_t c = 0; c < problem_.board.cores.size(); ++c) {
      const Core& core = problem_.board.cores[c];
      const analysis::Load load(problem_, schedule_, c);
      const std::int64_t hyperperiod = problem_.hyperperiod.ns;
      const auto free = static_cast<double>(hyperperiod - load.busy());
      if (free < core.reserve * static_cast<double>(hyperperiod)) {
        return refuse("core '" + core.name + "' has " + percent_text(free / static_cast<double>(hyperperiod)) +
                      " idle time, its housekeeping reserve is " + percent_text(core.reserve));
      }
      const double fullest = static_cast<double>(load.fullest(kSecond)) / static_cast<double>(kSecond);
      if (fullest > 1.0 - kLeastIdleShare) {
        return refuse("core '" + core.name + "' is busy for " + percent_text(fullest) + " of a second; at least " +
                      percent_text(kLeastIdleShare) + " must stay idle");
      }
    }
    return {};
  }

  Status bindings() const {
    std::size_t at = 0;
    const Tick ticks = schedule_.clock.ticks;
    for (std::uint32_t stage = 0; stage < problem_.stages.size(); ++stage) {
      for (std::uint32_t job = 0; job < by_job_[stage].size(); ++job) {
        for (std::uint32_t input = 0; input < problem_.stages[stage].inputs.size(); ++input) {
          const Input& from = problem_.stages[stage].inputs[input];
          if (from.from_sensor) continue;
          const Slot& consumer = slot_of(stage, job);
          const std::string where = name(consumer) + ", input '" + from.name + "': ";
          if (at == schedule_.bindings.size()) return refuse(where + "no binding");
          const Binding& binding = schedule_.bindings[at++];
          if (binding.stage != stage || binding.job != job || binding.input != input)
            return refuse(where + "no binding at its place");
          if (binding.producer_stage != from.source || binding.producer_job >= by_job_[from.source].size() ||
              binding.producer_shift > 0) {
            return refuse(where + "bound to something that is no earlier job of '" + problem_.stages[from.source].name +
                          "'");
          }
          const Slot& producer = slot_of(binding.producer_stage, binding.producer_job);
          // On one timeline program order suffices; across timelines the clocks may differ.
          const bool same = consumer.cores.size() == 1 && producer.cores.back() == consumer.cores[0];
          const Duration error = same ? Duration{} : problem_.board.clock_error;
          const std::int64_t there = end_ns(producer) + binding.producer_shift * problem_.hyperperiod.ns + error.ns;
          if (there > start_ns(consumer)) {
            return refuse(where + "the bound job's output is there at " + ms_text({there}) + ", " +
                          ms_text({there - start_ns(consumer)}) + " after the start");
          }
          if (!scope_.exact_bindings) continue;
          const bool last = binding.producer_job + 1 == by_job_[from.source].size();
          const Slot& next = slot_of(from.source, last ? 0 : binding.producer_job + 1);
          const Tick next_there =
              next.end + (binding.producer_shift + (last ? 1 : 0)) * ticks + schedule_.clock.ticks_up(error);
          if (next_there <= consumer.start) {
            return refuse(where + "bound to job " + std::to_string(binding.producer_job) + " of '" +
                          problem_.stages[from.source].name + "' although the next one is there as well");
          }
        }
      }
    }
    if (at != schedule_.bindings.size()) return refuse("there are more bindings than inputs");
    return {};
  }

  Status bounds() {
    rule_ = "bounds";
    if (scope_.recorded_bounds && schedule_.bounds.size() != problem_.chains.size()) {
      return refuse("it has bounds for " + std::to_string(schedule_.bounds.size()) + " chains instead of " +
                    std::to_string(problem_.chains.size()));
    }
    for (std::uint32_t c = 0; c < problem_.chains.size(); ++c) {
      const Chain& chain = problem_.chains[c];
      const ChainBound bound = walk(problem_, schedule_, c);
      for (std::size_t q = 0; q < kQuantities; ++q) {
        const std::string what = "chain '" + chain.name + "': " + name_of(static_cast<Quantity>(q)) + " ";
        if (scope_.recorded_bounds &&
            (schedule_.bounds[c].chain != c || schedule_.bounds[c].bounds[q] != bound.bounds[q])) {
          return refuse(what + "is recorded as " + ms_text(schedule_.bounds[c].bounds[q]) + ", the walk gives " +
                        ms_text(bound.bounds[q]));
        }
        if (scope_.limits && chain.limits[q] && bound.bounds[q] > *chain.limits[q]) {
          rule_ = "limits";
          return refuse(what + "of " + ms_text(bound.bounds[q]) + " is " + ms_text(bound.bounds[q] - *chain.limits[q]) +
                        " above its limit of " + ms_text(*chain.limits[q]));
        }
      }
    }
    return {};
  }

  const Problem& problem_;
  const Schedule& schedule_;
  Scope scope_;
  const char* rule_ = "";                         // being checked
  std::vector<std::vector<const Slot*>> by_job_;  // by stage, job
};

// The table with the budgets of the chosen stages scaled and starts kept.
bool holds_with(const Problem& problem, const Schedule& schedule, std::optional<std::uint32_t> only,
                std::int64_t millionths) {
  Problem scaled = problem;
  Schedule table = schedule;
  const auto scale = [&](Duration& time) {
    __extension__ using Wide = __int128;
    const Wide product = static_cast<Wide>(time.ns) * millionths + 999'999;
    time.ns = std::max<std::int64_t>(1, static_cast<std::int64_t>(product / 1'000'000));
  };
  for (std::uint32_t stage = 0; stage < problem.stages.size(); ++stage) {
    if (only && *only != stage) continue;
    for (Variant& variant : scaled.stages[stage].variants) {
      for (Budget& budget : variant.budgets) scale(budget.time);
    }
    scale(table.choices[stage].budget.time);
  }
  for (Slot& slot : table.slots) {
    if (only && *only != slot.stage) continue;
    std::int64_t wakeup = 0;
    std::int64_t publish = 0;
    for (const std::uint32_t core : slot.cores) {
      wakeup = std::max(wakeup, problem.board.cores[core].wakeup_window.ns);
      publish = std::max(publish, problem.board.cores[core].publish_window.ns);
    }
    const Duration length{wakeup + table.choices[slot.stage].budget.time.ns + publish + 2};
    slot.end = slot.start + table.clock.ticks_up(length);
  }
  return Validator(scaled, table, {true, false, false}).run().has_value();
}

double largest_scale(const Problem& problem, const Schedule& schedule, std::optional<std::uint32_t> only) {
  std::int64_t holds = 0;
  std::int64_t fails = 1'000'000'001;
  // Everything that a longer budget touches gets worse with it, so bisection is exact.
  while (fails - holds > 1) {
    const std::int64_t middle = holds + (fails - holds) / 2;
    (holds_with(problem, schedule, only, middle) ? holds : fails) = middle;
  }
  return static_cast<double>(holds) * 1e-6;
}

}  // namespace

Status validate(const Problem& problem, const Schedule& schedule, const ValidateOptions& options) {
  return Validator(problem, schedule, {options.limits, true, true}).run();
}

std::vector<CoreLoad> core_loads(const Problem& problem, const Schedule& schedule) {
  std::vector<CoreLoad> out;
  for (std::uint32_t c = 0; c < problem.board.cores.size(); ++c) {
    const analysis::Load load(problem, schedule, c);
    CoreLoad core;
    core.core = problem.board.cores[c].name;
    core.reserve = problem.board.cores[c].reserve;
    core.busy = {load.busy()};
    core.share = static_cast<double>(load.busy()) / static_cast<double>(problem.hyperperiod.ns);
    core.longest_busy = {load.longest_stretch()};
    core.fullest_second = static_cast<double>(load.fullest(kSecond)) / static_cast<double>(kSecond);
    out.push_back(core);
  }
  return out;
}

double budget_scale(const Problem& problem, const Schedule& schedule) {
  return largest_scale(problem, schedule, std::nullopt);
}

double budget_scale(const Problem& problem, const Schedule& schedule, std::uint32_t stage) {
  return largest_scale(problem, schedule, stage);
}

}  // namespace takt::sched
