// Problems with copy engines, GPU partitions, mutexes, disparity limits and a phase lock, for the tests.
#pragma once

#include <algorithm>

#include "tests/scheduler/synthesis/problems.h"

namespace takt::sched::test {

inline Segment on_cores(Duration time, std::vector<std::uint32_t> mutexes = {}) {
  Segment out;
  out.time = time;
  out.mutexes = std::move(mutexes);
  return out;
}

inline Segment on_unit(std::uint32_t unit, Duration time, Duration guard = {}) {
  Segment out;
  out.unit = unit;
  out.time = time;
  out.guard = guard;
  return out;
}

inline Budget segmented(std::vector<Segment> segments, int cores = 1) {
  Budget out;
  out.cores = cores;
  for (const Segment& segment : segments) out.time += segment.time;
  out.segments = std::move(segments);
  return out;
}

inline Variant segmented_variant(const std::string& name, std::vector<Segment> segments) {
  Variant out;
  out.name = name;
  out.budgets = {segmented(std::move(segments))};
  return out;
}

// Units of gpu_board(): copies to the device and back, and a GPU.
inline constexpr std::uint32_t kToDevice = 0;
inline constexpr std::uint32_t kToHost = 1;
inline constexpr std::uint32_t kGpu = 2;

inline Board gpu_board(double reserve = 0.25) {
  Board board = two_cores(reserve);
  board.units = {{"h2d", UnitKind::kCopyEngine}, {"d2h", UnitKind::kCopyEngine}, {"gpu", UnitKind::kGpuPartition}};
  return board;
}

// perception() with camera and LiDAR on the GPU; both write the tracker's scratch memory under a mutex.
inline Problem gpu_perception() {
  Problem problem = perception();
  problem.name = "gpu perception";
  problem.board = gpu_board();
  problem.mutexes = {{"scratch"}};
  problem.stages[0].variants = {
      segmented_variant("gpu", {on_cores(microseconds(500)), on_unit(kToDevice, milliseconds(1)),
                                on_unit(kGpu, milliseconds(6), microseconds(500)), on_unit(kToHost, microseconds(300)),
                                on_cores(microseconds(700), {0})})};
  problem.stages[1].variants = {segmented_variant(
      "gpu",
      {on_cores(milliseconds(1)), on_unit(kToDevice, milliseconds(2)), on_unit(kGpu, milliseconds(15), milliseconds(1)),
       on_unit(kToHost, microseconds(500)), on_cores(milliseconds(1), {0})})};
  return problem;
}

// random_problem() on a board with units and mutexes: some stages get segments, arenas are shared, some budgets bear
// nothing beside them, some fusion stages get a disparity limit, some tables a phase lock.
inline Problem random_units(std::uint64_t seed, bool with_limits = true) {
  Problem problem = random_problem(seed, with_limits);
  std::mt19937_64 random(seed + 1'000'000);
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  problem.name = "random units " + std::to_string(seed);
  problem.board.units = {{"copy", UnitKind::kCopyEngine}, {"gpu0", UnitKind::kGpuPartition}};
  if (below(2) == 0) problem.board.units.push_back({"gpu1", UnitKind::kGpuPartition});
  problem.mutexes = {{"m"}, {"arena"}};
  for (Stage& stage : problem.stages) {
    for (Variant& variant : stage.variants) {
      if (below(3) == 0) {
        variant.arena = 1000;
        variant.arena_mutex = 1;
      }
      for (Budget& budget : variant.budgets) {
        if (below(8) == 0) budget.interference = below(2) == 0 ? Interference::kCores : Interference::kNone;
        if (below(2) == 0) continue;
        const Duration all = budget.time;
        const auto share = [&](std::int64_t percent) {
          return Duration{std::max<std::int64_t>(all.ns * percent / 100, 1000)};
        };
        std::vector<Segment> segments{on_cores(share(5 + below(20)))};
        const auto gpu = static_cast<std::uint32_t>(1 + below(problem.board.units.size() - 1));
        if (below(2) == 0) segments.push_back(on_unit(0, share(5 + below(10))));
        if (below(3) != 0) segments.push_back(on_unit(gpu, share(20 + below(60)), microseconds(below(800))));
        if (below(2) == 0) segments.push_back(on_unit(0, share(5)));
        segments.push_back(on_cores(share(5 + below(20)),
                                    below(2) == 0 ? std::vector<std::uint32_t>{0} : std::vector<std::uint32_t>{}));
        const Budget with = segmented(segments, budget.cores);
        budget.time = with.time;
        budget.segments = with.segments;
      }
    }
  }
  // Where chains of two sensors meet.
  for (std::uint32_t a = 0; a < problem.chains.size() && problem.disparities.empty(); ++a) {
    for (std::uint32_t b = 0; b < a && problem.disparities.empty(); ++b) {
      const Chain& one = problem.chains[a];
      const Chain& other = problem.chains[b];
      const auto meet =
          std::find_first_of(one.stages.begin(), one.stages.end(), other.stages.begin(), other.stages.end());
      if (one.sensor == other.sensor || meet == one.stages.end()) continue;
      problem.disparities = {{"meeting", *meet, {a, b}, problem.hyperperiod * (with_limits ? 1 + below(3) : 100)}};
    }
  }
  for (std::uint32_t s = 0; s < problem.sensors.size() && below(2) == 0; ++s) {
    Sensor& sensor = problem.sensors[s];
    if (!sensor.phase || sensor.period.ns < 8'000'000) continue;
    const bool read = std::any_of(problem.stages.begin(), problem.stages.end(), [s](const Stage& stage) {
      return std::any_of(stage.inputs.begin(), stage.inputs.end(),
                         [s](const Input& input) { return input.from_sensor && input.source == s; });
    });
    if (!read) continue;
    sensor.drift_ppm = static_cast<double>(1 + below(50));
    PhaseLock lock;
    lock.sensor = s;
    lock.filter = microseconds(20);
    lock.hold_over = milliseconds(500);
    lock.gap = largest_correction(lock, sensor, problem.hyperperiod) + microseconds(below(100));
    sensor.phase->jitter = std::max(sensor.phase->jitter, lock.gap);
    problem.phase_lock = lock;
    break;
  }
  return problem;
}

}  // namespace takt::sched::test
