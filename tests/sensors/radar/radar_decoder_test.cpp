#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "sensors/logs/encode.h"
#include "sensors/radar/radar_decoder.h"

namespace takt::sensors {
namespace {

constexpr SensorTime kStamp{7'000};

RigSensor radar_sensor() {
  RigSensor sensor;
  sensor.name = "front";
  sensor.kind = SensorKind::kRadar;
  sensor.capacity = 3;
  return sensor;
}

class RadarDecoderTest : public ::testing::Test {
 protected:
  DecodeReport decode(const std::string& message) {
    return decoder_->decode(std::as_bytes(std::span(message)), {storage_, decoder_->payload_capacity()});
  }
  const RadarScan& scan() const { return *reinterpret_cast<const RadarScan*>(storage_); }

  std::unique_ptr<Decoder> decoder_ = make_radar_decoder(radar_sensor()).value();
  alignas(64) std::byte storage_[192];
};

TEST_F(RadarDecoderTest, RoundTripDropsAndPadding) {
  ASSERT_LE(decoder_->payload_capacity(), sizeof storage_);
  std::memset(storage_, 0xEE, sizeof storage_);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<RadarReturn> returns{{1, 2, 3, -4, 5}, {1, nan, 3, 0, 0}, {1, 2, 3, nan, 0}, {6, 7, 8, 9, -10}};
  auto report = decode(encode_radar(kStamp, "radar", returns));
  ASSERT_TRUE(report.ok) << report.reason;
  EXPECT_EQ(report.stamp, kStamp);
  EXPECT_EQ(report.invalid_points, 2u);
  EXPECT_EQ(scan().count, 2u);
  EXPECT_EQ(scan().capacity, 3u);
  EXPECT_EQ(scan().returns()[0].range_rate, -4);
  EXPECT_EQ(scan().returns()[1].rcs, -10);
  EXPECT_EQ(scan().returns()[2].x, 0) << "behind the last return everything is zero";

  const std::vector<RadarReturn> many(5, {1, 1, 1, 1, 1});
  report = decode(encode_radar(kStamp, "radar", many));
  ASSERT_TRUE(report.ok);
  EXPECT_EQ(report.dropped_points, 2u);
  EXPECT_EQ(scan().dropped, 2u);
  EXPECT_EQ(scan().count, 3u);

  ASSERT_TRUE(decode(encode_radar(kStamp, "radar", {})).ok);
  EXPECT_EQ(scan().count, 0u);
}

TEST_F(RadarDecoderTest, WithoutRangeRateIsABadFrame) {
  const auto report = decode(encode_lidar(kStamp, "radar", std::vector<log::LidarPoint>(1)));
  EXPECT_FALSE(report.ok);
  EXPECT_EQ(report.reason, "field 'range_rate' is missing");
}

TEST(RadarDecoder, NeedsARadar) { EXPECT_EQ(make_radar_decoder(RigSensor{}).error().code, Code::kConfiguration); }

}  // namespace
}  // namespace takt::sensors
