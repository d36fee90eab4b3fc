// The recorded perception tables around their hyperperiod, with a home core per stage.
#include <gtest/gtest.h>
#include <cmath>

#include "tests/scheduler/shop/readers.h"
#include "tests/scheduler/synthesis/ring.h"
#include "tests/support/test_data.h"

namespace takt::sched {
namespace {

// Neither the wrap-around nor home cores can make a table better, so equality with the recorded optimum is a proof.
TEST(Ring, TablesOfUpTo126JobsReachTheOptimumOfThoseThatNeedNotRepeat) {
  TAKT_TEST_DATA_OR_SKIP(root, "scheduling");
  const std::filesystem::path folder = std::filesystem::path(root) / "perception_synth";
  int tables = 0;
  for (const auto& entry : nlohmann::json::parse(shop::test::text_of(folder / "optima.json"))) {
    if (entry["jobs"].get<int>() > 126) continue;
    const std::string name = entry["file"];
    const Tick optimum = entry["opt_max_chain_latency"];
    const test::Ring ring = test::fold(shop::test::read_perception(folder / name), 30'000);
    test::RingSearch search(ring, optimum);
    ASSERT_EQ(search.solver().run(20'000), Differences::Stop::kSolution) << name;
    EXPECT_EQ(test::largest_latency(ring, search.table()), optimum) << name;
    // Nothing better comes out, which would refute the recorded optimum.
    test::RingSearch better(ring, optimum - 1);
    EXPECT_NE(better.solver().run(1'000), Differences::Stop::kSolution) << name;
    ++tables;
  }
  EXPECT_EQ(tables, 5);
}

TEST(Ring, OneMoreJobThanAnEngineHolds) {
  test::Ring ring;
  ring.turn = 100;
  ring.cores = 1;
  for (std::uint32_t j = 0; j < 3; ++j) ring.jobs.push_back({30, 0, 150, 0, j, true});
  // Three of 30 fit into 100 one after the other, the last ends at 90.
  test::RingSearch fits(ring, 90);
  ASSERT_EQ(fits.solver().run(1000), Differences::Stop::kSolution);
  EXPECT_EQ(test::largest_latency(ring, fits.table()), 90);
  test::RingSearch tight(ring, 89);
  EXPECT_EQ(tight.solver().run(1000), Differences::Stop::kNone);
  // A fourth needs 120 of 100: no limit helps.
  ring.jobs.push_back({30, 0, 250, 0, 3, true});
  test::RingSearch full(ring, 1000);
  EXPECT_EQ(full.solver().run(1000), Differences::Stop::kNone);
  EXPECT_TRUE(std::isinf(full.solver().least_parameter()));
}

}  // namespace
}  // namespace takt::sched
