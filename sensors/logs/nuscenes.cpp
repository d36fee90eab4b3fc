#include "sensors/logs/nuscenes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/base/file.h"
#include "sensors/logs/dataset_log.h"
#include "sensors/logs/encode.h"
#include "sensors/logs/pcd.h"
#include "sensors/rig/rig.h"

namespace takt::sensors {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint64_t kLidarRow = 20;  // f32 x y z intensity ring

std::string tables_of(const std::string& folder) {
  std::error_code error;
  if (fs::exists(folder + "/sample_data.json", error)) return folder;
  for (const std::string& name : list_folders(folder)) {
    if (fs::exists(folder + "/" + name + "/sample_data.json", error)) return folder + "/" + name;
  }
  return "";
}

// Reads members of one row; the first one that is missing or of another kind is named by reason().
class Row {
 public:
  explicit Row(const json& row) : row_(row) {}
  std::string text(const char* key) {
    const auto* value = find(key);
    if (value != nullptr && value->is_string()) return value->get<std::string>();
    miss(key);
    return {};
  }
  double number(const char* key) {
    const auto* value = find(key);
    if (value != nullptr && value->is_number()) return value->get<double>();
    miss(key);
    return 0;
  }
  template <std::size_t N>
  std::array<double, N> numbers(const char* key) {
    std::array<double, N> out{};
    const auto* value = find(key);
    bool good = value != nullptr && value->is_array() && value->size() == N;
    for (std::size_t i = 0; good && i < N; ++i) {
      good = (*value)[i].is_number();
      if (good) out[i] = (*value)[i].template get<double>();
      good = good && std::isfinite(out[i]);
    }
    if (!good) miss(key);
    return out;
  }
  // 3x3, or empty for sensors without.
  std::vector<double> matrix(const char* key) {
    std::vector<double> out;
    const auto* value = find(key);
    if (value == nullptr || !value->is_array() || value->size() != 3) return out;
    for (const auto& row : *value) {
      if (!row.is_array() || row.size() != 3) return {};
      for (const auto& v : row) {
        if (!v.is_number()) return {};
        out.push_back(v.get<double>());
      }
    }
    return out;
  }
  // Microseconds, whole or with a fraction, as nanoseconds.
  SensorTime stamp(const char* key) {
    const auto* value = find(key);
    if (value != nullptr && value->is_number_integer()) {
      const auto us = value->get<std::int64_t>();
      if (us >= 0 && us < INT64_MAX / 1000) return {us * 1000};
    } else if (value != nullptr && value->is_number()) {
      const double us = value->get<double>();
      // The fraction apart: a double holds today's microseconds, but not its nanoseconds.
      if (us >= 0 && us < 9e15) {
        const double whole = std::floor(us);
        return {static_cast<std::int64_t>(whole) * 1000 + static_cast<std::int64_t>((us - whole) * 1000)};
      }
    }
    miss(key);
    return {};
  }
  Transform pose() {
    const auto q = numbers<4>("rotation");
    const auto t = numbers<3>("translation");
    const double norm = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];
    if (!(norm > 0.5 && norm < 2)) {
      miss("rotation");
      return {};
    }
    return Transform::from_quaternion(q, t);
  }
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  const json* find(const char* key) const {
    const auto found = row_.is_object() ? row_.find(key) : row_.end();
    return row_.is_object() && found != row_.end() ? &*found : nullptr;
  }
  void miss(const char* key) {
    if (reason_.empty()) reason_ = std::string("'") + key + "' is missing or of another kind";
  }
  const json& row_;
  std::string reason_;
};

struct Sensor {
  std::string channel, modality;
  Transform vehicle_from_sensor;
  std::vector<double> intrinsic;  // 9 or none
};
struct EgoPose {
  SensorTime stamp;
  Transform world_from_vehicle;
};
struct Annotation {
  std::string instance, category;
  Transform world_from_box;
  std::array<double, 3> size{};  // width length height
  std::uint32_t lidar_points = 0;
  std::string before, after;  // tokens of the neighbours, "" = none
  SensorTime stamp;
};
struct Sample {
  std::string scene;
  SensorTime stamp;
};

std::uint32_t object_class_of(const std::string& category) {
  constexpr std::uint32_t kVehicle = 1, kPedestrian = 2, kCyclist = 3, kOther = 4;
  const auto starts = [&](std::string_view with) { return std::string_view(category).starts_with(with); };
  if (starts("vehicle.bicycle") || starts("vehicle.motorcycle") || category == "bicycle" || category == "motorcycle") {
    return kCyclist;
  }
  if (starts("vehicle.") || category == "car" || category == "truck" || category == "bus" || category == "trailer" ||
      category == "construction_vehicle" || category == "other_vehicle" || category == "emergency_vehicle") {
    return kVehicle;
  }
  if (starts("human.pedestrian") || category == "pedestrian") return kPedestrian;
  return kOther;
}

Result<std::string> lidar_message(const std::string& file, SensorTime stamp, const std::string& frame_id) {
  TAKT_ASSIGN(const std::string bytes, read_file(file));
  log::PointCloud cloud;
  cloud.stamp = stamp;
  cloud.frame_id = frame_id;
  cloud.point_stride = kLidarRow;
  constexpr auto kFloat = log::NumericType::kFloat32;
  cloud.fields = {
      {{"x", 0, kFloat}, {"y", 4, kFloat}, {"z", 8, kFloat}, {"intensity", 12, kFloat}, {"ring", 16, kFloat}}};
  cloud.field_count = 5;
  cloud.data = std::as_bytes(std::span(bytes)).first(bytes.size() / kLidarRow * kLidarRow);
  return encode(cloud);
}

class Builder {
 public:
  Builder(const DatasetPath& path, std::string tables)
      : path_(path), tables_(std::move(tables)), log_(std::make_unique<DatasetLog>("nuScenes", path.folder)) {
    root_ = fs::path(tables_).parent_path().string();
    if (root_.empty()) root_ = ".";
  }

  Result<std::unique_ptr<LogReader>> build(const std::vector<ReleaseRule>& rules) {
    TAKT_RETURN_IF_ERROR(choose_scene());
    TAKT_RETURN_IF_ERROR(sensors());
    TAKT_RETURN_IF_ERROR(data());
    ego();
    annotations();
    log_->note("nuScenes holds no arrival times: a message arrives at its stamp");
    log_->running_note([count = filtered_]() -> std::string {
      if (*count == 0) return "";
      return std::to_string(*count) + " radar returns read so far were taken out by the set's default filters";
    });
    TAKT_RETURN_IF_ERROR(log_->finish(rules));
    return std::unique_ptr<LogReader>(std::move(log_));
  }

 private:
  // Calls read(row) for each row of a table. kInput when the table cannot be read.
  template <class Read>
  Status table(const char* name, Read&& read) {
    const std::string file = tables_ + "/" + name + ".json";
    TAKT_ASSIGN(const std::string text, read_file(file));
    const json all = json::parse(text, nullptr, false);
    if (!all.is_array()) return fail(Code::kInput, file + ": is no JSON list of rows");
    std::size_t number = 0;
    for (const json& each : all) {
      Row row(each);
      read(row);
      if (!row.reason().empty()) {
        log_->damage("bad row", 0, file + ": row " + std::to_string(number) + ": " + row.reason() + "; left out");
      }
      ++number;
    }
    return {};
  }
  // The same for a table that only truth needs: published sets of test scenes lack it, and a damaged one costs no more.
  template <class Read>
  void truth_table(const char* name, Read&& read) {
    std::error_code error;
    if (!fs::exists(tables_ + "/" + name + ".json", error)) return;
    if (const Status whole = table(name, std::forward<Read>(read)); !whole) {
      log_->damage("bad table", 0, whole.error().message + "; truth is left out");
    }
  }

  Status choose_scene() {
    std::map<std::string, std::string> scenes;  // name -> token
    TAKT_RETURN_IF_ERROR(table("scene", [&](Row& row) {
      const std::string name = row.text("name"), token = row.text("token");
      if (row.reason().empty()) scenes[name] = token;
    }));
    std::vector<std::string> names;
    for (const auto& [name, token] : scenes) names.push_back(name);
    std::string chosen = path_.sequence;
    if (chosen.empty() && names.size() == 1) chosen = names[0];
    if (scenes.count(chosen) == 0) return fail(choose_sequence(path_, names));
    const std::string scene = scenes[chosen];
    return table("sample", [&](Row& row) {
      const std::string token = row.text("token"), of = row.text("scene_token");
      const SensorTime stamp = row.stamp("timestamp");
      // A set of a single scene may be cut from a larger one: its samples then name that one.
      if (row.reason().empty() && (of == scene || names.size() == 1)) samples_[token] = {of, stamp};
    });
  }

  Status sensors() {
    std::map<std::string, std::pair<std::string, std::string>> kinds;  // token -> channel, modality
    TAKT_RETURN_IF_ERROR(table("sensor", [&](Row& row) {
      const std::string token = row.text("token"), channel = row.text("channel"), modality = row.text("modality");
      if (row.reason().empty()) kinds[token] = {channel, modality};
    }));
    return table("calibrated_sensor", [&](Row& row) {
      const std::string token = row.text("token"), of = row.text("sensor_token");
      Sensor sensor;
      sensor.vehicle_from_sensor = row.pose();
      sensor.intrinsic = row.matrix("camera_intrinsic");
      const auto kind = kinds.find(of);
      if (!row.reason().empty()) return;
      if (kind == kinds.end()) return lost("calibrated_sensor", token, "sensor");
      sensor.channel = kind->second.first;
      sensor.modality = kind->second.second;
      sensors_[token] = std::move(sensor);
    });
  }

  void lost(const char* table, const std::string& token, const char* partner) {
    log_->damage("broken join", 0,
                 std::string(table) + " " + token.substr(0, 40) + ": its " + partner + " does not exist; left out");
  }

  Status data() {
    TAKT_RETURN_IF_ERROR(table("ego_pose", [&](Row& row) {
      const std::string token = row.text("token");
      const EgoPose pose{row.stamp("timestamp"), row.pose()};
      if (row.reason().empty()) poses_[token] = pose;
    }));
    return table("sample_data", [&](Row& row) {
      const std::string token = row.text("token"), sample = row.text("sample_token"), file = row.text("filename");
      const std::string sensor_token = row.text("calibrated_sensor_token"), pose_token = row.text("ego_pose_token");
      const SensorTime stamp = row.stamp("timestamp");
      if (!row.reason().empty() || samples_.count(sample) == 0) return;
      const auto sensor = sensors_.find(sensor_token);
      const auto pose = poses_.find(pose_token);
      if (sensor == sensors_.end()) return lost("sample_data", token, "calibrated_sensor");
      if (pose == poses_.end()) {
        lost("sample_data", token, "ego_pose");
      } else {
        used_poses_[pose->second.stamp.ns] = pose->second.world_from_vehicle;
        if (sensor->second.modality == "lidar" && stamp == samples_[sample].stamp) {
          sample_pose_[sample] = pose->second.world_from_vehicle;
        }
        sample_pose_.try_emplace(sample, pose->second.world_from_vehicle);
      }
      mounts_[sensor->second.channel] = sensor->second.vehicle_from_sensor;
      message(sensor->second, root_ + "/" + file, stamp, static_cast<std::uint32_t>(size_of(row, "width")),
              static_cast<std::uint32_t>(size_of(row, "height")));
    });
  }

  static double size_of(Row& row, const char* key) {
    Row copy = row;  // absent for LiDAR and radar: not a fault
    const double value = copy.number(key);
    return copy.reason().empty() && value > 0 && value < 65536 ? value : 0;
  }

  void message(const Sensor& sensor, const std::string& file, SensorTime stamp, std::uint32_t width,
               std::uint32_t height) {
    std::error_code error;
    if (!fs::exists(file, error)) return log_->damage("missing file", 0, file + ": named by sample_data");
    const std::string& name = sensor.channel;
    if (sensor.modality == "lidar") {
      if (whole_rows(file, kLidarRow, log_->report()) == 0) return;
      log_->message(channel("/" + name + "/points", "foxglove.PointCloud"), stamp, stamp,
                    [file, stamp, name] { return lidar_message(file, stamp, name); });
    } else if (sensor.modality == "radar") {
      log_->message(
          channel("/" + name + "/returns", "foxglove.PointCloud"), stamp, stamp,
          [file, stamp, name, count = filtered_, seen = std::make_shared<bool>(false)]() -> Result<std::string> {
            TAKT_ASSIGN(const std::string bytes, read_file(file));
            std::uint64_t filtered = 0;
            auto out = nuscenes_radar_message(bytes, file, stamp, name, filtered);
            if (!*seen) *count += filtered;
            *seen = true;
            return out;
          });
    } else {
      log_->message(channel("/" + name + "/image", "foxglove.CompressedImage"), stamp, stamp,
                    [file, stamp, name] { return picture_message(file, stamp, name); });
      if (sensor.intrinsic.size() != 9) return;
      log_->message(channel("/" + name + "/calibration", "foxglove.CameraCalibration"), stamp, stamp,
                    [stamp, name, k = sensor.intrinsic, width, height]() -> Result<std::string> {
                      return encode(log::CameraCalibration{stamp, name, width, height, k[0], k[4], k[2], k[5], {}});
                    });
    }
  }

  // Poses of the vehicle at the stamps of the used data, with differences to the neighbours as velocities.
  void ego() {
    std::vector<std::pair<std::int64_t, Transform>> poses(used_poses_.begin(), used_poses_.end());
    for (std::size_t i = 0; i < poses.size(); ++i) {
      const auto& [ns, pose] = poses[i];
      const SensorTime stamp{ns};
      // At least 50 ms apart: poses are rounded, and neighbouring stamps may lie microseconds apart.
      std::size_t before = i, after = i;
      while (before > 0 && poses[i].first - poses[before].first < 50'000'000) --before;
      while (after + 1 < poses.size() && poses[after].first - poses[i].first < 50'000'000) ++after;
      const double span = static_cast<double>(poses[after].first - poses[before].first) * 1e-9;
      log::EgoMotion motion;
      motion.stamp = stamp;
      motion.world_frame = "world";
      motion.vehicle_frame = "vehicle";
      motion.pose = {pose.translation, pose.quaternion()};
      std::vector<log::FrameTransform> transforms{{stamp, "world", "vehicle", motion.pose}};
      for (const auto& [name, mount] : mounts_) {
        transforms.push_back({stamp, "vehicle", name, {mount.translation, mount.quaternion()}});
      }
      if (span >= 0.02) {
        const Transform &from = poses[before].second, &to = poses[after].second;
        Transform turn = pose.inverse();
        turn.translation = {0, 0, 0};
        std::array<double, 3> moved{};
        for (std::size_t k = 0; k < 3; ++k) moved[k] = (to.translation[k] - from.translation[k]) / span;
        motion.velocity = turn.apply(moved);
        const auto q = (from.inverse() * to).quaternion();  // small: twice its vector part
        for (std::size_t k = 0; k < 3; ++k) motion.angular_velocity[k] = 2 * q[k + 1] / span;
        log_->message(channel("/ego/takt", "takt.EgoMotion"), stamp, stamp,
                      [motion]() -> Result<std::string> { return encode(motion); });
      }
      log_->message(channel("/ego", "foxglove.PoseInFrame"), stamp, stamp, [motion]() -> Result<std::string> {
        return encode(log::PoseInFrame{motion.stamp, "world", motion.pose});
      });
      log_->message(channel("/tf", "foxglove.FrameTransforms"), stamp, stamp,
                    [transforms]() -> Result<std::string> { return encode(transforms); });
    }
  }

  void annotations() {
    std::map<std::string, std::string> categories, instances;
    std::map<std::string, std::uint32_t> ids;
    truth_table("category", [&](Row& row) {
      const std::string token = row.text("token");
      categories[token] = row.text("name");
    });
    truth_table("instance", [&](Row& row) {
      const std::string token = row.text("token");
      instances[token] = row.text("category_token");
    });
    for (const auto& [token, category] : instances) ids.emplace(token, static_cast<std::uint32_t>(ids.size()));
    std::map<std::string, Annotation> all;
    std::map<std::string, std::vector<std::string>> of_sample;
    truth_table("sample_annotation", [&](Row& row) {
      const std::string token = row.text("token"), sample = row.text("sample_token");
      Annotation a;
      a.instance = row.text("instance_token");
      a.world_from_box = row.pose();
      a.size = row.numbers<3>("size");
      a.lidar_points = static_cast<std::uint32_t>(std::clamp(row.number("num_lidar_pts"), 0.0, 1e9));
      a.before = row.text("prev");
      a.after = row.text("next");
      if (!row.reason().empty() || samples_.count(sample) == 0) return;
      const auto instance = instances.find(a.instance);
      if (instance == instances.end()) return lost("sample_annotation", token, "instance");
      const auto category = categories.find(instance->second);
      if (category == categories.end()) return lost("instance", a.instance, "category");
      a.category = category->second;
      a.stamp = samples_[sample].stamp;
      of_sample[sample].push_back(token);
      all[token] = std::move(a);
    });
    for (const auto& [sample, tokens] : of_sample) {
      const auto pose = sample_pose_.find(sample);
      if (pose == sample_pose_.end()) continue;
      const Transform vehicle_from_world = pose->second.inverse();
      Transform turn = vehicle_from_world;
      turn.translation = {0, 0, 0};
      log::Truth truth;
      truth.stamp = samples_[sample].stamp;
      truth.frame_id = "vehicle";
      for (const std::string& token : tokens) {
        const Annotation& a = all[token];
        const Transform placed = vehicle_from_world * a.world_from_box;
        log::TruthBox& box = truth.boxes.emplace_back();
        box.id = ids[a.instance];
        box.object_class = object_class_of(a.category);
        box.pose = {placed.translation, placed.quaternion()};
        box.size = {a.size[1], a.size[0], a.size[2]};
        box.lidar_points = a.lidar_points;
        const auto before = all.find(a.before), after = all.find(a.after);
        const Annotation& from = before == all.end() ? a : before->second;
        const Annotation& to = after == all.end() ? a : after->second;
        const double span = (to.stamp - from.stamp).seconds();
        if (span > 0 && span < 2) {
          std::array<double, 3> v{};
          for (std::size_t k = 0; k < 3; ++k) {
            v[k] = (to.world_from_box.translation[k] - from.world_from_box.translation[k]) / span;
          }
          box.velocity = turn.apply(v);
        }
      }
      const SensorTime stamp = truth.stamp;
      const auto shared = std::make_shared<const log::Truth>(std::move(truth));
      log_->message(channel("/truth/takt", "takt.Truth"), stamp, stamp,
                    [shared]() -> Result<std::string> { return encode(*shared); });
      log_->message(channel("/truth", "foxglove.SceneUpdate"), stamp, stamp,
                    [shared]() -> Result<std::string> { return encode(scene_of(*shared, milliseconds(1000))); });
    }
  }

  std::uint32_t channel(const std::string& topic, const char* schema) {
    const auto [at, added] = channels_.try_emplace(topic, 0);
    if (added) at->second = log_->channel(topic, schema);
    return at->second;
  }

  DatasetPath path_;
  std::string tables_, root_;
  std::unique_ptr<DatasetLog> log_;
  std::map<std::string, std::uint32_t> channels_;
  std::map<std::string, Sample> samples_;         // of the scene, by token
  std::map<std::string, Sensor> sensors_;         // by calibrated_sensor token
  std::map<std::string, EgoPose> poses_;          // by token
  std::map<std::int64_t, Transform> used_poses_;  // of the scene's data, by stamp
  std::map<std::string, Transform> sample_pose_;  // of the LiDAR's, by sample token
  std::map<std::string, Transform> mounts_;       // by channel
  std::shared_ptr<std::uint64_t> filtered_ = std::make_shared<std::uint64_t>(0);
};

}  // namespace

Result<std::string> nuscenes_radar_message(std::string_view pcd, const std::string& name, SensorTime stamp,
                                           std::string_view frame_id, std::uint64_t& filtered) {
  filtered = 0;
  TAKT_ASSIGN(const PcdCloud cloud, parse_pcd(pcd, name));
  if (cloud.points < cloud.announced) {
    return fail(Code::kInput, name + ": " + std::to_string(cloud.announced) + " points announced, " +
                                  std::to_string(cloud.points) + " there");
  }
  const PcdField* fields[11] = {};
  static constexpr const char* kNames[] = {"x",       "y",       "z",        "vx",          "vy",           "rcs",
                                           "vx_comp", "vy_comp", "dyn_prop", "ambig_state", "invalid_state"};
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    fields[i] = cloud.find(kNames[i]);
    if (fields[i] == nullptr) return fail(Code::kInput, name + ": no field '" + kNames[i] + "'");
  }
  constexpr std::uint32_t kStride = 28;
  std::string data;
  for (std::uint64_t i = 0; i < cloud.points; ++i) {
    double v[11];
    for (std::size_t k = 0; k < 11; ++k) v[k] = cloud.value(i, *fields[k]);
    if (v[10] != 0 || v[8] < 0 || v[8] > 6 || v[9] != 3) {
      ++filtered;
      continue;
    }
    const double range = std::sqrt(v[0] * v[0] + v[1] * v[1]);
    const double rate = range > 0 ? (v[3] * v[0] + v[4] * v[1]) / range : 0;
    const float row[7] = {static_cast<float>(v[0]), static_cast<float>(v[1]), static_cast<float>(v[2]),
                          static_cast<float>(rate), static_cast<float>(v[5]), static_cast<float>(v[6]),
                          static_cast<float>(v[7])};
    data.append(reinterpret_cast<const char*>(row), sizeof row);
  }
  log::PointCloud out;
  out.stamp = stamp;
  out.frame_id = frame_id;
  out.point_stride = kStride;
  constexpr auto kFloat = log::NumericType::kFloat32;
  out.fields = {{{"x", 0, kFloat},
                 {"y", 4, kFloat},
                 {"z", 8, kFloat},
                 {"range_rate", 12, kFloat},
                 {"rcs", 16, kFloat},
                 {"vx_comp", 20, kFloat},
                 {"vy_comp", 24, kFloat}}};
  out.field_count = 7;
  out.data = std::as_bytes(std::span(data));
  return encode(out);
}

bool is_nuscenes(const std::string& folder) { return !tables_of(folder).empty(); }

Result<std::unique_ptr<LogReader>> open_nuscenes(const std::string& path, const std::vector<ReleaseRule>& rules) {
  const DatasetPath parts = split_dataset_path(path);
  const std::string tables = tables_of(parts.folder);
  if (tables.empty()) return fail(Code::kInput, path + ": has no sample_data.json, so it is no nuScenes folder");
  return Builder(parts, tables).build(rules);
}

}  // namespace takt::sensors
