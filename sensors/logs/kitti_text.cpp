#include "sensors/logs/kitti_text.h"

#include <charconv>
#include <chrono>
#include <cmath>

#include "kernels/reference/elementary.h"

namespace takt::sensors::kitti {
namespace {

using kernels::kPi;

// Calls read(line, byte offset) for each line, without its end.
template <class Read>
void each_line(std::string_view text, Read&& read) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    read(line, at);
    at = end + 1;
  }
}

// Takes the next word off the front; "" at the end.
std::string_view word(std::string_view& line) {
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos) {
    line = {};
    return {};
  }
  const std::size_t end = std::min(line.find_first_of(" \t", begin), line.size());
  const std::string_view found = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return found;
}

bool to_number(std::string_view text, double& value) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

// All remaining words as numbers; nullopt if one is none.
std::optional<std::vector<double>> numbers(std::string_view line) {
  std::vector<double> values;
  for (std::string_view next = word(line); !next.empty(); next = word(line)) {
    double value = 0;
    if (!to_number(next, value)) return std::nullopt;
    values.push_back(value);
  }
  return values;
}

Transform about(std::size_t axis, double angle) {
  const double c = kernels::cos(angle), s = kernels::sin(angle);
  Transform t;
  const std::size_t a = (axis + 1) % 3, b = (axis + 2) % 3;
  t.rotation[a * 3 + a] = c;
  t.rotation[a * 3 + b] = -s;
  t.rotation[b * 3 + a] = s;
  t.rotation[b * 3 + b] = c;
  return t;
}

}  // namespace

Values parse_values(std::string_view text) {
  Values values;
  each_line(text, [&](std::string_view line, std::size_t) {
    std::string_view name = word(line);
    if (const std::size_t colon = name.find(':'); colon != std::string_view::npos) name = name.substr(0, colon);
    if (auto row = numbers(line); row && !row->empty() && !name.empty()) values[std::string(name)] = std::move(*row);
  });
  return values;
}

std::optional<Transform> transform_of(const Values& values, std::string_view name) {
  const auto found = values.find(name);
  if (found == values.end() || found->second.size() != 12) return std::nullopt;
  Transform t;
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t k = 0; k < 3; ++k) t.rotation[row * 3 + k] = found->second[row * 4 + k];
    t.translation[row] = found->second[row * 4 + 3];
  }
  return t;
}

std::optional<Calibration> calibration_of(const Values& values) {
  const auto projection = values.find("P2");
  auto tr = transform_of(values, "Tr_velo_to_cam");
  if (!tr) tr = transform_of(values, "Tr_velo_cam");  // KITTI tracking
  if (projection == values.end() || projection->second.size() != 12 || !tr) return std::nullopt;
  Calibration out;
  std::copy_n(projection->second.begin(), 12, out.projection.begin());
  if (!(out.projection[0] > 0 && out.projection[5] > 0)) return std::nullopt;
  Transform rectify;
  for (const char* name : {"R0_rect", "R_rect"}) {
    const auto r = values.find(name);
    if (r != values.end() && r->second.size() == 9) std::copy_n(r->second.begin(), 9, rectify.rotation.begin());
  }
  out.camera_from_velodyne = rectify * *tr;
  out.velodyne_from_imu = transform_of(values, "Tr_imu_to_velo");
  if (!out.velodyne_from_imu) out.velodyne_from_imu = transform_of(values, "Tr_imu_velo");
  return out;
}

Transform Calibration::picture_from_velodyne() const {
  // P = K [I | t]: the colour camera's offset from camera 0 is K^-1 times the last column.
  const auto& p = projection;
  Transform offset;
  offset.translation = {(p[3] - p[2] * p[11]) / p[0], (p[7] - p[6] * p[11]) / p[5], p[11]};
  return offset * camera_from_velodyne;
}

CameraModel Calibration::camera(std::array<std::uint32_t, 2> size) const {
  return {size[0], size[1], projection[0], projection[5], projection[2], projection[6], {}};
}

std::vector<Label> parse_labels(std::string_view text, const std::string& name, bool tracking,
                                const ReportProblem& report) {
  std::vector<Label> labels;
  each_line(text, [&](std::string_view line, std::size_t offset) {
    std::string_view rest = line;
    Label label;
    const auto complain = [&](const char* what) { report("bad label", offset, name + ": " + what); };
    if (tracking) {
      double frame = 0, track = 0;
      const std::string_view first = word(rest);
      if (first.empty()) return;
      if (!to_number(first, frame) || !to_number(word(rest), track) || frame < 0 || frame > 1e7 || track < -1 ||
          track > 1e7) {
        return complain("a row that does not begin with frame and track");
      }
      label.frame = static_cast<std::uint32_t>(frame);
      label.track = static_cast<std::int32_t>(track);
    }
    label.type = word(rest);
    if (label.type.empty() && !tracking) return;
    const auto values = numbers(rest);
    if (!values || values->size() < 14) return complain("a row with fewer than 14 numbers behind the type");
    const auto& v = *values;
    label.truncation = v[0];
    label.occlusion = v[1];
    label.alpha = v[2];
    label.box = {v[3], v[4], v[5], v[6]};
    label.height = v[7];
    label.width = v[8];
    label.length = v[9];
    label.location = {v[10], v[11], v[12]};
    label.rotation_y = v[13];
    if (std::fabs(label.rotation_y) > 1000) return complain("an angle beyond 1000 rad");
    labels.push_back(std::move(label));
  });
  return labels;
}

std::uint32_t object_class_of(std::string_view type) {
  constexpr std::uint32_t kVehicle = 1, kPedestrian = 2, kCyclist = 3, kOther = 4;
  for (const std::string_view name : {"Car", "Van", "Truck", "Tram", "truck", "vehicle_other"}) {
    if (type == name) return kVehicle;
  }
  for (const std::string_view name : {"Pedestrian", "Person_sitting", "Person"}) {
    if (type == name) return kPedestrian;
  }
  for (const std::string_view name : {"Cyclist", "rider", "moped_scooter", "motor", "ride_other", "ride_uncertain"}) {
    if (type == name) return kCyclist;
  }
  return kOther;
}

log::Pose box_pose(const Label& label, const Transform& camera_from_lidar) {
  const double c = kernels::cos(label.rotation_y), s = kernels::sin(label.rotation_y);
  // Columns: the box's length, left and up axes in the camera frame.
  Transform box;
  box.rotation = {c, s, 0, 0, 0, -1, -s, c, 0};
  box.translation = {label.location[0], label.location[1] - label.height / 2, label.location[2]};
  const Transform in_lidar = camera_from_lidar.inverse() * box;
  return {in_lidar.translation, in_lidar.quaternion()};
}

log::Pose upright_box_pose(const Label& label, const Transform& camera_from_lidar) {
  std::array<double, 3> centre = camera_from_lidar.inverse().apply(label.location);
  centre[2] += label.height / 2;
  return {centre, about(2, -(label.rotation_y + kPi / 2)).quaternion()};
}

std::vector<std::optional<SensorTime>> parse_timestamps(std::string_view text, const std::string& name,
                                                        const ReportProblem& report) {
  std::vector<std::optional<SensorTime>> stamps;
  each_line(text, [&](std::string_view line, std::size_t offset) {
    std::string_view rest = line;
    const std::string_view date = word(rest), clock = word(rest);
    auto& stamp = stamps.emplace_back();
    if (date.empty()) return;
    const auto digits = [](std::string_view from, std::size_t at, std::size_t count) -> std::int64_t {
      std::int64_t value = 0;
      for (std::size_t i = at; i < at + count; ++i) {
        if (i >= from.size() || from[i] < '0' || from[i] > '9') return -1;
        value = value * 10 + (from[i] - '0');
      }
      return value;
    };
    const std::int64_t y = digits(date, 0, 4), m = digits(date, 5, 2), d = digits(date, 8, 2);
    const std::int64_t hour = digits(clock, 0, 2), minute = digits(clock, 3, 2), second = digits(clock, 6, 2);
    const std::size_t places = clock.size() > 9 ? clock.size() - 9 : 0;
    std::int64_t fraction = places > 0 && places <= 9 ? digits(clock, 9, places) : places == 0 ? 0 : -1;
    for (std::size_t i = places; i < 9; ++i) fraction *= 10;
    const std::chrono::year_month_day day{std::chrono::year(static_cast<int>(y)),
                                          std::chrono::month(static_cast<unsigned>(m)),
                                          std::chrono::day(static_cast<unsigned>(d))};
    if (y < 1970 || y > 2261 || m < 1 || d < 1 || !day.ok() || date.size() != 10 || hour < 0 || hour > 23 ||
        minute < 0 || minute > 59 || second < 0 || second > 60 || fraction < 0) {
      return report("bad stamp", offset, name + ": line " + std::to_string(stamps.size()) + " is no time");
    }
    const std::int64_t days = std::chrono::sys_days(day).time_since_epoch().count();
    stamp = SensorTime{(((days * 24 + hour) * 60 + minute) * 60 + second) * 1'000'000'000 + fraction};
  });
  return stamps;
}

std::optional<Oxts> parse_oxts(std::string_view line) {
  const auto values = numbers(line);
  if (!values || values->size() < 23) return std::nullopt;
  const auto& v = *values;
  if (!(std::fabs(v[0]) < 89.9) || !(std::fabs(v[1]) <= 360)) return std::nullopt;
  for (const std::size_t angle : {3, 4, 5}) {
    if (std::fabs(v[angle]) > 1000) return std::nullopt;
  }
  return Oxts{v[0], v[1], v[2], v[3], v[4], v[5], {v[8], v[9], v[10]}, {v[17], v[18], v[19]}};
}

OxtsPoses::OxtsPoses(const Oxts& first) : scale_(kernels::cos(first.latitude * kPi / 180)) {
  origin_ = position(first);
}

std::array<double, 3> OxtsPoses::position(const Oxts& packet) const {
  constexpr double kEarth = 6378137.0;  // m
  const double half = (90 + packet.latitude) * kPi / 360;
  return {scale_ * kEarth * packet.longitude * kPi / 180 - origin_[0],
          scale_ * kEarth * kernels::log(kernels::sin(half) / kernels::cos(half)) - origin_[1],
          packet.altitude - origin_[2]};
}

Transform OxtsPoses::world_from_imu(const Oxts& packet) const {
  Transform pose = about(2, packet.yaw) * about(1, packet.pitch) * about(0, packet.roll);
  pose.translation = position(packet);
  return pose;
}

}  // namespace takt::sensors::kitti
