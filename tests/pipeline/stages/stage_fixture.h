// Runs one stage without transport: payload builders, rig sensors, phases in order with any number of parts.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "pipeline/stages/rigid.h"
#include "pipeline/stages/stage.h"
#include "runtime/base/digest.h"
#include "sensors/messages/messages.h"

namespace takt::pipeline::testing {

// A chunk in ordinary memory, filled with garbage, so that what a stage forgets to write shows in digests.
class Chunk {
 public:
  explicit Chunk(std::uint64_t capacity, std::uint8_t fill = 0xA5)
      : capacity_(capacity), memory_(new (std::align_val_t{64}) std::byte[capacity + 64]) {
    std::memset(memory_.get(), fill, capacity + 64);
  }
  [[nodiscard]] std::byte* payload() { return memory_.get(); }
  [[nodiscard]] std::span<std::byte> bytes() { return {memory_.get(), capacity_}; }
  [[nodiscard]] StageInput input() const { return {{&header, memory_.get()}, false, false}; }
  template <class T>
  T& as() {
    return *reinterpret_cast<T*>(memory_.get());
  }
  template <class T>
  const T& as() const {
    return *reinterpret_cast<const T*>(memory_.get());
  }
  transport::ChunkHeader header;

 private:
  struct Delete {
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{64}); }
  };
  std::uint64_t capacity_;
  std::unique_ptr<std::byte[], Delete> memory_;
};

struct CloudPoint {
  float x = 0, y = 0, z = 0;
  std::int32_t time_ns = 0;
};

inline Chunk make_cloud(const std::vector<CloudPoint>& points, std::uint32_t capacity, bool motion_compensated = true) {
  Chunk chunk(sensors::PointCloud::bytes_for(capacity));
  std::memset(chunk.payload(), 0, chunk.bytes().size());
  chunk.header.schema = sensors::kPointCloudSchema;
  chunk.header.capture_ns = 1'000'000'000;
  chunk.header.payload_bytes = sensors::PointCloud::bytes_for(capacity);
  auto& cloud = chunk.as<sensors::PointCloud>();
  cloud = {};
  cloud.capacity = capacity;
  cloud.count = static_cast<std::uint32_t>(points.size());
  cloud.motion_compensated = motion_compensated ? 1 : 0;
  for (std::uint32_t i = 0; i < std::min<std::size_t>(points.size(), capacity); ++i) {
    cloud.x()[i] = points[i].x;
    cloud.y()[i] = points[i].y;
    cloud.z()[i] = points[i].z;
    cloud.time_ns()[i] = points[i].time_ns;
  }
  return chunk;
}

inline Chunk make_scan(const std::vector<sensors::RadarReturn>& returns, std::uint32_t capacity) {
  Chunk chunk(sensors::RadarScan::bytes_for(capacity));
  chunk.header.schema = sensors::kRadarScanSchema;
  chunk.header.capture_ns = 1'000'000'000;
  chunk.header.payload_bytes = sensors::RadarScan::bytes_for(capacity);
  auto& scan = chunk.as<sensors::RadarScan>();
  scan = {};
  scan.capacity = capacity;
  scan.count = static_cast<std::uint32_t>(returns.size());
  std::copy_n(returns.begin(), std::min<std::size_t>(returns.size(), capacity), scan.returns());
  return chunk;
}

inline Chunk make_ego(double speed, double yaw_rate) {
  Chunk chunk(sensors::EgoMotion::bytes_for());
  chunk.header.schema = sensors::kEgoMotionSchema;
  chunk.header.capture_ns = 990'000'000;
  chunk.header.payload_bytes = sensors::EgoMotion::bytes_for();
  auto& ego = chunk.as<sensors::EgoMotion>();
  ego = {};
  ego.velocity[0] = speed;
  ego.angular_velocity[2] = yaw_rate;
  return chunk;
}

inline Chunk make_image(std::uint32_t width, std::uint32_t height) {
  Chunk chunk(sensors::Image::bytes_for(width, height, 3));
  std::memset(chunk.payload(), 0, chunk.bytes().size());
  chunk.header.schema = sensors::kImageSchema;
  chunk.header.capture_ns = 1'000'000'000;
  chunk.header.payload_bytes = sensors::Image::bytes_for(width, height, 3);
  auto& image = chunk.as<sensors::Image>();
  image = {};
  image.width = width;
  image.height = height;
  image.row_pitch = sensors::Image::pitch_for(width, 3);
  return chunk;
}

// Sensor frame x right, y forward, z up, as in PandaSet, or x forward: both are exercised.
inline sensors::Transform yawed(double cosine, double sine, double x, double y, double z) {
  sensors::Transform t;
  t.rotation = {cosine, -sine, 0, sine, cosine, 0, 0, 0, 1};
  t.translation = {x, y, z};
  return t;
}
inline sensors::RigSensor lidar_sensor(std::uint32_t capacity) {
  sensors::RigSensor sensor;
  sensor.name = "lidar";
  sensor.kind = sensors::SensorKind::kLidar;
  sensor.vehicle_from_sensor = yawed(1, 0, 1.2, 0, 1.8);
  sensor.capacity = capacity;
  return sensor;
}
inline sensors::RigSensor radar_sensor(std::uint32_t capacity) {
  sensors::RigSensor sensor;
  sensor.name = "radar";
  sensor.kind = sensors::SensorKind::kRadar;
  sensor.vehicle_from_sensor = yawed(1, 0, 3.6, 0.4, 0.5);
  sensor.capacity = capacity;
  return sensor;
}
// Looks forward from 1.5 m above the ground, horizon in the middle of the image.
inline sensors::RigSensor camera_sensor(std::uint32_t width, std::uint32_t height) {
  sensors::RigSensor sensor;
  sensor.name = "camera";
  sensor.kind = sensors::SensorKind::kCamera;
  sensor.vehicle_from_sensor.rotation = {0, 0, 1, -1, 0, 0, 0, -1, 0};
  sensor.vehicle_from_sensor.translation = {1.5, 0, 1.5};
  sensor.camera = sensors::CameraModel{width, height, 0.8 * width, 0.8 * width, width / 2.0, height / 2.0, {}};
  return sensor;
}
inline sensors::RigSensor ego_sensor() {
  sensors::RigSensor sensor;
  sensor.name = "ego";
  sensor.kind = sensors::SensorKind::kEgo;
  return sensor;
}

struct Output {
  Chunk chunk{sizeof(ObjectList)};
  bool repaired = false;
  [[nodiscard]] const ObjectList& list() const { return chunk.as<ObjectList>(); }
  [[nodiscard]] std::span<const Object> objects() const { return {list().objects, list().count}; }
  [[nodiscard]] Digest digest() const {
    return takt::digest(
        std::span<const std::byte>(reinterpret_cast<const std::byte*>(&list()), chunk.header.payload_bytes));
  }
};

// A stage over a rig of its own.
class StageUnderTest {
 public:
  // `adjust`: what else the specification needs, a plan for example.
  StageUnderTest(const std::string& type, std::vector<sensors::RigSensor> sensors, const std::string& params = "{}",
                 const std::string& variant = "full", const std::function<void(StageSpec&)>& adjust = {}) {
    rig_.sensors = std::move(sensors);
    StageSpec spec;
    spec.type = type;
    spec.variant = variant;
    spec.name = type + "_under_test";
    spec.rig = &rig_;
    for (std::size_t i = 0; i < rig_.sensors.size(); ++i) {
      spec.inputs.push_back({rig_.sensors[i].name, &rig_.sensors[i], i, 0});
    }
    if (adjust) adjust(spec);
    auto document = YamlDocument::parse("params: " + params, "test.yaml");
    EXPECT_TRUE(document) << (document ? "" : document.error().message);
    auto stage = create_stage(spec, document->root().at("params"));
    if (stage) stage_ = std::move(*stage);
    if (!stage) error_ = stage.error().message;
    const Status finished = document->finish();
    if (!finished) error_ += finished.error().message;
  }
  StageUnderTest(const StageUnderTest&) = delete;
  StageUnderTest& operator=(const StageUnderTest&) = delete;

  [[nodiscard]] const std::string& error() const { return error_; }
  Stage* operator->() { return stage_.get(); }

  // One job; parts of a phase run one after the other, the last one first: they must not need each other.
  Output run(const std::vector<StageInput>& inputs, int parts = 1) {
    Output output;
    StageJob job;
    job.number = ++jobs_;
    job.inputs = inputs;
    job.output_header = &output.chunk.header;
    job.output = output.chunk.payload();
    for (int phase = 0; phase < stage_->phases(); ++phase) {
      const int workers = stage_->parallel(phase) ? parts : 1;
      for (int part = workers; part-- > 0;) stage_->run(phase, part, workers, job);
    }
    stage_->published();
    output.repaired = job.repaired;
    EXPECT_EQ(output.chunk.header.schema, kObjectListSchema);
    EXPECT_LE(output.list().count, kMaxObjects);
    return output;
  }

 private:
  sensors::Rig rig_;
  std::unique_ptr<Stage> stage_;
  std::string error_;
  std::uint64_t jobs_ = 0;
};

}  // namespace takt::pipeline::testing
