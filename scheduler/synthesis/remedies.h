// What would make an infeasible or undecided problem feasible: single changes, each tried by itself.
#pragma once

#include <vector>

#include "scheduler/model/model.h"
#include "scheduler/model/remedy.h"
#include "scheduler/synthesis/synthesis.h"

namespace takt::sched {

// The largest budget of a stage, the smallest limit, the lower declared rate, the variant, the version for more cores,
// the residents that fit. Every one is verified: with it alone (and, where also memory is exceeded, with that put
// aside, which `words` say) synthesis finds a table; budgets and limits in steps of 0.1 ms. At most `most`, those that
// change least first. Deterministic, unless options.seconds, the time of all tries together, ends them.
std::vector<Remedy> remedies(const Problem& problem, const SynthesisOptions& options = {}, std::size_t most = 8);

}  // namespace takt::sched
