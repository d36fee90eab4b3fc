// Gecode solves what takt solves: the optima must be the same, and no bound of takt may lie above an optimum of Gecode.
#include <gtest/gtest.h>
#include <cmath>
#include <functional>
#include <iostream>
#include <tuple>

#include "scheduler/analysis/validate.h"
#include "scheduler/synthesis/synthesis.h"
#include "tests/scheduler/gecode/gecode_models.h"
#include "tests/scheduler/shop/random_shop.h"
#include "tests/scheduler/shop/readers.h"
#include "tests/scheduler/synthesis/problems.h"
#include "tests/support/test_data.h"

namespace takt::sched {
namespace {

TEST(Gecode, SmallShopsHaveTheSameOptimum) {
  int infeasible = 0;
  int optimal = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const shop::Shop shop = shop::test::random_shop(seed);
    const shop::Outcome ours = shop::solve(shop);
    const auto theirs = test::ask_gecode<test::ShopModel>(shop, 20'000);
    ASSERT_TRUE(theirs.complete) << seed;
    if (theirs.best) {
      ASSERT_EQ(ours.proof, shop::Proof::kOptimal) << seed;
      EXPECT_EQ(ours.plan->objective, *theirs.best) << seed;
      ++optimal;
    } else {
      EXPECT_EQ(ours.proof, shop::Proof::kInfeasible) << seed;
      ++infeasible;
    }
  }
  std::cout << optimal << " optima and " << infeasible << " infeasible shops are the same\n";
  EXPECT_GT(optimal, 300);
  EXPECT_GT(infeasible, 20);
}

TEST(Gecode, PublishedShopsHaveTheSameOptimum) {
  TAKT_TEST_DATA_OR_SKIP(root, "scheduling");
  const std::filesystem::path folder = root;
  const auto compare = [&](const std::string& name, const shop::Shop& shop) {
    const auto theirs = test::ask_gecode<test::ShopModel>(shop, 240'000);
    ASSERT_TRUE(theirs.complete && theirs.best) << name << ": Gecode did not finish";
    const shop::Outcome ours = shop::solve(shop);
    ASSERT_EQ(ours.proof, shop::Proof::kOptimal) << name;
    EXPECT_EQ(ours.plan->objective, *theirs.best) << name;
    std::cout << name << ": " << *theirs.best << "\n";
  };
  for (const char* name : {"perc_c2_l1_r2_m2_s1", "perc_c4_l1_r4_m3_s1"}) {
    compare(name, shop::test::read_perception(folder / "perception_synth" / (std::string(name) + ".dzn")));
  }
  compare("ft06", shop::test::read_jsplib(folder / "jsplib" / "instances" / "ft06"));
  compare("la01", shop::test::read_jsplib(folder / "jsplib" / "instances" / "la01"));
}

// Stages that run once per hyperperiod, sensors triggered by the table at unknown phases: the latency of a chain is its
// length on the circle plus what its sensor adds, so that a model of a few lines says what the best table is.
Problem ring_problem(std::uint64_t seed, bool with_reserve, test::Ring& ring) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  Problem problem;
  problem.name = "ring " + std::to_string(seed) + (with_reserve ? " with a reserve" : "");
  problem.board = test::two_cores(0);
  for (Core& core : problem.board.cores) core.reserve = with_reserve ? 0.2 : 0;
  problem.board.clock_error = {};
  const int cores = 1 + static_cast<int>(below(2));
  if (cores == 1) problem.board.cores.pop_back();
  problem.hyperperiod = milliseconds(100);
  const auto stages = static_cast<std::uint32_t>(3 + below(4));
  const double load = 0.4 + 0.1 * static_cast<double>(below(5));
  for (std::uint32_t i = 0; i < stages; ++i) {
    const double share = load * cores * 100.0 / stages * (0.5 + 0.1 * static_cast<double>(below(11)));
    Stage next = test::stage("stage" + std::to_string(i), {1},
                             {test::variant("full", microseconds(static_cast<std::int64_t>(share * 10) * 100))});
    if (i < 2 || below(3) == 0) {
      problem.sensors.push_back(test::free_sensor("sensor" + std::to_string(i), 10, {}, milliseconds(below(5))));
      problem.sensors.back().drift_ppm = 0;
      next.inputs.push_back(test::from_sensor("sensor", static_cast<std::uint32_t>(problem.sensors.size() - 1)));
    } else {
      next.inputs.push_back(test::from_stage("from", static_cast<std::uint32_t>(below(i))));
      const auto other = static_cast<std::uint32_t>(below(i));
      if (other != next.inputs[0].source) next.inputs.push_back(test::from_stage("also", other));
    }
    problem.stages.push_back(next);
  }
  // Every path to a stage whose output nobody reads.
  std::vector<bool> read(stages, false);
  for (const Stage& stage : problem.stages) {
    for (const Input& input : stage.inputs) {
      if (!input.from_sensor) read[input.source] = true;
    }
  }
  const std::function<void(std::uint32_t, std::vector<std::uint32_t>)> back = [&](std::uint32_t stage,
                                                                                  std::vector<std::uint32_t> path) {
    path.insert(path.begin(), stage);
    for (const Input& input : problem.stages[stage].inputs) {
      if (!input.from_sensor) {
        back(input.source, path);
      } else if (problem.chains.size() < 8) {
        problem.chains.push_back(
            test::chain("chain" + std::to_string(problem.chains.size()), input.source, path, milliseconds(500)));
      }
    }
  };
  for (std::uint32_t stage = 0; stage < stages; ++stage) {
    if (!read[stage]) back(stage, {});
  }
  ring.cores = cores;
  return problem;
}

// Gecode's table as takt writes tables, with the exact slots of the definition.
Schedule to_schedule(const Problem& problem, const test::RingModel& solution, const test::Ring& ring,
                     std::int64_t step) {
  Schedule schedule;
  schedule.clock = {problem.hyperperiod, problem.hyperperiod.ns / 1000};
  const Tick scale = step / 1000;
  for (std::uint32_t stage = 0; stage < problem.stages.size(); ++stage) {
    const int i = static_cast<int>(stage);
    schedule.choices.push_back({1, 0, problem.stages[stage].variants[0].budgets[0]});
    const Tick start = solution.start(i) * scale;
    schedule.slots.push_back(
        {stage, 0, {static_cast<std::uint32_t>(solution.home(i))}, start, start + ring.lengths[stage] * scale});
    for (std::uint32_t input = 0; input < problem.stages[stage].inputs.size(); ++input) {
      const Input& from = problem.stages[stage].inputs[input];
      if (from.from_sensor) continue;
      const int published = solution.start(static_cast<int>(from.source)) + ring.lengths[from.source];
      std::int32_t shift = 0;
      while (published + shift * ring.turn > solution.start(i)) --shift;
      schedule.bindings.push_back({stage, 0, input, from.source, 0, shift});
    }
  }
  std::sort(schedule.slots.begin(), schedule.slots.end(),
            [](const Slot& a, const Slot& b) { return std::tie(a.start, a.stage) < std::tie(b.start, b.stage); });
  for (std::uint32_t c = 0; c < problem.chains.size(); ++c) schedule.bounds.push_back(walk(problem, schedule, c));
  return schedule;
}

TEST(Gecode, NoTableIsBetterThanItsAndNoBoundIsAboveIt) {
  int asked = 0;
  int equal = 0;
  int proved = 0;
  for (std::uint64_t at = 0; at < 72; ++at) {
    const std::uint64_t seed = at / 2;
    test::Ring ring;
    const Problem problem = ring_problem(seed, at % 2 == 1, ring);
    if (!check(problem)) continue;
    const Answer answer = synthesize(problem, {seed, 20'000});
    if (answer.verdict != Verdict::kFeasible) continue;
    ASSERT_TRUE(validate(problem, *answer.schedule)) << problem.name;
    // In steps of 5 us: slots, and what a reserve of a fifth keeps free behind them, are whole multiples, so no table
    // of finer steps is better.
    constexpr std::int64_t kStep = 5'000;
    ring.turn = static_cast<int>(problem.hyperperiod.ns / kStep);
    ring.room = static_cast<int>(std::floor(ring.turn * (1.0 - idle_share(problem.board.cores[0]))));
    for (const Stage& stage : problem.stages) {
      ring.lengths.push_back(
          static_cast<int>((stage.variants[0].budgets[0].time + milliseconds(1) + microseconds(500)).ns / kStep));
      // The validator's rule 'reserve': each slot is followed by its share.
      ring.taken.push_back(problem.board.cores[0].reserve > 0 ? ring.lengths.back() * 5 / 4 : ring.lengths.back());
    }
    for (const Chain& chain : problem.chains) {
      ring.chains.emplace_back(chain.stages.begin(), chain.stages.end());
      const Sensor& sensor = problem.sensors[chain.sensor];
      // The sample just missed its latch: a whole period, and the longest delay.
      ring.extras.push_back(static_cast<int>((problem.hyperperiod + sensor.delay_max).ns / kStep));
    }
    const auto theirs = test::ask_gecode<test::RingModel>(ring, 1'000);
    if (!theirs.complete || !theirs.best) continue;
    ++asked;
    // Neither side is believed: what Gecode allows must be a table, and as good as it says.
    const Schedule table = to_schedule(problem, *theirs.solution, ring, kStep);
    const Status valid = validate(problem, table);
    EXPECT_TRUE(valid) << problem.name << ": " << (valid ? "" : valid.error().message);
    std::int64_t longest = 0;
    for (const ChainBound& bound : table.bounds) longest = std::max(longest, bound.bounds[0].ns);
    EXPECT_EQ(longest, *theirs.best * kStep) << problem.name;
    const Level& level = answer.levels.front();
    const double optimum = static_cast<double>(*theirs.best) * static_cast<double>(kStep) / 500e6;
    const double tolerance = 2'000 / 500e6;  // two ticks: table and proof end less than one apart
    EXPECT_LE(level.bound, optimum + tolerance)
        << problem.name << ": a table is better than what takt calls impossible";
    EXPECT_GE(level.value, optimum - tolerance) << problem.name << ": takt's table is better than the best";
    equal += level.value <= optimum + tolerance ? 1 : 0;
    if (level.gap() < 1e-4) {
      ++proved;
      EXPECT_LE(level.value, optimum + tolerance) << problem.name << ": proved, and not the best";
    }
  }
  std::cout << asked << " tables: " << equal << " as good as the best, " << proved << " proved\n";
  EXPECT_GE(asked, 15);
  EXPECT_GE(equal * 10, asked * 8);
}

}  // namespace
}  // namespace takt::sched
