#include "pipeline/assembly/event_executor.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/memory/process.h"
#include "scheduler/dispatch/futex.h"
#include "scheduler/dispatch/table_clock.h"
#include "scheduler/dispatch/thread_team.h"

namespace takt::pipeline {
namespace {

constexpr int kPriority = 50;                 // as the workers of a table
constexpr Duration kLead = milliseconds(50);  // between "every thread is ready" and table time 0

std::chrono::steady_clock::time_point steady(HostTime t) {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(t.ns));
}

class Executor {
 public:
  Executor(const sched::Problem& problem, const sched::ModeTable& mode, ReadyQueue queue,
           const std::vector<sched::StageHost*>& hosts, const EventOptions& options,
           const std::function<void(std::size_t, const sched::JobRecord&)>& sink)
      : problem_(problem),
        mode_(mode),
        table_(mode.schedule),
        hosts_(hosts),
        options_(options),
        sink_(sink),
        queue_(std::move(queue)),
        assigned_(problem.board.cores.size()) {
    for (std::uint32_t s = 0; s < problem.stages.size(); ++s) {
      jobs_.push_back(std::make_unique<InFlight>(static_cast<int>(queue_.cores(s).size())));
      slot_of_.push_back(first_slot(s));
    }
  }

  // Before the threads run.
  void begin(HostTime origin) { clock_ = {.origin = origin}; }

  // The thread of a core.
  void run(std::uint32_t core) {
    std::unique_lock lock(mutex_);
    for (;;) {
      advance(core);
      if (const std::optional<Part> part = std::exchange(assigned_[core], std::nullopt)) {
        lock.unlock();
        const bool last = work(*part, core);
        lock.lock();
        if (last) queue_.complete(part->stage);
        continue;
      }
      if (queue_.over()) break;
      const std::int64_t next = queue_.next_release();
      if (next == ReadyQueue::kFar) {
        changed_.wait(lock);
      } else {
        changed_.wait_until(lock, steady(clock_.host({next})));
      }
    }
    changed_.notify_all();
  }

 private:
  struct Part {
    std::uint32_t stage = 0;
    int part = 0;
  };
  // The job of a stage that runs; its parts meet at the gang.
  struct InFlight {
    explicit InFlight(int parts) : gang(parts) {}
    sched::Job job;
    Duration period;
    sched::Gang gang;
    sched::JobRecord record;
    sched::Futex latched;  // 0: not yet, 1: it runs, 2: it does not
    std::atomic<int> left{0};
  };

  [[nodiscard]] std::uint32_t first_slot(std::uint32_t stage) const {
    std::uint32_t slot = 0;
    while (slot + 1 < table_.slots.size() && table_.slots[slot].stage != stage) ++slot;
    return slot;
  }

  // Under the lock: what is due is released, what may start is given to its cores.
  void advance(std::uint32_t core) {
    if (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed)) queue_.cut();
    for (const Release& dropped : queue_.release_until(clock_.table(host_now()).ns)) {
      sched::JobRecord record = record_of(dropped);
      record.nominal_start = dropped.at;
      record.slot_end = dropped.deadline;
      record.reason = sched::Reason::kPreviousRunning;
      sched::classify(record, {});
      sink_(core, record);
    }
    bool others = false;
    for (const Release& job : queue_.start_ready()) {
      InFlight& in_flight = *jobs_[job.stage];
      in_flight.record = record_of(job);
      in_flight.period = {job.deadline - job.at};
      in_flight.latched.store(0);
      const std::vector<std::uint32_t>& cores = queue_.cores(job.stage);
      in_flight.left = static_cast<int>(cores.size());
      for (std::size_t part = 0; part < cores.size(); ++part) {
        assigned_[cores[part]] = Part{job.stage, static_cast<int>(part)};
        others = others || cores[part] != core;
      }
    }
    if (others) changed_.notify_all();
  }

  [[nodiscard]] sched::JobRecord record_of(const Release& job) const {
    sched::JobRecord record;
    record.stage = job.stage;
    record.slot = slot_of_[job.stage];
    record.job = job.job;
    record.hyperperiod = static_cast<std::uint64_t>(job.at / table_.clock.hyperperiod.ns);
    record.variant = table_.choices[job.stage].variant;
    record.cores = static_cast<std::uint32_t>(queue_.cores(job.stage).size());
    return record;
  }

  // True for the part that ended last: the job is over.
  bool work(const Part& part, std::uint32_t core) {
    InFlight& in_flight = *jobs_[part.stage];
    if (part.part == 0) latch(part.stage, in_flight, core);
    const std::uint32_t latched = in_flight.latched.wait([](std::uint32_t value) { return value != 0; });
    if (latched == kRuns) hosts_[part.stage]->run(in_flight.job, part.part, in_flight.gang);
    if (in_flight.left.fetch_sub(1) != 1) return false;
    if (latched == kRuns) publish(part.stage, in_flight);
    sched::classify(in_flight.record, {in_flight.period, table_.choices[part.stage].budget.time});
    sink_(core, in_flight.record);
    return true;
  }

  void latch(std::uint32_t stage, InFlight& in_flight, std::uint32_t core) {
    sched::JobRecord& record = in_flight.record;
    const TableTime now = clock_.table(host_now());
    in_flight.job = {.slot = record.slot,
                     .stage = stage,
                     .number = record.job,
                     .hyperperiod = record.hyperperiod,
                     .nominal_start = now,
                     .slot_end = now + in_flight.period,
                     .variant = record.variant};
    for (std::size_t i = 0; i < mode_.reads[stage].size(); ++i) {
      if (mode_.reads[stage][i] == 0) in_flight.job.bound[i] = sched::Job::kNotRead;
    }
    record.nominal_start = now.ns;
    record.slot_end = in_flight.job.slot_end.ns;
    sched::StageHost& host = *hosts_[stage];
    // Never zero, which would mean without limit.
    const Duration patience = std::max(problem_.board.cores[core].wakeup_window, nanoseconds(1));
    const bool runs = host.latch(in_flight.job, patience, record);
    if (runs) {
      in_flight.gang.begin({});
      const HostTime start = host_now();
      in_flight.gang.started(start);
      record.actual_start = clock_.table(start).ns;
    } else {
      host.discard(in_flight.job);
      host.finish(in_flight.job, record);
    }
    in_flight.latched.store(runs ? kRuns : kRefused);
    in_flight.latched.wake_all();
  }

  void publish(std::uint32_t stage, InFlight& in_flight) {
    sched::JobRecord& record = in_flight.record;
    record.completion = clock_.table(host_now()).ns;
    hosts_[stage]->publish(in_flight.job, record);
    if (record.published != 0) record.publication = clock_.table(host_now()).ns;
    hosts_[stage]->finish(in_flight.job, record);
  }

  static constexpr std::uint32_t kRuns = 1, kRefused = 2;

  const sched::Problem& problem_;
  const sched::ModeTable& mode_;
  const sched::Schedule& table_;
  const std::vector<sched::StageHost*>& hosts_;
  const EventOptions& options_;
  const std::function<void(std::size_t, const sched::JobRecord&)>& sink_;
  sched::TableClock clock_;
  std::vector<std::uint32_t> slot_of_;           // by stage: the first of its slots, for the record
  std::vector<std::unique_ptr<InFlight>> jobs_;  // by stage; written under the lock while the stage does not run

  std::mutex mutex_;
  std::condition_variable changed_;
  ReadyQueue queue_;
  std::vector<std::optional<Part>> assigned_;  // by core
};

}  // namespace

Result<sched::DispatchResult> run_without_table(const sched::Problem& problem, const sched::ModeTable& mode,
                                                const std::vector<std::vector<std::int64_t>>& arrivals,
                                                const std::vector<sched::StageHost*>& hosts,
                                                const EventOptions& options,
                                                const std::function<void(std::size_t, const sched::JobRecord&)>& sink) {
  const sched::Schedule& table = mode.schedule;
  Executor executor(
      problem, mode,
      ReadyQueue(problem, table, options.way, releases(problem, table, options.way, options.hyperperiods, arrivals)),
      hosts, options, sink);
  sched::DispatchResult result;
  sched::ThreadTeam team;
  for (std::uint32_t core = 0; core < problem.board.cores.size(); ++core) {
    const sched::Core& of_board = problem.board.cores[core];
    TAKT_RETURN_IF_ERROR(team.add({.name = "events." + of_board.name, .cpu = of_board.cpu, .priority = kPriority},
                                  [&executor, core] { executor.run(core); }));
  }
  team.await_ready();
  team.report(result.rights);
  result.rights.memory_locked = memory::lock_memory().has_value();
  result.started = host_now() + kLead;
  executor.begin(result.started);
  team.release();
  team.join();
  if (result.rights.memory_locked) memory::unlock_memory();
  result.hyperperiods_run = options.hyperperiods;
  result.stopped = options.stop != nullptr && options.stop->load();
  result.core_busy.assign(problem.board.cores.size(), 0.0);
  return result;
}

}  // namespace takt::pipeline
