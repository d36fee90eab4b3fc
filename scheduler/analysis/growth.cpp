// How far budgets may grow with every start kept. Starts, latches and bindings do not move, so what the validator's
// rules say about two slots is a latest end for one of them: one pass over the table finds the room of every slot, and
// a factor by division. Limits of chains, idle time and memory add up over several slots; they are bisected, and only
// where the room of the slots does not decide.
#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "scheduler/analysis/instants.h"
#include "scheduler/analysis/load.h"
#include "scheduler/analysis/validate.h"
#include "scheduler/model/footprint.h"

namespace takt::sched {
namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kOne = 1'000'000;  // factors are in millionths
constexpr std::int64_t kMostFactor = 1000 * kOne;
constexpr std::int64_t kMostTime = 1'000'000'000'000;  // ns, of a budget: as the validator has it
constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t floor_div(Wide a, std::int64_t b) {
  const Wide quotient = a / b;
  return static_cast<std::int64_t>(a % b < 0 ? quotient - 1 : quotient);
}

std::int64_t scaled(std::int64_t time, std::int64_t factor) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>((static_cast<Wide>(time) * factor + kOne - 1) / kOne));
}

// The largest value in [holds, fails) for which `good` holds; it does for `holds`.
template <class Good>
std::int64_t bisect(std::int64_t holds, std::int64_t fails, const Good& good) {
  while (fails - holds > 1) {
    const std::int64_t middle = holds + (fails - holds) / 2;
    (good(middle) ? holds : fails) = middle;
  }
  return holds;
}

class Growth {
 public:
  Growth(const Problem& problem, const Schedule& schedule)
      : problem_(problem), schedule_(schedule), instants_(problem, schedule), latest_(schedule.slots.size()) {
    const std::size_t stages = problem.stages.size();
    segments_.resize(stages);
    by_stage_.resize(stages);
    by_job_.resize(stages);
    windows_.resize(stages);
    by_core_.resize(problem.board.cores.size());
    for (std::size_t stage = 0; stage < stages; ++stage) {
      segments_[stage] = segments_of(schedule.choices[stage].budget);
      by_job_[stage].assign(static_cast<std::size_t>(schedule.choices[stage].rate),
                            std::vector<std::size_t>(segments_[stage].size()));
    }
    for (std::size_t i = 0; i < schedule.slots.size(); ++i) {
      const Slot& slot = schedule.slots[i];
      by_stage_[slot.stage].push_back(i);
      by_job_[slot.stage][slot.job][slot.segment] = i;
      Windows& windows = windows_[slot.stage];
      for (const std::uint32_t core : slot.cores) {
        by_core_[core].push_back(i);
        windows.wakeup = std::max(windows.wakeup, problem.board.cores[core].wakeup_window.ns);
        windows.publish = std::max(windows.publish, problem.board.cores[core].publish_window.ns);
      }
      latest_[i] = 3 * ticks();
    }
    for (std::uint32_t c = 0; c < problem.board.cores.size(); ++c) busy_.push_back(load(c, {}, kOne).busy());
    rooms();
    broken();
  }

  // Of one stage's budgets, or of all.
  [[nodiscard]] std::int64_t factor(std::optional<std::uint32_t> only) {
    std::int64_t most = kMostFactor;
    std::vector<std::uint32_t> stages;
    for (std::uint32_t stage = 0; stage < problem_.stages.size(); ++stage) {
      if (only && *only != stage) continue;
      stages.push_back(stage);
      most = std::min(most, room_factor(stage));
    }
    for (const std::uint32_t chain : broken_chains_) {
      if (only && problem_.chains[chain].stages.back() != *only) return 0;
    }
    if (broken_disparity_) return 0;
    const auto narrow = [&](const auto& good) {
      if (most > 0 && !good(most)) most = good(std::int64_t{0}) ? bisect(0, most, good) : 0;
    };
    narrow([&](std::int64_t f) { return limits_hold(stages, f); });
    narrow([&](std::int64_t f) { return busy_holds(stages, f); });
    narrow([&](std::int64_t f) { return seconds_hold(stages, f); });
    narrow([&](std::int64_t f) { return memory_holds(stages, f); });
    return most;
  }

 private:
  struct Windows {
    std::int64_t wakeup = 0, publish = 0;
  };
  // A stretch of a resource, moved into the hyperperiod: from the start of one slot to the end of another.
  struct Stretch {
    Tick start = 0;
    std::int64_t turn = 0;  // hyperperiods that it was moved by
    std::size_t first = 0, last = 0;
  };

  [[nodiscard]] Tick ticks() const { return schedule_.clock.ticks; }
  [[nodiscard]] std::int64_t ns_at(Tick start) const { return schedule_.clock.start_at(0, start).ns; }
  [[nodiscard]] std::uint32_t publisher(std::size_t slot) const {
    const Slot& of = schedule_.slots[slot];
    return schedule_.slots[by_job_[of.stage][of.job].front()].cores.back();
  }
  [[nodiscard]] std::int64_t apart(std::size_t one, std::size_t other) const {
    return publisher(one) == publisher(other) ? 0 : problem_.board.clock_error.ns;
  }
  [[nodiscard]] Stretch stretch(std::size_t first, std::size_t last) const {
    const std::int64_t turn = schedule_.slots[first].start / ticks();
    return {schedule_.slots[first].start - turn * ticks(), turn, first, last};
  }

  // Slot `one` ends at this tick at the latest, and at this instant when rounded down to nanoseconds.
  void end_by(std::size_t one, Tick tick, std::int64_t ns) {
    const std::int64_t rounded = floor_div((static_cast<Wide>(ns) + 1) * ticks() - 1, problem_.hyperperiod.ns);
    latest_[one] = std::min({latest_[one], tick, rounded});
  }
  // `distance` before `next` starts, which lies `turn` hyperperiods later.
  void end_before(std::size_t one, std::size_t next, std::int64_t turn, std::int64_t distance) {
    const Tick start = schedule_.slots[next].start;
    end_by(one, start + turn * ticks() - schedule_.clock.ticks_up({distance}),
           ns_at(start) + turn * problem_.hyperperiod.ns - distance);
  }

  // Neighbours around the circle: visit(one, next, turn by which next is later).
  template <class Visit>
  void each_pair(std::vector<Stretch> stretches, const Visit& visit) const {
    std::sort(stretches.begin(), stretches.end(), [](const Stretch& a, const Stretch& b) {
      return std::tie(a.start, a.first, a.last) < std::tie(b.start, b.first, b.last);
    });
    for (std::size_t i = 0; i < stretches.size(); ++i) {
      const bool wraps = i + 1 == stretches.size();
      const Stretch& one = stretches[i];
      const Stretch& next = stretches[wraps ? 0 : i + 1];
      visit(one, next, one.turn - next.turn + (wraps ? 1 : 0));
    }
  }

  void rooms() {
    for (std::uint32_t core = 0; core < by_core_.size(); ++core) {
      std::vector<Stretch> here;
      for (const std::size_t i : by_core_[core]) here.push_back(stretch(i, i));
      each_pair(here, [&](const Stretch& one, const Stretch& next, std::int64_t turn) {
        end_before(one.last, next.first, turn, 0);
        const Slot& follower = schedule_.slots[next.first];
        const std::int64_t behind = free_behind(problem_, schedule_.slots[one.last].stage).ns;
        end_by(one.last, latest_[one.last], ns_at(follower.start) + turn * problem_.hyperperiod.ns - behind);
      });
      each_pair(here, [&](const Stretch& one, const Stretch& next, std::int64_t turn) {
        // Of slot and pause the reserve's share stays free.
        const double share = 1.0 - problem_.board.cores[core].reserve;
        const auto most = [&](std::int64_t to_next) {
          return static_cast<std::int64_t>(std::floor(static_cast<double>(to_next) * share + 1e-6));
        };
        const Tick start = schedule_.slots[one.first].start;
        const Tick after = schedule_.slots[next.first].start;
        end_by(one.last, start + most(after + turn * ticks() - start),
               ns_at(start) + most(ns_at(after) + turn * problem_.hyperperiod.ns - ns_at(start)));
      });
    }
    std::vector<std::vector<Stretch>> on_unit(problem_.board.units.size()), held(problem_.mutexes.size());
    for (std::size_t i = 0; i < schedule_.slots.size(); ++i) {
      const Slot& slot = schedule_.slots[i];
      if (slot.unit) on_unit[*slot.unit].push_back(stretch(i, i));
      for (const std::uint32_t mutex : segments_[slot.stage][slot.segment].mutexes) {
        held[mutex].push_back(stretch(i, i));
      }
      const Variant& variant = problem_.stages[slot.stage].variants[schedule_.choices[slot.stage].variant];
      if (variant.arena_mutex && slot.segment == 0) {
        held[*variant.arena_mutex].push_back(stretch(i, by_job_[slot.stage][slot.job].back()));
      }
    }
    for (const std::vector<Stretch>& unit : on_unit) {
      each_pair(unit, [&](const Stretch& one, const Stretch& next, std::int64_t turn) {
        const Slot& slot = schedule_.slots[one.last];
        end_before(one.last, next.first, turn,
                   segments_[slot.stage][slot.segment].guard.ns + apart(one.first, next.first));
      });
    }
    for (const std::vector<Stretch>& mutex : held) {
      each_pair(mutex, [&](const Stretch& one, const Stretch& next, std::int64_t turn) {
        end_before(one.last, next.first, turn, apart(one.first, next.first));
      });
    }
    jobs();
    interference();
    gap();
    consumers();
  }

  void jobs() {
    for (const std::vector<std::vector<std::size_t>>& jobs : by_job_) {
      for (std::size_t job = 0; job < jobs.size(); ++job) {
        const bool gang = schedule_.slots[jobs[job].front()].cores.size() > 1;
        for (std::size_t i = 1; i < jobs[job].size(); ++i) {
          end_before(jobs[job][i - 1], jobs[job][i], 0, gang ? problem_.board.clock_error.ns : 0);
        }
        const bool wraps = job + 1 == jobs.size();
        end_before(jobs[job].back(), jobs[wraps ? 0 : job + 1].front(), wraps ? 1 : 0, 0);
      }
    }
  }

  // Of two slots that may not run side by side the one that begins first ends before the other.
  void interference() {
    std::vector<Stretch> all, units, alone, alone_on_units;
    for (std::size_t i = 0; i < schedule_.slots.size(); ++i) {
      const Slot& slot = schedule_.slots[i];
      const Interference bears = schedule_.choices[slot.stage].budget.interference;
      all.push_back(stretch(i, i));
      if (slot.unit) units.push_back(all.back());
      if (bears == Interference::kNone) alone.push_back(all.back());
      if (bears == Interference::kCores) alone_on_units.push_back(all.back());
    }
    if (alone.empty() && alone_on_units.empty()) return;
    const auto order = [](const Stretch& a, const Stretch& b) {
      return std::tie(a.start, a.first) < std::tie(b.start, b.first);
    };
    for (std::vector<Stretch>* list : {&all, &units, &alone, &alone_on_units}) {
      std::sort(list->begin(), list->end(), order);
    }
    // The next of `others` behind `one` around the circle; those within the clock error of it count as well, since not
    // all of them keep that distance.
    const auto before_next = [&](const Stretch& one, const std::vector<Stretch>& others) {
      const auto behind = std::upper_bound(others.begin(), others.end(), one, order) - others.begin();
      std::optional<std::int64_t> found;
      for (std::size_t k = 0; k < others.size(); ++k) {
        const std::size_t at = static_cast<std::size_t>(behind) + k;
        const Stretch& next = others[at % others.size()];
        const std::int64_t later = at >= others.size() ? 1 : 0;
        const std::int64_t start = ns_at(next.start) + later * problem_.hyperperiod.ns;
        if (found && start > *found + problem_.board.clock_error.ns) return;
        const Slot& a = schedule_.slots[one.first];
        const Slot& b = schedule_.slots[next.first];
        if (a.stage == b.stage && a.job == b.job) continue;
        if (!found) found = start;
        // In nanoseconds alone, as the validator judges it.
        end_by(one.first, latest_[one.first],
               start + one.turn * problem_.hyperperiod.ns - apart(one.first, next.first));
      }
    };
    for (const Stretch& one : all) {
      const Slot& slot = schedule_.slots[one.first];
      const Interference bears = schedule_.choices[slot.stage].budget.interference;
      before_next(one, alone);
      if (slot.unit) before_next(one, alone_on_units);
      if (bears == Interference::kNone) before_next(one, all);
      if (bears == Interference::kCores) before_next(one, units);
    }
  }

  void gap() {
    if (!problem_.phase_lock) return;
    for (std::size_t i = 0; i < schedule_.slots.size(); ++i) {
      const Slot& slot = schedule_.slots[i];
      const std::int64_t turn = slot.start / ticks();
      const Duration behind = slot.unit ? segments_[slot.stage][slot.segment].guard : free_behind(problem_, slot.stage);
      end_by(i, latest_[i],
             (turn + 1) * problem_.hyperperiod.ns - problem_.phase_lock->gap.ns -
                 std::max(behind, problem_.board.clock_error).ns);
    }
  }

  // A bound output is there when its consumer latches.
  void consumers() {
    for (const Binding& binding : schedule_.bindings) {
      const std::size_t producer = by_job_[binding.producer_stage][binding.producer_job].back();
      const Slot& consumer = schedule_.slots[by_job_[binding.stage][binding.job].front()];
      const bool same = consumer.cores.size() == 1 && schedule_.slots[producer].cores.back() == consumer.cores[0];
      end_before(producer, by_job_[binding.stage][binding.job].front(), -binding.producer_shift,
                 same ? 0 : problem_.board.clock_error.ns);
    }
  }

  // Chains and disparities whose limits the table breaks as it is. Disparities depend on latches alone.
  void broken() {
    for (std::uint32_t c = 0; c < problem_.chains.size(); ++c) {
      if (!within_limits(c)) broken_chains_.push_back(c);
    }
    for (std::size_t d = 0; d < problem_.disparities.size(); ++d) {
      broken_disparity_ |= walk_disparity(problem_, schedule_, d).bound > problem_.disparities[d].limit;
    }
    chains_to_.resize(problem_.stages.size());
    for (std::uint32_t c = 0; c < problem_.chains.size(); ++c) {
      const Chain& chain = problem_.chains[c];
      const bool limited = std::any_of(std::begin(chain.limits), std::end(chain.limits),
                                       [](const std::optional<Duration>& limit) { return limit.has_value(); });
      if (limited) chains_to_[chain.stages.back()].push_back(c);
    }
  }
  [[nodiscard]] bool within_limits(std::uint32_t c) const {
    const Chain& chain = problem_.chains[c];
    const auto bounds = analysis::bounds_of(problem_, instants_, c);
    for (std::size_t q = 0; q < kQuantities; ++q) {
      if (chain.limits[q] && bounds[q] > *chain.limits[q]) return false;
    }
    return true;
  }

  // What a slot takes beside its budget. Where ticks are no whole nanoseconds, rounding may take one.
  [[nodiscard]] std::int64_t around(const Slot& slot) const {
    const bool last = slot.segment + 1 == segments_[slot.stage].size();
    return windows_[slot.stage].wakeup + (last ? windows_[slot.stage].publish : 0) +
           (problem_.hyperperiod.ns % ticks() == 0 ? 0 : 1);
  }
  [[nodiscard]] Tick end_with(const Slot& slot, std::int64_t factor) const {
    return slot.start +
           schedule_.clock.ticks_up({around(slot) + scaled(segments_[slot.stage][slot.segment].time.ns, factor)});
  }

  // The largest factor under which every slot of a stage ends in time; 0: none does.
  [[nodiscard]] std::int64_t room_factor(std::uint32_t stage) const {
    std::int64_t most = kMostFactor;
    const auto cap = [&](std::int64_t time, std::int64_t room) {
      most = std::min(most, room < 1 ? 0 : floor_div(static_cast<Wide>(room) * kOne, time));
    };
    for (const std::size_t i : by_stage_[stage]) {
      const Slot& slot = schedule_.slots[i];
      const std::int64_t length =
          floor_div(static_cast<Wide>(latest_[i] - slot.start) * problem_.hyperperiod.ns, ticks());
      cap(segments_[stage][slot.segment].time.ns, length - around(slot));
    }
    cap(schedule_.choices[stage].budget.time.ns,
        kMostTime - static_cast<std::int64_t>(segments_[stage].size()));  // each is rounded up
    return most;
  }

  // A chain's bounds know the ends of its last stage alone.
  [[nodiscard]] bool limits_hold(const std::vector<std::uint32_t>& stages, std::int64_t factor) {
    for (const std::uint32_t stage : stages) {
      if (chains_to_[stage].empty()) continue;
      const auto set_ends = [&](const auto& end_of) {
        for (std::size_t job = 0; job < by_job_[stage].size(); ++job) {
          const Slot& slot = schedule_.slots[by_job_[stage][job].back()];
          instants_.set_end(stage, job, schedule_.clock.end_at(0, end_of(slot)).ns);
        }
      };
      set_ends([&](const Slot& slot) { return end_with(slot, factor); });
      const bool hold = std::all_of(chains_to_[stage].begin(), chains_to_[stage].end(),
                                    [&](std::uint32_t chain) { return within_limits(chain); });
      set_ends([](const Slot& slot) { return slot.end; });
      if (!hold) return false;
    }
    return true;
  }

  [[nodiscard]] std::vector<bool> grows(const std::vector<std::uint32_t>& stages) const {
    std::vector<bool> out(problem_.stages.size(), false);
    for (const std::uint32_t stage : stages) out[stage] = true;
    return out;
  }
  [[nodiscard]] std::vector<std::uint32_t> cores_of(const std::vector<std::uint32_t>& stages) const {
    std::vector<std::uint32_t> out;
    for (const std::uint32_t stage : stages) {
      const std::vector<std::uint32_t>& cores = schedule_.slots[by_job_[stage].front().front()].cores;
      out.insert(out.end(), cores.begin(), cores.end());
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  // On average what must stay idle in every second.
  [[nodiscard]] bool busy_holds(const std::vector<std::uint32_t>& stages, std::int64_t factor) const {
    const auto hyperperiod = static_cast<double>(problem_.hyperperiod.ns);
    std::vector<std::int64_t> more(problem_.board.cores.size(), 0);
    for (const std::uint32_t stage : stages) {
      for (const std::size_t i : by_stage_[stage]) {
        const Slot& slot = schedule_.slots[i];
        const std::int64_t change =
            schedule_.clock.end_at(0, end_with(slot, factor)).ns - schedule_.clock.end_at(0, slot.end).ns;
        for (const std::uint32_t core : slot.cores) more[core] += change;
      }
    }
    for (const std::uint32_t core : cores_of(stages)) {
      const auto free = static_cast<double>(problem_.hyperperiod.ns - busy_[core] - more[core]);
      // The fullest second is no emptier than the mean; seconds_hold() decides what rounding leaves open.
      if (hyperperiod - free > (1.0 - kLeastIdleShare) * hyperperiod * (1 + 1e-9)) return false;
    }
    return true;
  }
  [[nodiscard]] analysis::Load load(std::uint32_t core, const std::vector<bool>& growing, std::int64_t factor) const {
    std::vector<std::pair<Tick, Tick>> slots;
    slots.reserve(by_core_[core].size());
    for (const std::size_t i : by_core_[core]) {
      const Slot& slot = schedule_.slots[i];
      const bool grown = !growing.empty() && growing[slot.stage];
      slots.emplace_back(slot.start, grown ? end_with(slot, factor) : slot.end);
    }
    return {schedule_.clock, slots};
  }

  [[nodiscard]] bool seconds_hold(const std::vector<std::uint32_t>& stages, std::int64_t factor) const {
    const std::vector<bool> growing = grows(stages);
    for (const std::uint32_t core : cores_of(stages)) {
      const auto fullest = static_cast<double>(load(core, growing, factor).fullest(kSecond));
      if (fullest / static_cast<double>(kSecond) > 1.0 - kLeastIdleShare) return false;
    }
    return true;
  }

  [[nodiscard]] bool memory_holds(const std::vector<std::uint32_t>& stages, std::int64_t factor) const {
    if (problem_.board.memory == 0) return true;
    std::int64_t now = 0;
    std::int64_t arenas = 0;
    std::int64_t growing_arenas = 0;
    const std::vector<bool> growing = grows(stages);
    const auto memory = [&](std::size_t stage) {
      return footprint(problem_.stages[stage], schedule_.choices[stage].variant);
    };
    const auto arena = [&](std::size_t stage) { return memory(stage).arena; };
    for (std::size_t stage = 0; stage < problem_.stages.size(); ++stage) {
      now += memory(stage).resident;
      arenas += arena(stage);
      if (growing[stage]) growing_arenas += arena(stage);
    }
    // Jobs of one stage never overlap, so no more than this is used at once.
    if (growing_arenas == 0 || now + arenas <= problem_.board.memory) return true;
    std::vector<std::pair<std::int64_t, std::int64_t>> changes;  // instant, bytes; what is given back comes first
    for (std::size_t stage = 0; stage < problem_.stages.size(); ++stage) {
      for (const std::vector<std::size_t>& job : by_job_[stage]) {
        const Slot& last = schedule_.slots[job.back()];
        const Tick end = growing[stage] ? end_with(last, factor) : last.end;
        for (const std::int64_t turn : {std::int64_t{0}, problem_.hyperperiod.ns}) {
          changes.emplace_back(ns_at(schedule_.slots[job.front()].start) + turn, arena(stage));
          changes.emplace_back(schedule_.clock.end_at(0, end).ns + turn, -arena(stage));
        }
      }
    }
    std::sort(changes.begin(), changes.end());
    for (const auto& [when, bytes] : changes) {
      if ((now += bytes) > problem_.board.memory) return false;
    }
    return true;
  }

  const Problem& problem_;
  const Schedule& schedule_;
  analysis::Instants instants_;
  std::vector<Tick> latest_;                                   // by slot: its latest end
  std::vector<std::vector<Segment>> segments_;                 // by stage
  std::vector<std::vector<std::size_t>> by_stage_, by_core_;   // slots
  std::vector<std::vector<std::vector<std::size_t>>> by_job_;  // by stage, job, segment
  std::vector<Windows> windows_;                               // by stage
  std::vector<std::vector<std::uint32_t>> chains_to_;          // by last stage, those with limits
  std::vector<std::uint32_t> broken_chains_;
  bool broken_disparity_ = false;
  std::vector<std::int64_t> busy_;  // by core, as the table is
};

}  // namespace

BudgetScale budget_scale(const Problem& problem, const Schedule& schedule) {
  BudgetScale out;
  out.stages.assign(problem.stages.size(), 0);
  // A table that breaks more than limits has no room to speak of.
  if (!validate(problem, schedule, {false, false, false})) return out;
  Growth growth(problem, schedule);
  const auto in_ones = [](std::int64_t millionths) { return static_cast<double>(millionths) * 1e-6; };
  out.all = in_ones(growth.factor(std::nullopt));
  for (std::uint32_t stage = 0; stage < problem.stages.size(); ++stage)
    out.stages[stage] = in_ones(growth.factor(stage));
  return out;
}

}  // namespace takt::sched
