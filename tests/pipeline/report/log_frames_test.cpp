// The frames behind chosen moments, from logs whose messages are ROS's, under other names and in another time.
#include "pipeline/report/log_frames.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/sensors/logs/ros_bytes.h"

namespace takt::pipeline {
namespace {

using sensors::test::RosWriter;
using sensors::test::Wire;

constexpr std::int64_t kStart = 1'600'000'000'000'000'000, kPeriod = 100'000'000;

// Ten frames: the red of the picture and the distance of the only point count them.
std::vector<sensors::test::RosMessage> drive(Wire wire) {
  std::vector<sensors::test::RosMessage> out;
  for (std::int64_t k = 0; k < 10; ++k) {
    const std::int64_t stamp = kStart + k * kPeriod;
    RosWriter image(wire);
    image.header(stamp, "camera").number(std::uint32_t{2}).number(std::uint32_t{4}).text("rgb8");
    image.number(std::uint8_t{0}).number(std::uint32_t{12});
    image.bytes(std::string(24, static_cast<char>(10 * k)));
    out.push_back({"/cam", "sensor_msgs/Image", stamp + 5'000'000, image.str()});
    RosWriter cloud(wire);
    cloud.header(stamp, "lidar").number(std::uint32_t{1}).number(std::uint32_t{1}).number(std::uint32_t{3});
    std::uint32_t offset = 0;
    for (const char* name : {"x", "y", "z"}) {
      cloud.text(name).number(offset).number(std::uint8_t{7}).number(std::uint32_t{1});
      offset += 4;
    }
    std::string point;
    for (const float v : {static_cast<float>(k), 2.0F, 3.0F}) point.append(reinterpret_cast<const char*>(&v), 4);
    cloud.number(std::uint8_t{0}).number(std::uint32_t{12}).number(std::uint32_t{12}).bytes(point);
    cloud.number(std::uint8_t{1});
    out.push_back({"/velodyne", "sensor_msgs/PointCloud2", stamp + 6'000'000, cloud.str()});
  }
  return out;
}

// A rig that calls the topics otherwise; the camera's stamps are 20 ms late.
RunData run_over(const std::string& log) {
  RunData run;
  run.log_path = log;
  sensors::RigSensor camera;
  camera.name = "front";
  camera.kind = sensors::SensorKind::kCamera;
  camera.topic = "/camera/front/image";
  camera.camera = sensors::CameraModel{4, 2, 1, 1, 1, 1, {}};
  camera.period = {kPeriod};
  sensors::RigSensor lidar;
  lidar.name = "top";
  lidar.kind = sensors::SensorKind::kLidar;
  lidar.topic = "/lidar/top/points";
  lidar.capacity = 8;
  lidar.period = {kPeriod};
  lidar.vehicle_from_sensor.translation = {1, 0, 0};
  run.rig.sensors = {camera, lidar};
  run.sources = {{"/cam", {}}, {"/velodyne", {}}};
  run.sources[0].stamp.to_origin = {-20'000'000};
  return run;
}

class LogFrames : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::path(testing::TempDir()) / ("takt-frames-" + std::to_string(::getpid()) + GetParam()))
                .string();
    if (std::string(GetParam()) == ".bag") {
      sensors::test::save(path_, sensors::test::make_bag(drive(Wire::kRos1), "lz4", 5).bytes);
    } else {
      sensors::test::write_db3(path_, drive(Wire::kCdr));
    }
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string path_;
};

TEST_P(LogFrames, TheNearestInTheTimeOfTheRun) {
  const RunData run = run_over(path_);
  std::vector<Moment> moments{{{kStart + 4 * kPeriod - 25'000'000}, {}, {}}, {{kStart + 60 * kPeriod}, {}, {}}};
  const Status read = read_frames(run, moments);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_TRUE(moments[0].camera);
  EXPECT_EQ(moments[0].camera->stamp.ns, kStart + 4 * kPeriod - 20'000'000);
  EXPECT_EQ(moments[0].camera->picture.pixels.at(0), 40);
  ASSERT_TRUE(moments[0].lidar);
  EXPECT_EQ(moments[0].lidar->stamp.ns, kStart + 4 * kPeriod);
  ASSERT_EQ(moments[0].lidar->points.size(), 1U);
  EXPECT_EQ(moments[0].lidar->points[0], (std::array<float, 3>{5, 2, 3}));
  EXPECT_FALSE(moments[1].camera) << "the log ends long before";
  EXPECT_FALSE(moments[1].lidar);
}

TEST_P(LogFrames, ASensorThatWasLeftOutShowsNothing) {
  RunData run = run_over(path_);
  run.sources[0].topic = "";
  std::vector<Moment> moments{{{kStart}, {}, {}}};
  ASSERT_TRUE(read_frames(run, moments));
  EXPECT_FALSE(moments[0].camera);
  EXPECT_TRUE(moments[0].lidar);
  run.sources[1].topic = "";
  moments[0].lidar.reset();
  ASSERT_TRUE(read_frames(run, moments));
  EXPECT_FALSE(moments[0].lidar);
}

INSTANTIATE_TEST_SUITE_P(Logs, LogFrames, ::testing::Values(".bag", ".db3"),
                         [](const auto& p) { return std::string(p.param + 1); });

}  // namespace
}  // namespace takt::pipeline
