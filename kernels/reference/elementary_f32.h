// exp, sigmoid, tanh, erf in single precision: the definition that every kernel follows bit by bit, vectorised or not.
// Only IEEE operations and explicit fma, integer steps instead of conversions, so NaN and infinities need no branches.
// Coefficients: own minimax fits (Remez exchange on the reduced interval, relative error weight), rounded to float.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/device_code.h"

namespace takt::kernels {

namespace f32 {

// exp(x) = 2^k exp(r), k = round(x / ln 2), exp(r) = 1 + r + r^2 P(r) on |r| <= 0.3476.
inline constexpr float kExpLowest = -104.0F;  // below, the result rounds to 0
inline constexpr float kExpHighest = 89.0F;   // above, the result is infinite
inline constexpr float kInverseLn2 = 0x1.715476p+0F;
inline constexpr float kLn2High = 0x1.62e43p-1F;
inline constexpr float kLn2Low = -0x1.05c61p-29F;
inline constexpr float kRounder = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer, held in the low bits
inline constexpr std::uint32_t kRounderBits = 0x4b400000U;
TAKT_TABLE_OF float kExp[5] = {0x1.fffffcp-2F, 0x1.55549p-3F, 0x1.5558fcp-5F, 0x1.123b9ap-7F, 0x1.6a215ap-10F};

// tanh(x) = x + x s Q(s), s = x^2, for |x| < kTanhSmall; beyond 1 - 2 / (exp(2 |x|) + 1) with the sign of x.
inline constexpr float kTanhSmall = 0.625F;
TAKT_TABLE_OF float kTanh[5] = {-0x1.555526p-2F, 0x1.11044ep-3F, -0x1.b7da5p-5F, 0x1.4f9942p-6F, -0x1.6a5316p-8F};

// erf(x) = x + x P(x^2) for |x| < 1; beyond 1 - exp(-x^2) Q(t), t = 1 / (1 + |x| / 2), with the sign of x; from
// kErfHighest on it is 1.
inline constexpr float kErfHighest = 4.0F;
TAKT_TABLE_OF float kErfNear[7] = {0x1.06eba8p-3F, -0x1.81273ep-2F, 0x1.ce2cf8p-4F, -0x1.b7f90cp-6F,
                                   0x1.5405b2p-8F, -0x1.a3f7p-11F,  0x1.496a3p-14F};
TAKT_TABLE_OF float kErfFar[5] = {-0x1.bedd8cp-7F, 0x1.92ccdep-2F, -0x1.052512p-4F, 0x1.73da92p-1F, -0x1.46a2a8p-5F};

}  // namespace f32

// Within 2 units in the last place; overflow gives infinity, underflow denormals or, where they are flushed, zero.
TAKT_FUNCTION float exp_f32(float x) {
  x = x < f32::kExpLowest ? f32::kExpLowest : x;
  x = x > f32::kExpHighest ? f32::kExpHighest : x;
  const float rounded = std::fma(x, f32::kInverseLn2, f32::kRounder);
  const std::uint32_t k = std::bit_cast<std::uint32_t>(rounded) - f32::kRounderBits;  // two's complement
  const float kf = rounded - f32::kRounder;
  float r = std::fma(kf, -f32::kLn2High, x);
  r = std::fma(kf, -f32::kLn2Low, r);
  float p = f32::kExp[4];
  for (int i = 3; i >= 0; --i) p = std::fma(p, r, f32::kExp[i]);
  p = std::fma(p, r * r, r) + 1.0F;
  // 2^k in two factors, both normal for every k that occurs: the product overflows and underflows by itself.
  const auto half = static_cast<std::uint32_t>(static_cast<std::int32_t>(k) >> 1);
  const float first = std::bit_cast<float>((half + 127U) << 23);
  const float second = std::bit_cast<float>((k - half + 127U) << 23);
  return p * first * second;
}

TAKT_FUNCTION float sigmoid_f32(float x) { return 1.0F / (1.0F + exp_f32(-x)); }

TAKT_FUNCTION float tanh_f32(float x) {
  const float a = std::fabs(x);
  const float s = x * x;
  float q = f32::kTanh[4];
  for (int i = 3; i >= 0; --i) q = std::fma(q, s, f32::kTanh[i]);
  const float near = std::fma(x * s, q, x);
  const float far = std::copysign(1.0F - 2.0F / (exp_f32(a + a) + 1.0F), x);
  return a < f32::kTanhSmall ? near : far;
}

// Within 2 units in the last place.
TAKT_FUNCTION float erf_f32(float x) {
  const float s = x * x;
  float p = f32::kErfNear[6];
  for (int i = 5; i >= 0; --i) p = std::fma(p, s, f32::kErfNear[i]);
  const float near = std::fma(x, p, x);
  float a = std::fabs(x);
  const bool small = a < 1.0F;
  a = a > f32::kErfHighest ? f32::kErfHighest : a;
  const float t = 1.0F / std::fma(a, 0.5F, 1.0F);
  float q = f32::kErfFar[4];
  for (int i = 3; i >= 0; --i) q = std::fma(q, t, f32::kErfFar[i]);
  const float far = std::copysign(std::fma(-exp_f32(-(a * a)), q, 1.0F), x);
  return small ? near : far;
}

}  // namespace takt::kernels
