// What an admitted table says to another plan in a stage's place: the pipeline's side of exec::SwappableSession.
#pragma once

#include <cstddef>

#include "runtime/base/status.h"
#include "runtime/exec/swap.h"
#include "runtime/plan/plan.h"
#include "scheduler/model/model.h"

namespace takt::pipeline {

// The table with its starts and bindings, this stage's variant with the plan's budget and the memory of the exchange,
// judged by the validator that judges tables: slots, chains, memory. Memory of the exchange: what stays resident for
// the variant as declared, the new plan's weights beside it, and two regions as large as the larger arena. kGate names
// the rule, slot and figure that it breaks. Not for timed threads.
Status admits_plan(const sched::Problem& problem, const sched::Schedule& schedule, std::size_t stage,
                   const plan::Plan& plan, const exec::PlanBudget& budget);

}  // namespace takt::pipeline
