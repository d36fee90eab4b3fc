#include "scheduler/dispatch/dispatch.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "runtime/memory/process.h"
#include "scheduler/dispatch/boundary.h"
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

Status check(const Problem& problem, const Schedule& schedule, const std::vector<StageHost*>& hosts,
             const DispatchOptions& options) {
  TAKT_RETURN_IF_ERROR(can_dispatch(problem, schedule));
  if (options.reproduce && !options.lockstep) return inconsistent("only virtual time reproduces a run");
  if (problem.phase_lock && !options.correction) return inconsistent("nobody says how its phase is to be corrected");
  if (!(options.rate > 0)) return fail(Code::kUsage, "the replay rate must be above 0");
  if (hosts.size() != problem.stages.size() || schedule.choices.size() != problem.stages.size()) {
    return inconsistent("stages, choices and hosts differ in number");
  }
  if (schedule.clock.hyperperiod.ns <= 0 || schedule.clock.ticks <= 0) return inconsistent("the table has no length");
  std::vector<const Slot*> first(problem.stages.size(), nullptr);
  for (const Slot& slot : schedule.slots) {
    if (slot.stage >= problem.stages.size() || hosts[slot.stage] == nullptr) return inconsistent("unknown stage");
    const std::string& name = problem.stages[slot.stage].name;
    if (slot.cores.empty() || slot.cores.size() > kMaxGang) return inconsistent("core count of stage " + name);
    for (const std::uint32_t core : slot.cores) {
      if (core >= problem.board.cores.size()) return inconsistent("stage " + name + " has a slot on an unknown core");
    }
    if (slot.cores.size() == 2 && slot.cores[0] == slot.cores[1]) {
      return inconsistent("stage " + name + " has a slot twice on one core");
    }
    if (slot.start < 0 || slot.start >= schedule.clock.ticks || slot.end <= slot.start) {
      return inconsistent("slot of stage " + name);
    }
    const Slot*& reference = first[slot.stage];
    if (reference == nullptr) reference = &slot;
    if (reference->cores != slot.cores) return inconsistent("stage " + name + " changes its home cores");
  }
  return {};
}

StagePlan::Variant variant_plan(const Problem& problem, const std::vector<std::uint32_t>& cores, std::uint32_t variant,
                                Duration budget) {
  StagePlan::Variant out{variant, {.wakeup_window = {}, .budget = budget}};
  for (const std::uint32_t core : cores) {
    out.limits.wakeup_window = std::max(out.limits.wakeup_window, problem.board.cores[core].wakeup_window);
  }
  return out;
}

// The variant to which a stage of this problem degrades, unless it runs that one anyway.
std::optional<std::uint32_t> degraded_variant(const Stage& stage, std::uint32_t chosen) {
  for (std::uint32_t v = 0; v < stage.variants.size(); ++v) {
    if (v != chosen && stage.variants[v].name == stage.degraded_variant) return v;
  }
  return std::nullopt;
}

// The budget of `variant` on as many cores; nullptr when it has none.
const Budget* budget_on(const Stage& stage, std::uint32_t variant, std::size_t cores) {
  for (const Budget& budget : stage.variants[variant].budgets) {
    if (budget.cores == static_cast<int>(cores)) return &budget;
  }
  return nullptr;
}

RunPlan make_plan(const Problem& problem, const Schedule& schedule, const std::vector<StageHost*>& hosts,
                  const RecordSink& sink) {
  RunPlan plan{problem, schedule, sink, {}, {}, {}};
  for (std::size_t i = 0; i < problem.mutexes.size(); ++i) plan.arenas.push_back(std::make_unique<ArenaToken>());
  plan.stages.resize(problem.stages.size());
  for (const Slot& slot : schedule.slots) {
    plan.publish_ticks.push_back(publish_tick(problem, schedule, slot));
    if (plan.stages[slot.stage] != nullptr) continue;
    const Stage& stage = problem.stages[slot.stage];
    const Choice& choice = schedule.choices[slot.stage];
    StagePlan of_stage{.overrun = stage.overrun,
                       .slack = stage.slack,
                       .admitted = variant_plan(problem, slot.cores, choice.variant, choice.budget.time),
                       .degraded = {},
                       .arena = nullptr};
    if (const auto degraded = degraded_variant(stage, choice.variant)) {
      const Budget& budget = *budget_on(stage, *degraded, slot.cores.size());
      of_stage.degraded = variant_plan(problem, slot.cores, *degraded, budget.time);
    }
    if (choice.variant < stage.variants.size() && stage.variants[choice.variant].arena_mutex) {
      of_stage.arena = plan.arenas[*stage.variants[choice.variant].arena_mutex].get();
    }
    plan.stages[slot.stage] = std::make_unique<StageRun>(*hosts[slot.stage], slot.cores, of_stage);
  }
  return plan;
}

ThreadSpec thread_spec(std::string name, const Core& core, int priority, bool rights) {
  return rights ? ThreadSpec{std::move(name), core.cpu, priority} : ThreadSpec{std::move(name)};
}

std::string worker_name(const Problem& problem, std::size_t stage, std::size_t part) {
  return problem.stages[stage].name + "." + std::to_string(part);
}

// One worker per stage and core of its gang.
Status add_workers(const RunPlan& plan, bool rights, ThreadTeam& team) {
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    StageRun* stage = plan.stages[i].get();
    if (stage == nullptr) continue;
    for (std::size_t part = 0; part < stage->cores().size(); ++part) {
      const Core& core = plan.problem.board.cores[stage->cores()[part]];
      TAKT_RETURN_IF_ERROR(team.add(thread_spec(worker_name(plan.problem, i, part), core, kWorkerPriority, rights),
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

// Keeps the cores out of sleep states that take long to leave, as long as it lives (the kernel's pm_qos interface).
class CpuLatency {
 public:
  explicit CpuLatency(RealtimeRights& rights) : file_(::open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC)) {
    const std::int32_t microseconds = 0;
    if (file_ < 0 && errno == ENOENT) return;  // nothing here sleeps deeply: a virtual machine, for example
    if (file_ >= 0 && ::write(file_, &microseconds, sizeof microseconds) == sizeof microseconds) return;
    rights.deep_sleep = std::string("/dev/cpu_dma_latency: ") + std::strerror(errno) +
                        "; cores may sleep deeply and wake up late: give this user write access";
  }
  ~CpuLatency() {
    if (file_ >= 0) ::close(file_);
  }
  CpuLatency(const CpuLatency&) = delete;
  CpuLatency& operator=(const CpuLatency&) = delete;

 private:
  int file_;
};

// What the options say of a locked table, within what its gap holds.
Boundary::Correction correction_of(const Problem& problem, const DispatchOptions& options) {
  if (!problem.phase_lock || !options.correction) return {};
  const PhaseLock& lock = *problem.phase_lock;
  const Duration largest = largest_correction(lock, problem.sensors[lock.sensor], problem.hyperperiod);
  return [largest, &options](std::uint64_t h) { return std::clamp(options.correction(h), -largest, largest); };
}

std::vector<double> busy_shares(const RunPlan& plan, Duration span) {
  std::vector<double> busy(plan.problem.board.cores.size(), 0.0);
  if (span.ns <= 0) return busy;
  for (const auto& stage : plan.stages) {
    if (stage == nullptr) continue;
    for (std::size_t part = 0; part < stage->cores().size(); ++part) {
      busy[stage->cores()[part]] +=
          static_cast<double>(stage->cpu_ns(static_cast<int>(part))) / static_cast<double>(span.ns);
    }
  }
  return busy;
}

// Stops the workers of jobs that did not come back, and hands their records over.
std::vector<std::uint32_t> abandon_stuck(const RunPlan& plan, const TableClock& clock, ThreadTeam& team) {
  std::vector<std::uint32_t> stuck;
  for (std::uint32_t s = 0; s < plan.stages.size(); ++s) {
    StageRun* const stage = plan.stages[s].get();
    if (stage == nullptr || stage->running() == 0) continue;
    for (const int part : stage->abandon(clock))
      team.leave(worker_name(plan.problem, s, static_cast<std::size_t>(part)));
    plan.sink(stage->publisher(), stage->record());
    stuck.push_back(s);
  }
  return stuck;
}

}  // namespace

Status can_dispatch(const Problem& problem, const Schedule& schedule) {
  for (std::size_t i = 0; i < schedule.choices.size() && i < problem.stages.size(); ++i) {
    const Choice& choice = schedule.choices[i];
    const Stage& stage = problem.stages[i];
    const auto refuse = [&stage](const std::string& what) {
      return fail(Code::kConfiguration, "stage '" + stage.name + "' " + what);
    };
    if (!choice.budget.segments.empty()) {
      return refuse(
          "has segments, which no dispatcher executes yet: `takt schedule` plans and proves it. To run it, "
          "give it one budget on the cores");
    }
    if (!stage.degraded_mode.empty()) {
      return refuse("degrades to mode '" + stage.degraded_mode +
                    "', and no dispatcher changes between tables yet: name " + "a variant, or choose another policy");
    }
    if (const auto degraded = degraded_variant(stage, choice.variant)) {
      const std::string& name = stage.variants[*degraded].name;
      const Budget* budget = budget_on(stage, *degraded, static_cast<std::size_t>(std::max(1, choice.budget.cores)));
      if (budget == nullptr || budget->time > choice.budget.time) {
        return refuse("degrades to '" + name + "', which has no budget of at most " +
                      std::to_string(choice.budget.time.ms()) + " ms on " + std::to_string(choice.budget.cores) +
                      " core(s), so that it would fit the same slots");
      }
      if (stage.variants[*degraded].arena_mutex != stage.variants[choice.variant].arena_mutex) {
        return refuse("degrades to '" + name + "', whose arena is under another mutex");
      }
    }
  }
  return {};
}

Result<DispatchResult> dispatch(const Problem& problem, const Schedule& schedule, const std::vector<StageHost*>& stages,
                                const DispatchOptions& options, const RecordSink& sink) {
  TAKT_RETURN_IF_ERROR(check(problem, schedule, stages, options));
  RunPlan plan = make_plan(problem, schedule, stages, sink);
  Boundary boundary(options.hyperperiods, options.stop, correction_of(problem, options));
  DispatchResult result;
  // A job is read six times: by its dispatcher around latch and publication, by its worker around the run.
  result.accounting = ThreadCost::of_a_reading() * 6;
  const bool rights = options.realtime_rights && !options.lockstep;

  Sequencer sequencer(plan, boundary, options.hyperperiods, options.reproduce);
  std::vector<CoreDispatcher> dispatchers;
  dispatchers.reserve(problem.board.cores.size());
  TableClock clock{.origin = {}, .rate = options.rate};
  Watchdog watchdog(problem, schedule, boundary, options.hyperperiods, options.watchdog);
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
      CoreDispatcher& dispatcher = dispatchers.emplace_back(plan, boundary, watchdog, options.hyperperiods, core);
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
    cpu_latency.emplace(result.rights);
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
  for (const auto& stage : plan.stages) {
    if (stage != nullptr) stage->quit();
  }
  result.stuck = abandon_stuck(plan, clock, team);
  if (!result.stuck.empty()) parking.keep();
  team.join();

  result.hyperperiods_run = boundary.entered();
  result.stopped = boundary.stopped();
  for (std::uint64_t h = 0; boundary.corrects() && h < boundary.entered(); ++h) {
    result.corrections.push_back(h == 0 ? Duration{} : boundary.offset(h) - boundary.offset(h - 1));
  }
  result.watchdog_trips = watchdog.trips();
  result.core_busy = busy_shares(plan, span);
  // What a worker stands in stays for good.
  for (const std::uint32_t stage : result.stuck) static_cast<void>(plan.stages[stage].release());
  return result;
}

}  // namespace takt::sched
