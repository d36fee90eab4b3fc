// Points, pillars and boxes against their references: any number of parts, any count, data that are none.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "kernels/boxes.h"
#include "kernels/pillars.h"
#include "kernels/points.h"
#include "tests/kernels/cpu/operator_harness.h"

namespace takt::kernels::cpu {
namespace {

std::vector<double> numbers(Random& random, std::int64_t n) {
  std::vector<double> out;
  for (const float v : random.values(n, false)) out.push_back(static_cast<double>(v));
  return out;
}

// Rows behind the count hold NaN: whoever reads one shows it.
Floats rows_of_points(Random& random, std::int64_t capacity, std::int32_t count, bool hostile) {
  Floats points = random.values(capacity * kPointColumns, hostile);
  for (std::size_t i = static_cast<std::size_t>(std::max(count, 0)) * kPointColumns; i < points.size(); ++i) {
    points[i] = kNaN;
  }
  return points;
}

TEST(Cloud, AnyHeader) {
  Random random(1);
  for (int i = 0; i < 60; ++i) {
    const CloudParams p{random.integer(1, 70)};
    std::vector<std::uint8_t> payload(static_cast<std::size_t>(cloud_bytes(p.capacity)));
    for (std::uint8_t& byte : payload) byte = static_cast<std::uint8_t>(random.integer(0, 255));
    const std::int32_t header[2] = {random.integer(-2, 90),
                                    i % 5 == 0 ? random.integer(0, 99) : static_cast<std::int32_t>(p.capacity)};
    std::memcpy(payload.data(), header, sizeof header);
    run_operator(KernelId::kCloud, p, {bytes_of_all(payload)}, {});
  }
}

TEST(Deskew, AnyPoses) {
  Random random(2);
  for (int i = 0; i < 80; ++i) {
    const DeskewParams p{random.integer(1, 90), random.integer(1, 6), 0.05};
    const std::int32_t count = random.integer(-1, static_cast<int>(p.capacity) + 1);
    const std::int32_t pose_count = random.integer(-1, static_cast<int>(p.poses) + 1);
    std::vector<double> poses = numbers(random, p.poses * 8);
    for (std::int64_t k = 0; k < p.poses && i % 4 != 0; ++k)
      poses[static_cast<std::size_t>(8 * k)] = 0.05 * static_cast<double>(k) - 0.1;
    if (i % 7 == 0)
      poses[static_cast<std::size_t>(random.integer(0, static_cast<int>(p.poses) * 8 - 1))] =
          std::numeric_limits<double>::quiet_NaN();
    run_operator(KernelId::kDeskew, p,
                 {bytes_of(rows_of_points(random, p.capacity, count, i % 3 == 0)), bytes_of_all(poses),
                  bytes_of_all(numbers(random, 12))},
                 {i % 9 == 1 ? std::optional<std::int32_t>() : count, pose_count});
  }
}

TEST(Crop, AnyCloud) {
  Random random(3);
  for (int i = 0; i < 80; ++i) {
    CropParams p;
    p.capacity = random.integer(1, 90);
    p.capacity_out = random.integer(1, 90);
    for (int d = 0; d < 3; ++d) {
      p.min[d] = -3;
      p.max[d] = 3;
      p.ego_min[d] = -1;
      p.ego_max[d] = static_cast<float>(random.integer(-1, 1));
    }
    p.range_max = static_cast<float>(random.integer(1, 5));
    const std::int32_t count = random.integer(-1, static_cast<int>(p.capacity) + 1);
    run_operator(KernelId::kCrop, p, {bytes_of(rows_of_points(random, p.capacity, count, i % 3 == 0))}, {count});
  }
}

TEST(Sweeps, AnyHistory) {
  Random random(4);
  for (int i = 0; i < 80; ++i) {
    const SweepsParams p{random.integer(1, 50), random.integer(1, 4), random.integer(1, 150), 400, 150};
    const std::int32_t count = random.integer(-1, static_cast<int>(p.capacity) + 1);
    std::vector<std::int64_t> stamp{1000}, sweeps;
    for (std::int64_t s = 0; s < p.history; ++s) {
      sweeps.push_back(1000 - (s + 1) * random.integer(90, i % 5 == 0 ? 200 : 110));
      sweeps.push_back(random.integer(i % 4 == 0 ? -5 : 1, static_cast<int>(p.capacity) + (i % 4 == 0 ? 9 : 0)));
    }
    if (i % 11 == 0) stamp[0] = std::numeric_limits<std::int64_t>::min();
    run_operator(
        KernelId::kSweeps, p,
        {bytes_of(rows_of_points(random, p.capacity, count, false)), bytes_of_all(stamp),
         bytes_of_all(numbers(random, 7)), bytes_of(random.values(p.history * p.capacity * kPastColumns, i % 3 == 0)),
         bytes_of_all(sweeps), bytes_of_all(numbers(random, p.history * 7))},
        {count});
  }
}

TEST(Pillars, AnyGroupsOfAnyWidth) {
  Random random(5);
  for (int i = 0; i < 120; ++i) {
    PillarParams p;
    p.points = random.integer(1, 60);
    p.pillars = random.integer(1, 30);
    p.members = random.integer(1, 60);
    p.most = random.integer(1, 6);
    p.columns = random.integer(4, 5);
    p.centre = random.integer(2, 3);
    p.min[0] = -3;
    const bool hostile = i % 4 == 0;
    const std::int32_t points = random.integer(0, static_cast<int>(p.points));
    std::vector<std::int64_t> cells;
    std::vector<std::int32_t> ends, members;
    int end = 0;
    for (std::int64_t v = 0; v < p.pillars; ++v) {
      cells.push_back(hostile ? std::int64_t{random.integer(-9, 9)} << 40 : v << 21 | random.integer(0, 9));
      ends.push_back(hostile ? random.integer(-9, 99) : end += random.integer(0, 4));
    }
    for (std::int64_t m = 0; m < p.members; ++m)
      members.push_back(random.integer(hostile ? -5 : 0, static_cast<int>(p.points) - 1));
    const std::vector<Bytes> groups{bytes_of(rows_of_points(random, p.points, points, i % 3 == 0)), bytes_of_all(cells),
                                    bytes_of_all(ends), bytes_of_all(members)};
    const std::vector<std::optional<std::int32_t>> counts{
        points, random.integer(-1, static_cast<int>(p.pillars) + 1),
        i % 5 == 0 ? std::optional<std::int32_t>() : random.integer(0, static_cast<int>(p.members))};
    run_operator(KernelId::kPillarFeatures, p, groups, counts);
    p.channels = random.integer(1, 140);
    std::vector<Bytes> layer = groups;
    layer.push_back(bytes_of(random.values(pillar_features(p) * p.channels, false)));
    // Also zeros of both signs and NaN: padding starts the maximum at them.
    layer.push_back(bytes_of(random.values(p.channels, hostile)));
    run_operator(KernelId::kPillarEncode, p, layer, counts);
  }
}

TEST(TopKDecode, AnyMaps) {
  Random random(6);
  for (int i = 0; i < 60; ++i) {
    TopKDecodeParams p;
    p.classes = random.integer(1, 4);
    p.h = random.integer(1, 12);
    p.w = random.integer(1, 12);
    p.k = random.integer(1, 30);
    p.velocity = i % 2;
    std::vector<Bytes> maps;
    for (const int channels : {p.classes, 2, 1, 3, 2, 2}) {
      maps.push_back(bytes_of(random.values(std::int64_t{channels} * p.h * p.w, i % 3 == 0)));
    }
    if (p.velocity == 0) maps[5].clear();
    run_operator(KernelId::kTopKDecode, p, maps, {});
  }
}

TEST(Nms, AnyBoxes) {
  Random random(7);
  for (int i = 0; i < 60; ++i) {
    NmsParams p;
    p.capacity = random.integer(1, 60);
    p.most = random.integer(0, 60);
    p.agnostic = i % 2;
    std::fill(std::begin(p.limit), std::end(p.limit), 0.3F);
    const std::int32_t count = random.integer(-1, static_cast<int>(p.capacity) + 1);
    std::vector<std::int32_t> classes;
    for (std::int64_t c = 0; c < p.capacity; ++c)
      classes.push_back(random.integer(i % 4 == 0 ? -2 : 0, i % 4 == 0 ? 17 : 3));
    const std::vector<Bytes> boxes{bytes_of(random.values(p.capacity * kBoxColumns, i % 3 == 0)),
                                   bytes_of(random.values(p.capacity, i % 3 == 0)), bytes_of_all(classes)};
    for (const KernelId id : {KernelId::kCircleNms, KernelId::kAxisAlignedNms, KernelId::kRotatedNms}) {
      run_operator(id, p, boxes, {count});
    }
  }
}

}  // namespace
}  // namespace takt::kernels::cpu
