// The proof side: re-checks a table from the problem alone and computes its exact bounds. Shares no code with
// scheduler/synthesis; only the definitions in scheduler/model are common.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/model/model.h"

namespace takt::sched {

struct ValidateOptions {
  bool limits = true;  // also refuse bounds above the limits of the chains
};

// Resources, common start of a gang, slot >= w + budget + p, slack, order and home cores of a stage's jobs,
// housekeeping reserve, 6 % idle time in every window of one second, precedence with clock error, bindings exact,
// recorded bounds equal to the walk, limits, memory. In ticks around the circle and again in rounded nanoseconds. kGate
// names the rule (choices, clock, jobs, windows, resources, slack, memory, idle, bindings, bounds, limits), slot and
// figure.
Status validate(const Problem& problem, const Schedule& schedule, const ValidateOptions& options = {});

// Exact bounds of the four quantities, each by its own walk over the exact bindings, outputs at slot ends, no skips
// (derivation: README.md of this folder). Expects a table whose structure validates.
ChainBound walk(const Problem& problem, const Schedule& schedule, std::uint32_t chain);

// The same when jobs may be skipped: skips[stage] consecutive jobs at most, anywhere, of all stages at once. A consumer
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

// The largest factor on all budgets (or on those of one stage) under which the table stays valid with its starts and
// bindings kept and all limits met; in millionths, rounded down, at most 1000. Below 1 for a table that breaks a limit;
// 0 when no factor helps.
double budget_scale(const Problem& problem, const Schedule& schedule);
double budget_scale(const Problem& problem, const Schedule& schedule, std::uint32_t stage);

}  // namespace takt::sched
