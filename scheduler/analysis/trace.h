// The walk on any trace: jobs that read at one instant and write at another, however they were scheduled. Definitions:
// immediate forward and backward job chains, augmented by the wait before and the use after (Becker 2017; Guenzel,
// Chen, Ueter et al., ECRTS 2023). The bounds of tables (validate.h) are the same walk with exact bindings and sensor
// terms; the baselines are what is known without a schedule.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/base/status.h"

namespace takt::sched {

// One task: job j reads at reads[j] and writes at writes[j]; both ascend, and writes[j] >= reads[j].
struct TraceTask {
  std::vector<std::int64_t> reads;
  std::vector<std::int64_t> writes;
};

// Same unit as the trace.
struct TraceBounds {
  std::int64_t reaction = 0;       // event just after a read of the first task -> end of the first reaction (MRT)
  std::int64_t latency = 0;        // the same from the read that takes it in
  std::int64_t age = 0;            // read of the source -> the next output replaces its last use (MDA)
  std::int64_t age_at_output = 0;  // read of the source -> output
};

// Maxima over all chains whose event (reaction, latency) or whose output's source read (ages) lies in [from, to): one
// hyperperiod after warm-up, in a trace long enough for the last of them to end. kConfiguration: an unordered trace, no
// task, or one that ends too early.
Result<TraceBounds> walk_trace(const std::vector<TraceTask>& chain, std::int64_t from, std::int64_t to);

// A chain known by periods and worst response times only.
struct BaselineTask {
  std::int64_t period = 0;
  std::int64_t response = 0;
  bool below_next = true;  // lower priority than the next task of the chain, or on another unit
};
// Davare 2007: sum of T + R. Duerr 2019: one period less where a producer outranks its consumer, reaction and age.
std::int64_t davare(const std::vector<BaselineTask>& chain);
std::int64_t duerr_reaction(const std::vector<BaselineTask>& chain);
std::int64_t duerr_age(const std::vector<BaselineTask>& chain);
// Kloda 2018: synchronous periodic tasks, by a walk over the releases of one hyperperiod. nullopt when periods have no
// practical common multiple.
std::optional<std::int64_t> kloda_reaction(const std::vector<BaselineTask>& chain);

}  // namespace takt::sched
