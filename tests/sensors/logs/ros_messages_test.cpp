#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "sensors/camera/camera_decoder.h"
#include "sensors/ego/ego_decoder.h"
#include "sensors/lidar/lidar_decoder.h"
#include "sensors/logs/ros_messages.h"
#include "sensors/messages/messages.h"
#include "sensors/radar/radar_decoder.h"
#include "tests/sensors/logs/ros_bytes.h"

namespace takt::sensors {
namespace {

using test::RosWriter;
using test::Wire;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kStamp = 1'700'000'000'123'456'789;
constexpr Wire kWires[] = {Wire::kCdr, Wire::kCdrBigEndian, Wire::kRos1};

ros::Encoding encoding(Wire wire) { return wire == Wire::kRos1 ? ros::Encoding::kRos1 : ros::Encoding::kCdr; }
std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string odometry(Wire wire) {
  RosWriter w(wire);
  w.header(kStamp, "odom").text("base_link").numbers<double>({1, 2, 3, 0.1, 0.2, 0.3, 0.9}).zeros(36);
  return w.numbers<double>({4, 5, 6, 7, 8, 9}).zeros(36).str();
}

TEST(RosMessages, TheSameOdometryInEverySerialisation) {
  for (const Wire wire : kWires) {
    const std::string message = odometry(wire);
    const auto m = ros::decode_odometry(encoding(wire), bytes(message));
    ASSERT_TRUE(m) << m.error().message;
    EXPECT_EQ(m->stamp.ns, kStamp);
    EXPECT_EQ(m->frame_id, "odom");
    EXPECT_EQ(m->child_frame_id, "base_link");
    EXPECT_THAT(m->pose.position, ElementsAre(1, 2, 3));
    EXPECT_THAT(m->pose.orientation, ElementsAre(0.9, 0.1, 0.2, 0.3));
    EXPECT_THAT(m->velocity, ElementsAre(4, 5, 6));
    EXPECT_THAT(m->angular_velocity, ElementsAre(7, 8, 9));
    EXPECT_EQ(ros::header_stamp(encoding(wire), bytes(message).first(ros::kHeaderBytes))->ns, kStamp);
  }
}

TEST(RosMessages, AMessageThatIsCutAnywhereIsRefusedWithItsType) {
  for (const Wire wire : kWires) {
    const std::string message = odometry(wire);
    for (std::size_t size = 0; size < message.size(); ++size) {
      const auto m = ros::decode_odometry(encoding(wire), bytes(message).first(size));
      ASSERT_FALSE(m) << size;
      EXPECT_EQ(m.error().code, Code::kInput);
      EXPECT_THAT(m.error().message, HasSubstr("nav_msgs/Odometry"));
    }
  }
}

TEST(RosMessages, AlignmentCountsFromByteFour) {
  // time 8, text "ab" 4 + 3, one byte of padding, then a double: not aligned to 8 when counted from byte 0.
  RosWriter w(Wire::kCdr);
  w.header(kStamp, "ab").number(2.5);
  EXPECT_EQ(w.str().size(), 4U + 8 + 4 + 3 + 1 + 8);
  ros::Cursor c(ros::Encoding::kCdr, bytes(w.str()));
  EXPECT_EQ(c.header().frame_id, "ab");
  EXPECT_EQ(c.number<double>(), 2.5);
  EXPECT_TRUE(c.ok());
}

TEST(RosMessages, ParameterListsAndXcdr2AreRefusedByName) {
  for (const auto& [id, name] : {std::pair{3, "PL_CDR"}, {6, "XCDR2"}, {9, "XCDR2"}, {0x40, "unknown"}}) {
    std::string message = odometry(Wire::kCdr);
    message[1] = static_cast<char>(id);
    const auto m = ros::decode_odometry(ros::Encoding::kCdr, bytes(message));
    ASSERT_FALSE(m);
    EXPECT_THAT(m.error().message, HasSubstr(name));
  }
}

TEST(RosMessages, LengthsThatLieCostNothing) {
  RosWriter w(Wire::kCdr);
  w.header(kStamp, "radar").number(std::uint32_t{0xffffffff});
  log::RadarScan scan;
  const auto status = ros::decode_radar_scan(ros::Encoding::kCdr, bytes(w.str()), scan);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("4294967295 elements"));
  EXPECT_TRUE(scan.returns.empty());
}

TEST(RosMessages, OtherTypes) {
  for (const Wire wire : kWires) {
    const auto e = encoding(wire);
    const std::string imu = RosWriter(wire)
                                .header(kStamp, "imu")
                                .numbers<double>({0, 0, 0, 1, -1, 0, 0, 0, 0, 0, 0, 0, 0})
                                .numbers<double>({1, 2, 3})
                                .zeros(9)
                                .numbers<double>({4, 5, 6})
                                .zeros(9)
                                .str();
    const auto i = ros::decode_imu(e, bytes(imu));
    ASSERT_TRUE(i) << i.error().message;
    EXPECT_FALSE(i->has_orientation);
    EXPECT_THAT(i->angular_velocity, ElementsAre(1, 2, 3));
    EXPECT_THAT(i->linear_acceleration, ElementsAre(4, 5, 6));

    const std::string fix = RosWriter(wire)
                                .header(kStamp, "gnss")
                                .number(std::int8_t{-1})
                                .number(std::uint16_t{1})
                                .numbers<double>({48.5, 9.25, 300})
                                .zeros(9)
                                .number(std::uint8_t{0})
                                .str();
    const auto f = ros::decode_nav_sat_fix(e, bytes(fix));
    ASSERT_TRUE(f) << f.error().message;
    EXPECT_EQ(f->status, -1);
    EXPECT_EQ(f->longitude, 9.25);

    RosWriter tf(wire);
    tf.number(std::uint32_t{2});
    for (const char* child : {"lidar", "camera"}) {
      tf.header(kStamp, "base_link").text(child).numbers<double>({1, 2, 3, 0, 0, 0, 1});
    }
    const auto t = ros::decode_transforms(e, bytes(tf.str()));
    ASSERT_TRUE(t) << t.error().message;
    ASSERT_EQ(t->size(), 2U);
    EXPECT_EQ((*t)[1].parent, "base_link");
    EXPECT_EQ((*t)[1].child, "camera");
    EXPECT_THAT((*t)[1].pose.orientation, ElementsAre(1, 0, 0, 0));

    const auto info = [&](const char* model, std::vector<double> d) {
      RosWriter w(wire);
      w.header(kStamp, "camera").number(std::uint32_t{480}).number(std::uint32_t{640}).text(model);
      w.number(static_cast<std::uint32_t>(d.size())).numbers(d);
      w.numbers<double>({500, 0, 320, 0, 510, 240, 0, 0, 1}).zeros(21);
      return w.number(std::uint32_t{0}).number(std::uint32_t{0}).str();
    };
    const auto c = ros::decode_camera_info(e, bytes(info("plumb_bob", {1, 2, 3, 4, 5})));
    ASSERT_TRUE(c) << c.error().message;
    EXPECT_EQ(c->width, 640U);
    EXPECT_EQ(c->fy, 510);
    EXPECT_THAT(c->distortion, ElementsAre(1, 2, 3, 4, 5));
    const auto fisheye = ros::decode_camera_info(e, bytes(info("equidistant", {1, 2, 3, 4})));
    ASSERT_FALSE(fisheye);
    EXPECT_THAT(fisheye.error().message, HasSubstr("equidistant"));

    RosWriter tracks(wire);
    tracks.header(kStamp, "radar").number(std::uint32_t{2});
    for (int track = 0; track < 2; ++track) {
      for (int byte = 0; byte < 16; ++byte) tracks.number(static_cast<std::uint8_t>(byte + track));
      tracks.numbers<double>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
      tracks.number(static_cast<std::uint16_t>(32001)).numbers(std::vector<float>(24, 0));
    }
    log::RadarTracks out;
    const auto status = ros::decode_radar_tracks(e, bytes(tracks.str()), out);
    ASSERT_TRUE(status) << status.error().message;
    ASSERT_EQ(out.tracks.size(), 2U);
    EXPECT_EQ(out.tracks[1].uuid[15], 16);
    EXPECT_THAT(out.tracks[1].size, ElementsAre(10, 11, 12));
    EXPECT_EQ(out.tracks[1].classification, 32001);
  }
}

TEST(RosMessages, ADefinitionTellsWhetherAHeaderComesFirst) {
  EXPECT_TRUE(ros::starts_with_header("sensor_msgs/msg/Image", ""));
  EXPECT_TRUE(ros::starts_with_header("sensor_msgs/Image", ""));
  EXPECT_FALSE(ros::starts_with_header("sensor_msgs/x/Image", ""));
  EXPECT_FALSE(ros::starts_with_header("my/Type", ""));
  EXPECT_TRUE(ros::starts_with_header("my/Type", "# text\n\nuint8 A=1  # constant\n  std_msgs/Header header\n"));
  EXPECT_TRUE(ros::starts_with_header("my/Type", "Header header"));
  EXPECT_FALSE(ros::starts_with_header("my/Type", "uint32 number # = 3\nHeader header\n"));
  EXPECT_FALSE(ros::starts_with_header("my/Type", "=====\nMSG: std_msgs/Header\nHeader header\n"));
}

struct CloudSizes {
  std::uint32_t width, height, point_step, row_step;
  std::size_t data;
};
std::string cloud(Wire wire, const CloudSizes& s, const std::string& data, bool big_endian = false) {
  RosWriter w(wire);
  w.header(kStamp, "lidar").number(s.height).number(s.width).number(std::uint32_t{4});
  for (std::uint32_t i = 0; i < 4; ++i) {
    constexpr const char* kNames[] = {"x", "y", "z", "t"};
    w.text(kNames[i]).number(i * 4).number(static_cast<std::uint8_t>(i == 3 ? 6 : 7)).number(std::uint32_t{1});
  }
  w.number(static_cast<std::uint8_t>(big_endian)).number(s.point_step).number(s.row_step).bytes(data.substr(0, s.data));
  return w.number(std::uint8_t{1}).str();
}
std::string points(std::size_t count, std::size_t stride) {
  std::string data(count * stride, '\0');
  for (std::size_t i = 0; i < count; ++i) {
    const float xyz[] = {static_cast<float>(i), 1, 2};
    std::memcpy(data.data() + i * stride, xyz, sizeof xyz);
    data[i * stride + 12] = static_cast<char>(i);
  }
  return data;
}

// A decoder with a chunk to decode into.
struct Chunk {
  explicit Chunk(Result<std::unique_ptr<Decoder>> made) : decoder(std::move(made).value()) {
    storage = static_cast<std::byte*>(std::aligned_alloc(64, (decoder->payload_capacity() + 63) / 64 * 64));
  }
  ~Chunk() { std::free(storage); }
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;
  DecodeReport decode(const std::string& message) {
    std::memset(storage, 0xEE, decoder->payload_capacity());
    return decoder->decode(bytes(message), {storage, decoder->payload_capacity()});
  }
  template <class T>
  const T& as() const {
    return *reinterpret_cast<const T*>(storage);
  }
  std::unique_ptr<Decoder> decoder;
  std::byte* storage = nullptr;
};
RigSensor sensor(SensorKind kind, std::uint32_t width = 4, std::uint32_t height = 2) {
  RigSensor s;
  s.name = "s";
  s.kind = kind;
  s.capacity = 64;
  s.camera = CameraModel{width, height, 1, 1, 1, 1, {}};
  return s;
}
LogChannel channel(const std::string& schema, const std::string& encoding = "ros1") {
  LogChannel c;
  c.topic = "/topic";
  c.schema = schema;
  c.encoding = encoding;
  return c;
}

TEST(RosPointCloud, RowsAreMendedWhereOnlyOneReadingFits) {
  Chunk chunk(make_lidar_decoder(sensor(SensorKind::kLidar), channel("sensor_msgs/PointCloud2")));
  struct Case {
    CloudSizes sizes;
    std::uint32_t count;
    const char* repaired;  // part of the text; "" = nothing mended
  };
  for (const auto& c : std::vector<Case>{{{6, 1, 16, 96, 96}, 6, ""},
                                         {{6, 1, 16, 0, 96}, 6, "row_step"},
                                         {{6, 1, 16, 9999, 96}, 6, "row_step"},
                                         {{3, 2, 16, 48, 96}, 6, ""},
                                         {{3, 2, 16, 0, 96}, 6, "row_step"},
                                         {{3, 2, 16, 96, 96}, 6, "row_step"},
                                         {{2, 2, 16, 32, 96}, 4, "behind the last point"},
                                         {{2, 2, 16, 48, 96}, 4, ""},  // a row has 16 bytes of padding
                                         {{0, 0, 16, 0, 0}, 0, ""}}) {
    const auto report = chunk.decode(cloud(Wire::kRos1, c.sizes, points(6, 16)));
    ASSERT_TRUE(report.ok) << report.reason;
    EXPECT_EQ(chunk.as<PointCloud>().count, c.count);
    EXPECT_EQ(report.stamp.ns, kStamp);
    if (*c.repaired == '\0') {
      EXPECT_EQ(report.repaired, nullptr) << report.repaired;
    } else {
      ASSERT_NE(report.repaired, nullptr);
      EXPECT_THAT(report.repaired, HasSubstr(c.repaired));
    }
  }
  ASSERT_TRUE(chunk.decode(cloud(Wire::kRos1, {2, 2, 16, 48, 96}, points(6, 16))).ok);
  EXPECT_THAT(std::span(chunk.as<PointCloud>().x(), 4), ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(std::span(chunk.as<PointCloud>().time_ns(), 4), ElementsAre(0, 1, 3, 4));
}

TEST(RosPointCloud, ContradictionsAreRefusedWithTheNumbers) {
  Chunk chunk(make_lidar_decoder(sensor(SensorKind::kLidar), channel("sensor_msgs/PointCloud2")));
  for (const CloudSizes& sizes : std::vector<CloudSizes>{{7, 1, 16, 112, 96},
                                                         {6, 1, 0, 96, 96},
                                                         {2, 2, 16, 7, 96},
                                                         {2, 3, 16, 48, 95},
                                                         {0, 1, 16, 0, 96},
                                                         {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 96}}) {
    const auto report = chunk.decode(cloud(Wire::kRos1, sizes, points(6, 16)));
    ASSERT_FALSE(report.ok) << sizes.width;
    EXPECT_THAT(report.reason, HasSubstr("width " + std::to_string(sizes.width)));
    EXPECT_THAT(report.reason, HasSubstr("row_step " + std::to_string(sizes.row_step)));
    EXPECT_THAT(report.reason, HasSubstr(std::to_string(sizes.data) + " bytes of data"));
  }
  // A field beyond the point.
  EXPECT_THAT(chunk.decode(cloud(Wire::kRos1, {8, 1, 12, 96, 96}, points(6, 16))).reason, HasSubstr("ends at byte 16"));
}

TEST(RosPointCloud, BigEndianPointsAreTurned) {
  std::string data = points(3, 16);
  for (std::size_t i = 0; i < data.size(); i += 4) std::reverse(data.data() + i, data.data() + i + 4);
  Chunk chunk(make_lidar_decoder(sensor(SensorKind::kLidar), channel("sensor_msgs/msg/PointCloud2", "cdr")));
  ASSERT_TRUE(chunk.decode(cloud(Wire::kCdr, {3, 1, 16, 48, 48}, data, true)).ok);
  EXPECT_THAT(std::span(chunk.as<PointCloud>().x(), 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(std::span(chunk.as<PointCloud>().time_ns(), 3), ElementsAre(0, 1, 2));
}

TEST(RosRadar, PolarScansBecomeReturnsInTheSensorFrame) {
  RosWriter w(Wire::kCdr);
  w.header(kStamp, "radar").number(std::uint32_t{3});
  w.numbers<float>({10, 0.5F, 0.25F, -3, 12}).numbers<float>({NAN, 0, 0, 0, 0}).numbers<float>({5, 1e9F, 0, 0, 0});
  Chunk chunk(make_radar_decoder(sensor(SensorKind::kRadar), channel("radar_msgs/msg/RadarScan", "cdr")));
  const auto report = chunk.decode(w.str());
  ASSERT_TRUE(report.ok) << report.reason;
  EXPECT_EQ(report.invalid_points, 2U);
  const auto& scan = chunk.as<RadarScan>();
  ASSERT_EQ(scan.count, 1U);
  EXPECT_NEAR(scan.returns()[0].x, 10 * std::cos(0.25) * std::cos(0.5), 1e-6);
  EXPECT_NEAR(scan.returns()[0].y, 10 * std::cos(0.25) * std::sin(0.5), 1e-6);
  EXPECT_NEAR(scan.returns()[0].z, 10 * std::sin(0.25), 1e-6);
  EXPECT_EQ(scan.returns()[0].range_rate, -3);
  EXPECT_EQ(scan.returns()[0].rcs, 12);
}

TEST(RosChannels, AChannelOfAnotherTypeIsRefusedByName) {
  const auto wrong = make_lidar_decoder(sensor(SensorKind::kLidar), channel("my_msgs/Packets"));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Code::kConfiguration);
  EXPECT_THAT(wrong.error().message, HasSubstr("/topic carries my_msgs/Packets (ros1)"));
  EXPECT_FALSE(make_radar_decoder(sensor(SensorKind::kRadar), channel("sensor_msgs/Imu")));
  EXPECT_FALSE(make_camera_decoder(sensor(SensorKind::kCamera), channel("sensor_msgs/PointCloud2")));
  EXPECT_FALSE(make_ego_decoder(sensor(SensorKind::kEgo), channel("sensor_msgs/NavSatFix")));
}

std::string image(const char* name, std::uint32_t width, std::uint32_t height, std::uint32_t step,
                  const std::string& data, bool big_endian = false) {
  RosWriter w(Wire::kRos1);
  w.header(kStamp, "camera").number(height).number(width).text(name);
  return w.number(static_cast<std::uint8_t>(big_endian)).number(step).bytes(data).str();
}
std::string ramp(std::size_t size) {
  std::string data(size, '\0');
  std::iota(data.begin(), data.end(), '\1');
  return data;
}
std::vector<int> row(const Image& picture, std::uint32_t y, std::size_t count) {
  return {picture.row(y), picture.row(y) + count};
}

TEST(RosImage, ColourOrdersAndStepsGiveTheSamePixels) {
  Chunk chunk(make_camera_decoder(sensor(SensorKind::kCamera, 2, 2), channel("sensor_msgs/Image")));
  const auto& picture = chunk.as<Image>();
  const auto expect = [&](const std::string& message, int r, int g, int b) {
    const auto report = chunk.decode(message);
    ASSERT_TRUE(report.ok) << report.reason;
    EXPECT_EQ(picture.format, PixelFormat::kRgb8);
    EXPECT_EQ(report.payload_bytes, Image::bytes_for(2, 2, 3));
    // The second pixel of the second row.
    EXPECT_THAT(std::vector<int>(picture.row(1) + 3, picture.row(1) + 6), ElementsAre(r, g, b));
    EXPECT_EQ(picture.row(1)[6], 0);
  };
  expect(image("rgb8", 2, 2, 6, ramp(12)), 10, 11, 12);
  expect(image("bgr8", 2, 2, 6, ramp(12)), 12, 11, 10);
  expect(image("8UC3", 2, 2, 6, ramp(12)), 12, 11, 10);
  expect(image("rgb8", 2, 2, 8, ramp(16)), 12, 13, 14);  // two bytes of padding per row
  expect(image("rgb8", 2, 2, 0, ramp(12)), 10, 11, 12);  // mended
  expect(image("bgra8", 2, 2, 8, ramp(16)), 15, 14, 13);
  expect(image("rgba8", 2, 2, 8, ramp(16)), 13, 14, 15);
  expect(image("rgb16", 2, 2, 12, ramp(24)), 20, 22, 24);        // the upper byte lies second
  expect(image("rgb16", 2, 2, 12, ramp(24), true), 19, 21, 23);  // and first
  for (const auto& [name, y, u] : {std::tuple{"yuv422", 1, 0}, {"yuv422_yuy2", 0, 1}, {"uyvy", 1, 0}, {"yuyv", 0, 1}}) {
    std::string data(8, '\x80');
    for (const std::size_t pixel : {0U, 2U, 4U, 6U}) data[pixel + static_cast<std::size_t>(y)] = '\xeb';
    EXPECT_NE(y, u);
    expect(image(name, 2, 2, 4, data), 255, 255, 255);
  }
  // BT.601 red: Y 81, U 90, V 240.
  expect(image("nv12", 2, 2, 2, "\x51\x51\x51\x51\x5a\xf0"), 255, 0, 0);
  expect(image("nv21", 2, 2, 2, "\x51\x51\x51\x51\xf0\x5a"), 255, 0, 0);
}

TEST(RosImage, GreyKeepsOneByte) {
  Chunk chunk(make_camera_decoder(sensor(SensorKind::kCamera, 2, 2), channel("sensor_msgs/Image")));
  const auto report = chunk.decode(image("mono8", 2, 2, 2, ramp(4)));
  ASSERT_TRUE(report.ok) << report.reason;
  EXPECT_EQ(chunk.as<Image>().format, PixelFormat::kMono8);
  EXPECT_EQ(report.payload_bytes, Image::bytes_for(2, 2, 1));
  EXPECT_THAT(row(chunk.as<Image>(), 1, 3), ElementsAre(3, 4, 0));
  ASSERT_TRUE(chunk.decode(image("mono16", 2, 2, 4, ramp(8))).ok);
  EXPECT_THAT(row(chunk.as<Image>(), 1, 3), ElementsAre(6, 8, 0));
}

TEST(RosImage, EveryBayerOrderGivesTheColourBehindIt) {
  // One colour behind the filter: red 200, green 100, blue 50.
  for (const auto& [name, square] :
       std::vector<std::pair<const char*, std::vector<int>>>{{"bayer_rggb8", {200, 100, 100, 50}},
                                                             {"bayer_bggr8", {50, 100, 100, 200}},
                                                             {"bayer_gbrg8", {100, 50, 200, 100}},
                                                             {"bayer_grbg8", {100, 200, 50, 100}}}) {
    std::string data;
    for (std::size_t y = 0; y < 4; ++y) {
      for (std::size_t x = 0; x < 4; ++x) data += static_cast<char>(square[y % 2 * 2 + x % 2]);
    }
    Chunk chunk(make_camera_decoder(sensor(SensorKind::kCamera, 4, 4), channel("sensor_msgs/Image")));
    const auto report = chunk.decode(image(name, 4, 4, 4, data));
    ASSERT_TRUE(report.ok) << report.reason;
    for (std::uint32_t y = 0; y < 4; ++y) {
      for (std::uint32_t x = 0; x < 4; ++x) {
        const auto* p = chunk.as<Image>().row(y) + x * 3;
        EXPECT_THAT(std::vector<int>(p, p + 3), ElementsAre(200, 100, 50)) << name << " " << x << " " << y;
      }
    }
  }
}

TEST(RosImage, WhatDoesNotFitIsRefusedWithTheNumbers) {
  Chunk chunk(make_camera_decoder(sensor(SensorKind::kCamera, 2, 2), channel("sensor_msgs/Image")));
  EXPECT_THAT(chunk.decode(image("rgb8", 2, 2, 6, ramp(11))).reason, HasSubstr("step 6, 2 rows, 11 bytes"));
  EXPECT_THAT(chunk.decode(image("rgb8", 2, 2, 5, ramp(13))).reason, HasSubstr("step 5"));
  EXPECT_THAT(chunk.decode(image("rgb8", 4, 2, 12, ramp(24))).reason, HasSubstr("4x2, the rig says 2x2"));
  EXPECT_THAT(chunk.decode(image("16UC1", 2, 2, 4, ramp(8))).reason, HasSubstr("depth"));
  EXPECT_THAT(chunk.decode(image("theora", 2, 2, 4, ramp(8))).reason, HasSubstr("theora"));
}

}  // namespace
}  // namespace takt::sensors
