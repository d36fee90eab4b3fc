// The same messages as rosbag2, ROS 1 bag and MCAP; whole, cut and damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/base/digest.h"
#include "sensors/camera/camera_decoder.h"
#include "sensors/ego/ego_decoder.h"
#include "sensors/lidar/lidar_decoder.h"
#include "sensors/logs/log_reader.h"
#include "sensors/logs/mcap_writer.h"
#include "sensors/logs/ros1_bag.h"
#include "sensors/logs/rosbag2.h"
#include "sensors/radar/radar_decoder.h"
#include "tests/sensors/logs/ros_bytes.h"
#include "tests/support/test_data.h"

namespace takt::sensors {
namespace {

using test::RosMessage;
using test::RosWriter;
using test::Wire;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

constexpr std::int64_t kStart = 1'700'000'000'000'000'000;
constexpr std::size_t kMessages = 120;

// Four sensors in turn; recorded 5 ms after the stamp.
std::vector<RosMessage> drive(Wire wire) {
  std::vector<RosMessage> out;
  for (std::size_t i = 0; i < kMessages; ++i) {
    const std::int64_t stamp = kStart + static_cast<std::int64_t>(i) * 10'000'000, time = stamp + 5'000'000;
    const auto value = static_cast<float>(i);
    RosWriter w(wire);
    switch (i % 4) {
      case 0: {
        std::string pixels(24, '\0');
        for (std::size_t p = 0; p < pixels.size(); ++p) pixels[p] = static_cast<char>(p * 7 + i);
        w.header(stamp, "camera").number(std::uint32_t{2}).number(std::uint32_t{4}).text("bgr8");
        w.number(std::uint8_t{0}).number(std::uint32_t{12}).bytes(pixels);
        out.push_back({"/image", "sensor_msgs/Image", time, w.str()});
        break;
      }
      case 1: {
        std::string points;
        for (const float x : {value, value + 1, value + 2}) {
          for (const float part : {x, x * 2, x * 3, 0.5F}) points.append(reinterpret_cast<const char*>(&part), 4);
        }
        w.header(stamp, "lidar").number(std::uint32_t{1}).number(std::uint32_t{3}).number(std::uint32_t{4});
        std::uint32_t offset = 0;
        for (const char* name : {"x", "y", "z", "intensity"}) {
          w.text(name).number(offset).number(std::uint8_t{7}).number(std::uint32_t{1});
          offset += 4;
        }
        w.number(std::uint8_t{0}).number(std::uint32_t{16}).number(std::uint32_t{48}).bytes(points);
        w.number(std::uint8_t{1});
        out.push_back({"/points", "sensor_msgs/PointCloud2", time, w.str()});
        break;
      }
      case 2:
        w.header(stamp, "radar").number(std::uint32_t{2});
        w.numbers<float>({value, 0.1F, 0, -1, 5}).numbers<float>({value + 1, -0.2F, 0.1F, 1, 6});
        out.push_back({"/radar", "radar_msgs/RadarScan", time, w.str()});
        break;
      default:
        w.header(stamp, "map").text("base_link").numbers<double>({value, 2, 3, 0, 0, 0, 1}).zeros(36);
        w.numbers<double>({1, 0, 0, 0, 0, 0.1}).zeros(36);
        out.push_back({"/odom", "nav_msgs/Odometry", time, w.str()});
    }
  }
  return out;
}

class RosLogs : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("takt-ros-logs-" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::filesystem::path folder_;
};

void write_mcap(const std::string& path, const std::vector<RosMessage>& messages, Wire wire) {
  auto writer = McapWriter::create(path, {Compression::kZstd, 1000});
  ASSERT_TRUE(writer);
  std::map<std::string, std::uint16_t> channels;
  for (const RosMessage& m : messages) {
    if (!channels.contains(m.topic)) {
      const bool ros1 = wire == Wire::kRos1;
      const auto schema =
          writer->add_schema({ros1 ? m.type : test::ros2_type(m.type), ros1 ? "ros1msg" : "ros2msg", "#"});
      channels[m.topic] = *writer->add_channel(m.topic, ros1 ? "ros1" : "cdr", *schema);
    }
    // As recorders write it: publish time unknown, so equal to the log time.
    ASSERT_TRUE(writer->write(channels[m.topic], {m.time}, {m.time}, 0, m.bytes));
  }
  ASSERT_TRUE(writer->finish());
}

Result<std::unique_ptr<Decoder>> decoder_of(const LogChannel& channel) {
  RigSensor sensor;
  sensor.capacity = 8;
  sensor.camera = CameraModel{4, 2, 1, 1, 1, 1, {}};
  if (channel.topic == "/image") {
    sensor.kind = SensorKind::kCamera;
    return make_camera_decoder(sensor, channel);
  }
  if (channel.topic == "/points") {
    sensor.kind = SensorKind::kLidar;
    return make_lidar_decoder(sensor, channel);
  }
  sensor.kind = channel.topic == "/radar" ? SensorKind::kRadar : SensorKind::kEgo;
  return channel.topic == "/radar" ? make_radar_decoder(sensor, channel) : make_ego_decoder(sensor, channel);
}

// Topic, stamps and payload digest of every message.
std::vector<std::string> payloads(LogReader& log) {
  std::map<const LogChannel*, std::unique_ptr<Decoder>> decoders;
  for (const LogChannel& channel : log.channels()) {
    auto decoder = decoder_of(channel);
    EXPECT_TRUE(decoder) << decoder.error().message;
    decoders[&channel] = *std::move(decoder);
  }
  std::vector<std::string> out;
  for (;;) {
    const auto message = log.next();
    EXPECT_TRUE(message) << message.error().message;
    if (!message || !*message) return out;
    const LogMessage& m = **message;
    Decoder& decoder = *decoders.at(m.channel);
    alignas(64) std::byte payload[4096];
    const DecodeReport report = decoder.decode(m.bytes, payload);
    EXPECT_TRUE(report.ok) << report.reason;
    EXPECT_EQ(report.stamp, m.capture);
    const Digest d = digest(std::span<const std::byte>(payload, report.payload_bytes));
    out.push_back(m.channel->topic + " " + std::to_string(m.index) + " " + std::to_string(m.arrival.ns) + " " +
                  std::to_string(m.capture.ns) + " " + d.hex());
  }
}

TEST_F(RosLogs, EqualPayloadsFromEveryFormat) {
  const auto cdr = drive(Wire::kCdr), ros1 = drive(Wire::kRos1);
  write_mcap(path("cdr.mcap"), cdr, Wire::kCdr);
  write_mcap(path("big.mcap"), drive(Wire::kCdrBigEndian), Wire::kCdrBigEndian);
  write_mcap(path("ros1.mcap"), ros1, Wire::kRos1);
  test::write_db3(path("a.db3"), cdr);
  for (const char* compression : {"none", "bz2", "lz4"}) {
    test::save(path(std::string(compression) + ".bag"), test::make_bag(ros1, compression, 10).bytes);
  }
  std::vector<std::string> expected;
  for (const char* name : {"cdr.mcap", "big.mcap", "ros1.mcap", "a.db3", "none.bag", "bz2.bag", "lz4.bag"}) {
    const auto log = open_log(path(name));
    ASSERT_TRUE(log) << name << ": " << log.error().message;
    EXPECT_THAT((*log)->problems(), IsEmpty()) << name << (*log)->problems().front().detail;
    const auto found = payloads(**log);
    ASSERT_EQ(found.size(), kMessages) << name;
    if (expected.empty()) expected = found;
    EXPECT_EQ(found, expected) << name;
    // The stamp inside the message is the capture stamp, the record time the arrival.
    EXPECT_THAT(found.front(),
                HasSubstr("/image 0 " + std::to_string(kStart + 5'000'000) + " " + std::to_string(kStart) + " "));
  }
}

TEST_F(RosLogs, RulesActBeforeTheOrder) {
  test::write_db3(path("a.db3"), drive(Wire::kCdr));
  const auto log = open_log(path("a.db3"), {{"/image", milliseconds(20), {}}, {"/radar", {}, milliseconds(1)}});
  ASSERT_TRUE(log);
  SensorTime last{INT64_MIN};
  std::size_t count = 0;
  for (auto m = (*log)->next(); *m; m = (*log)->next(), ++count) {
    EXPECT_GE((*m)->arrival, last);
    last = (*m)->arrival;
    const std::int64_t delay = (*m)->arrival.ns - (*m)->capture.ns;
    const std::string& topic = (*m)->channel->topic;
    EXPECT_EQ(delay, topic == "/image" ? 20'000'000 : topic == "/radar" ? 1'000'000 : 5'000'000);
  }
  EXPECT_EQ(count, kMessages);
  EXPECT_EQ((*log)->notes().size(), 2U);
}

TEST_F(RosLogs, SplitFilesAreMergedWithoutMetadata) {
  const auto all = drive(Wire::kCdr);
  std::vector<RosMessage> parts[2];
  for (std::size_t i = 0; i < all.size(); ++i) parts[i / 10 % 2].push_back(all[i]);  // they overlap in time
  std::filesystem::create_directories(path("recording"));
  test::write_db3(path("recording/r_0.db3"), parts[0]);
  test::write_db3(path("recording/r_1.db3"), parts[1]);
  test::write_db3(path("whole.db3"), all);
  const auto whole = open_log(path("whole.db3"));
  const auto split = open_log(path("recording"));
  ASSERT_TRUE(whole && split) << split.error().message;
  EXPECT_EQ(payloads(**split), payloads(**whole));
  EXPECT_EQ((*split)->span(), (*whole)->span());
  (*split)->select({"/odom"});
  EXPECT_EQ(payloads(**split).size(), kMessages / 4);

  // The part that is no database is told, the other one read.
  test::save(path("recording/r_1.db3"), "no database");
  const auto half = open_log(path("recording"));
  ASSERT_TRUE(half) << half.error().message;
  EXPECT_THAT((*half)->problems(), Contains(Field(&LogProblem::kind, "unreadable file")));
  EXPECT_EQ(payloads(**half).size(), parts[0].size());
}

TEST_F(RosLogs, PackedRecordings) {
  test::write_db3(path("a.db3"), drive(Wire::kCdr));
  const auto expected = payloads(**open_log(path("a.db3")));
  const std::string plain = test::load(path("a.db3"));
  std::string packed(ZSTD_compressBound(plain.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), 3));
  test::save(path("a.db3.zstd"), packed);
  auto log = open_log(path("a.db3.zstd"));
  ASSERT_TRUE(log) << log.error().message;
  EXPECT_THAT((*log)->problems(), IsEmpty());
  EXPECT_THAT((*log)->notes(), Contains(HasSubstr("packed as a whole with zstd")));
  EXPECT_EQ(payloads(**log), expected);

  // Messages packed one by one.
  auto messages = drive(Wire::kCdr);
  for (RosMessage& m : messages) {
    std::string one(ZSTD_compressBound(m.bytes.size()), '\0');
    one.resize(ZSTD_compress(one.data(), one.size(), m.bytes.data(), m.bytes.size(), 3));
    m.bytes = one;
  }
  test::write_db3(path("messages.db3"), messages);
  log = open_log(path("messages.db3"));
  ASSERT_TRUE(log) << log.error().message;
  EXPECT_EQ(payloads(**log), expected);

  // Cut: what could be unpacked is read, and told.
  test::save(path("cut.db3.zstd"), packed.substr(0, packed.size() - 20));
  log = open_log(path("cut.db3.zstd"));
  if (log) {
    EXPECT_THAT((*log)->problems(), Contains(Field(&LogProblem::kind, "damaged zstd data")));
  } else {
    EXPECT_EQ(log.error().code, Code::kInput);
  }
}

TEST_F(RosLogs, ABagThatWasNeverClosedIsReadWhole) {
  const auto messages = drive(Wire::kRos1);
  test::save(path("a.bag"), test::make_bag(messages, "lz4", 10, false).bytes);
  const auto log = open_log(path("a.bag"));
  ASSERT_TRUE(log) << log.error().message;
  ASSERT_EQ((*log)->problems().size(), 1U);
  EXPECT_EQ((*log)->problems()[0].kind, "truncated file");
  EXPECT_EQ(payloads(**log).size(), kMessages);
}

TEST_F(RosLogs, OtherFilesAreRefusedWithAReason) {
  const std::pair<std::string, const char*> cases[] = {
      {"#ROSBAG V1.2\n....", "version 'V1.2'"},
      {std::string("SQLite format 3\0", 16), "cut"},
      {std::string("SQLite format 3\0", 16) + std::string(200, 'x'), ""},
      {"#ROSBAG V2.0\n", "nothing can be recovered"}};
  for (const auto& [bytes, reason] : cases) {
    test::save(path("x"), bytes);
    const auto log = open_log(path("x"));
    ASSERT_FALSE(log) << bytes;
    EXPECT_EQ(log.error().code, Code::kInput);
    EXPECT_THAT(log.error().message, HasSubstr(reason));
  }
  std::filesystem::create_directories(path("empty"));
  EXPECT_THAT(open_log(path("empty")).error().message, HasSubstr("folder without a log"));
}

using Identity = std::pair<std::int64_t, std::string>;
Identity identity(const RosMessage& m) { return {m.time, m.bytes}; }

// Everything that is delivered; fails the test when reading fails or the order is wrong.
std::set<Identity> read_all(LogReader& log) {
  std::set<Identity> out;
  SensorTime last{INT64_MIN};
  for (;;) {
    const auto m = log.next();
    EXPECT_TRUE(m) << m.error().message;
    if (!m || !*m) return out;
    EXPECT_GE((*m)->arrival, last);
    last = (*m)->arrival;
    out.insert({(*m)->arrival.ns, {reinterpret_cast<const char*>((*m)->bytes.data()), (*m)->bytes.size()}});
  }
}

class DamagedBag : public RosLogs, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / (std::string("takt-damaged-bag-") + GetParam());
    std::filesystem::create_directories(folder_);
  }
  // What must be read: the messages of all chunks that `whole` says are.
  void check(const std::string& bytes, const std::string& what, bool damaged,
             const std::function<bool(const test::Bag::Chunk&)>& whole) {
    test::save(path("x.bag"), bytes);
    std::set<Identity> expected;
    for (const auto& chunk : bag_.chunks) {
      if (!whole(chunk)) continue;
      for (const std::size_t i : chunk.messages) expected.insert(identity(messages_[i]));
    }
    const auto log = open_ros1_bag(path("x.bag"));
    if (!log) {
      EXPECT_EQ(log.error().code, Code::kInput);
      EXPECT_THAT(expected, IsEmpty()) << what << ": " << log.error().message;
      return;
    }
    if (damaged) {
      EXPECT_FALSE((*log)->problems().empty()) << what;
    }
    const auto found = read_all(**log);
    EXPECT_TRUE(std::includes(found.begin(), found.end(), expected.begin(), expected.end()))
        << what << ": " << found.size() << " read, needed " << expected.size();
  }
  const std::vector<RosMessage> messages_ = drive(Wire::kRos1);
  const test::Bag bag_ = test::make_bag(messages_, GetParam(), 10);
};

TEST_P(DamagedBag, CutAtAThousandPlaces) {
  for (std::size_t i = 0; i < 1000; ++i) {
    const std::size_t size = bag_.bytes.size() * i / 1000;
    check(bag_.bytes.substr(0, size), "cut at " + std::to_string(size), true,
          [&](const auto& chunk) { return chunk.end <= size; });
  }
}

TEST_P(DamagedBag, AByteChangedAtAThousandPlaces) {
  for (std::size_t i = 0; i < 1000; ++i) {
    // A stride without common factors with the layout; the bag header's padding is skipped.
    const std::size_t at = i < 80 ? 13 + i : 4096 + i * (bag_.bytes.size() - 4096) / 1000;
    std::string bytes = bag_.bytes;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << i % 8));
    check(bytes, "byte " + std::to_string(at), false,
          [&](const auto& chunk) { return at < chunk.begin || at >= chunk.end; });
  }
}

INSTANTIATE_TEST_SUITE_P(Compressions, DamagedBag, ::testing::Values("none", "bz2", "lz4"));

class DamagedDatabase : public RosLogs {
 protected:
  static constexpr std::size_t kPage = 4096;
  void SetUp() override {
    RosLogs::SetUp();
    for (std::size_t round = 0; round < 2; ++round) {
      for (RosMessage m : drive(Wire::kCdr)) {
        m.time += static_cast<std::int64_t>(round) * 2'000'000'000;
        messages_.push_back(m);
      }
    }
    test::write_db3(path("a.db3"), messages_);
    bytes_ = test::load(path("a.db3"));
    for (const RosMessage& m : messages_) all_.insert(identity(m));
    for (std::size_t page = 0; page < bytes_.size() / kPage; ++page) {
      // Leaves of tables (type 13) that hold messages: odometry has the longest text to be seen.
      const bool leaf = page > 0 && bytes_[page * kPage] == 13;
      if (leaf && bytes_.substr(page * kPage, kPage).find("base_link") != std::string::npos) leaves_.insert(page);
    }
  }
  std::vector<RosMessage> messages_;
  std::string bytes_;
  std::set<Identity> all_;
  std::set<std::size_t> leaves_;
};

TEST_F(DamagedDatabase, CutAtAThousandPlaces) {
  std::size_t read_somewhere = 0;
  for (std::size_t i = 0; i < 1000; ++i) {
    const std::size_t size = bytes_.size() * i / 1000;
    test::save(path("x.db3"), bytes_.substr(0, size));
    const auto log = open_log(path("x.db3"));
    if (!log) {
      EXPECT_EQ(log.error().code, Code::kInput);
      continue;
    }
    EXPECT_FALSE((*log)->problems().empty()) << size;
    const auto found = read_all(**log);
    EXPECT_TRUE(std::includes(all_.begin(), all_.end(), found.begin(), found.end())) << size;
    if (!found.empty()) ++read_somewhere;
    // Leaves follow each other in the file: about the share that is left is read.
    EXPECT_GE(found.size() + 60, all_.size() * i / 1000 * 7 / 10) << size;
  }
  EXPECT_GT(read_somewhere, 750U);
}

TEST_F(DamagedDatabase, AByteChangedAtAThousandPlaces) {
  ASSERT_GT(leaves_.size(), 8U);
  std::size_t most = 0;  // messages on one page
  for (const std::size_t page : leaves_) {
    const auto cells = static_cast<std::size_t>(static_cast<unsigned char>(bytes_[page * kPage + 4]));
    most = std::max(most, cells);
  }
  for (std::size_t i = 0; i < 1000; ++i) {
    const std::size_t at = i < 100 ? i : i * bytes_.size() / 1000 + i % 7;
    std::string bytes = bytes_;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << i % 8));
    test::save(path("x.db3"), bytes);
    const auto log = open_log(path("x.db3"));
    if (!log) {
      EXPECT_EQ(log.error().code, Code::kInput);
      EXPECT_FALSE(leaves_.contains(at / kPage)) << at;
      continue;
    }
    const auto found = read_all(**log);
    if (!leaves_.contains(at / kPage)) continue;
    std::size_t kept = 0;
    for (const Identity& m : all_) kept += found.count(m);
    EXPECT_GE(kept + most, all_.size()) << "byte " << at;
  }
}

TEST(RecordedRosLogs, NebulaBags) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/tier4_nebula");
  const auto radar = open_rosbag2(folder + "/continental/ars548/1708578204/1708578204.db3");
  ASSERT_TRUE(radar) << radar.error().message;
  ASSERT_EQ((*radar)->channels().size(), 1U);
  EXPECT_EQ((*radar)->channels()[0].topic, "/sensing/radar/front_center/nebula_packets");
  EXPECT_EQ((*radar)->channels()[0].messages, 2U);
  const auto packets = open_rosbag2(folder + "/velodyne/vlp16/1673400471837873222/1673400471837873222_0.db3");
  ASSERT_TRUE(packets) << packets.error().message;
  EXPECT_THAT((*packets)->problems(), IsEmpty());
  ASSERT_EQ((*packets)->channels().size(), 1U);
  EXPECT_EQ((*packets)->channels()[0].messages, 4U);
  const auto span = (*packets)->span();
  EXPECT_EQ((span->second - span->first).ns / 1'000'000, 300);
}

TEST(RecordedRosLogs, OusterBag) {
  TAKT_TEST_DATA_OR_SKIP(file, "sensors/ouster_sdk/512x10_raw.bag");
  const auto log = open_log(file);
  ASSERT_TRUE(log) << log.error().message;
  EXPECT_THAT((*log)->problems(), IsEmpty());
  std::set<std::string> topics;
  for (const LogChannel& channel : (*log)->channels()) topics.insert(channel.topic);
  EXPECT_EQ(topics, (std::set<std::string>{"/os_node0/imu_packets", "/os_node0/lidar_packets", "/os_node0/metadata"}));
  std::size_t messages = 0;
  for (auto m = (*log)->next(); *m; m = (*log)->next()) ++messages;
  EXPECT_EQ(messages, 43U);
}

}  // namespace
}  // namespace takt::sensors
