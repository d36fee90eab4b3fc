// Whole drives: the shipped one regenerated at its beginning, its promises, and what goes wrong.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/file.h"
#include "sensors/camera/camera_decoder.h"
#include "sensors/logs/decode.h"
#include "sensors/logs/log_reader.h"
#include "sensors/sim/simulate.h"

namespace takt::sensors {
namespace {

const char* const kCity = TAKT_SOURCE_DIR "/configs/scenes/city.yaml";
const char* const kShipped = TAKT_SOURCE_DIR "/replay_data/city.mcap";

struct Message {
  SensorTime arrival, capture;
  std::string bytes;
};
using Log = std::map<std::string, std::vector<Message>>;

Result<Log> read(const std::string& path) {
  TAKT_ASSIGN(const auto reader, open_log(path));
  Log log;
  for (;;) {
    TAKT_ASSIGN(const auto message, reader->next());
    if (!message) break;
    log[message->channel->topic].push_back(
        {message->arrival, message->capture,
         std::string(reinterpret_cast<const char*>(message->bytes.data()), message->bytes.size())});
  }
  EXPECT_TRUE(reader->problems().empty());
  return log;
}

std::span<const std::byte> bytes_of(const Message& message) { return std::as_bytes(std::span(message.bytes)); }

class Shipped : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto log = read(kShipped);
    ASSERT_TRUE(log) << log.error().message;
    log_ = new Log(*std::move(log));
  }
  static void TearDownTestSuite() {
    delete log_;
    log_ = nullptr;
  }
  static Log* log_;
};
Log* Shipped::log_ = nullptr;

TEST_F(Shipped, ItsBeginningIsRegeneratedByteByByte) {
  auto scene = load_scene(kCity);
  ASSERT_TRUE(scene) << scene.error().message;
  scene->duration = milliseconds(400);
  const std::string path = testing::TempDir() + "sim_drive_beginning.mcap";
  const Status status = simulate(*scene, path);
  ASSERT_TRUE(status) << status.error().message;
  const auto made = read(path);
  std::remove(path.c_str());
  ASSERT_TRUE(made);
  std::size_t compared = 0;
  for (const auto& [topic, messages] : *made) {
    // Pictures depend on the encoder's version, which the shipped log names.
    const bool pictures = topic.ends_with("/image");
    if (pictures && read_file(kShipped)->find(jpeg_library_version()) == std::string::npos) {
      std::printf("pictures NOT COMPARED: made here with %s\n", jpeg_library_version().c_str());
      continue;
    }
    ASSERT_LE(messages.size(), log_->at(topic).size()) << topic;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const Message& shipped = log_->at(topic)[i];
      EXPECT_EQ(messages[i].arrival.ns, shipped.arrival.ns) << topic << " " << i;
      EXPECT_EQ(messages[i].capture.ns, shipped.capture.ns) << topic << " " << i;
      EXPECT_TRUE(messages[i].bytes == shipped.bytes) << topic << " " << i;
      ++compared;
    }
  }
  EXPECT_GT(compared, 100u);
}

TEST_F(Shipped, HasTheRatesOfItsRigAndArrivalsWithinTheDeclaredBounds) {
  const auto rig = load_rig(TAKT_SOURCE_DIR "/configs/rigs/sim.yaml");
  ASSERT_TRUE(rig) << rig.error().message;
  const std::map<std::string, std::size_t> counts{
      {"camera_front", 90}, {"lidar_top", 30}, {"radar_front", 60}, {"ego", 300}};
  for (const RigSensor& sensor : rig->sensors) {
    const auto& messages = log_->at(sensor.topic);
    EXPECT_EQ(messages.size(), counts.at(sensor.name)) << sensor.name;
    std::int64_t least = 1'000'000'000, most = 0;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const Duration delay = messages[i].arrival - messages[i].capture;
      EXPECT_GE(delay, sensor.delay_min()) << sensor.name << " " << i;
      EXPECT_LE(delay, sensor.delay_max()) << sensor.name << " " << i;
      least = std::min(least, delay.ns);
      most = std::max(most, delay.ns);
    }
    EXPECT_GT(most - least, sensor.jitter.ns / 2) << sensor.name << ": the jitter is used";
  }
  // 30 Hz exactly: picture 30 k lies k seconds after the first.
  const auto& pictures = log_->at("/camera/front/image");
  EXPECT_EQ(pictures[60].capture - pictures[0].capture, seconds(2));
}

TEST_F(Shipped, StaysSmall) { EXPECT_LE(std::filesystem::file_size(kShipped), 12'000'000u); }

TEST_F(Shipped, HasVehiclesThatTheLidarSees) {
  std::size_t fewest = 1000, sum = 0;
  const auto& messages = log_->at("/truth/takt");
  for (const Message& message : messages) {
    const auto truth = decode_truth(bytes_of(message));
    ASSERT_TRUE(truth);
    std::size_t seen = 0;
    for (const log::TruthBox& box : truth->boxes) {
      const bool near = std::hypot(box.pose.position[0], box.pose.position[1]) < 40;
      seen += box.object_class == 1 && near && box.lidar_points >= 5 ? 1 : 0;
    }
    fewest = std::min(fewest, seen);
    sum += seen;
  }
  std::printf("vehicles within 40 m with at least 5 returns: least %zu, mean %.1f\n", fewest,
              static_cast<double>(sum) / static_cast<double>(messages.size()));
  EXPECT_GE(fewest, 8u);
}

TEST_F(Shipped, CloudsHoldAtMostTenThousandPointsAndFitTheTruth) {
  // Points inside the boxes of standing vehicles, both in the vehicle frame of the sweep's end: a car that is seen has
  // points in its box although the ego vehicle moved during the sweep.
  const auto rig = load_rig(TAKT_SOURCE_DIR "/configs/rigs/sim.yaml");
  ASSERT_TRUE(rig);
  const RigSensor& sensor = rig->sensors[*rig->find("lidar_top")];
  std::map<std::int64_t, log::Truth> truths;
  for (const Message& message : log_->at("/truth/takt")) {
    auto truth = decode_truth(bytes_of(message));
    ASSERT_TRUE(truth);
    truths[message.capture.ns] = *truth;
  }
  std::map<std::int64_t, log::EgoMotion> motions;
  for (const Message& message : log_->at("/ego/takt")) {
    auto ego = decode_ego_motion(bytes_of(message));
    ASSERT_TRUE(ego);
    motions[message.capture.ns] = *ego;
  }
  for (const Message& message : log_->at(sensor.topic)) {
    const auto cloud = decode_point_cloud(bytes_of(message));
    ASSERT_TRUE(cloud);
    ASSERT_EQ(cloud->point_stride, 22u);
    const std::size_t n = cloud->data.size() / 22;
    EXPECT_LE(n, 10'000u);
    EXPECT_GT(n, 6'000u);
    const log::Truth& truth = truths.at(message.capture.ns);
    const double speed = motions.lower_bound(message.capture.ns - 10'000'000)->second.velocity[0];
    std::map<std::uint32_t, std::size_t> inside;
    for (std::size_t i = 0; i < n; ++i) {
      float xyz[3];
      std::int32_t time_ns = 0;
      std::memcpy(xyz, cloud->data.data() + i * 22, 12);
      std::memcpy(&time_ns, cloud->data.data() + i * 22 + 16, 4);
      auto p = sensor.vehicle_from_sensor.apply({xyz[0], xyz[1], xyz[2]});
      p[0] += speed * time_ns * 1e-9;  // the vehicle was further back then
      for (const log::TruthBox& box : truth.boxes) {
        if (std::hypot(box.velocity[0], box.velocity[1]) > 0) continue;
        const double c = 1 - 2 * box.pose.orientation[3] * box.pose.orientation[3];
        const double s = 2 * box.pose.orientation[0] * box.pose.orientation[3];
        const double dx = p[0] - box.pose.position[0];
        const double dy = p[1] - box.pose.position[1];
        if (std::fabs(c * dx + s * dy) < box.size[0] / 2 + 0.1 && std::fabs(c * dy - s * dx) < box.size[1] / 2 + 0.1 &&
            p[2] > 0.1 && p[2] < box.size[2] + 0.1) {
          ++inside[box.id];
        }
      }
    }
    for (const log::TruthBox& box : truth.boxes) {
      const bool standing = std::hypot(box.velocity[0], box.velocity[1]) == 0;
      if (box.object_class != 1 || !standing || box.lidar_points < 10) continue;
      if (std::hypot(box.pose.position[0], box.pose.position[1]) > 40) continue;
      EXPECT_GT(static_cast<double>(inside[box.id]), 0.85 * box.lidar_points) << "vehicle " << box.id;
    }
  }
}

TEST(SimulatedDrive, IsAFunctionOfItsInputs) {
  auto scene = load_scene(kCity);
  ASSERT_TRUE(scene);
  scene->duration = milliseconds(150);
  const std::string a = testing::TempDir() + "sim_drive_a.mcap", b = testing::TempDir() + "sim_drive_b.mcap";
  ASSERT_TRUE(simulate(*scene, a));
  ASSERT_TRUE(simulate(*scene, b));
  EXPECT_TRUE(*read_file(a) == *read_file(b));
  std::remove(a.c_str());
  std::remove(b.c_str());
}

TEST(SimulatedDrive, StoppingLeavesNothingBehind) {
  auto scene = load_scene(kCity);
  ASSERT_TRUE(scene);
  const std::string path = testing::TempDir() + "sim_drive_stopped.mcap";
  int calls = 0;
  const Status status = simulate(*scene, path, [&](double, double) { return ++calls < 3; });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kInterrupted);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(SimulatedDrive, ARecordedRigIsRefused) {
  const auto scene = load_scene(kCity);
  const auto rig = load_rig(TAKT_SOURCE_DIR "/configs/rigs/pandaset.yaml");
  ASSERT_TRUE(scene && rig);
  const Status status = simulate(*scene, *rig, testing::TempDir() + "never.mcap");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kConfiguration);
  EXPECT_NE(status.error().message.find("drive: simulated"), std::string::npos);
}

TEST(SimulatedDrive, AnUnwritableFolderIsAnEnvironmentError) {
  const auto scene = load_scene(kCity);
  ASSERT_TRUE(scene);
  const Status status = simulate(*scene, "/nonexistent/out.mcap");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kEnvironment);
}

}  // namespace
}  // namespace takt::sensors
