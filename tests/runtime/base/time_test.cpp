#include "runtime/base/time.h"

#include <gtest/gtest.h>

namespace takt {
namespace {

using Map = ClockMap<SensorDomain, TableDomain>;

Map with_rate(std::int64_t ppb) {
  Map map;
  map.rate_ppb = ppb;
  return map;
}

TEST(Duration, ArithmeticAndUnits) {
  EXPECT_EQ(milliseconds(3) + microseconds(2) - nanoseconds(1), nanoseconds(3'001'999));
  EXPECT_EQ(-seconds(2), nanoseconds(-2'000'000'000));
  EXPECT_EQ(microseconds(5) * -3, nanoseconds(-15'000));
  EXPECT_DOUBLE_EQ(microseconds(1500).ms(), 1.5);
  EXPECT_DOUBLE_EQ(nanoseconds(1500).us(), 1.5);
  EXPECT_DOUBLE_EQ(milliseconds(1500).seconds(), 1.5);
  Duration sum;
  sum += milliseconds(1);
  EXPECT_EQ(sum.ns, 1'000'000);
}

TEST(TimePoint, DifferencesAndOrder) {
  const SensorTime a{1'000};
  EXPECT_EQ((a + nanoseconds(5)) - a, nanoseconds(5));
  EXPECT_EQ(a - nanoseconds(1'001), SensorTime{-1});
  EXPECT_LT(a, a + nanoseconds(1));
}

TEST(HostClock, DoesNotGoBack) {
  HostTime last = host_now();
  for (int i = 0; i < 1000; ++i) {
    const HostTime now = host_now();
    EXPECT_GE(now, last);
    last = now;
  }
}

TEST(ClockMap, WithoutRateIsAShift) {
  Map map;
  map.from_origin = {1'000};
  map.to_origin = {-500};
  EXPECT_EQ(map.map_unchecked({1'000}), TableTime{-500});
  EXPECT_EQ(map.map_unchecked({0}), TableTime{-1'500});
  EXPECT_EQ(map.map_unchecked({2'500}), TableTime{1'000});
}

TEST(ClockMap, RateScalesAroundTheOrigin) {
  Map map = with_rate(1'000'000);  // one in a thousand
  map.from_origin = {10'000};
  map.to_origin = {0};
  EXPECT_EQ(map.map_unchecked({11'000}), TableTime{1'001});
  EXPECT_EQ(map.map_unchecked({9'000}), TableTime{-1'001});
  EXPECT_EQ(with_rate(-1'000'000).map_unchecked({1'000}), TableTime{999});
}

TEST(ClockMap, RoundsTowardMinusInfinity) {
  const Map fast = with_rate(1);  // 1 ns in a second
  EXPECT_EQ(fast.map_unchecked({999'999'999}).ns, 999'999'999);
  EXPECT_EQ(fast.map_unchecked({1'000'000'000}).ns, 1'000'000'001);
  EXPECT_EQ(fast.map_unchecked({-1}).ns, -2);  // -1 - 1e-9
  EXPECT_EQ(fast.map_unchecked({-1'000'000'000}).ns, -1'000'000'001);
  EXPECT_EQ(fast.map_unchecked({-1'000'000'001}).ns, -1'000'000'003);
  const Map slow = with_rate(-1);
  EXPECT_EQ(slow.map_unchecked({1}).ns, 0);  // 1 - 1e-9
  EXPECT_EQ(slow.map_unchecked({1'000'000'000}).ns, 999'999'999);
  EXPECT_EQ(slow.map_unchecked({-1}).ns, -1);  // -1 + 1e-9
}

TEST(ClockMap, IsExactOverYears) {
  // 20 years at 100 ppm: a double has lost the nanoseconds long before.
  const std::int64_t twenty_years = 630'720'000'000'000'000;
  EXPECT_EQ(with_rate(100'000).map_unchecked({twenty_years + 10'000}).ns,
            twenty_years + 10'000 + twenty_years / 10'000 + 1);
  // Monotone from one nanosecond to the next.
  const Map map = with_rate(-37'123);
  TableTime last = map.map_unchecked({twenty_years});
  for (int i = 1; i < 1000; ++i) {
    const TableTime now = map.map_unchecked({twenty_years + i});
    EXPECT_GE(now, last);
    EXPECT_LE((now - last).ns, 1);
    last = now;
  }
}

TEST(ClockMap, OutsideItsValidityIsAnError) {
  Map map;
  map.valid_from = {-5};
  map.valid_to = {5};
  EXPECT_TRUE(map.map({-5}));
  EXPECT_TRUE(map.map({5}));
  const auto outside = map.map({6});
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().code, Code::kInput);
  EXPECT_EQ(outside.error().message, "time 6 ns lies outside the validity of its clock map");
  EXPECT_FALSE(map.map({-6}));
}

}  // namespace
}  // namespace takt
