// Virtual time: one sequencer steps from event to event of the table, and every job takes exactly its budget.
#pragma once

#include "scheduler/dispatch/boundary.h"
#include "scheduler/dispatch/run_plan.h"

namespace takt::sched {

// Walks the table; jobs run on their workers between their start and their slot end, however long that takes. Every
// time in a record is a function of the table alone. Body of the sequencer's thread.
void run_lockstep(const RunPlan& plan, Boundary& boundary, std::uint64_t hyperperiods);

}  // namespace takt::sched
