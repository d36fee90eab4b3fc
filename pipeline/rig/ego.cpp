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
  sensors::Transform motion;  // T_before_now
  Duration step;
};

Result<std::vector<Pose>> register_all(const sensors::Rig& rig, std::size_t lidar, const std::string& log_path,
                                       const std::function<void(double, double)>& progress, EgoEstimate& estimate) {
  const VehicleBox box;
  std::vector<Pose> poses;
  std::vector<VehiclePoint> before;
  TAKT_ASSIGN(const auto stamps, read_stamps(log_path, rig));
  const auto total = static_cast<double>(stamps[lidar].size());
  const Status walked = for_each_sample(log_path, rig, {lidar}, [&](std::size_t, const Sample& sweep) -> Status {
    std::vector<VehiclePoint> points = landmarks(sweep, rig.sensors[lidar], box);
    Pose pose{sweep.stamp, {}, {}, {}};
    if (!poses.empty()) {
      const Pose& last = poses.back();
      if (sweep.stamp <= last.stamp) return {};  // a repeated or swapped stamp
      pose.step = sweep.stamp - last.stamp;
      const auto found = sensors::register_clouds(before, points, last.motion);
      if (!found && found.error().code == Code::kEnvironment) return fail(found.error());
      if (!found) ++estimate.failed;
      pose.motion = found ? found->target_from_source : last.motion;
      pose.world_from_vehicle = last.world_from_vehicle * pose.motion;
      const auto& t = pose.motion.translation;
      estimate.distance_m += std::sqrt(t[0] * t[0] + t[1] * t[1] + t[2] * t[2]);
    }
    before = std::move(points);
    poses.push_back(pose);
    if (progress) progress(static_cast<double>(poses.size()), total);
    return {};
  });
  TAKT_RETURN_IF_ERROR(walked);
  return poses;
}

sensors::log::EgoMotion message_of(const sensors::Rig& rig, const Pose& pose, const Pose& rate_from) {
  sensors::log::EgoMotion ego;
  ego.stamp = pose.stamp;
  ego.world_frame = rig.world_frame;
  ego.vehicle_frame = rig.vehicle_frame;
  ego.pose = {pose.world_from_vehicle.translation, pose.world_from_vehicle.quaternion()};
  if (rate_from.step.ns > 0) {
    const double seconds = rate_from.step.seconds();
    const auto turn = rate_from.motion.quaternion();  // small: twice its vector part is the angle
    for (std::size_t k = 0; k < 3; ++k) {
      ego.velocity[k] = rate_from.motion.translation[k] / seconds;
      ego.angular_velocity[k] = 2 * turn[k + 1] / seconds;
    }
  }
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
    // The first sweep has no motion of its own yet: it takes the second's.
    const std::string text = sensors::encode(message_of(rig, poses[i], poses[std::max<std::size_t>(i, 1)]));
    TAKT_RETURN_IF_ERROR(writer.write(ego, message->arrival, message->capture, static_cast<std::uint32_t>(i), text));
    pose_at.erase(found);
  }
  TAKT_RETURN_IF_ERROR(writer.finish());
  return estimate;
}

}  // namespace takt::pipeline
