#include "scheduler/shop/tabu.h"

#include <gtest/gtest.h>
#include <iostream>

#include "tests/scheduler/shop/random_shop.h"

namespace takt::sched::shop {
namespace {

// Five or six jobs with one to three ways to run, on two or three machines.
Shop flexible_shop(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  Shop shop;
  const std::int64_t machines = 2 + below(2);
  shop.capacities.assign(static_cast<std::size_t>(machines), 1);
  for (std::uint32_t j = 0; j < 5 + seed % 2; ++j) {
    Job job;
    for (std::int64_t m = 0; m < 1 + below(3); ++m) {
      const auto machine = static_cast<std::uint32_t>(below(static_cast<std::uint64_t>(machines)));
      job.modes.push_back({1 + below(9), {{machine, 1}}});
    }
    job.release = below(4);
    job.tail = below(3) == 0 ? kNoTail : below(6);
    shop.jobs.push_back(job);
    for (std::uint32_t before = 0; before < j; ++before) {
      if (below(4) == 0) shop.orders.push_back({before, j, below(3)});
    }
  }
  shop.jobs.back().tail = 0;
  return shop;
}

TEST(Tabu, EveryPlanIsValidAndMostAreOptimal) {
  int optimal = 0;
  int worse_start = 0;
  constexpr int kShops = 60;
  for (std::uint64_t seed = 0; seed < kShops; ++seed) {
    const Shop shop = flexible_shop(seed);
    ASSERT_TRUE(check(shop)) << seed;
    ASSERT_TRUE(Tabu::applies(shop)) << seed;
    const std::optional<Time> best = test::best_by_force(shop);
    ASSERT_TRUE(best);
    // From a poor plan: one job after the other, each in its last mode.
    Plan start;
    Time now = 0;
    for (const Job& job : shop.jobs) {
      now = std::max(now, job.release) + 3;
      start.starts.push_back(now);
      start.modes.push_back(static_cast<std::uint32_t>(job.modes.size() - 1));
      now += job.modes.back().duration;
      if (job.tail != kNoTail) start.objective = std::max(start.objective, now + job.tail);
    }
    ASSERT_TRUE(verify(shop, start)) << seed;
    std::mt19937_64 random(seed);
    const Paths paths(shop);
    const Plan found = Tabu(shop, paths).improve(start, 3000, *best, random, [] { return false; });
    const Status valid = verify(shop, found);
    ASSERT_TRUE(valid) << seed << ": " << valid.error().message;
    EXPECT_GE(found.objective, *best) << seed;
    EXPECT_LE(found.objective, start.objective) << seed;
    worse_start += start.objective > *best ? 1 : 0;
    optimal += found.objective == *best ? 1 : 0;
  }
  std::cout << optimal << " of " << kShops << " optimal, " << worse_start << " did not start so\n";
  EXPECT_GE(optimal, kShops - 3);
  EXPECT_GE(worse_start, kShops / 2);
}

TEST(Tabu, LeavesOtherShopsAlone) {
  Shop shop = flexible_shop(1);
  shop.jobs[0].deadline = 100;
  EXPECT_FALSE(Tabu::applies(shop));
  shop = flexible_shop(1);
  shop.capacities[0] = 2;
  EXPECT_FALSE(Tabu::applies(shop));
  shop = flexible_shop(1);
  shop.jobs[0].modes[0].uses.push_back({1, 1});
  EXPECT_FALSE(Tabu::applies(shop));
}

}  // namespace
}  // namespace takt::sched::shop
