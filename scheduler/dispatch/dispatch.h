// Executes a schedule: one dispatcher per core, one pinned worker per stage and core (DESIGN section 5, "Dispatch").
// Two clocks: real time, and lockstep, where virtual time steps from event to event of the table and jobs take their
// budget. Selection, bindings and publication order are the same in both; a clean run gives the same bytes.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "scheduler/dispatch/mode_control.h"
#include "scheduler/dispatch/record.h"
#include "scheduler/dispatch/turn.h"
#include "scheduler/model/model.h"
#include "scheduler/model/modes.h"

namespace takt::sched {

// When a segment of a job has its slot, from the job's nominal start on, and where.
struct SegmentSlot {
  Duration start;
  Duration end;
  std::optional<std::uint32_t> unit;  // index into Board::units; nullopt: the home cores
  Duration guard = {};                // of a unit's, behind its end
};

// One job about to run. Points into the schedule; lives as long as the run.
struct Job {
  std::uint32_t slot = 0;
  std::uint32_t stage = 0;
  std::uint64_t number = 0;       // absolute, counting skipped ones
  std::uint64_t hyperperiod = 0;  // of the run, whatever its modes
  TableTime nominal_start;        // rounded up
  TableTime slot_end;             // of the last segment, rounded down
  std::uint32_t variant = 0;
  std::uint32_t mode = 0;
  std::uint32_t segment = 0;                   // which is to run
  std::span<const SegmentSlot> segments = {};  // empty: one, on the cores, from start to end
  // By input of the stage: the producer job that it is bound to, where it is a stage's output.
  static constexpr std::int64_t kFilling = -1;  // it lies before the run
  static constexpr std::int64_t kNotRead = -2;  // this mode leaves the input out
  std::array<std::int64_t, kMaxInputs> bound{-1, -1, -1, -1, -1, -1, -1, -1};
  [[nodiscard]] bool last_segment() const { return segment + 1 >= segments.size(); }
  // Reproducing a run: what this job came to there. Its inputs, and nothing else, are to be selected again.
  const JobRecord* seen = nullptr;
};

// The meeting point of the workers of one job, between any two of its steps, where the job may also be given up: part 0
// alone reads the clock, and puts go or abort into the word that the others wait for. Parts spin for each other,
// because a gang starts together and the work between two boundaries is balanced; but they spin within the slot only:
// from the slot's end on they look once in a millisecond.
class Gang {
 public:
  static constexpr std::uint32_t kNever = 0xFFFF'FFFF;

  // When the job is given up. By default never.
  struct Limits {
    std::optional<HostTime> end;      // no step begins after this instant: the output would be discarded
    std::optional<Duration> budget;   // a step begins only if with its worst case it ends so long after the job's start
    std::uint32_t abort_at = kNever;  // at this boundary, whatever the clock says (reproducing a run)
  };

  explicit Gang(int parts) : parts_(parts) {}
  // Dispatcher, while no part runs: a job begins, or its next segment on the cores. Boundaries are counted on.
  void begin(const Limits& limits);
  void resume(const Limits& limits);
  // Part 0: its job begins; budgets count from here.
  void started(HostTime now) { start_ = now; }
  // Any thread: the slot is over.
  void end_slot() { slot_over_.store(true, std::memory_order_relaxed); }
  // Every part, between two steps; `next` is the worst case of the step to come, as far as part 0 knows it. False: the
  // job is given up and this part returns at once. With one part only the decision is made.
  [[nodiscard]] bool arrive_and_wait(int part, Duration next = {});

  [[nodiscard]] int parts() const { return parts_; }
  // After the job: the boundary (from 0) at which it was given up, kNever when it was not.
  [[nodiscard]] std::uint32_t aborted_at() const { return aborted_at_; }

 private:
  [[nodiscard]] bool goes_on(Duration next);
  bool give_up();

  const int parts_;
  std::atomic<int> arrived_{0};         // of the other parts
  std::atomic<std::uint32_t> word_{0};  // number of the next boundary, or kAbort
  std::atomic<bool> slot_over_{false};
  // Part 0, and the dispatcher while no part runs:
  Limits limits_;
  HostTime start_;
  std::uint32_t boundary_ = 0;
  std::uint32_t aborted_at_ = kNever;
};

// Everything the dispatcher needs of the world; pipeline/assembly implements it. One object per stage.
class StageHost {
 public:
  virtual ~StageHost() = default;
  // Dispatcher thread, at the nominal start: select every input, loan the output. Fills record.inputs, input_count,
  // flags (missing, repeat, held, fill) and reason. False: do not run (missing required input, no credit).
  // `patience`: how long to wait, for all inputs together, for samples that are not physically there: what is left of w
  // (zero in lockstep: then wait without limit).
  virtual bool latch(const Job& job, Duration patience, JobRecord& record) = 0;
  // Worker threads, all parts of the gang, once for each segment on the cores. Sees pointers only.
  virtual void run(const Job& job, int part, Gang& gang) = 0;
  // Dispatcher thread of the last core, at the start of a unit's slot: what the segments before have prepared for the
  // unit begins. Waits for nothing. Work that the unit refuses has ended.
  virtual void begin(const Job& /*job*/) {}
  // The same thread, at the slot's end and later, until it is so: the unit does nothing more for the segment that was
  // begun, for which it worked so long. nullopt: it still does; memory of the job, chunks and state stay as they are.
  // A unit that is lost does nothing more.
  virtual std::optional<Duration> ended() { return Duration{}; }
  // Dispatcher thread of the last core: hand the output over; sets record.published, output_bytes.
  virtual void publish(const Job& job, JobRecord& record) = 0;
  // Dispatcher thread: the output is not wanted any more. Also called after latch() returned false.
  virtual void discard(const Job& job) = 0;
  // Dispatcher thread, after publish or discard: inputs may be let go. Adds to the record what only the host knows of
  // the job: its times on a device.
  virtual void finish(const Job& job, JobRecord& record) = 0;
};

// What the watchdog saw, at the end of a hyperperiod and when a dispatcher is behind the table.
struct WatchdogReport {
  TableTime now;
  std::uint64_t hyperperiod = 0;
  std::uint64_t trips = 0;            // so far
  std::optional<std::uint32_t> core;  // whose dispatcher is behind; nullopt: all is well, a sign of life
  TableTime reached;                  // where that dispatcher is
};

struct DispatchOptions {
  bool lockstep = false;
  std::uint64_t hyperperiods = 0;           // how many to run; with several modes, as long as so many of the first
  double rate = 1.0;                        // real time only: table seconds per host second
  bool realtime_rights = true;              // try SCHED_FIFO, affinity, mlockall; what was refused is reported
  const std::atomic<bool>* stop = nullptr;  // graceful stop: checked at every hyperperiod boundary
  // For tables that are locked to a sensor (Problem::phase_lock): how much later the next hyperperiod begins, asked
  // once for each behind one of a locked mode, where the gap before it begins, when all jobs of the hyperperiod before
  // have latched their inputs. What is beyond largest_correction() is cut. Dispatcher thread.
  std::function<Duration(const Turn& next)> correction;
  // Of several modes: says which comes next. Without it a run stays in the first.
  ModeControl* modes = nullptr;
  std::atomic<bool>* ended = nullptr;  // set when the table is over and only jobs that are late are waited for
  // Real time: for so long. A job that has not come back then is stuck: its workers are stopped for good, and the run
  // ends without it.
  Duration wait_for_late = seconds(5);
  // Lockstep: the same for every job, since there is no table to be late against; long enough for a slow machine.
  Duration wait_for_job = seconds(300);
  // Real time: on the watchdog's thread, above all others; allocates nothing, waits for nothing.
  std::function<void(const WatchdogReport&)> watchdog;
  // Lockstep only: the record of every job of an earlier run, whose starts, inputs, skips, variants, aborts and
  // publications are repeated instead of decided. nullptr for a job that it did not come to: skipped here too.
  std::function<const JobRecord*(std::uint32_t stage, std::uint64_t job)> reproduce;
  // With it: the changes of mode of that run, instead of a ModeControl's. `hyperperiods` counts all modes alike.
  std::vector<ModeChange> repeat_changes;
};

// What was asked of the system and what it granted, for the report.
struct RealtimeRights {
  bool fifo = false;
  bool affinity = false;
  bool memory_locked = false;
  std::string refused;  // in words, "" when all were granted
  // Why the cores may sleep so deeply that they wake up late, in words; "" when they are kept from it, or cannot.
  std::string deep_sleep;
  // How a worker that has not finished in time loses its core: "demotion" (SCHED_IDLE), "parking" (a signal), or ""
  // in lockstep, where virtual time waits for a job as long as `wait_for_job` says.
  std::string isolation;
};

struct DispatchResult {
  std::uint64_t hyperperiods_run = 0;
  bool stopped = false;
  RealtimeRights rights;
  HostTime started;                   // host time of table time 0 (real time)
  std::uint64_t watchdog_trips = 0;   // slot ends to which a dispatcher came later than its guard
  std::vector<Duration> corrections;  // of the phase, by hyperperiod; empty: the clock is free
  std::vector<ModeChange> changes;    // of mode
  std::vector<double> core_busy;      // share of the run each core spent in jobs, by core
  std::vector<std::uint32_t> stuck;   // stages with a job that did not come back; their worker threads never end
  bool still_inside = false;          // one of those has not been seen to stop: all that its stage uses must stay
  Duration accounting;  // what keeping account of one job costs the timed threads, measured before the run
};

// Runs the table. Blocks until done or stopped. kEnvironment when threads cannot be created.
// `sink` may be called from several dispatcher threads at once (one per core; core index given).
Result<DispatchResult> dispatch(const Problem& problem, const Schedule& schedule, const std::vector<StageHost*>& stages,
                                const DispatchOptions& options,
                                const std::function<void(std::size_t core, const JobRecord&)>& sink);
// The same with several modes, whose tables are over the whole problem; begins in the first.
Result<DispatchResult> dispatch(const Problem& problem, const std::vector<ModeTable>& modes,
                                const std::vector<StageHost*>& stages, const DispatchOptions& options,
                                const std::function<void(std::size_t core, const JobRecord&)>& sink);

// Measured start errors of this machine: alternating timed wake-ups on every core with the same rights as a run.
// w = clamp(p99.9 of the wake-up error, 200 us, 5 ms) per core.
struct WakeupErrors {
  std::vector<Duration> p999;          // by core
  std::vector<Duration> publish_p999;  // from the planned publication to its end, by core
  std::vector<Duration> max;
};
Result<WakeupErrors> measure_wakeup(const Board& board, Duration how_long);

// The same for threads that do nothing but sleep for a millisecond and look at the clock, one per core, with the rights
// of a dispatcher (as cyclictest does): the least that this machine can do, whatever is dispatched. No publications.
Result<WakeupErrors> measure_sleep(const Board& board, Duration how_long);

}  // namespace takt::sched
