#include "scheduler/analysis/change.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "scheduler/analysis/instants.h"
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

// What one mode holds for a while in one hyperperiod: a slot, or a shared arena for a whole job.
struct Hold {
  const Slot* slot = nullptr;  // the first one
  std::int64_t start = 0;      // ns from the beginning of the hyperperiod
  std::int64_t end = 0;
  std::vector<std::string> names;  // of what it excludes others from: unit, mutexes, the stage itself
  Duration behind;                 // stays free behind it as well: slack or guard
  bool whole_job = false;          // not one slot
  bool alone = false;              // nothing may run beside it, or nothing on a unit
  bool alone_on_units = false;
};

std::vector<Hold> holds_of(const Mode& mode) {
  const Problem& problem = *mode.problem;
  std::vector<Hold> out;
  for (const Slot& slot : mode.schedule->slots) {
    const Stage& stage = problem.stages[slot.stage];
    const Choice& choice = mode.schedule->choices[slot.stage];
    const std::vector<Segment> segments = segments_of(choice.budget);
    Hold hold;
    hold.slot = &slot;
    hold.start = mode.schedule->clock.start_at(0, slot.start).ns;
    hold.end = mode.schedule->clock.end_at(0, slot.end).ns;
    hold.behind = slot.unit ? segments[slot.segment].guard : stage.slack;
    hold.alone = choice.budget.interference == Interference::kNone;
    hold.alone_on_units = choice.budget.interference == Interference::kCores;
    if (slot.unit) hold.names.push_back("unit " + problem.board.units[*slot.unit].name);
    for (const std::uint32_t mutex : segments[slot.segment].mutexes) {
      hold.names.push_back("mutex " + problem.mutexes[mutex].name);
    }
    out.push_back(hold);
    if (slot.segment != 0) continue;
    // Jobs of one stage never overlap, and each holds its shared arena from its beginning to its end.
    Hold job;
    job.slot = &slot;
    job.start = hold.start;
    job.whole_job = true;
    job.names = {"stage " + stage.name};
    const std::optional<std::uint32_t>& arena = stage.variants[choice.variant].arena_mutex;
    if (arena) job.names.push_back("mutex " + problem.mutexes[*arena].name);
    for (const Slot& last : mode.schedule->slots) {
      if (last.stage == slot.stage && last.job == slot.job) {
        job.end = std::max(job.end, mode.schedule->clock.end_at(0, last.end).ns);
      }
    }
    out.push_back(std::move(job));
  }
  return out;
}

// How long after the end of one the other may begin; nullopt: they may run side by side.
std::optional<Duration> distance(const Mode& a, const Hold& x, const Mode& b, const Hold& y) {
  const Duration error = std::max(a.problem->board.clock_error, b.problem->board.clock_error);
  std::optional<Duration> out;
  const auto at_least = [&](Duration d) { out = std::max(out.value_or(d), d); };
  for (const std::string& name : x.names) {
    if (std::find(y.names.begin(), y.names.end(), name) == y.names.end()) continue;
    // On a unit or under a mutex two cores may meet, each with its own clock.
    const bool unit = name.compare(0, 5, "unit ") == 0;
    const bool stage = name.compare(0, 6, "stage ") == 0;
    at_least((stage ? Duration{} : error) + (unit ? x.behind : Duration{}));
  }
  if (!x.whole_job && !y.whole_job && share_a_core(a, *x.slot, b, *y.slot)) at_least(x.behind);
  const bool beside_units = (x.alone_on_units && y.slot->unit) || (y.alone_on_units && x.slot->unit);
  if (x.alone || y.alone || beside_units) at_least(error);
  return out;
}

// The jobs of one stage around the change, which lies at 0 of table time.
TraceTask around(const Mode& from, std::uint32_t from_stage, const Mode& to, std::uint32_t to_stage, Duration drain,
                 std::int64_t hyperperiods, Duration visible) {
  TraceTask task;
  const auto add = [&](const Mode& mode, std::uint32_t stage, std::int64_t offset) {
    const analysis::Instants instants(*mode.problem, *mode.schedule);
    for (std::int64_t job = 0; job < instants.jobs(stage); ++job) {
      task.reads.push_back(instants.start(stage, job) + offset);
      task.writes.push_back(instants.end(stage, job) + offset + visible.ns);
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
  const std::vector<Hold> old_holds = holds_of(from);
  const std::vector<Hold> new_holds = holds_of(to);
  // What meets, and how much later the new table would have to begin for that: 0 when nothing does. Jobs of the old
  // table begin before the change, but their later segments and guards may reach beyond it by more than a hyperperiod,
  // and several hyperperiods of the new table may pass meanwhile.
  struct Meeting {
    std::int64_t later = 0;
    const Hold* old_hold = nullptr;
    const Hold* next = nullptr;
    std::int64_t old_end = 0;  // ns of table time
    std::int64_t next_start = 0;
  };
  const std::int64_t errors = from.problem->board.clock_error.ns + to.problem->board.clock_error.ns;
  const auto worst_meeting = [&](std::int64_t begin) {
    Meeting worst;
    const auto meet = [&](const Hold& old_hold, std::int64_t shift) {
      for (const Hold& next : new_holds) {
        const std::optional<Duration> apart = distance(from, old_hold, to, next);
        if (!apart) continue;
        // The first one that is not over before the old one begins: of all that could meet it, it begins earliest.
        const std::int64_t room = old_hold.start + shift - distance(to, next, from, old_hold)->ns - next.end - begin;
        const std::int64_t turn = room < 0 ? 0 : room / to.problem->hyperperiod.ns + 1;
        const std::int64_t next_start = next.start + begin + turn * to.problem->hyperperiod.ns;
        const std::int64_t end = old_hold.end + shift;
        const std::int64_t later = end + apart->ns - next_start;
        if (later > worst.later) worst = {later, &old_hold, &next, end, next_start};
      }
    };
    for (const Hold& old_hold : old_holds) {
      std::int64_t shift = -from.problem->hyperperiod.ns;
      for (; old_hold.end + old_hold.behind.ns + errors + shift > begin; shift -= from.problem->hyperperiod.ns) {
        meet(old_hold, shift);
      }
    }
    return worst;
  };
  const Meeting first = worst_meeting(drain.ns);
  if (first.later == 0) return {};
  std::int64_t enough = drain.ns + first.later;
  for (Meeting again = worst_meeting(enough); again.later > 0; again = worst_meeting(enough)) enough += again.later;
  return fail(Code::kGate, "the change from '" + from.problem->name + "' to '" + to.problem->name +
                               "': " + slot_text(from, *first.old_hold->slot) + " ends " + ms_text({first.old_end}) +
                               " after it, " + slot_text(to, *first.next->slot) + " begins after " +
                               ms_text({first.next_start}) + "; declare a drain of at least " + ms_text({enough}));
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
  for (Duration& time : bound.bounds) {
    time = std::max(with_corrections(*from.problem, time), with_corrections(*to.problem, time));
  }
  bound.terms = "across the change from '" + from.problem->name + "' to '" + to.problem->name + "'";
  return bound;
}

}  // namespace takt::sched
