#include "pipeline/stages/fusion_tracker.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "kernels/reference/tracking.h"
#include "pipeline/stages/adversarial.h"
#include "pipeline/stages/stage_plan.h"
#include "runtime/exec/counts.h"
#include "runtime/plan/plan.h"

namespace takt::pipeline {

namespace {

using kernels::kNever;

constexpr std::size_t kMaxStageInputs = 32;                 // bits of missing_inputs
constexpr std::int64_t kClockTolerance_ns = 10'000'000;     // a stamp may lie after now by this much
constexpr std::int64_t kAdversarialPeriod_ns = 50'000'000;  // of stamps that follow from the seed alone

// The graph reads and writes payloads as they lie in their chunks.
template <std::size_t a, std::size_t b>
constexpr bool kSame = a == b;
static_assert(kNever == transport::kNoStamp);
static_assert(sizeof(kernels::ObjectRow) == sizeof(Object) && sizeof(kernels::TrackRow) == sizeof(Track));
static_assert(kernels::kObjectRowsOffset == offsetof(ObjectList, objects));
static_assert(sizeof(kernels::TrackListHeader) == offsetof(TrackList, tracks));
static_assert(kSame<offsetof(kernels::ObjectRow, yaw), offsetof(Object, yaw)>);
static_assert(kSame<offsetof(kernels::ObjectRow, range_rate), offsetof(Object, range_rate)>);
static_assert(kSame<offsetof(kernels::ObjectRow, picture), offsetof(Object, u0)>);
static_assert(kSame<offsetof(kernels::ObjectRow, position_variance), offsetof(Object, position_variance)>);
static_assert(kSame<offsetof(kernels::ObjectRow, object_class), offsetof(Object, object_class)>);
static_assert(kSame<offsetof(kernels::ObjectRow, means), offsetof(Object, flags)>);
static_assert(kSame<offsetof(kernels::TrackRow, x), offsetof(Track, x)>);
static_assert(kSame<offsetof(kernels::TrackRow, yaw), offsetof(Track, yaw)>);
static_assert(kSame<offsetof(kernels::TrackRow, vx), offsetof(Track, vx)>);
static_assert(kSame<offsetof(kernels::TrackRow, score), offsetof(Track, score)>);
static_assert(kSame<offsetof(kernels::TrackRow, hits), offsetof(Track, hits)>);
static_assert(kSame<offsetof(kernels::TrackRow, sensors), offsetof(Track, sensors)>);
static_assert(kSame<offsetof(kernels::TrackListHeader, stamp_ns), offsetof(TrackList, stamp_ns)>);
static_assert(sizeof(kernels::EgoReading) == sizeof(sensors::EgoMotion));
static_assert(kSame<offsetof(kernels::EgoReading, velocity), offsetof(sensors::EgoMotion, velocity)>);
static_assert(kSame<kernels::kMeansPosition, kHasPosition> && kSame<kernels::kMeansBox, kHasBox> &&
              kSame<kernels::kMeansRate, kHasRangeRate>);

bool is_ego(const StageConnection& input) {
  return input.sensor != nullptr && input.sensor->kind == sensors::SensorKind::kEgo;
}

Modality modality_of(const sensors::RigSensor& sensor) {
  return sensor.kind == sensors::SensorKind::kCamera  ? Modality::kCamera
         : sensor.kind == sensors::SensorKind::kRadar ? Modality::kRadar
                                                      : Modality::kLidar;
}

const ObjectList* list_of(const StageInput& input) {
  if (!input.chunk || input.chunk.payload == nullptr) return nullptr;
  if (input.chunk.header->payload_bytes < offsetof(ObjectList, objects)) return nullptr;
  return reinterpret_cast<const ObjectList*>(input.chunk.payload);
}

// The slots of the plan, by what they mean.
struct Slots {
  std::vector<std::size_t> lists, rows, repaired, dropped;  // by list of a job
  std::size_t stamps = 0, ego_stamp = 0, ego_sample = 0, used_now = 0, tracks = 0, used = 0;
};

Result<Slots> find_slots(const plan::Plan& plan, std::size_t lists, std::size_t inputs) {
  namespace name = fusion_tensors;
  const plan::Description& d = plan.description();
  Status fits;
  const auto found = [&](std::optional<std::size_t> slot, const std::vector<std::uint32_t>& tensors,
                         const std::string& what, std::uint64_t bytes) {
    if (slot && d.tensors[tensors[*slot]].bytes == bytes) return *slot;
    fits = fail(Code::kConfiguration, "its plan has no tensor '" + what + "' of " + std::to_string(bytes) + " bytes");
    return std::size_t{0};
  };
  const auto input = [&](const std::string& what, std::uint64_t bytes) {
    return found(plan.find_input(what), d.inputs, what, bytes);
  };
  const auto output = [&](const std::string& what, std::uint64_t bytes) {
    return found(plan.find_output(what), d.outputs, what, bytes);
  };
  Slots slots;
  for (std::size_t k = 0; k < lists; ++k) {
    slots.lists.push_back(input(name::kList + std::to_string(k), sizeof(ObjectList)));
    slots.rows.push_back(input(name::kListRows + std::to_string(k), 2 * sizeof(std::int64_t)));
    slots.repaired.push_back(output(name::kRepaired + std::to_string(k), sizeof(std::int32_t)));
    slots.dropped.push_back(output(name::kDropped + std::to_string(k), sizeof(std::int32_t)));
  }
  slots.stamps = input(name::kStamps, (lists + 1) * sizeof(std::int64_t));
  slots.ego_stamp = input(name::kEgoStamp, sizeof(std::int64_t));
  slots.ego_sample = input(name::kEgoSample, sizeof(kernels::EgoReading));
  slots.used_now = input(name::kUsedNow, inputs * sizeof(std::int64_t));
  slots.tracks = output(name::kTracks, sizeof(TrackList));
  const auto used = std::find_if(d.states.begin(), d.states.end(), [](const auto& s) { return s.name == name::kUsed; });
  if (used == d.states.end() || used->bytes != inputs * sizeof(std::int64_t) || d.inputs.size() != 2 * lists + 4) {
    fits = fail(Code::kConfiguration, "its plan was compiled for other inputs");
  }
  if (!fits) return fail(std::move(fits).error());
  slots.used = static_cast<std::size_t>(used - d.states.begin());
  return slots;
}

class FusionTracker final : public Stage {
 public:
  static Result<std::unique_ptr<Stage>> create(const StageSpec& spec, std::size_t lists) {
    TAKT_ASSIGN(Slots slots, find_slots(*spec.plan, lists, spec.inputs.size()));
    StagePlan::Chunks chunks{{{slots.ego_sample, true}}, {slots.tracks}};
    for (const std::size_t list : slots.lists) chunks.inputs.push_back({list, true});
    TAKT_ASSIGN(StagePlan plan, StagePlan::create(spec, chunks));
    return std::unique_ptr<Stage>(new FusionTracker(spec, std::move(slots), std::move(plan)));
  }

  // Choose the inputs; the plan; the header.
  [[nodiscard]] int phases() const override { return plan_.phases() + 2; }
  [[nodiscard]] bool parallel(int phase) const override {
    return plan_.parallel() && phase > 0 && phase <= plan_.phases();
  }
  [[nodiscard]] std::uint32_t output_schema() const override { return kTrackListSchema; }
  [[nodiscard]] std::uint64_t output_bytes() const override { return sizeof(TrackList); }
  [[nodiscard]] exec::Session* session() override { return &plan_.session(); }
  [[nodiscard]] exec::Offload* offload() const override { return plan_.offload(); }
  [[nodiscard]] int behind_device() const override { return offload() != nullptr ? 1 + plan_.behind_device() : 0; }
  [[nodiscard]] const exec::CountLog* counts() const override { return &counts_; }
  void published() override { plan_.publish(); }

  void run(int phase, int part, int parts, StageJob& job) override {
    if (phase == 0) {
      take_inputs(job);
    } else if (phase <= plan_.phases()) {
      plan_.run(phase - 1, part, parts, job);
    } else if (!job.failed) {
      write(job);
    }
  }

  void adversarial_input(std::size_t input, std::uint32_t seed, transport::ChunkHeader& header,
                         std::span<std::byte> payload) const override;

 private:
  // Chunks of the plan, in the order in which they are bound.
  static constexpr std::size_t kEgoSample = 0, kFirstList = 1, kTracks = 0;

  FusionTracker(const StageSpec& spec, Slots slots, StagePlan plan)
      : connections_(spec.inputs), slots_(std::move(slots)), plan_(std::move(plan)), counts_(*spec.plan) {
    for (std::size_t slot = 0; slot < spec.plan->description().outputs.size(); ++slot) {
      outputs_.push_back(plan_.output<std::byte>(slot));
    }
    for (const StageConnection& c : connections_) {
      modality_.push_back(is_ego(c) ? Modality::kLidar : modality_of(spec.rig->sensors[c.sensor_index]));
      source_.push_back(is_ego(c) ? -1 : sources_++);
    }
  }

  void take_inputs(StageJob& job);
  bool take_ego(const StageInput& input, std::int64_t stamp);
  void bind_list(std::size_t k, const StageInput* input, std::int64_t source, StageJob& job);
  void write(StageJob& job);

  std::vector<StageConnection> connections_;
  std::vector<Modality> modality_;    // by input
  std::vector<std::int64_t> source_;  // row of the sources, by input; -1: the ego sensor
  std::int64_t sources_ = 0;
  Slots slots_;
  StagePlan plan_;
  exec::CountLog counts_;
  std::vector<const std::byte*> outputs_;     // by slot, for counts_
  std::uint32_t missing_ = 0, repeated_ = 0;  // bit i: input i, in this job
};

// The new lists of a job in the order in which they are applied: (stamp, input).
void FusionTracker::take_inputs(StageJob& job) {
  plan_.session().refresh_state();  // another variant may have run the last job
  auto* const stamps = plan_.input<std::int64_t>(slots_.stamps);
  auto* const ego_stamp = plan_.input<std::int64_t>(slots_.ego_stamp);
  auto* const used_now = plan_.input<std::int64_t>(slots_.used_now);
  const auto* const used = reinterpret_cast<const std::int64_t*>(plan_.session().state(slots_.used).data());
  const auto lists = static_cast<std::size_t>(sources_);
  missing_ = repeated_ = 0;
  ego_stamp[0] = kNever;
  std::array<std::size_t, kMaxStageInputs> order{};
  std::size_t count = 0;
  const std::size_t inputs = std::min(job.inputs.size(), connections_.size());
  const auto stamp_of = [&](std::size_t i) { return job.inputs[i].chunk.header->capture_ns; };
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    used_now[i] = used[i];
    const std::uint32_t bit = 1U << i;
    const bool ego = is_ego(connections_[i]);
    const StageInput input = i < inputs ? job.inputs[i] : StageInput{};
    const bool there = ego ? input.chunk && input.chunk.payload != nullptr &&
                                 input.chunk.header->payload_bytes >= sizeof(sensors::EgoMotion)
                           : list_of(input) != nullptr;
    const std::int64_t stamp = there ? input.chunk.header->capture_ns : transport::kNoStamp;
    if (stamp == transport::kNoStamp) {
      missing_ |= bit;
      continue;
    }
    if (stamp <= used[i]) {
      repeated_ |= bit;
      continue;
    }
    if (stamp - job.now.ns > kClockTolerance_ns || (ego && !take_ego(input, stamp))) {
      job.repaired = true;
      continue;
    }
    if (!ego) {
      std::size_t at = count++;
      for (; at > 0 && stamp < stamp_of(order[at - 1]); --at) order[at] = order[at - 1];
      order[at] = i;
    }
    used_now[i] = stamp;
  }
  if (ego_stamp[0] == kNever) static_cast<void>(plan_.bind_input(kEgoSample, {}));
  for (std::size_t k = 0; k < lists; ++k) {
    const bool there = k < count;
    stamps[k] = there ? stamp_of(order[k]) : kNever;
    bind_list(k, there ? &job.inputs[order[k]] : nullptr, there ? source_[order[k]] : -1, job);
  }
  stamps[lists] = job.now.ns;
  // A contract of chunks: payloads start at a multiple of 64 and hold what their stage declared.
  if (!plan_.bind_output(kTracks, {job.output, sizeof(TrackList)})) job.repaired = true;
}

bool FusionTracker::take_ego(const StageInput& input, std::int64_t stamp) {
  const std::span<const std::byte> payload = input.chunk.bytes();
  if (!kernels::reference::ego_usable(*reinterpret_cast<const kernels::EgoReading*>(payload.data()))) return false;
  if (!plan_.bind_input(kEgoSample, payload)) return false;
  *plan_.input<std::int64_t>(slots_.ego_stamp) = stamp;
  return true;
}

// The list where it lies; without one, an empty list of nobody.
void FusionTracker::bind_list(std::size_t k, const StageInput* input, std::int64_t source, StageJob& job) {
  auto* const rows = plan_.input<std::int64_t>(slots_.rows[k]);
  rows[0] = 0;
  rows[1] = source;
  std::span<const std::byte> payload;
  if (input != nullptr) {
    const ObjectList& list = *list_of(*input);
    const std::uint64_t room = (input->chunk.header->payload_bytes - offsetof(ObjectList, objects)) / sizeof(Object);
    const std::uint64_t count = std::min({std::uint64_t{list.count}, room, std::uint64_t{kMaxObjects}});
    if (count < list.count) job.repaired = true;
    rows[0] = static_cast<std::int64_t>(count);
    // No row behind the count is read.
    payload = {input->chunk.payload, sizeof(ObjectList)};
  }
  if (plan_.bind_input(kFirstList + k, payload)) return;
  static_cast<void>(plan_.bind_input(kFirstList + k, {}));
  rows[1] = -1;
  job.repaired = true;
}

void FusionTracker::write(StageJob& job) {
  auto& out = *reinterpret_cast<TrackList*>(job.output);
  out.dropped = 0;
  out.missing_inputs = missing_;
  out.repeat_inputs = repeated_;
  for (std::size_t k = 0; k < slots_.rows.size(); ++k) {
    out.dropped += static_cast<std::uint32_t>(*plan_.output<std::int32_t>(slots_.dropped[k]));
    if (*plan_.output<std::int32_t>(slots_.repaired[k]) != 0) job.repaired = true;
  }
  counts_.add(outputs_);

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
    if ((missing_ >> i & 1U) != 0) continue;
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
    if (modality_[input] == Modality::kRadar) {
      const float range = std::sqrt(o.x * o.x + o.y * o.y) + 1e-3F;
      o.flags |= kHasRangeRate;
      o.range_rate = random.uniform(-1, 1);
      o.ray_x = o.x / range;
      o.ray_y = o.y / range;
    }
  }
}

}  // namespace

FusionModel read_fusion_model(const YamlNode& params) {
  FusionModel m;
  kernels::TrackerModel& t = m.tracker;
  kernels::ListSource& lidar = m.sensors[static_cast<std::size_t>(Modality::kLidar)];
  kernels::ListSource& radar = m.sensors[static_cast<std::size_t>(Modality::kRadar)];
  kernels::ListSource& camera = m.sensors[static_cast<std::size_t>(Modality::kCamera)];
  lidar.range_sigma = 0.4;
  lidar.hit_log_odds = 1.0;
  lidar.miss_log_odds = 0.9;
  lidar.class_weight = 1;
  radar.range_sigma = 1.0;
  radar.bearing_sigma = 0.03;
  radar.rate_sigma = 0.5;
  radar.surface_offset = 1.5;
  radar.hit_log_odds = 0.5;
  radar.miss_log_odds = 0.2;
  radar.class_weight = 0.2;
  camera.range_sigma = 0.8;
  camera.range_sigma_share = 0.12;
  camera.bearing_sigma = 0.02;
  camera.hit_log_odds = 0.4;
  camera.miss_log_odds = 0.1;
  camera.class_weight = 0.5;

  const auto number = [](const YamlNode& node, const char* key, double& value, double min, double max) {
    if (const auto found = node.find(key)) value = found->number(min, max);
  };
  const auto milliseconds = [&](const char* key, double& value) {
    if (const auto found = params.find(key)) value = static_cast<double>(found->milliseconds(1, 10'000).ns);
  };
  if (const auto motion = params.find("motion")) {
    m.motion = motion->one_of({"constant_velocity", "turn_rate"}) == "turn_rate"
                   ? kernels::MotionModel::kTurnRate
                   : kernels::MotionModel::kConstantVelocity;
  }
  number(params, "acceleration_density_m2ps3", t.acceleration_density, 1e-3, 1e3);
  number(params, "turn_density_rad2ps3", t.turn_density, 1e-6, 1e2);
  number(params, "initial_speed_sigma_mps", t.initial_speed_sigma, 0.1, 100);
  number(params, "initial_turn_sigma_radps", t.initial_turn_sigma, 1e-3, 10);
  number(params, "yaw_sigma_rad", t.yaw_sigma, 1e-3, 3);
  number(params, "gate_chi2", t.gate_chi2, 1, 100);
  number(params, "gate_distance_m", t.gate_distance, 0.1, 50);
  number(params, "birth_log_odds", t.birth_log_odds, -4, 6);
  number(params, "confirm_log_odds", t.confirm_log_odds, -4, 6);
  number(params, "delete_log_odds", t.delete_log_odds, -4, 6);
  number(params, "duplicate_margin_m", t.duplicate_margin, 0, 10);
  number(params, "duplicate_speed_mps", t.duplicate_speed, 0, 100);
  if (const auto node = params.find("confirm_hits")) t.confirm_hits = static_cast<double>(node->integer(1, 100));
  milliseconds("coast_ms", t.coast_ns);
  milliseconds("tentative_coast_ms", t.tentative_coast_ns);
  milliseconds("late_limit_ms", t.late_limit_ns);
  number(params, "range_max_m", t.range_max, 1, 1000);
  number(params, "ego_jump_limit_m", t.ego_jump_limit, 0.1, 1000);
  const auto sensor = [&](const char* key, kernels::ListSource& model) {
    const auto node = params.find(key);
    if (!node) return;
    number(*node, "range_sigma_m", model.range_sigma, 0.01, 50);
    number(*node, "range_sigma_share", model.range_sigma_share, 0, 1);
    number(*node, "bearing_sigma_rad", model.bearing_sigma, 0, 1);
    number(*node, "rate_sigma_mps", model.rate_sigma, 0.01, 50);
    number(*node, "surface_offset_m", model.surface_offset, 0, 10);
    number(*node, "hit_log_odds", model.hit_log_odds, 0, 6);
    number(*node, "miss_log_odds", model.miss_log_odds, 0, 6);
    number(*node, "class_weight", model.class_weight, 0, 100);
  };
  sensor("lidar", lidar);
  sensor("radar", radar);
  sensor("camera", camera);
  return m;
}

Result<std::vector<kernels::ListSource>> fusion_sources(const StageSpec& spec, const FusionModel& model) {
  const std::string who = "stage '" + spec.name + "' (" + spec.type + ")";
  if (spec.inputs.size() > kMaxStageInputs) {
    return fail(Code::kConfiguration, who + " has " + std::to_string(spec.inputs.size()) + " inputs; at most " +
                                          std::to_string(kMaxStageInputs) + " fit");
  }
  std::vector<kernels::ListSource> sources;
  std::size_t egos = 0;
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
    const sensors::RigSensor& sensor = spec.rig->sensors[input.sensor_index];
    const Modality modality = modality_of(sensor);
    kernels::ListSource source = model.sensors[static_cast<std::size_t>(modality)];
    source.modality = static_cast<double>(modality);
    source.sensor = static_cast<double>(input.sensor_index);
    source.x = sensor.vehicle_from_sensor.translation[0];
    source.y = sensor.vehicle_from_sensor.translation[1];
    sources.push_back(source);
  }
  if (sources.empty()) {
    return fail(Code::kConfiguration, who + " has no object list to fuse; connect at least one detection stage");
  }
  return sources;
}

Result<std::unique_ptr<Stage>> create_fusion_tracker(const StageSpec& spec) {
  TAKT_ASSIGN(const std::vector<kernels::ListSource> sources, fusion_sources(spec, {}));
  if (!spec.plan) {
    return fail(Code::kConfiguration, "stage '" + spec.name + "' (" + spec.type + "): its graph was not compiled");
  }
  auto stage = FusionTracker::create(spec, sources.size());
  if (!stage) return fail(std::move(stage).error().with_context("stage '" + spec.name + "' (" + spec.type + ")"));
  return stage;
}

}  // namespace takt::pipeline
