#include "scheduler/synthesis/synthesis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <chrono>
#include <iostream>

#include "scheduler/analysis/validate.h"
#include "scheduler/model/what_if.h"
#include "scheduler/synthesis/timeline.h"
#include "tests/scheduler/synthesis/problems.h"

namespace takt::sched {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(TimelineFit, FindsTheFirstGapAroundTheCircle) {
  Timeline line(100);
  EXPECT_EQ(line.first_fit(250, 100), 250);
  EXPECT_EQ(line.first_fit(0, 101), std::nullopt);
  line.insert(10, 20, 0);
  line.insert(90, 15, 1);  // wraps to 5
  EXPECT_EQ(line.first_fit(0, 5), 5);
  EXPECT_EQ(line.first_fit(0, 6), 30);
  EXPECT_EQ(line.first_fit(-4, 5), 5);
  EXPECT_EQ(line.first_fit(95, 5), 105);
  EXPECT_EQ(line.first_fit(80, 20), 130);
  EXPECT_EQ(line.first_fit(0, 60), 30);
  EXPECT_EQ(line.first_fit(0, 61), std::nullopt);
  line.erase(1);
  EXPECT_EQ(line.first_fit(30, 80), 30);
}

TEST(Synthesis, ThePerceptionPipelineFits) {
  const Problem problem = test::perception();
  const Answer answer = synthesize(problem);
  ASSERT_EQ(answer.verdict, Verdict::kFeasible) << answer.reason;
  EXPECT_THAT(answer.notes, IsEmpty());
  EXPECT_EQ(answer.schedule->slots.size(), 3u + 1 + 2 + 1);
  const Status valid = validate(problem, *answer.schedule);
  EXPECT_TRUE(valid) << valid.error().message;
}

TEST(Synthesis, ThirtyTwentyTenHertzAreExactlyEven) {
  Problem problem = test::perception();
  for (Stage& stage : problem.stages) stage.variants = {test::variant("full", milliseconds(2))};
  problem.board.cores[0].reserve = 0;
  const Answer answer = synthesize(problem);
  ASSERT_EQ(answer.verdict, Verdict::kFeasible) << answer.reason;
  // Distances of whole thirds and halves of the hyperperiod, not of 33 or 34 ms.
  for (const std::uint32_t stage : {0u, 2u}) {
    std::vector<Tick> starts;
    for (const Slot& slot : answer.schedule->slots) {
      if (slot.stage == stage) starts.push_back(slot.start);
    }
    const Tick period = answer.schedule->clock.ticks / answer.schedule->choices[stage].rate;
    for (std::size_t k = 1; k < starts.size(); ++k) EXPECT_EQ(starts[k] - starts[k - 1], period) << stage;
  }
}

TEST(Synthesis, SameInputSameTable) {
  for (const std::uint64_t seed : {3u, 4u, 5u, 6u}) {
    const Problem problem = test::random_problem(seed);
    const Answer first = synthesize(problem, {7, 20'000});
    const Answer second = synthesize(problem, {7, 20'000});
    EXPECT_EQ(first.verdict, second.verdict);
    EXPECT_EQ(first.reason, second.reason);
    ASSERT_EQ(first.schedule.has_value(), second.schedule.has_value());
    if (first.schedule) {
      EXPECT_EQ(first.schedule->hash(), second.schedule->hash());
    }
  }
}

TEST(Synthesis, EveryTableOfRandomProblemsValidates) {
  int feasible = 0;
  int infeasible = 0;
  int undecided = 0;
  for (std::uint64_t seed = 0; seed < 250; ++seed) {
    const Problem problem = test::random_problem(seed);
    ASSERT_TRUE(check(problem)) << problem.name << ": " << check(problem).error().message;
    const Answer answer = synthesize(problem, {seed, 6'000});
    feasible += answer.verdict == Verdict::kFeasible;
    infeasible += answer.verdict == Verdict::kInfeasible;
    undecided += answer.verdict == Verdict::kUndecided;
    EXPECT_EQ(answer.verdict == Verdict::kFeasible, answer.reason.empty()) << problem.name;
    EXPECT_FALSE(answer.verdict == Verdict::kInfeasible && answer.schedule) << problem.name;
    EXPECT_FALSE(answer.verdict == Verdict::kFeasible && !answer.schedule) << problem.name;
    if (!answer.schedule) continue;
    ValidateOptions options;
    options.limits = answer.verdict == Verdict::kFeasible;
    const Status valid = validate(problem, *answer.schedule, options);
    EXPECT_TRUE(valid) << problem.name << ": " << valid.error().message;
    // An undecided table breaks a limit, otherwise it would be an answer.
    if (answer.verdict == Verdict::kUndecided) {
      EXPECT_FALSE(validate(problem, *answer.schedule)) << problem.name;
    }
  }
  std::cout << feasible << " feasible, " << infeasible << " infeasible, " << undecided << " undecided\n";
  EXPECT_GT(feasible, 150);
  EXPECT_GT(infeasible, 10);
}

// ---- choices ---------------------------------------------------------------------------------------------------

TEST(Synthesis, TakesTheCheaperVariantOnlyWhenItMust) {
  Problem problem = test::perception();
  problem.stages[1].variants.push_back(test::variant("lite", milliseconds(5)));
  Answer answer = synthesize(problem);
  ASSERT_EQ(answer.verdict, Verdict::kFeasible) << answer.reason;
  EXPECT_EQ(answer.schedule->choices[1].variant, 0u);
  problem.stages[1].variants[0] = test::variant("full", milliseconds(120));
  answer = synthesize(problem);
  ASSERT_EQ(answer.verdict, Verdict::kFeasible) << answer.reason;
  EXPECT_EQ(answer.schedule->choices[1].variant, 1u);
  EXPECT_THAT(answer.notes, ElementsAre("stage 'lidar_detect' runs with variant 'lite' instead of 'full'",
                                        HasSubstr("lidar_detect (full) 121.500 ms")));
}

TEST(Synthesis, TakesTheLowerRateOnlyWhenItMust) {
  Problem problem = test::perception();
  problem.stages[0].rates = {3, 1};
  problem.stages[0].variants = {test::variant("full", milliseconds(40))};
  const Answer answer = synthesize(problem);
  ASSERT_EQ(answer.verdict, Verdict::kFeasible) << answer.reason;
  EXPECT_EQ(answer.schedule->choices[0].rate, 1);
  EXPECT_THAT(answer.notes, ElementsAre("stage 'camera_detect' runs with 10 Hz instead of 30 Hz",
                                        HasSubstr("not possible: stage 'camera_detect': one slot")));
}

TEST(Synthesis, UsesTwoCoresWithOneCommonStartWhenOneIsTooSlow) {
  Problem problem = test::perception();
  // 52 + 100 + slots: one core gives 52 + 100.01 + 41.5 + 4.5.
  problem.stages[1].variants = {test::variant("full", milliseconds(40), milliseconds(22))};
  problem.chains[1].limits[0] = milliseconds(190);
  const Answer answer = synthesize(problem);
  ASSERT_EQ(answer.verdict, Verdict::kFeasible) << answer.reason;
  EXPECT_EQ(answer.schedule->choices[1].budget.cores, 2);
  for (const Slot& slot : answer.schedule->slots) {
    if (slot.stage == 1) {
      EXPECT_THAT(slot.cores, ElementsAre(0, 1));
    }
  }
  EXPECT_THAT(answer.notes, ElementsAre("stage 'lidar_detect' runs with 2 cores instead of 1",
                                        HasSubstr("not possible: chain 'lidar_fusion'")));
  EXPECT_TRUE(validate(problem, *answer.schedule));
}

TEST(Synthesis, KeepsTheReserveEvenWhenTheCoreIsFull) {
  Problem problem = test::single();
  problem.board.cores[0].reserve = 0.4;
  problem.stages[0].rates = {4};
  problem.stages[0].variants = {test::variant("full", microseconds(13'400))};  // 4 x 14.9 ms of 60
  problem.chains[0].limits[0] = milliseconds(150);
  Answer answer = synthesize(problem);
  ASSERT_EQ(answer.verdict, Verdict::kFeasible) << answer.reason;
  // Spread: after each slot of 14.9 ms its share of 9.9 ms stays free.
  EXPECT_LE(core_loads(problem, *answer.schedule)[0].longest_busy, microseconds(14'910));
  problem.stages[0].variants = {test::variant("full", microseconds(13'600))};  // 4 x 15.1 ms
  answer = synthesize(problem);
  EXPECT_EQ(answer.verdict, Verdict::kInfeasible);
}

TEST(Synthesis, LockedSensorIsReadRightAfterItsLatestArrival) {
  Problem problem = test::single();
  problem.sensors[0] =
      test::locked_sensor("s", 10, milliseconds(30), milliseconds(1), milliseconds(5), milliseconds(9));
  const Answer answer = synthesize(problem);
  ASSERT_EQ(answer.verdict, Verdict::kFeasible) << answer.reason;
  // Latest arrival 30 + 1 + 9; the slot takes 10 ms; the stamp may be as early as 30.
  EXPECT_NEAR(answer.schedule->bounds[0].bounds[0].ms(), 20.0, 0.01);
  EXPECT_NEAR(Duration{answer.schedule->clock.start_at(0, answer.schedule->slots[0].start).ns}.ms(), 40.0, 0.01);
}

// ---- why not ---------------------------------------------------------------------------------------------------

TEST(WhyNot, ChainLongerThanItsLimit) {
  Problem problem = test::perception();
  problem.chains[1].limits[0] = milliseconds(150);
  const Answer answer = synthesize(problem);
  EXPECT_EQ(answer.verdict, Verdict::kInfeasible);
  EXPECT_FALSE(answer.schedule);
  // delay 52 + distance 100 + 13.5 (two cores) + 4.5
  EXPECT_THAT(answer.reason, AllOf(HasSubstr("chain 'lidar_fusion': latency cannot be below 170.000 ms"),
                                   HasSubstr("the limit is 150.000 ms: 20.000 ms too much"),
                                   HasSubstr("the longest is 'lidar_detect'")));
}

TEST(WhyNot, EveryQuantityHasItsOwnLowerBound) {
  for (const auto& [quantity, least] :
       std::vector<std::pair<std::size_t, double>>{{0, 110.0}, {1, 210.0}, {2, 110.0}, {3, 210.0}}) {
    Problem problem = test::single();
    problem.chains[0].limits[0].reset();
    problem.chains[0].limits[quantity] = Duration{static_cast<std::int64_t>((least - 0.01) * 1e6)};
    EXPECT_EQ(synthesize(problem).verdict, Verdict::kInfeasible) << quantity;
    problem.chains[0].limits[quantity] = Duration{static_cast<std::int64_t>((least + 0.01) * 1e6)};
    EXPECT_EQ(synthesize(problem).verdict, Verdict::kFeasible) << quantity;
  }
}

TEST(WhyNot, StageLongerThanItsPeriod) {
  Problem problem = test::perception();
  problem.chains.clear();
  problem.stages[0].variants = {test::variant("full", milliseconds(33))};
  const Answer answer = synthesize(problem);
  EXPECT_EQ(answer.verdict, Verdict::kInfeasible);
  EXPECT_THAT(answer.reason, AllOf(HasSubstr("stage 'camera_detect': one slot of camera_detect takes 34.500 ms"),
                                   HasSubstr("its period of 33.333 ms"), HasSubstr("3.167 ms too much"),
                                   HasSubstr("declare a lower rate")));
}

TEST(WhyNot, CoresOverloaded) {
  Problem problem = test::perception();
  problem.chains.clear();
  problem.stages[0].variants = {test::variant("full", milliseconds(25))};
  problem.stages[1].variants = {test::variant("full", milliseconds(70))};
  problem.stages[2].variants = {test::variant("full", milliseconds(20))};
  const Answer answer = synthesize(problem);
  EXPECT_EQ(answer.verdict, Verdict::kInfeasible);
  // 3 x 26.5 + 71.5 + 2 x 21.5 + 4.5 = 198.5 against 75 + 94
  EXPECT_THAT(answer.reason, AllOf(HasSubstr("need at least 198.500 ms"), HasSubstr("camera_detect 3 x 26.500 ms"),
                                   HasSubstr("have 169.000 ms"), HasSubstr("29.500 ms too much")));
}

TEST(WhyNot, SlackLeavesNoRoom) {
  Problem problem = test::single();
  problem.chains.clear();
  problem.stages[0].rates = {2};
  problem.stages[0].slack = milliseconds(41);
  const Answer answer = synthesize(problem);
  EXPECT_EQ(answer.verdict, Verdict::kInfeasible);
  EXPECT_THAT(answer.reason, AllOf(HasSubstr("need at least 102.000 ms"), HasSubstr("82.000 ms of slack"),
                                   HasSubstr("2.000 ms too much")));
}

TEST(WhyNot, StagesCannotBeDivided) {
  Problem problem = test::single();
  problem.board = test::two_cores(0);
  Stage other = problem.stages[0];
  problem.chains.clear();
  problem.stages.clear();
  for (const char* name : {"a", "b", "c"}) {
    other.name = name;
    other.variants = {test::variant("full", microseconds(58'500))};
    problem.stages.push_back(other);
  }
  const Answer answer = synthesize(problem);
  EXPECT_EQ(answer.verdict, Verdict::kInfeasible);
  EXPECT_THAT(answer.reason, AllOf(HasSubstr("no division of the stages"), HasSubstr("a 60.0 %")));
}

TEST(WhyNot, TooMuchWorkInAWindow) {
  // Two sensors deliver at the same instant; both reactions leave 25 ms for two slots of 20 ms on one core.
  Problem problem;
  problem.name = "window";
  problem.board = test::one_core();
  problem.hyperperiod = milliseconds(100);
  problem.sensors = {test::locked_sensor("left", 10, {}, {}, {}, {}), test::locked_sensor("right", 10, {}, {}, {}, {})};
  for (std::uint32_t i = 0; i < 2; ++i) {
    Stage stage = test::stage(i == 0 ? "a" : "b", {1}, {test::variant("full", microseconds(18'500))});
    stage.inputs = {test::from_sensor("in", i)};
    problem.stages.push_back(stage);
    problem.chains.push_back(test::chain(i == 0 ? "ca" : "cb", i, {i}, std::nullopt, milliseconds(125)));
  }
  Answer answer = synthesize(problem);
  EXPECT_EQ(answer.verdict, Verdict::kInfeasible);
  EXPECT_THAT(answer.reason, AllOf(HasSubstr("too much work in a window"), HasSubstr("40.000 ms of core time"),
                                   HasSubstr("15.000 ms too much")));
  for (Chain& chain : problem.chains) chain.limits[1] = microseconds(140'100);
  answer = synthesize(problem);
  EXPECT_EQ(answer.verdict, Verdict::kFeasible) << answer.reason;
}

TEST(WhyNot, UndecidedSaysSoAndGivesTheBestTable) {
  // Each chain alone is possible; both at once would need the same place on the only core. No rule sees that.
  Problem problem;
  problem.name = "undecided";
  problem.board = test::one_core();
  problem.hyperperiod = milliseconds(100);
  problem.sensors = {test::locked_sensor("left", 10, {}, {}, {}, {}), test::locked_sensor("right", 10, {}, {}, {}, {})};
  for (std::uint32_t i = 0; i < 2; ++i) {
    Stage stage = test::stage(i == 0 ? "a" : "b", {1}, {test::variant("full", microseconds(18'500))});
    stage.inputs = {test::from_sensor("in", i)};
    problem.stages.push_back(stage);
    problem.chains.push_back(test::chain(i == 0 ? "ca" : "cb", i, {i}, milliseconds(25)));
  }
  const Answer answer = synthesize(problem, {1, 2000});
  EXPECT_EQ(answer.verdict, Verdict::kUndecided);
  ASSERT_TRUE(answer.schedule);
  EXPECT_THAT(answer.reason, AllOf(HasSubstr("within 2000 nodes"), HasSubstr("above its limit")));
  EXPECT_TRUE(validate(problem, *answer.schedule, {false}));
  EXPECT_FALSE(validate(problem, *answer.schedule));
}

// A table is its own proof of feasibility: with exactly its bounds as limits no rule may refute the problem.
TEST(WhyNot, NoRuleRefutesAProblemThatHasATable) {
  int asked = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Problem problem = test::random_problem(seed, false);
    const Answer answer = synthesize(problem, {seed, 400});
    if (!answer.schedule) continue;
    for (const ChainBound& bound : answer.schedule->bounds) {
      for (std::size_t q = 0; q < kQuantities; ++q) problem.chains[bound.chain].limits[q] = bound.bounds[q];
    }
    for (std::size_t i = 0; i < problem.stages.size(); ++i) {
      Stage& stage = problem.stages[i];
      const Choice& choice = answer.schedule->choices[i];
      stage.variants = {{stage.variants[choice.variant].name, {choice.budget}}};
      stage.rates = {choice.rate};
    }
    const Answer again = synthesize(problem, {seed, 400});
    EXPECT_NE(again.verdict, Verdict::kInfeasible) << problem.name << ": " << again.reason;
    ++asked;
  }
  EXPECT_GT(asked, 200);
}

TEST(WhyNot, MalformedProblemsAreNotInfeasible) {
  Problem problem = test::perception();
  problem.stages[0].rates.clear();
  const Answer answer = synthesize(problem);
  EXPECT_EQ(answer.verdict, Verdict::kUndecided);
  EXPECT_THAT(answer.reason, HasSubstr("not well-formed"));
}

TEST(Slack, ANewTableMayGrowMoreThanTheOldOne) {
  const Problem problem = test::perception();
  const Answer answer = synthesize(problem);
  ASSERT_TRUE(answer.schedule);
  const double kept = budget_scale(problem, *answer.schedule).all;
  const double anew = resynthesised_scale(problem, *answer.schedule, {1, 20'000});
  EXPECT_GE(kept, 1.0);
  EXPECT_GT(anew, 1.2);
  EXPECT_GE(anew + 0.01, kept);
}

TEST(Size, AThousandJobs) {
  Problem problem;
  problem.name = "thousand";
  problem.board.name = "eight";
  problem.board.clock_error = microseconds(1);
  for (int c = 0; c < 8; ++c) {
    problem.board.cores.push_back({"core" + std::to_string(c), c, 0.1, microseconds(200), microseconds(200)});
  }
  problem.hyperperiod = seconds(1);
  constexpr std::int64_t kRates[] = {30, 20, 10};
  for (std::uint32_t chain = 0; chain < 10; ++chain) {
    problem.sensors.push_back(test::free_sensor("s" + std::to_string(chain), 30, milliseconds(5), milliseconds(6)));
    std::vector<std::uint32_t> path;
    for (std::uint32_t i = 0; i < 5; ++i) {
      Stage stage = test::stage("t" + std::to_string(chain) + "_" + std::to_string(i), {kRates[(chain + i) % 3]},
                                {test::variant("full", milliseconds(4))});
      const auto index = static_cast<std::uint32_t>(problem.stages.size());
      stage.inputs = {i == 0 ? test::from_sensor("in", chain) : test::from_stage("in", index - 1)};
      path.push_back(index);
      problem.stages.push_back(stage);
    }
    problem.chains.push_back(test::chain("c" + std::to_string(chain), chain, path, milliseconds(600)));
  }
  const auto begin = std::chrono::steady_clock::now();
  const Answer answer = synthesize(problem, {1, 60'000});
  const auto made = std::chrono::steady_clock::now();
  ASSERT_EQ(answer.verdict, Verdict::kFeasible) << answer.reason;
  const Status valid = validate(problem, *answer.schedule);
  const auto proved = std::chrono::steady_clock::now();
  EXPECT_TRUE(valid) << valid.error().message;
  std::cout << answer.schedule->slots.size() << " jobs, 10 chains: table in "
            << std::chrono::duration<double>(made - begin).count() << " s, validated and walked in "
            << std::chrono::duration<double>(proved - made).count() << " s\n";
}

}  // namespace
}  // namespace takt::sched
