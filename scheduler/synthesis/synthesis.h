// Finds a table: rate, variant and core count per stage, home cores, starts (DESIGN section 5, "Synthesis").
#pragma once

#include <atomic>
#include <cstdint>

#include "scheduler/model/model.h"

namespace takt::sched {

struct SynthesisOptions {
  std::uint64_t seed = 1;
  // Candidate positions tried before the search gives up or stops improving. The same problem, seed and limit give the
  // same table on every machine.
  std::uint64_t node_limit = 200'000;
  // Limit in time as well, 0: none. An answer that it cut off depends on the machine and says so (Answer::cut_by_time).
  double seconds = 0;
  // Take the first table that meets all limits, as it is: what a scheduler without an objective would run.
  bool first_found = false;
  // Becomes true when the search is to end with what it has (Answer::cut_by_time, whose answer depends on the instant
  // as well); nullptr: never.
  const std::atomic<bool>* stop = nullptr;
};

// feasible: a table that meets every limit, with bounds. infeasible: a proof in words (lower_bounds.h). undecided: the
// limits are not met by the best table found, or none was found, and no rule proves that none exists; also a problem
// that check() refuses. Options are taken in the stage's order of preference; what had to be given up is in notes.
Answer synthesize(const Problem& problem, const SynthesisOptions& options = {});

// The largest factor on all budgets for which a new table with the same rates, variants and core counts is found: a
// lower bound in steps of 1 %, at most 16. 0 when not even the budgets as they are give a table, or none was found
// before the search was stopped.
double resynthesised_scale(const Problem& problem, const Schedule& schedule, const SynthesisOptions& options = {});

}  // namespace takt::sched
