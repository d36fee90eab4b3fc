#include "runtime/base/suggest.h"

#include <gtest/gtest.h>
#include <vector>

namespace takt {
namespace {

const std::vector<std::string> kWords = {"rate_hz", "budget_us", "inputs", "output"};

TEST(Suggest, FindsTheNearWord) {
  EXPECT_EQ(nearest_word("rate_zh", kWords), "rate_hz");     // transposed
  EXPECT_EQ(nearest_word("budgetus", kWords), "budget_us");  // dropped
  EXPECT_EQ(nearest_word("inputss", kWords), "inputs");      // doubled
  EXPECT_EQ(nearest_word("outptu", kWords), "output");
}

TEST(Suggest, StaysSilentWhenNothingIsNear) {
  EXPECT_EQ(nearest_word("colour", kWords), "");
  EXPECT_EQ(nearest_word("", kWords), "");
  EXPECT_EQ(nearest_word("x", {}), "");
}

TEST(Suggest, TiesGoToTheFirst) {
  const std::vector<std::string> words = {"cat", "car"};
  EXPECT_EQ(nearest_word("caz", words), "cat");
}

TEST(Suggest, Sentences) {
  EXPECT_EQ(did_you_mean("rate_zh", kWords), "; did you mean 'rate_hz'?");
  EXPECT_EQ(did_you_mean("colour", kWords), "; known: rate_hz, budget_us, inputs, output");
  EXPECT_EQ(did_you_mean("colour", {}), "");
}

}  // namespace
}  // namespace takt
