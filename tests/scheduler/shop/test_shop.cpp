#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iostream>

#include "scheduler/shop/shop.h"
#include "tests/scheduler/shop/random_shop.h"

namespace takt::sched::shop {
namespace {

using testing::HasSubstr;

TEST(Shop, EqualsBruteForceOnSmallOnes) {
  int infeasible = 0;
  int searched = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const Shop shop = test::random_shop(seed);
    ASSERT_TRUE(check(shop)) << seed;
    const std::optional<Time> best = test::best_by_force(shop);
    const Outcome outcome = solve(shop);
    ASSERT_EQ(outcome.proof, best ? Proof::kOptimal : Proof::kInfeasible) << seed;
    if (!best) {
      ++infeasible;
      continue;
    }
    ASSERT_EQ(outcome.plan->objective, *best) << seed;
    EXPECT_EQ(outcome.lower_bound, *best) << seed;
    const Status valid = verify(shop, *outcome.plan);
    EXPECT_TRUE(valid) << seed << ": " << valid.error().message;
    EXPECT_LE(lower_bound(shop), *best) << seed;
    searched += lower_bound(shop) < *best ? 1 : 0;
  }
  std::cout << infeasible << " infeasible, " << searched << " above their lower bound\n";
  EXPECT_GT(infeasible, 20);
  EXPECT_GT(searched, 40);
}

// Everything on one machine with heads and tails: the bound is met by preemption only.
TEST(Shop, OneMachineByHand) {
  Shop shop;
  shop.capacities = {1};
  const auto add = [&](Time release, Time duration, Time tail) {
    Job job;
    job.modes = {{duration, {{0, 1}}}};
    job.release = release;
    job.tail = tail;
    shop.jobs.push_back(job);
  };
  add(0, 10, 0);
  add(3, 2, 20);
  EXPECT_EQ(lower_bound(shop), 25);
  const Outcome outcome = solve(shop);
  EXPECT_EQ(outcome.proof, Proof::kOptimal);
  EXPECT_EQ(outcome.plan->objective, 25);
  EXPECT_EQ(outcome.plan->starts[1], 3);
}

TEST(Shop, VerifyNamesTheBrokenRule) {
  Shop shop;
  shop.capacities = {1, 2};
  for (int j = 0; j < 3; ++j) {
    Job job;
    job.modes = {{5, {{0, 1}, {1, 1}}}};
    shop.jobs.push_back(job);
  }
  shop.orders = {{0, 1, 2}};
  shop.jobs[2].release = 1;
  shop.jobs[2].deadline = 40;
  const Plan good{{0, 7, 12}, {0, 0, 0}, 17};
  ASSERT_TRUE(verify(shop, good));
  const auto after = [&](const auto& change) {
    Plan plan = good;
    change(plan);
    const Status status = verify(shop, plan);
    return status ? std::string("accepted") : status.error().message;
  };
  EXPECT_THAT(after([](Plan& p) { p.objective = 16; }), HasSubstr("objective is 17"));
  EXPECT_THAT(after([](Plan& p) { p.starts[1] = 6; }), HasSubstr("before job 0 is through"));
  EXPECT_THAT(after([](Plan& p) { p.starts[2] = 9; }), HasSubstr("resource 0 holds 2 of 1 at 9"));
  EXPECT_THAT(after([](Plan& p) { p.starts[2] = 0; }), HasSubstr("before its release"));
  EXPECT_THAT(after([](Plan& p) { p.starts[2] = 36; }), HasSubstr("after its deadline"));
  EXPECT_THAT(after([](Plan& p) { p.modes[2] = 1; }), HasSubstr("unknown way"));
  EXPECT_THAT(after([](Plan& p) { p.starts.pop_back(); }), HasSubstr("another number"));
}

TEST(Shop, RefusesWhatMakesNoSense) {
  const Shop good = test::random_shop(1);
  const auto after = [&](const auto& change) {
    Shop shop = good;
    change(shop);
    const Status status = check(shop);
    if (status) return std::string("accepted");
    EXPECT_EQ(status.error().code, Code::kConfiguration);
    EXPECT_EQ(solve(shop).proof, Proof::kUnknown);
    return status.error().message;
  };
  EXPECT_THAT(after([](Shop& s) { s.capacities[0] = 0; }), HasSubstr("no capacity"));
  EXPECT_THAT(after([](Shop& s) { s.jobs[0].modes.clear(); }), HasSubstr("no way to run"));
  EXPECT_THAT(after([](Shop& s) { s.jobs[0].release = -1; }), HasSubstr("time out of range"));
  EXPECT_THAT(after([](Shop& s) { s.jobs[0].modes[0].duration = kNever; }), HasSubstr("duration out of range"));
  EXPECT_THAT(after([](Shop& s) { s.jobs[0].modes[0].uses = {{99, 1}}; }), HasSubstr("unknown one"));
  EXPECT_THAT(after([](Shop& s) { s.orders.push_back({0, 99, 0}); }), HasSubstr("unknown job"));
  EXPECT_THAT(after([](Shop& s) {
                s.orders.push_back({1, 0, 0}), s.orders.push_back({0, 1, 0});
              }),
              HasSubstr("circle"));
  EXPECT_THAT(after([](Shop& s) { s.orders.push_back({0, 1, -1}); }), HasSubstr("delay out of range"));
}

TEST(Shop, SameSeedAndLimitGiveTheSamePlan) {
  std::mt19937_64 random(5);
  Shop shop;
  shop.capacities.assign(8, 1);
  for (std::uint32_t j = 0; j < 12; ++j) {
    std::vector<std::uint32_t> machines{0, 1, 2, 3, 4, 5, 6, 7};
    for (std::size_t i = machines.size(); i > 1; --i) std::swap(machines[i - 1], machines[random() % i]);
    for (const std::uint32_t machine : machines) {
      Job job;
      job.modes = {{static_cast<Time>(1 + random() % 99), {{machine, 1}}}};
      const auto index = static_cast<std::uint32_t>(shop.jobs.size());
      shop.jobs.push_back(job);
      if (machine != machines.front()) shop.orders.push_back({index - 1, index, 0});
    }
  }
  Limits limits;
  limits.conflicts = 500;
  const Outcome a = solve(shop, limits);
  const Outcome b = solve(shop, limits);
  EXPECT_EQ(a.plan->starts, b.plan->starts);
  EXPECT_EQ(a.conflicts, b.conflicts);
  EXPECT_FALSE(a.cut_by_time);
  limits.conflicts = 50'000;
  const Outcome more = solve(shop, limits);
  EXPECT_LE(more.plan->objective, a.plan->objective);
}

}  // namespace
}  // namespace takt::sched::shop
