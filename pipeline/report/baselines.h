// The stages of a run under other ways to schedule them, simulated with the times that the run recorded: what the table
// is worth beside them.
//
//   table   the admitted table: starts never move, outputs at the end of their slots, unfinished jobs lose their core
//   at
//           the end of slot and slack and go on in its gaps
//   fifo    event-driven: a stage is released by each sample of its first sensor (by its period where it takes no
//   sensor
//           or not every sample), and runs to completion on its home cores in the order of releases; outputs at
//           completion
//   edf     the same in the order of deadlines: release + the stage's period
//   epoch   epochs of the fastest stage's period; all jobs of an epoch begin with it, in the order of their inputs, and
//   a
//           barrier ends it: an epoch that is not over at its end makes the next ones fall out
//
// Samples come as the rig's model says, with its longest delay. Each job takes what the run recorded for it (in
// lockstep: the profile's high-water mark, or the budget), times the load.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/report/run_data.h"

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

Baseline simulate(const RunData& run, Way way, double load);
// Every way at every load, loads in the outer order.
std::vector<Baseline> baselines(const RunData& run);

}  // namespace takt::pipeline
