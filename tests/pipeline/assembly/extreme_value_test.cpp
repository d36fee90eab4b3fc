#include "pipeline/assembly/extreme_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cmath>
#include <random>

namespace takt::pipeline {
namespace {

using ::testing::HasSubstr;

// Base of 1 ms plus what `draw` gives in microseconds.
template <class Draw>
std::vector<Duration> times(std::size_t n, const Draw& draw) {
  std::vector<Duration> out;
  for (std::size_t i = 0; i < n; ++i) {
    out.push_back({1'000'000 + static_cast<std::int64_t>(1000 * draw(static_cast<double>(i)))});
  }
  return out;
}

class Uniform {
 public:
  explicit Uniform(std::uint64_t seed) : engine_(seed) {}
  double operator()() { return (static_cast<double>(engine_() >> 11) + 0.5) * 0x1p-53; }

 private:
  std::mt19937_64 engine_;
};

TEST(Tail, AnExponentialTailIsFoundAgain) {
  Uniform u(1);
  const TailEstimate tail = estimate_tail(times(5000, [&](double) { return -50 * std::log(u()); }));
  ASSERT_EQ(tail.refused, "");
  EXPECT_EQ(tail.checks.size(), 4U);
  EXPECT_NEAR(tail.shape, 0, 0.15);
  // The level that an exponential of mean 50 us exceeds once in a million: 50 ln(1e6) = 691 us.
  EXPECT_NEAR(tail.once_in_million.us(), 1000 + 691, 200);
  EXPECT_GT(tail.once_in_billion, tail.once_in_million);
}

TEST(Tail, ABoundedTailHasANegativeShapeAndStaysBelowItsEnd) {
  Uniform u(2);
  const TailEstimate tail = estimate_tail(times(5000, [&](double) { return 100 * u(); }));
  ASSERT_EQ(tail.refused, "");
  EXPECT_LT(tail.shape, -0.5);
  EXPECT_LT(tail.once_in_billion.us(), 1000 + 102);
}

TEST(Tail, DriftIsRefused) {
  Uniform u(3);
  const TailEstimate tail = estimate_tail(times(3000, [&](double i) { return 0.03 * i - 50 * std::log(u()); }));
  EXPECT_THAT(tail.refused, HasSubstr("stationarity"));
  EXPECT_EQ(tail.once_in_million.ns, 0);
}

TEST(Tail, DependentTimesAreRefused) {
  Uniform u(4);
  double last = 0;
  const TailEstimate tail = estimate_tail(times(3000, [&](double) {
    last = 0.6 * last - 20 * std::log(u());
    return last;
  }));
  EXPECT_THAT(tail.refused, HasSubstr("independence"));
}

TEST(Tail, ChangedSpreadIsRefused) {
  Uniform u(5);
  // Equal means, so that nothing but the distribution differs between the halves.
  const TailEstimate tail =
      estimate_tail(times(3000, [&](double i) { return i < 1500 ? 100 + 20 * (u() - 0.5) : 100 + 190 * (u() - 0.5); }));
  EXPECT_THAT(tail.refused, HasSubstr("identical distribution"));
}

TEST(Tail, ATailThatIsNoParetoIsRefused) {
  Uniform u(6);
  // One job in twenty takes about 300 us more: two humps above the threshold.
  const TailEstimate tail = estimate_tail(times(5000, [&](double) { return u() < 0.05 ? 400 + 5 * u() : 100 * u(); }));
  EXPECT_THAT(tail.refused, HasSubstr("goodness of fit"));
}

TEST(Tail, FewOrEqualTimesAreRefusedInWords) {
  EXPECT_THAT(estimate_tail(times(499, [](double i) { return i; })).refused, HasSubstr("too few"));
  EXPECT_THAT(estimate_tail(times(1000, [](double) { return 7; })).refused, HasSubstr("equal"));
}

// One in a hundred of the true hypotheses may be refused by each test at 1 %, one in twenty by the fit.
TEST(Tail, SoundDataAreSeldomRefused) {
  int refused = 0;
  for (std::uint64_t seed = 100; seed < 140; ++seed) {
    Uniform u(seed);
    refused += estimate_tail(times(1000, [&](double) { return -50 * std::log(u()); })).refused.empty() ? 0 : 1;
  }
  EXPECT_LE(refused, 9);
}

}  // namespace
}  // namespace takt::pipeline
