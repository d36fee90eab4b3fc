// The proof side: re-checks a table from the problem alone and computes its exact bounds. Shares no code with
// scheduler/synthesis; only the definitions in scheduler/model are common.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/model/model.h"

namespace takt::sched {

// What of a table is checked beside its structure.
struct ValidateOptions {
  bool limits = true;           // refuse bounds above the limits of chains and disparities
  bool exact_bindings = true;   // refuse a binding where a newer output is there as well
  bool recorded_bounds = true;  // refuse recorded bounds that the walk does not give
};

// Resources, common start of a gang, slot >= w + budget (+ p) wherever it begins, slack, order and home cores of a
// stage's jobs, order of a job's segments and the resource of each, units, guards, mutexes, what may not run beside a
// budget, the gap of a phase lock, housekeeping reserve spread behind every slot, 6 % idle time in every window of one
// second, precedence with clock error, bindings exact, recorded bounds equal to the walk, limits, memory. In ticks
// around the circle and again in rounded nanoseconds. kGate names the rule (choices, clock, jobs, segments, windows,
// resources, units, guard, mutexes, interference, gap, slack, reserve, memory, idle, bindings, bounds, limits), slot
// and figure.
Status validate(const Problem& problem, const Schedule& schedule, const ValidateOptions& options = {});

// Exact bounds of the four quantities, each by its own walk over the exact bindings, outputs at slot ends, no skips
// (derivation: README.md of this folder). Expects a table whose structure validates.
ChainBound walk(const Problem& problem, const Schedule& schedule, std::uint32_t chain);

// The largest difference of the stamps of samples that one job of the limit's stage brings together, over every sample
// that each latch may take. Exact for chains of different sensors, an upper bound for two latches of one sensor.
DisparityBound walk_disparity(const Problem& problem, const Schedule& schedule, std::size_t limit);

// walk() when jobs may be skipped: skips[stage] consecutive jobs at most, anywhere, of all stages at once. A consumer
// whose bound job was skipped uses the last one that was not, however old (a lost sample stretches a chain, it does not
// break it). Reaction and both ages are exact: the walk takes, for every job it visits, the placement that hurts most,
// and visits each stage once. Latency is an upper bound: the sample that hurts most may not come first in its output.
// Jobs per stage beyond what `skips` names (it may be shorter): none are skipped.
ChainBound walk_with_skips(const Problem& problem, const Schedule& schedule, std::uint32_t chain,
                           const std::vector<std::int64_t>& skips);

// How full a core is.
struct CoreLoad {
  std::string core;
  Duration busy;              // slots per hyperperiod
  double share = 0;           // of the hyperperiod
  double reserve = 0;         // declared
  Duration longest_busy;      // longest stretch without idle time
  double fullest_second = 0;  // share of the fullest window of one second
};
std::vector<CoreLoad> core_loads(const Problem& problem, const Schedule& schedule);

// The problem as it is while the table runs on without the reference of its phase lock: the stamps of that sensor may
// have drifted either way for as long as the hold-over lasts. Its walks are the bounds of the hold-over.
Problem holding_over(const Problem& problem);

// How full a unit is: slots, and the guards behind them.
struct UnitLoad {
  std::string unit;
  Duration busy;  // per hyperperiod, guards apart
  Duration guards;
  double share = 0;  // of the hyperperiod, guards included
};
std::vector<UnitLoad> unit_loads(const Problem& problem, const Schedule& schedule);

// The largest factors on budgets under which the table stays valid with its starts and bindings kept and all limits
// met; in millionths, rounded down, at most 1000. Below 1 for a table that breaks a limit; 0 when no factor helps, and
// for a table that breaks any other rule.
struct BudgetScale {
  double all = 0;              // on all budgets at once
  std::vector<double> stages;  // on those of one stage
};
BudgetScale budget_scale(const Problem& problem, const Schedule& schedule);

}  // namespace takt::sched
