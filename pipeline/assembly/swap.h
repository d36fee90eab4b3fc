// What admitted tables say to another plan in a stage's place: the pipeline's side of exec::SwappableSession.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/exec/swap.h"
#include "runtime/plan/plan.h"
#include "scheduler/analysis/modes.h"
#include "scheduler/model/model.h"

namespace takt::pipeline {

// The table with its starts and bindings, this variant of the stage with the plan's budget and the memory of the
// exchange, judged by the validator that judges tables: slots, chains, memory. The variant is one that the table's jobs
// run: chosen, or degraded to. Memory of the exchange: what stays resident for the variant as declared, the new plan's
// weights beside it, and two regions as large as the larger arena. A shorter budget than declared changes nothing.
// kGate names the rule, slot and figure that it breaks, kConfiguration what cannot be judged. Not for timed threads.
Status admits_plan(const sched::Problem& problem, const sched::Schedule& schedule, std::size_t stage,
                   std::uint32_t variant, const plan::Plan& plan, const exec::PlanBudget& budget);

// The same of every mode whose table runs the variant, by its name, then of every permitted change between modes, and
// of what all of them keep in memory at once: a run may change its mode at the boundary at which the plan is exchanged.
// `answers` by mode, feasible as a set. What is refused names the mode or the change.
Status admits_plan(const sched::ModeSet& set, const std::vector<sched::Answer>& answers, const std::string& stage,
                   const std::string& variant, const plan::Plan& plan, const exec::PlanBudget& budget);

}  // namespace takt::pipeline
