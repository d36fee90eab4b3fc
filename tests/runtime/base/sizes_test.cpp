#include "runtime/base/sizes.h"

#include <gtest/gtest.h>
#include <limits>

namespace takt {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

TEST(Sizes, AddAndMultiplyTellOverflow) {
  EXPECT_EQ(checked_add(kMax - 1, 1), kMax);
  EXPECT_EQ(checked_add(kMax, 1), std::nullopt);
  EXPECT_EQ(checked_mul(1ULL << 32, (1ULL << 32) - 1), (1ULL << 32) * ((1ULL << 32) - 1));
  EXPECT_EQ(checked_mul(1ULL << 32, 1ULL << 32), std::nullopt);
  EXPECT_EQ(checked_mul(0, kMax), 0u);
}

TEST(Sizes, RoundUp) {
  EXPECT_EQ(checked_round_up(0, 64), 0u);
  EXPECT_EQ(checked_round_up(1, 64), 64u);
  EXPECT_EQ(checked_round_up(64, 64), 64u);
  EXPECT_EQ(checked_round_up(65, 64), 128u);
  EXPECT_EQ(checked_round_up(10, 3), 12u);
  EXPECT_EQ(checked_round_up(kMax - 62, 64), std::nullopt);
  EXPECT_EQ(checked_round_up(kMax - 63, 64), kMax - 63);
  EXPECT_EQ(round_up(1000, 64), 1024u);
}

}  // namespace
}  // namespace takt
