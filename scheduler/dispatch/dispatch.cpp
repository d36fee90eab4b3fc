#include "scheduler/dispatch/dispatch.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "runtime/memory/process.h"
#include "scheduler/dispatch/boundary.h"
#include "scheduler/dispatch/cpu_latency.h"
#include "scheduler/dispatch/isolation.h"
#include "scheduler/dispatch/lockstep.h"
#include "scheduler/dispatch/real_time.h"
#include "scheduler/dispatch/run_plan.h"
#include "scheduler/dispatch/thread_cost.h"
#include "scheduler/dispatch/thread_team.h"
#include "scheduler/dispatch/watchdog.h"

namespace takt::sched {
namespace {

constexpr int kWatchdogPriority = 85;
constexpr int kWorkerPriority = 50;
// Between "every thread is ready" and table time 0, so that the first wake-up is as timely as any other.
constexpr Duration kLead = milliseconds(50);

Status inconsistent(const std::string& what) {
  return fail(Code::kInternal, "the schedule cannot be run: " + what + "; it was not checked by the validator");
}

Status check_slot(const Problem& problem, const Slot& slot, const std::string& name) {
  if (slot.unit) {
    if (*slot.unit >= problem.board.units.size())
      return inconsistent("stage " + name + " has a slot on an unknown unit");
    return slot.cores.empty() ? Status{} : inconsistent("stage " + name + " has a slot on a unit and on cores");
  }
  if (slot.cores.empty() || slot.cores.size() > kMaxGang) return inconsistent("core count of stage " + name);
  for (const std::uint32_t core : slot.cores) {
    if (core >= problem.board.cores.size()) return inconsistent("stage " + name + " has a slot on an unknown core");
  }
  if (slot.cores.size() == 2 && slot.cores[0] == slot.cores[1]) {
    return inconsistent("stage " + name + " has a slot twice on one core");
  }
  return {};
}

// One job: its segments as the budget says, one behind the other.
Status check_job(const Schedule& schedule, const std::vector<std::uint32_t>& slots, const std::string& name) {
  const Slot& first = schedule.slots[slots.front()];
  const std::vector<Segment>& segments = schedule.choices[first.stage].budget.segments;
  if (slots.size() != std::max<std::size_t>(segments.size(), 1) || slots.size() > kMostSegments)
    return inconsistent("segments of stage " + name);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Slot& slot = schedule.slots[slots[i]];
    if (slot.segment != i || (!segments.empty() && slot.unit != segments[i].unit)) {
      return inconsistent("segments of stage " + name);
    }
    if (i > 0 && slot.start < schedule.slots[slots[i - 1]].end) return inconsistent("segments of stage " + name);
  }
  const bool on_cores = !first.unit && !schedule.slots[slots.back()].unit;
  return on_cores ? Status{} : inconsistent("a job of stage " + name + " begins or ends on a unit");
}

Status check(const Problem& problem, const ModeTable& mode, const std::vector<StageHost*>& hosts) {
  const Schedule& schedule = mode.schedule;
  if (hosts.size() != problem.stages.size() || schedule.choices.size() != problem.stages.size() ||
      mode.reads.size() != problem.stages.size() || mode.degraded.size() != problem.stages.size()) {
    return inconsistent("stages, choices and hosts differ in number");
  }
  if (schedule.clock.hyperperiod.ns <= 0 || schedule.clock.ticks <= 0) return inconsistent("the table has no length");
  std::vector<const Slot*> first(problem.stages.size(), nullptr);
  for (const Slot& slot : schedule.slots) {
    if (slot.stage >= problem.stages.size() || hosts[slot.stage] == nullptr) return inconsistent("unknown stage");
    const std::string& name = problem.stages[slot.stage].name;
    TAKT_RETURN_IF_ERROR(check_slot(problem, slot, name));
    const Tick latest = slot.segment == 0 ? schedule.clock.ticks : 2 * schedule.clock.ticks;
    if (slot.start < 0 || slot.start >= latest || slot.end <= slot.start) return inconsistent("slot of stage " + name);
    if (slot.unit) continue;
    const Slot*& reference = first[slot.stage];
    if (reference == nullptr) reference = &slot;
    if (reference->cores != slot.cores) return inconsistent("stage " + name + " changes its home cores");
  }
  const std::vector<std::vector<std::uint32_t>> jobs = segments_by_slot(schedule);
  std::size_t known_slots = 0;
  for (const std::vector<std::uint32_t>& slots : jobs) {
    known_slots += slots.size();
    if (slots.empty()) continue;
    TAKT_RETURN_IF_ERROR(check_job(schedule, slots, problem.stages[schedule.slots[slots.front()].stage].name));
  }
  if (known_slots != schedule.slots.size()) return inconsistent("a segment belongs to no job");
  for (const Binding& binding : schedule.bindings) {
    const bool known = binding.producer_stage < problem.stages.size() && first[binding.producer_stage] != nullptr;
    if (!known) return inconsistent("a binding to a stage without slots");
  }
  return {};
}

Status check(const Problem& problem, const std::vector<ModeTable>& modes, const std::vector<StageHost*>& hosts,
             const DispatchOptions& options) {
  if (modes.empty() || modes.size() > kMostModes) return inconsistent("the number of its modes");
  if (options.reproduce && !options.lockstep) return inconsistent("only virtual time reproduces a run");
  if (problem.phase_lock && !options.correction) return inconsistent("nobody says how its phase is to be corrected");
  if (!(options.rate > 0)) return fail(Code::kUsage, "the replay rate must be above 0");
  for (const ModeTable& mode : modes) {
    TAKT_RETURN_IF_ERROR(check(problem, mode, hosts));
    for (const std::uint32_t exit : mode.exits) {
      if (exit >= modes.size()) return inconsistent("an exit into an unknown mode");
    }
  }
  for (const ModeChange& change : options.repeat_changes) {
    if (change.to >= modes.size()) return inconsistent("a change to an unknown mode");
  }
  return {};
}

StagePlan::Variant variant_plan(const RunPlan& plan, const std::vector<std::uint32_t>& cores, std::uint32_t variant,
                                const Budget& budget) {
  StagePlan::Variant out{variant, {.wakeup_window = {}, .budget = budget.time}};
  for (const std::uint32_t core : cores) {
    out.limits.wakeup_window = std::max(out.limits.wakeup_window, plan.problem.board.cores[core].wakeup_window);
  }
  for (const Segment& segment : budget.segments) {
    SegmentPlan& own = out.segments.emplace_back();
    own.budget = segment.time;
    own.guard = segment.guard;
    if (segment.unit) own.unit = plan.units[*segment.unit].get();
    for (const std::uint32_t mutex : segment.mutexes) own.mutexes.push_back(plan.mutexes[mutex].get());
  }
  return out;
}

// The budget of `variant` on as many cores; nullptr when it has none.
const Budget* budget_on(const Stage& stage, std::uint32_t variant, std::size_t cores) {
  for (const Budget& budget : stage.variants[variant].budgets) {
    if (budget.cores == static_cast<int>(cores)) return &budget;
  }
  return nullptr;
}

StagePlan stage_plan(const RunPlan& plan, const std::vector<ModeTable>& modes, const ModeTable& mode,
                     std::uint32_t index, const std::vector<std::uint32_t>& cores) {
  const Stage& stage = plan.problem.stages[index];
  const Choice& choice = mode.schedule.choices[index];
  StagePlan out{.overrun = stage.overrun,
                .admitted = variant_plan(plan, cores, choice.variant, choice.budget),
                .degraded = {},
                .degraded_mode = {},
                .arena = nullptr};
  if (const auto degraded = mode.degraded[index]; degraded && *degraded != choice.variant) {
    const Budget* const budget = budget_on(stage, *degraded, cores.size());
    if (budget != nullptr && fits(*budget, choice.budget)) out.degraded = variant_plan(plan, cores, *degraded, *budget);
  }
  for (std::uint32_t m = 0; m < modes.size(); ++m) {
    if (modes[m].name == stage.degraded_mode) out.degraded_mode = m;
  }
  if (choice.variant < stage.variants.size() && stage.variants[choice.variant].arena_mutex) {
    out.arena = plan.mutexes[*stage.variants[choice.variant].arena_mutex].get();
  }
  return out;
}

// The runs of one stage: one for each home that it has in some mode.
void add_runs(std::uint32_t index, StageHost* host, const std::vector<ModeTable>& modes, ModeControl* control,
              RunPlan& plan) {
  std::map<std::vector<std::uint32_t>, std::vector<std::optional<StagePlan>>> homes;
  std::vector<const std::vector<std::uint32_t>*> home_of(modes.size(), nullptr);
  for (std::size_t m = 0; m < modes.size(); ++m) {
    for (const Slot& slot : modes[m].schedule.slots) {
      if (slot.stage != index || slot.unit || home_of[m] != nullptr) continue;
      auto& [cores, plans] = *homes.try_emplace(slot.cores, modes.size()).first;
      plans[m] = stage_plan(plan, modes, modes[m], index, cores);
      home_of[m] = &cores;
    }
  }
  plan.states.push_back(std::make_unique<StageState>());
  const SharedByRuns shared{index, host, plan.problem.stages[index].slack, plan.states.back().get(), control};
  for (const auto& [cores, plans] : homes) {
    plan.runs.push_back(std::make_unique<StageRun>(shared, cores, plans));
    for (std::size_t m = 0; m < modes.size(); ++m) {
      if (home_of[m] == &cores) plan.modes[m].stages[index] = plan.runs.back().get();
    }
  }
}

Duration guard_of(const Budget& budget, const Slot& slot) {
  return slot.segment < budget.segments.size() ? budget.segments[slot.segment].guard : Duration{};
}

RunPlan make_plan(const Problem& problem, const std::vector<ModeTable>& modes, const std::vector<StageHost*>& hosts,
                  const Boundary& boundary, ModeControl* control, const RecordSink& sink) {
  RunPlan plan{problem, boundary, sink, {}, {}, {}, {}, {}};
  for (std::size_t i = 0; i < problem.mutexes.size(); ++i) plan.mutexes.push_back(std::make_unique<Token>());
  for (std::size_t i = 0; i < problem.board.units.size(); ++i) plan.units.push_back(std::make_unique<Token>());
  for (const ModeTable& mode : modes) {
    const Schedule& schedule = mode.schedule;
    ModePlan& out = plan.modes.emplace_back(
        ModePlan{schedule, {}, {}, {}, std::vector<std::vector<Binding>>(schedule.slots.size()), mode.reads});
    out.stages.resize(problem.stages.size(), nullptr);
    const std::vector<std::vector<std::uint32_t>> jobs = segments_by_slot(schedule);
    for (std::size_t i = 0; i < schedule.slots.size(); ++i) {
      const Slot& slot = schedule.slots[i];
      const TableTime start = schedule.clock.start_at(0, slot.start);
      std::vector<SegmentSlot>& segments = out.segments.emplace_back();
      for (const std::uint32_t own : jobs[i]) {
        const Slot& part = schedule.slots[own];
        segments.push_back({schedule.clock.start_at(0, part.start) - start, schedule.clock.end_at(0, part.end) - start,
                            part.unit, guard_of(schedule.choices[slot.stage].budget, part)});
      }
      const Tick publish = jobs[i].empty() ? 0 : publish_tick(problem, schedule, schedule.slots[jobs[i].back()]);
      out.publish_at.push_back(schedule.clock.start_at(0, publish) - start);
      for (const Binding& binding : schedule.bindings) {
        if (binding.stage == slot.stage && binding.job == slot.job) out.reads[i].push_back(binding);
      }
    }
  }
  for (std::uint32_t s = 0; s < problem.stages.size(); ++s) add_runs(s, hosts[s], modes, control, plan);
  return plan;
}

ThreadSpec thread_spec(std::string name, const Core& core, int priority, bool rights) {
  return rights ? ThreadSpec{std::move(name), core.cpu, priority} : ThreadSpec{std::move(name)};
}

std::string worker_name(const Problem& problem, std::size_t stage, std::size_t part) {
  return problem.stages[stage].name + "." + std::to_string(part);
}

// One worker per stage, home and core of its gang.
Status add_workers(const RunPlan& plan, bool rights, ThreadTeam& team) {
  for (const auto& owned : plan.runs) {
    StageRun* const stage = owned.get();
    for (std::size_t part = 0; part < stage->cores().size(); ++part) {
      const Core& core = plan.problem.board.cores[stage->cores()[part]];
      TAKT_RETURN_IF_ERROR(
          team.add(thread_spec(worker_name(plan.problem, stage->stage(), part), core, kWorkerPriority, rights),
                   [stage, part] { stage->work(static_cast<int>(part)); }));
    }
  }
  return {};
}

// Locks the memory of the process, stacks of the ready threads included, for the length of the run.
class MemoryLock {
 public:
  MemoryLock() = default;
  MemoryLock(const MemoryLock&) = delete;
  MemoryLock& operator=(const MemoryLock&) = delete;
  ~MemoryLock() {
    if (taken_) memory::unlock_memory();
  }
  void take(RealtimeRights& rights) {
    const Status locked = memory::lock_memory();
    taken_ = rights.memory_locked = locked.has_value();
    if (!locked) rights.refused += (rights.refused.empty() ? "" : "; ") + locked.error().message;
  }

 private:
  bool taken_ = false;
};

// What the options say of locked tables, within what their gaps hold.
Boundary::Correction correction_of(const Problem& problem, const std::vector<ModeTable>& modes,
                                   const DispatchOptions& options) {
  if (!problem.phase_lock || !options.correction) return {};
  const PhaseLock& lock = *problem.phase_lock;
  std::vector<Duration> largest;  // by mode
  largest.reserve(modes.size());
  for (const ModeTable& mode : modes) {
    largest.push_back(largest_correction(lock, problem.sensors[lock.sensor], mode.schedule.clock.hyperperiod));
  }
  return [largest, &options](const Turn& next) {
    return std::clamp(options.correction(next), -largest[next.mode], largest[next.mode]);
  };
}

Boundary::Change change_of(const DispatchOptions& options) {
  if (options.reproduce && !options.repeat_changes.empty()) {
    return [&changes = options.repeat_changes](const Turn& next) -> std::optional<ModeChange> {
      for (const ModeChange& change : changes) {
        if (change.hyperperiod == next.number && change.to != next.mode) return change;
      }
      return std::nullopt;
    };
  }
  if (options.reproduce || options.modes == nullptr) return {};
  return [control = options.modes](const Turn& next) { return control->choose(next); };
}

Boundary::Limits limits_of(const std::vector<ModeTable>& modes, const DispatchOptions& options) {
  Boundary::Limits out{.turns = options.hyperperiods, .stop = options.stop};
  if (modes.size() == 1 || options.modes == nullptr || options.reproduce) return out;
  Duration shortest = modes.front().schedule.clock.hyperperiod;
  out.length = shortest * static_cast<std::int64_t>(options.hyperperiods);
  for (const ModeTable& mode : modes) shortest = std::min(shortest, mode.schedule.clock.hyperperiod);
  out.turns = static_cast<std::uint64_t>(out.length.ns / shortest.ns) + 1;
  return out;
}

std::vector<double> busy_shares(const RunPlan& plan, Duration span) {
  std::vector<double> busy(plan.problem.board.cores.size(), 0.0);
  if (span.ns <= 0) return busy;
  for (const auto& stage : plan.runs) {
    for (std::size_t part = 0; part < stage->cores().size(); ++part) {
      busy[stage->cores()[part]] +=
          static_cast<double>(stage->cpu_ns(static_cast<int>(part))) / static_cast<double>(span.ns);
    }
  }
  return busy;
}

// What a thread that never comes back stands in. It is known here, so that it is no leak.
void keep_for_good(std::unique_ptr<StageRun> run) {
  static std::mutex mutex;
  static std::vector<std::unique_ptr<StageRun>>& kept = *new std::vector<std::unique_ptr<StageRun>>;
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(run));
}

// Stops the workers of jobs that did not come back, and hands their records over. What such a worker stands in stays
// for good. `clock`: null in virtual time, which ended at `end`.
void abandon_stuck(RunPlan& plan, const TableClock* clock, TableTime end, ThreadTeam& team, DispatchResult& result) {
  for (std::unique_ptr<StageRun>& run : plan.runs) {
    if (run->running() == 0) continue;
    const TableTime planned = run->job().nominal_start;
    const TableTime now = clock == nullptr ? end : clock->table(host_now());
    const StageRun::Left left = run->stop_for_good();
    // Workers that may still run say nothing yet.
    const bool told = clock != nullptr && left.stopped;
    run->abandon(left, told ? std::max(planned, clock->table(run->last_start())) : planned, now);
    for (const int part : left.parts) {
      team.leave(worker_name(plan.problem, run->stage(), static_cast<std::size_t>(part)));
    }
    plan.sink(run->publisher(), run->record());
    result.stuck.push_back(run->stage());
    result.still_inside = result.still_inside || !left.stopped;
  }
}

}  // namespace

Result<DispatchResult> dispatch(const Problem& problem, const Schedule& schedule, const std::vector<StageHost*>& stages,
                                const DispatchOptions& options, const RecordSink& sink) {
  return dispatch(problem, std::vector<ModeTable>{only_table(problem, schedule)}, stages, options, sink);
}

Result<DispatchResult> dispatch(const Problem& problem, const std::vector<ModeTable>& modes,
                                const std::vector<StageHost*>& stages, const DispatchOptions& options,
                                const RecordSink& sink) {
  TAKT_RETURN_IF_ERROR(check(problem, modes, stages, options));
  Boundary boundary(modes, limits_of(modes, options), correction_of(problem, modes, options), change_of(options));
  RunPlan plan = make_plan(problem, modes, stages, boundary, options.modes, sink);
  DispatchResult result;
  // A job is read six times: by its dispatcher around latch and publication, by its worker around the run.
  result.accounting = ThreadCost::of_a_reading() * 6;
  const bool rights = options.realtime_rights && !options.lockstep;

  Sequencer sequencer(plan, boundary, options.reproduce, options.wait_for_job);
  std::vector<CoreDispatcher> dispatchers;
  dispatchers.reserve(problem.board.cores.size());
  TableClock clock{.origin = {}, .rate = options.rate};
  Watchdog watchdog(problem, modes, boundary, options.watchdog);
  std::atomic<std::uint32_t> walking{0};  // dispatchers that are not at the end of the table
  Futex finished;
  const auto finish = [&finished] {
    finished.add(1);
    finished.wake_all();
  };
  const auto walked = [&] {
    if (walking.fetch_sub(1) == 1 && options.ended != nullptr) options.ended->store(true);
  };

  ParkingSignal parking;
  ThreadTeam team;
  std::uint32_t sequences = 0;
  TAKT_RETURN_IF_ERROR(add_workers(plan, rights, team));
  if (options.lockstep) {
    sequences = 1;
    TAKT_RETURN_IF_ERROR(team.add({.name = "sequencer"}, [&] {
      sequencer.run();
      walked();
      finish();
    }));
  } else {
    for (std::uint32_t core = 0; core < problem.board.cores.size(); ++core) {
      CoreDispatcher& dispatcher = dispatchers.emplace_back(plan, boundary, watchdog, core);
      if (dispatcher.idle()) continue;
      ++sequences;
      const Core& board_core = problem.board.cores[core];
      TAKT_RETURN_IF_ERROR(
          team.add(thread_spec("dispatch." + board_core.name, board_core, kDispatcherPriority, rights), [&] {
            dispatcher.run(clock);
            walked();
            dispatcher.drain(host_now() + options.wait_for_late);
            finish();
          }));
    }
    if (options.watchdog) {
      TAKT_RETURN_IF_ERROR(team.add({.name = "watchdog", .cpu = -1, .priority = rights ? kWatchdogPriority : 0},
                                    [&] { watchdog.run(clock); }));
    }
  }

  team.await_ready();
  MemoryLock memory_lock;
  std::optional<CpuLatency> cpu_latency;
  if (rights) {
    team.report(result.rights);
    memory_lock.take(result.rights);
    cpu_latency.emplace();
    result.rights.deep_sleep = cpu_latency->refused();
    result.rights.isolation = result.rights.fifo && may_leave_idle() ? "demotion" : "parking";
  } else {
    result.rights.refused = options.lockstep ? "not asked for: lockstep" : "not asked for";
    if (!options.lockstep) result.rights.isolation = "parking";
  }
  result.started = host_now() + (options.lockstep ? Duration{} : kLead);
  clock.origin = result.started;
  walking.store(sequences);
  team.release();
  finished.wait([sequences](std::uint32_t value) { return value == sequences; });
  const Duration span = host_now() - result.started;
  watchdog.stop();
  abandon_stuck(plan, options.lockstep ? nullptr : &clock, sequencer.end(), team, result);
  for (const auto& stage : plan.runs) stage->quit();
  if (!result.stuck.empty()) parking.keep();
  team.join();

  result.hyperperiods_run = boundary.entered();
  result.stopped = boundary.stopped();
  if (problem.phase_lock) {
    for (std::uint64_t h = 0; h < boundary.entered(); ++h) result.corrections.push_back(boundary.turn(h).correction);
  }
  result.changes = boundary.changes();
  result.watchdog_trips = watchdog.trips();
  result.core_busy = busy_shares(plan, span);
  // What a worker stands in stays for good.
  for (std::unique_ptr<StageRun>& run : plan.runs) {
    if (run->running() != 0) keep_for_good(std::move(run));
  }
  return result;
}

}  // namespace takt::sched
