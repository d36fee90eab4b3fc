// Reasons why no table can exist, cheapest first. Each is a proof: it holds for every table of the combinations it was
// asked about, and a reader can check it with a pocket calculator.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scheduler/synthesis/table.h"

namespace takt::sched {

// What a stage may still choose: rate, variant and core count.
using Options = std::vector<std::vector<Choice>>;  // by stage, best first

// The first rule that shows that no table exists for any combination of `options`; "" when none does. Rules: chain
// against its limit, one stage against its period, the load of all cores, the partition of stages to home cores,
// window energy.
std::string refute(const Problem& problem, const Options& options);

}  // namespace takt::sched
