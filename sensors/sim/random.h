// Counter-based random numbers: a pure function of (seed, keys), so a value does not depend on the order in which
// others were drawn. The mixer is the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/reference/elementary.h"

namespace takt::sensors::sim {

constexpr std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

// 64 random bits of up to four keys.
constexpr std::uint64_t bits(std::uint64_t seed, std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0) {
  constexpr std::uint64_t kGamma = 0x9E3779B97F4A7C15ULL;
  std::uint64_t h = mix(seed + kGamma);
  h = mix(h + kGamma * (a + 1));
  h = mix(h + kGamma * (b + 1));
  return mix(h + kGamma * (c + 1));
}

// Uniform in [0, 1) with 53 bits.
constexpr double to_unit(std::uint64_t random_bits) { return static_cast<double>(random_bits >> 11) * 0x1p-53; }

// A stream of numbers for one purpose and one item (for example "noise of LiDAR sweep 7").
class Random {
 public:
  constexpr Random(std::uint64_t seed, std::uint64_t purpose, std::uint64_t item)
      : key_(bits(seed, purpose, item)), counter_(0) {}
  std::uint64_t next() { return mix(key_ + 0x9E3779B97F4A7C15ULL * ++counter_); }
  double uniform() { return to_unit(next()); }                                        // [0, 1)
  double uniform(double low, double high) { return low + (high - low) * uniform(); }  // [low, high)
  double gauss() {                                                                    // mean 0, variance 1
    const double u = 1.0 - uniform();                                                 // (0, 1]: log is finite
    const double v = uniform();
    return std::sqrt(-2.0 * kernels::log(u)) * kernels::cos(2.0 * kernels::kPi * v);
  }

 private:
  std::uint64_t key_;
  std::uint64_t counter_;
};

}  // namespace takt::sensors::sim
