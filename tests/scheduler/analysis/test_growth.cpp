#include <gtest/gtest.h>
#include <cmath>
#include <ctime>
#include <optional>

#include "scheduler/analysis/validate.h"
#include "scheduler/synthesis/synthesis.h"
#include "tests/scheduler/synthesis/segments.h"

namespace takt::sched {
namespace {

std::int64_t millionths(double factor) { return std::llround(factor * 1e6); }

// Whether the validator accepts the table with the budgets of one stage, or of all, scaled and every start kept.
bool valid_with(const Problem& problem, const Schedule& schedule, std::optional<std::uint32_t> only,
                std::int64_t factor) {
  Problem scaled = problem;
  Schedule table = schedule;
  const auto scale = [&](Duration& time) {
    __extension__ using Wide = __int128;
    time.ns = std::max<std::int64_t>(
        1, static_cast<std::int64_t>((static_cast<Wide>(time.ns) * factor + 999'999) / 1'000'000));
  };
  const auto scale_budget = [&](Budget& budget) {
    if (budget.segments.empty()) return scale(budget.time);
    budget.time = {};
    for (Segment& segment : budget.segments) {
      scale(segment.time);
      budget.time += segment.time;
    }
  };
  for (std::uint32_t stage = 0; stage < problem.stages.size(); ++stage) {
    if (only && *only != stage) continue;
    for (Variant& variant : scaled.stages[stage].variants) {
      for (Budget& budget : variant.budgets) scale_budget(budget);
    }
    scale_budget(table.choices[stage].budget);
  }
  for (Slot& slot : table.slots) {
    if (only && *only != slot.stage) continue;
    std::int64_t wakeup = 0;
    std::int64_t publish = 0;
    for (const Slot& other : schedule.slots) {
      if (other.stage != slot.stage) continue;
      for (const std::uint32_t core : other.cores) {
        wakeup = std::max(wakeup, problem.board.cores[core].wakeup_window.ns);
        publish = std::max(publish, problem.board.cores[core].publish_window.ns);
      }
    }
    const std::vector<Segment> segments = segments_of(table.choices[slot.stage].budget);
    if (slot.segment + 1 < segments.size()) publish = 0;
    slot.end = slot.start + table.clock.ticks_up({wakeup + segments[slot.segment].time.ns + publish +
                                                  (problem.hyperperiod.ns % table.clock.ticks == 0 ? 0 : 1)});
  }
  return validate(scaled, table, {true, false, false}).has_value();
}

std::int64_t edge(const Problem& problem, const Schedule& schedule, std::optional<std::uint32_t> only) {
  std::int64_t holds = 0;
  std::int64_t fails = 1'000'000'001;
  while (fails - holds > 1) {
    const std::int64_t middle = holds + (fails - holds) / 2;
    (valid_with(problem, schedule, only, middle) ? holds : fails) = middle;
  }
  return holds;
}

// The rooms of slots, found in one pass, say what the validator says of every single factor.
TEST(BudgetScale, IsWhereTheValidatorStopsAccepting) {
  int tables = 0;
  int above_one = 0;
  int below_one = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Problem problem = seed % 2 == 0 ? test::random_units(seed) : test::random_problem(seed);
    if (seed % 3 == 0) {
      for (Stage& stage : problem.stages) {
        for (Variant& variant : stage.variants) variant.arena = std::max<std::int64_t>(variant.arena, 1000);
      }
      problem.board.memory = 1000 * static_cast<std::int64_t>(problem.stages.size()) - 1;
    }
    const Answer answer = synthesize(problem, {seed, 400});
    if (!answer.schedule) continue;
    ++tables;
    const BudgetScale scale = budget_scale(problem, *answer.schedule);
    EXPECT_EQ(millionths(scale.all), edge(problem, *answer.schedule, std::nullopt)) << problem.name;
    ASSERT_EQ(scale.stages.size(), problem.stages.size());
    for (std::uint32_t stage = 0; stage < problem.stages.size(); ++stage) {
      EXPECT_EQ(millionths(scale.stages[stage]), edge(problem, *answer.schedule, stage))
          << problem.name << ", " << problem.stages[stage].name;
      (scale.stages[stage] >= 1 ? above_one : below_one) += 1;
    }
  }
  std::cout << tables << " tables, " << above_one << " stages may grow, " << below_one << " may not\n";
  EXPECT_GT(tables, 25);
  EXPECT_GT(above_one, 50);
}

// A thousand stages with a chain each: bisection with a whole validation per step took minutes of them.
TEST(BudgetScale, OfAThousandStagesAndChainsIsFast) {
  constexpr std::uint32_t kCores = 10;
  constexpr std::uint32_t kStages = 1000;
  Problem problem = test::single();
  problem.board.cores.clear();
  for (std::uint32_t c = 0; c < kCores; ++c) {
    problem.board.cores.push_back(
        {"core" + std::to_string(c), static_cast<int>(c), 0, microseconds(200), microseconds(200)});
  }
  const Stage one = problem.stages[0];
  const Chain to_it = problem.chains[0];
  problem.stages.clear();
  problem.chains.clear();
  Schedule schedule;
  schedule.clock = {milliseconds(100), 100'000};
  for (std::uint32_t s = 0; s < kStages; ++s) {
    Stage stage = one;
    stage.name = "s" + std::to_string(s);
    stage.variants[0].budgets[0].time = microseconds(300);
    problem.stages.push_back(stage);
    Chain chain = to_it;
    chain.name = "c" + std::to_string(s);
    chain.stages = {s};
    problem.chains.push_back(chain);
    schedule.choices.push_back({1, 0, stage.variants[0].budgets[0]});
    const Tick start = s / kCores * 900;
    schedule.slots.push_back({s, 0, {s % kCores}, start, start + 701});
  }
  for (std::uint32_t c = 0; c < kStages; ++c) schedule.bounds.push_back(walk(problem, schedule, c));
  ASSERT_TRUE(validate(problem, schedule)) << validate(problem, schedule).error().message;
  const std::clock_t begin = std::clock();
  const BudgetScale scale = budget_scale(problem, schedule);
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 2.0);
  EXPECT_NEAR(scale.all, (0.9 - 0.4) / 0.3, 1e-4);  // as long as the next one begins 0.9 ms later
  EXPECT_NEAR(scale.stages[5], (0.9 - 0.4) / 0.3, 1e-4);
}

}  // namespace
}  // namespace takt::sched
