// Virtual time: one sequencer steps from event to event of the table, and every job takes exactly its budget.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "scheduler/dispatch/boundary.h"
#include "scheduler/dispatch/run_plan.h"

namespace takt::sched {

// Walks the table; jobs run on their workers between their start and their slot end, however long that takes, but not
// for ever: a job that has not come back within `patience` is left behind, and its stage skips to the end. Every time
// in a record is a function of the table alone, or of the run that is reproduced: there every job repeats what its
// record says. Consumers get the inputs of their records, so that it does not matter that a late output goes out at its
// slot's end here.
class Sequencer {
 public:
  using Reproduce = std::function<const JobRecord*(std::uint32_t stage, std::uint64_t job)>;

  Sequencer(const RunPlan& plan, Boundary& boundary, const Reproduce& reproduce, Duration patience);

  // Body of the sequencer's thread.
  void run();
  // Afterwards: the end of the last slot.
  [[nodiscard]] TableTime end() const { return end_; }

 private:
  void start(Job job);
  // A segment of a job begins (not the first, with which the job does), or its slot ends.
  struct Due {
    TableTime at;
    bool begins = false;
    Job job;
  };
  void add(TableTime at, bool begins, const Job& job);
  // Everything that is due by then; at one instant ends come before beginnings.
  void come_to(TableTime now);
  void begin_segment(const Job& job);
  void end_segment(const Job& job);
  void conclude(StageRun& stage);
  [[nodiscard]] bool comes_back(StageRun& stage) const;

  const RunPlan& plan_;
  Boundary& boundary_;
  const Reproduce& reproduce_;
  const Duration patience_;
  TableTime end_{0};
  std::vector<std::vector<Start>> starts_;  // by mode
  std::vector<Due> due_;                    // by (instant, what, slot)
};

}  // namespace takt::sched
