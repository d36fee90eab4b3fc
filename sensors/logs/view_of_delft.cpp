#include "sensors/logs/view_of_delft.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "runtime/base/file.h"
#include "sensors/logs/dataset_log.h"
#include "sensors/logs/encode.h"
#include "sensors/logs/kitti_text.h"

namespace takt::sensors {
namespace {

namespace fs = std::filesystem;
using kitti::Calibration;

constexpr std::uint64_t kLidarRow = 16;  // f32 x y z reflectance 0..255
constexpr std::uint64_t kRadarRow = 28;  // f32 x y z rcs v_r v_r_compensated time
constexpr Duration kPeriod = milliseconds(100);

// The LiDAR stands 1.65 m above the plane of the odometry; the ground before the vehicle confirms it.
Transform vehicle_from_lidar() {
  Transform t;
  t.translation = {0, 0, 1.65};
  return t;
}

struct Row {
  std::array<std::uint32_t, 4> bits{};
  friend auto operator<=>(const Row&, const Row&) = default;
};

// The rows without later copies of a row that was there before; order kept.
std::string without_duplicates(const std::string& bytes) {
  std::vector<Row> rows(bytes.size() / kLidarRow);
  if (!rows.empty()) std::memcpy(rows.data(), bytes.data(), rows.size() * kLidarRow);
  std::vector<std::uint32_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return std::tie(rows[a], a) < std::tie(rows[b], b); });
  std::vector<bool> copy(rows.size());
  for (std::size_t i = 1; i < order.size(); ++i) copy[order[i]] = rows[order[i]] == rows[order[i - 1]];
  std::string kept;
  kept.reserve(bytes.size() / 2);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!copy[i]) kept.append(bytes, i * kLidarRow, kLidarRow);
  }
  return kept;
}

struct Duplicates {
  std::uint64_t rows = 0, dropped = 0, clouds = 0;
};

Result<std::string> lidar_message(const std::string& file, SensorTime stamp, const std::shared_ptr<Duplicates>& count) {
  TAKT_ASSIGN(const std::string bytes, read_file(file));
  const std::string kept = without_duplicates(bytes);
  count->rows += bytes.size() / kLidarRow;
  count->dropped += bytes.size() / kLidarRow - kept.size() / kLidarRow;
  ++count->clouds;
  log::PointCloud cloud;
  cloud.stamp = stamp;
  cloud.frame_id = "lidar";
  cloud.point_stride = kLidarRow;
  constexpr auto kFloat = log::NumericType::kFloat32;
  cloud.fields = {{{"x", 0, kFloat}, {"y", 4, kFloat}, {"z", 8, kFloat}, {"intensity", 12, kFloat}}};
  cloud.field_count = 4;
  cloud.data = std::as_bytes(std::span(kept));
  return encode(cloud);
}

Result<std::string> radar_message(const std::string& file, SensorTime stamp) {
  TAKT_ASSIGN(const std::string bytes, read_file(file));
  log::PointCloud cloud;
  cloud.stamp = stamp;
  cloud.frame_id = "radar";
  cloud.point_stride = kRadarRow;
  constexpr auto kFloat = log::NumericType::kFloat32;
  cloud.fields = {{{"x", 0, kFloat},
                   {"y", 4, kFloat},
                   {"z", 8, kFloat},
                   {"rcs", 12, kFloat},
                   {"range_rate", 16, kFloat},
                   {"range_rate_compensated", 20, kFloat},
                   {"scan", 24, kFloat}}};
  cloud.field_count = 7;
  cloud.data = std::as_bytes(std::span(bytes)).first(bytes.size() / kRadarRow * kRadarRow);
  return encode(cloud);
}

std::optional<Calibration> calibration_in(const std::string& file, const ReportProblem& report) {
  const auto text = read_file(file);
  if (!text) return std::nullopt;
  auto calibration = kitti::calibration_of(kitti::parse_values(*text));
  if (!calibration) report("bad calibration", 0, file + ": needs P2 and Tr_velo_to_cam");
  return calibration;
}

// Pose of the camera in the odometry frame: the member "odomToCamera", 16 numbers row-major, in one of several JSON
// lines. (The name says the opposite; the matrix maps camera points into the odometry frame.)
std::optional<Transform> world_from_camera(const std::string& file, const ReportProblem& report) {
  const auto text = read_file(file);
  if (!text) return std::nullopt;
  for (std::size_t at = 0; at < text->size();) {
    const std::size_t end = std::min(text->find('\n', at), text->size());
    const auto json = nlohmann::json::parse(text->begin() + static_cast<std::ptrdiff_t>(at),
                                            text->begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    at = end + 1;
    if (!json.is_object() || !json.contains("odomToCamera")) continue;
    const auto& m = json["odomToCamera"];
    if (!m.is_array() || m.size() != 16 ||
        !std::all_of(m.begin(), m.end(), [](const auto& v) { return v.is_number(); })) {
      break;
    }
    Transform t;
    for (std::size_t row = 0; row < 3; ++row) {
      for (std::size_t k = 0; k < 3; ++k) t.rotation[row * 3 + k] = m[row * 4 + k].template get<double>();
      t.translation[row] = m[row * 4 + 3].get<double>();
    }
    return t;
  }
  report("bad pose", 0, file + ": has no odomToCamera of 16 numbers");
  return std::nullopt;
}

log::Truth truth_of(const std::vector<kitti::Label>& labels, SensorTime stamp, const Calibration& calibration) {
  log::Truth truth;
  truth.stamp = stamp;
  truth.frame_id = "vehicle";
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const kitti::Label& label = labels[i];
    if (!label.has_box()) continue;
    const log::Pose pose = kitti::upright_box_pose(label, calibration.camera_from_velodyne);
    const Transform in_vehicle = vehicle_from_lidar() * Transform::from_quaternion(pose.orientation, pose.position);
    log::TruthBox& box = truth.boxes.emplace_back();
    box.id = static_cast<std::uint32_t>(i);
    box.object_class = kitti::object_class_of(label.type);
    box.pose = {in_vehicle.translation, in_vehicle.quaternion()};
    box.size = {label.length, label.width, label.height};
  }
  return truth;
}

struct Pose {
  std::uint64_t frame = 0;
  Transform world_from_vehicle;
};

// Difference over the neighbouring frames; nullopt when there are none.
std::optional<log::EgoMotion> motion_of(const std::vector<Pose>& poses, std::size_t i) {
  const std::size_t before = i > 0 && poses[i - 1].frame + 1 == poses[i].frame ? i - 1 : i;
  const std::size_t after = i + 1 < poses.size() && poses[i].frame + 1 == poses[i + 1].frame ? i + 1 : i;
  if (before == after) return std::nullopt;
  const double span = (kPeriod * static_cast<std::int64_t>(after - before)).seconds();
  const Transform &from = poses[before].world_from_vehicle, &to = poses[after].world_from_vehicle;
  Transform turn = poses[i].world_from_vehicle.inverse();
  turn.translation = {0, 0, 0};
  std::array<double, 3> moved{};
  for (std::size_t k = 0; k < 3; ++k) moved[k] = (to.translation[k] - from.translation[k]) / span;
  log::EgoMotion ego;
  ego.velocity = turn.apply(moved);
  const auto q = (from.inverse() * to).quaternion();  // small: twice its vector part
  for (std::size_t k = 0; k < 3; ++k) ego.angular_velocity[k] = 2 * q[k + 1] / span;
  return ego;
}

}  // namespace

bool is_view_of_delft(const std::string& folder) {
  std::error_code error;
  return fs::is_directory(folder + "/radar/training/velodyne", error) ||
         (fs::is_directory(folder + "/lidar/training/velodyne", error) &&
          fs::is_directory(folder + "/lidar/training/pose", error));
}

Result<std::unique_ptr<LogReader>> open_view_of_delft(const std::string& folder,
                                                      const std::vector<ReleaseRule>& rules) {
  auto log = std::make_unique<DatasetLog>("View-of-Delft", folder);
  const ReportProblem report = log->report();
  const std::string lidar = folder + "/lidar/training", radar = folder + "/radar/training";
  std::set<std::string> names;
  for (const std::string& name : list_files(lidar + "/velodyne", ".bin")) names.insert(name);
  for (const std::string& name : list_files(radar + "/velodyne", ".bin")) names.insert(name);
  for (const std::string& name : list_files(lidar + "/image_2", ".jpg")) names.insert(name);
  std::erase_if(names, [](const std::string& name) {
    return name.empty() || name.size() > 9 || name.find_first_not_of("0123456789") != std::string::npos;
  });

  const std::uint32_t clouds = log->channel("/lidar/points", "foxglove.PointCloud");
  const std::uint32_t returns = log->channel("/radar/returns", "foxglove.PointCloud");
  const std::uint32_t pictures = log->channel("/camera/image", "foxglove.CompressedImage");
  const std::uint32_t cameras = log->channel("/camera/calibration", "foxglove.CameraCalibration");
  const std::uint32_t motion = log->channel("/ego/takt", "takt.EgoMotion");
  const std::uint32_t places = log->channel("/ego", "foxglove.PoseInFrame");
  const std::uint32_t boxes = log->channel("/truth/takt", "takt.Truth");
  const std::uint32_t scenes = log->channel("/truth", "foxglove.SceneUpdate");
  const std::uint32_t frames = log->channel("/tf", "foxglove.FrameTransforms");
  const auto count = std::make_shared<Duplicates>();
  std::vector<Pose> poses;

  for (const std::string& name : names) {
    const std::uint64_t number = std::stoul(name);
    const SensorTime stamp{static_cast<std::int64_t>(number) * kPeriod.ns};
    std::error_code error;
    const auto exists = [&](const std::string& file) { return fs::exists(file, error); };
    const auto lidar_calibration = calibration_in(lidar + "/calib/" + name + ".txt", report);
    const auto radar_calibration = calibration_in(radar + "/calib/" + name + ".txt", report);

    if (const std::string file = lidar + "/velodyne/" + name + ".bin";
        exists(file) && whole_rows(file, kLidarRow, report) > 0) {
      log->message(clouds, stamp, stamp, [file, stamp, count] { return lidar_message(file, stamp, count); });
    }
    if (const std::string file = radar + "/velodyne/" + name + ".bin";
        exists(file) && whole_rows(file, kRadarRow, report) > 0) {
      log->message(returns, stamp, stamp, [file, stamp] { return radar_message(file, stamp); });
    }
    if (const std::string file = lidar + "/image_2/" + name + ".jpg"; exists(file)) {
      log->message(pictures, stamp, stamp, [file, stamp] { return picture_message(file, stamp, "camera"); });
      if (lidar_calibration) {
        log->message(cameras, stamp, stamp, [file, stamp, c = *lidar_calibration]() -> Result<std::string> {
          TAKT_ASSIGN(const std::string bytes, read_file(file));
          const CameraModel m = c.camera(picture_size(bytes));
          return encode(
              log::CameraCalibration{stamp, "camera", m.width, m.height, m.fx, m.fy, m.cx, m.cy, m.distortion});
        });
      }
    }
    if (!lidar_calibration) continue;
    const Transform mount = vehicle_from_lidar();
    const Transform camera_from_lidar = lidar_calibration->camera_from_velodyne;
    const Transform camera = mount * camera_from_lidar.inverse();
    std::vector<log::FrameTransform> transforms{
        {stamp, "vehicle", "lidar", {mount.translation, mount.quaternion()}},
        {stamp, "vehicle", "camera", {camera.translation, camera.quaternion()}}};
    if (radar_calibration) {
      const Transform t = camera * radar_calibration->camera_from_velodyne;
      transforms.push_back({stamp, "vehicle", "radar", {t.translation, t.quaternion()}});
    }
    if (const std::string file = lidar + "/pose/" + name + ".json"; exists(file)) {
      if (const auto pose = world_from_camera(file, report)) {
        const Transform vehicle = *pose * camera.inverse();
        poses.push_back({number, vehicle});
        const log::Pose where{vehicle.translation, vehicle.quaternion()};
        transforms.push_back({stamp, "world", "vehicle", where});
        log->message(places, stamp, stamp, [stamp, where]() -> Result<std::string> {
          return encode(log::PoseInFrame{stamp, "world", where});
        });
      }
    }
    log->message(frames, stamp, stamp, [transforms]() -> Result<std::string> { return encode(transforms); });
    if (const std::string file = lidar + "/label_2/" + name + ".txt"; exists(file)) {
      const auto text = read_file(file);
      if (!text) {
        report("damaged file", 0, text.error().message);
        continue;
      }
      const auto make = [labels = kitti::parse_labels(*text, file, false, report), stamp, c = *lidar_calibration] {
        return truth_of(labels, stamp, c);
      };
      log->message(boxes, stamp, stamp, [make]() -> Result<std::string> { return encode(make()); });
      log->message(scenes, stamp, stamp,
                   [make]() -> Result<std::string> { return encode(scene_of(make(), milliseconds(250))); });
    }
  }

  for (std::size_t i = 0; i < poses.size(); ++i) {
    auto ego = motion_of(poses, i);
    if (!ego) continue;
    ego->stamp = SensorTime{static_cast<std::int64_t>(poses[i].frame) * kPeriod.ns};
    ego->world_frame = "world";
    ego->vehicle_frame = "vehicle";
    ego->pose = {poses[i].world_from_vehicle.translation, poses[i].world_from_vehicle.quaternion()};
    log->message(motion, ego->stamp, ego->stamp, [ego = *ego]() -> Result<std::string> { return encode(ego); });
  }

  log->note("View-of-Delft holds no times: frame n is stamped n x 100 ms");
  log->running_note([count]() -> std::string {
    if (count->dropped == 0) return "";
    return "/lidar/points: " + std::to_string(count->dropped) + " of " + std::to_string(count->rows) + " rows in " +
           std::to_string(count->clouds) + " clouds read so far are exact duplicates and were dropped";
  });
  TAKT_RETURN_IF_ERROR(log->finish(rules));
  return std::unique_ptr<LogReader>(std::move(log));
}

}  // namespace takt::sensors
