// Checked arithmetic on 64-bit sizes: capacities come from files, so every product may overflow.
#pragma once

#include <cstdint>
#include <optional>

namespace takt {

[[nodiscard]] constexpr std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t out = 0;
  if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
  return out;
}
[[nodiscard]] constexpr std::optional<std::uint64_t> checked_mul(std::uint64_t a, std::uint64_t b) {
  std::uint64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}
// Rounds up to a multiple of `unit` (> 0).
[[nodiscard]] constexpr std::optional<std::uint64_t> checked_round_up(std::uint64_t a, std::uint64_t unit) {
  const std::uint64_t rest = a % unit;
  return rest == 0 ? std::optional(a) : checked_add(a, unit - rest);
}
// The same for sizes known to be small (compile-time layouts).
[[nodiscard]] constexpr std::uint64_t round_up(std::uint64_t a, std::uint64_t unit) {
  return (a + unit - 1) / unit * unit;
}

}  // namespace takt
