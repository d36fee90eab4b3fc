// Multi-rate pipelines of any size, for benches: layers of stages behind free-running sensors, every chain a path.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "scheduler/model/model.h"

namespace takt::sched::bench {

struct Size {
  std::uint32_t stages = 50;
  std::uint32_t chains = 50;
  std::uint32_t cores = 8;
  std::int64_t hyperperiods_of_100ms = 10;  // rates are 3, 2 and 1 per 100 ms
  double load = 0.8;                        // of what the cores may hold
};

inline Problem graph(const Size& size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  Problem problem;
  problem.name = "graph of " + std::to_string(size.stages) + " stages";
  problem.board.name = "bench";
  problem.board.clock_error = microseconds(1);
  double room = 0;
  for (std::uint32_t c = 0; c < size.cores; ++c) {
    problem.board.cores.push_back(
        {"core" + std::to_string(c), static_cast<int>(c), 0.06, microseconds(200), microseconds(200)});
    room += 1.0 - idle_share(problem.board.cores.back());
  }
  problem.hyperperiod = milliseconds(100 * size.hyperperiods_of_100ms);
  const std::uint32_t sensors = std::max(1U, size.stages / 5);
  for (std::uint32_t s = 0; s < sensors; ++s) {
    Sensor sensor;
    sensor.name = "sensor" + std::to_string(s);
    sensor.period = {1'000'000'000 / static_cast<std::int64_t>(10 * (1 + below(3)))};
    sensor.delay_min = milliseconds(3);
    sensor.delay_max = milliseconds(5);
    sensor.drift_ppm = 100;
    problem.sensors.push_back(sensor);
  }
  std::vector<double> shares;
  double sum = 0;
  for (std::uint32_t i = 0; i < size.stages; ++i) {
    shares.push_back(0.3 + static_cast<double>(below(1000)) / 1000.0);
    sum += shares.back();
  }
  for (std::uint32_t i = 0; i < size.stages; ++i) {
    Stage stage;
    stage.name = "stage" + std::to_string(i);
    const std::int64_t rate = size.hyperperiods_of_100ms * static_cast<std::int64_t>(1 + below(3));
    stage.rates = {rate};
    const double core_ns = size.load * room * static_cast<double>(problem.hyperperiod.ns) * shares[i] / sum;
    Budget budget;
    budget.time = {
        std::max<std::int64_t>(50'000, static_cast<std::int64_t>(core_ns / static_cast<double>(rate)) - 400'000)};
    stage.variants = {{"full", {budget}, 0, 0}};
    // The first fifth reads sensors; every other reads one or two earlier stages nearby.
    if (i < sensors) {
      stage.inputs.push_back({"in", true, i, false, {}});
    } else {
      const std::uint32_t near = std::max(1U, size.stages / 4);
      const std::uint32_t from = i > near ? i - near : 0;
      const auto first = static_cast<std::uint32_t>(from + below(i - from));
      stage.inputs.push_back({"a", false, first, false, {}});
      const auto second = static_cast<std::uint32_t>(from + below(i - from));
      if (second != first) stage.inputs.push_back({"b", false, second, false, {}});
    }
    problem.stages.push_back(stage);
  }
  for (std::uint32_t c = 0; c < size.chains; ++c) {
    Chain chain;
    chain.name = "chain" + std::to_string(c);
    std::vector<std::uint32_t> path{size.stages - 1 - c % size.stages};
    for (;;) {
      const std::vector<Input>& inputs = problem.stages[path.front()].inputs;
      const Input& input = inputs[below(inputs.size())];
      if (input.from_sensor) {
        chain.sensor = input.source;
        break;
      }
      path.insert(path.begin(), input.source);
    }
    chain.stages = path;
    chain.limits[0] = milliseconds(100 + 100 * static_cast<std::int64_t>(path.size()));
    problem.chains.push_back(chain);
  }
  return problem;
}

}  // namespace takt::sched::bench
