#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <vector>

#include "sensors/radar/doppler.h"
#include "tests/support/test_data.h"

namespace takt::sensors {
namespace {

using Vector = std::array<double, 3>;

// A vehicle in a bend with a corner radar. The oracle is geometry: the range rate of a standing point is how fast its
// distance changes while the vehicle moves for a microsecond.
struct Bend {
  EgoMotion ego;
  Transform mount = Transform::from_quaternion({std::cos(0.5), 0, 0, std::sin(0.5)}, {3.6, 0.8, 0.6});
  Bend() {
    ego.velocity[0] = 12;
    ego.velocity[1] = -0.4;
    ego.angular_velocity[2] = 0.7;
  }
  // T_start_sensor after `t` seconds, planar.
  [[nodiscard]] Transform sensor_at(double t) const {
    const double yaw = ego.angular_velocity[2] * t;
    return Transform::from_quaternion({std::cos(yaw / 2), 0, 0, std::sin(yaw / 2)},
                                      {ego.velocity[0] * t, ego.velocity[1] * t, 0}) *
           mount;
  }
  [[nodiscard]] RadarReturn standing(const Vector& start_frame) const {
    const auto in_sensor = [&](double t) { return sensor_at(t).inverse().apply(start_frame); };
    const auto range = [&](double t) {
      const Vector p = in_sensor(t);
      return std::sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2]);
    };
    const Vector p = in_sensor(0);
    return {static_cast<float>(p[0]), static_cast<float>(p[1]), static_cast<float>(p[2]),
            static_cast<float>((range(1e-6) - range(-1e-6)) / 2e-6), 10};
  }
};

std::vector<RadarReturn> standing_scan(const Bend& bend) {
  std::vector<RadarReturn> out;
  for (int i = 0; i < 60; ++i) {
    out.push_back(bend.standing({10.0 + i, -30.0 + 1.3 * (i * 7 % 50), 0.1 * (i % 40)}));
  }
  return out;
}

TEST(Doppler, StandingReturnsHaveNoRangeRateAfterCompensation) {
  const Bend bend;
  const Vector velocity = sensor_velocity(bend.ego, bend.mount);
  double largest = 0;
  for (const RadarReturn& r : standing_scan(bend)) {
    largest = std::max(largest, std::fabs(static_cast<double>(r.range_rate)));
    EXPECT_NEAR(compensated_range_rate(r, velocity), 0, 2e-4);
  }
  EXPECT_GT(largest, 5) << "the motion shows";
}

TEST(Doppler, LeverArmAndYawRateMatter) {
  const Bend bend;
  Bend no_turn = bend;
  no_turn.ego.angular_velocity[2] = 0;
  Transform no_arm = bend.mount;
  no_arm.translation = {};
  double without_turn = 0, without_arm = 0;
  for (const RadarReturn& r : standing_scan(bend)) {
    const double a = compensated_range_rate(r, sensor_velocity(no_turn.ego, bend.mount));
    const double b = compensated_range_rate(r, sensor_velocity(bend.ego, no_arm));
    without_turn = std::max(without_turn, std::fabs(a));
    without_arm = std::max(without_arm, std::fabs(b));
  }
  EXPECT_GT(without_turn, 1);
  EXPECT_GT(without_arm, 1);
}

TEST(Doppler, AReturnWithoutDirectionHasNone) {
  EXPECT_TRUE(std::isnan(compensated_range_rate({0, 0, 0, 1, 0}, {1, 0, 0})));
  EXPECT_TRUE(std::isnan(compensated_range_rate({std::numeric_limits<float>::infinity(), 0, 0, 1, 0}, {1, 0, 0})));
}

TEST(Doppler, OwnVelocityFromTheScanDespiteMovingReturns) {
  const Bend bend;
  std::vector<RadarReturn> scan = standing_scan(bend);
  for (std::size_t i = 0; i < scan.size(); i += 4) scan[i].range_rate += 8;  // a quarter drives away
  const auto estimate = estimate_sensor_velocity(scan);
  ASSERT_TRUE(estimate) << estimate.error().message;
  const Vector wanted = sensor_velocity(bend.ego, bend.mount);
  for (std::size_t k = 0; k < 2; ++k) EXPECT_NEAR(estimate->velocity[k], wanted[k], 0.01);
  EXPECT_EQ(estimate->at_rest, 45U);
  EXPECT_EQ(estimate->used, 60U);

  EXPECT_FALSE(estimate_sensor_velocity(std::span(scan).first(7)));
  const std::vector<RadarReturn> one_ray(20, RadarReturn{10, 0, 0, -5, 0});
  EXPECT_FALSE(estimate_sensor_velocity(one_ray));
}

TEST(Doppler, AScanWithoutHeightShowsThePlanarVelocity) {
  std::vector<RadarReturn> scan;
  for (int i = -10; i <= 10; ++i) {
    const double a = 0.1 * i;
    scan.push_back({static_cast<float>(20 * std::cos(a)), static_cast<float>(20 * std::sin(a)), 0,
                    static_cast<float>(-(9 * std::cos(a) + 2 * std::sin(a))), 0});
  }
  const auto estimate = estimate_sensor_velocity(scan);
  ASSERT_TRUE(estimate);
  EXPECT_NEAR(estimate->velocity[0], 9, 1e-3);
  EXPECT_NEAR(estimate->velocity[1], 2, 1e-3);
  EXPECT_EQ(estimate->velocity[2], 0);
}

// Columns of View-of-Delft: x y z RCS v_r v_r_compensated time. Its compensated column is the oracle.
TEST(Doppler, AgreesWithTheCompensatedColumnOfViewOfDelft) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/view_of_delft/radar/training/velodyne");
  for (const char* name : {"00549.bin", "01047.bin"}) {
    std::ifstream file(folder + "/" + name, std::ios::binary);
    ASSERT_TRUE(file) << name;
    std::vector<RadarReturn> scan;
    std::vector<double> theirs;
    for (float row[7]; file.read(reinterpret_cast<char*>(row), sizeof row);) {
      scan.push_back({row[0], row[1], row[2], row[4], row[3]});
      theirs.push_back(row[5]);
    }
    const auto estimate = estimate_sensor_velocity(scan);
    ASSERT_TRUE(estimate) << estimate.error().message;
    std::vector<double> difference, rest;
    for (std::size_t i = 0; i < scan.size(); ++i) {
      const double ours = compensated_range_rate(scan[i], estimate->velocity);
      difference.push_back(std::fabs(ours - theirs[i]));
      rest.push_back(std::fabs(ours));
    }
    std::sort(difference.begin(), difference.end());
    std::sort(rest.begin(), rest.end());
    std::printf(
        "%s: %zu returns, own speed %.2f %.2f %.2f m/s, |ours - theirs| median %.3f p95 %.3f max %.3f m/s, "
        "%u at rest, median |ours| %.3f\n",
        name, scan.size(), estimate->velocity[0], estimate->velocity[1], estimate->velocity[2],
        difference[difference.size() / 2], difference[difference.size() * 95 / 100], difference.back(),
        estimate->at_rest, rest[rest.size() / 2]);
    EXPECT_LT(difference[difference.size() / 2], 0.1);
    EXPECT_LT(difference[difference.size() * 95 / 100], 0.3);
    EXPECT_LT(rest[rest.size() / 2], 0.1) << "most of a street stands still";
  }
}

}  // namespace
}  // namespace takt::sensors
