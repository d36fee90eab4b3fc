#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "pipeline/rig/check.h"
#include "pipeline/rig/doppler.h"
#include "pipeline/rig/ego.h"
#include "pipeline/rig/labels.h"
#include "pipeline/rig/samples.h"
#include "runtime/base/file.h"
#include "sensors/rig/rig_estimate.h"
#include "sensors/rig_pcl/rig_pcl.h"
#include "tests/support/test_data.h"
#include "tools/convert/pandaset.h"
#include "tools/convert/pandaset_to_mcap.h"

namespace takt::pipeline {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const std::string kRoot = TAKT_SOURCE_DIR;
const std::string kDrive = kRoot + "/replay_data/city.mcap";

class RigCheckOfDrive : public ::testing::Test {
 protected:
  void SetUp() override {
    auto rig = sensors::load_rig(kRoot + "/configs/rigs/sim.yaml");
    ASSERT_TRUE(rig) << rig.error().message;
    rig_ = *std::move(rig);
    folder_ = fs::path(TAKT_BINARY_DIR) / "rig-check-test" / std::to_string(::getpid());
  }
  void TearDown() override { fs::remove_all(folder_); }

  sensors::RigSensor& sensor(const std::string& name) { return rig_.sensors[*rig_.find(name)]; }
  // Turns the sensor in its place: a rotation about the vehicle's x, y or z.
  void turn(const std::string& name, std::size_t axis, double degrees) {
    sensors::RigSensor& s = sensor(name);
    std::array<double, 4> q{std::cos(degrees / 2 * M_PI / 180), 0, 0, 0};
    q[axis + 1] = std::sin(degrees / 2 * M_PI / 180);
    const auto place = s.vehicle_from_sensor.translation;
    s.vehicle_from_sensor.translation = {0, 0, 0};
    s.vehicle_from_sensor = sensors::Transform::from_quaternion(q, {0, 0, 0}) * s.vehicle_from_sensor;
    s.vehicle_from_sensor.translation = place;
  }
  RigCheck check(bool pictures = false) const {
    CheckOptions options;
    options.log_path = kDrive;
    if (pictures) options.folder = folder_.string();
    auto result = check_rig(rig_, options);
    EXPECT_TRUE(result) << result.error().message;
    return result ? *std::move(result) : RigCheck{};
  }
  static double figure(const RigCheck& check, const std::string& sensor, const std::string& name,
                       const std::string& key) {
    const CheckLine* line = check.find(sensor, name);
    if (line == nullptr) return std::nan("");
    for (const auto& [k, value] : line->figures) {
      if (k == key) return value;
    }
    return std::nan("");
  }
  static CheckState state(const RigCheck& check, const std::string& sensor, const std::string& name) {
    const CheckLine* line = check.find(sensor, name);
    EXPECT_NE(line, nullptr) << sensor << " " << name;
    return line == nullptr ? CheckState::kNotChecked : line->state;
  }

  sensors::Rig rig_;
  fs::path folder_;
};

#define NEEDS_PCL() \
  if (!sensors::has_pcl()) GTEST_SKIP() << "built without PCL"

TEST_F(RigCheckOfDrive, RightRig) {
  const RigCheck result = check(true);
  EXPECT_FALSE(result.wrong()) << result.text();
  EXPECT_LT(std::fabs(figure(result, "radar_front", "forward axis", "off_deg")), 1);
  EXPECT_NEAR(figure(result, "radar_front", "forward axis", "speed_ratio"), 1, 0.03);
  EXPECT_LT(std::fabs(figure(result, "ego", "forward axis", "off_deg")), 1);
  EXPECT_GT(figure(result, "camera_front / lidar_top", "in image", "points"), 100);
  EXPECT_GT(figure(result, "lidar_top", "intensity", "p99"), 0.02);
  EXPECT_LT(figure(result, "camera_front / lidar_top", "stamp skew", "max_ms"), 34);
  EXPECT_THAT(result.pictures, testing::IsSupersetOf({"birdseye_lidar_top.png", "side_lidar_top.png",
                                                      "overlay_camera_front_lidar_top_1.png"}));
  for (const std::string& name : result.pictures) {
    const auto bytes = read_file((folder_ / name).string());
    ASSERT_TRUE(bytes) << bytes.error().message;
    EXPECT_EQ(bytes->substr(0, 8), "\x89PNG\r\n\x1a\n") << name;
  }
  EXPECT_THAT(result.json(), HasSubstr("\"wrong\": false"));
  NEEDS_PCL();
  EXPECT_LT(figure(result, "lidar_top", "ground", "tilt_deg"), 0.5);
  EXPECT_LT(std::fabs(figure(result, "lidar_top", "ground", "height_m")), 0.05);
  EXPECT_LT(std::fabs(figure(result, "lidar_top", "forward axis", "off_deg")), 1.5);
}

TEST_F(RigCheckOfDrive, WithoutPclItSaysSo) {
  if (sensors::has_pcl()) GTEST_SKIP() << "built with PCL";
  const RigCheck result = check();
  EXPECT_EQ(state(result, "lidar_top", "ground"), CheckState::kNotChecked);
  EXPECT_THAT(result.text(), HasSubstr("libpcl-dev"));
}

TEST_F(RigCheckOfDrive, TiltedLidar) {
  NEEDS_PCL();
  turn("lidar_top", 0, 3);
  const RigCheck result = check();
  EXPECT_EQ(state(result, "lidar_top", "ground"), CheckState::kWrong);
  EXPECT_NEAR(figure(result, "lidar_top", "ground", "tilt_deg"), 3, 0.5);
  EXPECT_NEAR(std::fabs(figure(result, "lidar_top", "ground", "across_deg")), 3, 0.5);
}

TEST_F(RigCheckOfDrive, LidarTurnedAboutItsAxis) {
  NEEDS_PCL();
  turn("lidar_top", 2, 8);
  const RigCheck result = check();
  EXPECT_EQ(state(result, "lidar_top", "ground"), CheckState::kOk) << "the ground does not tell";
  EXPECT_EQ(state(result, "lidar_top", "forward axis"), CheckState::kWrong);
  EXPECT_NEAR(figure(result, "lidar_top", "forward axis", "off_deg"), 8, 1.5);
}

TEST_F(RigCheckOfDrive, LidarAtAWrongHeight) {
  NEEDS_PCL();
  sensor("lidar_top").vehicle_from_sensor.translation[2] += 0.5;
  const RigCheck result = check();
  EXPECT_EQ(state(result, "lidar_top", "ground"), CheckState::kWrong);
  EXPECT_NEAR(figure(result, "lidar_top", "ground", "height_m"), 0.5, 0.06);
}

TEST_F(RigCheckOfDrive, RadarTurned) {
  turn("radar_front", 2, -10);
  const RigCheck result = check();
  EXPECT_EQ(state(result, "radar_front", "forward axis"), CheckState::kWrong);
  EXPECT_NEAR(figure(result, "radar_front", "forward axis", "off_deg"), -10, 1);
}

TEST_F(RigCheckOfDrive, CameraThatLooksElsewhereAndWrongIntensity) {
  turn("camera_front", 1, -90);  // into the sky
  sensor("lidar_top").intensity_scale = 1e-6;
  const RigCheck result = check();
  EXPECT_EQ(state(result, "camera_front / lidar_top", "in image"), CheckState::kWrong);
  EXPECT_EQ(state(result, "lidar_top", "intensity"), CheckState::kWrong);
  EXPECT_TRUE(result.wrong());
}

TEST_F(RigCheckOfDrive, TopicThatIsNotThere) {
  sensor("radar_front").topic = "/radar/rear/returns";
  const RigCheck result = check();
  EXPECT_EQ(state(result, "radar_front", "samples"), CheckState::kWrong);
}

TEST_F(RigCheckOfDrive, LabelsHoldThePointsAsTheyAre) {
  EXPECT_EQ(state(check(), "lidar_top", "points in boxes"), CheckState::kOk);
  turn("lidar_top", 2, 90);
  const RigCheck turned = check();
  EXPECT_EQ(state(turned, "lidar_top", "points in boxes"), CheckState::kWrong);
  EXPECT_THAT(turned.find("lidar_top", "points in boxes")->text, HasSubstr("turned by 90 degrees to the left"));
}

// Every wrong convention is found by its name: boxes are written down in it, the points lie in the true ones.
TEST(BoxReadings, TheConventionIsNamed) {
  sensors::log::TruthBox truth;
  truth.pose.position = {12, 5, 0.9};
  truth.size = {4.6, 1.9, 1.6};
  const double yaw = 0.5;
  truth.pose.orientation = {std::cos(yaw / 2), 0, 0, std::sin(yaw / 2)};
  std::vector<VehiclePoint> points;
  for (double l = -2.2; l <= 2.2; l += 0.1) {
    for (double w = -0.9; w <= 0.9; w += 0.1) {
      points.push_back({static_cast<float>(12 + l * std::cos(yaw) - w * std::sin(yaw)),
                        static_cast<float>(5 + l * std::sin(yaw) + w * std::cos(yaw)), 1.5F});
    }
  }
  const auto best = [&](const sensors::log::TruthBox& box) {
    const auto counts = points_in_boxes(points, {&box, 1});
    return std::string(
        kBoxReadings[static_cast<std::size_t>(std::max_element(counts.begin(), counts.end()) - counts.begin())]);
  };
  EXPECT_EQ(points_in_boxes(points, {&truth, 1})[0], points.size());
  EXPECT_EQ(best(truth), "as they are");
  const auto written = [&](double x, double y, double heading) {
    sensors::log::TruthBox box = truth;
    box.pose.position = {x, y, 0.9};
    box.pose.orientation = {std::cos(heading / 2), 0, 0, std::sin(heading / 2)};
    return box;
  };
  EXPECT_EQ(best(written(5, 12, M_PI / 2 - yaw)), "x and y swapped");
  EXPECT_EQ(best(written(12, -5, -yaw)), "y to the right");
  EXPECT_EQ(best(written(-12, 5, M_PI - yaw)), "x to the rear");
  EXPECT_EQ(best(written(5, -12, yaw - M_PI / 2)), "turned by 90 degrees to the left");
  EXPECT_EQ(best(written(-5, 12, yaw + M_PI / 2)), "turned by 90 degrees to the right");
  EXPECT_EQ(best(written(-12, -5, yaw + M_PI)), "turned round");
  EXPECT_EQ(best(written(12, 5, -yaw)), "yaw clockwise");
  sensors::log::TruthBox sizes = truth;
  std::swap(sizes.size[0], sizes.size[1]);
  EXPECT_EQ(best(sizes), "length and width swapped");
  sensors::log::TruthBox bottom = truth;
  bottom.pose.position[2] = 0.1;
  EXPECT_EQ(best(bottom), "place = bottom");
}

// The figures that data sets are known by: PandaSet's first frames hold twice the points of their swapped reading.
TEST(BoxReadings, PandasetAsItIs) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/pandaset_002");
  const auto rig = sensors::load_rig(kRoot + "/configs/rigs/pandaset.yaml");
  ASSERT_TRUE(rig) << rig.error().message;
  const auto set = tools::open_pandaset(folder);
  ASSERT_TRUE(set) << set.error().message;
  const fs::path place = fs::path(TAKT_BINARY_DIR) / ("boxes-test-" + std::to_string(::getpid()));
  fs::create_directories(place);
  CheckOptions options;
  options.log_path = (place / "drive.mcap").string();
  options.sweeps = 2;
  ASSERT_TRUE(tools::convert_pandaset(*set, *rig, options.log_path));
  const auto result = check_rig(*rig, options);
  fs::remove_all(place);
  ASSERT_TRUE(result) << result.error().message;
  const CheckLine* line = result->find("lidar_top", "points in boxes");
  ASSERT_NE(line, nullptr);
  EXPECT_EQ(line->state, CheckState::kOk) << line->text;
  EXPECT_GT(line->figures[0].second, 20000) << line->text;
}

// How far the estimated ego motion is off, against that of the drive.
struct EgoErrors {
  std::vector<double> speed_mps, turn_dps;  // ascending, by sweep
  double end_m = 0;                         // of the path, from its first sweep
  double path_m = 0;                        // its true length
};

std::vector<Sample> motions_of(const std::string& log, const sensors::Rig& rig) {
  std::vector<Sample> out;
  const auto walked = for_each_sample(log, rig, {*rig.find("ego")}, [&](std::size_t, const Sample& s) -> Status {
    out.push_back(s);
    return {};
  });
  EXPECT_TRUE(walked) << walked.error().message;
  return out;
}

EgoErrors estimate_ego(const sensors::Rig& rig, const std::string& drive, const std::string& copy) {
  const auto estimate = add_estimated_ego(rig, drive, copy);
  EXPECT_TRUE(estimate) << estimate.error().message;
  EXPECT_EQ(estimate->failed, 0u);
  sensors::Rig with = rig;
  with.sensors[*with.find("ego")].topic = estimate->topic;
  const auto truth = motions_of(drive, rig), found = motions_of(copy, with);
  EXPECT_EQ(found.size(), estimate->poses);
  EgoErrors out;
  const auto pose = [](const sensors::EgoMotion& ego) {
    return sensors::Transform::from_quaternion(
        {ego.orientation[0], ego.orientation[1], ego.orientation[2], ego.orientation[3]},
        {ego.position[0], ego.position[1], ego.position[2]});
  };
  std::optional<sensors::Transform> true_start, found_start;
  std::array<double, 3> before{};
  for (const Sample& f : found) {
    const auto closer = [&](const Sample& a, const Sample& b) {
      return std::llabs((a.stamp - f.stamp).ns) < std::llabs((b.stamp - f.stamp).ns);
    };
    const Sample& nearest = *std::min_element(truth.begin(), truth.end(), closer);
    if (std::llabs((nearest.stamp - f.stamp).ns) > 6'000'000) continue;
    const auto &t = nearest.payload->as<sensors::EgoMotion>(), &e = f.payload->as<sensors::EgoMotion>();
    out.speed_mps.push_back(std::hypot(e.velocity[0] - t.velocity[0], e.velocity[1] - t.velocity[1]));
    out.turn_dps.push_back(std::fabs(e.angular_velocity[2] - t.angular_velocity[2]) * 180 / M_PI);
    if (!true_start) {
      true_start = pose(t).inverse();
      found_start = pose(e).inverse();
    }
    const auto at = (*true_start * pose(t)).translation, seen = (*found_start * pose(e)).translation;
    out.end_m = std::hypot(at[0] - seen[0], at[1] - seen[1], at[2] - seen[2]);
    out.path_m += std::hypot(at[0] - before[0], at[1] - before[1], at[2] - before[2]);
    before = at;
  }
  EXPECT_GT(out.speed_mps.size(), 20U);
  std::sort(out.speed_mps.begin(), out.speed_mps.end());
  std::sort(out.turn_dps.begin(), out.turn_dps.end());
  std::printf(
      "ego from sweeps: velocity off by %.3f m/s (median), %.3f (nine tenths); turn rate %.2f and %.2f deg/s; end of "
      "the path %.2f m of %.1f m\n",
      out.speed_mps[out.speed_mps.size() / 2], out.speed_mps[out.speed_mps.size() * 9 / 10],
      out.turn_dps[out.turn_dps.size() / 2], out.turn_dps[out.turn_dps.size() * 9 / 10], out.end_m, out.path_m);
  return out;
}

TEST_F(RigCheckOfDrive, EgoMotionFromSweeps) {
  NEEDS_PCL();
  fs::create_directories(folder_);
  const std::string copy = (folder_ / "copy.mcap").string();
  const EgoErrors errors = estimate_ego(rig_, kDrive, copy);
  // Measured 0.07 and 0.41 m/s at 7.5 m/s, 0.5 m after 21 m.
  EXPECT_LT(errors.speed_mps[errors.speed_mps.size() / 2], 0.15);
  EXPECT_LT(errors.speed_mps[errors.speed_mps.size() * 9 / 10], 0.6);
  EXPECT_LT(errors.end_m, 1);

  // The copy holds everything else as it was, and a rig of its own can be estimated from it.
  const auto rig = sensors::estimate_rig(copy);
  ASSERT_TRUE(rig) << rig.error().message;
  EXPECT_TRUE(rig->rig.find("camera_front"));
}

TEST(EgoOfRecordedDrive, PandasetFromItsSweeps) {
  NEEDS_PCL();
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/pandaset_002");
  const auto rig = sensors::load_rig(kRoot + "/configs/rigs/pandaset.yaml");
  ASSERT_TRUE(rig) << rig.error().message;
  const auto set = tools::open_pandaset(folder);
  ASSERT_TRUE(set) << set.error().message;
  const fs::path place = fs::path(TAKT_BINARY_DIR) / ("ego-test-" + std::to_string(::getpid()));
  fs::create_directories(place);
  const std::string drive = (place / "drive.mcap").string();
  ASSERT_TRUE(tools::convert_pandaset(*set, *rig, drive));
  const EgoErrors errors = estimate_ego(*rig, drive, (place / "copy.mcap").string());
  fs::remove_all(place);
  // Measured 0.02 and 0.06 m/s: slow traffic, 2.6 m.
  EXPECT_LT(errors.speed_mps[errors.speed_mps.size() / 2], 0.05);
  EXPECT_LT(errors.speed_mps[errors.speed_mps.size() * 9 / 10], 0.12);
  EXPECT_LT(errors.end_m, 0.2);
}

TEST(SensorVelocity, MovingObjectsHaveNoSay) {
  std::vector<sensors::RadarReturn> returns;
  for (int i = 0; i < 30; ++i) {
    const double a = (i - 15) * 0.05;
    const double rate = i % 4 == 0 ? 3.0 : -(10 * std::cos(a) + 0.5 * std::sin(a));
    returns.push_back(
        {static_cast<float>(20 * std::cos(a)), static_cast<float>(20 * std::sin(a)), 0, static_cast<float>(rate), 0});
  }
  const auto v = sensor_velocity(returns);
  ASSERT_TRUE(v);
  EXPECT_NEAR((*v)[0], 10, 0.1);
  EXPECT_NEAR((*v)[1], 0.5, 0.2);
  EXPECT_FALSE(sensor_velocity(std::span(returns).first(5)));
}

TEST(Project, PlumbBobAndItsFold) {
  sensors::CameraModel camera{640, 480, 500, 500, 320, 240, {}};
  double u = 0, v = 0;
  ASSERT_TRUE(project(camera, {1, -0.5, 5}, u, v));
  EXPECT_DOUBLE_EQ(u, 420);
  EXPECT_DOUBLE_EQ(v, 190);
  EXPECT_FALSE(project(camera, {1, 1, -5}, u, v));
  camera.distortion = {-0.3, 0, 0, 0, 0};
  ASSERT_TRUE(project(camera, {1, 0, 5}, u, v));
  EXPECT_NEAR(u, 320 + 500 * 0.2 * (1 - 0.3 * 0.04), 1e-9);
  EXPECT_FALSE(project(camera, {10, 0, 5}, u, v)) << "beyond the turning point of the polynomial";
}

}  // namespace
}  // namespace takt::pipeline
