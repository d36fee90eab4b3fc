// Figures of this machine: what must hold of them on any, loaded and emulated ones too.
#include "kernels/cpu/peak.h"

#include <gtest/gtest.h>

namespace takt::kernels::cpu {
namespace {

TEST(Peaks, AreThoseOfACore) {
  const Peaks peaks = measure_peaks(best_target());
  EXPECT_GT(peaks.gflops, 0);
  EXPECT_LT(peaks.gflops, 1000);
  std::uint64_t before = 0;
  for (const Peaks::Level& level : peaks.levels) {
    EXPECT_GT(level.bytes, before);
    EXPECT_GT(level.gbs, 0);
    EXPECT_LT(level.gbs, 2000);
    before = level.bytes;
  }
}

TEST(Peaks, RooflineIsTheLongerOfComputingAndMoving) {
  Peaks peaks;
  peaks.gflops = 100;
  peaks.levels = {{{1000, 50}, {2000, 40}, {4000, 30}, {8000, 20}, {16000, 10}, {32000, 5}}};
  EXPECT_DOUBLE_EQ(peaks.nanoseconds(10'000, 100, 1), 100);        // computing
  EXPECT_DOUBLE_EQ(peaks.nanoseconds(100, 1000, 1), 20);           // moving, 50 GB/s
  EXPECT_DOUBLE_EQ(peaks.nanoseconds(100, 1001, 1), 1001.0 / 40);  // beyond the first level
  EXPECT_DOUBLE_EQ(peaks.nanoseconds(0, 64'000, 1), 64'000.0 / 5);
  EXPECT_DOUBLE_EQ(peaks.nanoseconds(10'000, 100, 2), 50);
  EXPECT_DOUBLE_EQ(peaks.nanoseconds(0, 2000, 2), 20);  // each worker touches half
}

}  // namespace
}  // namespace takt::kernels::cpu
