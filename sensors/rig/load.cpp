#include <cmath>

#include "runtime/transport/chunk.h"
#include "sensors/rig/rig.h"

namespace takt::sensors {
namespace {

constexpr double kHourMs = 3.6e6;

std::array<double, 3> vector_of(const YamlNode& node, double limit) {
  const auto values = node.numbers(3, -limit, limit);
  return {values[0], values[1], values[2]};
}

// `assumed: true` = every value of this block, `assumed: [a, b]` = these keys of it. Listed as "prefix.key".
void read_assumed(const YamlNode& block, const std::string& prefix, std::vector<std::string>& out) {
  const auto node = block.find("assumed");
  if (!node) return;
  if (!node->is_sequence()) {
    if (node->boolean()) out.push_back(prefix.empty() ? "everything" : prefix);
    return;
  }
  for (const YamlNode& item : node->items()) {
    const std::string key = item.text();
    if (key == "assumed" || !block.find(key)) {
      item.error("there is no '" + key + "' here to be assumed");
      continue;
    }
    out.push_back(prefix.empty() ? key : prefix + "." + key);
  }
}

Transform read_extrinsics(const YamlNode& node) {
  const auto translation = vector_of(node.at("translation_m"), 1000);
  const YamlNode rotation = node.at("quaternion_wxyz");
  const auto q = rotation.numbers(4, -1, 1);
  const double norm = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  if (std::fabs(norm - 1) > 1e-3) {
    rotation.error("a rotation has norm 1, this one " + std::to_string(norm));
    return {};
  }
  return Transform::from_quaternion({q[0], q[1], q[2], q[3]}, translation);
}

CameraModel read_camera(const YamlNode& node) {
  CameraModel camera;
  camera.width = static_cast<std::uint32_t>(node.at("width_px").integer(1, 16384));
  camera.height = static_cast<std::uint32_t>(node.at("height_px").integer(1, 16384));
  camera.fx = node.at("fx_px").number(1, 1e6);
  camera.fy = node.at("fy_px").number(1, 1e6);
  camera.cx = node.at("cx_px").number(-16384, 32768);
  camera.cy = node.at("cy_px").number(-16384, 32768);
  if (auto distortion = node.find("distortion")) {
    const auto values = distortion->numbers(5, -1000, 1000);
    std::copy(values.begin(), values.end(), camera.distortion.begin());
  }
  return camera;
}

StampReference read_stamp(const YamlNode& node, SensorKind kind) {
  if (kind == SensorKind::kCamera) {
    const auto word = node.one_of({"exposure_mid", "exposure_start", "exposure_end"});
    return word == "exposure_start" ? StampReference::kExposureStart
           : word == "exposure_end" ? StampReference::kExposureEnd
                                    : StampReference::kExposureMid;
  }
  const auto word = node.one_of({"sweep_start", "sweep_end", "per_point"});
  return word == "sweep_end"   ? StampReference::kSweepEnd
         : word == "per_point" ? StampReference::kPerPoint
                               : StampReference::kSweepStart;
}

Duration read_period(const YamlNode& node) {
  const auto rate = node.find("rate_hz");
  const auto period = node.find("period_ms");
  if (rate.has_value() == period.has_value()) {
    node.error("give either rate_hz or period_ms");
    return milliseconds(100);
  }
  if (period) return period->milliseconds(0.01, kHourMs);
  return {std::llround(1e9 / rate->number(0.001, 100000))};
}

void read_timing(const YamlNode& node, RigSensor& sensor) {
  sensor.period = read_period(node);
  if (sensor.kind == SensorKind::kEgo) {
    sensor.stamp = StampReference::kSweepStart;  // an instant: nothing is captured after it
  } else {
    sensor.stamp = read_stamp(node.at("stamp"), sensor.kind);
    const YamlNode duration = node.at(sensor.kind == SensorKind::kCamera ? "exposure_ms" : "sweep_ms");
    sensor.duration = duration.milliseconds(0, kHourMs);
    if (sensor.duration > sensor.period) duration.error("is longer than the period");
  }
  const auto optional = [&](const char* key) {
    const auto value = node.find(key);
    return value ? value->milliseconds(0, kHourMs) : Duration{};
  };
  sensor.readout = optional("readout_ms");
  sensor.driver_delay = optional("driver_delay_ms");
  sensor.jitter = optional("jitter_ms");
  if (auto drift = node.find("drift_ppm")) sensor.drift_ppm = drift->number(0, 10000);
  if (auto phase = node.find("phase_ms")) {
    sensor.phase = phase->milliseconds(0, kHourMs);
    if (*sensor.phase >= sensor.period) phase->error("is not below the period");
  }
  if (auto offset = node.find("offset_ms")) sensor.offset = offset->milliseconds(-kHourMs, kHourMs);
  const auto clock = node.find("clock");
  if (clock) sensor.device_clock = clock->one_of({"log", "device"}) == "device";
  if (sensor.device_clock && sensor.phase) {
    clock->error("contradicts phase_ms: mapped stamps are not exact, so the table cannot be locked to them");
  }
  if (auto delay = node.find("declared_delay_ms")) {
    if (sensor.device_clock) clock->error("cannot be mapped: with declared_delay_ms the log has no other clock");
    sensor.declared_delay = delay->milliseconds(0, kHourMs);
    if (*sensor.declared_delay < sensor.captured()) {
      delay->error("ends before the last captured byte, " + std::to_string(sensor.captured().ms()) +
                   " ms after the stamp");
    }
  }
}

RigSensor read_sensor(const YamlNode& node) {
  RigSensor sensor;
  sensor.name = node.at("name").text();
  const YamlNode kind_node = node.at("kind");
  const std::string kind = kind_node.one_of({"camera", "lidar", "radar", "ego"});
  if (kind != kind_node.text()) {
    (void)node.entries();  // what the other keys should be is unknown: one message is enough
    return sensor;
  }
  sensor.kind = kind == "lidar"   ? SensorKind::kLidar
                : kind == "radar" ? SensorKind::kRadar
                : kind == "ego"   ? SensorKind::kEgo
                                  : SensorKind::kCamera;
  sensor.topic = node.at("topic").text();
  sensor.frame_id = node.at("frame").text();
  read_assumed(node, "", sensor.assumed);
  if (sensor.kind != SensorKind::kEgo) {
    const YamlNode extrinsics = node.at("extrinsics");
    sensor.vehicle_from_sensor = read_extrinsics(extrinsics);
    read_assumed(extrinsics, "extrinsics", sensor.assumed);
  }
  switch (sensor.kind) {
    case SensorKind::kCamera: {
      const YamlNode camera = node.at("camera");
      sensor.camera = read_camera(camera);
      read_assumed(camera, "camera", sensor.assumed);
      break;
    }
    case SensorKind::kLidar:
      sensor.capacity = static_cast<std::uint32_t>(node.at("capacity").integer(1, 4'000'000));
      if (auto scale = node.find("intensity_scale")) sensor.intensity_scale = scale->number(1e-9, 1e9);
      if (auto compensated = node.find("motion_compensated")) sensor.motion_compensated = compensated->boolean();
      if (auto origin = node.find("ray_origin_m")) sensor.ray_origin = vector_of(*origin, 1000);
      break;
    case SensorKind::kRadar: sensor.capacity = static_cast<std::uint32_t>(node.at("capacity").integer(1, 65536)); break;
    case SensorKind::kEgo: break;
  }
  const YamlNode timing = node.at("timing");
  read_timing(timing, sensor);
  read_assumed(timing, "timing", sensor.assumed);
  return sensor;
}

Result<Rig> read_rig(const YamlDocument& document, const std::string& file) {
  Rig rig;
  rig.file = file;
  const YamlNode root = document.root();
  rig.name = root.at("name").text();
  rig.drive = root.at("drive").one_of({"simulated", "recorded"});
  const YamlNode frames = root.at("frames");
  rig.world_frame = frames.at("world").text();
  rig.vehicle_frame = frames.at("vehicle").text();
  const YamlNode list = root.at("sensors");
  const auto nodes = list.items();
  if (list.is_sequence() && (nodes.empty() || nodes.size() > transport::kMaxSources)) {
    list.error("a rig has 1 to " + std::to_string(transport::kMaxSources) + " sensors, this one " +
               std::to_string(nodes.size()));
  }
  for (const YamlNode& node : nodes) {
    RigSensor sensor = read_sensor(node);
    for (const RigSensor& other : rig.sensors) {
      if (!sensor.name.empty() && other.name == sensor.name)
        node.error("another sensor is called '" + sensor.name + "'");
      if (!sensor.topic.empty() && other.topic == sensor.topic) {
        node.error("sensor '" + other.name + "' has the topic '" + sensor.topic + "' already");
      }
      if (other.kind == SensorKind::kEgo && sensor.kind == SensorKind::kEgo) {
        node.error("sensor '" + other.name + "' is the source of ego motion already; a rig has one");
      }
    }
    rig.sensors.push_back(std::move(sensor));
  }
  TAKT_RETURN_IF_ERROR(document.finish());
  return rig;
}

}  // namespace

Result<Rig> load_rig(const std::string& path) {
  TAKT_ASSIGN(const YamlDocument document, YamlDocument::load(path));
  return read_rig(document, path);
}

Result<Rig> parse_rig(const std::string& text, const std::string& name) {
  TAKT_ASSIGN(const YamlDocument document, YamlDocument::parse(text, name));
  return read_rig(document, name);
}

}  // namespace takt::sensors
