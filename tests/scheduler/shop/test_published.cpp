// Published instances of the recorded data: the figures that fit into a test. All of them: tools/bench schedule.
#include <gtest/gtest.h>
#include <chrono>
#include <iostream>

#include "tests/scheduler/shop/readers.h"
#include "tests/support/test_data.h"

namespace takt::sched::shop {
namespace {

// Solved to optimality, valid, and equal to what is published.
void expect_optimum(const std::string& name, const Shop& shop, Time optimum, std::uint64_t conflicts) {
  ASSERT_TRUE(check(shop)) << name;
  EXPECT_LE(lower_bound(shop), optimum) << name;
  Limits limits;
  limits.conflicts = conflicts;
  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome = solve(shop, limits);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ASSERT_TRUE(outcome.plan) << name;
  const Status valid = verify(shop, *outcome.plan);
  EXPECT_TRUE(valid) << name << ": " << valid.error().message;
  EXPECT_EQ(outcome.proof, Proof::kOptimal) << name;
  EXPECT_EQ(outcome.plan->objective, optimum) << name;
  std::cout << name << ": " << shop.jobs.size() << " jobs, " << outcome.plan->objective << " proved with "
            << outcome.conflicts << " conflicts in " << seconds << " s\n";
}

TEST(Published, PerceptionTablesAreProved) {
  TAKT_TEST_DATA_OR_SKIP(root, "scheduling");
  const std::filesystem::path folder = root;
  int tables = 0;
  for (const auto& entry : nlohmann::json::parse(test::text_of(folder / "perception_synth" / "optima.json"))) {
    const std::string name = entry["file"];
    const Shop shop = test::read_perception(folder / "perception_synth" / name);
    EXPECT_EQ(shop.jobs.size(), entry["jobs"].get<std::size_t>());
    expect_optimum(name, shop, entry["opt_max_chain_latency"], 20'000);
    ++tables;
  }
  EXPECT_EQ(tables, 11);
}

TEST(Published, JobShopsAreProved) {
  TAKT_TEST_DATA_OR_SKIP(root, "scheduling");
  const std::filesystem::path folder = root;
  const auto known = test::read_best_known(folder / "jsplib" / "bks_scheduleopt_2026.json");
  for (const char* name :
       {"ft06", "la01", "la02", "la03", "la04", "la05", "ft10", "la16", "la17", "la18", "la19", "la20"}) {
    const test::Known best = known.at(name);
    ASSERT_EQ(best.lower, best.upper);
    expect_optimum(name, test::read_jsplib(folder / "jsplib" / "instances" / name), best.upper, 50'000);
  }
}

TEST(Published, NoResultIsBelowAKnownLowerBound) {
  TAKT_TEST_DATA_OR_SKIP(root, "scheduling");
  const std::filesystem::path folder = root;
  const auto flexible = test::read_best_known(folder / "fjsp" / "bks_scheduleopt_2026.json");
  for (const char* name : {"mk01", "mk03", "mk04", "mk08"}) {
    const test::Known best = flexible.at(name);
    expect_optimum(name, test::read_fjsp(folder / "fjsp" / "Brandimarte1993" / (std::string(name) + ".txt")),
                   best.upper, 20'000);
  }
  for (const char* name : {"mk02", "mk06", "mk10"}) {
    const Shop shop = test::read_fjsp(folder / "fjsp" / "Brandimarte1993" / (std::string(name) + ".txt"));
    Limits limits;
    limits.conflicts = 200;
    const Outcome outcome = solve(shop, limits);
    ASSERT_TRUE(outcome.plan);
    EXPECT_TRUE(verify(shop, *outcome.plan)) << name;
    EXPECT_GE(outcome.plan->objective, flexible.at(name).lower) << name;
    EXPECT_LE(outcome.lower_bound, flexible.at(name).upper) << name;
  }
}

TEST(Published, ProjectsAreProved) {
  TAKT_TEST_DATA_OR_SKIP(root, "scheduling");
  const std::filesystem::path folder = root;
  int proved = 0;
  int all = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "rcpsp" / "j30")) {
    const Shop shop = test::read_rcp(entry.path());
    Limits limits;
    limits.conflicts = 3'000;
    const Outcome outcome = solve(shop, limits);
    ASSERT_TRUE(outcome.plan);
    ASSERT_TRUE(verify(shop, *outcome.plan)) << entry.path();
    proved += outcome.proof == Proof::kOptimal ? 1 : 0;
    ++all;
  }
  std::cout << proved << " of " << all << " projects proved\n";
  EXPECT_GE(proved * 10, all * 9);
}

}  // namespace
}  // namespace takt::sched::shop
