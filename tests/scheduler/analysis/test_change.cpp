#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/analysis/change.h"
#include "scheduler/analysis/validate.h"
#include "scheduler/synthesis/synthesis.h"
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
    problem.board.clock_error = {};
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

}  // namespace
}  // namespace takt::sched
