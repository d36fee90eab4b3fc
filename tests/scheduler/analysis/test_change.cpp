#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iostream>

#include "scheduler/analysis/change.h"
#include "scheduler/analysis/validate.h"
#include "scheduler/synthesis/synthesis.h"
#include "tests/scheduler/analysis/change_simulation.h"
#include "tests/scheduler/synthesis/problems.h"

namespace takt::sched {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// One stage at 10 Hz on one core, in [start, start + 10] ms.
Problem one_stage(const std::string& name) {
  Problem problem = test::single();
  problem.name = name;
  return problem;
}

Schedule at(const Problem& problem, Tick start_us) {
  Schedule schedule;
  schedule.clock = {milliseconds(100), 100'000};
  schedule.choices = {{1, 0, problem.stages[0].variants[0].budgets[0]}};
  schedule.slots = {{0, 0, {0}, start_us, start_us + 10'010}};
  schedule.bounds = {walk(problem, schedule, 0)};
  return schedule;
}

TEST(Change, AWrappingSlotNeedsADrain) {
  const Problem old_problem = one_stage("full");
  const Problem new_problem = one_stage("lite");
  const Schedule wraps = at(old_problem, 95'000);  // until 5.01 ms of the next hyperperiod
  const Schedule early = at(new_problem, 2'000);
  const Mode from{&old_problem, &wraps};
  const Mode to{&new_problem, &early};
  const Status status = validate_change(from, to);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kGate);
  EXPECT_THAT(status.error().message, AllOf(HasSubstr("from 'full' to 'lite'"), HasSubstr("ends 5.010 ms after it"),
                                            HasSubstr("a drain of at least 3.010 ms")));
  EXPECT_TRUE(validate_change(from, to, microseconds(3'010)));
  EXPECT_FALSE(validate_change(from, to, microseconds(3'009)));
  EXPECT_TRUE(validate_change(to, from));
  EXPECT_FALSE(validate_change(to, from, microseconds(-1)));
}

TEST(Change, TheSeamCanCostMoreThanEitherTable) {
  const Problem old_problem = one_stage("early");
  const Problem new_problem = one_stage("late");
  const Schedule early = at(old_problem, 10'000);
  const Schedule late = at(new_problem, 80'000);
  const Mode from{&old_problem, &early};
  const Mode to{&new_problem, &late};
  ASSERT_TRUE(validate_change(from, to));
  const Result<ChainBound> bound = walk_change(from, to, "c");
  ASSERT_TRUE(bound) << bound.error().message;
  // From the latch at -90 ms to the end at 90.01 ms of the first job of the new table; then the sensor's period.
  EXPECT_EQ(bound->bounds[1].ns, 180'010'000 + 100'000'001);
  EXPECT_EQ(bound->bounds[3].ns, 180'010'000 + 100'000'001);
  EXPECT_GT(bound->bounds[1], early.bounds[0].bounds[1]);
  // The other way round nothing is lost: 20 ms between two latches instead of 100.
  EXPECT_EQ(walk_change(to, from, "c")->bounds[1], early.bounds[0].bounds[1]);
  EXPECT_FALSE(walk_change(from, to, "unknown"));
  const Result<ChainBound> drained = walk_change(from, to, "c", milliseconds(30));
  EXPECT_EQ(drained->bounds[1].ns, 210'010'000 + 100'000'001);
}

// Into the same table nothing changes: the seam gives the bounds of the table.
TEST(Change, IntoTheSameTableIsNoChange) {
  int chains = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Problem problem = test::random_problem(seed, false);
    for (Sensor& sensor : problem.sensors) sensor.phase.reset();
    const Answer answer = synthesize(problem, {seed, 300});
    if (!answer.schedule) continue;
    const Mode mode{&problem, &*answer.schedule};
    EXPECT_TRUE(validate_change(mode, mode)) << problem.name;
    for (std::uint32_t c = 0; c < problem.chains.size(); ++c) {
      const Result<ChainBound> seam = walk_change(mode, mode, problem.chains[c].name);
      ASSERT_TRUE(seam) << seam.error().message;
      const ChainBound alone = walk(problem, *answer.schedule, c);
      for (const std::size_t q : {1u, 2u, 3u}) EXPECT_EQ(seam->bounds[q], alone.bounds[q]) << problem.name << " " << q;
      ++chains;
    }
  }
  EXPECT_GT(chains, 60);
}

// Random tables and what they become with smaller budgets or other rates, driven over the change at random and
// adversarial phases: no sample is above the bound across the seam, and the bounds of reaction and ages are met.
TEST(Change, NoSampleIsAboveTheBoundAcrossTheSeam) {
  std::uint64_t samples = 0;
  int changes = 0;
  int judged = 0;
  int met = 0;
  for (std::uint64_t seed = 0; seed < 90; ++seed) {
    Problem old_problem = test::random_problem(seed, false);
    for (Sensor& sensor : old_problem.sensors) sensor.phase.reset();
    Problem new_problem = old_problem;
    new_problem.name += " other";
    for (Stage& stage : new_problem.stages) {
      for (Variant& variant : stage.variants) {
        for (Budget& budget : variant.budgets) budget.time.ns = budget.time.ns * 3 / 5;
      }
      if (seed % 2 == 0) stage.rates.front() = std::max<std::int64_t>(1, stage.rates.front() / 2);
    }
    const Answer before = synthesize(old_problem, {seed, 300});
    const Answer after = synthesize(new_problem, {seed + 1, 300});
    if (!before.schedule || !after.schedule) continue;
    const Mode from{&old_problem, &*before.schedule};
    const Mode to{&new_problem, &*after.schedule};
    const Duration step{old_problem.hyperperiod.ns / 16};
    Duration drain{};
    while (!validate_change(from, to, drain) && drain < old_problem.hyperperiod) drain += step;
    if (!validate_change(from, to, drain)) continue;
    ++changes;
    for (const Chain& chain : old_problem.chains) {
      const Result<ChainBound> bound = walk_change(from, to, chain.name, drain);
      ASSERT_TRUE(bound) << bound.error().message;
      test::ChangeSimulation simulation(from, to, chain.name, drain, seed);
      test::ChangeSimulation::Worst worst;
      for (int run = 0; run < 600; ++run) simulation.run(worst);
      samples += worst.samples;
      for (std::size_t q = 0; q < kQuantities; ++q) {
        EXPECT_LE(worst.ns[q], bound->bounds[q].ns)
            << old_problem.name << ", " << chain.name << ", " << name_of(static_cast<Quantity>(q));
        if (q == 0) continue;
        met += worst.ns[q] >= bound->bounds[q].ns - 10 ? 1 : 0;
        ++judged;
      }
    }
  }
  std::cout << samples << " samples over " << changes << " changes, " << met << " of " << judged << " bounds met\n";
  EXPECT_GE(samples, 1'000'000u);
  EXPECT_GE(changes, 30);
  EXPECT_GE(met * 10, judged * 8);
}

}  // namespace
}  // namespace takt::sched
