#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <cmath>
#include <cstdio>

#include "sensors/logs/encode.h"
#include "sensors/logs/mcap_writer.h"
#include "sensors/rig/message_probe.h"
#include "sensors/rig/rig_estimate.h"

namespace takt::sensors {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

const std::string kRoot = TAKT_SOURCE_DIR;

void expect_near(const Transform& a, const Transform& b) {
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(a.translation[i], b.translation[i], 1e-9) << i;
  for (std::size_t i = 0; i < 9; ++i) EXPECT_NEAR(a.rotation[i], b.rotation[i], 1e-9) << i;
}

TEST(EstimateRig, ShippedDriveGivesItsOwnRig) {
  const auto truth = load_rig(kRoot + "/configs/rigs/sim.yaml");
  ASSERT_TRUE(truth) << truth.error().message;
  const auto estimate = estimate_rig(kRoot + "/replay_data/city.mcap");
  ASSERT_TRUE(estimate) << estimate.error().message;
  const Rig& rig = estimate->rig;
  EXPECT_EQ(rig.name, "city");
  EXPECT_EQ(rig.drive, "simulated");
  EXPECT_EQ(rig.world_frame, truth->world_frame);
  EXPECT_EQ(rig.vehicle_frame, truth->vehicle_frame);
  ASSERT_EQ(rig.sensors.size(), truth->sensors.size());
  for (const RigSensor& t : truth->sensors) {
    SCOPED_TRACE(t.name);
    ASSERT_TRUE(rig.find(t.name));
    const RigSensor& e = rig.sensors[*rig.find(t.name)];
    EXPECT_EQ(e.kind, t.kind);
    EXPECT_EQ(e.topic, t.topic);
    EXPECT_EQ(e.frame_id, t.frame_id);
    EXPECT_EQ(e.period, t.period);
    EXPECT_EQ(e.drift_ppm, 0);
    ASSERT_TRUE(e.phase);
    EXPECT_EQ(*e.phase, *t.phase);
    expect_near(e.vehicle_from_sensor, t.vehicle_from_sensor);
    // Observed bounds lie inside the declared ones, and a drive of this length comes close to both.
    const double slack_ms = 0.1 * t.jitter.ms() + 0.02;
    EXPECT_GE(e.delay_min().ms(), t.delay_min().ms() - 0.02);
    EXPECT_LE(e.delay_min().ms(), t.delay_min().ms() + slack_ms);
    EXPECT_LE(e.delay_max().ms(), t.delay_max().ms() + 0.02);
    EXPECT_GE(e.delay_max().ms(), t.delay_max().ms() - slack_ms);
  }
  const RigSensor& camera = rig.sensors[*rig.find("camera_front")];
  const CameraModel& model = *truth->sensors[*truth->find("camera_front")].camera;
  EXPECT_EQ(camera.camera->width, model.width);
  EXPECT_EQ(camera.camera->height, model.height);
  EXPECT_EQ(camera.camera->fx, model.fx);
  EXPECT_EQ(camera.camera->cy, model.cy);
  EXPECT_THAT(camera.assumed, Contains("timing.exposure_ms")) << "no log tells the exposure";
  const RigSensor& lidar = rig.sensors[*rig.find("lidar_top")];
  EXPECT_EQ(lidar.stamp, StampReference::kSweepEnd) << "the points' times lie before the stamp";
  EXPECT_NEAR(lidar.duration.ms(), 100, 2);
  EXPECT_NEAR(lidar.intensity_scale, 1.0 / 255, 1e-12);
  EXPECT_THAT(lidar.assumed, testing::Not(Contains("timing.stamp")));
  EXPECT_THAT(lidar.assumed, Contains("ray_origin_m")) << "nobody says that the points' frame is the sensor's";
}

// A LiDAR that counts from its own start, 40 ppm fast, 3 to 5 ms until its sweep is recorded. `jump`: by this much its
// clock is set forward in the middle.
std::string lidar_with_a_clock(Duration jump) {
  const std::string path = testing::TempDir() + "takt-own-clock-" + std::to_string(::getpid()) + ".mcap";
  auto writer = McapWriter::create(path, {});
  EXPECT_TRUE(writer) << writer.error().message;
  const auto schema = log_schema("foxglove.PointCloud");
  const auto channel = writer->add_channel("/lidar/points", "protobuf", *writer->add_schema(*schema));
  for (std::int64_t k = 0; k < 200; ++k) {
    const std::int64_t moment = k * 100'000'000;  // by the recorder's clock
    const SensorTime stamp{7'000'000'000 + moment + moment / 25'000 + (k < 100 ? 0 : jump.ns)};
    const SensorTime arrival{1'700'000'000'000'000'000 + moment + 3'000'000 + k * k * 104'729 % 2'000'000};
    const std::vector<log::LidarPoint> points(3, {1, 2, 3, 0.5F, static_cast<std::int32_t>(-90'000'000), 0});
    EXPECT_TRUE(writer->write(*channel, arrival, stamp, 0, encode_lidar(stamp, "lidar", points)));
  }
  EXPECT_TRUE(writer->finish());
  return path;
}

TEST(EstimateRig, AClockOfItsOwnIsMapped) {
  const std::string path = lidar_with_a_clock({});
  const auto estimate = estimate_rig(path);
  ASSERT_TRUE(estimate) << estimate.error().message;
  const RigSensor& lidar = estimate->rig.sensors.at(0);
  EXPECT_TRUE(lidar.device_clock);
  EXPECT_FALSE(lidar.declared_delay);
  EXPECT_FALSE(lidar.phase) << "mapped stamps are not exact";
  EXPECT_NEAR(lidar.jitter.ms(), 2, 0.15);
  EXPECT_THAT(lidar.assumed, Contains("timing.driver_delay_ms"));
  EXPECT_THAT(estimate->notes, Contains(HasSubstr("two clocks; they are mapped")));
  const std::string text = rig_yaml(estimate->rig, "");
  EXPECT_THAT(text, HasSubstr("clock: device"));
  const auto read = parse_rig(text, "rig.yaml");
  ASSERT_TRUE(read) << read.error().message << text;
  EXPECT_TRUE(read->sensors[0].device_clock);
  EXPECT_EQ(read->sensors[0].delay_max(), lidar.delay_max());
  std::remove(path.c_str());
}

TEST(EstimateRig, AClockThatJumpsIsReplacedByTheArrivals) {
  const std::string path = lidar_with_a_clock(seconds(3));
  const auto estimate = estimate_rig(path);
  ASSERT_TRUE(estimate) << estimate.error().message;
  EXPECT_FALSE(estimate->rig.sensors.at(0).device_clock);
  EXPECT_THAT(estimate->rig.sensors[0].assumed, Contains("timing.declared_delay_ms"));
  EXPECT_THAT(estimate->notes, Contains(HasSubstr("they cannot be mapped")));
  std::remove(path.c_str());
}

TEST(EstimateRig, FileReadsBackToTheSameRig) {
  const auto estimate = estimate_rig(kRoot + "/replay_data/city.mcap");
  ASSERT_TRUE(estimate) << estimate.error().message;
  const std::string text = rig_yaml(estimate->rig, "first line\nsecond line");
  EXPECT_THAT(text, testing::StartsWith("# first line\n# second line\nname: "));
  const auto read = parse_rig(text, "rig.yaml");
  ASSERT_TRUE(read) << read.error().message << "\n" << text;
  ASSERT_EQ(read->sensors.size(), estimate->rig.sensors.size());
  for (std::size_t i = 0; i < read->sensors.size(); ++i) {
    const RigSensor& a = read->sensors[i];
    const RigSensor& b = estimate->rig.sensors[i];
    SCOPED_TRACE(b.name);
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.kind, b.kind);
    EXPECT_EQ(a.topic, b.topic);
    EXPECT_EQ(a.frame_id, b.frame_id);
    EXPECT_EQ(a.capacity, b.capacity);
    EXPECT_EQ(a.intensity_scale, b.intensity_scale);
    EXPECT_EQ(a.stamp, b.stamp);
    EXPECT_EQ(a.period, b.period);
    EXPECT_EQ(a.duration, b.duration);
    EXPECT_EQ(a.delay_min(), b.delay_min());
    EXPECT_EQ(a.delay_max(), b.delay_max());
    EXPECT_EQ(a.phase, b.phase);
    EXPECT_THAT(a.assumed, testing::UnorderedElementsAreArray(b.assumed));
    expect_near(a.vehicle_from_sensor, b.vehicle_from_sensor);
  }
}

TEST(EstimateRig, NoUsableTopicListsWhatIsThere) {
  const auto estimate = estimate_rig(kRoot + "/configs/rigs/sim.yaml");
  ASSERT_FALSE(estimate);
  EXPECT_EQ(estimate.error().code, Code::kInput);
}

TEST(FitStamps, GapsDoNotStretchThePeriod) {
  std::vector<std::int64_t> stamps;
  for (int k = 0; k < 100; ++k) {
    if (k % 10 != 7) stamps.push_back(1'000'000'000 + std::llround(k * 1e9 / 30));
  }
  const StampFit fit = fit_stamps(stamps);
  EXPECT_EQ(fit.period.ns, 33'333'333);
  EXPECT_EQ(fit.rate_hz, 30);
  EXPECT_TRUE(fit.on_grid);
  EXPECT_EQ(fit.missing, 10u);
}

TEST(FitStamps, FreeRunningSensors) {
  std::vector<std::int64_t> stamps;
  for (int k = 0; k < 200; ++k) stamps.push_back(k * 100'123'000LL + (k % 3) * 40'000);
  std::reverse(stamps.begin(), stamps.end());
  const StampFit fit = fit_stamps(stamps);
  EXPECT_NEAR(static_cast<double>(fit.period.ns), 100'123'000, 2000);
  EXPECT_FALSE(fit.on_grid);
  EXPECT_NEAR(fit.drift_ppm, 800, 10) << "steps are 40 us longer or 80 us shorter";
  EXPECT_EQ(fit.missing, 0u);
}

TEST(FitStamps, TooFewStamps) {
  EXPECT_EQ(fit_stamps({}).period.ns, 0);
  EXPECT_EQ(fit_stamps({5}).period.ns, 0);
  EXPECT_EQ(fit_stamps({5, 5, 5}).period.ns, 0);
}

TEST(PictureSize, CutAndForeignBytes) {
  const auto size = [](const std::string& text) { return picture_size(std::as_bytes(std::span(text))); };
  const std::string png("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\x80", 24);
  ASSERT_TRUE(size(png));
  EXPECT_EQ(*size(png), std::pair(640u, 384u));
  const std::string jpeg("\xff\xd8\xff\xe0\0\x04zz\xff\xff\xc0\0\x11\x08\x01\x80\x02\x80\x03", 19);
  ASSERT_TRUE(size(jpeg));
  EXPECT_EQ(*size(jpeg), std::pair(640u, 384u));
  for (std::size_t n = 0; n < 17; ++n) EXPECT_FALSE(size(jpeg.substr(0, n))) << n;
  for (std::size_t n = 0; n < 24; ++n) EXPECT_FALSE(size(png.substr(0, n))) << n;
  EXPECT_FALSE(size("GIF89a and so on"));
}

TEST(Assumed, MarksWholeBlocksAndSingleKeys) {
  const std::string text = R"(name: one
drive: recorded
frames: {world: map, vehicle: base}
sensors:
  - name: top
    kind: lidar
    topic: /points
    frame: lidar
    assumed: [motion_compensated]
    extrinsics: {assumed: true, translation_m: [0.9, 0, 1.9], quaternion_wxyz: [1, 0, 0, 0]}
    capacity: 20000
    motion_compensated: false
    timing: {assumed: [stamp, sweep_ms], rate_hz: 10, stamp: sweep_end, sweep_ms: 100}
)";
  const auto rig = parse_rig(text, "rig.yaml");
  ASSERT_TRUE(rig) << rig.error().message;
  EXPECT_THAT(rig->sensors[0].assumed,
              testing::ElementsAre("motion_compensated", "extrinsics", "timing.stamp", "timing.sweep_ms"));
  std::string wrong = text;
  wrong.replace(wrong.find("[stamp, sweep_ms]"), 17, "[stamp, swepe_ms]");
  const auto bad = parse_rig(wrong, "rig.yaml");
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().message,
              HasSubstr("rig.yaml:13:31: sensors[0].timing.assumed[1]: there is no 'swepe_ms' here"));
}

}  // namespace
}  // namespace takt::sensors
