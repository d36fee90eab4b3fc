#include "pipeline/rig/samples.h"

#include <algorithm>
#include <cmath>

#include "sensors/camera/camera_decoder.h"
#include "sensors/ego/ego_decoder.h"
#include "sensors/lidar/lidar_decoder.h"
#include "sensors/logs/log_reader.h"
#include "sensors/radar/radar_decoder.h"
#include "sensors/rig_pcl/rig_pcl.h"

namespace takt::pipeline {
namespace {

using sensors::RigSensor;
using sensors::SensorKind;

Result<std::unique_ptr<sensors::Decoder>> make_decoder(const RigSensor& sensor, const sensors::LogChannel& channel) {
  switch (sensor.kind) {
    case SensorKind::kCamera: return sensors::make_camera_decoder(sensor, channel);
    case SensorKind::kLidar: return sensors::make_lidar_decoder(sensor, channel);
    case SensorKind::kRadar: return sensors::make_radar_decoder(sensor, channel);
    case SensorKind::kEgo: return sensors::make_ego_decoder(sensor, channel);
  }
  return fail(Code::kInternal, "unknown kind of sensor");
}

std::vector<std::string> topics_of(const sensors::Rig& rig, const std::vector<std::size_t>& sensors) {
  std::vector<std::string> topics;
  for (const std::size_t s : sensors) topics.push_back(rig.sensors[s].topic);
  return topics;
}

std::optional<std::size_t> sensor_of(const sensors::Rig& rig, const std::string& topic) {
  for (std::size_t s = 0; s < rig.sensors.size(); ++s) {
    if (rig.sensors[s].topic == topic) return s;
  }
  return std::nullopt;
}

std::vector<std::size_t> all_of(const sensors::Rig& rig) {
  std::vector<std::size_t> out(rig.sensors.size());
  for (std::size_t s = 0; s < out.size(); ++s) out[s] = s;
  return out;
}

VehiclePoint narrow(const std::array<double, 3>& p) {
  return {static_cast<float>(p[0]), static_cast<float>(p[1]), static_cast<float>(p[2])};
}

}  // namespace

Payload::Payload(std::uint64_t bytes)
    : memory_(new std::byte[bytes + 64]), data_(memory_.get()), size_(static_cast<std::size_t>(bytes)) {
  data_ += (64 - reinterpret_cast<std::uintptr_t>(data_) % 64) % 64;
}

Result<std::vector<std::vector<SensorTime>>> read_stamps(const std::string& log_path, const sensors::Rig& rig) {
  TAKT_ASSIGN(const auto log, sensors::open_log(log_path));
  log->select(topics_of(rig, all_of(rig)));
  std::vector<std::vector<SensorTime>> stamps(rig.sensors.size());
  bool any = false;
  for (;;) {
    TAKT_ASSIGN(const std::optional<sensors::LogMessage> message, log->next());
    if (!message) break;
    const auto sensor = sensor_of(rig, message->channel->topic);
    if (!sensor) continue;
    stamps[*sensor].push_back(message->capture);
    any = true;
  }
  if (!any) return fail(Code::kInput, log_path + ": has no messages on the topics of rig '" + rig.name + "'");
  for (auto& of_sensor : stamps) std::sort(of_sensor.begin(), of_sensor.end());
  return stamps;
}

namespace {

// Decodes what `wants` and hands it on.
Status walk(const std::string& log_path, const sensors::Rig& rig, const std::vector<std::size_t>& sensors,
            const std::function<bool(std::size_t, SensorTime)>& wants,
            const std::function<Status(std::size_t, const Sample&)>& use) {
  TAKT_ASSIGN(const auto log, sensors::open_log(log_path));
  log->select(topics_of(rig, sensors));
  std::vector<std::unique_ptr<sensors::Decoder>> decoders(rig.sensors.size());
  for (;;) {
    TAKT_ASSIGN(const std::optional<sensors::LogMessage> message, log->next());
    if (!message) return {};
    const auto sensor = sensor_of(rig, message->channel->topic);
    if (!sensor || !wants(*sensor, message->capture)) continue;
    if (!decoders[*sensor]) {
      TAKT_ASSIGN(decoders[*sensor], make_decoder(rig.sensors[*sensor], *message->channel));
    }
    sensors::Decoder& decoder = *decoders[*sensor];
    auto payload = std::make_shared<Payload>(decoder.payload_capacity());
    if (!decoder.decode(message->bytes, payload->bytes()).ok) continue;
    TAKT_RETURN_IF_ERROR(use(*sensor, {message->capture, std::move(payload)}));
  }
}

}  // namespace

Status for_each_sample(const std::string& log_path, const sensors::Rig& rig, const std::vector<std::size_t>& sensors,
                       const std::function<Status(std::size_t, const Sample&)>& use) {
  return walk(
      log_path, rig, sensors, [](std::size_t, SensorTime) { return true; }, use);
}

Result<std::vector<std::vector<Sample>>> read_samples(const std::string& log_path, const sensors::Rig& rig,
                                                      const std::vector<std::vector<SensorTime>>& wanted) {
  std::vector<std::vector<Sample>> out(rig.sensors.size());
  const auto wants = [&](std::size_t sensor, SensorTime stamp) {
    return std::find(wanted[sensor].begin(), wanted[sensor].end(), stamp) != wanted[sensor].end();
  };
  TAKT_RETURN_IF_ERROR(walk(log_path, rig, all_of(rig), wants, [&](std::size_t sensor, const Sample& sample) -> Status {
    out[sensor].push_back(sample);
    return {};
  }));
  return out;
}

std::vector<VehiclePoint> vehicle_points(const sensors::PointCloud& cloud, const sensors::RigSensor& sensor) {
  std::vector<VehiclePoint> out(cloud.count);
  for (std::uint32_t i = 0; i < cloud.count; ++i) {
    out[i] = narrow(sensor.vehicle_from_sensor.apply(
        {static_cast<double>(cloud.x()[i]), static_cast<double>(cloud.y()[i]), static_cast<double>(cloud.z()[i])}));
  }
  return out;
}

std::vector<VehiclePoint> landmarks(const Sample& sweep, const sensors::RigSensor& sensor, const VehicleBox& box) {
  constexpr std::size_t kFewest = 300;
  constexpr double kAboveGround = 0.3;
  std::vector<VehiclePoint> points = vehicle_points(sweep.payload->as<sensors::PointCloud>(), sensor);
  std::erase_if(points, [&](const VehiclePoint& p) {
    const float range = std::hypot(p[0], p[1]);
    return box.contains(p) || range > 60 || range < 2;
  });
  const auto ground = sensors::fit_ground(points);
  if (!ground) return points;
  std::vector<VehiclePoint> standing;
  for (const VehiclePoint& p : points) {
    double height = -ground->offset;
    for (std::size_t i = 0; i < 3; ++i) height += ground->normal[i] * static_cast<double>(p[i]);
    if (height > kAboveGround) standing.push_back(p);
  }
  return standing.size() < kFewest ? points : standing;
}

std::vector<VehiclePoint> vehicle_points_at(const Sample& sweep, const sensors::RigSensor& sensor,
                                            const sensors::EgoMotion& ego, SensorTime at) {
  const auto& cloud = sweep.payload->as<sensors::PointCloud>();
  std::vector<VehiclePoint> out = vehicle_points(cloud, sensor);
  for (std::uint32_t i = 0; i < cloud.count; ++i) {
    Duration late = at - sweep.stamp;  // the vehicle moved on for so long after it saw the point
    if (cloud.motion_compensated == 0) late = late - Duration{cloud.time_ns()[i]};
    const double s = late.seconds();
    const double turn = ego.angular_velocity[2] * s;  // small: sin a = a, cos a = 1 - a^2 / 2
    const double c = 1 - turn * turn / 2;
    const double x = static_cast<double>(out[i][0]) - ego.velocity[0] * s;
    const double y = static_cast<double>(out[i][1]) - ego.velocity[1] * s;
    out[i][0] = static_cast<float>(c * x + turn * y);
    out[i][1] = static_cast<float>(c * y - turn * x);
  }
  return out;
}

}  // namespace takt::pipeline
