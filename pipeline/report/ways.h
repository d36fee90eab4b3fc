// Ways to schedule the stages of a pipeline, and what a chain comes to under each (baselines.h).
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/time.h"

namespace takt::pipeline {

enum class Way : std::uint8_t { kTable, kFifo, kEdf, kEpoch };
const char* name_of(Way way);
inline constexpr Way kWays[] = {Way::kTable, Way::kFifo, Way::kEdf, Way::kEpoch};
inline constexpr double kLoads[] = {1.0, 1.2, 2.0};

struct BaselineChain {
  Duration worst_latency;  // stamp to the first output that uses the sample
  Duration jitter;         // largest minus smallest distance of two outputs
  // Outputs with a new sample of the chain's sensor, and how many there should be: at the rate of its slowest stage.
  std::uint64_t outputs = 0, planned = 0;
  std::uint64_t misses = 0;  // planned ones that did not come, and samples above the latency limit (else the bound)
};
struct Baseline {
  Way way = Way::kTable;
  double load = 1;
  std::vector<BaselineChain> chains;  // by chain of the problem
};

}  // namespace takt::pipeline
