#include "tools/convert/pandaset_to_mcap.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "kernels/reference/elementary.h"
#include "runtime/base/file.h"
#include "sensors/logs/encode.h"
#include "sensors/logs/mcap_writer.h"

namespace takt::tools {
namespace {

using sensors::Compression;
using sensors::encode;
using sensors::McapWriter;
using sensors::Rig;
using sensors::RigSensor;
using sensors::SensorKind;
using sensors::Transform;
namespace log = sensors::log;

// Rates come from differences over this many frames to either side: the poses jitter by millimetres.
constexpr std::size_t kSpan = 2;

log::Pose pose_of(const Transform& t) { return {t.translation, t.quaternion()}; }

std::array<double, 3> rotate(const Transform& t, const std::array<double, 3>& v) {
  Transform turn = t;
  turn.translation = {0, 0, 0};
  return turn.apply(v);
}

std::array<double, 3> rate(const std::array<double, 3>& from, const std::array<double, 3>& to, Duration span) {
  std::array<double, 3> out{};
  for (std::size_t k = 0; k < 3; ++k) out[k] = (to[k] - from[k]) / span.seconds();
  return out;
}

class Conversion {
 public:
  Conversion(const Pandaset& set, const Rig& rig, const RigSensor& camera, const RigSensor& lidar, const RigSensor& ego,
             McapWriter writer)
      : set_(set), rig_(rig), camera_(camera), lidar_(lidar), ego_(ego), writer_(std::move(writer)) {
    const Transform lidar_from_vehicle = lidar_.vehicle_from_sensor.inverse();
    for (const PandasetPose& pose : set_.poses)
      world_from_vehicle_.push_back(pose.world_from_lidar * lidar_from_vehicle);
    for (const PandasetCuboid& cuboid : set_.cuboids) {
      if (!cuboid.duplicate()) tracks_[cuboid.track][cuboid.frame] = &cuboid;
    }
  }

  Status run() {
    TAKT_ASSIGN(pictures_, add(camera_.topic, "foxglove.CompressedImage", Compression::kNone));
    TAKT_ASSIGN(calibrations_, add(camera_.topic.substr(0, camera_.topic.rfind('/')) + "/calibration",
                                   "foxglove.CameraCalibration", Compression::kZstd));
    TAKT_ASSIGN(clouds_, add(lidar_.topic, "foxglove.PointCloud", Compression::kZstd));
    TAKT_ASSIGN(motion_, add(ego_.topic, "takt.EgoMotion", Compression::kZstd));
    TAKT_ASSIGN(poses_, add("/ego", "foxglove.PoseInFrame", Compression::kZstd));
    TAKT_ASSIGN(transforms_, add("/tf", "foxglove.FrameTransforms", Compression::kZstd));
    TAKT_ASSIGN(truth_, add("/truth/takt", "takt.Truth", Compression::kZstd));
    TAKT_ASSIGN(boxes_, add("/truth", "foxglove.SceneUpdate", Compression::kZstd));
    TAKT_RETURN_IF_ERROR(writer_.add_metadata("takt.drive", {{"drive", "recorded"},
                                                             {"set", "PandaSet"},
                                                             {"licence", "CC BY 4.0, Scale AI and Hesai"},
                                                             {"arrivals", "declared delays of the rig"}}));
    if (std::filesystem::exists(rig_.file)) {
      TAKT_ASSIGN(const std::string text, read_file(rig_.file));
      TAKT_RETURN_IF_ERROR(writer_.add_attachment(std::filesystem::path(rig_.file).filename().string(),
                                                  "application/yaml", set_.poses.front().stamp, text));
    }
    for (std::size_t frame = 0; frame < set_.sweeps; ++frame) {
      TAKT_RETURN_IF_ERROR(write_picture(frame));
      TAKT_RETURN_IF_ERROR(write_cloud(frame));
      TAKT_RETURN_IF_ERROR(write_ego(frame));
      TAKT_RETURN_IF_ERROR(write_truth(frame));
    }
    return writer_.finish();
  }

 private:
  Result<std::uint16_t> add(const std::string& topic, const char* name, Compression compression) {
    TAKT_ASSIGN(const sensors::LogSchema schema, sensors::log_schema(name));
    TAKT_ASSIGN(const std::uint16_t id, writer_.add_schema(schema));
    return writer_.add_channel(topic, schema.encoding, id, {}, compression);
  }
  Status put(std::uint16_t channel, SensorTime stamp, Duration delay, std::size_t frame, const std::string& bytes) {
    return writer_.write(channel, stamp + delay, stamp, static_cast<std::uint32_t>(frame), bytes);
  }

  Status write_picture(std::size_t frame) {
    const SensorTime stamp = set_.camera.stamps[frame];
    TAKT_ASSIGN(const std::string jpeg, read_picture(set_, frame));
    TAKT_RETURN_IF_ERROR(
        put(pictures_, stamp, *camera_.declared_delay, frame,
            encode(log::CompressedImage{stamp, camera_.frame_id, "jpeg", std::as_bytes(std::span(jpeg))})));
    const sensors::CameraModel& m = *camera_.camera;
    return put(calibrations_, stamp, *camera_.declared_delay, frame,
               encode(log::CameraCalibration{stamp, camera_.frame_id, m.width, m.height, m.fx, m.fy, m.cx, m.cy,
                                             m.distortion}));
  }

  Status write_cloud(std::size_t frame) {
    TAKT_ASSIGN(const PandasetSweep sweep, read_sweep(set_, frame));
    std::vector<log::LidarPoint> points(sweep.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
      points[i].x = static_cast<float>(sweep.x_cm[i] * 0.01);
      points[i].y = static_cast<float>(sweep.y_cm[i] * 0.01);
      points[i].z = static_cast<float>(sweep.z_cm[i] * 0.01);
      points[i].intensity = sweep.intensity[i];
      points[i].time_ns = sweep.time_ns[i];
      points[i].ring = 0;  // the set does not tell
    }
    return put(clouds_, sweep.stamp, *lidar_.declared_delay, frame,
               sensors::encode_lidar(sweep.stamp, lidar_.frame_id, points));
  }

  // Neighbouring frames for a difference, the frame itself in the middle where possible.
  [[nodiscard]] std::pair<std::size_t, std::size_t> around(std::size_t frame) const {
    return {frame < kSpan ? 0 : frame - kSpan, std::min(frame + kSpan, set_.poses.size() - 1)};
  }

  Status write_ego(std::size_t frame) {
    const SensorTime stamp = set_.poses[frame].stamp;
    const Transform& pose = world_from_vehicle_[frame];
    const auto [before, after] = around(frame);
    const Duration span = set_.poses[after].stamp - set_.poses[before].stamp;
    log::EgoMotion ego;
    ego.stamp = stamp;
    ego.world_frame = rig_.world_frame;
    ego.vehicle_frame = rig_.vehicle_frame;
    ego.pose = pose_of(pose);
    if (span.ns > 0) {
      const Transform vehicle_from_world = pose.inverse();
      ego.velocity = rotate(vehicle_from_world, rate(world_from_vehicle_[before].translation,
                                                     world_from_vehicle_[after].translation, span));
      // Small rotation from `before` to `after`, in the vehicle's axes: twice the vector part of its quaternion.
      const auto turn = (world_from_vehicle_[before].inverse() * world_from_vehicle_[after]).quaternion();
      for (std::size_t k = 0; k < 3; ++k) ego.angular_velocity[k] = 2 * turn[k + 1] / span.seconds();
    }
    TAKT_RETURN_IF_ERROR(put(motion_, stamp, *ego_.declared_delay, frame, encode(ego)));
    TAKT_RETURN_IF_ERROR(
        put(poses_, stamp, *ego_.declared_delay, frame, encode(log::PoseInFrame{stamp, rig_.world_frame, ego.pose})));
    std::vector<log::FrameTransform> transforms{{stamp, rig_.world_frame, rig_.vehicle_frame, ego.pose}};
    for (const RigSensor* sensor : {&camera_, &lidar_}) {
      transforms.push_back({stamp, rig_.vehicle_frame, sensor->frame_id, pose_of(sensor->vehicle_from_sensor)});
    }
    return put(transforms_, stamp, *ego_.declared_delay, frame, encode(transforms));
  }

  // Velocity over ground of a track from its positions in the world, the vehicle's axes at `frame`.
  [[nodiscard]] std::array<double, 3> velocity_of(std::uint32_t track, std::size_t frame) const {
    const auto& seen = tracks_.at(track);
    const auto [before, after] = around(frame);
    const auto first = seen.lower_bound(static_cast<std::uint32_t>(before));
    const auto last = std::prev(seen.upper_bound(static_cast<std::uint32_t>(after)));
    const Duration span = set_.poses[last->first].stamp - set_.poses[first->first].stamp;
    if (span.ns <= 0) return {0, 0, 0};
    return rotate(world_from_vehicle_[frame].inverse(), rate(first->second->world, last->second->world, span));
  }

  Status write_truth(std::size_t frame) {
    const SensorTime stamp = set_.poses[frame].stamp;
    const Transform& mount = lidar_.vehicle_from_sensor;
    log::Truth truth;
    truth.stamp = stamp;
    truth.frame_id = rig_.vehicle_frame;
    for (const PandasetCuboid& cuboid : set_.cuboids) {
      if (cuboid.frame != frame || cuboid.duplicate()) continue;
      log::TruthBox& box = truth.boxes.emplace_back();
      box.id = cuboid.track;
      box.object_class = object_class_of(cuboid.label);
      box.pose.position = mount.apply(cuboid.position);
      // Yaw 0 means length along +y of the sweep's frame: its x axis is turned by another quarter. The box stays
      // upright in that frame, so it leans a little in the vehicle's.
      const double half = (cuboid.yaw + kernels::kPi / 2) / 2;
      const auto turn = Transform::from_quaternion({kernels::cos(half), 0, 0, kernels::sin(half)}, {0, 0, 0});
      box.pose.orientation = (mount * turn).quaternion();
      box.size = {cuboid.length, cuboid.width, cuboid.height};
      box.velocity = velocity_of(cuboid.track, frame);
      box.lidar_points = cuboid.points;
    }
    TAKT_RETURN_IF_ERROR(put(truth_, stamp, {}, frame, encode(truth)));
    return put(boxes_, stamp, {}, frame, encode(sensors::scene_of(truth, milliseconds(250))));
  }

  const Pandaset& set_;
  const Rig& rig_;
  const RigSensor& camera_;
  const RigSensor& lidar_;
  const RigSensor& ego_;
  McapWriter writer_;
  std::vector<Transform> world_from_vehicle_;                                       // by frame
  std::map<std::uint32_t, std::map<std::uint32_t, const PandasetCuboid*>> tracks_;  // track, frame
  std::uint16_t pictures_ = 0, calibrations_ = 0, clouds_ = 0, motion_ = 0, poses_ = 0, transforms_ = 0, truth_ = 0,
                boxes_ = 0;
};

}  // namespace

std::uint32_t object_class_of(const std::string& label) {
  constexpr std::uint32_t kVehicle = 1, kPedestrian = 2, kCyclist = 3, kOther = 4;
  static const std::map<std::string, std::uint32_t> kClasses{{"Car", kVehicle},
                                                             {"Pickup Truck", kVehicle},
                                                             {"Medium-sized Truck", kVehicle},
                                                             {"Semi-truck", kVehicle},
                                                             {"Bus", kVehicle},
                                                             {"Emergency Vehicle", kVehicle},
                                                             {"Other Vehicle - Construction Vehicle", kVehicle},
                                                             {"Other Vehicle - Uncommon", kVehicle},
                                                             {"Towed Object", kVehicle},
                                                             {"Pedestrian", kPedestrian},
                                                             {"Pedestrian with Object", kPedestrian},
                                                             {"Bicycle", kCyclist},
                                                             {"Motorcycle", kCyclist},
                                                             {"Motorized Scooter", kCyclist}};
  const auto found = kClasses.find(label);
  return found == kClasses.end() ? kOther : found->second;
}

Status convert_pandaset(const Pandaset& set, const Rig& rig, const std::string& out) {
  const RigSensor* found[4] = {};
  for (const RigSensor& sensor : rig.sensors) {
    const auto kind = static_cast<std::size_t>(sensor.kind);
    if (sensor.kind == SensorKind::kRadar || found[kind] != nullptr || !sensor.declared_delay) {
      return fail(Code::kConfiguration, rig.file + ": sensor '" + sensor.name +
                                            "': a PandaSet rig has one camera, one lidar and one ego sensor, each with "
                                            "declared_delay_ms (the set has no arrival times)");
    }
    found[kind] = &sensor;
  }
  const RigSensor* camera = found[static_cast<std::size_t>(SensorKind::kCamera)];
  const RigSensor* lidar = found[static_cast<std::size_t>(SensorKind::kLidar)];
  const RigSensor* ego = found[static_cast<std::size_t>(SensorKind::kEgo)];
  if (camera == nullptr || lidar == nullptr || ego == nullptr || !lidar->motion_compensated) {
    return fail(Code::kConfiguration,
                rig.file + ": a PandaSet rig has a camera, a lidar with motion_compensated: true, and an ego sensor");
  }
  TAKT_ASSIGN(McapWriter writer, McapWriter::create(out));
  return Conversion(set, rig, *camera, *lidar, *ego, std::move(writer)).run();
}

}  // namespace takt::tools
