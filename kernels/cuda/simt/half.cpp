// binary16 and binary32, by their bits: whole plans run through these two functions.
#include <bit>

#include "kernels/cuda/simt/simt.h"

namespace takt::simt {

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16, rest = bits & 0x7fffU;
  if (rest > 0x7c00) return std::bit_cast<float>(sign | 0x7fc00000U);
  if (rest == 0x7c00) return std::bit_cast<float>(sign | 0x7f800000U);
  if (rest >= 0x400) return std::bit_cast<float>(sign | ((rest << 13) + (112U << 23)));  // exponents: 127 - 15
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(static_cast<float>(rest) * 0x1p-24F));
}

std::uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  std::uint32_t rest = bits & 0x7fffffffU;
  if (rest > 0x7f800000U) {
    rest = 0x7e00;
  } else if (rest >= std::bit_cast<std::uint32_t>(65520.0F)) {
    rest = 0x7c00;
  } else if (rest >= std::bit_cast<std::uint32_t>(0x1p-14F)) {
    rest -= 112U << 23;
    rest = (rest + 0xfff + (rest >> 13 & 1)) >> 13;
  } else {
    // The last place of 0.5F is that of the smallest numbers, so that the sum is rounded there.
    rest = std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) + 0.5F) - std::bit_cast<std::uint32_t>(0.5F);
  }
  return static_cast<std::uint16_t>(sign | rest);
}

}  // namespace takt::simt
