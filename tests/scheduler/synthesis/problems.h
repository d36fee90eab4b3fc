// Scheduling problems for the tests: a small perception pipeline and random ones.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "scheduler/model/model.h"

namespace takt::sched::test {

inline Board two_cores(double reserve = 0.25) {
  Board board;
  board.name = "generic2";
  board.clock_error = microseconds(1);
  board.cores = {{"core0", 0, reserve, milliseconds(1), microseconds(500)},
                 {"core1", 1, 0, milliseconds(1), microseconds(500)}};
  return board;
}

inline Board one_core() {
  Board board = two_cores(0);
  board.cores.pop_back();
  return board;
}

inline Sensor free_sensor(const std::string& name, double hz, Duration delay_min, Duration delay_max) {
  Sensor sensor;
  sensor.name = name;
  sensor.period = {static_cast<std::int64_t>(1e9 / hz)};
  sensor.delay_min = delay_min;
  sensor.delay_max = delay_max;
  sensor.drift_ppm = 100;
  return sensor;
}

inline Sensor locked_sensor(const std::string& name, double hz, Duration offset, Duration jitter, Duration delay_min,
                            Duration delay_max) {
  Sensor sensor = free_sensor(name, hz, delay_min, delay_max);
  sensor.drift_ppm = 0;
  sensor.phase = Sensor::Phase{offset, jitter};
  return sensor;
}

inline Stage stage(const std::string& name, std::vector<std::int64_t> rates, std::vector<Variant> variants) {
  Stage out;
  out.name = name;
  out.rates = std::move(rates);
  out.variants = std::move(variants);
  return out;
}

inline Variant variant(const std::string& name, Duration one_core, Duration two_cores = {}) {
  Variant out;
  out.name = name;
  Budget budget;
  budget.time = one_core;
  out.budgets.push_back(budget);
  if (two_cores.ns > 0) {
    budget.cores = 2;
    budget.time = two_cores;
    out.budgets.push_back(budget);
  }
  return out;
}

inline Input from_sensor(const std::string& name, std::uint32_t sensor) {
  Input input;
  input.name = name;
  input.from_sensor = true;
  input.source = sensor;
  return input;
}

inline Input from_stage(const std::string& name, std::uint32_t source, bool feedback = false) {
  Input input;
  input.name = name;
  input.source = source;
  input.feedback = feedback;
  return input;
}

inline Chain chain(const std::string& name, std::uint32_t sensor, std::vector<std::uint32_t> stages,
                   std::optional<Duration> latency = std::nullopt, std::optional<Duration> reaction = std::nullopt) {
  Chain out;
  out.name = name;
  out.sensor = sensor;
  out.stages = std::move(stages);
  out.limits[0] = latency;
  out.limits[1] = reaction;
  return out;
}

// Camera 30 Hz, LiDAR 10 Hz, radar 20 Hz, fusion 10 Hz with its own tracks fed back; H = 100 ms.
inline Problem perception() {
  Problem problem;
  problem.name = "perception";
  problem.board = two_cores();
  problem.hyperperiod = milliseconds(100);
  problem.sensors = {free_sensor("camera", 30, milliseconds(10), milliseconds(14)),
                     free_sensor("lidar", 10, milliseconds(50), milliseconds(52)),
                     free_sensor("radar", 20, milliseconds(5), milliseconds(8))};
  Stage camera = stage("camera_detect", {3}, {variant("full", milliseconds(8), milliseconds(5))});
  camera.inputs = {from_sensor("image", 0)};
  Stage lidar = stage("lidar_detect", {1}, {variant("full", milliseconds(20), milliseconds(12))});
  lidar.inputs = {from_sensor("cloud", 1)};
  Stage radar = stage("radar_detect", {2}, {variant("full", milliseconds(2))});
  radar.inputs = {from_sensor("scan", 2)};
  Stage fusion = stage("fusion", {1}, {variant("full", milliseconds(3))});
  fusion.inputs = {from_stage("camera", 0), from_stage("lidar", 1), from_stage("radar", 2),
                   from_stage("tracks", 3, true)};
  problem.stages = {camera, lidar, radar, fusion};
  problem.chains = {chain("camera_fusion", 0, {0, 3}, milliseconds(150)),
                    chain("lidar_fusion", 1, {1, 3}, milliseconds(250)),
                    chain("radar_fusion", 2, {2, 3}, milliseconds(150))};
  return problem;
}

// One core, one sensor at 10 Hz without delay, one stage at the same rate: every bound can be computed by hand.
inline Problem single() {
  Problem problem;
  problem.name = "single";
  problem.board = one_core();
  problem.hyperperiod = milliseconds(100);
  problem.sensors = {free_sensor("s", 10, {}, {})};
  problem.sensors[0].drift_ppm = 0;
  Stage only = stage("a", {1}, {variant("full", microseconds(8500))});
  only.inputs = {from_sensor("in", 0)};
  problem.stages = {only};
  problem.chains = {chain("c", 0, {0}, milliseconds(200))};
  return problem;
}

// Sensors free or locked, one to three layers of stages, chains of all lengths. Loads between a fifth and nearly all of
// the cores, so that some are infeasible.
inline Problem random_problem(std::uint64_t seed, bool with_limits = true) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  Problem problem;
  problem.name = "random " + std::to_string(seed);
  problem.board.name = "random";
  problem.board.clock_error = microseconds(below(50));
  problem.board.switch_cost = microseconds(seed % 3 == 0 ? 150 : 0);
  const std::int64_t cores = 1 + below(3);
  for (std::int64_t c = 0; c < cores; ++c) {
    problem.board.cores.push_back({"core" + std::to_string(c), static_cast<int>(c),
                                   static_cast<double>(below(3)) * 0.15, microseconds(200 + below(800)),
                                   microseconds(200 + below(500))});
  }
  constexpr std::int64_t kHyperperiods[] = {100, 200, 300, 1700};
  problem.hyperperiod = milliseconds(kHyperperiods[below(4)]);
  const std::int64_t sensors = 1 + below(3);
  for (std::int64_t s = 0; s < sensors; ++s) {
    const Duration delay = microseconds(below(20'000));
    const Duration jitter = microseconds(below(3'000));
    const std::int64_t per_hyperperiod = 1 + below(6);
    const double hz = static_cast<double>(per_hyperperiod) / problem.hyperperiod.seconds();
    const std::string name = "sensor" + std::to_string(s);
    if (below(2) == 0) {
      problem.sensors.push_back(
          free_sensor(name, hz * (0.5 + static_cast<double>(below(1000)) / 1000.0), delay, delay + jitter));
      problem.sensors.back().drift_ppm = static_cast<double>(below(500));
    } else {
      problem.sensors.push_back(locked_sensor(name, hz,
                                              Duration{below(static_cast<std::uint64_t>(problem.hyperperiod.ns))},
                                              microseconds(below(2000)), delay, delay + jitter));
    }
  }
  const std::int64_t stages = 1 + below(6);
  const double load = 0.1 + static_cast<double>(below(70)) / 100.0;
  for (std::int64_t i = 0; i < stages; ++i) {
    std::vector<std::int64_t> rates{1 + below(6)};
    if (below(3) == 0 && rates[0] > 1) rates.push_back(1 + below(static_cast<std::uint64_t>(rates[0] - 1)));
    const double share = load * static_cast<double>(cores) / static_cast<double>(stages);
    const double ns = static_cast<double>(problem.hyperperiod.ns) * share / static_cast<double>(rates[0]);
    const Duration budget{std::max<std::int64_t>(100'000, static_cast<std::int64_t>(ns) - 1'500'000)};
    std::vector<Variant> variants{variant("full", budget, below(2) == 0 ? Duration{budget.ns * 6 / 10} : Duration{})};
    if (below(3) == 0) variants.push_back(variant("lite", {budget.ns / 2}));
    Stage next = stage("stage" + std::to_string(i), rates, variants);
    next.slack = microseconds(below(3) == 0 ? below(1000) : 0);
    if (i == 0 || below(2) == 0) {
      next.inputs.push_back(
          from_sensor("sensor", static_cast<std::uint32_t>(below(static_cast<std::uint64_t>(sensors)))));
    }
    for (std::int64_t producer = 0; producer < i; ++producer) {
      if (below(2) == 0 || (next.inputs.empty() && producer + 1 == i)) {
        next.inputs.push_back(from_stage("from" + std::to_string(producer), static_cast<std::uint32_t>(producer)));
      }
    }
    if (below(4) == 0) next.inputs.push_back(from_stage("own", static_cast<std::uint32_t>(i), true));
    problem.stages.push_back(next);
  }
  // A random path backwards from a random stage.
  for (std::int64_t c = 0; c < 1 + below(4); ++c) {
    std::vector<std::uint32_t> path{static_cast<std::uint32_t>(below(static_cast<std::uint64_t>(stages)))};
    std::uint32_t sensor = 0;
    for (;;) {
      const std::vector<Input>& inputs = problem.stages[path.front()].inputs;
      std::vector<Input> usable;
      for (const Input& input : inputs) {
        if (!input.feedback) usable.push_back(input);
      }
      const Input& input = usable[static_cast<std::size_t>(below(usable.size()))];
      if (input.from_sensor) {
        sensor = input.source;
        break;
      }
      path.insert(path.begin(), input.source);
    }
    Chain next = chain("chain" + std::to_string(c), sensor, path);
    if (with_limits) {
      const auto scale = static_cast<std::int64_t>(path.size()) + 2;
      if (below(2) == 0) next.limits[0] = Duration{problem.hyperperiod.ns * scale / (1 + below(4))};
      if (below(3) == 0) next.limits[1] = Duration{problem.hyperperiod.ns * scale / (1 + below(3))};
      if (below(3) == 0) next.limits[2] = Duration{problem.hyperperiod.ns * scale / (1 + below(3))};
      if (below(3) == 0) next.limits[3] = Duration{problem.hyperperiod.ns * scale / (1 + below(2))};
    }
    problem.chains.push_back(next);
  }
  return problem;
}

}  // namespace takt::sched::test
