#include "pipeline/rig/ego.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "pipeline/rig/samples.h"
#include "sensors/logs/encode.h"
#include "sensors/logs/log_reader.h"
#include "sensors/logs/mcap_writer.h"
#include "sensors/rig_pcl/rig_pcl.h"

namespace takt::pipeline {
namespace {

constexpr const char* kTopic = "/ego/estimated/takt";

struct Pose {
  SensorTime stamp;
  sensors::Transform world_from_vehicle;
};

// In the vehicle frame, with their times; near ones may be the vehicle, far ones are few and coarse.
std::vector<sensors::SweepPoint> sweep_points(const Sample& sweep, const sensors::RigSensor& sensor) {
  const VehicleBox box;
  const auto& cloud = sweep.payload->as<sensors::PointCloud>();
  const std::vector<VehiclePoint> points = vehicle_points(cloud, sensor);
  std::vector<sensors::SweepPoint> out;
  for (std::uint32_t i = 0; i < cloud.count; ++i) {
    const VehiclePoint& p = points[i];
    const float range = std::hypot(p[0], p[1]);
    if (box.contains(p) || range > 80 || range < 2) continue;
    const double after = cloud.motion_compensated != 0 ? 0 : Duration{cloud.time_ns()[i]}.seconds();
    out.push_back({p[0], p[1], p[2], static_cast<float>(after)});
  }
  return out;
}

Result<std::vector<Pose>> register_all(const sensors::Rig& rig, std::size_t lidar, const std::string& log_path,
                                       const std::function<void(double, double)>& progress, EgoEstimate& estimate) {
  std::vector<Pose> poses;
  sensors::SweepOdometry odometry;
  TAKT_ASSIGN(const auto stamps, read_stamps(log_path, rig));
  const auto total = static_cast<double>(stamps[lidar].size());
  const Status walked = for_each_sample(log_path, rig, {lidar}, [&](std::size_t, const Sample& sweep) -> Status {
    if (!poses.empty() && sweep.stamp <= poses.back().stamp) return {};  // a repeated or swapped stamp
    const auto found = odometry.add(sweep_points(sweep, rig.sensors[lidar]), sweep.stamp);
    if (!found && found.error().code == Code::kEnvironment) return fail(found.error());
    if (!found || !found->registered) ++estimate.failed;
    if (!found) return {};
    if (!poses.empty()) {
      const sensors::Transform moved = poses.back().world_from_vehicle.inverse() * found->world_from_vehicle;
      estimate.distance_m += std::hypot(moved.translation[0], moved.translation[1], moved.translation[2]);
    }
    poses.push_back({sweep.stamp, found->world_from_vehicle});
    if (progress) progress(static_cast<double>(poses.size()), total);
    return {};
  });
  TAKT_RETURN_IF_ERROR(walked);
  return poses;
}

// Velocities are those between the sweeps before and behind: a sweep's own motion is half a period old.
sensors::log::EgoMotion message_of(const sensors::Rig& rig, const std::vector<Pose>& poses, std::size_t i) {
  const Pose& pose = poses[i];
  sensors::log::EgoMotion ego;
  ego.stamp = pose.stamp;
  ego.world_frame = rig.world_frame;
  ego.vehicle_frame = rig.vehicle_frame;
  ego.pose = {pose.world_from_vehicle.translation, pose.world_from_vehicle.quaternion()};
  const Pose &from = poses[i == 0 ? 0 : i - 1], &to = poses[std::min(i + 1, poses.size() - 1)];
  const double seconds = (to.stamp - from.stamp).seconds();
  sensors::Transform turn = pose.world_from_vehicle.inverse();
  turn.translation = {0, 0, 0};
  std::array<double, 3> moved{};
  for (std::size_t k = 0; k < 3; ++k) {
    moved[k] = (to.world_from_vehicle.translation[k] - from.world_from_vehicle.translation[k]) / seconds;
  }
  ego.velocity = turn.apply(moved);
  const auto q = (from.world_from_vehicle.inverse() * to.world_from_vehicle).quaternion();
  for (std::size_t k = 0; k < 3; ++k) ego.angular_velocity[k] = 2 * q[k + 1] / seconds;  // small angles
  return ego;
}

}  // namespace

Result<EgoEstimate> add_estimated_ego(const sensors::Rig& rig, const std::string& log_path, const std::string& out,
                                      const std::function<void(double, double)>& progress) {
  EgoEstimate estimate;
  std::size_t lidar = rig.sensors.size();
  for (std::size_t s = rig.sensors.size(); s-- > 0;) {
    if (rig.sensors[s].kind == sensors::SensorKind::kLidar) lidar = s;
  }
  if (lidar == rig.sensors.size()) {
    return fail(Code::kConfiguration, "rig '" + rig.name + "' has no LiDAR: nothing to estimate ego motion from");
  }
  estimate.lidar = rig.sensors[lidar].name;
  estimate.topic = kTopic;
  TAKT_ASSIGN(const std::vector<Pose> poses, register_all(rig, lidar, log_path, progress, estimate));
  if (poses.size() < 2) return fail(Code::kInput, log_path + ": fewer than two sweeps of '" + estimate.lidar + "'");
  estimate.poses = poses.size();
  estimate.duration = poses.back().stamp - poses.front().stamp;

  TAKT_ASSIGN(auto writer, sensors::McapWriter::create(out));
  TAKT_ASSIGN(const auto log, sensors::open_log(log_path));
  std::map<std::uint32_t, std::uint16_t> channels;
  for (const sensors::LogChannel& channel : log->channels()) {
    std::uint16_t schema = 0;
    if (!channel.schema.empty()) {
      TAKT_ASSIGN(schema, writer.add_schema({channel.schema, channel.schema_encoding, channel.schema_data}));
    }
    TAKT_ASSIGN(channels[channel.id], writer.add_channel(channel.topic, channel.encoding, schema, channel.metadata));
  }
  TAKT_ASSIGN(const sensors::LogSchema schema, sensors::log_schema("takt.EgoMotion"));
  TAKT_ASSIGN(const std::uint16_t schema_id, writer.add_schema(schema));
  TAKT_ASSIGN(const std::uint16_t ego,
              writer.add_channel(kTopic, schema.encoding, schema_id, {{"estimated", "LiDAR registration"}}));
  for (const sensors::LogMetadata& metadata : log->metadata()) {
    TAKT_RETURN_IF_ERROR(writer.add_metadata(metadata.name, metadata.entries));
  }
  TAKT_RETURN_IF_ERROR(writer.add_metadata(
      "takt.ego", {{"topic", kTopic}, {"estimated", "by registration of the sweeps of " + estimate.lidar}}));

  std::map<std::int64_t, std::size_t> pose_at;
  for (std::size_t i = 0; i < poses.size(); ++i) pose_at[poses[i].stamp.ns] = i;
  for (;;) {
    TAKT_ASSIGN(const std::optional<sensors::LogMessage> message, log->next());
    if (!message) break;
    const std::string_view bytes{reinterpret_cast<const char*>(message->bytes.data()), message->bytes.size()};
    TAKT_RETURN_IF_ERROR(
        writer.write(channels.at(message->channel->id), message->arrival, message->capture, message->sequence, bytes));
    if (message->channel->topic != rig.sensors[lidar].topic) continue;
    const auto found = pose_at.find(message->capture.ns);
    if (found == pose_at.end()) continue;
    const std::size_t i = found->second;
    const std::string text = sensors::encode(message_of(rig, poses, i));
    TAKT_RETURN_IF_ERROR(writer.write(ego, message->arrival, message->capture, static_cast<std::uint32_t>(i), text));
    pose_at.erase(found);
  }
  TAKT_RETURN_IF_ERROR(writer.finish());
  return estimate;
}

}  // namespace takt::pipeline
