#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <cmath>
#include <string>

#include "sensors/rig/rig.h"

namespace takt::sensors {
namespace {

using ::testing::HasSubstr;

// Line numbers matter to the tests of messages.
const std::string kRig = R"(name: three
drive: simulated
frames: {world: map, vehicle: base}
sensors:
  - name: front
    kind: camera
    topic: /camera/front
    frame: camera
    extrinsics: {translation_m: [1.5, 0, 1.4], quaternion_wxyz: [0.5, -0.5, 0.5, -0.5]}
    camera: {width_px: 640, height_px: 384, fx_px: 500, fy_px: 501, cx_px: 320, cy_px: 192, distortion: [0.1, 0, 0, 0, -0.2]}
    timing:
      rate_hz: 30
      stamp: exposure_mid
      exposure_ms: 8
      readout_ms: 2
      driver_delay_ms: 1
      jitter_ms: 0.5
      phase_ms: 4
  - name: top
    kind: lidar
    topic: /lidar/top
    frame: lidar
    extrinsics: {translation_m: [0.9, 0, 1.9], quaternion_wxyz: [1, 0, 0, 0]}
    capacity: 20000
    intensity_scale: 0.00392156862745098
    motion_compensated: true
    ray_origin_m: [0, 0, 0.1]
    timing: {period_ms: 100, stamp: sweep_end, sweep_ms: 100, driver_delay_ms: 5, drift_ppm: 20}
  - name: ego
    kind: ego
    topic: /ego/takt
    frame: base
    timing: {rate_hz: 100, driver_delay_ms: 1}
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  const auto rig = parse_rig(text, "rig.yaml");
  EXPECT_FALSE(rig);
  if (rig) return "";
  EXPECT_EQ(rig.error().code, Code::kConfiguration);
  return rig.error().message;
}

TEST(Rig, EveryFieldIsRead) {
  const auto rig = parse_rig(kRig, "rig.yaml");
  ASSERT_TRUE(rig) << rig.error().message;
  EXPECT_EQ(rig->name, "three");
  EXPECT_EQ(rig->drive, "simulated");
  EXPECT_EQ(rig->world_frame, "map");
  EXPECT_EQ(rig->vehicle_frame, "base");
  EXPECT_EQ(rig->file, "rig.yaml");
  ASSERT_EQ(rig->sensors.size(), 3u);
  const RigSensor& camera = rig->sensors[0];
  EXPECT_EQ(camera.kind, SensorKind::kCamera);
  EXPECT_EQ(camera.camera->width, 640u);
  EXPECT_EQ(camera.camera->fy, 501);
  EXPECT_EQ(camera.camera->distortion[4], -0.2);
  EXPECT_EQ(camera.period.ns, 33'333'333);
  EXPECT_EQ(camera.phase, milliseconds(4));
  EXPECT_EQ(camera.captured(), milliseconds(4));
  EXPECT_EQ(camera.delay_min(), milliseconds(7));
  EXPECT_EQ(camera.delay_max(), microseconds(7500));
  const RigSensor& lidar = rig->sensors[1];
  EXPECT_EQ(lidar.capacity, 20000u);
  EXPECT_NEAR(lidar.intensity_scale * 255, 1, 1e-12);
  EXPECT_TRUE(lidar.motion_compensated);
  EXPECT_EQ(lidar.ray_origin, (std::array<double, 3>{0, 0, 0.1}));
  EXPECT_EQ(lidar.drift_ppm, 20);
  EXPECT_EQ(lidar.captured(), Duration{});
  EXPECT_EQ(lidar.delay_min(), milliseconds(5));
  EXPECT_FALSE(lidar.phase);
  EXPECT_EQ(rig->find("ego"), 2u);
  EXPECT_FALSE(rig->find("rear"));
}

TEST(Rig, CapturedFollowsTheStampReference) {
  RigSensor s;
  s.duration = nanoseconds(101);
  const auto captured = [&](StampReference stamp) {
    s.stamp = stamp;
    return s.captured().ns;
  };
  EXPECT_EQ(captured(StampReference::kExposureStart), 101);
  EXPECT_EQ(captured(StampReference::kExposureMid), 51) << "rounded to the later side";
  EXPECT_EQ(captured(StampReference::kExposureEnd), 0);
  EXPECT_EQ(captured(StampReference::kSweepStart), 101);
  EXPECT_EQ(captured(StampReference::kSweepEnd), 0);
  EXPECT_EQ(captured(StampReference::kPerPoint), 101);
}

TEST(Rig, DeclaredDelayReplacesTheBounds) {
  const auto rig = parse_rig(replaced(kRig, "driver_delay_ms: 5, drift_ppm: 20", "declared_delay_ms: 12"), "rig.yaml");
  ASSERT_TRUE(rig) << rig.error().message;
  EXPECT_EQ(rig->sensors[1].delay_min(), milliseconds(12));
  EXPECT_EQ(rig->sensors[1].delay_max(), milliseconds(12));
  const auto rules = release_rules(*rig);
  ASSERT_EQ(rules.size(), 3u);
  EXPECT_EQ(rules[0].topic, "/camera/front");
  EXPECT_EQ(rules[0].captured, milliseconds(4));
  EXPECT_FALSE(rules[0].declared_delay);
  EXPECT_EQ(rules[1].declared_delay, milliseconds(12));
  EXPECT_THAT(
      error_of(replaced(kRig, "jitter_ms: 0.5", "declared_delay_ms: 1")),
      HasSubstr("rig.yaml:17:26: sensors[0].timing.declared_delay_ms: ends before the last captured byte, 4.0"));
}

TEST(Rig, ErrorsNamePlaceAndRemedy) {
  EXPECT_EQ(error_of(replaced(kRig, "rate_hz: 30", "raet_hz: 30")),
            "rig.yaml:12:7: sensors[0].timing: give either rate_hz or period_ms\n"
            "rig.yaml:12:7: unknown key 'raet_hz' in sensors[0].timing; did you mean 'rate_hz'?");
  EXPECT_EQ(error_of(replaced(kRig, "rate_hz: 30", "rate_hz: 0")),
            "rig.yaml:12:16: sensors[0].timing.rate_hz: 0 is out of range; allowed: 0.001 to 100000");
  EXPECT_EQ(error_of(replaced(kRig, "kind: lidar", "kind: lidra")),
            "rig.yaml:20:11: sensors[1].kind: unknown value 'lidra'; did you mean 'lidar'?");
  EXPECT_EQ(error_of(replaced(kRig, "name: top", "name: front")),
            "rig.yaml:19:5: sensors[1]: another sensor is called 'front'");
  EXPECT_EQ(error_of(replaced(kRig, "topic: /lidar/top", "topic: /camera/front")),
            "rig.yaml:19:5: sensors[1]: sensor 'front' has the topic '/camera/front' already");
  EXPECT_EQ(error_of(replaced(kRig, "quaternion_wxyz: [1, 0, 0, 0]", "quaternion_wxyz: [1, 0, 0, 1]")),
            "rig.yaml:23:65: sensors[1].extrinsics.quaternion_wxyz: a rotation has norm 1, this one 1.414214");
  EXPECT_EQ(error_of(replaced(kRig, "exposure_ms: 8", "exposure_ms: 50")),
            "rig.yaml:14:20: sensors[0].timing.exposure_ms: is longer than the period");
  EXPECT_EQ(error_of(replaced(kRig, "phase_ms: 4", "phase_ms: 40")),
            "rig.yaml:18:17: sensors[0].timing.phase_ms: is not below the period");
  EXPECT_EQ(error_of(replaced(kRig, "    capacity: 20000\n", "")), "rig.yaml:19:5: sensors[1]: missing key 'capacity'");
  EXPECT_THAT(error_of(replaced(kRig, "drive: simulated", "drive: real")), HasSubstr("known: simulated, recorded"));
  EXPECT_THAT(error_of(replaced(kRig, "period_ms: 100", "period_ms: 100, rate_hz: 10")),
              HasSubstr("give either rate_hz or period_ms"));
}

TEST(Rig, SeveralErrorsAtOnce) {
  const std::string text = replaced(replaced(kRig, "fx_px: 500", "fx_px: -1"), "world: map", "world: ''");
  const std::string message = error_of(text);
  EXPECT_THAT(message, HasSubstr("rig.yaml:3:17: frames.world: expected text"));
  EXPECT_THAT(message, HasSubstr("sensors[0].camera.fx_px: -1 is out of range"));
}

TEST(Rig, NumberOfSensors) {
  EXPECT_THAT(error_of("name: x\ndrive: recorded\nframes: {world: a, vehicle: b}\nsensors: []\n"),
              HasSubstr("rig.yaml:4:10: sensors: a rig has 1 to 16 sensors, this one 0"));
  std::string many = "name: x\ndrive: recorded\nframes: {world: a, vehicle: b}\nsensors:\n";
  for (int i = 0; i < 17; ++i) {
    const std::string n = std::to_string(i);
    many += "  - {name: r" + n + ", kind: radar, topic: /r" + n +
            ", frame: r, capacity: 9, extrinsics: {translation_m: "
            "[0, 0, 0], quaternion_wxyz: [1, 0, 0, 0]}, timing: {rate_hz: 20, stamp: sweep_end, sweep_ms: 10}}\n";
  }
  EXPECT_THAT(error_of(many), HasSubstr("this one 17"));
  EXPECT_THAT(error_of(replaced(many,
                                "- {name: r0, kind: radar, topic: /r0, frame: r, capacity: 9, extrinsics: "
                                "{translation_m: [0, 0, 0], quaternion_wxyz: [1, 0, 0, 0]}, timing: {rate_hz: 20, "
                                "stamp: sweep_end, sweep_ms: 10}}\n",
                                "- {name: r0, kind: ego, topic: /r0, frame: "
                                "r, timing: {rate_hz: 20}}\n  - {name: ra, kind: ego, topic: /ra, frame: r, "
                                "timing: {rate_hz: 20}}\n")),
              HasSubstr("is the source of ego motion already"));
}

TEST(Rig, MissingFile) {
  const auto rig = load_rig("/nonexistent/rig.yaml");
  ASSERT_FALSE(rig);
  EXPECT_EQ(rig.error().code, Code::kConfiguration);
  EXPECT_THAT(rig.error().message, HasSubstr("/nonexistent/rig.yaml: cannot be opened: No such file"));
}

void expect_near(const std::array<double, 3>& a, const std::array<double, 3>& b) {
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(a[i], b[i], 1e-12) << i;
}

TEST(Transform, ComposesAndInverts) {
  // A quarter turn to the left, seen from above.
  const double h = std::sqrt(0.5);
  const Transform a = Transform::from_quaternion({h, 0, 0, h}, {1, 2, 3});
  expect_near(a.apply({1, 0, 0}), {1, 3, 3});
  const Transform b = Transform::from_quaternion({0.4, -0.2, 0.8, 0.1}, {-5, 0.5, 2});
  expect_near((a * b).apply({3, -4, 5}), a.apply(b.apply({3, -4, 5})));
  expect_near(b.inverse().apply(b.apply({3, -4, 5})), {3, -4, 5});
  expect_near((b * b.inverse()).apply({7, 8, 9}), {7, 8, 9});
  const auto q = b.quaternion();
  expect_near(Transform::from_quaternion(q, b.translation).apply({1, 2, 3}), b.apply({1, 2, 3}));
  // The optical frame: x right, y down, z forward.
  const Transform optical = Transform::from_quaternion({0.5, -0.5, 0.5, -0.5}, {0, 0, 0});
  expect_near(optical.apply({0, 0, 1}), {1, 0, 0});
  expect_near(optical.apply({1, 0, 0}), {0, -1, 0});
  expect_near(optical.apply({0, 1, 0}), {0, 0, -1});
}

}  // namespace
}  // namespace takt::sensors
