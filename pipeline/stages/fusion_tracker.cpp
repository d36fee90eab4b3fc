#include "pipeline/stages/fusion_tracker.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "kernels/reference/elementary.h"
#include "pipeline/stages/adversarial.h"
#include "pipeline/stages/ego_trajectory.h"

namespace takt::pipeline {

namespace {

constexpr std::size_t kMaxStageInputs = 32;                 // bits of missing_inputs
constexpr double kMaxRate = 100;                            // m/s; a larger range rate is noise
constexpr double kMaxExtent = 50;                           // m; a longer box is noise
constexpr std::int64_t kClockTolerance_ns = 10'000'000;     // a stamp may lie after now by this much
constexpr std::int64_t kAdversarialPeriod_ns = 50'000'000;  // of stamps that follow from the seed alone

// What survives a job.
struct FusionState {
  EgoTrajectory ego;
  std::array<std::int64_t, kMaxStageInputs> used_ns;  // newest stamp used, by input
  TrackTable table;

  FusionState() { used_ns.fill(kNever); }
};

struct ListInput {
  Modality modality = Modality::kLidar;
  double x = 0, y = 0;  // of the sensor, vehicle frame
};

bool is_ego(const StageConnection& input) {
  return input.sensor != nullptr && input.sensor->kind == sensors::SensorKind::kEgo;
}

bool finite(const Object& o) { return std::isfinite(o.x) && std::isfinite(o.y) && std::isfinite(o.z); }

bool usable_box(const Object& o) {
  const auto extent = [](float v) { return v > 0.05F && v < kMaxExtent; };
  return (o.flags & kHasBox) != 0 && extent(o.length) && extent(o.width) && extent(o.height) && std::isfinite(o.yaw);
}

bool usable_rate(const Object& o) {
  if ((o.flags & kHasRangeRate) == 0 || !(std::fabs(o.range_rate) < kMaxRate)) return false;
  const float norm2 = o.ray_x * o.ray_x + o.ray_y * o.ray_y;
  return norm2 > 0.5F && norm2 < 2.0F;
}

// Noise of a position in the vehicle frame: along and across the ray from the sensor. The object's own variance stands
// for the weaker of the two: a radar's across the ray, a camera's along it; a LiDAR's for both.
GroundCovariance noise_of(const Object& o, const ListInput& input, const SensorModel& model) {
  const double dx = o.x - input.x, dy = o.y - input.y;
  const double range2 = dx * dx + dy * dy;
  const bool given = std::isfinite(o.position_variance) && o.position_variance > 0;
  double along = model.range_sigma_m * model.range_sigma_m + model.range_sigma_share * model.range_sigma_share * range2;
  double across =
      model.range_sigma_m * model.range_sigma_m + model.bearing_sigma_rad * model.bearing_sigma_rad * range2;
  if (given) {
    const double own = o.position_variance;
    switch (input.modality) {
      case Modality::kLidar: along = across = std::max(own, 0.01); break;
      case Modality::kRadar: across = std::max(across, own); break;
      case Modality::kCamera: along = std::max(along, own); break;
    }
  }
  if (range2 < 1e-6) return {std::max(along, across), 0, std::max(along, across)};
  const double cc = dx * dx / range2, ss = dy * dy / range2, cs = dx * dy / range2;
  return {cc * along + ss * across, cs * (along - across), ss * along + cc * across};
}

class FusionTracker final : public Stage {
 public:
  FusionTracker(const StageSpec& spec, const FusionParameters& parameters)
      : parameters_(parameters), connections_(spec.inputs), lists_(spec.inputs.size()), tracker_(parameters.tracker) {
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      if (is_ego(connections_[i])) continue;
      const sensors::RigSensor& sensor = spec.rig->sensors[connections_[i].sensor_index];
      lists_[i].x = sensor.vehicle_from_sensor.translation[0];
      lists_[i].y = sensor.vehicle_from_sensor.translation[1];
      lists_[i].modality = sensor.kind == sensors::SensorKind::kCamera  ? Modality::kCamera
                           : sensor.kind == sensors::SensorKind::kRadar ? Modality::kRadar
                                                                        : Modality::kLidar;
    }
  }

  [[nodiscard]] int phases() const override { return 1; }
  [[nodiscard]] bool parallel(int) const override { return false; }
  [[nodiscard]] std::uint32_t output_schema() const override { return kTrackListSchema; }
  [[nodiscard]] std::uint64_t output_bytes() const override { return sizeof(TrackList); }
  void published() override { current_ ^= 1U; }

  void run(int, int part, int, StageJob& job) override {
    if (part != 0) return;
    FusionState& next = begin_from(halves_[current_], halves_[current_ ^ 1U]);
    const Arrivals arrivals = take_inputs(job, next);
    for (std::size_t k = 0; k < arrivals.count; ++k) {
      const std::size_t input = arrivals.order[k];
      to_odometry(*list_of(job.inputs[input]), input, next.ego, job);
      if (!tracker_.apply(detections_, next.table)) job.repaired = true;
    }
    tracker_.finish(job.now.ns, next.table);
    write(next, arrivals, job);
  }

  void adversarial_input(std::size_t input, std::uint32_t seed, transport::ChunkHeader& header,
                         std::span<std::byte> payload) const override;

 private:
  // The new lists of a job in the order in which they are applied: (stamp, input).
  struct Arrivals {
    std::array<std::size_t, kMaxStageInputs> order{};
    std::size_t count = 0;
    std::uint32_t missing = 0, repeated = 0;
  };

  FusionState& begin_from(const FusionState& current, FusionState& next) const {
    next.ego = current.ego;
    next.used_ns = current.used_ns;
    tracker_.begin(current.table, next.table);
    return next;
  }
  [[nodiscard]] static const ObjectList* list_of(const StageInput& input);
  Arrivals take_inputs(StageJob& job, FusionState& state) const;
  void to_odometry(const ObjectList& list, std::size_t input, const EgoTrajectory& ego, StageJob& job);
  void write(const FusionState& state, const Arrivals& arrivals, StageJob& job) const;

  FusionParameters parameters_;
  std::vector<StageConnection> connections_;
  std::vector<ListInput> lists_;  // by input
  Tracker tracker_;
  DetectionList detections_;
  std::array<FusionState, 2> halves_;
  std::uint32_t current_ = 0;
};

const ObjectList* FusionTracker::list_of(const StageInput& input) {
  if (!input.chunk || input.chunk.payload == nullptr) return nullptr;
  if (input.chunk.header->payload_bytes < offsetof(ObjectList, objects)) return nullptr;
  return reinterpret_cast<const ObjectList*>(input.chunk.payload);
}

FusionTracker::Arrivals FusionTracker::take_inputs(StageJob& job, FusionState& state) const {
  Arrivals arrivals;
  const std::size_t inputs = std::min(job.inputs.size(), connections_.size());
  const auto stamp_of = [&](std::size_t i) { return job.inputs[i].chunk.header->capture_ns; };
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    const std::uint32_t bit = 1U << i;
    const bool ego = is_ego(connections_[i]);
    const StageInput input = i < inputs ? job.inputs[i] : StageInput{};
    const bool there = ego ? input.chunk && input.chunk.payload != nullptr &&
                                 input.chunk.header->payload_bytes >= sizeof(sensors::EgoMotion)
                           : list_of(input) != nullptr;
    const std::int64_t stamp = there ? input.chunk.header->capture_ns : transport::kNoStamp;
    if (stamp == transport::kNoStamp) {
      arrivals.missing |= bit;
      continue;
    }
    if (stamp <= state.used_ns[i]) {
      arrivals.repeated |= bit;
      continue;
    }
    if (stamp - job.now.ns > kClockTolerance_ns) {
      job.repaired = true;
      continue;
    }
    if (ego) {
      const auto& motion = *reinterpret_cast<const sensors::EgoMotion*>(input.chunk.payload);
      if (!state.ego.add(stamp, motion, parameters_.ego_jump_limit_m)) {
        job.repaired = true;
        continue;
      }
    } else {
      std::size_t at = arrivals.count++;
      for (; at > 0 && stamp < stamp_of(arrivals.order[at - 1]); --at) arrivals.order[at] = arrivals.order[at - 1];
      arrivals.order[at] = i;
    }
    state.used_ns[i] = stamp;
  }
  return arrivals;
}

void FusionTracker::to_odometry(const ObjectList& list, std::size_t input, const EgoTrajectory& ego, StageJob& job) {
  const std::int64_t stamp = job.inputs[input].chunk.header->capture_ns;
  const PlanarPose pose = ego.pose(stamp);
  const PlanarTransform odometry(pose);
  const ListInput& from = lists_[input];
  const SensorModel& model = parameters_.tracker.sensors[static_cast<std::size_t>(from.modality)];
  DetectionList& out = detections_;
  out.stamp_ns = stamp;
  out.sensor = static_cast<std::uint32_t>(connections_[input].sensor_index);
  out.modality = from.modality;
  out.sensor_x = from.x;
  out.sensor_y = from.y;
  odometry.point(out.sensor_x, out.sensor_y);
  out.count = 0;

  const std::uint64_t room =
      (job.inputs[input].chunk.header->payload_bytes - offsetof(ObjectList, objects)) / sizeof(Object);
  const std::uint64_t count = std::min({std::uint64_t{list.count}, room, std::uint64_t{kMaxObjects}});
  if (count < list.count) job.repaired = true;
  for (std::uint64_t i = 0; i < count; ++i) {
    const Object& o = list.objects[i];
    if ((o.flags & kHasPosition) == 0) continue;
    const double range2 = double{o.x} * o.x + double{o.y} * o.y;
    if (!finite(o) || range2 > parameters_.range_max_m * parameters_.range_max_m) {
      job.repaired = true;
      continue;
    }
    Detection& d = out.detections[out.count++];
    d = Detection{};
    d.x = o.x;
    d.y = o.y;
    d.z = o.z;
    d.range2 = range2;
    d.object_class =
        static_cast<std::uint32_t>(o.object_class) < kObjectClasses ? o.object_class : ObjectClass::kUnknown;
    d.has_box = usable_box(o);
    if (d.has_box) {
      d.length = o.length;
      d.width = o.width;
      d.height = o.height;
      d.yaw = kernels::wrap_angle(o.yaw + pose.yaw);
    } else if (model.surface_offset_m != 0) {
      const double dx = d.x - from.x, dy = d.y - from.y;
      const double range = std::sqrt(dx * dx + dy * dy);
      if (range > 1) {
        d.x += model.surface_offset_m * dx / range;
        d.y += model.surface_offset_m * dy / range;
      }
    }
    d.has_rate = usable_rate(o);
    if (d.has_rate) {
      const double norm = std::sqrt(double{o.ray_x} * o.ray_x + double{o.ray_y} * o.ray_y);
      d.rate = o.range_rate;
      d.ray_x = o.ray_x / norm;
      d.ray_y = o.ray_y / norm;
      odometry.direction(d.ray_x, d.ray_y);
    }
    // The covariance turns with the vehicle: R C R'.
    const GroundCovariance n = noise_of(o, from, model);
    double ax = n.xx, ay = n.xy, bx = n.xy, by = n.yy;
    odometry.direction(ax, ay);
    odometry.direction(bx, by);
    odometry.direction(ax, bx);
    odometry.direction(ay, by);
    d.noise = {ax, 0.5 * (ay + bx), by};
    odometry.point(d.x, d.y);
  }
}

void FusionTracker::write(const FusionState& state, const Arrivals& arrivals, StageJob& job) const {
  auto& out = *reinterpret_cast<TrackList*>(job.output);
  out.count = 0;
  out.dropped = tracker_.dropped();
  out.missing_inputs = arrivals.missing;
  out.repeat_inputs = arrivals.repeated;
  out.stamp_ns = job.now.ns;

  const PlanarPose pose = state.ego.pose(job.now.ns);
  const PlanarTransform odometry(pose);
  const TrackTable& table = state.table;
  const double dt = table.time_ns == kNever ? 0 : static_cast<double>(job.now.ns - table.time_ns) * 1e-9;
  for (std::uint32_t i = 0; i < table.count; ++i) {
    const TrackState& track = table.tracks[i];
    if (!track.alive || !track.confirmed) continue;
    TrackFilter now = track.filter;
    now.predict(dt, parameters_.tracker.acceleration_density_m2ps3);
    double x = now.state[0], y = now.state[1], vx = now.state[2], vy = now.state[3];
    odometry.inverse_point(x, y);
    odometry.inverse_direction(vx, vy);
    Track& t = out.tracks[out.count++];
    t.id = track.id;
    t.object_class = track.object_class();
    t.x = static_cast<float>(x);
    t.y = static_cast<float>(y);
    t.z = static_cast<float>(track.z);
    t.length = static_cast<float>(track.length);
    t.width = static_cast<float>(track.width);
    t.height = static_cast<float>(track.height);
    t.yaw = static_cast<float>(kernels::wrap_angle(track.yaw - pose.yaw));
    t.vx = static_cast<float>(vx);
    t.vy = static_cast<float>(vy);
    t.position_variance = static_cast<float>(0.5 * (now.covariance[0][0] + now.covariance[1][1]));
    t.score = static_cast<float>(1 / (1 + kernels::exp(-track.log_odds)));
    t.hits = track.hits;
    t.misses = track.misses;
    t.sensors = track.sensors_now;
  }

  transport::ChunkHeader& header = *job.output_header;
  header.schema = kTrackListSchema;
  header.payload_bytes = offsetof(TrackList, tracks) + std::uint64_t{out.count} * sizeof(Track);
  header.sources.fill({});
  header.capture_ns = transport::kNoStamp;
  const auto merge = [&](std::size_t sensor, std::int64_t oldest, std::int64_t newest) {
    if (newest == transport::kNoStamp) return;
    transport::SourceStamps& source = header.sources[sensor];
    if (source.newest_ns == transport::kNoStamp) source = {oldest, newest};
    source.oldest_ns = std::min(source.oldest_ns, oldest);
    source.newest_ns = std::max(source.newest_ns, newest);
    header.capture_ns = std::max(header.capture_ns, newest);
  };
  for (std::size_t i = 0; i < std::min(job.inputs.size(), connections_.size()); ++i) {
    if ((arrivals.missing >> i & 1U) != 0) continue;
    const transport::ChunkHeader& from = *job.inputs[i].chunk.header;
    for (std::size_t s = 0; s < transport::kMaxSources; ++s)
      merge(s, from.sources[s].oldest_ns, from.sources[s].newest_ns);
    // A sensor's own chunk may leave its only source unsaid.
    if (is_ego(connections_[i])) merge(connections_[i].sensor_index, from.capture_ns, from.capture_ns);
  }
}

// Full lists in which every object lies in the gates of several tracks but in nobody's box, so that the table fills up
// and the assignment has to look everywhere. The stamp is header.capture_ns where the caller set one, else it follows
// from the seed: a caller that counts seeds up gives every job new lists.
void FusionTracker::adversarial_input(std::size_t input, std::uint32_t seed, transport::ChunkHeader& header,
                                      std::span<std::byte> payload) const {
  if (header.capture_ns == transport::kNoStamp) header.capture_ns = std::int64_t{seed} * kAdversarialPeriod_ns;
  const std::int64_t stamp = header.capture_ns;
  if (is_ego(connections_[input])) {
    write_ego_input(header, payload);
    header.capture_ns = header.arrival_ns = stamp;
    return;
  }
  if (payload.size() < sizeof(ObjectList)) return;
  header.schema = kObjectListSchema;
  header.payload_bytes = sizeof(ObjectList);
  header.sources[connections_[input].sensor_index] = {stamp, stamp};
  auto& list = *reinterpret_cast<ObjectList*>(payload.data());
  list = ObjectList{};
  list.count = kMaxObjects;
  list.sensor = static_cast<std::uint32_t>(connections_[input].sensor_index);
  list.stamp_ns = stamp;
  SplitMix random(seed);
  constexpr std::uint32_t kSide = 16;
  constexpr float kSpacing = 0.9F;
  for (std::uint32_t i = 0; i < kMaxObjects; ++i) {
    Object& o = list.objects[i];
    o.x = kSpacing * static_cast<float>(i % kSide) - 7 + random.uniform(-0.1F, 0.1F);
    o.y = kSpacing * static_cast<float>(i / kSide) - 7 + random.uniform(-0.1F, 0.1F);
    o.z = 0.9F;
    o.length = o.width = 0.5F;
    o.height = 1.8F;
    o.yaw = random.uniform(-3, 3);
    o.score = 0.5F;
    o.position_variance = 1;
    o.object_class = ObjectClass::kPedestrian;
    o.flags = kHasPosition | kHasBox;
    if (lists_[input].modality == Modality::kRadar) {
      const float range = std::sqrt(o.x * o.x + o.y * o.y) + 1e-3F;
      o.flags |= kHasRangeRate;
      o.range_rate = random.uniform(-1, 1);
      o.ray_x = o.x / range;
      o.ray_y = o.y / range;
    }
  }
}

}  // namespace

FusionParameters read_fusion_parameters(const YamlNode& params) {
  FusionParameters p;
  TrackerParameters& t = p.tracker;
  SensorModel& lidar = t.sensors[static_cast<std::size_t>(Modality::kLidar)];
  SensorModel& radar = t.sensors[static_cast<std::size_t>(Modality::kRadar)];
  SensorModel& camera = t.sensors[static_cast<std::size_t>(Modality::kCamera)];
  lidar = {.range_sigma_m = 0.4, .hit_log_odds = 1.0, .miss_log_odds = 0.9, .class_weight = 1};
  radar = {.range_sigma_m = 1.0,
           .bearing_sigma_rad = 0.03,
           .rate_sigma_mps = 0.5,
           .surface_offset_m = 1.5,
           .hit_log_odds = 0.5,
           .miss_log_odds = 0.2,
           .class_weight = 0.2};
  camera = {.range_sigma_m = 0.8,
            .range_sigma_share = 0.12,
            .bearing_sigma_rad = 0.02,
            .hit_log_odds = 0.4,
            .miss_log_odds = 0.1,
            .class_weight = 0.5};

  const auto number = [](const YamlNode& node, const char* key, double& value, double min, double max) {
    if (const auto found = node.find(key)) value = found->number(min, max);
  };
  const auto milliseconds = [&](const char* key, std::int64_t& value) {
    if (const auto found = params.find(key)) value = found->milliseconds(1, 10'000).ns;
  };
  number(params, "acceleration_density_m2ps3", t.acceleration_density_m2ps3, 1e-3, 1e3);
  number(params, "initial_speed_sigma_mps", t.initial_speed_sigma_mps, 0.1, 100);
  number(params, "gate_chi2", t.gate_chi2, 1, 100);
  number(params, "gate_distance_m", t.gate_distance_m, 0.1, 50);
  number(params, "birth_log_odds", t.birth_log_odds, -4, 6);
  number(params, "confirm_log_odds", t.confirm_log_odds, -4, 6);
  number(params, "delete_log_odds", t.delete_log_odds, -4, 6);
  number(params, "duplicate_margin_m", t.duplicate_margin_m, 0, 10);
  number(params, "duplicate_speed_mps", t.duplicate_speed_mps, 0, 100);
  if (const auto node = params.find("confirm_hits")) t.confirm_hits = static_cast<std::uint32_t>(node->integer(1, 100));
  milliseconds("coast_ms", t.coast_ns);
  milliseconds("tentative_coast_ms", t.tentative_coast_ns);
  milliseconds("late_limit_ms", t.late_limit_ns);
  number(params, "range_max_m", p.range_max_m, 1, 1000);
  number(params, "ego_jump_limit_m", p.ego_jump_limit_m, 0.1, 1000);
  const auto sensor = [&](const char* key, SensorModel& model) {
    const auto node = params.find(key);
    if (!node) return;
    number(*node, "range_sigma_m", model.range_sigma_m, 0.01, 50);
    number(*node, "range_sigma_share", model.range_sigma_share, 0, 1);
    number(*node, "bearing_sigma_rad", model.bearing_sigma_rad, 0, 1);
    number(*node, "rate_sigma_mps", model.rate_sigma_mps, 0.01, 50);
    number(*node, "surface_offset_m", model.surface_offset_m, 0, 10);
    number(*node, "hit_log_odds", model.hit_log_odds, 0, 6);
    number(*node, "miss_log_odds", model.miss_log_odds, 0, 6);
    number(*node, "class_weight", model.class_weight, 0, 100);
  };
  sensor("lidar", lidar);
  sensor("radar", radar);
  sensor("camera", camera);
  return p;
}

Result<std::unique_ptr<Stage>> create_fusion_tracker(const StageSpec& spec, const FusionParameters& parameters) {
  const std::string who = "stage '" + spec.name + "' (" + spec.type + ")";
  if (spec.inputs.size() > kMaxStageInputs) {
    return fail(Code::kConfiguration, who + " has " + std::to_string(spec.inputs.size()) + " inputs; at most " +
                                          std::to_string(kMaxStageInputs) + " fit");
  }
  std::size_t lists = 0, egos = 0;
  for (const StageConnection& input : spec.inputs) {
    const std::string which = who + ": input '" + input.name + "'";
    if (is_ego(input)) {
      if (++egos > 1) return fail(Code::kConfiguration, which + " is a second ego sensor; connect one");
      continue;
    }
    if (input.schema != kObjectListSchema) {
      return fail(Code::kConfiguration, which + " must come from an ego sensor or from a stage that gives objects");
    }
    if (spec.rig == nullptr || input.sensor_index >= spec.rig->sensors.size() ||
        input.sensor_index >= transport::kMaxSources) {
      return fail(Code::kConfiguration, which + " names no sensor of the rig");
    }
    ++lists;
  }
  if (lists == 0) {
    return fail(Code::kConfiguration, who + " has no object list to fuse; connect at least one detection stage");
  }
  return std::make_unique<FusionTracker>(spec, parameters);
}

Result<std::unique_ptr<Stage>> create_fusion_tracker(const StageSpec& spec, const YamlNode& params) {
  return create_fusion_tracker(spec, read_fusion_parameters(params));
}

}  // namespace takt::pipeline
