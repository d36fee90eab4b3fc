#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <string>

#include "sensors/ego/ego_decoder.h"
#include "sensors/logs/encode.h"
#include "sensors/messages/messages.h"

namespace takt::sensors {
namespace {

RigSensor ego_sensor() {
  RigSensor sensor;
  sensor.kind = SensorKind::kEgo;
  return sensor;
}

struct Decoded {
  DecodeReport report;
  EgoMotion motion;
};
Decoded decode(const log::EgoMotion& in) {
  Decoded out;
  const std::string message = encode(in);
  out.report = make_ego_decoder(ego_sensor())
                   .value()
                   ->decode(std::as_bytes(std::span(message)), std::as_writable_bytes(std::span(&out.motion, 1)));
  return out;
}

TEST(EgoDecoder, RoundTrip) {
  const auto [report, motion] = decode({{9}, "map", "base", {{1, 2, 3}, {0, 0.6, 0, 0.8}}, {10, 1, 0}, {0, 0, 0.5}});
  ASSERT_TRUE(report.ok) << report.reason;
  EXPECT_EQ(report.stamp.ns, 9);
  EXPECT_EQ(report.payload_bytes, sizeof(EgoMotion));
  EXPECT_EQ(motion.position[2], 3);
  EXPECT_EQ(motion.orientation[1], 0.6);
  EXPECT_EQ(motion.orientation[3], 0.8);
  EXPECT_EQ(motion.velocity[0], 10);
  EXPECT_EQ(motion.angular_velocity[2], 0.5);
}

TEST(EgoDecoder, BadFrames) {
  log::EgoMotion in;
  in.velocity[1] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(decode(in).report.reason, "a value is not finite");
  in.velocity[1] = 0;
  in.pose.orientation = {0.5, 0.5, 0, 0};
  EXPECT_EQ(decode(in).report.reason, "the orientation is no unit quaternion (squared norm 0.500000)");
  EXPECT_EQ(make_ego_decoder(RigSensor{}).error().code, Code::kConfiguration);
}

}  // namespace
}  // namespace takt::sensors
