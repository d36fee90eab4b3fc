#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <functional>
#include <limits>

#include "scheduler/model/model.h"
#include "tests/scheduler/synthesis/problems.h"

namespace takt::sched {
namespace {

using testing::HasSubstr;

TEST(Ticks, SmallestMultipleOfAThousandTimesTheJobsWithATickOfAtMostOneMicrosecond) {
  EXPECT_EQ(ticks_per_hyperperiod(milliseconds(100), {3, 2, 1}), 102'000);
  EXPECT_EQ(ticks_per_hyperperiod(milliseconds(200), {6, 4, 3, 2}), 204'000);
  EXPECT_EQ(ticks_per_hyperperiod(milliseconds(100), {1}), 100'000);
  EXPECT_EQ(ticks_per_hyperperiod(microseconds(10), {7}), 7'000);
}

TEST(Ticks, ThirtyHertzIsExactOverADay) {
  const TickClock clock{milliseconds(100), 102'000};
  // Job k of a 30 Hz stage starts at 34000 * k ticks; frame 30 * 86400 begins exactly one day later.
  EXPECT_EQ(clock.start_at(0, 34'000).ns, 33'333'334);  // up
  EXPECT_EQ(clock.end_at(0, 34'000).ns, 33'333'333);    // down
  EXPECT_EQ(clock.start_at(864'000, 0).ns, 86'400'000'000'000);
  EXPECT_EQ(clock.start_at(864'000, 34'000).ns, 86'400'033'333'334);
  EXPECT_EQ(clock.end_at(863'999, 102'000).ns, 86'400'000'000'000);
}

TEST(Ticks, RoundingNeverShortensADurationAndNeverAddsATick) {
  const TickClock clock{milliseconds(100), 102'000};
  for (std::int64_t ns = 0; ns < 200'000; ns += 37) {
    const Tick ticks = clock.ticks_up({ns});
    EXPECT_GE(ticks * 100'000'000, ns * 102'000);
    EXPECT_LT((ticks - 1) * 100'000'000, std::max<std::int64_t>(ns * 102'000, 1));
  }
}

TEST(Ticks, NegativeTicksRoundTheSameWay) {
  const TickClock clock{milliseconds(100), 102'000};
  EXPECT_EQ(clock.start_at(1, -34'000).ns, 66'666'667);
  EXPECT_EQ(clock.end_at(1, -34'000).ns, 66'666'666);
}

TEST(Names, AreTheWordsOfTheReports) {
  EXPECT_STREQ(name_of(Quantity::kLatency), "latency");
  EXPECT_STREQ(name_of(Quantity::kAgeUntilReplaced), "age until replaced");
  EXPECT_STREQ(name_of(Provenance::kExploratory), "exploratory");
  EXPECT_STREQ(name_of(Verdict::kUndecided), "undecided");
}

TEST(SensorModel, LongestPeriodIncludesDriftAndRounding) {
  Sensor sensor = test::free_sensor("s", 10, {}, {});
  sensor.drift_ppm = 100;
  EXPECT_EQ(longest_period(sensor).ns, 100'000'000 + 10'000 + 1);
  sensor.drift_ppm = 0;
  EXPECT_EQ(longest_period(sensor).ns, 100'000'001);
}

TEST(SensorModel, ThirtyHertzLocksToATenthOfASecond) {
  Sensor sensor = test::locked_sensor("s", 30, {}, {}, {}, {});
  ASSERT_EQ(sensor.period.ns, 33'333'333);
  std::optional<SamplePattern> pattern = sample_pattern(sensor, milliseconds(100));
  ASSERT_TRUE(pattern);
  EXPECT_EQ(pattern->samples, 3);
  EXPECT_EQ(pattern->hyperperiods, 1);
  sensor.period = {66'666'667};
  pattern = sample_pattern(sensor, milliseconds(100));
  ASSERT_TRUE(pattern);
  EXPECT_EQ(pattern->samples, 3);
  EXPECT_EQ(pattern->hyperperiods, 2);
  sensor.period = {33'000'001};
  EXPECT_FALSE(sample_pattern(sensor, milliseconds(100)));
  sensor.phase.reset();
  EXPECT_FALSE(sample_pattern(sensor, milliseconds(100)));
}

TEST(Hash, CoversWhatDecidesBytesAndNothingElse) {
  Schedule schedule;
  schedule.clock = {milliseconds(100), 102'000};
  schedule.choices.resize(1);
  schedule.choices[0].rate = 1;
  schedule.slots = {{0, 0, {1}, 10, 20}};
  schedule.bindings = {{0, 0, 0, 0, 0, -1}};
  const Digest before = schedule.hash();
  const auto changed = [&](auto change) {
    Schedule other = schedule;
    change(other);
    return other.hash() != before;
  };
  EXPECT_TRUE(changed([](Schedule& s) { s.clock.ticks = 1; }));
  EXPECT_TRUE(changed([](Schedule& s) { s.choices[0].variant = 1; }));
  EXPECT_TRUE(changed([](Schedule& s) { s.choices[0].budget.time.ns = 1; }));
  EXPECT_TRUE(changed([](Schedule& s) { s.slots[0].start = 11; }));
  EXPECT_TRUE(changed([](Schedule& s) { s.slots[0].cores = {0, 1}; }));
  EXPECT_TRUE(changed([](Schedule& s) { s.bindings[0].producer_shift = 0; }));
  EXPECT_TRUE(changed([](Schedule& s) { s.bindings.clear(); }));
  EXPECT_FALSE(changed([](Schedule& s) { s.bounds.resize(1); }));
  EXPECT_FALSE(changed([](Schedule& s) { s.choices[0].budget.samples = 7; }));
}

TEST(Check, AcceptsThePerceptionProblem) {
  const Status status = check(test::perception());
  EXPECT_TRUE(status) << status.error().message;
}

TEST(Check, NamesTheFault) {
  const auto message = [](auto change) {
    Problem problem = test::perception();
    change(problem);
    const Status status = check(problem);
    return status ? std::string("accepted") : status.error().message;
  };
  EXPECT_THAT(message([](Problem& p) { p.hyperperiod = {}; }), HasSubstr("hyperperiod"));
  EXPECT_THAT(message([](Problem& p) { p.board.cores.clear(); }), HasSubstr("no core"));
  EXPECT_THAT(message([](Problem& p) { p.board.cores[1].cpu = 0; }), HasSubstr("cpu 0 is listed twice"));
  EXPECT_THAT(message([](Problem& p) { p.board.cores[0].wakeup_window = milliseconds(6); }), HasSubstr("0 to 5 ms"));
  EXPECT_THAT(message([](Problem& p) { p.stages[1].name = "fusion"; }), HasSubstr("two stages are named 'fusion'"));
  EXPECT_THAT(message([](Problem& p) { p.stages[0].rates = {}; }), HasSubstr("'camera_detect': no rate"));
  EXPECT_THAT(message([](Problem& p) { p.stages[0].rates = {0}; }), HasSubstr("0 jobs per hyperperiod"));
  EXPECT_THAT(message([](Problem& p) { p.stages[0].variants[0].budgets[1].cores = 1; }), HasSubstr("two budgets"));
  EXPECT_THAT(message([](Problem& p) { p.stages[0].variants[0].budgets[1].cores = 3; }), HasSubstr("allowed: 1 to 2"));
  EXPECT_THAT(message([](Problem& p) { p.stages[3].inputs[3].feedback = false; }),
              HasSubstr("mark the input feedback"));
  EXPECT_THAT(message([](Problem& p) { p.stages[3].inputs[1].source = 0; }), HasSubstr("a second time"));
  EXPECT_THAT(message([](Problem& p) {
                p.chains[0].stages = {1, 3};
              }),
              HasSubstr("'lidar_detect' has no input from 'camera'"));
  EXPECT_THAT(message([](Problem& p) { p.sensors[1].delay_max = milliseconds(160); }), HasSubstr("overtake"));
  EXPECT_THAT(message([](Problem& p) { p.sensors[1].phase = Sensor::Phase{}; }), HasSubstr("has no drift"));
  EXPECT_THAT(message([](Problem& p) {
                p.sensors[1].phase = Sensor::Phase{};
                p.sensors[1].drift_ppm = 0;
                p.sensors[1].period = {77'123'457};
              }),
              HasSubstr("never lines up"));
  EXPECT_THAT(message([](Problem& p) {
                p.stages[0].rates = {9'973};
                p.stages[1].rates = {9'967};
              }),
              HasSubstr("common multiple"));
}

// Every figure may come out of a file: whatever passes can be added up over all jobs and variants.
TEST(Check, BoundsWhatIsAddedUp) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const auto message = [](auto change) {
    Problem problem = test::perception();
    change(problem);
    const Status status = check(problem);
    return status ? std::string("accepted") : status.error().message;
  };
  EXPECT_THAT(message([](Problem& p) { p.board.clock_error = {kMost}; }), HasSubstr("0 to 1 ms"));
  EXPECT_THAT(message([](Problem& p) { p.board.memory = kMost; }), HasSubstr("memory must lie in"));
  EXPECT_THAT(message([](Problem& p) { p.stages[0].variants[0].resident = kMost; }), HasSubstr("than any board has"));
  EXPECT_THAT(message([](Problem& p) { p.stages[0].variants[0].arena = kMost; }), HasSubstr("than any board has"));
  // Each by itself would be allowed.
  EXPECT_THAT(message([](Problem& p) {
                for (Stage& stage : p.stages) stage.variants[0].resident = std::int64_t{1} << 49;
              }),
              HasSubstr("'radar_detect': with the stages before it"));
  EXPECT_THAT(message([](Problem& p) {
                for (std::size_t s = 0; s < 11; ++s) {
                  Stage stage = p.stages[0];
                  stage.name = "heavy" + std::to_string(s);
                  stage.rates = {2'000};
                  p.stages.push_back(stage);
                }
              }),
              HasSubstr("'heavy9': with the stages before it, there are 20007 jobs in one hyperperiod"));
  // More jobs than ticks of 1 ns and a thousand ticks per job would leave.
  EXPECT_THAT(message([](Problem& p) { p.stages[0].rates = {9'973, 13}; }), HasSubstr("common multiple"));
}

// In the slots of another budget: where a degraded job runs.
TEST(Fits, OnTheSameUnitsAndNowhereForLonger) {
  Budget slots;
  slots.segments = {{.unit = {}, .time = milliseconds(1), .guard = {}, .mutexes = {}},
                    {.unit = 0, .time = milliseconds(6), .guard = milliseconds(1), .mutexes = {2}},
                    {.unit = {}, .time = milliseconds(1), .guard = {}, .mutexes = {}}};
  slots.time = milliseconds(8);
  const auto fits_with = [&slots](const std::function<void(Budget&)>& change) {
    Budget budget = slots;
    change(budget);
    return fits(budget, slots);
  };
  EXPECT_TRUE(fits_with([](Budget&) {}));
  EXPECT_TRUE(fits_with([](Budget& b) { b.segments[1].time = b.time = milliseconds(1); }));
  EXPECT_FALSE(fits_with([](Budget& b) { b.cores = 2; }));
  EXPECT_FALSE(fits_with([](Budget& b) { b.time = milliseconds(9); }));
  EXPECT_FALSE(fits_with([](Budget& b) { b.segments[2].time = milliseconds(2); }));
  EXPECT_FALSE(fits_with([](Budget& b) { b.segments[1].guard = milliseconds(2); }));
  EXPECT_FALSE(fits_with([](Budget& b) { b.segments[1].unit = 1; }));
  EXPECT_FALSE(fits_with([](Budget& b) { b.segments[1].mutexes.clear(); }));
  EXPECT_FALSE(fits_with([](Budget& b) { b.segments.clear(); }));
}

}  // namespace
}  // namespace takt::sched
