// The worked examples of docs/scheduling.md say what the page says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "scheduler/analysis/certificate.h"
#include "scheduler/analysis/modes.h"
#include "scheduler/analysis/validate.h"
#include "scheduler/model/yaml.h"
#include "scheduler/synthesis/synthesis.h"

namespace takt::sched {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

Problem example(const std::string& name) {
  const Result<Problem> problem = load_problem(std::string(TAKT_SOURCE_DIR) + "/configs/schedules/" + name + ".yaml");
  EXPECT_TRUE(problem) << problem.error().message;
  return problem.value_or(Problem{});
}

TEST(Examples, EveryOneLoadsAndIsAnsweredWithProof) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(TAKT_SOURCE_DIR) + "/configs/schedules")) {
    if (entry.path().extension() != ".yaml") continue;
    EXPECT_TRUE(is_problem_file(entry.path().string()));
    const Result<LoadedProblem> loaded = load_problem_and_modes(entry.path().string());
    ASSERT_TRUE(loaded) << loaded.error().message;
    ++files;
    if (loaded->modes) continue;
    const Problem* problem = &loaded->problem;
    const Answer answer = synthesize(*problem, {1, 60'000});
    if (answer.verdict == Verdict::kInfeasible) {
      EXPECT_TRUE(check_certificate(*problem, *answer.certificate)) << entry.path();
    } else {
      ASSERT_EQ(answer.verdict, Verdict::kFeasible) << entry.path() << answer.reason;
      const Status valid = validate(*problem, *answer.schedule);
      EXPECT_TRUE(valid) << entry.path() << valid.error().message;
    }
  }
  EXPECT_GE(files, 9);
  EXPECT_FALSE(is_problem_file(std::string(TAKT_SOURCE_DIR) + "/configs/pipelines/sim.yaml"));
}

// The same problem on three modules: what a smaller one gets is a smaller variant, never a table that does not hold.
TEST(Examples, OrinIsAdmittedOnEveryModule) {
  const std::string root = std::string(TAKT_SOURCE_DIR) + "/configs/";
  std::vector<std::int64_t> rates;
  for (const char* board : {"orin_agx", "orin_nx", "orin_nano"}) {
    const Result<Problem> problem =
        load_problem(root + "schedules/orin.yaml", root + "boards/" + std::string(board) + ".yaml");
    ASSERT_TRUE(problem) << problem.error().message;
    EXPECT_EQ(problem->board.name, board);
    ASSERT_EQ(problem->board.units.size(), 1U);
    const Answer answer = synthesize(*problem, {1, 60'000});
    ASSERT_EQ(answer.verdict, Verdict::kFeasible) << board << ": " << answer.reason;
    const Status valid = validate(*problem, *answer.schedule);
    EXPECT_TRUE(valid) << board << ": " << valid.error().message;
    // Submission, GPU, completion: in this order, the middle one on the GPU.
    std::size_t on_gpu = 0;
    for (const Slot& slot : answer.schedule->slots) {
      if (problem->stages[slot.stage].name != "lidar_detect") continue;
      EXPECT_EQ(slot.unit.has_value(), slot.segment == 1);
      on_gpu += slot.unit ? 1 : 0;
    }
    EXPECT_EQ(on_gpu, 1U);
    rates.push_back(answer.schedule->choices[0].rate);
  }
  EXPECT_EQ(rates[0], 3);
  const Result<Problem> none = load_problem(root + "schedules/orin.yaml", root + "boards/generic2.yaml");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("gpu"));
}

TEST(Examples, DayAndNightIsAdmittedWithEveryChange) {
  const Result<LoadedProblem> loaded =
      load_problem_and_modes(std::string(TAKT_SOURCE_DIR) + "/configs/schedules/day_and_night.yaml");
  ASSERT_TRUE(loaded) << loaded.error().message;
  ASSERT_TRUE(loaded->modes);
  const ModeSet& set = *loaded->modes;
  std::vector<Answer> answers;
  for (const ModeSpec& mode : set.modes) {
    answers.push_back(synthesize(mode.problem, {1, 60'000}));
    ASSERT_EQ(answers.back().verdict, Verdict::kFeasible) << mode.name << ": " << answers.back().reason;
    const Status valid = validate(mode.problem, *answers.back().schedule);
    EXPECT_TRUE(valid) << mode.name << ": " << valid.error().message;
  }
  const ModesAnswer judged = judge_modes(set, answers);
  EXPECT_EQ(judged.verdict, Verdict::kFeasible) << explain_modes(set, answers, judged);
  EXPECT_EQ(judged.changes.size(), 5u);
  // What asks for one table says that there are several.
  EXPECT_THAT(load_problem(std::string(TAKT_SOURCE_DIR) + "/configs/schedules/day_and_night.yaml").error().message,
              HasSubstr("it has modes"));
}

TEST(Examples, TextbookIsInfeasibleTwiceOver) {
  const Problem problem = example("textbook");
  const Answer answer = synthesize(problem);
  EXPECT_EQ(answer.verdict, Verdict::kInfeasible);
  EXPECT_THAT(answer.reason, AllOf(HasSubstr("cannot be below 91.200 ms"), HasSubstr("the limit is 60.000 ms"),
                                   HasSubstr("31.200 ms too much"), HasSubstr("on any number of cores")));
  EXPECT_THAT(answer.notes, Contains(AllOf(HasSubstr("3.50 GB stay resident"), HasSubstr("1.00 GB too much"))));
}

TEST(Examples, TextbookFitsWithDeclaredVariants) {
  const Problem problem = example("textbook_variants");
  const Answer answer = synthesize(problem);
  ASSERT_EQ(answer.verdict, Verdict::kFeasible) << answer.reason;
  EXPECT_LE(answer.schedule->bounds[0].bounds[0], milliseconds(60));
  EXPECT_THAT(answer.notes, Contains(HasSubstr("'detection' runs with variant 'lite'")));
}

// Running ahead doubles the rate and leaves the latency; planning on the previous prediction costs one period of it.
TEST(Examples, TextbookPipelinedIsFasterAndNoYounger) {
  const Problem problem = example("textbook_pipelined");
  const Answer answer = synthesize(problem);
  ASSERT_EQ(answer.verdict, Verdict::kFeasible) << answer.reason;
  const Duration latency = answer.schedule->bounds[0].bounds[0];
  EXPECT_GE(latency, milliseconds(91));
  EXPECT_LE(latency, milliseconds(92));
  const ChainBound previous = walk_with_skips(problem, *answer.schedule, 0, {0, 1, 0});
  EXPECT_EQ(previous.bounds[2], latency + milliseconds(50));
}

// Planning that does not wait for its prediction takes the one of the picture before: 120 ms instead of 91.
TEST(Examples, TextbookWithThePreviousPredictionPlansOnOlderData) {
  const Problem problem = example("textbook_previous");
  const Answer answer = synthesize(problem);
  ASSERT_EQ(answer.verdict, Verdict::kFeasible) << answer.reason;
  for (const Binding& binding : answer.schedule->bindings) {
    if (problem.stages[binding.stage].name == "planning") {
      EXPECT_EQ(binding.producer_shift, -1);
    }
  }
  const Duration age = answer.schedule->bounds[0].bounds[2];
  EXPECT_GE(age, microseconds(120'400));
  EXPECT_LE(age, microseconds(120'500));
  EXPECT_LE(answer.schedule->bounds[1].bounds[0], milliseconds(25));
}

TEST(Examples, BadFilesSayWhere) {
  const std::string path = testing::TempDir() + "/problem.yaml";
  const auto message = [&](const std::string& change) {
    std::ifstream file(std::string(TAKT_SOURCE_DIR) + "/configs/schedules/textbook.yaml");
    std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::size_t bar = change.find('|');
    const std::size_t at = text.find(change.substr(0, bar));
    EXPECT_NE(at, std::string::npos) << change;
    text.replace(at, bar, change.substr(bar + 1));
    const std::string board = std::string(TAKT_SOURCE_DIR) + "/configs/boards/textbook4.yaml";
    if (const std::size_t b = text.find("../boards/textbook4.yaml"); b != std::string::npos) text.replace(b, 24, board);
    std::ofstream(path) << text;
    const Result<Problem> problem = load_problem(path);
    return problem ? std::string("accepted") : problem.error().message;
  };
  EXPECT_EQ(message("name: textbook|name: other"), "accepted");
  EXPECT_THAT(message("rate_hz: 10, delay|rate_hz: 10, period_ms: 5, delay"), HasSubstr("problem.yaml:8:"));
  EXPECT_THAT(message("delay_ms: [0, 0]|delay_ms: [3, 1]"), HasSubstr("the shortest delay comes first"));
  EXPECT_THAT(message("delay_ms: [0, 0]|delay_ms: [-1, 1]"), HasSubstr("problem.yaml:8:"));
  EXPECT_THAT(message("rate_hz: 10\n|rate_hz: 12\n"), HasSubstr("not a whole number"));
  EXPECT_THAT(message("path: [camera, detection|path: [camera, detector"), HasSubstr("unknown stage 'detector'"));
  EXPECT_THAT(message("limit_ms: {latency|limit_ms: {delay"), HasSubstr("problem.yaml:"));
  EXPECT_THAT(message("stage: detection}|stage: planning}"), HasSubstr("does not come before this one"));
  EXPECT_THAT(message("cores: 1, ms: 40|cores: 1, ms: 1e300"), HasSubstr("problem.yaml:"));
  EXPECT_THAT(message("rate_hz: 10\n|rate_hz: 1000000\n"), HasSubstr("problem.yaml:"));
  EXPECT_THAT(message("board: |board: no/"), HasSubstr("board cannot be read"));
  // What only the whole shows wrong has the place of its part.
  EXPECT_THAT(message("delay_ms: [0, 0]|delay_ms: [0, 500]"),
              AllOf(HasSubstr("problem.yaml:8:5: "), HasSubstr("overtake each other")));
  EXPECT_THAT(message("chains:|modes: [{name: a, exits: [b]}, {name: b, exits: [a]}, {name: c}]\nchains:"),
              AllOf(testing::ContainsRegex("problem.yaml:[0-9]+:55: modes.2.: "),
                    HasSubstr("no sequence of exits leads there")));
}

// Planning them would take hours: refused at once, with the place.
TEST(Examples, AMillionJobsAreRefused) {
  const std::string path = testing::TempDir() + "/million.yaml";
  std::ofstream(path) << "name: million\nboard: " << TAKT_SOURCE_DIR << "/configs/boards/generic2.yaml\n"
                      << "hyperperiod_ms: 100000\nsensors: [{name: s, rate_hz: 10, delay_ms: [0, 1]}]\nstages:\n"
                      << "  - {name: a, rate_hz: 10000, inputs: [{name: i, sensor: s}],\n"
                      << "     variants: [{name: full, budgets: [{cores: 1, ms: 0.001}]}]}\n";
  const Result<Problem> problem = load_problem(path);
  ASSERT_FALSE(problem);
  EXPECT_THAT(problem.error().message, AllOf(HasSubstr("million.yaml:6:5"), HasSubstr("1000000 jobs")));
}

}  // namespace
}  // namespace takt::sched
