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
  CoreDispatcher(const RunPlan& plan, Boundary& boundary, Watchdog& watchdog, std::uint32_t core);

  [[nodiscard]] bool idle() const { return mine_.empty(); }
  // Walks every hyperperiod; drain() then waits for what is still running, up to `limit`. Both in the dispatcher's
  // thread.
  void run(const TableClock& clock);
  void drain(HostTime limit);

 private:
  // A worker of this core.
  struct Part {
    StageRun* stage;
    int part;
    Duration late = {};  // how long its core's machine stood still before its job's release, or since; zero within w
  };
  // A stage whose jobs this core publishes.
  struct Published {
    StageRun* stage;
    std::uint32_t last_follow = 0;  // tag of the last gang start that another dispatcher leads
  };

  // When the boundary before hyperperiod h is to be looked at: where it is decided, or where this core's first job
  // begins.
  [[nodiscard]] TableTime entry(std::uint64_t h) const;
  // Sleeps to `target`, waking before it for what is due, and for the deadlines of unfinished jobs.
  void sleep_to(TableTime target);
  void wake_at(TableTime instant);
  // What has ended, of the jobs that this core publishes; publishes or discards those that are over and whose time has
  // come; then begins the segments whose time has come. `wake` is the instant this wake-up was planned for.
  void conclude(TableTime wake);
  void look(StageRun& stage, TableTime wake);
  void advance(StageRun& stage, TableTime wake);
  void hand_over(StageRun& stage, TableTime wake);
  // This core woke that much later than planned: its workers have not had it either.
  void excuse(Duration stood_still);
  // Takes the core from workers whose time was over at `wake`.
  void isolate(TableTime wake);
  // When a worker's time is over: with its job's deadline, but who was released late, or kept from working, because
  // this core's machine stood still, is not punished for it unless the core is wanted for another job.
  [[nodiscard]] static TableTime over(const Part& mine) { return mine.stage->worker_deadline() + mine.late; }
  [[nodiscard]] static bool holds(const Part& mine);
  // Lets workers that lost the core run in its gaps, unless the core is `wanted` for a job.
  void share_gap(bool wanted);
  // For a segment of `stage` that begins: nobody whose time was over before may hold the core any longer.
  void make_room(StageRun& stage, TableTime begin);
  // The same for later segments of gangs, which begin at `wake` and are begun by another core's dispatcher.
  void make_room_for_segments(TableTime wake);
  void release(StageRun& stage, int part, const Job& job);
  // This core woke so late that the job would hold its stage, and the next one's place, for nothing.
  [[nodiscard]] bool too_late_for(const StageRun& stage, const Job& job) const;
  void start(const Job& job);
  // Notes when this core has to look at it.
  void note(const StageRun& stage, const Job& job);
  void lead(StageRun& stage, const Job& job);
  void follow(StageRun& stage, const Job& job);

  const RunPlan& plan_;
  Boundary& boundary_;
  Watchdog& watchdog_;
  const std::uint32_t core_;
  std::vector<std::vector<Start>> starts_;  // by mode
  Agenda agenda_;                           // publications and ends of slots
  std::vector<Part> mine_;                  // workers of this core
  std::vector<Published> published_;
  TableClock clock_;
  TableTime last_wake_;
};

}  // namespace takt::sched
