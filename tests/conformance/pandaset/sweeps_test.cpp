// Accumulated sweeps of a recorded drive: what stood still lies where the present sweep sees it, and only with the
// recorded motion the right way round.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <unordered_set>
#include <vector>

#include "kernels/reference/points.h"
#include "tests/support/test_data.h"
#include "tools/convert/pandaset.h"

namespace takt::tools {
namespace {

using kernels::kPastColumns;
using kernels::kPointColumns;

constexpr float kCell_m = 0.2F;

std::int64_t cell_of(const float* point) {
  const auto index = [&](int d) { return static_cast<std::int64_t>(std::floor(point[d] / kCell_m)) + 4096; };
  return index(0) << 32 | index(1) << 16 | index(2);
}

// Walls, cars and poles within 40 m: the ground looks the same wherever the vehicle is.
std::vector<float> standing(const PandasetSweep& sweep) {
  std::vector<float> rows;
  for (std::size_t i = 0; i < sweep.size(); ++i) {
    const float x = static_cast<float>(sweep.x_cm[i]) * 0.01F, y = static_cast<float>(sweep.y_cm[i]) * 0.01F,
                z = static_cast<float>(sweep.z_cm[i]) * 0.01F;
    if (z > 0.3F && z < 4 && x * x + y * y < 1600) rows.insert(rows.end(), {x, y, z, 0.5F, 0});
  }
  return rows;
}

std::vector<double> pose_of(const sensors::Transform& t) {
  const std::array<double, 4> q = t.quaternion();
  return {t.translation[0], t.translation[1], t.translation[2], q[0], q[1], q[2], q[3]};
}

// The share of the earlier sweep's points that fall into cells of the present one.
double overlap(const std::vector<float>& before, const std::vector<float>& now, std::int64_t before_ns,
               std::int64_t now_ns, const std::vector<double>& before_pose, const std::vector<double>& now_pose) {
  const auto n = static_cast<std::int64_t>(std::max(before.size(), now.size()) / kPointColumns);
  kernels::SweepsParams p{n, 1, 2 * n, 2'000'000'000, 2'000'000'000};
  std::vector<float> past(static_cast<std::size_t>(n) * kPastColumns), rows = now,
                                                                       out(static_cast<std::size_t>(2 * n) * 5);
  rows.resize(static_cast<std::size_t>(n) * kPointColumns);
  const std::size_t earlier = before.size() / kPointColumns, present = now.size() / kPointColumns;
  for (std::size_t i = 0; i < earlier; ++i) std::copy_n(&before[5 * i], 4, &past[4 * i]);
  const std::vector<std::int64_t> sweeps{before_ns, static_cast<std::int64_t>(earlier)};
  std::vector<float> next_past(past.size());
  std::vector<std::int64_t> next_sweeps(2);
  std::vector<double> next_poses(7);
  std::int32_t count = static_cast<std::int32_t>(present), forgotten = 0, dropped = 0, kept = 0;
  kernels::reference::sweeps(
      p,
      {rows.data(), &count, &now_ns, now_pose.data(), past.data(), sweeps.data(), before_pose.data(), out.data(),
       next_past.data(), next_sweeps.data(), next_poses.data(), &forgotten, &dropped, &kept},
      0, 1);
  EXPECT_EQ(forgotten + dropped, 0);
  EXPECT_EQ(static_cast<std::size_t>(kept), earlier + present);
  std::unordered_set<std::int64_t> occupied;
  for (std::size_t i = 0; i < present; ++i) occupied.insert(cell_of(&out[5 * i]));
  std::size_t met = 0;
  for (std::size_t i = present; i < present + earlier; ++i) {
    EXPECT_NEAR(out[5 * i + 4], static_cast<double>(now_ns - before_ns) * 1e-9, 1e-6);
    met += occupied.count(cell_of(&out[5 * i]));
  }
  return static_cast<double>(met) / static_cast<double>(earlier);
}

TEST(PandasetSweeps, ComeToThePresentPose) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/pandaset_002");
  const auto set = open_pandaset(folder);
  ASSERT_TRUE(set) << set.error().message;
  // The vehicle drives off in the second half of the sweeps, slowly: sweeps apart by as much as it moves 0.9 to 1.6 m.
  constexpr std::size_t kApart = 6;
  for (std::size_t frame = set->sweeps - 3; frame < set->sweeps; ++frame) {
    const PandasetPose &a = set->poses[frame - kApart], &b = set->poses[frame];
    double step = 0;
    for (std::size_t d = 0; d < 3; ++d) {
      step += std::pow(b.world_from_lidar.translation[d] - a.world_from_lidar.translation[d], 2);
    }
    ASSERT_GT(std::sqrt(step), 0.9);
    const auto before = read_sweep(*set, frame - kApart), now = read_sweep(*set, frame);
    ASSERT_TRUE(before && now);
    const std::vector<float> earlier = standing(*before), present = standing(*now);
    const auto share = [&](const sensors::Transform& from, const sensors::Transform& to) {
      return overlap(earlier, present, a.stamp.ns, b.stamp.ns, pose_of(from), pose_of(to));
    };
    const double right = share(a.world_from_lidar, b.world_from_lidar);
    const double unmoved = share(a.world_from_lidar, a.world_from_lidar);
    const double reversed = share(b.world_from_lidar, a.world_from_lidar);
    std::printf("frame %zu, %.2f m on: %.3f of the points meet, unmoved %.3f, the wrong way %.3f\n", frame,
                std::sqrt(step), right, unmoved, reversed);
    EXPECT_GT(right, 1.3 * unmoved);
    EXPECT_GT(unmoved, reversed);
  }
}

}  // namespace
}  // namespace takt::tools
