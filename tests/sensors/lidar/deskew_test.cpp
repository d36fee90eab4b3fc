// The oracle is the motion itself: walls that stand still in the world, seen from a vehicle whose pose is known at
// every instant, must stand still after compensation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cmath>
#include <vector>

#include "sensors/lidar/deskew.h"
#include "sensors/sim/lidar.h"
#include "sensors/sim/world.h"
#include "tests/sensors/lidar/cloud.h"

namespace takt::sensors {
namespace {

using ::testing::HasSubstr;
using Vector = std::array<double, 3>;

constexpr double kPi = 3.14159265358979323846;
constexpr SensorTime kStart{1'000'000'000};

// Rotation about a fixed axis by `angle`, as a quaternion.
std::array<double, 4> turn(Vector axis, double angle) {
  const double norm = std::sqrt(axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2]);
  const double s = std::sin(angle / 2) / norm;
  return {std::cos(angle / 2), axis[0] * s, axis[1] * s, axis[2] * s};
}

// A screw: constant velocity in the world and constant turn rate about one axis. Both interpolations are exact for it.
struct Screw {
  Vector velocity{20, -1, 0.5};
  Vector axis{0.1, -0.2, 1};
  double rate = 0.8;  // rad/s
  [[nodiscard]] StampedPose at(SensorTime t) const {
    const double s = (t - kStart).seconds();
    return {t, {100 + velocity[0] * s, velocity[1] * s, velocity[2] * s}, turn(axis, 0.3 + rate * s)};
  }
  [[nodiscard]] std::vector<StampedPose> sampled(Duration first, Duration last, Duration step) const {
    std::vector<StampedPose> out;
    for (Duration d = first; d <= last; d += step) out.push_back(at(kStart + d));
    return out;
  }
};
Transform transform_of(const StampedPose& p) { return Transform::from_quaternion(p.orientation, p.position); }

DeskewSetup roof() {
  DeskewSetup setup;
  setup.vehicle_from_sensor = Transform::from_quaternion(turn({0, 1, 0.2}, 0.1), {1.2, -0.3, 1.9});
  return setup;
}

// A sweep of 100 ms before kStart + 100 ms over points that stand still in the world.
struct Sweep {
  Cloud cloud{2000};
  std::vector<Vector> world;
  SensorTime stamp = kStart + milliseconds(100);
};
Sweep sweep_of(const Screw& motion, const DeskewSetup& setup) {
  Sweep out;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    const std::int32_t time = -100'000'000 + static_cast<std::int32_t>(i) * 50'000;
    const double angle = 2 * kPi * i / 2000.0;
    const Vector w{100 + 30 * std::cos(angle), 30 * std::sin(angle), 0.01 * (i % 300)};
    const Transform pose = transform_of(motion.at(out.stamp + nanoseconds(time))) * setup.vehicle_from_sensor;
    const Vector p = pose.inverse().apply(w);
    out.cloud.add({static_cast<float>(p[0]), static_cast<float>(p[1]), static_cast<float>(p[2]), 0, time, 0});
    out.world.push_back(w);
  }
  return out;
}

double worst_error(const Sweep& sweep, const Transform& world_from_sensor) {
  double worst = 0;
  for (std::uint32_t i = 0; i < sweep.cloud->count; ++i) {
    const TestPoint p = sweep.cloud.at(i);
    const Vector got = world_from_sensor.apply({p.x, p.y, p.z});
    for (std::size_t k = 0; k < 3; ++k) worst = std::max(worst, std::fabs(got[k] - sweep.world[i][k]));
  }
  return worst;
}

TEST(Deskew, StandingPointsStandStillInAllSixDegreesOfFreedom) {
  const Screw motion;
  const DeskewSetup setup = roof();
  for (const Duration target : {milliseconds(100), milliseconds(0), milliseconds(37)}) {
    Sweep sweep = sweep_of(motion, setup);
    const Transform there = transform_of(motion.at(kStart + target)) * setup.vehicle_from_sensor;
    EXPECT_GT(worst_error(sweep, there), 0.5) << "the motion shows";
    const auto poses = motion.sampled(milliseconds(-20), milliseconds(130), milliseconds(50));
    const Status done = deskew(*sweep.cloud, sweep.stamp, setup, poses, kStart + target);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_LT(worst_error(sweep, there), 2e-5) << "single precision of the points";
    EXPECT_EQ(sweep.cloud.at(7).time_ns, -100'000'000 + 7 * 50'000) << "times stay";
  }
}

TEST(Deskew, GoesOnBeyondThePosesOnlyAsFarAsAllowed) {
  const Screw motion;
  DeskewSetup setup = roof();
  Sweep sweep = sweep_of(motion, setup);
  const auto poses = motion.sampled(milliseconds(15), milliseconds(75), milliseconds(20));
  const Status refused = deskew(*sweep.cloud, sweep.stamp, setup, poses, sweep.stamp);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("begin 15.0"));
  const Transform there = transform_of(motion.at(sweep.stamp)) * setup.vehicle_from_sensor;
  const double before = worst_error(sweep, there);
  EXPECT_GT(before, 1) << "refused, hence untouched";
  setup.extrapolate = milliseconds(30);
  ASSERT_TRUE(deskew(*sweep.cloud, sweep.stamp, setup, poses, sweep.stamp));
  EXPECT_LT(worst_error(sweep, there), 2e-5);
}

TEST(Deskew, RefusesCompensatedCloudsAndCloudsWithoutTimes) {
  const Screw motion;
  const auto poses = motion.sampled(milliseconds(-20), milliseconds(140), milliseconds(20));
  DeskewSetup setup = roof();
  Sweep sweep = sweep_of(motion, setup);
  setup.motion_compensated = true;
  const Status twice = deskew(*sweep.cloud, sweep.stamp, setup, poses, sweep.stamp);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, Code::kConfiguration);

  setup.motion_compensated = false;
  Cloud timeless(4);
  timeless.add({1, 0, 0});
  timeless.add({2, 0, 0});
  const Status none = deskew(*timeless, sweep.stamp, setup, poses, sweep.stamp);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("no times"));
  EXPECT_EQ(timeless.at(1).x, 2.0F);

  Cloud empty(4);
  EXPECT_TRUE(deskew(*empty, sweep.stamp, setup, {}, sweep.stamp)) << "nothing to do";
  EXPECT_FALSE(deskew(*sweep.cloud, sweep.stamp, setup, {}, sweep.stamp)) << "no poses";
}

TEST(InterpolatePose, TakesTheShorterArcAtConstantSpeed) {
  std::vector<StampedPose> poses{{kStart, {0, 0, 0}, turn({0, 0, 1}, -0.1)},
                                 {kStart + seconds(1), {10, 0, 0}, turn({0, 0, 1}, 2.9)}};
  for (double& part : poses[1].orientation) part = -part;  // the same rotation
  for (const double u : {0.0, 0.1, 0.25, 1 / 3.0, 0.5, 0.77, 1.0}) {
    const auto pose = interpolate_pose(poses, kStart + nanoseconds(std::llround(u * 1e9)), {});
    ASSERT_TRUE(pose);
    const double yaw = std::atan2(pose->rotation[3], pose->rotation[0]);
    EXPECT_NEAR(yaw, -0.1 + 3.0 * u, 1e-6) << u;
    EXPECT_NEAR(pose->translation[0], 10 * u, 1e-8);
  }
  EXPECT_FALSE(interpolate_pose(poses, kStart + seconds(2), milliseconds(10)));
  EXPECT_FALSE(interpolate_pose(std::span(poses).first(1), kStart + nanoseconds(1), seconds(1)))
      << "one pose, no motion";
  EXPECT_TRUE(interpolate_pose(std::span(poses).first(1), kStart, {}));
}

// The simulator's rays start from where the sensor is at each instant: an independent source of skew.
TEST(Deskew, AStandingWallOfTheSimulatorIsStraight) {
  sim::Scene scene;
  scene.seed = 1;
  scene.sun_elevation = 0.8;
  scene.road = sim::Road({{400, 0}});
  scene.ego_speed = 25;
  sim::Actor wall;  // across the road: seen over a wide angle, hence over a long part of the sweep
  wall.id = 1;
  wall.length = 1;
  wall.width = 60;
  wall.height = 3.5;
  wall.colour = {0.5, 0.05, 0.05};
  wall.station = 30;
  wall.speed = 0;
  scene.actors = {wall};
  scene.lidar.columns = 600;
  for (double e = -25; e <= 4; e += 0.5) scene.lidar.elevations.push_back(e * kPi / 180);
  scene.lidar.maximum_range = 100;
  const sim::World world(scene);
  RigSensor sensor;
  sensor.kind = SensorKind::kLidar;
  sensor.capacity = 100'000;
  sensor.duration = milliseconds(100);
  sensor.vehicle_from_sensor.translation = {1, 0, 1.9};
  sim::Sweep sweep;
  sim::simulate_sweep(world, sensor, 0, 0.0, milliseconds(100), &sweep);

  Cloud cloud(100'000);
  for (const log::LidarPoint& p : sweep.points) cloud.add({p.x, p.y, p.z, p.intensity, p.time_ns, p.ring});
  std::vector<StampedPose> poses;
  for (int i = 0; i <= 10; ++i) {
    const sim::Motion ego = world.ego(i * 0.01);
    poses.push_back({SensorTime{} + milliseconds(10 * i),
                     {ego.position.x, ego.position.y, ego.position.z},
                     turn({0, 0, 1}, ego.yaw)});
  }
  DeskewSetup setup;
  setup.vehicle_from_sensor = sensor.vehicle_from_sensor;

  // How much farther the right end of the wall is than the left one: the vehicle moved between the two.
  const auto slant = [&] {
    double left = 0, right = 0;
    std::uint32_t lefts = 0, rights = 0;
    for (std::uint32_t i = 0; i < cloud->count; ++i) {
      const TestPoint p = cloud.at(i);
      if (p.x < 20 || p.x > 35 || p.z < -0.8 || std::fabs(p.y) < 10 || std::fabs(p.y) > 25) continue;
      (p.y > 0 ? left : right) += p.x;
      ++(p.y > 0 ? lefts : rights);
    }
    EXPECT_GT(std::min(lefts, rights), 50U);
    return std::fabs(right / rights - left / lefts);
  };
  ASSERT_GT(cloud->count, 5000U);
  const double skewed = slant();
  ASSERT_TRUE(deskew(*cloud, SensorTime{} + milliseconds(100), setup, poses, SensorTime{} + milliseconds(100)));
  const double straight = slant();
  EXPECT_GT(skewed, 0.3) << "m; the motion shows";
  EXPECT_LT(straight, 0.05) << "m; noise of the simulated range";
}

}  // namespace
}  // namespace takt::sensors
