// Crop, duplicates, merge.
#include <gtest/gtest.h>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <vector>

#include "sensors/lidar/crop.h"
#include "sensors/lidar/duplicates.h"
#include "sensors/lidar/merge.h"
#include "tests/sensors/lidar/cloud.h"
#include "tests/support/test_data.h"

namespace takt::sensors {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Crop, CountsEachPointOnceAndKeepsTheOrder) {
  Cloud cloud(16);
  cloud.add({kNan, 0, 0, 0, 0, 0});
  cloud.add({10, 0, 0, 0.5F, 11, 1});
  cloud.add({0, -kInf, 0, 0, 0, 2});
  cloud.add({0.5F, 0, 0, 0, 0, 3});  // nearer than range_min
  cloud.add({60, 0, 0, 0, 0, 4});    // farther than range_max
  cloud.add({20, 30, 0, 0, 0, 5});   // outside the region
  cloud.add({-2, 0, -1, 0, 0, 6});   // on the own roof
  cloud.add({12, 1, 0, 0.25F, 12, 7});
  CropRule rule;
  rule.range_min_m = 1;
  rule.range_max_m = 50;
  rule.vehicle_from_sensor.translation = {1, 0, 1.8};
  rule.region = Box3{{-50, -20, -1}, {50, 20, 5}};
  rule.ego = Box3{{-1.5, -1, 0}, {4, 1, 2}};
  const CropCount count = crop(*cloud, rule);
  EXPECT_EQ(count.invalid, 2U);
  EXPECT_EQ(count.range, 2U);
  EXPECT_EQ(count.region, 1U);
  EXPECT_EQ(count.ego, 1U);
  ASSERT_EQ(count.kept, 2U);
  EXPECT_EQ(cloud->count, 2U);
  EXPECT_EQ(cloud.at(0).ring, 1);
  EXPECT_EQ(cloud.at(0).time_ns, 11);
  EXPECT_EQ(cloud.at(1).ring, 7);
  EXPECT_EQ(cloud.at(1).intensity, 0.25F);
}

TEST(Crop, RangesAndBoxesAreHalfOpen) {
  CropRule rule;
  rule.range_min_m = 2;
  rule.range_max_m = 4;
  Cloud cloud(8);
  for (const float x : {2.0F, std::nextafter(2.0F, 0.0F), 4.0F, std::nextafter(4.0F, 0.0F)}) cloud.add({x, 0, 0});
  crop(*cloud, rule);
  ASSERT_EQ(cloud->count, 2U);
  EXPECT_EQ(cloud.at(0).x, 2.0F);
  EXPECT_EQ(cloud.at(1).x, std::nextafter(4.0F, 0.0F));
  const Box3 box{{0, 0, 0}, {1, 1, 1}};
  EXPECT_TRUE(box.contains({0, 0, 0}));
  EXPECT_FALSE(box.contains({1, 0, 0}));
  EXPECT_TRUE(box.contains({std::nextafter(1.0, 0.0), 0, 0}));
  EXPECT_FALSE(box.contains({std::nan(""), 0, 0}));
}

TEST(Crop, RangeCountsFromTheRayOrigin) {
  CropRule rule;
  rule.range_max_m = 5;
  rule.ray_origin = {10, 0, 0};
  Cloud cloud(4);
  cloud.add({12, 0, 0});
  cloud.add({2, 0, 0});
  EXPECT_EQ(crop(*cloud, rule).range, 1U);
  EXPECT_EQ(cloud.at(0).x, 12.0F);
}

TEST(Duplicates, TheFirstOfEqualPointsStays) {
  Cloud cloud(8);
  const TestPoint a{1, 2, 3, 0.5F, 10, 4};
  TestPoint b = a;
  b.time_ns = 11;
  const TestPoint zero{0, 0, 0, 0, 0, 0}, minus_zero{-0.0F, 0, 0, 0, 0, 0};
  for (const TestPoint& p : {a, b, a, zero, minus_zero, a, zero}) cloud.add(p);
  DuplicateFilter filter(8);
  EXPECT_EQ(filter.remove(*cloud), 3U);
  ASSERT_EQ(cloud->count, 4U);
  EXPECT_EQ(cloud.at(0).time_ns, 10);
  EXPECT_EQ(cloud.at(1).time_ns, 11);
  EXPECT_FALSE(std::signbit(cloud.at(2).x));
  EXPECT_TRUE(std::signbit(cloud.at(3).x));
  EXPECT_EQ(filter.remove(*cloud), 0U);
}

TEST(Duplicates, EmptyAndOversizedCloudsAreLeftAlone) {
  DuplicateFilter filter(1);
  Cloud empty(4);
  EXPECT_EQ(filter.remove(*empty), 0U);
  Cloud two(4);
  two.add({1, 1, 1});
  two.add({1, 1, 1});
  EXPECT_EQ(filter.remove(*two), 0U);
  EXPECT_EQ(two->count, 2U);
}

// View-of-Delft lists every point twice; the counts are those of its README.
TEST(Duplicates, ViewOfDelftListsEveryPointTwice) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/view_of_delft/lidar/training/velodyne");
  const std::pair<const char*, std::uint32_t> frames[] = {{"00549.bin", 83'886}, {"01047.bin", 94'544}};
  for (const auto& [name, unique] : frames) {
    std::ifstream file(folder + "/" + name, std::ios::binary);
    ASSERT_TRUE(file) << name;
    Cloud cloud(200'000);
    for (float row[4]; file.read(reinterpret_cast<char*>(row), sizeof row);)
      cloud.add({row[0], row[1], row[2], row[3]});
    const std::uint32_t all = cloud->count;
    DuplicateFilter filter(all);
    EXPECT_EQ(filter.remove(*cloud), all - unique) << name;
    EXPECT_EQ(cloud->count, unique);
    EXPECT_EQ(all, 2 * unique);
  }
}

MergePart part(const Cloud& cloud, std::int64_t stamp_ms, double x, std::uint16_t first_ring) {
  MergePart out{&*cloud, SensorTime{} + milliseconds(stamp_ms), {}, first_ring};
  out.vehicle_from_sensor.translation = {x, 0, 0};
  return out;
}

TEST(Merge, PointsKeepTheirPlaceAndInstant) {
  Cloud front(4), rear(4), out(8);
  front.add({1, 0, 0, 0.1F, -5'000'000, 3});
  rear.add({2, 0, 0, 0.2F, 1'000'000, 3});
  const auto report =
      merge_clouds(std::vector{part(front, 120, 3, 0), part(rear, 100, -1, 64)}, milliseconds(50), *out);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->stamp, SensorTime{} + milliseconds(100)) << "the earliest";
  EXPECT_EQ(report->disparity, milliseconds(20));
  EXPECT_EQ(report->missing, 0U);
  ASSERT_EQ(out->count, 2U);
  EXPECT_EQ(out.at(0).x, 4.0F);
  EXPECT_EQ(out.at(0).time_ns, 15'000'000);
  EXPECT_EQ(out.at(0).ring, 3);
  EXPECT_EQ(out.at(1).x, 1.0F);
  EXPECT_EQ(out.at(1).time_ns, 1'000'000);
  EXPECT_EQ(out.at(1).ring, 67);
}

TEST(Merge, PartialSetsSayWhoIsMissingAndWhy) {
  Cloud a(2), b(2), out(4);
  a.add({1, 0, 0});
  b.add({2, 0, 0});
  const auto report =
      merge_clouds(std::vector{part(a, 300, 0, 0), MergePart{}, part(b, 200, 0, 0)}, milliseconds(50), *out);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->missing, 0b110U);
  EXPECT_EQ(report->states[0], PartState::kMerged);
  EXPECT_EQ(report->states[1], PartState::kMissing);
  EXPECT_EQ(report->states[2], PartState::kStale);
  EXPECT_EQ(report->stamp, SensorTime{} + milliseconds(300));
  EXPECT_EQ(out->count, 1U);
  EXPECT_FALSE(merge_clouds(std::vector{MergePart{}}, milliseconds(50), *out));
  EXPECT_FALSE(merge_clouds(std::vector{part(a, 0, 0, 0)}, seconds(2), *out));
}

TEST(Merge, OverCapacityTheLastPointsAreDroppedAndCounted) {
  Cloud a(4), b(4), out(3);
  for (int i = 0; i < 2; ++i) {
    a.add({1, 0, 0});
    b.add({2, 0, 0});
  }
  const auto report = merge_clouds(std::vector{part(a, 0, 0, 0), part(b, 0, 0, 0)}, {}, *out);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->dropped, 1U);
  EXPECT_EQ(out->dropped, 1U);
  EXPECT_EQ(out->count, 3U);
  EXPECT_EQ(out.at(2).x, 2.0F);
}

}  // namespace
}  // namespace takt::sensors
