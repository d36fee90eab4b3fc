// Packets of two real sensors in rosbag2 recordings against what their vendor-independent driver made of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "runtime/base/file.h"
#include "sensors/logs/ars548.h"
#include "sensors/logs/pcd.h"
#include "sensors/logs/ros_cursor.h"
#include "sensors/logs/rosbag2.h"
#include "sensors/logs/velodyne.h"
#include "tests/conformance/read_log.h"
#include "tests/support/test_data.h"

namespace takt::sensors {
namespace {

using namespace test;

std::vector<std::string> raw_messages(const std::string& path) {
  std::vector<std::string> all;
  auto log = open_rosbag2(path);
  EXPECT_TRUE(log) << (log ? "" : log.error().message);
  if (!log) return all;
  for (;;) {
    const auto message = (*log)->next();
    if (!message || !*message) return all;
    const auto bytes = (*message)->bytes;
    all.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
}

TEST(NebulaVlp16, FourScansBecomeFourClouds) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/tier4_nebula");
  const ReadLog log = read_log(folder + "/velodyne/vlp16/1673400471837873222");
  EXPECT_TRUE(log.problems.empty());
  const auto& clouds = log.topics.at("/velodyne_packets/points");
  ASSERT_EQ(clouds.size(), 4u);
  EXPECT_EQ(clouds[0].capture.ns, 1673400471737763166);
  EXPECT_EQ(clouds[0].arrival.ns, 1673400471837873222);
  for (const auto& cloud : clouds) {
    auto points = points_of(cloud, {"x", "y", "z", "time_offset_ns", "ring", "intensity"});
    EXPECT_GT(points.size(), 14700u);
    EXPECT_LT(points.size(), 14900u);
    double last = 0;
    for (auto& p : points) {
      EXPECT_GE(p["time_offset_ns"], 0);
      EXPECT_LT(p["time_offset_ns"], 100.5e6);
      last = std::max(last, p["time_offset_ns"]);
      EXPECT_LT(p["ring"], 16);
    }
    EXPECT_GT(last, 99e6);
  }
}

// The reference cloud is one turn, cut where the azimuth starts again, without what the last three firing pairs of its
// last packet saw. The reference does not interpolate the azimuth in the last pair of a packet and in second returns
// (odd blocks), and gives the latter the azimuth of the following pair; where it does so, its azimuth is taken here.
TEST(NebulaVlp16, TheReferenceCloudIsReproducedWithinAMillimetre) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/tier4_nebula");
  const auto pcd = read_file(folder + "/velodyne/vlp16/1673400472138016708.pcd");
  ASSERT_TRUE(pcd);
  const auto want = parse_pcd(*pcd, "reference");
  ASSERT_TRUE(want) << want.error().message;
  ASSERT_EQ(want->points, 14831u);

  struct Point {
    log::LidarPoint p;
    std::optional<std::uint32_t> azimuth;  // of the reference, where it takes a shortcut; 0.01 degrees
  };
  std::vector<Point> turn;
  std::uint32_t last_azimuth = 0;
  std::size_t turns = 0;
  std::vector<Point> found;
  for (const std::string& message :
       raw_messages(folder + "/velodyne/vlp16/1673400471837873222/1673400471837873222_0.db3")) {
    ros::Cursor cursor(ros::Encoding::kCdr, std::as_bytes(std::span(message)));
    cursor.header();
    const std::uint32_t packets = cursor.count(8 + kVelodyneBytes);
    for (std::uint32_t i = 0; i < packets; ++i) {
      cursor.time();
      std::string reason;
      const auto packet = VelodynePacket::parse(cursor.take(kVelodyneBytes), reason);
      ASSERT_TRUE(packet) << reason;
      ASSERT_EQ(packet->model(), VelodyneModel::kVlp16);
      ASSERT_TRUE(packet->dual());
      for (std::size_t block = 0; block < kVelodyneBlocks; ++block) {
        if (block % 2 == 0) {
          if (packet->azimuth(block) < last_azimuth) {
            ++turns;
            if (turn.size() == 14879) found = turn;
            turn.clear();
          }
          last_azimuth = packet->azimuth(block);
        }
        std::vector<log::LidarPoint> points;
        packet->points(block, block + 1, {}, points);
        std::optional<std::uint32_t> shortcut;
        if (block >= 10) {
          shortcut = packet->azimuth(block);
        } else if (block % 2 == 1) {
          shortcut = packet->azimuth(block + 1);
        }
        for (const auto& p : points) turn.push_back({p, shortcut});
      }
    }
    ASSERT_TRUE(cursor.status());
  }
  EXPECT_EQ(turns, 4u);
  ASSERT_EQ(found.size(), 14879u);  // 48 points behind the reference's cut

  std::size_t exact = 0, shortcuts = 0;
  double worst = 0;
  for (std::uint64_t i = 0; i < want->points; ++i) {
    const Point& own = found[static_cast<std::size_t>(i)];
    const auto value = [&](const char* name) { return want->value(i, *want->find(name)); };
    ASSERT_EQ(own.p.ring, value("channel")) << i;
    ASSERT_EQ(own.p.intensity, value("intensity")) << i;
    ASSERT_NEAR(own.p.z, value("z"), 1e-3) << i;
    const double gap = std::hypot(own.p.x - value("x"), own.p.y - value("y"));
    if (!own.azimuth) {
      ASSERT_LT(gap, 1e-3) << i;
      ++exact;
      continue;
    }
    worst = std::max(worst, gap);
    const double turned = *own.azimuth * std::acos(-1.0) / 18000;
    const double flat = std::hypot(static_cast<double>(own.p.x), static_cast<double>(own.p.y));
    ASSERT_NEAR(flat * std::cos(turned), value("x"), 1e-3) << i;
    ASSERT_NEAR(-flat * std::sin(turned), value("y"), 1e-3) << i;
    ++shortcuts;
  }
  std::printf("%zu points within 1 mm as they are, %zu with the reference's azimuth (off by at most %.3f m)\n", exact,
              shortcuts, worst);
  EXPECT_EQ(exact + shortcuts, 14831u);
  EXPECT_EQ(exact, 12175u);
}

// `key: number` lines of the expected values, in order.
std::vector<double> values_of(const std::string& text, const std::string& key) {
  std::vector<double> all;
  for (std::size_t at = 0; (at = text.find(key + ": ", at)) != std::string::npos; at += key.size()) {
    const char before = at == 0 ? ' ' : text[at - 1];
    if (before != ' ') continue;
    all.push_back(std::strtod(text.c_str() + at + key.size() + 2, nullptr));
  }
  return all;
}

std::span<const std::byte> only_packet(const std::string& message) {
  ros::Cursor cursor(ros::Encoding::kCdr, std::as_bytes(std::span(message)));
  cursor.header();
  EXPECT_EQ(cursor.count(12), 1u);
  cursor.time();
  const auto bytes = cursor.bytes();
  EXPECT_TRUE(cursor.status());
  return bytes;
}

TEST(NebulaArs548, TwoMessagesBecomeDetectionsAndObjects) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/tier4_nebula");
  const ReadLog log = read_log(folder + "/continental/ars548/1708578204");
  EXPECT_TRUE(log.problems.empty());
  const std::string topic = "/sensing/radar/front_center/nebula_packets";
  ASSERT_EQ(log.topics.at(topic + "/detections").size(), 1u);
  ASSERT_EQ(log.topics.at(topic + "/objects").size(), 1u);
  EXPECT_EQ(log.topics.at(topic + "/detections")[0].capture.ns, 1708578204202447652);
  auto returns = points_of(log.topics.at(topic + "/detections")[0], {"x", "y", "z", "range_rate", "rcs"});
  EXPECT_EQ(returns.size(), 308u);
  auto& first = returns.at(0);
  EXPECT_NEAR(std::atan2(first["y"], first["x"]), -0.918583, 1e-6);
  EXPECT_NEAR(std::hypot(first["x"], first["y"], first["z"]), 3.37381, 1e-5);
  EXPECT_NEAR(first["range_rate"], -3.64937, 1e-5);
  EXPECT_EQ(first["rcs"], -10);
}

TEST(NebulaArs548, EveryDetectionHasItsValues) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/tier4_nebula");
  const auto messages = raw_messages(folder + "/continental/ars548/1708578204/1708578204.db3");
  ASSERT_EQ(messages.size(), 2u);
  const auto list = parse_ars548_detections(only_packet(messages[1]));
  ASSERT_TRUE(list) << list.error().message;
  const auto text = read_file(folder + "/continental/ars548/1708578204_202447652_detection.yaml");
  ASSERT_TRUE(text);
  ASSERT_EQ(list->detections.size(), 308u);
  EXPECT_NEAR(list->range_rate_max, 22.8866, 1e-4);
  EXPECT_NEAR(list->origin[0], 3.872, 1e-4);
  EXPECT_TRUE(list->stamp.synchronised);
  const auto azimuth = values_of(*text, "azimuth_angle"), elevation = values_of(*text, "elevation_angle"),
             range = values_of(*text, "range"), rate = values_of(*text, "range_rate"), rcs = values_of(*text, "rcs"),
             id = values_of(*text, "measurement_id");
  ASSERT_EQ(azimuth.size(), 308u);
  ASSERT_EQ(range.size(), 308u);
  for (std::size_t i = 0; i < 308; ++i) {
    const Ars548Detection& d = list->detections[i];
    EXPECT_NEAR(d.azimuth, azimuth[i], 1e-5) << i;
    EXPECT_NEAR(d.elevation, elevation[i], 1e-5) << i;
    EXPECT_NEAR(d.range, range[i], 1e-3) << i;
    EXPECT_NEAR(d.range_rate, rate[i], 1e-4) << i;
    EXPECT_EQ(d.rcs, rcs[i]) << i;
    EXPECT_EQ(d.measurement_id, id[i]) << i;
  }
}

// Relative velocities are not compared: the expected text holds relative accelerations in their place.
TEST(NebulaArs548, EveryObjectHasItsValues) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/tier4_nebula");
  const auto messages = raw_messages(folder + "/continental/ars548/1708578204/1708578204.db3");
  ASSERT_EQ(messages.size(), 2u);
  const auto list = parse_ars548_objects(only_packet(messages[0]));
  ASSERT_TRUE(list) << list.error().message;
  const auto text = read_file(folder + "/continental/ars548/1708578204_199326753_object.yaml");
  ASSERT_TRUE(text);
  ASSERT_EQ(list->objects.size(), 50u);
  const auto id = values_of(*text, "object_id"), age = values_of(*text, "age"),
             length = values_of(*text, "shape_length_edge_mean"), width = values_of(*text, "shape_width_edge_mean"),
             yaw = values_of(*text, "orientation"), existence = values_of(*text, "raw_existence_probability"),
             x = values_of(*text, "x");
  ASSERT_EQ(id.size(), 50u);
  ASSERT_EQ(x.size() % 50, 0u);
  for (std::size_t i = 0; i < 50; ++i) {
    const Ars548Object& o = list->objects[i];
    EXPECT_EQ(o.id, id[i]) << i;
    EXPECT_EQ(o.age, age[i]) << i;
    EXPECT_NEAR(o.length, length[i], 1e-4 * std::max(1.0, length[i])) << i;
    EXPECT_NEAR(o.width, width[i], 1e-4 * std::max(1.0, width[i])) << i;
    EXPECT_NEAR(o.orientation, yaw[i], 1e-5) << i;
    EXPECT_NEAR(o.existence, existence[i], 1e-3) << i;
    EXPECT_NEAR(o.position[0], x[i * (x.size() / 50)], 1e-3) << i;  // position comes first in each object
    EXPECT_NEAR(o.velocity[0], x[i * (x.size() / 50) + 2], 1e-5) << i;
  }
}

}  // namespace
}  // namespace takt::sensors
