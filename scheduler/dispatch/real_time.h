// The dispatcher of one core on the real clock.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/dispatch/boundary.h"
#include "scheduler/dispatch/run_plan.h"
#include "scheduler/dispatch/table_clock.h"
#include "scheduler/dispatch/watchdog.h"

namespace takt::sched {

class CoreDispatcher {
 public:
  CoreDispatcher(const RunPlan& plan, Boundary& boundary, Watchdog& watchdog, std::uint64_t hyperperiods,
                 std::uint32_t core);

  [[nodiscard]] bool idle() const { return events_.empty(); }
  // Walks every hyperperiod; drain() then waits for what is still running, up to `limit`. Both in the dispatcher's
  // thread.
  void run(const TableClock& clock);
  void drain(HostTime limit);

 private:
  // A worker of this core.
  struct Part {
    StageRun* stage;
    int part;
  };

  // Sleeps to `target`, waking before it for the deadlines of unfinished jobs.
  void sleep_to(TableTime target);
  void wake_at(TableTime instant);
  // Publishes or discards the finished jobs whose time has come. `wake` is the instant this wake-up was planned for.
  void conclude(TableTime wake);
  // Takes the core from workers whose time was over at `wake`.
  void isolate(TableTime wake);
  // Lets workers that lost the core run in its gaps, unless the core is `wanted` for a job.
  void share_gap(bool wanted);
  void release(StageRun& stage, int part);
  void start(const Job& job);
  void lead(StageRun& stage, const Job& job);
  void follow(StageRun& stage, const Job& job);

  const RunPlan& plan_;
  Boundary& boundary_;
  Watchdog& watchdog_;
  const std::uint64_t hyperperiods_;
  const std::uint32_t core_;
  const std::vector<Event> events_;
  std::vector<Part> mine_;                  // workers of this core
  std::vector<StageRun*> published_;        // stages that this dispatcher publishes
  std::vector<std::uint32_t> last_follow_;  // by stage: tag of the last gang start that another dispatcher leads
  TableClock clock_;
  Duration offset_;  // of this hyperperiod, by corrections of the phase
  TableTime last_wake_;
};

}  // namespace takt::sched
