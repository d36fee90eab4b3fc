#include "compiler/lower/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "tests/compiler/lower/memory_instances.h"

namespace takt::lower {
namespace {

std::string data_folder() {
  const char* folder = std::getenv("TAKT_TEST_DATA");
  return folder != nullptr ? std::string(folder) + "/memory/" : "";
}

TEST(MemoryPlan, NothingNeedsNothing) {
  const MemoryPlan plan = plan_memory({});
  EXPECT_EQ(plan.peak, 0U);
  EXPECT_EQ(plan.proof, plan::Proof::kOptimal);
}

TEST(MemoryPlan, BlocksThatDoNotMeetShareTheirPlace) {
  const std::vector<Block> blocks = {{100, 0, 1}, {60, 2, 3}, {64, 1, 2}};
  const MemoryPlan plan = plan_memory(blocks);
  EXPECT_TRUE(validate(blocks, plan, plan::kAlignment));
  EXPECT_EQ(plan.peak, 192U);  // 128 and 64 at step 1
  EXPECT_EQ(plan.proof, plan::Proof::kOptimal);
}

// The least peak by trying every order, each block at its lowest place above those before it.
std::uint64_t least_peak(const std::vector<Block>& blocks) {
  std::vector<std::size_t> order(blocks.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::uint64_t least = UINT64_MAX;
  std::vector<std::uint64_t> end(blocks.size());
  do {
    std::uint64_t peak = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Block& b = blocks[order[i]];
      std::uint64_t at = 0;
      for (std::size_t j = 0; j < i; ++j) {
        const Block& other = blocks[order[j]];
        if (b.first <= other.last && other.first <= b.last) at = std::max(at, end[order[j]]);
      }
      end[order[i]] = at + b.bytes;
      peak = std::max(peak, end[order[i]]);
    }
    least = std::min(least, peak);
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

// Nine blocks for which the peak of live bytes cannot be reached: the search has to end to know it.
TEST(MemoryPlan, SearchProvesThatLessIsImpossible) {
  const std::vector<Block> blocks = {{4, 2, 5}, {1, 0, 3}, {3, 2, 2}, {4, 8, 8}, {2, 6, 7},
                                     {3, 6, 6}, {2, 4, 7}, {1, 3, 6}, {4, 7, 8}};
  const MemoryPlan plan = plan_memory(blocks, {.alignment = 1});
  EXPECT_EQ(plan.lower_bound, 8U);
  EXPECT_EQ(plan.peak, 9U);
  EXPECT_EQ(plan.peak, least_peak(blocks));
  EXPECT_EQ(plan.proof, plan::Proof::kSearched);
  EXPECT_EQ(plan_memory(blocks, {.alignment = 1, .node_limit = 3}).proof, plan::Proof::kOpen);
}

TEST(MemoryPlan, SearchFindsWhatGreedyMisses) {
  const std::vector<Block> blocks = {{1, 1, 4}, {4, 1, 3}, {4, 1, 1}, {3, 4, 5}, {2, 4, 4},
                                     {1, 3, 6}, {4, 5, 6}, {1, 3, 6}, {1, 2, 4}, {2, 0, 5}};
  const MemoryPlan plan = plan_memory(blocks, {.alignment = 1});
  EXPECT_EQ(plan.greedy_peak, 13U);
  EXPECT_EQ(plan.peak, 12U);
  EXPECT_EQ(plan.lower_bound, 11U);
  EXPECT_EQ(plan.proof, plan::Proof::kSearched);
}

TEST(MemoryPlan, SmallProblemsAreSolvedToTheEnd) {
  std::mt19937 engine(3);
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  int improved = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<Block> blocks(5 + random() % 5);
    for (Block& b : blocks) {
      b.first = random() % 7;
      b.last = b.first + random() % 4;
      b.bytes = 64 * (1 + random() % 6);
    }
    const MemoryPlan plan = plan_memory(blocks);
    const Status valid = validate(blocks, plan, plan::kAlignment);
    ASSERT_TRUE(valid) << valid.error().message;
    ASSERT_GE(plan.peak, plan.lower_bound);
    ASSERT_LE(plan.peak, plan.greedy_peak);
    ASSERT_LE(plan.greedy_peak, plan.greedy_by_size_peak);
    ASSERT_NE(plan.proof, plan::Proof::kOpen);
    improved += plan.peak < plan.greedy_peak ? 1 : 0;
    if (blocks.size() < 7) {
      ASSERT_EQ(plan.peak, least_peak(blocks)) << "round " << round;
    }
  }
  EXPECT_GT(improved, 0);
}

TEST(MemoryPlan, IsDeterministic) {
  std::vector<Block> blocks;
  std::mt19937 random(5);
  for (int i = 0; i < 60; ++i) {
    const auto first = static_cast<std::uint32_t>(random() % 50);
    blocks.push_back({64 * (1 + random() % 20), first, first + static_cast<std::uint32_t>(random() % 10)});
  }
  const MemoryPlan a = plan_memory(blocks), b = plan_memory(blocks);
  EXPECT_EQ(a.offsets, b.offsets);
  EXPECT_EQ(a.nodes, b.nodes);
}

TEST(MemoryPlan, ValidatorFindsWhatIsWrong) {
  const std::vector<Block> blocks = {{64, 0, 2}, {64, 1, 3}};
  MemoryPlan plan = plan_memory(blocks);
  ASSERT_TRUE(validate(blocks, plan, 64));
  plan.offsets = {0, 32};
  EXPECT_THAT(validate(blocks, plan, 64).error().message, testing::HasSubstr("not aligned"));
  plan.offsets = {0, 0};
  EXPECT_THAT(validate(blocks, plan, 64).error().message, testing::HasSubstr("same place"));
  plan.offsets = {0, 128};
  EXPECT_THAT(validate(blocks, plan, 64).error().message, testing::HasSubstr("needs 192"));
}

struct Instance {
  const char* path;
  std::uint64_t peak;        // that is to be reached
  std::uint64_t node_limit;  // some problems were made to be hard
};

class Recorded : public testing::TestWithParam<Instance> {};

TEST_P(Recorded, IsValidAndNeverWorseThanGreedyBySize) {
  const std::string folder = data_folder();
  if (folder.empty()) GTEST_SKIP() << "set TAKT_TEST_DATA to the folder of the recorded data";
  const std::vector<Block> blocks = read_instance(folder + GetParam().path);
  ASSERT_FALSE(blocks.empty());
  const MemoryPlan plan = plan_memory(blocks, {.alignment = 1, .node_limit = GetParam().node_limit});
  const Status valid = validate(blocks, plan, 1);
  ASSERT_TRUE(valid) << valid.error().message;
  EXPECT_LE(plan.peak, plan.greedy_by_size_peak);
  const double ratio = static_cast<double>(plan.peak) / static_cast<double>(plan.lower_bound);
  std::printf("  %-36s %4zu blocks  peak/lower bound %.4f  greedy %.4f  by size %.4f  %s  %llu nodes\n",
              GetParam().path, blocks.size(), ratio,
              static_cast<double>(plan.greedy_peak) / static_cast<double>(plan.lower_bound),
              static_cast<double>(plan.greedy_by_size_peak) / static_cast<double>(plan.lower_bound),
              plan::name_of(plan.proof), static_cast<unsigned long long>(plan.nodes));
  EXPECT_LE(plan.peak, GetParam().peak);
}

// E and I take longer: tools/bench memory.
constexpr std::uint64_t kCapacity = 1048576;
constexpr std::uint64_t kDefault = MemoryOptions{}.node_limit;
INSTANTIATE_TEST_SUITE_P(Instances, Recorded,
                         testing::Values(Instance{"minimalloc/challenging/A.1048576.csv", kCapacity, 2'000'000},
                                         Instance{"minimalloc/challenging/C.1048576.csv", kCapacity, kDefault},
                                         Instance{"minimalloc/challenging/G.1048576.csv", kCapacity, kDefault},
                                         Instance{"minimalloc/challenging/K.1048576.csv", kCapacity, kDefault},
                                         Instance{"minimalloc/examples/input.12.csv", 12, kDefault},
                                         Instance{"idealloc_somas/resnet50.csv", 1515472556, kDefault}));

}  // namespace
}  // namespace takt::lower
