#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scheduler/analysis/modes.h"
#include "scheduler/analysis/validate.h"
#include "scheduler/synthesis/synthesis.h"
#include "tests/scheduler/synthesis/segments.h"

namespace takt::sched {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// full: perception at 100 ms; night: camera at 15 Hz in 200 ms, without radar.
ModeSet day_and_night() {
  ModeSet set;
  set.name = "car";
  set.modes.resize(2);
  ModeSpec& full = set.modes[0];
  full.name = "full";
  full.problem = test::perception();
  full.problem.name = "car/full";
  full.exits = {1};
  full.dwell = seconds(2);
  ModeSpec& night = set.modes[1];
  night.name = "night";
  night.problem = test::perception();
  night.problem.name = "car/night";
  night.problem.hyperperiod = milliseconds(200);
  night.problem.stages[0].rates = {3};
  night.problem.stages[1].rates = {2};
  night.problem.stages[2].rates = {4};
  night.problem.stages[3].rates = {2};
  for (ModeSpec* mode : {&full, &night}) {
    for (Chain& chain : mode->problem.chains) chain.limits[0] = milliseconds(400);
  }
  night.exits = {0};
  night.dwell = seconds(2);
  std::vector<Problem> problems{full.problem, night.problem};
  const Result<std::vector<Tick>> ticks = common_ticks(problems);
  full.problem.ticks = ticks->at(0);
  night.problem.ticks = ticks->at(1);
  return set;
}

std::vector<Answer> answers_of(const ModeSet& set) {
  std::vector<Answer> out;
  for (const ModeSpec& mode : set.modes) out.push_back(synthesize(mode.problem, {1, 20'000}));
  return out;
}

TEST(Modes, ShareTheTickOfEveryRate) {
  const ModeSet set = day_and_night();
  ASSERT_TRUE(check(set)) << check(set).error().message;
  // 30, 20, 10 Hz in 100 ms and 15 Hz in 200 ms.
  EXPECT_EQ(set.modes[0].problem.ticks * 2, set.modes[1].problem.ticks);
  for (const ModeSpec& mode : set.modes) {
    for (const Stage& stage : mode.problem.stages) EXPECT_EQ(mode.problem.ticks % (1000 * stage.rates[0]), 0);
  }
  Problem odd = set.modes[0].problem;
  odd.hyperperiod = nanoseconds(100'000'007);  // prime to everything
  EXPECT_FALSE(common_ticks({set.modes[0].problem, odd}));
}

TEST(Modes, EveryModeAndEveryChangeIsAnswered) {
  ModeSet set = day_and_night();
  set.modes[0].entry_drain = set.modes[1].entry_drain = milliseconds(50);
  const std::vector<Answer> answers = answers_of(set);
  for (std::size_t m = 0; m < answers.size(); ++m) {
    ASSERT_EQ(answers[m].verdict, Verdict::kFeasible) << answers[m].reason;
    EXPECT_TRUE(validate(set.modes[m].problem, *answers[m].schedule));
    EXPECT_EQ(answers[m].schedule->clock.ticks, set.modes[m].problem.ticks);
  }
  const ModesAnswer judged = judge_modes(set, answers);
  ASSERT_EQ(judged.changes.size(), 2u);
  for (const ChangeAnswer& change : judged.changes) {
    EXPECT_EQ(change.bounds.size(), 3u) << change.refusal;
    for (const SeamBound& seam : change.bounds) {
      // A seam is never better than the table it leads to or comes from.
      const std::string& name = set.modes[change.to].problem.chains[seam.bound.chain].name;
      for (const std::uint32_t m : {change.from, change.to}) {
        for (std::uint32_t c = 0; c < set.modes[m].problem.chains.size(); ++c) {
          if (set.modes[m].problem.chains[c].name != name) continue;
          EXPECT_GE(seam.bound.bounds[1], walk(set.modes[m].problem, *answers[m].schedule, c).bounds[1]) << name;
        }
      }
    }
  }
  const std::string text = explain_modes(set, answers, judged);
  EXPECT_THAT(text, AllOf(HasSubstr("mode 'night': feasible"), HasSubstr("change full -> night:"),
                          HasSubstr("change night -> full:"), HasSubstr("camera_fusion: latency")));
  const auto json = nlohmann::json::parse(modes_json(set, answers, judged));
  EXPECT_EQ(json["modes"].size(), 2u);
  EXPECT_EQ(json["modes"][1]["answer"]["verdict"], "feasible");
  EXPECT_EQ(json["changes"][0]["to"], "night");
  EXPECT_EQ(json["changes"][0]["chains"].size(), 3u);
}

// What is refused names what to declare; declared, it is permitted.
TEST(Modes, ADrainAndADwellAreAskedForAndSuffice) {
  ModeSet set = day_and_night();
  set.modes[0].dwell = set.modes[1].dwell = {};
  for (ModeSpec& mode : set.modes) {
    for (Chain& chain : mode.problem.chains) chain.limits[0].reset();
  }
  const std::vector<Answer> answers = answers_of(set);
  const ModesAnswer asked = judge_modes(set, answers);
  EXPECT_EQ(asked.verdict, Verdict::kUndecided);
  for (int round = 0; round < 4; ++round) {
    const ModesAnswer judged = judge_modes(set, answers);
    if (judged.verdict == Verdict::kFeasible) break;
    for (const ChangeAnswer& change : judged.changes) {
      if (change.refusal.empty()) continue;
      const std::size_t at = change.refusal.find("of at least ");
      ASSERT_NE(at, std::string::npos) << change.refusal;
      // Rounded to microseconds in the text: one more is enough.
      const Duration least{static_cast<std::int64_t>(std::stod(change.refusal.substr(at + 12)) * 1e6) + 1000};
      if (change.refusal.find("dwell_ms") != std::string::npos) {
        set.modes[change.to].dwell = least;
      } else {
        EXPECT_THAT(change.refusal, HasSubstr("entry_drain_ms of '" + set.modes[change.to].name + "'"));
        set.modes[change.to].entry_drain = least;
      }
    }
  }
  const ModesAnswer judged = judge_modes(set, answers);
  EXPECT_EQ(judged.verdict, Verdict::kFeasible) << explain_modes(set, answers, judged);
}

TEST(Modes, ALimitHoldsAcrossTheSeamToo) {
  ModeSet set = day_and_night();
  set.modes[0].entry_drain = set.modes[1].entry_drain = milliseconds(50);
  const std::vector<Answer> answers = answers_of(set);
  ASSERT_TRUE(answers[0].schedule && answers[1].schedule);
  ModesAnswer judged = judge_modes(set, answers);
  const SeamBound& seam = judged.changes[0].bounds[0];
  // A limit that both tables meet, and the seam does not.
  set.modes[0].problem.chains[0].limits[1] = seam.bound.bounds[1] - nanoseconds(1);
  set.modes[1].problem.chains[0].limits[1] = seam.bound.bounds[1] - nanoseconds(1);
  judged = judge_modes(set, answers);
  EXPECT_EQ(judged.verdict, Verdict::kUndecided);
  EXPECT_THAT(judged.changes[0].refusal, AllOf(HasSubstr("reaction"), HasSubstr("across the change")));
  // The larger limit of the two counts.
  set.modes[1].problem.chains[0].limits[1] = seam.bound.bounds[1];
  EXPECT_THAT(judge_modes(set, answers).changes[0].refusal, testing::Not(HasSubstr("across the change, ")));
}

TEST(Modes, VariantsOfAllModesAreResidentTogether) {
  ModeSet set = day_and_night();
  set.modes[1].problem.stages[0].variants[0].name = "lite";
  for (ModeSpec& mode : set.modes) {
    mode.problem.board.memory = 1'000'000'000;
    mode.problem.stages[0].variants[0].resident = 600'000'000;
  }
  const std::vector<Answer> answers = answers_of(set);
  for (const Answer& answer : answers) ASSERT_EQ(answer.verdict, Verdict::kFeasible) << answer.reason;
  EXPECT_THAT(judge_modes(set, answers).refusal, AllOf(HasSubstr("1.20 GB"), HasSubstr("200.00 MB too much")));
  set.modes[1].problem.stages[0].variants[0].name = "full";  // one variant, loaded once
  EXPECT_EQ(judge_modes(set, answers).refusal, "");
}

TEST(Modes, TheVariantThatJobsDegradeToIsResidentOnceInAllModes) {
  ModeSet set = day_and_night();
  for (ModeSpec& mode : set.modes) {
    Stage& stage = mode.problem.stages[0];
    stage.variants.push_back(stage.variants[0]);
    stage.variants[1].name = "lite";
    stage.overrun = OverrunPolicy::kDegrade;
    stage.degraded_variant = "lite";
  }
  const std::vector<Answer> answers = answers_of(set);
  for (ModeSpec& mode : set.modes) {
    mode.problem.board.memory = 1'000'000'000;
    mode.problem.stages[0].variants[0].resident = 700'000'000;
    mode.problem.stages[0].variants[1].resident = 500'000'000;
  }
  EXPECT_THAT(judge_modes(set, answers).refusal, AllOf(HasSubstr("1.20 GB resident"), HasSubstr("200.00 MB too much")));
}

// One job in each of two modes, on different cores: alone each has the board to itself, but the last one of the first
// mode works on for 5 ms beside the first one of the second.
TEST(Modes, ArenasOfBothSidesOfAChangeAddUp) {
  ModeSet set;
  std::vector<Answer> answers;
  for (const std::uint32_t core : {0u, 1u}) {
    ModeSpec mode;
    mode.name = core == 0 ? "full" : "night";
    mode.problem = test::single();
    mode.problem.board = test::two_cores(0);
    mode.problem.board.memory = 1'000'000'000;
    mode.problem.stages[0].name = mode.name + " stage";
    mode.problem.stages[0].variants[0].arena = 600'000'000;
    mode.problem.chains[0].name = mode.name + " chain";
    mode.exits = {1 - core};
    mode.dwell = seconds(2);
    Schedule schedule;
    schedule.clock = {milliseconds(100), 100'000};
    schedule.choices = {{1, 0, mode.problem.stages[0].variants[0].budgets[0]}};
    const Tick start = core == 0 ? 95'000 : 2'000;
    schedule.slots = {{0, 0, {core}, start, start + 10'000}};
    schedule.bounds = {walk(mode.problem, schedule, 0)};
    ASSERT_TRUE(validate(mode.problem, schedule, {false})) << validate(mode.problem, schedule).error().message;
    Answer answer;
    answer.verdict = Verdict::kFeasible;
    answer.schedule = schedule;
    set.modes.push_back(mode);
    answers.push_back(answer);
  }
  const ModesAnswer judged = judge_modes(set, answers);
  EXPECT_EQ(judged.changes[0].refusal, "");
  EXPECT_THAT(judged.refusal, AllOf(HasSubstr("1.20 GB at once"), HasSubstr("200.00 MB too much")));
  EXPECT_EQ(judged.verdict, Verdict::kUndecided);
  set.modes[1].entry_drain = milliseconds(3);  // the second begins when the first is over
  EXPECT_EQ(judge_modes(set, answers).refusal, "");
  set.modes[1].entry_drain = milliseconds(3) - nanoseconds(1);
  EXPECT_THAT(judge_modes(set, answers).refusal, HasSubstr("1.20 GB at once"));
}

// The modes may declare different figures for what is the same by name.
TEST(Modes, TheLargestResidentOfAVariantCounts) {
  ModeSet set = day_and_night();
  for (ModeSpec& mode : set.modes) mode.problem.board.memory = 1'000'000'000;
  const std::vector<Answer> answers = answers_of(set);
  set.modes[0].problem.stages[0].variants[0].resident = 1'100'000'000;
  set.modes[1].problem.stages[0].variants[0].resident = 1;
  EXPECT_THAT(judge_modes(set, answers).refusal, HasSubstr("1.10 GB resident"));
}

TEST(Modes, OneInfeasibleModeDecides) {
  ModeSet set = day_and_night();
  set.modes[1].problem.chains[0].limits[0] = milliseconds(1);
  const std::vector<Answer> answers = answers_of(set);
  const ModesAnswer judged = judge_modes(set, answers);
  EXPECT_EQ(judged.verdict, Verdict::kInfeasible);
  EXPECT_FALSE(judged.changes[0].judged);
  EXPECT_THAT(explain_modes(set, answers, judged), HasSubstr("not judged, a mode has no table"));
}

TEST(Modes, CheckNamesWhatIsWrong) {
  const auto message = [](void (*change)(ModeSet&)) {
    ModeSet set = day_and_night();
    change(set);
    const Status status = check(set);
    return status ? std::string("accepted") : status.error().message;
  };
  EXPECT_EQ(message([](ModeSet&) {}), "accepted");
  EXPECT_THAT(message([](ModeSet& s) { s.modes[1].name = "full"; }),
              HasSubstr("another mode before it has the same name"));
  EXPECT_THAT(message([](ModeSet& s) { s.modes[0].exits = {0}; }), HasSubstr("leads to another mode"));
  EXPECT_THAT(message([](ModeSet& s) { s.modes[0].exits = {7}; }), HasSubstr("leads to another mode"));
  EXPECT_THAT(message([](ModeSet& s) { s.modes[0].exits.clear(); }), HasSubstr("'night': no sequence of exits"));
  EXPECT_THAT(message([](ModeSet& s) { s.modes[0].dwell.ns = -1; }), HasSubstr("dwell"));
  EXPECT_THAT(message([](ModeSet& s) { s.modes[0].lost = 1; }), HasSubstr("no phase lock"));
  EXPECT_THAT(message([](ModeSet& s) { s.modes[1].problem.stages[0].rates = {0}; }), HasSubstr("mode 'night'"));
  EXPECT_THAT(message([](ModeSet& s) { s.modes.clear(); }), HasSubstr("none"));
  const auto with_modes = [](std::size_t count) {
    ModeSet set = day_and_night();
    while (set.modes.size() < count) {
      set.modes.push_back(set.modes[1]);
      set.modes.back().name = "night" + std::to_string(set.modes.size());
      set.modes.back().exits = {0};
      set.modes[0].exits.push_back(static_cast<std::uint32_t>(set.modes.size() - 1));
    }
    return check(set);
  };
  EXPECT_TRUE(with_modes(64)) << with_modes(64).error().message;
  ASSERT_FALSE(with_modes(65));
  EXPECT_THAT(with_modes(65).error().message, HasSubstr("65 of them; at most 64 are possible"));
}

// A walk across a change goes through the turns of the shorter table: there must not be millions of them.
TEST(Modes, CheckBoundsHowFarLengthsDiffer) {
  const auto message = [](Duration shortest, Duration drain) {
    ModeSet set = day_and_night();  // 'full' has a hyperperiod of 100 ms
    Problem& night = set.modes[1].problem;
    night.hyperperiod = shortest;
    night.ticks = 12'000;
    for (Sensor& sensor : night.sensors) sensor.phase.reset();
    set.modes[0].entry_drain = drain;
    const Status status = check(set);
    return status ? std::string("accepted") : status.error().message;
  };
  EXPECT_EQ(message(microseconds(100), seconds(1)), "accepted");
  EXPECT_THAT(message(microseconds(99), {}),
              HasSubstr("'full': its hyperperiod is longer than 1000 hyperperiods of mode 'night'"));
  EXPECT_THAT(message(microseconds(100), seconds(1) + nanoseconds(1)),
              HasSubstr("'full': its drain is longer than 10000"));
}

}  // namespace
}  // namespace takt::sched
