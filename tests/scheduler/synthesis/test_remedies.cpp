// What would fit: every remedy is tried again here, and figures just suffice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <atomic>
#include <iostream>
#include <map>

#include "scheduler/model/what_if.h"
#include "scheduler/model/yaml.h"
#include "scheduler/synthesis/remedies.h"
#include "tests/scheduler/synthesis/infeasible.h"

namespace takt::sched {
namespace {

using testing::AllOf;
using testing::HasSubstr;

bool feasible(const Problem& problem) { return synthesize(problem, {1, 20'000}).verdict == Verdict::kFeasible; }

TEST(Remedies, EachOneByItselfMakesItFit) {
  std::map<std::string, int> kinds;
  int tried = 0;
  int exact = 0;
  for (std::uint64_t seed = 0; seed < 28; ++seed) {
    const Problem problem = test::infeasible_problem(seed);
    const std::vector<Remedy> found = remedies(problem);
    EXPECT_LE(found.size(), 8u);
    if (!found.empty()) ++kinds[problem.name.substr(0, problem.name.find(' '))];
    for (const Remedy& remedy : found) {
      EXPECT_FALSE(remedy.words.empty());
      if (remedy.change.empty()) continue;
      Problem changed = problem;
      if (remedy.words.find("beside the memory") != std::string::npos) changed.board.memory = 0;
      ASSERT_TRUE(apply_what_if(changed, remedy.change)) << remedy.change;
      EXPECT_TRUE(feasible(changed)) << problem.name << ": " << remedy.change << ", " << remedy.words;
      ++tried;
      // Two tenths more of a budget that a chain or a period allows are too much.
      const std::size_t equals = remedy.change.find(".budget=");
      if (equals == std::string::npos || (seed % 7 != 0 && seed % 7 != 1)) continue;
      const double ms = std::stod(remedy.change.substr(equals + 8)) + 0.2;
      Problem more = problem;
      ASSERT_TRUE(apply_what_if(more, remedy.change.substr(0, equals + 8) + std::to_string(ms) + "ms"));
      EXPECT_FALSE(feasible(more)) << problem.name << ": more than " << remedy.change << " fits as well";
      ++exact;
    }
  }
  std::cout << tried << " remedies tried, " << exact << " are exact\n";
  for (const auto& [kind, n] : kinds) std::cout << kind << ": " << n << " problems with remedies\n";
  EXPECT_GE(tried, 40);
  EXPECT_GE(exact, 4);
  EXPECT_GE(kinds.size(), 6u);
}

TEST(Remedies, TheTextbookCaseIsToldWhatToDo) {
  const Result<Problem> problem = load_problem(std::string(TAKT_SOURCE_DIR) + "/configs/schedules/textbook.yaml");
  ASSERT_TRUE(problem) << problem.error().message;
  const std::vector<Remedy> found = remedies(*problem);
  std::string all;
  for (const Remedy& remedy : found) all += remedy.words + " | " + remedy.change + "\n";
  // 60 ms leave detection 60 - 30.4 - 20.4 - 0.4 = 8.8 ms, less what slots lose to whole ticks.
  EXPECT_THAT(all, AllOf(HasSubstr("detection.budget=8.8ms"), HasSubstr("on one core or on two"),
                         HasSubstr("drive.latency=91.2ms"), HasSubstr("1.00 GB resident (memory alone)"),
                         HasSubstr("(beside the memory)")))
      << all;
}

// The core that is added needs a CPU that no other core has: here the one behind the last core's is taken.
TEST(Remedies, OneMoreCoreIsACoreOfItsOwn) {
  Problem problem = test::single();
  problem.board = test::two_cores(0);
  std::swap(problem.board.cores[0].cpu, problem.board.cores[1].cpu);
  problem.stages[0].variants = {test::variant("full", milliseconds(60))};
  for (const char* name : {"b", "c"}) {
    problem.stages.push_back(problem.stages[0]);
    problem.stages.back().name = name;
  }
  ASSERT_NE(synthesize(problem).verdict, Verdict::kFeasible);
  std::string all;
  for (const Remedy& remedy : remedies(problem)) all += remedy.words + "\n";
  EXPECT_THAT(all, HasSubstr("a board with one more core like 'core1'"));
}

// The reason states what is too much; the figures that would do stand with the changes that were tried, and nowhere
// else.
TEST(Remedies, TheReasonNamesNoOtherFigures) {
  for (std::uint64_t seed = 0; seed < 28; ++seed) {
    const Answer answer = synthesize(test::infeasible_problem(seed));
    EXPECT_THAT(answer.reason, testing::Not(HasSubstr("would fit")));
    EXPECT_THAT(answer.reason, testing::Not(HasSubstr("to at least")));
    EXPECT_THAT(answer.reason, testing::Not(HasSubstr("rate of at most")));
  }
}

// A search that was stopped took nothing for a proof.
TEST(Synthesis, StopsWhenToldTo) {
  const Result<Problem> problem = load_problem(std::string(TAKT_SOURCE_DIR) + "/configs/schedules/ros2_reference.yaml");
  ASSERT_TRUE(problem) << problem.error().message;
  std::atomic<bool> stop{true};
  SynthesisOptions options{1, 1'000'000'000};
  options.stop = &stop;
  const Answer nothing = synthesize(*problem, options);
  EXPECT_EQ(nothing.verdict, Verdict::kUndecided);
  EXPECT_TRUE(nothing.cut_by_time);
  EXPECT_THAT(nothing.reason, HasSubstr("before the search was stopped"));
}

TEST(Remedies, NothingIsWrongWithWhatFits) { EXPECT_TRUE(remedies(test::perception()).empty()); }

TEST(Remedies, AreTheSameEveryTime) {
  const Problem problem = test::infeasible_problem(5);
  const std::vector<Remedy> first = remedies(problem);
  const std::vector<Remedy> second = remedies(problem);
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].words, second[i].words);
}

}  // namespace
}  // namespace takt::sched
