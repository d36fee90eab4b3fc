#include "scheduler/analysis/change.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "scheduler/analysis/instants.h"
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
  const analysis::Instants instants(problem, *mode.schedule);
  for (const Slot& slot : mode.schedule->slots) {
    const Stage& stage = problem.stages[slot.stage];
    const Choice& choice = mode.schedule->choices[slot.stage];
    const std::vector<Segment> segments = segments_of(choice.budget);
    Hold hold;
    hold.slot = &slot;
    hold.start = mode.schedule->clock.start_at(0, slot.start).ns;
    hold.end = mode.schedule->clock.end_at(0, slot.end).ns;
    hold.behind = slot.unit ? segments[slot.segment].guard : free_behind(problem, slot.stage);
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
    job.end = instants.end(slot.stage, slot.job);
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

// A chain across the change, which lies at 0 of table time. Jobs of the old table have numbers below 0, those of the
// new one from 0 on. Inside a table every job reads what it is bound to; a job of the new table that is bound to none
// of its own reads the newest output of the old one that is there.
class Across {
 public:
  Across(const Mode& from, const Chain& before, const Mode& to, const Chain& after, Duration drain)
      : from_(from),
        to_(to),
        before_(before.stages),
        after_(after.stages),
        old_(*from.problem, *from.schedule),
        new_(*to.problem, *to.schedule),
        drain_(drain.ns) {
    const Duration error = std::max(from.problem->board.clock_error, to.problem->board.clock_error);
    errors_.push_back(0);
    for (std::size_t i = 1; i < before_.size(); ++i) {
      const std::vector<std::uint32_t> producer = home(from, before_[i - 1]);
      const std::vector<std::uint32_t> consumer = home(to, after_[i]);
      // On one timeline program order suffices.
      const bool same = consumer.size() == 1 &&
                        from.problem->board.cores[producer.back()].name == to.problem->board.cores[consumer[0]].name;
      errors_.push_back(same ? 0 : error.ns);
    }
  }

  struct Times {
    std::int64_t reaction = 0, age_at_output = 0, age = 0;  // without what the sensor adds
  };
  // Over every output that the change can touch, and a hyperperiod of each table at least.
  [[nodiscard]] Times walk() const {
    std::int64_t reach = 2;  // hyperperiods that one hop may go back
    for (const Mode& mode : {from_, to_}) {
      for (const Binding& binding : mode.schedule->bindings) {
        reach = std::max<std::int64_t>(reach, 2 - binding.producer_shift);
      }
    }
    const auto hops = static_cast<std::int64_t>(before_.size()) + 1;
    const std::int64_t drained = drain_ / std::min(from_.problem->hyperperiod.ns, to_.problem->hyperperiod.ns) + 1;
    const std::int64_t turns = reach * hops + drained;
    Times worst;
    std::int64_t newest = latch_of(-turns * old_.jobs(before_.back()) - 1);
    for (std::int64_t output = -turns * old_.jobs(before_.back()); output < turns * new_.jobs(after_.back());
         ++output) {
      const std::int64_t latch = latch_of(output);
      const std::int64_t published = end(before_.size() - 1, output);
      worst.age_at_output = std::max(worst.age_at_output, published - latch);
      worst.age = std::max(worst.age, end(before_.size() - 1, output + 1) - latch);
      if (latch <= newest) continue;
      // The event fell just behind the newest latch that any output went back to.
      worst.reaction = std::max(worst.reaction, published - newest);
      newest = latch;
    }
    return worst;
  }

 private:
  static std::vector<std::uint32_t> home(const Mode& mode, std::uint32_t stage) {
    for (const Slot& slot : mode.schedule->slots) {
      if (slot.stage == stage && !slot.cores.empty()) return slot.cores;
    }
    return {0};  // a table that validates has jobs of every stage
  }
  [[nodiscard]] std::int64_t start(std::size_t place, std::int64_t job) const {
    return job < 0 ? old_.start(before_[place], job) : new_.start(after_[place], job) + drain_;
  }
  [[nodiscard]] std::int64_t end(std::size_t place, std::int64_t job) const {
    return job < 0 ? old_.end(before_[place], job) : new_.end(after_[place], job) + drain_;
  }
  [[nodiscard]] std::int64_t latch_of(std::int64_t output) const {
    std::int64_t job = output;
    for (std::size_t i = before_.size() - 1; i > 0; --i) job = producer(i, job);
    return start(0, job);
  }
  [[nodiscard]] std::int64_t producer(std::size_t place, std::int64_t job) const {
    if (job < 0) return old_.bound(before_[place], before_[place - 1], job);
    const std::int64_t bound = new_.bound(after_[place], after_[place - 1], job);
    if (bound >= 0) return bound;
    std::int64_t newest = -1;
    while (end(place - 1, newest) + errors_[place] > start(place, job)) --newest;
    return newest;
  }

  const Mode& from_;
  const Mode& to_;
  const std::vector<std::uint32_t>& before_;  // stages of the chain in either table
  const std::vector<std::uint32_t>& after_;
  analysis::Instants old_, new_;
  std::int64_t drain_;
  std::vector<std::int64_t> errors_;  // by place in the chain: of a new job that reads an old output
};

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

  const Across::Times across = Across(from, before, to, after, drain).walk();
  std::int64_t sensor_terms = 0;
  for (const auto& [problem, chain] : {std::pair(from.problem, &before), std::pair(to.problem, &after)}) {
    const Sensor& sensor = problem->sensors[chain->sensor];
    const std::int64_t period = longest_period(sensor).ns + (sensor.phase ? sensor.phase->jitter.ns : 0);
    sensor_terms = std::max(sensor_terms, period + sensor.delay_max.ns);
  }
  ChainBound bound;
  bound.chain = *new_index;
  bound.bounds[0] = {across.age_at_output + sensor_terms};
  bound.bounds[1] = {across.reaction + sensor_terms};
  bound.bounds[2] = {across.age_at_output + sensor_terms};
  bound.bounds[3] = {across.age + sensor_terms};
  for (Duration& time : bound.bounds) {
    time = std::max(with_corrections(*from.problem, time), with_corrections(*to.problem, time));
  }
  bound.terms = "across the change from '" + from.problem->name + "' to '" + to.problem->name + "'";
  return bound;
}

}  // namespace takt::sched
