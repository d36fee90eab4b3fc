// Problems that cannot be met, one kind after another, each for a reason that the generator knows.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "scheduler/model/model.h"
#include "tests/scheduler/synthesis/problems.h"

namespace takt::sched::test {

inline Problem infeasible_problem(std::uint64_t seed) {
  std::mt19937_64 random(seed * 77 + 5);
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  Problem problem = perception();
  const auto named = [&](const char* kind) {
    problem.name = std::string(kind) + " " + std::to_string(seed);
    return problem;
  };
  switch (seed % 7) {
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

}  // namespace takt::sched::test
