#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iostream>

#include "scheduler/analysis/validate.h"
#include "scheduler/synthesis/synthesis.h"
#include "tests/scheduler/analysis/simulation.h"
#include "tests/scheduler/synthesis/problems.h"

namespace takt::sched {
namespace {

// A table written by hand: tick 1 us exactly when H is a multiple of 1 ms and rates are 1, 2, 4, 5, ...
Slot slot(std::uint32_t stage, std::uint32_t job, std::vector<std::uint32_t> cores, Tick start_us, Tick end_us) {
  return {stage, job, std::move(cores), start_us, end_us};
}

TEST(Walk, OneStageByHand) {
  const Problem problem = test::single();
  Schedule schedule;
  schedule.clock = {milliseconds(100), 100'000};
  schedule.choices = {{1, 0, problem.stages[0].variants[0].budgets[0]}};
  schedule.slots = {slot(0, 0, {0}, 30'000, 40'010)};
  const ChainBound bound = walk(problem, schedule, 0);
  // Sensor of 100 ms without delay, any phase (period 100 ms + 1 ns): wait 100, slot 10.01, next sample 100.
  EXPECT_EQ(bound.bounds[0].ns, 110'010'000);
  EXPECT_EQ(bound.bounds[1].ns, 210'010'001);
  EXPECT_EQ(bound.bounds[2].ns, 110'010'001);
  EXPECT_EQ(bound.bounds[3].ns, 210'010'001);
  EXPECT_EQ(bound.terms, "s delay 0.000 ms + wait for the slot 100.000 ms + a 10.010 ms = 110.010 ms");
}

// Of a table that follows a sensor, the corrections at the boundaries on the way are a term like the others.
TEST(Walk, CorrectionsOfThePhaseAreInTheSum) {
  Problem problem = test::single();
  problem.phase_lock = {
      .sensor = 0, .gap = milliseconds(1), .filter = microseconds(50), .hold_over = milliseconds(500)};
  Schedule schedule;
  schedule.clock = {milliseconds(100), 100'000};
  schedule.choices = {{1, 0, problem.stages[0].variants[0].budgets[0]}};
  schedule.slots = {slot(0, 0, {0}, 30'000, 40'010)};
  const ChainBound bound = walk(problem, schedule, 0);
  EXPECT_EQ(bound.bounds[0].ns, 110'010'000 + 2 * 50'000);
  EXPECT_EQ(
      bound.terms,
      "s delay 0.000 ms + wait for the slot 100.000 ms + a 10.010 ms + corrections of the phase 0.100 ms = 110.110 "
      "ms");
  problem.sensors[0].phase.emplace().jitter = microseconds(50);
  const Answer answer = synthesize(problem, {});
  ASSERT_EQ(answer.verdict, Verdict::kFeasible) << answer.reason;
  EXPECT_EQ(answer.schedule->bounds[0].terms, walk(problem, *answer.schedule, 0).terms) << "found and checked alike";
}

TEST(Walk, FastSensorIsReadByASlowStage) {
  Problem problem = test::single();
  problem.sensors[0].period = milliseconds(10);
  problem.sensors[0].delay_max = milliseconds(4);
  Schedule schedule;
  schedule.clock = {milliseconds(100), 100'000};
  schedule.choices = {{1, 0, problem.stages[0].variants[0].budgets[0]}};
  schedule.slots = {slot(0, 0, {0}, 30'000, 40'010)};
  const ChainBound bound = walk(problem, schedule, 0);
  // The newest of ten samples is used: it waited at most one period. An event waits for the next use.
  EXPECT_EQ(bound.bounds[0].ns, 4'000'000 + 10'000'001 + 10'010'000);
  EXPECT_EQ(bound.bounds[1].ns, 4'000'000 + 10'000'001 + 100'000'000 + 10'010'000);
  EXPECT_EQ(bound.bounds[2].ns, bound.bounds[0].ns);
  EXPECT_EQ(bound.bounds[3].ns, bound.bounds[1].ns);
}

TEST(Walk, SlowSensorIsReadByAFastStage) {
  Problem problem = test::single();
  problem.stages[0].rates = {4};
  Schedule schedule;
  schedule.clock = {milliseconds(100), 100'000};
  schedule.choices = {{4, 0, problem.stages[0].variants[0].budgets[0]}};
  // Uneven starts: the largest gap is from 70 to 100.
  schedule.slots = {slot(0, 0, {0}, 0, 10'010), slot(0, 1, {0}, 20'000, 30'010), slot(0, 2, {0}, 45'000, 55'010),
                    slot(0, 3, {0}, 70'000, 80'010)};
  const ChainBound bound = walk(problem, schedule, 0);
  EXPECT_EQ(bound.bounds[0].ns, 30'000'000 + 10'010'000);  // first use
  EXPECT_EQ(bound.bounds[1].ns, 30'000'000 + 10'010'000 + 100'000'001);
  EXPECT_EQ(bound.bounds[2].ns, 100'000'001 + 10'010'000);  // repeated until the next sample
  EXPECT_EQ(bound.bounds[3].ns, 100'000'001 + 30'000'000 + 10'010'000);
}

// U(100 ms) -> I(33 1/3 ms) -> C(100 ms), the first figure of the notes on skips: maximum data age 153.3 ms without
// one.
TEST(Walk, ThreeRatesGiveTheAgeOfTheNotes) {
  Problem problem;
  problem.board.cores = {{"a", 0, 0, {}, {}}, {"b", 1, 0, {}, {}}, {"c", 2, 0, {}, {}}};
  problem.hyperperiod = milliseconds(100);
  problem.sensors = {test::locked_sensor("s", 10, {}, {}, {}, {})};
  Stage u = test::stage("U", {1}, {test::variant("full", milliseconds(9))});
  u.inputs = {test::from_sensor("in", 0)};
  Stage i = test::stage("I", {3}, {test::variant("full", milliseconds(9))});
  i.inputs = {test::from_stage("in", 0)};
  Stage c = test::stage("C", {1}, {test::variant("full", milliseconds(19))});
  c.inputs = {test::from_stage("in", 1)};
  problem.stages = {u, i, c};
  problem.chains = {test::chain("UIC", 0, {0, 1, 2})};
  Schedule schedule;
  schedule.clock = {milliseconds(100), 102'000};
  const auto ticks = [](double ms) { return static_cast<Tick>(ms * 1020.0); };
  for (const Stage& stage : problem.stages)
    schedule.choices.push_back({stage.rates[0], 0, stage.variants[0].budgets[0]});
  schedule.slots = {
      slot(0, 0, {0}, 0, ticks(10)), slot(1, 0, {1}, ticks(10), ticks(20)), slot(2, 0, {2}, 34'000, 34'000 + ticks(20)),
      slot(1, 1, {1}, 34'000 + ticks(10), 34'000 + ticks(20)), slot(1, 2, {1}, 68'000 + ticks(10), 68'000 + ticks(20))};
  schedule.bindings = {{1, 0, 0, 0, 0, 0}, {1, 1, 0, 0, 0, 0}, {1, 2, 0, 0, 0, 0}, {2, 0, 0, 1, 0, 0}};
  schedule.bounds = {walk(problem, schedule, 0)};
  const Status valid = validate(problem, schedule);
  EXPECT_TRUE(valid) << valid.error().message;
  const ChainBound& bound = schedule.bounds[0];
  EXPECT_EQ(bound.bounds[3].ns, 153'333'333);
  EXPECT_EQ(bound.bounds[1].ns, 153'333'333);  // maximum reaction time = maximum data age
  EXPECT_EQ(bound.bounds[0].ns, 53'333'333);
  EXPECT_EQ(bound.bounds[2].ns, 53'333'333);
  // One skipped job of I costs a whole period of U: there is no such term as one period of I.
  const ChainBound skipped = walk_with_skips(problem, schedule, 0, {0, 1, 0});
  EXPECT_EQ(skipped.bounds[3].ns, 253'333'333);
  EXPECT_EQ(skipped.bounds[1].ns, 253'333'333);
  const ChainBound none = walk_with_skips(problem, schedule, 0, {});
  EXPECT_EQ(none.bounds[3].ns, bound.bounds[3].ns);
}

TEST(Walk, LockedSensorThatArrivesTooLateIsUsedATurnLater) {
  Problem problem = test::single();
  problem.sensors[0] = test::locked_sensor("s", 10, {}, {}, milliseconds(5), milliseconds(8));
  Schedule schedule;
  schedule.clock = {milliseconds(100), 100'000};
  schedule.choices = {{1, 0, problem.stages[0].variants[0].budgets[0]}};
  schedule.slots = {slot(0, 0, {0}, 8'000, 18'010)};
  EXPECT_EQ(walk(problem, schedule, 0).bounds[0].ns, 18'010'000);  // a tie counts as arrived
  EXPECT_EQ(walk(problem, schedule, 0).bounds[1].ns, 118'010'000);
  // One microsecond earlier, the sample may just miss the latch.
  schedule.slots = {slot(0, 0, {0}, 7'999, 18'009)};
  EXPECT_EQ(walk(problem, schedule, 0).bounds[0].ns, 118'009'000);
  EXPECT_EQ(walk(problem, schedule, 0).bounds[1].ns, 218'009'000);
  // Before its earliest arrival it always comes from the turn before.
  schedule.slots = {slot(0, 0, {0}, 4'999, 15'009)};
  EXPECT_EQ(walk(problem, schedule, 0).bounds[0].ns, 115'009'000);
}

// Without skips and in steady state maximum reaction time and maximum data age are one figure (ECRTS 2023).
TEST(Walk, ReactionEqualsAgeUntilReplacedOnEveryTable) {
  int chains = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const Problem problem = test::random_problem(seed, false);
    const Answer answer = synthesize(problem, {seed, 500});
    if (!answer.schedule) continue;
    for (std::uint32_t c = 0; c < problem.chains.size(); ++c) {
      const ChainBound bound = walk(problem, *answer.schedule, c);
      EXPECT_EQ(bound.bounds[1].ns, bound.bounds[3].ns) << problem.name << " " << problem.chains[c].name;
      EXPECT_LE(bound.bounds[0].ns, bound.bounds[2].ns) << problem.name;
      EXPECT_LE(bound.bounds[2].ns, bound.bounds[3].ns) << problem.name;
      ++chains;
    }
  }
  EXPECT_GT(chains, 200);
}

// At least a million samples at random and adversarial phases: no bound is exceeded, and each is met to the nanosecond
// level, so the model loses nothing.
TEST(Walk, BoundsAreNeverExceededAndAreMet) {
  std::uint64_t samples = 0;
  double loosest = 1.0;
  int judged = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Problem problem = seed == 0 ? test::perception() : test::random_problem(seed, false);
    const Answer answer = synthesize(problem, {seed, 300});
    if (!answer.schedule) continue;
    for (std::uint32_t c = 0; c < problem.chains.size(); ++c) {
      const ChainBound bound = walk(problem, *answer.schedule, c);
      test::Simulation simulation(problem, *answer.schedule, c, seed * 100 + c);
      test::Simulation::Worst worst;
      for (int run = 0; run < 400; ++run) simulation.run(12, worst);
      samples += worst.samples;
      for (std::size_t q = 0; q < kQuantities; ++q) {
        const std::string where =
            problem.name + ", " + problem.chains[c].name + ", " + name_of(static_cast<Quantity>(q));
        EXPECT_LE(worst.ns[q], bound.bounds[q].ns) << where;
        EXPECT_GE(worst.ns[q], bound.bounds[q].ns - 10) << where << " " << bound.terms;
        loosest = std::min(loosest, static_cast<double>(worst.ns[q]) / static_cast<double>(bound.bounds[q].ns));
        ++judged;
      }
    }
  }
  std::cout << samples << " samples, " << judged << " bounds, loosest measured/bound " << loosest << "\n";
  EXPECT_GE(samples, 1'000'000u);
  EXPECT_GE(judged, 200);
}

// Published as soon as it is there, an output is never later than at its slot's end: the same bounds hold, and are met
// by jobs that take their whole budget.
TEST(Walk, BoundsHoldWhenJobsPublishAtCompletion) {
  std::uint64_t samples = 0;
  int judged = 0;
  int met = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Problem problem = seed == 0 ? test::perception() : test::random_problem(seed, false);
    const Answer answer = synthesize(problem, {seed, 300});
    if (!answer.schedule) continue;
    for (std::uint32_t c = 0; c < problem.chains.size(); ++c) {
      const ChainBound bound = walk(problem, *answer.schedule, c);
      test::Simulation simulation(problem, *answer.schedule, c, seed * 100 + c);
      simulation.publish_at_completion();
      test::Simulation::Worst worst;
      for (int run = 0; run < 400; ++run) simulation.run(12, worst);
      samples += worst.samples;
      for (std::size_t q = 0; q < kQuantities; ++q) {
        EXPECT_LE(worst.ns[q], bound.bounds[q].ns)
            << problem.name << ", " << problem.chains[c].name << ", " << name_of(static_cast<Quantity>(q));
        met += worst.ns[q] >= bound.bounds[q].ns - 10 ? 1 : 0;
        ++judged;
      }
    }
  }
  std::cout << samples << " samples, " << met << " of " << judged << " bounds met\n";
  EXPECT_GE(samples, 1'000'000u);
  EXPECT_GE(met * 10, judged * 9);
}

TEST(Skips, NoneLeavesTheBoundsAsTheyAre) {
  int chains = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const Problem problem = test::random_problem(seed, false);
    const Answer answer = synthesize(problem, {seed, 300});
    if (!answer.schedule) continue;
    for (std::uint32_t c = 0; c < problem.chains.size(); ++c) {
      const ChainBound bound = walk(problem, *answer.schedule, c);
      const ChainBound same = walk_with_skips(problem, *answer.schedule, c, {});
      for (const std::size_t q : {1u, 2u, 3u})
        EXPECT_EQ(same.bounds[q].ns, bound.bounds[q].ns) << problem.name << " " << q;
      EXPECT_GE(same.bounds[0].ns, bound.bounds[0].ns) << problem.name;
      ++chains;
    }
  }
  EXPECT_GT(chains, 150);
}

// Bursts of skipped jobs in every stage at once, at random places, under the same adversary: no bound is exceeded, and
// reaction and ages are met wherever enough places were tried.
TEST(Skips, BoundsAreNeverExceededAndAreMet) {
  std::uint64_t samples = 0;
  int judged = 0;
  int met = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Problem problem = seed == 0 ? test::perception() : test::random_problem(seed, false);
    const Answer answer = synthesize(problem, {seed, 300});
    if (!answer.schedule) continue;
    std::mt19937_64 random(seed);
    std::vector<std::int64_t> skips;
    for (std::size_t stage = 0; stage < problem.stages.size(); ++stage) {
      skips.push_back(static_cast<std::int64_t>(random() % 3));
    }
    for (std::uint32_t c = 0; c < problem.chains.size(); ++c) {
      const ChainBound bound = walk_with_skips(problem, *answer.schedule, c, skips);
      test::Simulation simulation(problem, *answer.schedule, c, seed * 100 + c);
      simulation.skip(skips);
      test::Simulation::Worst worst;
      for (int run = 0; run < 600; ++run) simulation.run(8, worst);
      samples += worst.samples;
      for (std::size_t q = 0; q < kQuantities; ++q) {
        EXPECT_LE(worst.ns[q], bound.bounds[q].ns)
            << problem.name << ", " << problem.chains[c].name << ", " << name_of(static_cast<Quantity>(q));
        if (q == 0) continue;
        met += worst.ns[q] >= bound.bounds[q].ns - 10 ? 1 : 0;
        ++judged;
      }
    }
  }
  std::cout << samples << " samples, " << met << " of " << judged << " bounds met\n";
  EXPECT_GE(samples, 1'000'000u);
  EXPECT_GE(met * 10, judged * 7);
}

}  // namespace
}  // namespace takt::sched
