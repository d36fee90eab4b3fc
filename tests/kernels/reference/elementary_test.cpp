// Against the C library in extended precision.
#include "kernels/reference/elementary.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/reference/elementary_f32.h"

namespace takt::kernels {
namespace {

// A deterministic sweep that is neither regular nor random.
template <class Check>
void sweep(double low, double high, Check check) {
  constexpr int kSteps = 200'000;
  for (int i = 0; i <= kSteps; ++i) {
    const double t = static_cast<double>(i) / kSteps;
    check(low + (high - low) * (0.5 * t + 0.5 * t * t));
  }
}

double error(double value, long double truth) { return static_cast<double>(std::fabs(value - truth)); }
double relative(double value, long double truth) { return static_cast<double>(std::fabs((value - truth) / truth)); }

TEST(Elementary, SineAndCosineWithinTheStatedBound) {
  double worst = 0;
  const auto check = [&worst](double x) {
    worst = std::max({worst, error(sin(x), std::sin(static_cast<long double>(x))),
                      error(cos(x), std::cos(static_cast<long double>(x)))});
  };
  sweep(-10, 10, check);
  sweep(-1e5, 1e5, check);
  // Near the multiples of pi/2, where reduction loses most.
  for (int k = -60'000; k <= 60'000; k += 7) check(k * (kPi / 2));
  EXPECT_LT(worst, 2e-15);
}

TEST(Elementary, SineAndCosineOfLargeArgumentsWithinTheStatedBound) {
  double worst = 0;
  std::uint64_t state = 1;
  const auto check = [&worst](double x) {
    for (const double signed_x : {x, -x}) {
      worst = std::max({worst, error(sin(signed_x), std::sin(static_cast<long double>(signed_x))),
                        error(cos(signed_x), std::cos(static_cast<long double>(signed_x)))});
    }
  };
  for (int e = 18; e < 1024; ++e) {
    check(std::ldexp(1, e));
    for (int i = 0; i < 200; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      check(std::ldexp(1 + static_cast<double>(state >> 12) * 0x1p-52, e));
    }
  }
  check(std::numeric_limits<double>::max());
  // Both sides of where one reduction follows the other.
  for (int k = (1 << 20) - 50; k < (1 << 20) + 50; ++k) check(k * (kPi / 2));
  EXPECT_LT(worst, 2e-15);
  // Known to 50 digits; the second is the double nearest to a multiple of pi/2.
  EXPECT_LT(relative(sin(1e22), -0.85220084976718880177L), 1e-15);
  EXPECT_LT(relative(cos(1e22), 0.52321478539513894550L), 1e-15);
  EXPECT_LT(relative(cos(std::ldexp(6381956970095103.0, 797)), -4.68716592425462761112e-19L), 1e-15);
  EXPECT_LT(relative(cos(-std::ldexp(6381956970095103.0, 797)), -4.68716592425462761112e-19L), 1e-15);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double x : {kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_TRUE(std::isnan(sin(x)));
    EXPECT_TRUE(std::isnan(cos(x)));
  }
}

TEST(Elementary, ExpWithinTheStatedBound) {
  EXPECT_TRUE(std::isnan(exp(std::numeric_limits<double>::quiet_NaN())));
  double worst = 0;
  const auto check = [&worst](double x) {
    worst = std::max(worst, relative(exp(x), std::exp(static_cast<long double>(x))));
  };
  sweep(-1, 1, check);
  sweep(-700, 700, check);
  sweep(700, 709.78, check);
  EXPECT_LT(worst, 2e-15);
  EXPECT_EQ(exp(0), 1.0);
  EXPECT_EQ(exp(709.79), std::numeric_limits<double>::infinity());
  EXPECT_EQ(exp(-800), 0.0);
  EXPECT_EQ(exp(800), std::numeric_limits<double>::infinity());
}

TEST(Elementary, ErrorFunctionInSinglePrecisionWithinTheStatedBound) {
  double worst = 0;  // in units in the last place
  const auto check = [&worst](double x) {
    const auto v = static_cast<float>(x);
    const double exact = std::erf(static_cast<double>(v));
    const auto rounded = static_cast<float>(std::fabs(exact));
    const double unit = static_cast<double>(std::nextafter(rounded, 2.0F)) - static_cast<double>(rounded);
    worst = std::max(worst, std::fabs(static_cast<double>(erf_f32(v)) - exact) / unit);
  };
  sweep(-5, 5, check);
  sweep(-1e-3, 1e-3, check);
  EXPECT_LT(worst, 2);
  EXPECT_EQ(erf_f32(1e30F), 1.0F);
  EXPECT_EQ(erf_f32(-std::numeric_limits<float>::infinity()), -1.0F);
  EXPECT_TRUE(std::signbit(erf_f32(-0.0F)));
  EXPECT_TRUE(std::isnan(erf_f32(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Elementary, LogWithinTheStatedBound) {
  double worst = 0;
  const auto check = [&worst](double x) {
    if (x == 1.0) return;
    worst = std::max(worst, relative(log(x), std::log(static_cast<long double>(x))));
  };
  sweep(1e-3, 3, check);
  sweep(1, 1e9, check);
  for (int e = -1000; e <= 1000; e += 13) check(std::ldexp(1.2345, e));
  check(1 + 1e-12);
  check(1 - 1e-12);
  EXPECT_LT(worst, 2e-15);
  EXPECT_EQ(log(1), 0.0);
}

TEST(Elementary, Atan2InAllDirections) {
  double worst = 0;
  sweep(-kPi, kPi, [&worst](double angle) {
    for (const double radius : {1e-6, 1.0, 1e6}) {
      const double y = radius * sin(angle);
      const double x = radius * cos(angle);
      worst = std::max(worst, error(atan2(y, x), std::atan2(static_cast<long double>(y), static_cast<long double>(x))));
    }
  });
  EXPECT_LT(worst, 2e-15);
  EXPECT_EQ(atan2(0, 1), 0.0);
  EXPECT_EQ(atan2(0, 0), 0.0);
  EXPECT_DOUBLE_EQ(atan2(1, 0), kPi / 2);
  EXPECT_DOUBLE_EQ(atan2(-1, 0), -kPi / 2);
  EXPECT_DOUBLE_EQ(atan2(0, -1), kPi);
  EXPECT_DOUBLE_EQ(atan2(1, 1), kPi / 4);
  EXPECT_DOUBLE_EQ(atan2(-1, -1), -3 * kPi / 4);
}

TEST(Elementary, WrapAngleIsHalfOpen) {
  EXPECT_EQ(wrap_angle(0), 0.0);
  EXPECT_DOUBLE_EQ(wrap_angle(kPi), kPi);
  EXPECT_DOUBLE_EQ(wrap_angle(-kPi), kPi);
  EXPECT_NEAR(wrap_angle(3 * kPi / 2), -kPi / 2, 1e-15);
  EXPECT_NEAR(wrap_angle(-7), -7 + 2 * kPi, 1e-15);
  sweep(-1000, 1000, [](double a) {
    const double wrapped = wrap_angle(a);
    EXPECT_GT(wrapped, -kPi);
    EXPECT_LE(wrapped, kPi);
    EXPECT_NEAR(std::remainder(wrapped - a, 2 * kPi), 0, 1e-12);
  });
}

// The same bits everywhere: a change of any operation shows here.
TEST(Elementary, BitsAreFixed) {
  std::uint64_t mix = 0;
  for (int i = 1; i <= 1000; ++i) {
    const double x = i * 0.37;
    for (const double value : {sin(x), cos(x), exp(x / 10), log(x), atan2(x - 100, 50 - x)}) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      mix = (mix ^ bits) * 0x9E3779B97F4A7C15ULL;
      mix ^= mix >> 29;
    }
  }
  EXPECT_EQ(mix, 5006495061073472438ULL);
}

}  // namespace
}  // namespace takt::kernels
