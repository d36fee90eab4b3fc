// Virtual time: one sequencer steps from event to event of the table, and every job takes exactly its budget.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/dispatch/boundary.h"
#include "scheduler/dispatch/run_plan.h"

namespace takt::sched {

// Walks the table; jobs run on their workers between their start and their slot end, however long that takes. Every
// time in a record is a function of the table alone.
class Sequencer {
 public:
  Sequencer(const RunPlan& plan, Boundary& boundary, std::uint64_t hyperperiods)
      : plan_(plan), boundary_(boundary), hyperperiods_(hyperperiods), events_(events_of_table(plan.schedule)) {}

  // Body of the sequencer's thread.
  void run();

 private:
  void start(const Job& job);
  void conclude(const Job& job);

  const RunPlan& plan_;
  Boundary& boundary_;
  const std::uint64_t hyperperiods_;
  const std::vector<Event> events_;
};

}  // namespace takt::sched
