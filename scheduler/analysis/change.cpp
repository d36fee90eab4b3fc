#include "scheduler/analysis/change.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "scheduler/analysis/trace.h"
#include "scheduler/analysis/validate.h"
#include "scheduler/model/text.h"

namespace takt::sched {
namespace {

template <class T>
std::optional<std::uint32_t> find(const std::vector<T>& list, const std::string& name) {
  for (std::uint32_t i = 0; i < list.size(); ++i) {
    if (list[i].name == name) return i;
  }
  return std::nullopt;
}

std::string slot_text(const Mode& mode, const Slot& slot) {
  return "job " + std::to_string(slot.job) + " of '" + mode.problem->stages[slot.stage].name + "' in '" +
         mode.problem->name + "'";
}

bool share_a_core(const Mode& a, const Slot& x, const Mode& b, const Slot& y) {
  return std::any_of(x.cores.begin(), x.cores.end(), [&](std::uint32_t core) {
    return std::any_of(y.cores.begin(), y.cores.end(), [&](std::uint32_t other) {
      return a.problem->board.cores[core].name == b.problem->board.cores[other].name;
    });
  });
}

// The jobs of one stage around the change, which lies at 0 of table time.
TraceTask around(const Mode& from, std::uint32_t from_stage, const Mode& to, std::uint32_t to_stage, Duration drain,
                 std::int64_t hyperperiods, Duration visible) {
  TraceTask task;
  const auto add = [&](const Mode& mode, std::uint32_t stage, std::int64_t offset) {
    std::vector<const Slot*> jobs;
    for (const Slot& slot : mode.schedule->slots) {
      if (slot.stage == stage) jobs.push_back(&slot);
    }
    std::sort(jobs.begin(), jobs.end(), [](const Slot* a, const Slot* b) { return a->job < b->job; });
    for (const Slot* slot : jobs) {
      task.reads.push_back(mode.schedule->clock.start_at(0, slot->start).ns + offset);
      task.writes.push_back(mode.schedule->clock.end_at(0, slot->end).ns + offset + visible.ns);
    }
  };
  for (std::int64_t turn = -hyperperiods; turn < 0; ++turn) add(from, from_stage, turn * from.problem->hyperperiod.ns);
  for (std::int64_t turn = 0; turn < hyperperiods; ++turn) {
    add(to, to_stage, drain.ns + turn * to.problem->hyperperiod.ns);
  }
  return task;
}

}  // namespace

Status validate_change(const Mode& from, const Mode& to, Duration drain) {
  if (drain.ns < 0) return fail(Code::kConfiguration, "the drain is negative");
  const std::int64_t hyperperiod = from.problem->hyperperiod.ns;
  for (const Slot& old : from.schedule->slots) {
    const std::int64_t end = from.schedule->clock.end_at(0, old.end).ns - hyperperiod;
    const std::int64_t slack = from.problem->stages[old.stage].slack.ns;
    if (end + slack <= drain.ns) continue;
    for (const Slot& next : to.schedule->slots) {
      const std::int64_t start = to.schedule->clock.start_at(0, next.start).ns + drain.ns;
      const bool same_stage = from.problem->stages[old.stage].name == to.problem->stages[next.stage].name;
      const std::int64_t until = share_a_core(from, old, to, next) ? end + slack : same_stage ? end : start;
      if (until <= start) continue;
      return fail(Code::kGate, "the change from '" + from.problem->name + "' to '" + to.problem->name +
                                   "': " + slot_text(from, old) + " ends " + ms_text({end}) + " after it, " +
                                   slot_text(to, next) + " begins after " + ms_text({start}) +
                                   "; declare a drain of at least " + ms_text({drain.ns + until - start}));
    }
  }
  return {};
}

Result<ChainBound> walk_change(const Mode& from, const Mode& to, const std::string& name, Duration drain) {
  const auto old_index = find(from.problem->chains, name);
  const auto new_index = find(to.problem->chains, name);
  if (!old_index || !new_index) return fail(Code::kConfiguration, "chain '" + name + "' is not in both modes");
  const Chain& before = from.problem->chains[*old_index];
  const Chain& after = to.problem->chains[*new_index];
  bool same = before.stages.size() == after.stages.size() &&
              from.problem->sensors[before.sensor].name == to.problem->sensors[after.sensor].name;
  for (std::size_t i = 0; same && i < before.stages.size(); ++i) {
    same = from.problem->stages[before.stages[i]].name == to.problem->stages[after.stages[i]].name;
  }
  if (!same) return fail(Code::kConfiguration, "chain '" + name + "' takes another path in the other mode");

  // Long enough for the oldest bound job of either table, and to see one whole hyperperiod of each.
  std::int64_t reach = 2;
  for (const Mode& mode : {from, to}) {
    for (const Binding& binding : mode.schedule->bindings) {
      reach = std::max<std::int64_t>(reach, 2 - binding.producer_shift);
    }
  }
  const auto stages = static_cast<std::int64_t>(before.stages.size());
  const std::int64_t longest = std::max(from.problem->hyperperiod.ns, to.problem->hyperperiod.ns);
  const std::int64_t shortest = std::min(from.problem->hyperperiod.ns, to.problem->hyperperiod.ns);
  const std::int64_t span = longest * reach * (stages + 1);  // of the chain that takes longest
  const std::int64_t hyperperiods = 2 * (span + longest + drain.ns) / shortest + 2;
  std::vector<TraceTask> traces;
  for (std::size_t i = 0; i < before.stages.size(); ++i) {
    // Across timelines an output is there only after the clock error.
    const bool last = i + 1 == before.stages.size();
    const Duration error = std::max(from.problem->board.clock_error, to.problem->board.clock_error);
    traces.push_back(
        around(from, before.stages[i], to, after.stages[i], drain, hyperperiods, last ? Duration{} : error));
  }
  TAKT_ASSIGN(const TraceBounds trace, walk_trace(traces, -span, span));
  std::int64_t sensor_terms = 0;
  for (const auto& [problem, chain] : {std::pair(from.problem, &before), std::pair(to.problem, &after)}) {
    const Sensor& sensor = problem->sensors[chain->sensor];
    const std::int64_t period = longest_period(sensor).ns + (sensor.phase ? sensor.phase->jitter.ns : 0);
    sensor_terms = std::max(sensor_terms, period + sensor.delay_max.ns);
  }
  ChainBound bound;
  bound.chain = *new_index;
  bound.bounds[0] = {trace.age_at_output + sensor_terms};
  bound.bounds[1] = {trace.reaction + sensor_terms};
  bound.bounds[2] = {trace.age_at_output + sensor_terms};
  bound.bounds[3] = {trace.age + sensor_terms};
  bound.terms = "across the change from '" + from.problem->name + "' to '" + to.problem->name + "'";
  return bound;
}

}  // namespace takt::sched
