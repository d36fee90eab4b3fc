// Questions of the form "what if": one changed figure of a problem.
#pragma once

#include <string>

#include "scheduler/model/model.h"

namespace takt::sched {

// Applies one change:
//   STAGE.budget=+20% | -10% | 12ms | 800us   every budget of the stage
//   STAGE.rate=15Hz                           the only admissible rate
//   STAGE.variant=lite                        the only admissible variant
//   STAGE.cores=2                             only budgets for two cores
//   STAGE.slack=2ms
//   CHAIN.latency=+10% | 80ms                 a limit; also reaction, age_at_output, age_until_replaced
//   SENSOR.delay=+20% | 30ms                  the longest delay
//   CORE.reserve=30%
// kUsage says what was not understood and which names exist; the problem is then unchanged.
Status apply_what_if(Problem& problem, const std::string& change);

// Whether the problem has the stage, chain, sensor or core whose figure the change names: one mode of several may lack
// it.
bool has_target(const Problem& problem, const std::string& change);

// Leaves only budgets for `cores` cores in every variant that has one; the others are untouched.
void prefer_cores(Problem& problem, int cores);

}  // namespace takt::sched
