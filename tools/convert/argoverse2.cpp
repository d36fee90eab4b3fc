#include "tools/convert/argoverse2.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>

#include "sensors/rig/rig.h"
#include "tools/convert/csv_table.h"
#include "tools/convert/drive_writer.h"

namespace takt::tools {
namespace {

namespace fs = std::filesystem;
using sensors::encode;
using sensors::Transform;
namespace log = sensors::log;

constexpr std::size_t kPointBytes = 20;

struct Box {
  std::string track, category;
  log::Pose pose;
  std::array<double, 3> size{};
  std::uint32_t points = 0;
};
using Boxes = std::map<std::int64_t, std::vector<Box>>;  // by stamp

Transform pose_in(CsvTable& table, std::size_t row) {
  const std::array<double, 4> q{table.number(row, "qw"), table.number(row, "qx"), table.number(row, "qy"),
                                table.number(row, "qz")};
  const double norm = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];
  if (!(norm > 0.9 && norm < 1.1)) {
    table.refuse(row, "the quaternion is no unit quaternion");
    return {};
  }
  return Transform::from_quaternion(q,
                                    {table.number(row, "tx_m"), table.number(row, "ty_m"), table.number(row, "tz_m")});
}

std::uint32_t object_class_of(const std::string& category) {
  constexpr std::uint32_t kVehicle = 1, kPedestrian = 2, kCyclist = 3, kOther = 4;
  static const std::set<std::string> kVehicles{"REGULAR_VEHICLE",
                                               "LARGE_VEHICLE",
                                               "BUS",
                                               "BOX_TRUCK",
                                               "TRUCK",
                                               "TRUCK_CAB",
                                               "VEHICULAR_TRAILER",
                                               "SCHOOL_BUS",
                                               "ARTICULATED_BUS",
                                               "RAILED_VEHICLE",
                                               "MESSAGE_BOARD_TRAILER"};
  static const std::set<std::string> kPedestrians{"PEDESTRIAN", "OFFICIAL_SIGNALER", "WHEELED_RIDER", "STROLLER",
                                                  "WHEELCHAIR"};
  static const std::set<std::string> kCyclists{"BICYCLIST", "MOTORCYCLIST", "BICYCLE", "MOTORCYCLE", "WHEELED_DEVICE"};
  if (kVehicles.count(category) != 0) return kVehicle;
  if (kPedestrians.count(category) != 0) return kPedestrian;
  return kCyclists.count(category) != 0 ? kCyclist : kOther;
}

class Conversion {
 public:
  Conversion(std::string folder, DriveWriter writer) : folder_(std::move(folder)), writer_(std::move(writer)) {}

  Status run() {
    TAKT_RETURN_IF_ERROR(read_boxes());
    TAKT_RETURN_IF_ERROR(read_poses());
    TAKT_RETURN_IF_ERROR(write_sweeps());
    for (const auto& [ns, boxes] : boxes_) {
      TAKT_RETURN_IF_ERROR(write_truth({ns}, boxes));
      TAKT_RETURN_IF_ERROR(write_ego({ns}));
    }
    return writer_.finish();
  }

 private:
  Status read_boxes() {
    TAKT_ASSIGN(CsvTable table, CsvTable::load(folder_ + "/annotations.csv"));
    for (std::size_t i = 0; i < table.rows(); ++i) {
      Box box;
      box.track = table.text(i, "track_uuid");
      box.category = table.text(i, "category");
      const Transform pose = pose_in(table, i);
      box.pose = {pose.translation, pose.quaternion()};
      box.size = {table.number(i, "length_m"), table.number(i, "width_m"), table.number(i, "height_m")};
      box.points = static_cast<std::uint32_t>(std::clamp(table.number(i, "num_interior_pts"), 0.0, 1e9));
      tracks_.emplace(box.track, static_cast<std::uint32_t>(tracks_.size()));
      boxes_[table.integer(i, "timestamp_ns")].push_back(std::move(box));
    }
    return table.status();
  }

  Status read_poses() {
    const std::string path = folder_ + "/city_SE3_egovehicle.csv";
    TAKT_ASSIGN(CsvTable table, CsvTable::load(path));
    for (std::size_t i = 0; i < table.rows(); ++i) poses_[table.integer(i, "timestamp_ns")] = pose_in(table, i);
    TAKT_RETURN_IF_ERROR(table.status());
    if (poses_.empty()) return fail(Code::kInput, path + ": holds no pose");
    return {};
  }

  Status write_sweeps() {
    std::set<std::string> files;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder_, error)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("lidar_") && name.ends_with(".bin")) files.insert(name);
    }
    for (const std::string& name : files) {
      const std::string path = folder_ + "/" + name, digits = name.substr(6, name.size() - 10);
      std::int64_t ns = 0;
      if (std::from_chars(digits.data(), digits.data() + digits.size(), ns).ptr != digits.data() + digits.size()) {
        return fail(Code::kInput, path + ": the name says no stamp");
      }
      TAKT_ASSIGN(const std::string bytes, read_file(path));
      if (bytes.size() % kPointBytes != 0) {
        return fail(Code::kInput, path + ": " + std::to_string(bytes.size()) + " bytes are no multiple of 20");
      }
      std::vector<log::LidarPoint> points(bytes.size() / kPointBytes);
      std::int32_t last = 0;
      for (std::size_t i = 0; i < points.size(); ++i) {
        const char* at = bytes.data() + i * kPointBytes;
        log::LidarPoint& p = points[i];
        std::memcpy(&p.x, at, 4);
        std::memcpy(&p.y, at + 4, 4);
        std::memcpy(&p.z, at + 8, 4);
        p.intensity = static_cast<unsigned char>(at[12]);
        p.ring = static_cast<unsigned char>(at[13]);
        std::memcpy(&p.time_ns, at + 16, 4);
        last = std::max(last, p.time_ns);
      }
      const SensorTime stamp{ns};
      TAKT_RETURN_IF_ERROR(writer_.put("/lidar/points", "foxglove.PointCloud", stamp + Duration{last}, stamp,
                                       sensors::encode_lidar(stamp, "vehicle", points)));
    }
    return {};
  }

  // The pose at or before a stamp, else the first.
  [[nodiscard]] std::map<std::int64_t, Transform>::const_iterator pose_at(std::int64_t ns) const {
    const auto after = poses_.upper_bound(ns);
    return after == poses_.begin() ? after : std::prev(after);
  }

  Status write_truth(SensorTime stamp, const std::vector<Box>& boxes) {
    log::Truth truth;
    truth.stamp = stamp;
    truth.frame_id = "vehicle";
    Transform turn = pose_at(stamp.ns)->second.inverse();
    turn.translation = {0, 0, 0};
    for (const Box& box : boxes) {
      log::TruthBox& out = truth.boxes.emplace_back();
      out.id = tracks_.at(box.track);
      out.object_class = object_class_of(box.category);
      out.pose = box.pose;
      out.size = box.size;
      out.lidar_points = box.points;
      out.velocity = turn.apply(velocity_of(box.track, stamp.ns));
    }
    TAKT_RETURN_IF_ERROR(writer_.put("/truth/takt", "takt.Truth", stamp, stamp, encode(truth)));
    return writer_.put("/truth", "foxglove.SceneUpdate", stamp, stamp,
                       encode(sensors::scene_of(truth, milliseconds(250))));
  }

  // Over the neighbouring annotated stamps that have the track, in the world's axes.
  [[nodiscard]] std::array<double, 3> velocity_of(const std::string& track, std::int64_t ns) const {
    const auto here = boxes_.find(ns);
    const auto place = [&](Boxes::const_iterator at) -> std::optional<std::array<double, 3>> {
      for (const Box& box : at->second) {
        if (box.track == track) return pose_at(at->first)->second.apply(box.pose.position);
      }
      return std::nullopt;
    };
    auto from = here, to = here;
    if (here != boxes_.begin() && place(std::prev(here))) from = std::prev(here);
    if (std::next(here) != boxes_.end() && place(std::next(here))) to = std::next(here);
    const double span = static_cast<double>(to->first - from->first) * 1e-9;
    if (span <= 0) return {0, 0, 0};
    const auto a = *place(from), b = *place(to);
    return {(b[0] - a[0]) / span, (b[1] - a[1]) / span, (b[2] - a[2]) / span};
  }

  Status write_ego(SensorTime stamp) {
    const auto here = pose_at(stamp.ns);
    auto from = here, to = here;  // at least 50 ms to either side where there are poses
    while (from != poses_.begin() && here->first - from->first < 50'000'000) --from;
    while (std::next(to) != poses_.end() && to->first - here->first < 50'000'000) ++to;
    const double span = static_cast<double>(to->first - from->first) * 1e-9;
    log::EgoMotion ego;
    ego.stamp = stamp;
    ego.world_frame = "world";
    ego.vehicle_frame = "vehicle";
    ego.pose = {here->second.translation, here->second.quaternion()};
    if (span > 0) {
      Transform turn = here->second.inverse();
      turn.translation = {0, 0, 0};
      std::array<double, 3> rate{};
      for (std::size_t k = 0; k < 3; ++k) rate[k] = (to->second.translation[k] - from->second.translation[k]) / span;
      ego.velocity = turn.apply(rate);
      const auto q = (from->second.inverse() * to->second).quaternion();  // small: twice its vector part
      for (std::size_t k = 0; k < 3; ++k) ego.angular_velocity[k] = 2 * q[k + 1] / span;
    }
    TAKT_RETURN_IF_ERROR(writer_.put("/ego/takt", "takt.EgoMotion", stamp, stamp, encode(ego)));
    TAKT_RETURN_IF_ERROR(
        writer_.put("/ego", "foxglove.PoseInFrame", stamp, stamp, encode(log::PoseInFrame{stamp, "world", ego.pose})));
    return writer_.put("/tf", "foxglove.FrameTransforms", stamp, stamp,
                       encode(std::vector<log::FrameTransform>{{stamp, "world", "vehicle", ego.pose}}));
  }

  const std::string folder_;
  DriveWriter writer_;
  Boxes boxes_;
  std::map<std::string, std::uint32_t> tracks_;
  std::map<std::int64_t, Transform> poses_;
};

}  // namespace

Status convert_argoverse2(const std::string& folder, const std::string& out) {
  TAKT_ASSIGN(DriveWriter writer, DriveWriter::create(out, {{"set", "Argoverse 2"},
                                                            {"licence", "CC BY-NC-SA 4.0, Argo AI"},
                                                            {"arrivals", "last point of a sweep; else the stamp"}}));
  return Conversion(folder, std::move(writer)).run();
}

}  // namespace takt::tools
