#include "tools/convert/comma2k19.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "sensors/rig/rig.h"
#include "tools/convert/drive_writer.h"
#include "tools/convert/npy.h"

namespace takt::tools {
namespace {

using sensors::encode;
using sensors::Transform;
namespace log = sensors::log;

SensorTime from_seconds(double seconds) { return {std::llround(seconds * 1e9)}; }

// An array with a stamp per row, in order.
struct Series {
  NpyArray time, value;
};
Result<Series> load_series(const std::string& times, const std::string& values, std::size_t columns) {
  Series series;
  TAKT_ASSIGN(series.time, load_npy(times));
  TAKT_ASSIGN(series.value, load_npy(values));
  if (series.value.rows != series.time.rows || series.value.columns != columns || series.time.columns != 1) {
    return fail(Code::kInput, values + ": needs " + std::to_string(series.time.rows) + " rows of " +
                                  std::to_string(columns) + " numbers, has " + std::to_string(series.value.rows) +
                                  " of " + std::to_string(series.value.columns));
  }
  for (std::size_t i = 0; i < series.time.rows; ++i) {
    const double t = series.time.at(i);
    if (!(t >= 0 && t < 4e9) || (i > 0 && t < series.time.at(i - 1))) {
      return fail(Code::kInput, times + ": row " + std::to_string(i) + ": the stamps go back or are no times");
    }
  }
  return series;
}

// x y z range_rate rcs FLOAT32, slot UINT16, new_track UINT8; packed.
struct ReturnRow {
  float x = 0, y = 0, z = 0, range_rate = 0, rcs = 0;
  std::uint16_t slot = 0;
  std::uint8_t new_track = 0;
};
constexpr std::uint32_t kReturnBytes = 23;

std::string scan_message(SensorTime stamp, const std::vector<ReturnRow>& rows) {
  std::string data;
  for (const ReturnRow& r : rows) {
    for (const float v : {r.x, r.y, r.z, r.range_rate, r.rcs}) data.append(reinterpret_cast<const char*>(&v), 4);
    data.append(reinterpret_cast<const char*>(&r.slot), 2);
    data.push_back(static_cast<char>(r.new_track));
  }
  log::PointCloud cloud;
  cloud.stamp = stamp;
  cloud.frame_id = "radar_front";
  cloud.point_stride = kReturnBytes;
  constexpr auto kFloat = log::NumericType::kFloat32;
  cloud.fields = {{{"x", 0, kFloat},
                   {"y", 4, kFloat},
                   {"z", 8, kFloat},
                   {"range_rate", 12, kFloat},
                   {"rcs", 16, kFloat},
                   {"slot", 20, log::NumericType::kUint16},
                   {"new_track", 22, log::NumericType::kUint8}}};
  cloud.field_count = 7;
  cloud.data = std::as_bytes(std::span(data));
  return encode(cloud);
}

Status write_radar(const std::string& folder, DriveWriter& writer, Comma2k19Figures& figures) {
  TAKT_ASSIGN(const Series radar, load_series(folder + "/t.npy", folder + "/value.npy", 7));
  std::set<int> slots;
  std::vector<ReturnRow> scan;
  SensorTime last;
  const auto flush = [&]() -> Status {
    if (scan.empty()) return {};
    TAKT_RETURN_IF_ERROR(
        writer.put("/radar/front/returns", "foxglove.PointCloud", last, last, scan_message(last, scan)));
    ++figures.scans;
    scan.clear();
    return {};
  };
  for (std::size_t i = 0; i < radar.value.rows; ++i) {
    const double address = radar.value.at(i, 5);
    if (!(address >= 0 && address <= 65535)) {
      return fail(Code::kInput, folder + "/value.npy: row " + std::to_string(i) + ": no CAN address");
    }
    ReturnRow row;
    row.x = static_cast<float>(radar.value.at(i, 0));
    row.y = static_cast<float>(radar.value.at(i, 1));
    row.range_rate = static_cast<float>(radar.value.at(i, 2));
    row.slot = static_cast<std::uint16_t>(address);
    row.new_track = radar.value.at(i, 6) != 0 ? 1 : 0;
    if (!scan.empty() && row.slot <= scan.back().slot) TAKT_RETURN_IF_ERROR(flush());
    last = from_seconds(radar.time.at(i));
    scan.push_back(row);
    slots.insert(row.slot);
    figures.new_tracks += row.new_track;
    ++figures.radar_rows;
  }
  figures.slots = slots.size();
  return flush();
}

Status write_poses(const std::string& folder, DriveWriter& writer, Comma2k19Figures& figures) {
  const std::string times = folder + "/frame_times.npy";
  TAKT_ASSIGN(const Series position, load_series(times, folder + "/frame_positions.npy", 3));
  TAKT_ASSIGN(const Series orientation, load_series(times, folder + "/frame_orientations.npy", 4));
  TAKT_ASSIGN(const Series velocity, load_series(times, folder + "/frame_velocities.npy", 3));
  // Camera axes forward, right, down to the vehicle's forward, left, up.
  Transform flip;
  flip.rotation = {1, 0, 0, 0, -1, 0, 0, 0, -1};
  std::vector<Transform> ecef_from_vehicle;
  for (std::size_t i = 0; i < position.time.rows; ++i) {
    const std::array<double, 4> q{orientation.value.at(i, 0), orientation.value.at(i, 1), orientation.value.at(i, 2),
                                  orientation.value.at(i, 3)};
    const double norm = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];
    if (!(norm > 0.9 && norm < 1.1)) {
      return fail(Code::kInput, folder + "/frame_orientations.npy: row " + std::to_string(i) + ": no unit quaternion");
    }
    ecef_from_vehicle.push_back(
        Transform::from_quaternion(q, {position.value.at(i, 0), position.value.at(i, 1), position.value.at(i, 2)}) *
        flip);
    if (i > 0) {
      double step = 0;
      for (std::size_t k = 0; k < 3; ++k) {
        const double d = position.value.at(i, k) - position.value.at(i - 1, k);
        step += d * d;
      }
      figures.path_m += std::sqrt(step);
    }
  }
  figures.poses = ecef_from_vehicle.size();
  for (std::size_t i = 0; i < ecef_from_vehicle.size(); ++i) {
    const SensorTime stamp = from_seconds(position.time.at(i));
    const Transform pose = ecef_from_vehicle.front().inverse() * ecef_from_vehicle[i];
    Transform turn = ecef_from_vehicle[i].inverse();
    turn.translation = {0, 0, 0};
    log::EgoMotion ego;
    ego.stamp = stamp;
    ego.world_frame = "world";
    ego.vehicle_frame = "vehicle";
    ego.pose = {pose.translation, pose.quaternion()};
    ego.velocity = turn.apply({velocity.value.at(i, 0), velocity.value.at(i, 1), velocity.value.at(i, 2)});
    const std::size_t from = i < 2 ? 0 : i - 2, to = std::min(i + 2, ecef_from_vehicle.size() - 1);
    const double span = position.time.at(to) - position.time.at(from);
    if (span > 0) {
      const auto q = (ecef_from_vehicle[from].inverse() * ecef_from_vehicle[to]).quaternion();
      for (std::size_t k = 0; k < 3; ++k) ego.angular_velocity[k] = 2 * q[k + 1] / span;  // small turns
    }
    TAKT_RETURN_IF_ERROR(writer.put("/ego/takt", "takt.EgoMotion", stamp, stamp, encode(ego)));
    TAKT_RETURN_IF_ERROR(
        writer.put("/ego", "foxglove.PoseInFrame", stamp, stamp, encode(log::PoseInFrame{stamp, "world", ego.pose})));
    TAKT_RETURN_IF_ERROR(writer.put("/tf", "foxglove.FrameTransforms", stamp, stamp,
                                    encode(std::vector<log::FrameTransform>{{stamp, "world", "vehicle", ego.pose}})));
  }
  return {};
}

}  // namespace

Result<Comma2k19Figures> convert_comma2k19(const std::string& folder, const std::string& out) {
  TAKT_ASSIGN(
      DriveWriter writer,
      DriveWriter::create(out, {{"set", "comma2k19"}, {"licence", "MIT, comma.ai"}, {"arrivals", "the stamps"}}));
  Comma2k19Figures figures;
  TAKT_RETURN_IF_ERROR(write_radar(folder + "/processed_log/CAN/radar", writer, figures));
  TAKT_RETURN_IF_ERROR(write_poses(folder + "/global_pose", writer, figures));
  const std::string can = folder + "/processed_log/CAN/speed";
  TAKT_ASSIGN(const Series speed, load_series(can + "/t.npy", can + "/value.npy", 1));
  for (std::size_t i = 1; i < speed.time.rows; ++i) {
    figures.can_path_m += (speed.value.at(i) + speed.value.at(i - 1)) / 2 * (speed.time.at(i) - speed.time.at(i - 1));
  }
  TAKT_RETURN_IF_ERROR(writer.finish());
  return figures;
}

}  // namespace takt::tools
