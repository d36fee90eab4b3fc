// Problems that cannot be met, one kind after another, each for a reason that the generator knows.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>

#include "scheduler/model/model.h"
#include "tests/scheduler/synthesis/problems.h"
#include "tests/scheduler/synthesis/segments.h"

namespace takt::sched::test {

inline Problem infeasible_problem(std::uint64_t seed) {
  std::mt19937_64 random(seed * 77 + 5);
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  Problem problem = perception();
  const auto named = [&](const char* kind) {
    problem.name = std::string(kind) + " " + std::to_string(seed);
    return problem;
  };
  switch (seed % 11) {
    case 0: {  // slots end to end are longer than the limit
      Chain& chain = problem.chains[random() % 3];
      chain.limits[static_cast<std::size_t>(below(4))] = milliseconds(2 + below(8));
      return named("chain");
    }
    case 1: {  // one job is longer than its period
      problem.stages[0].variants = {variant("full", milliseconds(32 + below(60)))};
      problem.chains.clear();
      return named("period");
    }
    case 2: {  // all cores together have too little
      problem.stages[1].variants = {variant("full", milliseconds(90))};
      problem.stages[0].variants = {variant("full", milliseconds(20 + below(5)))};
      problem.stages[2].variants = {variant("full", milliseconds(8 + below(20)))};
      problem.chains.clear();
      return named("load");
    }
    case 3: {  // enough in total, but no division of the stages among the cores
      problem.board = two_cores(0);
      problem.board.cores.push_back({"core2", 2, 0, milliseconds(1), microseconds(500)});
      problem.board.cores.push_back({"core3", 3, 0, milliseconds(1), microseconds(500)});
      problem.stages.clear();
      problem.chains.clear();
      for (int i = 0; i < 5; ++i) {
        Stage each = stage("s" + std::to_string(i), {1}, {variant("full", milliseconds(47 + below(20)))});
        each.inputs = {from_sensor("in", static_cast<std::uint32_t>(below(3)))};
        problem.stages.push_back(each);
      }
      return named("division");
    }
    case 4: {  // limits force too much into one window
      problem.board = two_cores(0);
      problem.sensors.clear();
      problem.stages.clear();
      problem.chains.clear();
      for (std::uint32_t i = 0; i < 3; ++i) {
        const std::string number = std::to_string(i);
        problem.sensors.push_back(
            locked_sensor("s" + number, 10, milliseconds(10), {}, milliseconds(1), milliseconds(2)));
        Stage each = stage("t" + number, {1}, {variant("full", milliseconds(18 + below(5)))});
        each.inputs = {from_sensor("in", i)};
        problem.stages.push_back(each);
        problem.chains.push_back(chain("c" + number, i, {i}, std::nullopt, milliseconds(130)));
      }
      return named("window");
    }
    case 5: {  // every way to run has its own reason: too long for the chain, or too much for the cores
      problem.board = two_cores(0);
      problem.stages[1].rates = {2, 1};
      problem.stages[1].variants = {variant("full", milliseconds(60 + below(10)), milliseconds(48 + below(4))),
                                    variant("lite", milliseconds(58))};
      problem.stages[0].rates = {3};
      problem.stages[0].variants = {variant("full", milliseconds(26 + below(3)))};
      problem.stages[2].variants = {variant("full", milliseconds(25))};
      problem.chains = {chain("lidar_fusion", 1, {1, 3}, milliseconds(240), milliseconds(305))};
      return named("options");
    }
    case 7: {  // the GPU has too little time
      problem = gpu_perception();
      problem.chains.clear();
      problem.stages[1].variants = {segmented_variant(
          "gpu", {on_cores(milliseconds(1)), on_unit(kGpu, milliseconds(75 + below(8)), milliseconds(2)),
                  on_cores(milliseconds(1))})};
      return named("unit");
    }
    case 8: {  // one mutex is held for too long, by segments or by whole jobs
      problem.board = two_cores(0);
      problem.mutexes = {{"map"}};
      problem.chains.clear();
      for (const std::size_t i : {0u, 1u}) {
        problem.stages[i].variants = {variant("full", milliseconds(i == 0 ? 15 + below(3) : 52 + below(10)))};
        Variant& own = problem.stages[i].variants[0];
        own.arena = 1'000'000;
        if (below(2) == 0) own.arena_mutex = 0;
        if (!own.arena_mutex) own.budgets = {segmented({on_cores(own.budgets[0].time, {0})})};
      }
      return named("mutex");
    }
    case 9: {  // two sensors that know nothing of each other
      problem.disparities = {{"meeting", 3, {0, 1, 2}, milliseconds(30 + below(30))}};
      return named("disparity");
    }
    case 10: {  // the segments of one job, end to end, are longer than its period
      problem = gpu_perception();
      problem.chains.clear();
      problem.stages[0].variants = {
          segmented_variant("gpu", {on_cores(milliseconds(2)), on_unit(kGpu, milliseconds(18)),
                                    on_unit(kToHost, milliseconds(9 + below(4))), on_cores(milliseconds(2))})};
      return named("segments");
    }
    default: {  // what stays resident does not fit
      problem.board.memory = 1'000'000'000;
      for (Stage& each : problem.stages) {
        each.variants[0].resident = 260'000'000 + below(50'000'000);
        each.variants[0].arena = below(10'000'000);
      }
      return named("memory");
    }
  }
}

// Few stages that are in each other's way on one or two cores, every fourth problem with several jobs of a stage, every
// third with a reserve; each chain is limited in one of the quantities, far above what it needs.
inline Problem contended_problem(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  Problem problem;
  problem.name = "contended " + std::to_string(seed);
  problem.board = two_cores(0);
  for (Core& core : problem.board.cores) core.reserve = seed % 3 == 0 ? 0.2 : 0;
  const auto cores = 1 + below(2);
  if (cores == 1) problem.board.cores.pop_back();
  problem.hyperperiod = milliseconds(100);
  const auto stages = static_cast<std::uint32_t>(3 + below(4));
  const bool several = seed % 4 == 1;
  const std::int64_t load = 400 + 100 * below(4);  // thousandths
  std::vector<bool> read(stages, false);
  for (std::uint32_t i = 0; i < stages; ++i) {
    const std::int64_t rate = several ? 1 + below(3) : 1;
    const std::int64_t share = load * cores * (5 + below(11)) / (10 * stages * rate);  // 0.1 ms
    Stage next = stage("stage" + std::to_string(i), {rate}, {variant("full", microseconds(share * 100 + 100))});
    if (i < 2) {
      problem.sensors.push_back(free_sensor("sensor" + std::to_string(i), 10, {}, milliseconds(below(5))));
      next.inputs.push_back(from_sensor("sensor", i));
    } else {
      next.inputs.push_back(from_stage("from", static_cast<std::uint32_t>(below(i))));
      read[next.inputs[0].source] = true;
      const auto also = static_cast<std::uint32_t>(below(i));
      if (also != next.inputs[0].source) next.inputs.push_back(from_stage("also", also));
      read[also] = true;
    }
    // One stage on both cores.
    if (cores == 2 && i == 1 && seed % 5 == 2) next.variants[0].budgets[0].cores = 2;
    problem.stages.push_back(next);
  }
  // Every path to an output that nobody reads; four times what it would need alone, so that they compete.
  const std::size_t quantity = several && seed / 2 % 4 == 0 ? 1 : seed / 2 % 4;
  const std::function<void(std::vector<std::uint32_t>)> back = [&](const std::vector<std::uint32_t>& path) {
    for (const Input& input : problem.stages[path.front()].inputs) {
      if (!input.from_sensor) {
        std::vector<std::uint32_t> longer = path;
        longer.insert(longer.begin(), input.source);
        back(longer);
        continue;
      }
      if (problem.chains.size() == 8) return;
      Duration alone = milliseconds(quantity % 2 == 0 ? 100 : 200);
      for (const std::uint32_t each : path) {
        alone += problem.stages[each].variants[0].budgets[0].time + microseconds(1500);
      }
      problem.chains.push_back(
          chain("chain" + std::to_string(problem.chains.size()), input.source, path, std::nullopt, std::nullopt));
      problem.chains.back().limits[quantity] = alone * 4;
    }
  };
  for (std::uint32_t last = 0; last < stages; ++last) {
    if (!read[last]) back({last});
  }
  return problem;
}

}  // namespace takt::sched::test
