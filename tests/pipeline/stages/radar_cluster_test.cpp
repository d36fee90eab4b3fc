#include "pipeline/stages/radar_cluster.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "pipeline/stages/adversarial.h"
#include "stage_fixture.h"

namespace takt::pipeline::testing {
namespace {

constexpr std::uint32_t kCapacity = 300;

// A point of the vehicle frame that moves over ground with (vx, vy), as the radar on the moving vehicle reports it:
// difference of the two velocities along the ray.
sensors::RadarReturn echo(float x, float y, float vx, float vy, float ego_speed, float ego_yaw_rate) {
  const sensors::RigSensor sensor = radar_sensor(kCapacity);
  const VehicleFromSensor pose(sensor.vehicle_from_sensor);
  const Point3 o = pose.origin();
  const float z = 0.5F;
  const float sensor_vx = ego_speed - ego_yaw_rate * o.y;  // v + omega x lever arm
  const float sensor_vy = ego_yaw_rate * o.x;
  const float dx = x - o.x, dy = y - o.y;
  const float range = std::sqrt(dx * dx + dy * dy);
  const Point3 p = pose.in_sensor(x, y, z);
  return {p.x, p.y, p.z, ((vx - sensor_vx) * dx + (vy - sensor_vy) * dy) / range, 10};
}

TEST(RadarCluster, CompensatesTheDopplerOfAMovingAndTurningSensor) {
  StageUnderTest stage("radar_cluster", {radar_sensor(kCapacity), ego_sensor()});
  ASSERT_EQ(stage.error(), "");
  const float speed = 12, yaw_rate = 0.4F;
  const Chunk scan =
      make_scan({echo(30, 4, 8, 0, speed, yaw_rate), echo(31, 4.5F, 8, 0, speed, yaw_rate),  // drives ahead
                 echo(20, -6, -5, 0, speed, yaw_rate),                                       // comes towards
                 echo(15, 8, 0, 0, speed, yaw_rate), echo(16, 8.4F, 0, 0, speed, yaw_rate),
                 echo(16.5F, 8.2F, 0, 0, speed, yaw_rate)},  // stands
                kCapacity);
  const Chunk ego = make_ego(speed, yaw_rate);
  const Output output = stage.run({scan.input(), ego.input()});
  ASSERT_EQ(output.list().count, 3U);
  const Object& ahead = output.objects()[0];
  EXPECT_NEAR(ahead.x, 30.5, 0.01);
  EXPECT_EQ(ahead.points, 2U);
  EXPECT_NEAR(ahead.range_rate, 8 * ahead.ray_x, 0.05);
  EXPECT_EQ(ahead.flags, std::uint32_t{kHasPosition | kHasRangeRate});
  const Object& oncoming = output.objects()[1];
  EXPECT_NEAR(oncoming.x, 20, 0.01);
  EXPECT_NEAR(oncoming.range_rate, -5 * oncoming.ray_x, 0.01);
  const Object& standing = output.objects()[2];
  EXPECT_NEAR(standing.range_rate, 0, 0.01);
  EXPECT_LT(standing.score, oncoming.score);
  EXPECT_NEAR(standing.ray_x * standing.ray_x + standing.ray_y * standing.ray_y, 1, 1e-5);
}

TEST(RadarCluster, WithoutEgoMotionSaysNothingAboutSpeed) {
  StageUnderTest stage("radar_cluster", {radar_sensor(kCapacity), ego_sensor()});
  const Chunk scan =
      make_scan({echo(30, 4, 8, 0, 12, 0), echo(31, 4.5F, 8, 0, 12, 0), echo(30.2F, 4.8F, 8, 0, 12, 0)}, kCapacity);
  const Output output = stage.run({scan.input(), StageInput{}});
  ASSERT_EQ(output.list().count, 1U);
  EXPECT_EQ(output.objects()[0].flags, std::uint32_t{kHasPosition});
  EXPECT_EQ(output.objects()[0].range_rate, 0);
}

TEST(RadarCluster, OrderOfReturnsDoesNotShow) {
  SplitMix noise(9);
  std::vector<sensors::RadarReturn> returns;
  for (int i = 0; i < 250; ++i) {
    returns.push_back({noise.uniform(2, 60), noise.uniform(-20, 20), 0, noise.uniform(-15, 3), noise.uniform(0, 20)});
  }
  returns.push_back(returns.front());  // and a duplicate
  const Chunk ego = make_ego(10, 0.1);
  StageUnderTest stage("radar_cluster", {radar_sensor(kCapacity), ego_sensor()});
  const Output first = stage.run({make_scan(returns, kCapacity).input(), ego.input()});
  EXPECT_GT(first.list().count, 20U);
  for (int shuffle = 0; shuffle < 10; ++shuffle) {
    for (std::size_t i = returns.size() - 1; i > 0; --i) std::swap(returns[i], returns[noise.next() % (i + 1)]);
    EXPECT_EQ(stage.run({make_scan(returns, kCapacity).input(), ego.input()}, 1 + shuffle % 3).digest(),
              first.digest());
  }
}

TEST(RadarCluster, NearbyReturnsOfDifferentSpeedStayApart) {
  StageUnderTest stage("radar_cluster", {radar_sensor(kCapacity), ego_sensor()});
  const Chunk scan = make_scan({echo(30, 1, 8, 0, 0, 0), echo(30.5F, 2, -8, 0, 0, 0)}, kCapacity);
  const Output output = stage.run({scan.input(), make_ego(0, 0).input()});
  EXPECT_EQ(output.list().count, 2U);
}

TEST(RadarCluster, BadInputsGiveWhatCanBeSaved) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  StageUnderTest stage("radar_cluster", {radar_sensor(4), ego_sensor()});
  const Chunk ego = make_ego(10, 0);
  EXPECT_EQ(stage.run({StageInput{}, StageInput{}}).list().count, 0U);
  EXPECT_EQ(stage.run({make_scan({}, 4).input(), ego.input()}).list().count, 0U);
  const std::vector<sensors::RadarReturn> returns{
      {nan, 0, 0, 0, 0}, {10, 0, 0, nan, 0}, {10, 0, 0, std::numeric_limits<float>::infinity(), 0}, {20, 1, 0, 0, 5}};
  const Output output = stage.run({make_scan(returns, 4).input(), ego.input()});
  EXPECT_EQ(output.list().invalid_points, 3U);
  EXPECT_EQ(output.list().input_points, 1U);
  EXPECT_TRUE(output.repaired);
  ASSERT_EQ(output.list().count, 1U);  // moves with 10 m/s
  EXPECT_NEAR(output.objects()[0].range_rate, 10, 0.1);
  const std::vector<sensors::RadarReturn> many(50, {20, 1, 0, 0, 5});
  const Output cut = stage.run({make_scan(many, 100).input(), ego.input()});
  EXPECT_EQ(cut.list().input_points, 4U);
  EXPECT_TRUE(cut.repaired);
  Chunk broken_ego = make_ego(10, 0);
  broken_ego.as<sensors::EgoMotion>().velocity[0] = nan;
  const Output blind = stage.run({make_scan(many, 100).input(), broken_ego.input()});
  for (const Object& o : blind.objects()) EXPECT_EQ(o.flags & kHasRangeRate, 0U);
}

TEST(RadarCluster, HostileInputIsBoundedAndReported) {
  StageUnderTest stage("radar_cluster", {radar_sensor(2000), ego_sensor()});
  Chunk scan(sensors::RadarScan::bytes_for(2000)), ego(sensors::EgoMotion::bytes_for());
  stage->adversarial_input(0, 3, scan.header, scan.bytes());
  stage->adversarial_input(1, 3, ego.header, ego.bytes());
  EXPECT_EQ(stage.run({scan.input(), ego.input()}).list().input_points, 2000U);
}

}  // namespace
}  // namespace takt::pipeline::testing
