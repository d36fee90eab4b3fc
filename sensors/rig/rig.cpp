#include "sensors/rig/rig.h"

#include <algorithm>
#include <cmath>

#include "sensors/messages/messages.h"

namespace takt::sensors {

const char* name_of(SensorKind kind) {
  switch (kind) {
    case SensorKind::kCamera: return "camera";
    case SensorKind::kLidar: return "lidar";
    case SensorKind::kRadar: return "radar";
    case SensorKind::kEgo: return "ego";
  }
  return "?";
}

std::array<double, 3> Transform::apply(const std::array<double, 3>& p) const {
  std::array<double, 3> out = translation;
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t k = 0; k < 3; ++k) out[row] += rotation[row * 3 + k] * p[k];
  }
  return out;
}

Transform Transform::inverse() const {
  Transform out;
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < 3; ++column) out.rotation[row * 3 + column] = rotation[column * 3 + row];
  }
  out.translation = {0, 0, 0};
  const auto moved = out.apply(translation);
  out.translation = {-moved[0], -moved[1], -moved[2]};
  return out;
}

Transform Transform::operator*(const Transform& other) const {
  Transform out;
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < 3; ++column) {
      double sum = 0;
      for (std::size_t k = 0; k < 3; ++k) sum += rotation[row * 3 + k] * other.rotation[k * 3 + column];
      out.rotation[row * 3 + column] = sum;
    }
  }
  out.translation = apply(other.translation);
  return out;
}

Transform Transform::from_quaternion(const std::array<double, 4>& wxyz, const std::array<double, 3>& translation) {
  double w = wxyz[0], x = wxyz[1], y = wxyz[2], z = wxyz[3];
  const double norm = std::sqrt(w * w + x * x + y * y + z * z);
  w /= norm;
  x /= norm;
  y /= norm;
  z /= norm;
  Transform out;
  out.rotation = {1 - 2 * (y * y + z * z), 2 * (x * y - w * z),     2 * (x * z + w * y),
                  2 * (x * y + w * z),     1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                  2 * (x * z - w * y),     2 * (y * z + w * x),     1 - 2 * (x * x + y * y)};
  out.translation = translation;
  return out;
}

std::array<double, 4> Transform::quaternion() const {
  // Shepperd 1978: dividing by the largest of the four parts keeps the others well conditioned.
  const std::array<double, 9>& r = rotation;
  const double trace = r[0] + r[4] + r[8];
  const double squares[4] = {1 + trace, 1 + 2 * r[0] - trace, 1 + 2 * r[4] - trace, 1 + 2 * r[8] - trace};
  const auto largest = std::max_element(squares, squares + 4) - squares;
  const double part = 0.5 * std::sqrt(squares[largest]);
  const double f = 0.25 / part;
  switch (largest) {
    case 0: return {part, (r[7] - r[5]) * f, (r[2] - r[6]) * f, (r[3] - r[1]) * f};
    case 1: return {(r[7] - r[5]) * f, part, (r[1] + r[3]) * f, (r[2] + r[6]) * f};
    case 2: return {(r[2] - r[6]) * f, (r[1] + r[3]) * f, part, (r[5] + r[7]) * f};
    default: return {(r[3] - r[1]) * f, (r[2] + r[6]) * f, (r[5] + r[7]) * f, part};
  }
}

Duration RigSensor::captured() const {
  switch (stamp) {
    case StampReference::kExposureStart:
    case StampReference::kSweepStart:
    case StampReference::kPerPoint: return duration;  // the message's stamp is the first point's
    case StampReference::kExposureMid: return {duration.ns - duration.ns / 2};
    case StampReference::kExposureEnd:
    case StampReference::kSweepEnd: return {};
  }
  return {};
}

Duration RigSensor::delay_min() const { return declared_delay ? *declared_delay : captured() + readout + driver_delay; }

Duration RigSensor::delay_max() const { return declared_delay ? *declared_delay : delay_min() + jitter; }

std::optional<std::size_t> Rig::find(const std::string& sensor) const {
  for (std::size_t i = 0; i < sensors.size(); ++i) {
    if (sensors[i].name == sensor) return i;
  }
  return std::nullopt;
}

std::uint32_t payload_schema(SensorKind kind) {
  switch (kind) {
    case SensorKind::kCamera: return kImageSchema;
    case SensorKind::kLidar: return kPointCloudSchema;
    case SensorKind::kRadar: return kRadarScanSchema;
    case SensorKind::kEgo: return kEgoMotionSchema;
  }
  return 0;
}

std::uint64_t payload_capacity(const RigSensor& sensor) {
  switch (sensor.kind) {
    case SensorKind::kCamera: return Image::bytes_for(sensor.camera->width, sensor.camera->height, 3);
    case SensorKind::kLidar: return PointCloud::bytes_for(sensor.capacity);
    case SensorKind::kRadar: return RadarScan::bytes_for(sensor.capacity);
    case SensorKind::kEgo: return EgoMotion::bytes_for();
  }
  return 0;
}

std::vector<ReleaseRule> release_rules(const Rig& rig) {
  std::vector<ReleaseRule> rules;
  for (const auto& sensor : rig.sensors) {
    if (sensor.device_clock) continue;
    ReleaseRule rule{sensor.topic, sensor.captured() + sensor.offset, {}};
    if (sensor.declared_delay) rule.declared_delay = *sensor.declared_delay + sensor.offset;
    rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace takt::sensors
