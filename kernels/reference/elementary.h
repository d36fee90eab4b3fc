// sin, cos, exp, log, atan2 in double precision from IEEE operations only, so that a digest does not depend on the C
// library or on whether it found FMA units (DESIGN section 6, "Numbers"). Needs -ffp-contract=off. Truncated Taylor
// series after argument reduction; error below 2e-15 absolute for every finite x (sin, cos; NaN for the others),
// relative for exp and log.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/device_code.h"

namespace takt::kernels {
inline namespace TAKT_SIDE {

inline constexpr double kPi = 3.14159265358979323846;

namespace detail {

// pi/2 in three parts with trailing zeros, so that k * part is exact for |k| < 2^20 (Cody and Waite 1980).
inline constexpr double kHalfPi1 = 0x1.921fb544p+0;
inline constexpr double kHalfPi2 = 0x1.0b4611a6p-34;
inline constexpr double kHalfPi3 = 0x1.3198a2e037073p-69;

TAKT_FUNCTION double sin_series(double x) {
  const double s = x * x;
  double sum = -1.0 / 1307674368000.0;  // 15!
  sum = sum * s + 1.0 / 6227020800.0;
  sum = sum * s - 1.0 / 39916800.0;
  sum = sum * s + 1.0 / 362880.0;
  sum = sum * s - 1.0 / 5040.0;
  sum = sum * s + 1.0 / 120.0;
  sum = sum * s - 1.0 / 6.0;
  return x + x * (s * sum);
}
TAKT_FUNCTION double cos_series(double x) {
  const double s = x * x;
  double sum = 1.0 / 20922789888000.0;  // 16!
  sum = sum * s - 1.0 / 87178291200.0;
  sum = sum * s + 1.0 / 479001600.0;
  sum = sum * s - 1.0 / 3628800.0;
  sum = sum * s + 1.0 / 40320.0;
  sum = sum * s - 1.0 / 720.0;
  sum = sum * s + 1.0 / 24.0;
  sum = sum * s - 1.0 / 2.0;
  return 1.0 + s * sum;
}

// 2/pi behind 64 zero bits, to the bit that the largest double needs.
TAKT_TABLE_OF std::uint64_t kTwoOverPi[] = {
    0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
    0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41,
    0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d, 0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab};

// For |x| >= 2^20 and finite, in integers (Payne and Hanek 1983): with |x| = m 2^e, the bits of 2/pi whose product with
// |x| is a multiple of 4 are left out, and 192 bits behind them place x to 2^-137 of a quadrant; no double lies nearer
// than 2^-63 to a multiple of pi/2, so r has all its digits.
TAKT_FUNCTION int reduce_half_pi_exactly(double x, double* r) {
  __extension__ using Wide = unsigned __int128;
  __extension__ using Signed = __int128;
  int e = 0;
  const auto m = static_cast<std::uint64_t>(std::ldexp(std::frexp(std::fabs(x), &e), 53));
  const int first = e - 53 + 62;  // in kTwoOverPi; its product weighs 2 quadrants at m = 1
  const auto word = [first](int i) {
    const std::uint64_t* const at = kTwoOverPi + first / 64 + i;
    const int shift = first % 64;
    return shift == 0 ? at[0] : at[0] << shift | at[1] >> (64 - shift);
  };
  const Wide low = Wide{m} * word(2);
  const Wide middle = Wide{m} * word(1) + (low >> 64);
  const Wide high = (Wide{m * word(0)} << 64) + middle;  // of the product, modulo 4 quadrants: its upper 128 bits
  // Behind the two bits of the quadrant a fraction in [0, 1); read as signed it lies in [-1/2, 1/2), one quadrant on.
  const Wide fraction = high << 2 | static_cast<std::uint64_t>(low) >> 62;
  const int quadrant = static_cast<int>(high >> 126) + static_cast<int>(fraction >> 127);
  const double angle = static_cast<double>(static_cast<Signed>(fraction)) * 0x1p-128 * (kPi / 2);
  *r = x < 0 ? -angle : angle;
  return (x < 0 ? -quadrant : quadrant) & 3;
}

// Reduces x to [-pi/4, pi/4]; returns the quadrant 0..3.
TAKT_FUNCTION int reduce_half_pi(double x, double* r) {
  const double k = std::floor(x * (2.0 / kPi) + 0.5);
  if (!(std::fabs(k) < 0x1p20)) {
    if (std::isfinite(x)) return reduce_half_pi_exactly(x, r);
    *r = std::numeric_limits<double>::quiet_NaN();
    return 0;
  }
  *r = ((x - k * kHalfPi1) - k * kHalfPi2) - k * kHalfPi3;
  return static_cast<int>(static_cast<std::int64_t>(k) & 3);
}

}  // namespace detail

TAKT_FUNCTION double sin(double x) {
  double r = 0;
  switch (detail::reduce_half_pi(x, &r)) {
    case 0: return detail::sin_series(r);
    case 1: return detail::cos_series(r);
    case 2: return -detail::sin_series(r);
    default: return -detail::cos_series(r);
  }
}
TAKT_FUNCTION double cos(double x) {
  double r = 0;
  switch (detail::reduce_half_pi(x, &r)) {
    case 0: return detail::cos_series(r);
    case 1: return -detail::sin_series(r);
    case 2: return -detail::cos_series(r);
    default: return detail::sin_series(r);
  }
}

TAKT_FUNCTION double exp(double x) {
  if (!(x == x)) return x;
  if (x > 710.0) return std::numeric_limits<double>::infinity();
  if (x < -708.0) return 0.0;  // denormal results are flushed: one setting everywhere
  const double k = std::floor(x * 1.4426950408889634 + 0.5);
  const double r = (x - k * 0x1.62e42feep-1) - k * 0x1.a39ef35793c76p-33;  // ln 2 in two parts
  double sum = 1.0 / 6227020800.0;
  for (int n = 12; n >= 0; --n) {
    constexpr double kFactorial[] = {1, 1, 2, 6, 24, 120, 720, 5040, 40320, 362880, 3628800, 39916800, 479001600};
    sum = sum * r + 1.0 / kFactorial[n];
  }
  return std::ldexp(sum, static_cast<int>(k));
}

// Natural logarithm; x > 0 and normal.
TAKT_FUNCTION double log(double x) {
  int e = 0;
  double m = std::frexp(x, &e);
  if (m < 0.70710678118654752) {
    m *= 2;
    --e;
  }
  const double s = (m - 1) / (m + 1);
  const double q = s * s;
  double sum = 1.0 / 21.0;
  for (int n = 19; n >= 1; n -= 2) sum = sum * q + 1.0 / n;
  return 2 * s * sum + e * 0.69314718055994531;
}

// Of two infinities NaN; zeros have no sign.
TAKT_FUNCTION double atan2(double y, double x) {
  if (x == 0 && y == 0) return 0;
  const double ax = std::fabs(x);
  const double ay = std::fabs(y);
  const bool swap = ay > ax;
  double t = swap ? ax / ay : ay / ax;
  // atan(t) = 2 atan(t / (1 + sqrt(1 + t^2))): three halvings bring t below tan(pi/32).
  for (int i = 0; i < 3; ++i) t = t / (1 + std::sqrt(1 + t * t));
  const double s = t * t;
  double sum = 1.0 / 17.0;
  for (int n = 15; n >= 1; n -= 2) sum = 1.0 / n - sum * s;
  double a = 8 * (t * sum);
  if (swap) a = kPi / 2 - a;
  if (x < 0) a = kPi - a;
  return y < 0 ? -a : a;
}

// Wraps an angle to (-pi, pi].
TAKT_FUNCTION double wrap_angle(double a) {
  a = a - 2 * kPi * std::floor((a + kPi) / (2 * kPi));
  return a <= -kPi ? a + 2 * kPi : a;
}

}  // namespace TAKT_SIDE
}  // namespace takt::kernels
