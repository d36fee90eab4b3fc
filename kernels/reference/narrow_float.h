// f16 (IEEE 754 binary16) and bf16 (the upper half of binary32): formats that tensors are stored in. Values are widened
// before anything is computed; narrowing rounds once, to nearest even.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace takt::kernels {

struct NarrowFormat {
  int exponent_bits;
  int mantissa_bits;
};
inline constexpr NarrowFormat kHalf{5, 10};
inline constexpr NarrowFormat kBfloat{8, 7};

inline std::uint16_t to_narrow(double x, NarrowFormat f) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(x) ? 0x8000U : 0U);
  const std::uint32_t infinity = ((1U << f.exponent_bits) - 1) << f.mantissa_bits;
  if (std::isnan(x)) return static_cast<std::uint16_t>(sign | infinity | (1U << (f.mantissa_bits - 1)));
  if (std::isinf(x)) return static_cast<std::uint16_t>(sign | infinity);
  if (x == 0) return sign;
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  int exponent = 0;
  (void)std::frexp(x, &exponent);  // |x| in [2^(exponent - 1), 2^exponent)
  exponent = exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
  if (exponent > bias) return static_cast<std::uint16_t>(sign | infinity);
  // In units of the last place; a carry out of the mantissa goes into the exponent by itself.
  const auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(std::fabs(x), f.mantissa_bits - exponent)));
  const std::uint32_t bits = (static_cast<std::uint32_t>(exponent + bias - 1) << f.mantissa_bits) + units;
  return static_cast<std::uint16_t>(sign | (bits < infinity ? bits : infinity));
}

inline float from_narrow(std::uint16_t bits, NarrowFormat f) {
  const std::uint32_t mantissa = bits & ((1U << f.mantissa_bits) - 1);
  const int exponent = (bits & 0x7fff) >> f.mantissa_bits;
  const int highest = (1 << f.exponent_bits) - 1;
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  float value = 0;
  if (exponent == highest) {
    value = mantissa != 0 ? std::bit_cast<float>(0x7fc00000U) : std::bit_cast<float>(0x7f800000U);
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<float>(mantissa), 1 - bias - f.mantissa_bits);
  } else {
    value = std::ldexp(static_cast<float>(mantissa | (1U << f.mantissa_bits)), exponent - bias - f.mantissa_bits);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

}  // namespace takt::kernels
