// One stage during a run: its workers, and the one job that may be in flight.
//
//   lead dispatcher        start() -> decide() -> release(part 0)
//   other dispatcher       await_decision() -> release(its part)
//   workers                host.run(), the last one makes complete() true
//   publishing dispatcher  has_ended() -> note() -> begin_next() ... for each further segment
//                          conclude -> sink -> free()
//
// `running` is the whole ownership protocol: 0, the lead dispatcher may write the job; else the tag of the job in
// flight, and only the publishing dispatcher may set it back to 0, after completion. Which segment comes when is the
// publishing dispatcher's business alone.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "scheduler/dispatch/dispatch.h"
#include "scheduler/dispatch/futex.h"
#include "scheduler/dispatch/isolation.h"
#include "scheduler/dispatch/thread_cost.h"

namespace takt::sched {

// A job number as a futex word; 0 is no job. Good for 2^32 - 1 jobs per stage.
constexpr std::uint32_t tag_of(const Job& job) { return static_cast<std::uint32_t>(job.number) + 1; }

// Says that somebody uses what several share, a block of memory, a mutex or a unit: taken when that begins, given back
// when it is over, however late. Only a broken table or an overrun ever finds it taken for long.
class Token {
 public:
  [[nodiscard]] bool take() { return state_.replace(kFree, kTaken); }
  // The same, but waits up to `limit` for a holder whose dispatcher has not looked yet whether its time, which ends
  // where this one's begins, was enough.
  [[nodiscard]] bool take_by(HostTime limit) {
    while (!take()) {
      if (state_.load() == kOverdue) return false;
      if (!state_.wait_until(limit, [](std::uint32_t state) { return state != kTaken; })) return false;
    }
    return true;
  }
  void give_back() {
    state_.store(kFree);
    state_.wake_all();
  }
  // Its holder keeps it beyond its time: nobody waits for it.
  void overdue() {
    if (state_.replace(kTaken, kOverdue)) state_.wake_all();
  }

 private:
  static constexpr std::uint32_t kFree = 0, kTaken = 1, kOverdue = 2;
  Futex state_;
};

// A segment of a stage's jobs.
struct SegmentPlan {
  Duration budget;
  Duration guard;         // of a unit: what was submitted ends so long behind the slot
  Token* unit = nullptr;  // nullptr: on the cores
  std::vector<Token*> mutexes = {};
};

// How the jobs of a stage are run in one mode and what happens to those that do not keep their budget.
struct StagePlan {
  struct Variant {
    std::uint32_t index = 0;
    JobLimits limits;
    std::vector<SegmentPlan> segments = {};  // empty: one, on the cores, with the budget of the limits
  };
  OverrunPolicy overrun = OverrunPolicy::kContinueLate;
  Variant admitted;
  std::optional<Variant> degraded;
  std::optional<std::uint32_t> degraded_mode;
  Token* arena = nullptr;  // of either variant
};

class StageRun;

// What follows a stage's last job, and whether it is over. What is not atomic is written by the publisher before the
// stage is given back, read and written by whoever has taken it.
struct StageState {
  std::atomic<StageRun*> taken{nullptr};   // the run that has a job in flight
  std::atomic<bool> skipped_since{false};  // a job was skipped while the last one ran
  bool skip_next = false;                  // the last job overran, and the policy is skip_next
  std::uint32_t degraded_jobs = 0;         // jobs that shall still run the degraded variant
};

// What a stage's runs at different homes have in common.
struct SharedByRuns {
  std::uint32_t stage = 0;
  StageHost* host = nullptr;
  Duration slack;
  StageState* state = nullptr;
  ModeControl* control = nullptr;  // told of overruns; may be null
};

class StageRun {
 public:
  // `plans` by mode; absent where the stage does not run, or at another home.
  StageRun(const SharedByRuns& shared, std::vector<std::uint32_t> cores, std::vector<std::optional<StagePlan>> plans);

  [[nodiscard]] std::uint32_t stage() const { return shared_.stage; }
  [[nodiscard]] const std::vector<std::uint32_t>& cores() const { return cores_; }
  [[nodiscard]] std::uint32_t lead() const { return cores_.front(); }
  [[nodiscard]] std::uint32_t publisher() const { return cores_.back(); }
  static_assert(kMaxGang == 2, "a part is the lead's or the other one's");
  [[nodiscard]] int part_of(std::uint32_t core) const { return core == lead() ? 0 : 1; }

  // ---- lead dispatcher (in lockstep the sequencer)
  // Latches the job and makes it the one in flight. Returns nullptr when it may run, else its final record: skipped,
  // because an earlier job is still in flight, by policy, for want of the arena, or refused by the latch. Chooses the
  // variant. `limits` without budget: the policy gives it.
  const JobRecord* start(const Job& job, TableTime publish_at, Duration patience, const Gang::Limits& limits);
  // Instead of start(), behind latest_start(): the job's final record. It is skipped for that, or because an earlier
  // job is in flight, and stands in nobody's way.
  const JobRecord* pass(const Job& job);
  // Tells the gang's other dispatchers that start() has been called for this job; releases the parts of those that
  // stopped waiting.
  void decide(const Job& job);
  // The run of this stage that has a job in flight, here or at the home of the mode before; nullptr: none has.
  [[nodiscard]] StageRun* in_flight() const { return shared_.state->taken.load(); }
  void await_free(HostTime limit);

  // ---- another dispatcher of the gang
  [[nodiscard]] bool await_decision(const Job& job, HostTime limit);
  void await_decision(std::uint32_t tag);
  [[nodiscard]] bool decided(std::uint32_t tag) const { return decided_.load() >= tag; }
  // From now on the lead dispatcher releases this job's part, unless it is decided already.
  void give_up(const Job& job, int part);

  // ---- any dispatcher
  // Lets the worker of this part run the job in flight. Repeating it does nothing.
  void release(int part);
  [[nodiscard]] std::uint32_t running() const { return running_.load(); }
  // While running() is not 0: has every worker finished the job's last segment?
  [[nodiscard]] bool complete() const { return segment_.load() == last_segment_.load() && remaining_.load() == 0; }

  // ---- lead or publishing dispatcher, while running() is not 0
  [[nodiscard]] const Job& job() const { return job_; }
  [[nodiscard]] TableTime deadline() const { return job_.slot_end + shared_.slack; }  // of a late publication
  // Of the workers, in segment `segment` of a job.
  [[nodiscard]] TableTime deadline_of(const Job& job, std::uint32_t segment) const {
    return segment < job.segments.size() ? job.nominal_start + job.segments[segment].end + shared_.slack
                                         : job.slot_end + shared_.slack;
  }
  [[nodiscard]] TableTime worker_deadline() const { return deadline_of(job_, segment_.load()); }
  // When segment `segment` of a job begins behind this, nothing of the job goes out: it could be published no more, or
  // the next segment's slot has begun without it.
  [[nodiscard]] TableTime latest_start(const Job& job, std::uint32_t segment) const {
    const TableTime end = deadline_of(job, segment);
    return segment + 1 < job.segments.size() ? std::min(end, job.nominal_start + job.segments[segment + 1].start) : end;
  }

  // ---- dispatcher of the part's core
  // Was it released and has not finished?
  [[nodiscard]] bool busy(int part) const;
  [[nodiscard]] Isolation& isolation(int part) { return workers_[static_cast<std::size_t>(part)]->isolation; }
  // Takes the core from a worker whose time is over.
  void isolate(int part);

  // ---- publishing dispatcher, while running() is not 0: the segments of the job, one after the other
  [[nodiscard]] std::uint32_t segment() const { return segment_.load(); }
  [[nodiscard]] Duration segment_budget() const;
  // Has the current one ended? Then last_start() and last_end() say when it ran, and note() is called, once.
  [[nodiscard]] bool has_ended();
  [[nodiscard]] bool await_end(HostTime limit);
  void note(TableTime start, TableTime end);
  [[nodiscard]] bool noted() const { return noted_; }
  // Not noted at `now`: tells who waits for what its slot and guard gave it that those are over, and the control of the
  // modes, once, that the job overruns.
  // `worked`: for how long its segment has been at work by the table's clock, zero where not all of it has begun.
  void overdue(TableTime now, Duration worked);
  // Whether every worker, or the unit, has begun the segment: last_start() says when.
  [[nodiscard]] bool has_begun() const;
  // Begins the next one, behind one that is noted. When that begins by `latest`, waiting for what others use by
  // `patience`; else the job is given up.
  struct Begin {
    HostTime latest;
    HostTime patience;
    Gang::Limits limits;
  };
  void begin_next(const Begin& when);
  // No further segment begins, and nothing goes out. What runs goes on to its end.
  void give_up(Reason reason = Reason::kNone);
  // Of a job that another core began in time: gives it up behind latest_start(), before release(), which it makes an
  // empty one.
  void forgo(int part);
  [[nodiscard]] bool given_up() const { return given_up_; }
  // Nothing of the job runs any more, and nothing will.
  [[nodiscard]] bool over() const { return noted_ && (given_up_ || job_.last_segment()); }

  // ---- publishing dispatcher, while running() is not 0
  [[nodiscard]] TableTime publish_at() const { return publish_at_; }
  [[nodiscard]] HostTime last_start() const;
  [[nodiscard]] HostTime last_end() const;
  [[nodiscard]] bool aborted() const { return gang_.aborted_at() != Gang::kNever; }
  JobRecord& record() { return record_; }
  void publish();
  void discard();
  // Lets the inputs go and classifies; the record is final.
  void close();
  // The stage may start its next job.
  void free();

  // ---- behind the run, when no dispatcher is left and running() is not 0
  // Stops the workers that still run the job for good: those threads never end, and this object must stay with them.
  // Before quit().
  struct Left {
    std::vector<int> parts;
    bool stopped = true;  // false: one goes on until it comes out of the kernel, or of a foreign call
  };
  Left stop_for_good();
  // Then makes the record final: the job began at `start` and had not come back at `now`.
  void abandon(const Left& left, TableTime start, TableTime now);

  // ---- threads
  void work(int part);  // body of a worker; returns after quit()
  void quit();
  [[nodiscard]] std::int64_t cpu_ns(int part) const { return workers_[static_cast<std::size_t>(part)]->total_cpu_ns; }

 private:
  struct Worker {
    Futex ticket;                            // the newest round that it may run
    Futex gave_up;                           // tag of the newest job its dispatcher stopped waiting for
    std::atomic<std::uint32_t> finished{0};  // the newest round that it has run
    std::atomic<bool> isolated{false};       // it lost its core during the job
    std::atomic<bool> forgone{false};        // it does none of the job
    Isolation isolation;
    std::atomic<HostTime> start{};  // in the current round; 0 before it begins
    HostTime end;
    ThreadCost cost;
    std::int64_t total_cpu_ns = 0;
  };

  void identify(const Job& job, JobRecord& record) const;
  const JobRecord* skip(const Job& job, Reason reason);
  [[nodiscard]] bool take();  // the stage, for a job
  void give_back() { shared_.state->taken.store(nullptr); }
  [[nodiscard]] const StagePlan::Variant& variant() const;
  [[nodiscard]] const JobLimits& limits() const { return variant().limits; }
  // nullptr where the job is one segment on the cores and no more.
  [[nodiscard]] const SegmentPlan* segment_plan(std::uint32_t segment) const;
  [[nodiscard]] bool on_unit() const;
  [[nodiscard]] static bool take(const SegmentPlan& segment, HostTime limit, Reason& refused);
  static void let_go(const SegmentPlan* segment);
  void start_round();
  void judge_segments();
  [[nodiscard]] bool leads_to_mode() const;
  void note_overrun();
  void note_deferred();
  void charge(const ThreadCost& cost);         // of workers
  void add_hand_over(const ThreadCost& cost);  // of dispatchers

  // Of the job in flight.
  [[nodiscard]] const StagePlan& plan() const { return *plans_[job_.mode]; }
  const SharedByRuns shared_;
  StageHost& host_;
  const std::vector<std::uint32_t> cores_;
  const std::vector<std::optional<StagePlan>> plans_;  // by mode
  std::vector<std::unique_ptr<Worker>> workers_;
  Gang gang_;

  std::atomic<std::uint32_t> round_{0};    // segments on the cores that were begun, in all jobs
  std::atomic<std::uint32_t> segment_{0};  // of the job in flight
  std::atomic<std::uint32_t> last_segment_{0};
  // Publisher, and whoever starts the job:
  bool noted_ = false;  // that the segment has ended
  bool given_up_ = false;
  bool overruns_ = false;  // as the control of the modes was told
  HostTime unit_begin_;
  HostTime unit_end_;  // or when the unit was last seen at work

  Futex running_;
  Futex decided_;                         // tag of the newest job that start() was called for
  std::atomic<std::uint32_t> inside_{0};  // workers that have not ended; 0 before remaining_ is
  Futex remaining_;
  Job job_;
  TableTime publish_at_;
  JobRecord record_;
  JobRecord skipped_;
};

}  // namespace takt::sched
