#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

#include "scheduler/analysis/explain.h"
#include "scheduler/synthesis/synthesis.h"
#include "tests/scheduler/synthesis/problems.h"

namespace takt::sched {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) out.push_back(line);
  return out;
}

TEST(Explain, FeasibleShowsEverything) {
  const Problem problem = test::perception();
  const Answer answer = synthesize(problem);
  const std::string text = explain(problem, answer, 100);
  EXPECT_THAT(text, StartsWith("FEASIBLE: 'perception' on board 'generic2'"));
  EXPECT_THAT(text, AllOf(HasSubstr("Bounds"), HasSubstr("age until replaced"), HasSubstr("150.000 ms"),
                          HasSubstr("camera delay 14.000 ms"), HasSubstr("Utilisation"), HasSubstr("25.0 %"),
                          HasSubstr("30 Hz"), HasSubstr("A camera_detect  B lidar_detect"), HasSubstr("fusion#0(-1)")));
  EXPECT_THAT(text, HasSubstr(answer.schedule->hash().hex()));
}

TEST(Explain, GanttKeepsItsWidthAndTheShareOfEachStage) {
  const Problem problem = test::perception();
  const Answer answer = synthesize(problem);
  for (const std::size_t width : {40u, 100u, 160u}) {
    std::size_t lidar = 0;
    std::size_t rows = 0;
    for (const std::string& line : lines(explain(problem, answer, width))) {
      if (!line.starts_with("  core0  ") && !line.starts_with("  core1  ")) continue;
      if (line.find('%') != std::string::npos) continue;  // utilisation
      ++rows;
      EXPECT_LE(line.size(), width);
      lidar += static_cast<std::size_t>(std::count(line.begin(), line.end(), 'B'));
    }
    EXPECT_EQ(rows, 2u);
    EXPECT_NEAR(static_cast<double>(lidar) / static_cast<double>(width - 9), 0.215, 0.05) << width;
  }
}

TEST(Explain, InfeasibleSaysWhy) {
  Problem problem = test::perception();
  problem.chains[1].limits[0] = milliseconds(150);
  const std::string text = explain(problem, synthesize(problem), 100);
  EXPECT_THAT(text, StartsWith("INFEASIBLE: "));
  EXPECT_THAT(text,
              AllOf(HasSubstr("why: chain 'lidar_fusion'"), HasSubstr("20.000 ms too much"), Not(HasSubstr("Table"))));
}

TEST(Explain, UndecidedShowsTheBestTableAndWhatItBreaks) {
  Problem problem = test::perception();
  Answer answer = synthesize(problem);
  answer.verdict = Verdict::kUndecided;
  answer.reason = "no table was found";
  answer.notes = {"a note"};
  problem.chains[0].limits[0] = milliseconds(20);
  const std::string text = explain(problem, answer, 100);
  EXPECT_THAT(text, AllOf(StartsWith("UNDECIDED"), HasSubstr("no table was found"), HasSubstr("note: a note"),
                          HasSubstr("EXCEEDED"), HasSubstr("Table")));
}

// Nothing that others would promise is below the exact bound, and the first table found is no better.
TEST(Compare, OthersAreNeverBelowTheExactBound) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Problem problem = seed == 0 ? test::perception() : test::random_problem(seed, false);
    const Answer answer = synthesize(problem, {seed, 500});
    if (!answer.schedule) continue;
    SynthesisOptions options{seed, 500};
    options.first_found = true;
    const Answer first = synthesize(problem, options);
    ASSERT_TRUE(first.schedule);
    const std::vector<Comparison> rows = comparisons(problem, *answer.schedule, &*first.schedule);
    ASSERT_EQ(rows.size(), problem.chains.size());
    for (const Comparison& row : rows) {
      EXPECT_EQ(row.table, answer.schedule->bounds[row.chain].bounds[1]) << problem.name;
      EXPECT_GE(row.davare, row.table) << problem.name;
      EXPECT_GE(row.duerr, row.table) << problem.name;
      if (row.kloda) {
        EXPECT_GE(*row.kloda, row.table) << problem.name;
      }
      EXPECT_TRUE(row.first_found);
    }
  }
}

TEST(Compare, StandsInTheTextAndInTheJson) {
  const Problem problem = test::perception();
  const Answer answer = synthesize(problem);
  Beside beside;
  beside.comparisons = comparisons(problem, *answer.schedule, nullptr);
  beside.scale_with_new_table = 1.25;
  EXPECT_THAT(explain(problem, answer, 100, beside), AllOf(HasSubstr("Davare 2007"), HasSubstr("by at least 1.25")));
  EXPECT_THAT(explain(problem, answer, 100), Not(HasSubstr("Davare")));
  const auto json = nlohmann::json::parse(to_json(problem, answer, beside));
  EXPECT_EQ(json["comparisons"].size(), 3u);
  EXPECT_TRUE(json["comparisons"][0]["first_found_ns"].is_null());
  EXPECT_EQ(json["comparisons"][0]["davare_ns"], beside.comparisons[0].davare.ns);
  EXPECT_EQ(json["budget_scale_new_table"], 1.25);
}

TEST(Explain, WhatWouldFitStandsBehindTheReason) {
  Problem problem = test::perception();
  problem.chains[1].limits[0] = milliseconds(150);
  const Answer answer = synthesize(problem);
  Beside beside;
  beside.remedies = {{"lidar_fusion.latency=170ms", "raise the limit"}, {"", "another core"}};
  EXPECT_THAT(
      explain(problem, answer, 100, beside),
      AllOf(HasSubstr("raise the limit\n      --what-if lidar_fusion.latency=170ms"), HasSubstr("another core")));
  const auto json = nlohmann::json::parse(to_json(problem, answer, beside));
  EXPECT_EQ(json["remedies"][0]["what_if"], "lidar_fusion.latency=170ms");
  EXPECT_EQ(json["remedies"][1]["words"], "another core");
}

TEST(Json, HoldsTheSameFigures) {
  const Problem problem = test::perception();
  const Answer answer = synthesize(problem);
  const auto json = nlohmann::json::parse(to_json(problem, answer));
  EXPECT_EQ(json["verdict"], "feasible");
  EXPECT_EQ(json["hash"], answer.schedule->hash().hex());
  EXPECT_EQ(json["slots"].size(), answer.schedule->slots.size());
  EXPECT_EQ(json["slots"][0]["start_ticks"], answer.schedule->slots[0].start);
  EXPECT_EQ(json["chains"][1]["name"], "lidar_fusion");
  EXPECT_EQ(json["chains"][1]["latency_ns"], answer.schedule->bounds[1].bounds[0].ns);
  EXPECT_EQ(json["chains"][1]["latency_limit_ns"], 250'000'000);
  EXPECT_TRUE(json["chains"][1]["reaction_limit_ns"].is_null());
  EXPECT_EQ(json["bindings"].size(), answer.schedule->bindings.size());
  EXPECT_GE(json["budget_scale"], 1.0);
  EXPECT_EQ(to_json(problem, answer), to_json(problem, synthesize(problem)));
  Problem impossible = problem;
  impossible.chains[1].limits[0] = milliseconds(150);
  const auto refused = nlohmann::json::parse(to_json(impossible, synthesize(impossible)));
  EXPECT_EQ(refused["verdict"], "infeasible");
  EXPECT_FALSE(refused.contains("slots"));
}

}  // namespace
}  // namespace takt::sched
