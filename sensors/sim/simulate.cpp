#include "sensors/sim/simulate.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "kernels/reference/elementary.h"
#include "runtime/base/file.h"
#include "sensors/camera/camera_decoder.h"
#include "sensors/camera/jpeg_encoder.h"
#include "sensors/logs/encode.h"
#include "sensors/logs/mcap_writer.h"
#include "sensors/sim/camera.h"
#include "sensors/sim/lidar.h"
#include "sensors/sim/radar.h"
#include "sensors/sim/random.h"
#include "sensors/sim/world.h"

namespace takt::sensors {
namespace sim {
namespace {

enum Purpose : std::uint64_t { kArrivalJitter = 501, kEgoNoise = 502 };

constexpr std::size_t kTruth = static_cast<std::size_t>(-1);  // in place of a sensor's index
constexpr double kTruthRange = 120;                           // m
constexpr std::uint64_t kTransformsEvery = 10;                // ego messages between repeated mounting poses

// One message to be made: sample `index` of a sensor, all times from the scene's start.
struct Event {
  Duration arrival;
  std::size_t sensor = 0;
  std::uint64_t index = 0;
  Duration stamp;
};

// Instant of sample k without accumulated rounding: whole rates are divided absolutely, 30 Hz included.
Duration sample_time(Duration period, std::uint64_t k) {
  const std::int64_t rate = (1'000'000'000 + period.ns / 2) / period.ns;
  const bool whole_rate = rate > 0 && (1'000'000'000 + rate / 2) / rate == period.ns;
  const auto n = static_cast<std::int64_t>(k);
  if (!whole_rate) return period * n;
  return {n / rate * 1'000'000'000 + (n % rate * 1'000'000'000 + rate / 2) / rate};
}

// From the first captured byte to the stamp reference.
Duration before_stamp(const RigSensor& sensor) { return sensor.duration - sensor.captured(); }

std::array<double, 4> quaternion_of_yaw(double yaw) { return {kernels::cos(yaw / 2), 0, 0, kernels::sin(yaw / 2)}; }

std::array<double, 3> array_of(Vec3 v) { return {v.x, v.y, v.z}; }

class Drive {
 public:
  Drive(const Scene& scene, const Rig& rig, McapWriter writer)
      : world_(scene), scene_(world_.scene()), rig_(rig), writer_(std::move(writer)) {}

  Status run(const SimulationProgress& progress) {
    TAKT_RETURN_IF_ERROR(add_channels());
    TAKT_RETURN_IF_ERROR(describe());
    const std::vector<Event> events = plan();
    for (std::size_t i = 0; i < events.size(); ++i) {
      TAKT_RETURN_IF_ERROR(write(events[i]));
      if (progress && !progress(static_cast<double>(i + 1), static_cast<double>(events.size()))) {
        return fail(Code::kInterrupted, "the simulation was stopped; nothing was written");
      }
    }
    return writer_.finish();
  }

 private:
  struct Channels {
    std::uint16_t main = 0;
    std::uint16_t twin = 0;  // calibration of a camera; takt.* beside its displayable form
  };

  Result<std::uint16_t> add_channel(const std::string& topic, const char* schema_name, Compression compression) {
    TAKT_ASSIGN(const LogSchema schema, log_schema(schema_name));
    TAKT_ASSIGN(const std::uint16_t id, writer_.add_schema(schema));
    return writer_.add_channel(topic, schema.encoding, id, {}, compression);
  }

  // The displayable topic beside "/x/takt" is "/x".
  static std::string displayable(const std::string& topic) {
    const std::string suffix = "/takt";
    if (topic.size() > suffix.size() && topic.ends_with(suffix)) return topic.substr(0, topic.size() - suffix.size());
    return topic + "/pose";
  }

  Status add_channels() {
    constexpr auto kPacked = Compression::kZstd;
    for (const RigSensor& sensor : rig_.sensors) {
      Channels& channels = channels_.emplace_back();
      switch (sensor.kind) {
        case SensorKind::kCamera: {
          TAKT_ASSIGN(channels.main, add_channel(sensor.topic, "foxglove.CompressedImage", Compression::kNone));
          const std::string base = sensor.topic.substr(0, sensor.topic.rfind('/'));
          TAKT_ASSIGN(channels.twin, add_channel(base + "/calibration", "foxglove.CameraCalibration", kPacked));
          cameras_.push_back(std::make_unique<Camera>(world_, sensor));
          break;
        }
        case SensorKind::kLidar:
        case SensorKind::kRadar: {
          TAKT_ASSIGN(channels.main, add_channel(sensor.topic, "foxglove.PointCloud", kPacked));
          break;
        }
        case SensorKind::kEgo: {
          TAKT_ASSIGN(channels.main, add_channel(sensor.topic, "takt.EgoMotion", kPacked));
          TAKT_ASSIGN(channels.twin, add_channel(displayable(sensor.topic), "foxglove.PoseInFrame", kPacked));
          break;
        }
      }
      if (sensor.kind != SensorKind::kCamera) cameras_.push_back(nullptr);
      if (sensor.kind == SensorKind::kLidar && !lidar_) lidar_ = channels_.size() - 1;
    }
    TAKT_ASSIGN(truth_.main, add_channel("/truth/takt", "takt.Truth", kPacked));
    TAKT_ASSIGN(truth_.twin, add_channel("/truth", "foxglove.SceneUpdate", kPacked));
    TAKT_ASSIGN(transforms_, add_channel("/tf", "foxglove.FrameTransforms", kPacked));
    return {};
  }

  // What made this log: the two files themselves and the versions that its bytes depend on.
  Status describe() {
    for (const std::string& file : {scene_.file, rig_.file}) {
      if (!std::filesystem::exists(file)) continue;  // parsed from text
      TAKT_ASSIGN(const std::string text, read_file(file));
      const std::string name = std::filesystem::path(file).filename().string();
      TAKT_RETURN_IF_ERROR(writer_.add_attachment(name, "application/yaml", scene_.start, text));
    }
    return writer_.add_metadata("takt.drive", {{"drive", "simulated"},
                                               {"scene", scene_.name},
                                               {"rig", rig_.name},
                                               {"seed", std::to_string(scene_.seed)},
                                               {"jpeg", jpeg_library_version()}});
  }

  // Every message of the drive in the order of arrival. A sample belongs to it when it is captured between start and
  // end; the last ones arrive a little later.
  [[nodiscard]] std::vector<Event> plan() const {
    std::vector<Event> events;
    for (std::size_t s = 0; s < rig_.sensors.size(); ++s) {
      const RigSensor& sensor = rig_.sensors[s];
      const Duration phase = sensor.phase.value_or(Duration{});
      for (std::uint64_t k = 0;; ++k) {
        const Duration stamp = sample_time(sensor.period, k) + phase;
        if (stamp + sensor.captured() > scene_.duration) break;
        if (stamp < before_stamp(sensor)) continue;
        Random random(scene_.seed, kArrivalJitter, s << 32 | k);
        const Duration jitter{static_cast<std::int64_t>(static_cast<double>(sensor.jitter.ns) * random.uniform())};
        events.push_back({stamp + sensor.delay_min() + jitter, s, k, stamp});
      }
    }
    for (std::uint64_t k = 0;; ++k) {
      const Duration stamp = sample_time(scene_.truth_period, k);
      if (stamp > scene_.duration) break;
      events.push_back({stamp, kTruth, k, stamp});
    }
    std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
      return std::tie(a.arrival, a.sensor, a.index) < std::tie(b.arrival, b.sensor, b.index);
    });
    return events;
  }

  Status put(std::uint16_t channel, const Event& event, const std::string& bytes) {
    return writer_.write(channel, scene_.start + event.arrival, scene_.start + event.stamp, sequence_[channel]++,
                         bytes);
  }

  Status write(const Event& event) {
    if (event.sensor == kTruth) return write_truth(event);
    switch (rig_.sensors[event.sensor].kind) {
      case SensorKind::kCamera: return write_picture(event);
      case SensorKind::kLidar: return write_cloud(event);
      case SensorKind::kRadar: return write_scan(event);
      case SensorKind::kEgo: return write_ego(event);
    }
    return {};
  }

  Status write_picture(const Event& event) {
    const RigSensor& sensor = rig_.sensors[event.sensor];
    const CameraModel& model = *sensor.camera;
    // One instant stands for the whole exposure: its middle.
    const Duration middle = event.stamp - before_stamp(sensor) + Duration{sensor.duration.ns / 2};
    const auto& rgb = cameras_[event.sensor]->render(event.index, middle.seconds());
    TAKT_ASSIGN(const std::string jpeg, encode_jpeg(rgb, model.width, model.height, scene_.camera.jpeg_quality));
    const SensorTime stamp = scene_.start + event.stamp;
    TAKT_RETURN_IF_ERROR(
        put(channels_[event.sensor].main, event,
            encode(log::CompressedImage{stamp, sensor.frame_id, "jpeg", std::as_bytes(std::span(jpeg))})));
    return put(channels_[event.sensor].twin, event,
               encode(log::CameraCalibration{stamp, sensor.frame_id, model.width, model.height, model.fx, model.fy,
                                             model.cx, model.cy, model.distortion}));
  }

  // Sweeps are made once and wait here until their message is due: truth asks for them earlier.
  const Sweep& sweep(std::size_t sensor_index, std::uint64_t k) {
    const auto key = std::pair(sensor_index, k);
    const auto found = sweeps_.find(key);
    if (found != sweeps_.end()) return found->second;
    const RigSensor& sensor = rig_.sensors[sensor_index];
    const Duration offset = before_stamp(sensor);
    const Duration start = sample_time(sensor.period, k) + sensor.phase.value_or(Duration{}) - offset;
    Sweep& made = sweeps_[key];
    simulate_sweep(world_, sensor, k, start.seconds(), offset, &made);
    return made;
  }

  Status write_cloud(const Event& event) {
    const RigSensor& sensor = rig_.sensors[event.sensor];
    const Sweep& made = sweep(event.sensor, event.index);
    const Status status = put(channels_[event.sensor].main, event,
                              encode_lidar(scene_.start + event.stamp, sensor.frame_id, made.points));
    if (event.index > 1) sweeps_.erase(std::pair(event.sensor, event.index - 2));
    return status;
  }

  Status write_scan(const Event& event) {
    const RigSensor& sensor = rig_.sensors[event.sensor];
    simulate_scan(world_, sensor, event.index, event.stamp.seconds(), &returns_);
    return put(channels_[event.sensor].main, event,
               encode_radar(scene_.start + event.stamp, sensor.frame_id, returns_));
  }

  Status write_ego(const Event& event) {
    const SensorTime stamp = scene_.start + event.stamp;
    const Motion motion = world_.ego(event.stamp.seconds());
    Random random(scene_.seed, kEgoNoise, event.index);
    log::EgoMotion ego;
    ego.stamp = stamp;
    ego.world_frame = rig_.world_frame;
    ego.vehicle_frame = rig_.vehicle_frame;
    ego.pose.position = {motion.position.x + 0.003 * random.gauss(), motion.position.y + 0.003 * random.gauss(), 0};
    ego.pose.orientation = quaternion_of_yaw(motion.yaw + 0.0001 * random.gauss());
    const Vec3 velocity = motion.rotate_back(motion.velocity);
    ego.velocity = {velocity.x + 0.01 * random.gauss(), velocity.y + 0.005 * random.gauss(), 0};
    ego.angular_velocity = {0, 0, motion.yaw_rate + 0.0005 * random.gauss()};
    TAKT_RETURN_IF_ERROR(put(channels_[event.sensor].main, event, encode(ego)));
    TAKT_RETURN_IF_ERROR(
        put(channels_[event.sensor].twin, event, encode(log::PoseInFrame{stamp, rig_.world_frame, ego.pose})));
    std::vector<log::FrameTransform> transforms{{stamp, rig_.world_frame, rig_.vehicle_frame, ego.pose}};
    if (event.index % kTransformsEvery == 0) {
      for (const RigSensor& sensor : rig_.sensors) {
        if (sensor.kind == SensorKind::kEgo) continue;
        const Transform& mount = sensor.vehicle_from_sensor;
        transforms.push_back({stamp, rig_.vehicle_frame, sensor.frame_id, {mount.translation, mount.quaternion()}});
      }
    }
    return put(transforms_, event, encode(transforms));
  }

  // Returns per actor of the sweep during which `t` lies (the last one for instants after it).
  std::vector<std::uint32_t> lidar_points_at(Duration t) {
    if (!lidar_) return std::vector<std::uint32_t>(scene_.actors.size(), 0);
    const RigSensor& sensor = rig_.sensors[*lidar_];
    std::optional<std::uint64_t> chosen;
    for (std::uint64_t k = 0;; ++k) {
      const Duration stamp = sample_time(sensor.period, k) + sensor.phase.value_or(Duration{});
      if (stamp + sensor.captured() > scene_.duration) break;
      if (stamp < before_stamp(sensor)) continue;
      chosen = k;
      if (stamp + sensor.captured() >= t) break;
    }
    return chosen ? sweep(*lidar_, *chosen).actor_points : std::vector<std::uint32_t>(scene_.actors.size(), 0);
  }

  Status write_truth(const Event& event) {
    const double t = event.stamp.seconds();
    const Motion ego = world_.ego(t);
    log::Truth truth;
    truth.stamp = scene_.start + event.stamp;
    truth.frame_id = rig_.vehicle_frame;
    const std::vector<std::uint32_t> points = lidar_points_at(event.stamp);
    for (std::size_t i = 0; i < scene_.actors.size(); ++i) {
      const Actor& actor = scene_.actors[i];
      const Motion motion = world_.actor(i, t);
      const Vec3 base = ego.to_local(motion.position);
      if (base.x * base.x + base.y * base.y > kTruthRange * kTruthRange) continue;
      log::TruthBox& box = truth.boxes.emplace_back();
      box.id = actor.id;
      box.object_class = actor.kind == ActorKind::kPedestrian ? 2 : 1;
      box.pose.position = array_of(base + Vec3{0, 0, actor.height / 2});
      box.pose.orientation = quaternion_of_yaw(kernels::wrap_angle(motion.yaw - ego.yaw));
      box.size = {actor.length, actor.width, actor.height};
      box.velocity = array_of(ego.rotate_back(motion.velocity));
      box.lidar_points = points[i];
    }
    TAKT_RETURN_IF_ERROR(put(truth_.main, event, encode(truth)));
    return put(truth_.twin, event, encode(scene_of(truth, scene_.truth_period * 2)));
  }

  const World world_;
  const Scene& scene_;
  const Rig& rig_;
  McapWriter writer_;
  std::vector<Channels> channels_;                // by sensor
  std::vector<std::unique_ptr<Camera>> cameras_;  // by sensor, null for others
  std::optional<std::size_t> lidar_;              // the first one counts for the truth
  Channels truth_;
  std::uint16_t transforms_ = 0;
  std::map<std::uint16_t, std::uint32_t> sequence_;  // by channel
  std::map<std::pair<std::size_t, std::uint64_t>, Sweep> sweeps_;
  std::vector<RadarReturn> returns_;
};

}  // namespace
}  // namespace sim

Status simulate(const Scene& scene, const Rig& rig, const std::string& out, const SimulationProgress& progress) {
  if (rig.drive != "simulated") {
    return fail(Code::kConfiguration, rig.file + ": the rig says 'drive: " + rig.drive +
                                          "'; a scene can only be driven by a rig with 'drive: simulated'");
  }
  for (const RigSensor& sensor : rig.sensors) {
    if (sensor.declared_delay || sensor.motion_compensated || sensor.stamp == StampReference::kPerPoint) {
      return fail(Code::kConfiguration,
                  rig.file + ": sensor '" + sensor.name +
                      "': the simulator gives every message its own arrival, stamps sweeps at their start or end and "
                      "leaves points uncompensated; remove declared_delay_ms, motion_compensated and per_point");
    }
  }
  TAKT_ASSIGN(McapWriter writer, McapWriter::create(out));
  return sim::Drive(scene, rig, std::move(writer)).run(progress);
}

Status simulate(const Scene& scene, const std::string& out, const SimulationProgress& progress) {
  TAKT_ASSIGN(const Rig rig, load_rig(scene.rig_file));
  return simulate(scene, rig, out, progress);
}

}  // namespace takt::sensors
