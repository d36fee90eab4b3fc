// A rig: sensors with calibration, topics, stamp reference and arrival model (DESIGN section 2), read from YAML.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/base/yaml.h"
#include "sensors/logs/log_reader.h"

namespace takt::sensors {

enum class SensorKind { kCamera, kLidar, kRadar, kEgo };
const char* name_of(SensorKind kind);

enum class StampReference { kExposureStart, kExposureMid, kExposureEnd, kSweepStart, kSweepEnd, kPerPoint };

// Rigid transform T_a_b: maps a point of frame b into frame a. Row-major rotation, metres.
struct Transform {
  std::array<double, 9> rotation{1, 0, 0, 0, 1, 0, 0, 0, 1};
  std::array<double, 3> translation{0, 0, 0};
  [[nodiscard]] std::array<double, 3> apply(const std::array<double, 3>& p) const;
  [[nodiscard]] Transform inverse() const;
  [[nodiscard]] Transform operator*(const Transform& other) const;
  // Quaternion w x y z, normalised here.
  static Transform from_quaternion(const std::array<double, 4>& wxyz, const std::array<double, 3>& translation);
  [[nodiscard]] std::array<double, 4> quaternion() const;  // w x y z, norm 1, the largest part positive
};

// Pinhole with the five coefficients of OpenCV's plumb_bob model (k1 k2 p1 p2 k3).
struct CameraModel {
  std::uint32_t width = 0, height = 0;
  double fx = 0, fy = 0, cx = 0, cy = 0;
  std::array<double, 5> distortion{};
};

struct RigSensor {
  std::string name;
  SensorKind kind = SensorKind::kCamera;
  std::string topic;  // in the log
  std::string frame_id;
  Transform vehicle_from_sensor;  // T_vehicle_sensor
  std::optional<CameraModel> camera;
  std::uint32_t capacity = 0;          // points or returns a message may hold; more are dropped by rule, counted
  double intensity_scale = 1;          // stored intensity * scale = 0..1
  bool motion_compensated = false;     // LiDAR: points already lie in one pose
  std::array<double, 3> ray_origin{};  // LiDAR: origin of the rays in the frame of the points, m
  // timing, DESIGN section 2
  StampReference stamp = StampReference::kExposureMid;
  Duration period;
  Duration duration;  // exposure or sweep
  Duration readout;
  Duration driver_delay;  // fixed part
  Duration jitter;        // added to the fixed part, 0..jitter
  double drift_ppm = 0;
  std::optional<Duration> phase;           // locked to the table: offset of the stamp reference
  std::optional<Duration> declared_delay;  // the log has no arrival times: arrival = capture + this
  Duration offset;                         // known error of the stamps: stamp reference = stamp in the log + this
  bool device_clock = false;               // stamps are of the device's clock, arrivals of the recorder's

  // Values that nobody measured or declared, as the file marks them with `assumed`: "extrinsics", "camera",
  // "timing.stamp", "motion_compensated", ...; a run over them says so.
  std::vector<std::string> assumed;

  // Stamp reference -> last captured byte: the rest of exposure or sweep. Nothing is released earlier.
  [[nodiscard]] Duration captured() const;
  // Bounds of arrival - stamp reference that follow from the fields above: rest of exposure or sweep after the stamp
  // reference, readout, driver delay, jitter. A declared delay replaces them: both bounds are equal to it.
  [[nodiscard]] Duration delay_min() const;
  [[nodiscard]] Duration delay_max() const;
};

// Payload of the sensor's topic (sensors/messages): its layout, and the bytes its largest message takes.
std::uint32_t payload_schema(SensorKind kind);
std::uint64_t payload_capacity(const RigSensor& sensor);

struct Rig {
  std::string name;
  std::string file;
  std::string drive;  // "simulated" or "recorded": always said
  std::string world_frame, vehicle_frame;
  std::vector<RigSensor> sensors;  // at most transport::kMaxSources
  [[nodiscard]] std::optional<std::size_t> find(const std::string& name) const;
};

// How open_log() treats the arrivals of the rig's topics. Sensors with a clock of their own have no rule: their stamps
// cannot be compared with arrivals before they are mapped.
std::vector<ReleaseRule> release_rules(const Rig& rig);

// Keys: docs/rig_format.md. kConfiguration with every error of the file.
Result<Rig> load_rig(const std::string& path);
Result<Rig> parse_rig(const std::string& text, const std::string& name);

}  // namespace takt::sensors
