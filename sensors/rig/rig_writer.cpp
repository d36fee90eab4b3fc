#include <algorithm>
#include <charconv>
#include <cmath>

#include "sensors/rig/rig_estimate.h"

namespace takt::sensors {
namespace {

// The shortest text that reads back to the same number.
std::string number(double value) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value == 0 ? 0.0 : value).ptr;
  return {text, end};
}

template <class List>
std::string list(const List& values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : ", ") + number(value);
  return "[" + text + "]";
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

const char* stamp_word(StampReference stamp) {
  switch (stamp) {
    case StampReference::kExposureStart: return "exposure_start";
    case StampReference::kExposureMid: return "exposure_mid";
    case StampReference::kExposureEnd: return "exposure_end";
    case StampReference::kSweepStart: return "sweep_start";
    case StampReference::kSweepEnd: return "sweep_end";
    case StampReference::kPerPoint: return "per_point";
  }
  return "";
}

bool assumes(const RigSensor& sensor, const std::string& key) {
  return std::find(sensor.assumed.begin(), sensor.assumed.end(), key) != sensor.assumed.end();
}

class Lines {
 public:
  void line(int depth, const std::string& text) {
    out_ += std::string(static_cast<std::size_t>(depth) * 2, ' ') + text + "\n";
  }
  void milliseconds(const char* key, Duration value) { line(3, std::string(key) + ": " + number(value.ms())); }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

void write_timing(Lines& out, const RigSensor& s) {
  out.line(2, "timing:");
  if (assumes(s, "timing")) {
    out.line(3, "assumed: true");
  } else {
    std::string keys;
    for (const std::string& key : s.assumed) {
      if (key.starts_with("timing.")) keys += (keys.empty() ? "" : ", ") + key.substr(7);
    }
    if (!keys.empty()) out.line(3, "assumed: [" + keys + "]");
  }
  const double rate = std::round(1e9 / static_cast<double>(s.period.ns));
  if (rate >= 1 && std::llround(1e9 / rate) == s.period.ns) {
    out.line(3, "rate_hz: " + number(rate));
  } else {
    out.milliseconds("period_ms", s.period);
  }
  if (s.kind != SensorKind::kEgo) {
    out.line(3, std::string("stamp: ") + stamp_word(s.stamp));
    out.milliseconds(s.kind == SensorKind::kCamera ? "exposure_ms" : "sweep_ms", s.duration);
  }
  if (s.readout.ns != 0) out.milliseconds("readout_ms", s.readout);
  if (s.driver_delay.ns != 0) out.milliseconds("driver_delay_ms", s.driver_delay);
  if (s.jitter.ns != 0) out.milliseconds("jitter_ms", s.jitter);
  if (s.drift_ppm != 0) out.line(3, "drift_ppm: " + number(s.drift_ppm));
  if (s.phase) out.milliseconds("phase_ms", *s.phase);
  if (s.offset.ns != 0) out.milliseconds("offset_ms", s.offset);
  if (s.device_clock) out.line(3, "clock: device");
  if (s.declared_delay) out.milliseconds("declared_delay_ms", *s.declared_delay);
}

void write_sensor(Lines& out, const RigSensor& s) {
  out.line(1, "- name: " + quoted(s.name));
  out.line(2, std::string("kind: ") + name_of(s.kind));
  out.line(2, "topic: " + quoted(s.topic));
  out.line(2, "frame: " + quoted(s.frame_id));
  std::string keys;
  for (const std::string& key : s.assumed) {
    if (key == "motion_compensated" || key == "intensity_scale" || key == "capacity" || key == "ray_origin_m") {
      keys += (keys.empty() ? "" : ", ") + key;
    }
  }
  if (!keys.empty()) out.line(2, "assumed: [" + keys + "]");
  if (s.kind != SensorKind::kEgo) {
    out.line(2, "extrinsics:");
    if (assumes(s, "extrinsics")) out.line(3, "assumed: true");
    out.line(3, "translation_m: " + list(s.vehicle_from_sensor.translation));
    out.line(3, "quaternion_wxyz: " + list(s.vehicle_from_sensor.quaternion()));
  }
  if (s.kind == SensorKind::kCamera && s.camera) {
    const CameraModel& c = *s.camera;
    out.line(2, "camera:");
    if (assumes(s, "camera")) out.line(3, "assumed: true");
    out.line(3, "width_px: " + std::to_string(c.width));
    out.line(3, "height_px: " + std::to_string(c.height));
    out.line(3, "fx_px: " + number(c.fx));
    out.line(3, "fy_px: " + number(c.fy));
    out.line(3, "cx_px: " + number(c.cx));
    out.line(3, "cy_px: " + number(c.cy));
    out.line(3, "distortion: " + list(c.distortion));
  }
  if (s.kind == SensorKind::kLidar || s.kind == SensorKind::kRadar) {
    out.line(2, "capacity: " + std::to_string(s.capacity));
  }
  if (s.kind == SensorKind::kLidar) {
    out.line(2, "intensity_scale: " + number(s.intensity_scale));
    out.line(2, std::string("motion_compensated: ") + (s.motion_compensated ? "true" : "false"));
    out.line(2, "ray_origin_m: " + list(s.ray_origin));
  }
  write_timing(out, s);
}

}  // namespace

std::string rig_yaml(const Rig& rig, const std::string& heading) {
  Lines out;
  for (std::size_t begin = 0; begin < heading.size();) {
    const std::size_t end = std::min(heading.find('\n', begin), heading.size());
    out.line(0, "# " + heading.substr(begin, end - begin));
    begin = end + 1;
  }
  out.line(0, "name: " + quoted(rig.name));
  out.line(0, "drive: " + rig.drive);
  out.line(0, "frames: {world: " + quoted(rig.world_frame) + ", vehicle: " + quoted(rig.vehicle_frame) + "}");
  out.line(0, "sensors:");
  for (const RigSensor& sensor : rig.sensors) write_sensor(out, sensor);
  return out.take();
}

}  // namespace takt::sensors
