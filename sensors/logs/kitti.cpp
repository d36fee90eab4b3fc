#include "sensors/logs/kitti.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>

#include "kernels/reference/elementary.h"
#include "runtime/base/file.h"
#include "sensors/logs/dataset_log.h"
#include "sensors/logs/encode.h"
#include "sensors/logs/kitti_text.h"

namespace takt::sensors {
namespace {

namespace fs = std::filesystem;
using kitti::Calibration;
using kitti::Label;
using kitti::Oxts;

constexpr std::uint64_t kPointBytes = 16;  // f32 x y z reflectance
constexpr Duration kPeriod = milliseconds(100);
constexpr const char* kLidarFrame = "velodyne";

bool is_folder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}
bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

Transform vehicle_from_velodyne() {
  Transform t;
  t.translation = {0.76, 0, 1.73};
  return t;
}

bool six_digits(const std::string& name) {
  return name.size() == 6 && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

enum class Layout { kNone, kRaw, kObject, kTracking, kFlat };

std::string root_of(const std::string& folder) {
  return is_folder(folder + "/training") ? folder + "/training" : folder;
}

Layout layout_of(const std::string& folder) {
  for (const char* part : {"velodyne_points", "oxts", "image_00", "image_01", "image_02", "image_03"}) {
    if (is_folder(folder + "/" + part + "/data")) return Layout::kRaw;
  }
  const std::string root = root_of(folder);
  if (is_folder(root + "/image_02") || is_folder(root + "/label_02")) return Layout::kTracking;
  if (is_folder(root + "/image_2") || is_folder(root + "/velodyne")) return Layout::kObject;
  for (const std::string& name : list_files(folder, ".bin")) {
    if (six_digits(name)) return Layout::kFlat;
  }
  return Layout::kNone;
}

// The rows of a .bin file as they are: KITTI's point is already one that the decoder reads.
Result<std::string> cloud_message(const std::string& path, SensorTime stamp) {
  TAKT_ASSIGN(const std::string bytes, read_file(path));
  log::PointCloud cloud;
  cloud.stamp = stamp;
  cloud.frame_id = kLidarFrame;
  cloud.point_stride = kPointBytes;
  constexpr auto kFloat = log::NumericType::kFloat32;
  cloud.fields = {{{"x", 0, kFloat}, {"y", 4, kFloat}, {"z", 8, kFloat}, {"intensity", 12, kFloat}}};
  cloud.field_count = 4;
  cloud.data = std::as_bytes(std::span(bytes)).first(bytes.size() / kPointBytes * kPointBytes);
  return encode(cloud);
}

// The same with times: the head turns clockwise and faces forward at the stamp, so a point's time follows from its
// azimuth and the length of the turn.
Result<std::string> timed_cloud_message(const std::string& path, SensorTime stamp, Duration turn) {
  TAKT_ASSIGN(const std::string bytes, read_file(path));
  std::vector<log::LidarPoint> points(bytes.size() / kPointBytes);
  for (std::size_t i = 0; i < points.size(); ++i) {
    float row[4];
    std::memcpy(row, bytes.data() + i * kPointBytes, kPointBytes);
    log::LidarPoint& p = points[i];
    p.x = row[0];
    p.y = row[1];
    p.z = row[2];
    p.intensity = row[3];
    if (std::isfinite(p.x) && std::isfinite(p.y)) {
      const double part = -kernels::atan2(static_cast<double>(p.y), static_cast<double>(p.x)) / (2 * kernels::kPi);
      p.time_ns = static_cast<std::int32_t>(std::floor(part * static_cast<double>(turn.ns) + 0.5));
    }
  }
  return encode_lidar(stamp, kLidarFrame, points);
}

std::vector<log::FrameTransform> static_transforms(SensorTime stamp, const std::optional<Calibration>& calibration) {
  std::vector<log::FrameTransform> all;
  const Transform mount = vehicle_from_velodyne();
  all.push_back({stamp, "vehicle", kLidarFrame, {mount.translation, mount.quaternion()}});
  if (calibration) {
    const Transform camera = mount * calibration->picture_from_velodyne().inverse();
    all.push_back({stamp, "vehicle", "image_2", {camera.translation, camera.quaternion()}});
  }
  return all;
}

log::Truth truth_of(const std::vector<Label>& labels, std::uint32_t frame, bool tracking, SensorTime stamp,
                    const Calibration& calibration) {
  log::Truth truth;
  truth.stamp = stamp;
  truth.frame_id = "vehicle";
  const Transform mount = vehicle_from_velodyne();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const Label& label = labels[i];
    if (label.frame != frame || !label.has_box()) continue;
    const log::Pose pose = box_pose(label, calibration.camera_from_velodyne);
    const Transform in_vehicle = mount * Transform::from_quaternion(pose.orientation, pose.position);
    log::TruthBox& box = truth.boxes.emplace_back();
    box.id = tracking && label.track >= 0 ? static_cast<std::uint32_t>(label.track) : static_cast<std::uint32_t>(i);
    box.object_class = kitti::object_class_of(label.type);
    box.pose = {in_vehicle.translation, in_vehicle.quaternion()};
    box.size = {label.length, label.width, label.height};
  }
  return truth;
}

log::EgoMotion ego_of(const Oxts& packet, const kitti::OxtsPoses& poses, const Transform& velodyne_from_imu,
                      SensorTime stamp) {
  const Transform vehicle_from_imu = vehicle_from_velodyne() * velodyne_from_imu;
  const Transform pose = poses.world_from_imu(packet) * vehicle_from_imu.inverse();
  Transform turn = vehicle_from_imu;
  turn.translation = {0, 0, 0};
  log::EgoMotion ego;
  ego.stamp = stamp;
  ego.world_frame = "world";
  ego.vehicle_frame = "vehicle";
  ego.pose = {pose.translation, pose.quaternion()};
  ego.angular_velocity = turn.apply(packet.angular_velocity);
  ego.velocity = turn.apply(packet.velocity);
  // The vehicle's origin lies off the unit: v = v_unit + w x (origin - unit).
  const auto& w = ego.angular_velocity;
  const auto& r = vehicle_from_imu.translation;
  ego.velocity[0] -= w[1] * r[2] - w[2] * r[1];
  ego.velocity[1] -= w[2] * r[0] - w[0] * r[2];
  ego.velocity[2] -= w[0] * r[1] - w[1] * r[0];
  return ego;
}

// One frame number, one picture or cloud file.
struct Stream {
  std::string folder;
  std::string ending;
  [[nodiscard]] std::string file(const std::string& name) const { return folder + "/" + name + ending; }
};

class Builder {
 public:
  Builder(const DatasetPath& path, const std::string& format)
      : path_(path), log_(std::make_unique<DatasetLog>(format, path.folder)) {}

  Result<std::unique_ptr<LogReader>> raw(const std::vector<ReleaseRule>& rules) {
    raw_calibration();
    for (const char* number : {"0", "1", "2", "3"}) raw_pictures(number);
    raw_clouds();
    raw_ego();
    log_->note("KITTI raw holds no arrival times: a message arrives with its last captured byte");
    return finish(rules);
  }

  Result<std::unique_ptr<LogReader>> frames(const std::vector<ReleaseRule>& rules, bool flat) {
    const std::string root = flat ? path_.folder : root_of(path_.folder);
    const Stream clouds{flat ? root : root + "/velodyne", ".bin"};
    Stream pictures{flat ? root : root + "/image_2", ".png"};
    std::set<std::string> names;
    for (const std::string& name : list_files(clouds.folder, clouds.ending)) names.insert(name);
    if (list_files(pictures.folder, ".png").empty()) pictures.ending = ".jpg";
    for (const std::string& name : list_files(pictures.folder, pictures.ending)) names.insert(name);
    std::string shared;  // one calibration for all frames
    if (flat && is_folder(root + "/calib")) {
      const auto files = list_files(root + "/calib", ".txt");
      if (files.size() == 1) shared = root + "/calib/" + files[0] + ".txt";
    }
    std::size_t number = 0;
    for (const std::string& name : names) {
      if (!six_digits(name)) continue;
      const SensorTime stamp{static_cast<std::int64_t>(std::stoul(name)) * kPeriod.ns};
      const std::string own = root + "/calib/" + name + ".txt";
      calibration_ = calibration_in(exists(own) ? own : shared);
      cloud(clouds, name, stamp);
      picture(pictures, name, stamp);
      const std::string labels = root + "/label_2/" + name + ".txt";
      if (exists(labels) && calibration_) {
        if (const auto text = read_file(labels)) {
          truth(kitti::parse_labels(*text, labels, false, log_->report()), 0, false, stamp);
        }
      } else if (exists(labels)) {
        ++unplaced_;
      }
      ++number;
    }
    if (unplaced_ != 0) {
      log_->note(std::to_string(unplaced_) +
                 " label files have no calibration beside them; their boxes cannot be placed");
    }
    log_->note("frames of this set are single scenes without times: frame n is stamped n x 100 ms");
    return finish(rules);
  }

  Result<std::unique_ptr<LogReader>> tracking(const std::vector<ReleaseRule>& rules) {
    const std::string root = root_of(path_.folder);
    std::set<std::string> found;
    for (const char* part : {"velodyne", "image_02"}) {
      for (const std::string& name : list_folders(root + "/" + part)) found.insert(name);
    }
    for (const std::string& name : list_files(root + "/label_02", ".txt")) found.insert(name);
    const std::vector<std::string> sequences(found.begin(), found.end());
    std::string sequence = path_.sequence;
    if (sequence.empty() && sequences.size() == 1) sequence = sequences[0];
    if (found.count(sequence) == 0) return fail(choose_sequence(path_, sequences));

    calibration_ = calibration_in(root + "/calib/" + sequence + ".txt");
    const Stream clouds{root + "/velodyne/" + sequence, ".bin"};
    Stream pictures{root + "/image_02/" + sequence, ".png"};
    if (list_files(pictures.folder, ".png").empty()) pictures.ending = ".jpg";
    const auto stamp_of = [](std::uint64_t frame) { return SensorTime{static_cast<std::int64_t>(frame) * kPeriod.ns}; };
    for (const std::string& name : list_files(clouds.folder, clouds.ending)) {
      if (six_digits(name)) cloud(clouds, name, stamp_of(std::stoul(name)));
    }
    for (const std::string& name : list_files(pictures.folder, pictures.ending)) {
      if (six_digits(name)) picture(pictures, name, stamp_of(std::stoul(name)));
    }
    const std::string labels = root + "/label_02/" + sequence + ".txt";
    if (exists(labels) && calibration_) {
      TAKT_ASSIGN(const std::string text, read_file(labels));
      const auto rows = kitti::parse_labels(text, labels, true, log_->report());
      std::uint32_t frames = 0;
      for (const Label& row : rows) frames = std::max(frames, row.frame + 1);
      std::vector<std::vector<Label>> by_frame(frames);
      for (const Label& row : rows) by_frame[row.frame].push_back(row);
      for (std::uint32_t frame = 0; frame < frames; ++frame) truth(by_frame[frame], frame, true, stamp_of(frame));
    }
    const std::string oxts = root + "/oxts/" + sequence + ".txt";
    if (exists(oxts)) {
      TAKT_ASSIGN(const std::string text, read_file(oxts));
      std::uint64_t frame = 0;
      for (std::size_t at = 0; at < text.size(); ++frame) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        ego(std::string_view(text).substr(at, end - at), oxts, at, stamp_of(frame));
        at = end + 1;
      }
    }
    log_->note("KITTI tracking holds no times: frame n is stamped n x 100 ms (10 Hz)");
    return finish(rules);
  }

 private:
  // Ids of channels made when the first message needs them.
  std::uint32_t channel(const std::string& topic, const char* schema) {
    const auto [at, added] = channels_.try_emplace(topic, 0);
    if (added) at->second = log_->channel(topic, schema);
    return at->second;
  }

  std::optional<Calibration> calibration_in(const std::string& file) {
    if (file.empty()) return std::nullopt;
    const auto text = read_file(file);
    if (!text) return std::nullopt;
    auto calibration = kitti::calibration_of(kitti::parse_values(*text));
    if (!calibration) log_->damage("bad calibration", 0, file + ": needs P2 and Tr_velo_to_cam");
    return calibration;
  }

  void transforms(SensorTime stamp) {
    log_->message(channel("/tf", "foxglove.FrameTransforms"), stamp, stamp,
                  [stamp, calibration = calibration_]() -> Result<std::string> {
                    return encode(static_transforms(stamp, calibration));
                  });
  }

  void cloud(const Stream& stream, const std::string& name, SensorTime stamp) {
    const std::string file = stream.file(name);
    if (!exists(file)) return;
    if (whole_rows(file, kPointBytes, log_->report()) == 0) return;
    log_->message(channel("/lidar/velodyne/points", "foxglove.PointCloud"), stamp, stamp,
                  [file, stamp] { return cloud_message(file, stamp); });
    transforms(stamp);
  }

  void picture(const Stream& stream, const std::string& name, SensorTime stamp) {
    const std::string file = stream.file(name);
    if (!exists(file)) return;
    log_->message(channel("/camera/image_2/image", "foxglove.CompressedImage"), stamp, stamp,
                  [file, stamp] { return picture_message(file, stamp, "image_2"); });
    if (!calibration_) return;
    log_->message(channel("/camera/image_2/calibration", "foxglove.CameraCalibration"), stamp, stamp,
                  [file, stamp, calibration = *calibration_]() -> Result<std::string> {
                    TAKT_ASSIGN(const std::string bytes, read_file(file));
                    const CameraModel m = calibration.camera(picture_size(bytes));
                    return encode(log::CameraCalibration{stamp, "image_2", m.width, m.height, m.fx, m.fy, m.cx, m.cy,
                                                         m.distortion});
                  });
  }

  void truth(std::vector<Label> labels, std::uint32_t frame, bool tracking, SensorTime stamp) {
    const auto make = [labels = std::move(labels), frame, tracking, stamp, calibration = *calibration_] {
      return truth_of(labels, frame, tracking, stamp, calibration);
    };
    log_->message(channel("/truth/takt", "takt.Truth"), stamp, stamp,
                  [make]() -> Result<std::string> { return encode(make()); });
    log_->message(channel("/truth", "foxglove.SceneUpdate"), stamp, stamp,
                  [make]() -> Result<std::string> { return encode(scene_of(make(), milliseconds(250))); });
  }

  void ego(std::string_view line, const std::string& file, std::uint64_t offset, SensorTime stamp) {
    const auto packet = kitti::parse_oxts(line);
    if (!packet) {
      if (!line.empty()) log_->damage("bad OXTS packet", offset, file + ": needs at least 23 numbers");
      return;
    }
    if (!velodyne_from_imu_ && calibration_) velodyne_from_imu_ = calibration_->velodyne_from_imu;
    if (!velodyne_from_imu_) {
      // Geiger et al. 2013, figure 3, without the small rotations.
      velodyne_from_imu_.emplace().translation = {-0.81, 0.32, -0.80};
      log_->note("no IMU calibration found: the drawing's offset of 0.81, -0.32, 0.80 m is used");
    }
    if (!poses_) poses_.emplace(*packet);
    const log::EgoMotion motion = ego_of(*packet, *poses_, *velodyne_from_imu_, stamp);
    log_->message(channel("/ego/takt", "takt.EgoMotion"), stamp, stamp,
                  [motion]() -> Result<std::string> { return encode(motion); });
    log_->message(channel("/ego", "foxglove.PoseInFrame"), stamp, stamp, [motion]() -> Result<std::string> {
      return encode(log::PoseInFrame{motion.stamp, motion.world_frame, motion.pose});
    });
    log_->message(channel("/tf", "foxglove.FrameTransforms"), stamp, stamp,
                  [motion, calibration = calibration_]() -> Result<std::string> {
                    auto all = static_transforms(motion.stamp, calibration);
                    all.push_back({motion.stamp, "world", "vehicle", motion.pose});
                    return encode(all);
                  });
  }

  // calib_cam_to_cam.txt, calib_velo_to_cam.txt, calib_imu_to_velo.txt above the drive (or in it).
  void raw_calibration() {
    const auto values = [&](const char* name) -> kitti::Values {
      for (const std::string& folder : {path_.folder, path_.folder + "/.."}) {
        if (const auto text = read_file(folder + "/" + name)) return kitti::parse_values(*text);
      }
      return {};
    };
    camera_values_ = values("calib_cam_to_cam.txt");
    const auto rigid = [](const kitti::Values& from) -> std::optional<Transform> {
      const auto r = from.find("R"), t = from.find("T");
      if (r == from.end() || t == from.end() || r->second.size() != 9 || t->second.size() != 3) return std::nullopt;
      Transform out;
      std::copy_n(r->second.begin(), 9, out.rotation.begin());
      std::copy_n(t->second.begin(), 3, out.translation.begin());
      return out;
    };
    velodyne_from_imu_ = rigid(values("calib_imu_to_velo.txt"));
    const auto camera = rigid(values("calib_velo_to_cam.txt"));
    const auto projection = camera_values_.find("P_rect_02");
    if (camera && projection != camera_values_.end() && projection->second.size() == 12) {
      Calibration& c = calibration_.emplace();
      std::copy_n(projection->second.begin(), 12, c.projection.begin());
      Transform rectify;
      const auto r = camera_values_.find("R_rect_00");
      if (r != camera_values_.end() && r->second.size() == 9) {
        std::copy_n(r->second.begin(), 9, rectify.rotation.begin());
      }
      c.camera_from_velodyne = rectify * *camera;
      c.velodyne_from_imu = velodyne_from_imu_;
      if (!(c.projection[0] > 0 && c.projection[5] > 0)) calibration_.reset();
    } else {
      log_->note("no calib_cam_to_cam.txt and calib_velo_to_cam.txt beside the drive: cameras have no calibration");
    }
  }

  // Calls read(name, stamp, frame) for each frame that has both file and stamp, and tells about the others.
  template <class Read>
  void raw_frames(const std::string& part, const std::string& ending, Read&& read) {
    const std::string folder = path_.folder + "/" + part;
    const auto names = list_files(folder + "/data", ending);
    const std::string stamp_file = folder + "/timestamps.txt";
    const auto text = read_file(stamp_file);
    if (!text) {
      if (!names.empty()) {
        log_->damage("missing stamps", 0,
                     stamp_file + ": cannot be read; " + std::to_string(names.size()) + " files are left out");
      }
      return;
    }
    const auto stamps = kitti::parse_timestamps(*text, stamp_file, log_->report());
    std::set<std::uint64_t> with_file;
    for (const std::string& name : names) {
      std::uint64_t frame = 0;
      if (name.empty() || name.size() > 10 || name.find_first_not_of("0123456789") != std::string::npos) continue;
      frame = std::stoull(name);
      with_file.insert(frame);
      if (frame >= stamps.size() || !stamps[frame]) {
        log_->damage("missing stamp", 0, folder + "/data/" + name + ending + ": no stamp in timestamps.txt; left out");
        continue;
      }
      read(name, *stamps[frame], frame);
    }
    std::string missing;
    std::size_t count = 0;
    for (std::uint64_t frame = 0; frame < stamps.size(); ++frame) {
      if (with_file.count(frame) != 0) continue;
      if (++count <= 8) missing += (missing.empty() ? "" : ", ") + std::to_string(frame);
    }
    if (count != 0) {
      log_->note(part + ": " + std::to_string(count) + " frames have no file (" + missing + (count > 8 ? ", ..." : "") +
                 "), as in some published drives");
    }
  }

  void raw_pictures(const std::string& number) {
    const std::string part = "image_0" + number, frame_id = "image_" + number;
    const std::string base = "/camera/" + frame_id;
    const std::string ending = list_files(path_.folder + "/" + part + "/data", ".png").empty() ? ".jpg" : ".png";
    const auto projection = camera_values_.find("P_rect_0" + number);
    const bool calibrated = projection != camera_values_.end() && projection->second.size() == 12;
    raw_frames(part, ending, [&](const std::string& name, SensorTime stamp, std::uint64_t) {
      const std::string file = path_.folder + "/" + part + "/data/" + name + ending;
      log_->message(channel(base + "/image", "foxglove.CompressedImage"), stamp, stamp,
                    [file, stamp, frame_id] { return picture_message(file, stamp, frame_id); });
      if (!calibrated) return;
      log_->message(
          channel(base + "/calibration", "foxglove.CameraCalibration"), stamp, stamp,
          [file, stamp, frame_id, p = projection->second]() -> Result<std::string> {
            TAKT_ASSIGN(const std::string bytes, read_file(file));
            const auto size = picture_size(bytes);
            return encode(log::CameraCalibration{stamp, frame_id, size[0], size[1], p[0], p[5], p[2], p[6], {}});
          });
    });
  }

  void raw_clouds() {
    const std::string folder = path_.folder + "/velodyne_points";
    const auto optional_stamps = [&](const char* name) -> std::vector<std::optional<SensorTime>> {
      const auto text = read_file(folder + "/" + name);
      if (!text) return {};
      return kitti::parse_timestamps(*text, folder + "/" + name, log_->report());
    };
    const auto starts = optional_stamps("timestamps_start.txt"), ends = optional_stamps("timestamps_end.txt");
    raw_frames("velodyne_points", ".bin", [&](const std::string& name, SensorTime stamp, std::uint64_t frame) {
      const std::string file = folder + "/data/" + name + ".bin";
      if (whole_rows(file, kPointBytes, log_->report()) == 0) return;
      Duration turn = kPeriod;
      SensorTime end = stamp + Duration{kPeriod.ns / 2};
      if (frame < ends.size() && ends[frame] && *ends[frame] >= stamp && *ends[frame] < stamp + kPeriod) {
        end = *ends[frame];
        if (frame < starts.size() && starts[frame] && *starts[frame] < end && end < *starts[frame] + kPeriod * 2) {
          turn = end - *starts[frame];
        }
      }
      log_->message(channel("/lidar/velodyne/points", "foxglove.PointCloud"), stamp, end,
                    [file, stamp, turn] { return timed_cloud_message(file, stamp, turn); });
      transforms(stamp);
    });
  }

  void raw_ego() {
    raw_frames("oxts", ".txt", [&](const std::string& name, SensorTime stamp, std::uint64_t) {
      const std::string file = path_.folder + "/oxts/data/" + name + ".txt";
      const auto text = read_file(file);
      if (!text) return log_->damage("damaged file", 0, text.error().message);
      ego(std::string_view(*text).substr(0, text->find('\n')), file, 0, stamp);
    });
  }

  Result<std::unique_ptr<LogReader>> finish(const std::vector<ReleaseRule>& rules) {
    TAKT_RETURN_IF_ERROR(log_->finish(rules));
    return std::unique_ptr<LogReader>(std::move(log_));
  }

  DatasetPath path_;
  std::unique_ptr<DatasetLog> log_;
  std::map<std::string, std::uint32_t> channels_;
  std::optional<Calibration> calibration_;
  kitti::Values camera_values_;
  std::optional<Transform> velodyne_from_imu_;
  std::optional<kitti::OxtsPoses> poses_;
  std::size_t unplaced_ = 0;  // label files without calibration
};

}  // namespace

bool is_kitti(const std::string& folder) { return layout_of(folder) != Layout::kNone; }

Result<std::unique_ptr<LogReader>> open_kitti(const std::string& path, const std::vector<ReleaseRule>& rules) {
  const DatasetPath parts = split_dataset_path(path);
  switch (layout_of(parts.folder)) {
    case Layout::kRaw: return Builder(parts, "KITTI raw").raw(rules);
    case Layout::kObject: return Builder(parts, "KITTI object").frames(rules, false);
    case Layout::kFlat: return Builder(parts, "KITTI clouds").frames(rules, true);
    case Layout::kTracking: return Builder(parts, "KITTI tracking").tracking(rules);
    case Layout::kNone: break;
  }
  return fail(Code::kInput, path + ": is no folder of KITTI raw, object or tracking");
}

}  // namespace takt::sensors
