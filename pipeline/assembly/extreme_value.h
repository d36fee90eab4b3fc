// What a tail of measured times would look like beyond the largest one seen: peaks over a threshold, fitted by a
// generalised Pareto distribution (Coles, An Introduction to Statistical Modeling of Extreme Values, 2001, chapter 4).
// Only where the data bear it: four checks come first, and one that fails refuses the estimate. No figure of it enters
// a budget or a proof.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/time.h"

namespace takt::pipeline {

struct TailCheck {
  std::string name;      // "stationarity (KPSS)"
  double statistic = 0;  // passes when at most the critical value
  double critical = 0;
  [[nodiscard]] bool passed() const { return statistic <= critical; }
};

struct TailEstimate {
  std::vector<TailCheck> checks;
  std::string refused;  // in words; "" where the figures below stand
  Duration threshold;   // its 90th percentile
  double scale_ns = 0, shape = 0;
  // Exceeded once in so many jobs.
  Duration once_in_million, once_in_billion;
};

// Times in the order in which they were measured. Deterministic. At least 500, else refused.
TailEstimate estimate_tail(const std::vector<Duration>& times);

}  // namespace takt::pipeline
