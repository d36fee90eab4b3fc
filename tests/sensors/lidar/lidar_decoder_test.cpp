#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "sensors/lidar/lidar_decoder.h"
#include "sensors/logs/encode.h"

namespace takt::sensors {
namespace {

using log::NumericType;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr SensorTime kStamp{5'000'000'000};

RigSensor lidar_sensor(std::uint32_t capacity, double scale = 1, bool compensated = false) {
  RigSensor sensor;
  sensor.name = "top";
  sensor.kind = SensorKind::kLidar;
  sensor.capacity = capacity;
  sensor.intensity_scale = scale;
  sensor.motion_compensated = compensated;
  return sensor;
}

// A decoder with a used chunk to decode into.
struct Rig1 {
  explicit Rig1(const RigSensor& sensor) : decoder(make_lidar_decoder(sensor).value()) {
    bytes = decoder->payload_capacity();
    storage.reset(static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)));
    std::memset(storage.get(), 0xEE, bytes);
  }
  DecodeReport decode(const std::string& message) {
    return decoder->decode(std::as_bytes(std::span(message)), {storage.get(), bytes});
  }
  const PointCloud& cloud() const { return *reinterpret_cast<const PointCloud*>(storage.get()); }
  std::string payload() const { return {reinterpret_cast<const char*>(storage.get()), bytes}; }
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<Decoder> decoder;
  std::uint64_t bytes = 0;
  std::unique_ptr<std::byte, Free> storage;
};

// Any layout: rows of raw bytes.
std::string cloud_message(std::uint32_t stride, const std::vector<log::PackedField>& fields, const std::string& data,
                          const log::Pose& pose = {}) {
  log::PointCloud cloud;
  cloud.stamp = kStamp;
  cloud.pose = pose;
  cloud.point_stride = stride;
  for (const auto& field : fields) cloud.fields[cloud.field_count++] = field;
  cloud.data = std::as_bytes(std::span(data));
  return encode(cloud);
}
template <class... T>
std::string row(T... values) {
  std::string out;
  (out.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
  return out;
}

TEST(LidarDecoder, OwnLayout) {
  Rig1 rig(lidar_sensor(5, 1, true));
  const std::vector<log::LidarPoint> points{{1, 2, 3, 0.5F, -7, 31}, {-1, -2, -3, 1, 99'000'000, 65535}};
  const auto report = rig.decode(encode_lidar(kStamp, "lidar", points));
  ASSERT_TRUE(report.ok) << report.reason;
  EXPECT_EQ(report.stamp, kStamp);
  EXPECT_EQ(report.payload_bytes, PointCloud::bytes_for(5));
  EXPECT_EQ(report.invalid_points, 0u);
  const PointCloud& cloud = rig.cloud();
  EXPECT_EQ(cloud.count, 2u);
  EXPECT_EQ(cloud.capacity, 5u);
  EXPECT_EQ(cloud.motion_compensated, 1u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(cloud.x()[i], points[i].x);
    EXPECT_EQ(cloud.y()[i], points[i].y);
    EXPECT_EQ(cloud.z()[i], points[i].z);
    EXPECT_EQ(cloud.intensity()[i], points[i].intensity);
    EXPECT_EQ(cloud.time_ns()[i], points[i].time_ns);
    EXPECT_EQ(cloud.ring()[i], points[i].ring);
  }
}

TEST(LidarDecoder, EqualMessagesGiveEqualBytesWhateverTheChunkHeld) {
  Rig1 a(lidar_sensor(7)), b(lidar_sensor(7));
  const std::string few = encode_lidar(kStamp, "lidar", std::vector<log::LidarPoint>{{1, 2, 3, 0.5F, 4, 5}});
  ASSERT_TRUE(a.decode(encode_lidar(kStamp, "lidar", std::vector<log::LidarPoint>(7, {9, 9, 9, 1, 9, 9}))).ok);
  ASSERT_TRUE(a.decode(few).ok);
  ASSERT_TRUE(b.decode(few).ok);
  EXPECT_EQ(a.payload(), b.payload());
}

TEST(LidarDecoder, InvalidPointsAreRemovedAndCounted) {
  Rig1 rig(lidar_sensor(5));
  const std::vector<log::LidarPoint> points{
      {kNan, 0, 0, 0, 0, 0}, {1, 0, 0, 0, 0, 0}, {0, kInf, 0, 0, 0, 0}, {0, 0, -kInf, 0, 0, 0}, {2, 0, 0, kNan, 0, 0}};
  const auto report = rig.decode(encode_lidar(kStamp, "lidar", points));
  ASSERT_TRUE(report.ok);
  EXPECT_EQ(report.invalid_points, 3u);
  EXPECT_EQ(report.dropped_points, 0u);
  ASSERT_EQ(rig.cloud().count, 2u);
  EXPECT_EQ(rig.cloud().x()[0], 1);
  EXPECT_EQ(rig.cloud().x()[1], 2);
  EXPECT_EQ(rig.cloud().intensity()[1], 0) << "an intensity that is no number counts as none";
}

TEST(LidarDecoder, OverCapacityKeepsTheFirstValidPoints) {
  Rig1 rig(lidar_sensor(3));
  std::vector<log::LidarPoint> points;
  for (int i = 0; i < 8; ++i) points.push_back({i == 1 ? kNan : static_cast<float>(i), 0, 0, 0, 0, 0});
  const auto report = rig.decode(encode_lidar(kStamp, "lidar", points));
  ASSERT_TRUE(report.ok);
  EXPECT_EQ(report.invalid_points, 1u);
  EXPECT_EQ(report.dropped_points, 4u);
  EXPECT_EQ(rig.cloud().dropped, 4u);
  ASSERT_EQ(rig.cloud().count, 3u);
  EXPECT_EQ(rig.cloud().x()[0], 0);
  EXPECT_EQ(rig.cloud().x()[1], 2);
  EXPECT_EQ(rig.cloud().x()[2], 3);
}

TEST(LidarDecoder, EmptyCloudIsFine) {
  Rig1 rig(lidar_sensor(3));
  for (const std::string& message :
       {encode_lidar(kStamp, "lidar", std::span<const log::LidarPoint>()), cloud_message(0, {}, "")}) {
    const auto report = rig.decode(message);
    ASSERT_TRUE(report.ok) << report.reason;
    EXPECT_EQ(rig.cloud().count, 0u);
  }
}

TEST(LidarDecoder, OtherLayouts) {
  // Doubles, intensity in bytes, unsorted offsets, unknown fields, absolute times in seconds: the Hesai kind.
  Rig1 rig(lidar_sensor(4, 1.0 / 255));
  const std::string data = row(std::uint8_t{51}, 5.000123, 3.0, 2.0, 1.0, std::uint16_t{12}, std::int8_t{0}) +
                           row(std::uint8_t{255}, 5.1, 30.0, 20.0, 10.0, std::uint16_t{13}, std::int8_t{0});
  const auto report = rig.decode(cloud_message(36,
                                               {{"intensity", 0, NumericType::kUint8},
                                                {"timestamp", 1, NumericType::kFloat64},
                                                {"z", 9, NumericType::kFloat64},
                                                {"y", 17, NumericType::kFloat64},
                                                {"x", 25, NumericType::kFloat64},
                                                {"ring", 33, NumericType::kUint16},
                                                {"tag", 35, NumericType::kInt8}},
                                               data));
  ASSERT_TRUE(report.ok) << report.reason;
  const PointCloud& cloud = rig.cloud();
  ASSERT_EQ(cloud.count, 2u);
  EXPECT_EQ(cloud.x()[1], 10);
  EXPECT_EQ(cloud.y()[1], 20);
  EXPECT_EQ(cloud.z()[0], 3);
  EXPECT_FLOAT_EQ(cloud.intensity()[0], 0.2F);
  EXPECT_FLOAT_EQ(cloud.intensity()[1], 1.0F);
  EXPECT_NEAR(cloud.time_ns()[0], 123'000, 1);
  EXPECT_NEAR(cloud.time_ns()[1], 100'000'000, 1);
  EXPECT_EQ(cloud.ring()[1], 13);

  // Seconds from the stamp (Velodyne) and nanoseconds from the stamp (Ouster).
  ASSERT_TRUE(rig.decode(cloud_message(16,
                                       {{"x", 0, NumericType::kFloat32},
                                        {"y", 4, NumericType::kFloat32},
                                        {"z", 8, NumericType::kFloat32},
                                        {"time", 12, NumericType::kFloat32}},
                                       row(1.0F, 2.0F, 3.0F, -0.05F)))
                  .ok);
  EXPECT_NEAR(cloud.time_ns()[0], -50'000'000, 10);
  ASSERT_TRUE(rig.decode(cloud_message(16,
                                       {{"x", 0, NumericType::kFloat32},
                                        {"y", 4, NumericType::kFloat32},
                                        {"z", 8, NumericType::kFloat32},
                                        {"t", 12, NumericType::kUint32}},
                                       row(1.0F, 2.0F, 3.0F, std::uint32_t{4'000'000'000})))
                  .ok);
  EXPECT_EQ(cloud.time_ns()[0], std::numeric_limits<std::int32_t>::max()) << "clamped, not wrapped";
}

TEST(LidarDecoder, BadLayoutsAreRefusedWithNumbers) {
  Rig1 rig(lidar_sensor(4));
  const std::vector<log::PackedField> xyz{
      {"x", 0, NumericType::kFloat32}, {"y", 4, NumericType::kFloat32}, {"z", 8, NumericType::kFloat32}};
  const std::string two(24, '\0');
  const auto reason = [&](const std::string& message) {
    const auto report = rig.decode(message);
    EXPECT_FALSE(report.ok);
    return report.reason;
  };
  EXPECT_EQ(reason(cloud_message(0, xyz, two)), "point_stride is 0");
  EXPECT_EQ(reason(cloud_message(13, xyz, two)), "24 bytes are no multiple of point_stride 13");
  EXPECT_EQ(reason(cloud_message(8, xyz, two)), "field 'z' ends at byte 12 of a point of 8");
  EXPECT_EQ(reason(cloud_message(12, {xyz[0], xyz[1]}, two)), "field 'z' is missing");
  EXPECT_EQ(reason(cloud_message(12, {xyz[0], xyz[1], {"z", 8, static_cast<NumericType>(99)}}, two)),
            "field 'z' has the unknown type 99");
  EXPECT_EQ(reason(cloud_message(12, {xyz[0], xyz[1], {"z", 0xfffffffe, NumericType::kFloat32}}, two)),
            "field 'z' ends at byte 4294967298 of a point of 12");
  EXPECT_EQ(reason(cloud_message(12, xyz, two, {{1, 0, 0}, {1, 0, 0, 0}})),
            "the cloud has a pose of its own; points must lie in the message's frame");
  EXPECT_THAT(reason("\x32\x05"), HasSubstr("exceeds the bytes left"));
}

TEST(LidarDecoder, NeedsALidarAndAChunk) {
  EXPECT_EQ(make_lidar_decoder(RigSensor{}).error().code, Code::kConfiguration);
  Rig1 rig(lidar_sensor(4));
  rig.bytes -= 1;
  EXPECT_EQ(rig.decode("").reason, "the chunk is smaller than the payload");
}

}  // namespace
}  // namespace takt::sensors
