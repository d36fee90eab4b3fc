// What one core of this machine can do, measured in about 30 ms: fused multiply-adds a nanosecond, and bytes a
// nanosecond by how much is touched. A roofline of them predicts what a step should take (Williams, Waterman and
// Patterson, CACM 52(4), 2009). Such figures annotate plans that exist; they never decide what is in one.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/kernel.h"

namespace takt::kernels::cpu {

struct Peaks {
  struct Level {
    std::uint64_t bytes = 0;  // touched by one pass: what is read and what is written
    double gbs = 0;           // GB/s, the same as bytes a nanosecond
  };
  double gflops = 0;  // a fused multiply-add counts 2
  std::array<Level, 6> levels;

  // Of the first level that holds that much; the last one for more.
  [[nodiscard]] double bandwidth(std::uint64_t bytes) const {
    for (const Level& level : levels) {
      if (bytes <= level.bytes) return level.gbs;
    }
    return levels.back().gbs;
  }
  // The longer of computing and moving, by `workers` cores.
  [[nodiscard]] double nanoseconds(std::uint64_t flops, std::uint64_t bytes, int workers) const {
    const double computing = static_cast<double>(flops) / gflops;
    const double moving = static_cast<double>(bytes) / bandwidth(bytes / static_cast<std::uint64_t>(workers));
    return (computing > moving ? computing : moving) / workers;
  }
};

// GFLOP/s of one burst of about half a millisecond, in processor time of the calling thread: other load on the machine
// falls out. The target is one that this machine can run.
double multiply_add_burst(Target target);

// The best of several bursts of everything. Allocates 32 MB for the while; not for timed threads.
Peaks measure_peaks(Target target);

}  // namespace takt::kernels::cpu
