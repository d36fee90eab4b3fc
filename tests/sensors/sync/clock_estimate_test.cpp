#include <gtest/gtest.h>
#include <cmath>
#include <vector>

#include "sensors/sync/clock_estimate.h"

namespace takt::sensors {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// A device whose clock runs `ppb` fast and reads `offset_ns` less than the recorder's at time 0; delays are
// `delay_min` plus an exponential-like tail, from a linear congruential generator.
struct Device {
  std::int64_t offset_ns = 0;
  double ppb = 0;
  std::int64_t delay_min_ns = 3 * kMs;
  std::int64_t tail_ns = 4 * kMs;
};

std::vector<StampPair> record(const Device& device, std::size_t messages, std::int64_t period_ns) {
  std::vector<StampPair> out;
  std::uint64_t state = 7;
  for (std::size_t i = 0; i < messages; ++i) {
    const std::int64_t instant = 1'700'000'000'000'000'000 + static_cast<std::int64_t>(i) * period_ns;
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const double u = static_cast<double>(state >> 11) * 0x1p-53;
    const auto tail = static_cast<std::int64_t>(u * u * u * static_cast<double>(device.tail_ns));
    const auto elapsed = static_cast<double>(static_cast<std::int64_t>(i) * period_ns);
    const std::int64_t stamp = instant - device.offset_ns + std::llround(elapsed * device.ppb * 1e-9);
    out.push_back({stamp, instant + device.delay_min_ns + tail});
  }
  return out;
}

TEST(EstimateClock, FindsOffsetAndRateBelowNoisyDelays) {
  const Device device{.offset_ns = 1'699'999'000'000'000'000, .ppb = 42'000};  // counts from boot, 42 ppm fast
  const auto pairs = record(device, 3000, 100 * kMs);
  // The shortest delay of this log is not exactly delay_min: that is what the spread is for.
  const auto map = estimate_clock(pairs, Duration{device.delay_min_ns}, microseconds(10));
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_NEAR(static_cast<double>(map->rate_ppb), -42'000, 100);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::int64_t instant = 1'700'000'000'000'000'000 + static_cast<std::int64_t>(i) * 100 * kMs;
    const auto mapped = map->map({pairs[i].capture_ns});
    ASSERT_TRUE(mapped);
    EXPECT_LE(std::abs(mapped->ns - instant), map->error.ns) << i;
    EXPECT_LE(mapped->ns + device.delay_min_ns, pairs[i].arrival_ns) << "captured after it could arrive";
  }
  EXPECT_LT(map->error.ns, kMs);
}

TEST(EstimateClock, ShortLogsGetAnOffsetOnly) {
  const auto pairs = record({.offset_ns = -37'000 * kMs, .ppb = 20'000}, 30, 100 * kMs);
  const auto map = estimate_clock(pairs, milliseconds(3), milliseconds(1));
  ASSERT_TRUE(map);
  EXPECT_EQ(map->rate_ppb, 0);
  EXPECT_NEAR(static_cast<double>(map->to_origin.ns - map->from_origin.ns), -37e9, 1e6);
  EXPECT_GE(map->error, milliseconds(1));
}

TEST(EstimateClock, AWrongStampDoesNotPullTheLine) {
  const Device device{.offset_ns = 500 * kMs};
  auto pairs = record(device, 600, 100 * kMs);
  const auto clean = estimate_clock(pairs, Duration{device.delay_min_ns}, {});
  pairs[200].capture_ns += 90 * kMs;  // would be captured after it arrived
  pairs[400].capture_ns += 2'000 * kMs;
  const auto map = estimate_clock(pairs, Duration{device.delay_min_ns}, {});
  ASSERT_TRUE(clean && map);
  EXPECT_NEAR(static_cast<double>(map->to_origin.ns), static_cast<double>(clean->to_origin.ns), 1e5);
  EXPECT_NEAR(static_cast<double>(map->rate_ppb), static_cast<double>(clean->rate_ppb), 500);
}

TEST(EstimateClock, RefusesWhatIsNoClock) {
  EXPECT_FALSE(estimate_clock(record({}, 7, 100 * kMs), {}, {}));
  auto jumping = record({}, 600, 100 * kMs);
  for (std::size_t i = 300; i < jumping.size(); ++i) jumping[i].capture_ns -= 5'000 * kMs;
  EXPECT_FALSE(estimate_clock(jumping, {}, {}));
  EXPECT_FALSE(estimate_clock(record({.ppb = 5e6}, 600, 100 * kMs), {}, {})) << "0.5 % fast";
}

TEST(EstimateClock, IsValidWhereItWasSeen) {
  const auto pairs = record({}, 200, 100 * kMs);
  const auto map = estimate_clock(pairs, {}, {});
  ASSERT_TRUE(map);
  EXPECT_TRUE(map->map({pairs.front().capture_ns}));
  EXPECT_FALSE(map->map({pairs.back().capture_ns + 1}));
}

}  // namespace
}  // namespace takt::sensors
