#include "pipeline/stages/lidar_classical.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "stage_fixture.h"
#include "synthetic_street.h"

namespace takt::pipeline::testing {
namespace {

constexpr std::uint32_t kCapacity = 40'000;

const std::vector<StreetBox>& street() {
  static const std::vector<StreetBox> boxes{
      StreetBox::car(12, 3.5F, 0),
      StreetBox::car(18, -3.2F, 3.14F),
      StreetBox::car(30, 0.3F, 0.05F),
      StreetBox::car(-14, -3.5F, 0.1F),
      StreetBox::car(24, -10, 1.2F),
      StreetBox::car(8, -7, 0.8F),
      {10, 6.5F, 0.5F, 0.5F, 1.75F, 0.3F},  // a pedestrian
      {20, 22, 30, 8, 12, 0},               // a house
  };
  return boxes;
}

const Object* nearest(const Output& output, float x, float y, ObjectClass object_class) {
  const Object* best = nullptr;
  float best_distance = 2;
  for (const Object& o : output.objects()) {
    if (o.object_class != object_class) continue;
    const float d = std::sqrt((o.x - x) * (o.x - x) + (o.y - y) * (o.y - y));
    if (d < best_distance) {
      best_distance = d;
      best = &o;
    }
  }
  return best;
}

int vehicles(const Output& output) {
  return static_cast<int>(std::count_if(output.objects().begin(), output.objects().end(),
                                        [](const Object& o) { return o.object_class == ObjectClass::kVehicle; }));
}

TEST(LidarClassical, FindsTheCarsOfAStreet) {
  StageUnderTest stage("lidar_classical", {lidar_sensor(kCapacity)});
  ASSERT_EQ(stage.error(), "");
  const Chunk cloud = make_cloud(scan_street(street(), lidar_sensor(kCapacity), 1), kCapacity);
  const Output output = stage.run({cloud.input()});
  for (std::size_t i = 0; i < 6; ++i) {
    const StreetBox& truth = street()[i];
    const Object* o = nearest(output, truth.x, truth.y, ObjectClass::kVehicle);
    ASSERT_NE(o, nullptr) << "car " << i;
    EXPECT_LT(std::hypot(o->x - truth.x, o->y - truth.y), 0.6) << "car " << i;
    EXPECT_NEAR(std::remainder(o->yaw - truth.yaw, 3.14159265), 0, 0.12) << "car " << i;
    EXPECT_NEAR(o->z - o->height / 2, 0, 0.15);
    EXPECT_GT(o->position_variance, 0);
    EXPECT_EQ(o->flags, std::uint32_t{kHasPosition | kHasBox});
  }
  EXPECT_EQ(vehicles(output), 6) << "the house and the pedestrian are no vehicles";
  EXPECT_NE(nearest(output, 10, 6.5F, ObjectClass::kPedestrian), nullptr);
}

TEST(LidarClassical, SaysWhereItsDataComesFrom) {
  StageUnderTest stage("lidar_classical", {ego_sensor(), lidar_sensor(kCapacity)});
  const Chunk cloud = make_cloud(scan_street(street(), lidar_sensor(kCapacity), 1), kCapacity);
  const Chunk ego = make_ego(5, 0);
  const Output output = stage.run({ego.input(), cloud.input()});
  EXPECT_EQ(output.chunk.header.capture_ns, 1'000'000'000);
  EXPECT_EQ(output.chunk.header.sources[1], (transport::SourceStamps{1'000'000'000, 1'000'000'000}));
  EXPECT_EQ(output.chunk.header.sources[0], (transport::SourceStamps{990'000'000, 990'000'000}));
  EXPECT_EQ(output.chunk.header.sources[2], transport::SourceStamps{});
  EXPECT_EQ(output.list().stamp_ns, 1'000'000'000);
  EXPECT_EQ(output.list().sensor, 1U);
  EXPECT_FALSE(output.repaired);
}

TEST(LidarClassical, BytesDoNotDependOnTheNumberOfParts) {
  for (std::uint32_t seed = 0; seed < 4; ++seed) {
    SplitMix noise(seed);
    std::vector<CloudPoint> points = scan_street(street(), lidar_sensor(kCapacity), seed);
    for (int i = 0; i < 5000; ++i) {
      points.push_back({noise.uniform(-60, 60), noise.uniform(-60, 60), noise.uniform(-2, 6)});
    }
    const Chunk cloud = make_cloud(points, kCapacity, seed % 2 == 0);
    const Chunk ego = make_ego(8, 0.2);
    StageUnderTest one("lidar_classical", {lidar_sensor(kCapacity), ego_sensor()});
    StageUnderTest many("lidar_classical", {lidar_sensor(kCapacity), ego_sensor()});
    const Output a = one.run({cloud.input(), ego.input()}, 1);
    EXPECT_GT(a.list().count, 10U);
    for (const int parts : {1, 2, 3, 7}) {
      EXPECT_EQ(many.run({cloud.input(), ego.input()}, parts).digest(), a.digest()) << parts << " parts, seed " << seed;
    }
  }
}

// A car at rest, scanned while the ego vehicle drives and turns: without deskew it is smeared and displaced.
TEST(LidarClassical, DeskewsWithTheEgoMotion) {
  const float speed = 15, yaw_rate = 0.2F;
  const std::vector<StreetBox> boxes{StreetBox::car(14, 5, 0.3F)};
  const sensors::RigSensor sensor = lidar_sensor(kCapacity);
  std::vector<CloudPoint> points = scan_street(boxes, sensor, 3);
  const VehicleFromSensor pose(sensor.vehicle_from_sensor);
  for (CloudPoint& point : points) {
    point.time_ns = 60'000'000;  // all of them 60 ms after the stamp
    const float t = 0.06F;
    const double a = yaw_rate * t;
    // Exact circular motion: position of the vehicle at t in the frame at 0.
    const double px = speed / yaw_rate * kernels::sin(a), py = speed / yaw_rate * (1 - kernels::cos(a));
    const Point3 p = pose.point(point.x, point.y, point.z);
    const double c = kernels::cos(a), s = kernels::sin(a);
    const auto x = static_cast<float>(c * (p.x - px) + s * (p.y - py));
    const auto y = static_cast<float>(c * (p.y - py) - s * (p.x - px));
    const Point3 moved = pose.in_sensor(x, y, p.z);
    point.x = moved.x;
    point.y = moved.y;
  }
  const Chunk ego = make_ego(speed, yaw_rate);
  StageUnderTest stage("lidar_classical", {sensor, ego_sensor()});
  const Chunk skewed = make_cloud(points, kCapacity, false);
  const Output deskewed = stage.run({skewed.input(), ego.input()});
  ASSERT_EQ(vehicles(deskewed), 1);
  EXPECT_LT(std::hypot(deskewed.objects()[0].x - 14, deskewed.objects()[0].y - 5), 0.3);
  const Output untouched = stage.run({make_cloud(points, kCapacity, true).input(), ego.input()});
  ASSERT_EQ(vehicles(untouched), 1);
  EXPECT_GT(std::hypot(untouched.objects()[0].x - 14, untouched.objects()[0].y - 5), 0.6);
}

TEST(LidarClassical, FollowsASlopeAndIgnoresReflectionsFromBelow) {
  const sensors::RigSensor sensor = lidar_sensor(kCapacity);
  std::vector<CloudPoint> points = scan_street(street(), sensor, 5);
  SplitMix noise(5);
  for (CloudPoint& p : points) p.z += 0.05F * (p.x + 1.2F);  // 5 % uphill
  for (int i = 0; i < 200; ++i) points.push_back({noise.uniform(-40, 40), noise.uniform(-10, 10), -6});
  StageUnderTest stage("lidar_classical", {sensor});
  const Output output = stage.run({make_cloud(points, kCapacity).input()});
  int found = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    if (nearest(output, street()[i].x, street()[i].y, ObjectClass::kVehicle) != nullptr) ++found;
  }
  EXPECT_EQ(found, 6);
  EXPECT_LE(vehicles(output), 7);
}

TEST(LidarClassical, LeavesOutWhatIsNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<CloudPoint> points = scan_street(street(), lidar_sensor(kCapacity), 1);
  StageUnderTest stage("lidar_classical", {lidar_sensor(kCapacity)});
  const Output clean = stage.run({make_cloud(points, kCapacity).input()});
  points.push_back({nan, 0, 0});
  points.push_back({0, infinity, 0});
  points.push_back({1, 1, -infinity});
  points.push_back({1e30F, -1e30F, 3e38F});
  const Output output = stage.run({make_cloud(points, kCapacity).input()});
  EXPECT_EQ(output.list().invalid_points, 3U);
  EXPECT_TRUE(output.repaired);
  ASSERT_EQ(output.list().count, clean.list().count);
  EXPECT_EQ(std::memcmp(output.list().objects, clean.list().objects, clean.list().count * sizeof(Object)), 0);
  const std::vector<CloudPoint> nothing(100, CloudPoint{nan, nan, nan});
  EXPECT_EQ(stage.run({make_cloud(nothing, kCapacity).input()}).list().count, 0U);
}

TEST(LidarClassical, MissingEmptyAndTornInputsGiveAnEmptyList) {
  StageUnderTest stage("lidar_classical", {lidar_sensor(kCapacity), ego_sensor()});
  const Output missing = stage.run({StageInput{}, StageInput{}});
  EXPECT_EQ(missing.list().count, 0U);
  EXPECT_EQ(missing.chunk.header.capture_ns, transport::kNoStamp);
  EXPECT_EQ(missing.chunk.header.payload_bytes, offsetof(ObjectList, objects));
  EXPECT_EQ(stage.run({make_cloud({}, kCapacity).input(), StageInput{}}).list().count, 0U);
  Chunk torn = make_cloud(scan_street(street(), lidar_sensor(kCapacity), 1), kCapacity);
  torn.header.payload_bytes = 1000;
  EXPECT_EQ(stage.run({torn.input(), StageInput{}}).list().count, 0U);
}

TEST(LidarClassical, OverCapacityIsCutAndSaid) {
  const auto points = scan_street(street(), lidar_sensor(kCapacity), 1);
  StageUnderTest stage("lidar_classical", {lidar_sensor(5000)});
  const Output larger_chunk = stage.run({make_cloud(points, kCapacity).input()});
  EXPECT_EQ(larger_chunk.list().input_points, 5000U);
  EXPECT_TRUE(larger_chunk.repaired);
  Chunk lying = make_cloud({points.begin(), points.begin() + 100}, 100);
  lying.as<sensors::PointCloud>().count = 1'000'000;
  EXPECT_EQ(stage.run({lying.input()}).list().input_points, 100U);
}

TEST(LidarClassical, HostileInputFillsTheCapacities) {
  StageUnderTest stage("lidar_classical", {lidar_sensor(kCapacity), ego_sensor()});
  Chunk cloud(sensors::PointCloud::bytes_for(kCapacity));
  Chunk ego(sensors::EgoMotion::bytes_for());
  stage->adversarial_input(0, 7, cloud.header, cloud.bytes());
  stage->adversarial_input(1, 7, ego.header, ego.bytes());
  const Output output = stage.run({cloud.input(), ego.input()});
  EXPECT_EQ(output.list().input_points, kCapacity);
  EXPECT_EQ(output.list().count, kMaxObjects);
  EXPECT_GT(output.list().dropped, 100U);
}

TEST(LidarClassical, RefusesWrongWiring) {
  EXPECT_NE(StageUnderTest("lidar_classical", {ego_sensor()}).error().find("no input from a lidar"), std::string::npos);
  EXPECT_NE(StageUnderTest("lidar_classical", {lidar_sensor(10), radar_sensor(10)}).error().find("'radar'"),
            std::string::npos);
  EXPECT_NE(StageUnderTest("lidar_classical", {lidar_sensor(0)}).error().find("capacity"), std::string::npos);
  EXPECT_NE(StageUnderTest("lidar_classical", {lidar_sensor(10)}, "{rangem: 5}").error().find("rangem"),
            std::string::npos);
  EXPECT_NE(StageUnderTest("lidar_clasical", {lidar_sensor(10)}).error().find("did you mean 'lidar_classical'"),
            std::string::npos);
}

}  // namespace
}  // namespace takt::pipeline::testing
