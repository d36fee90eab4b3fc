#include "pipeline/stages/lidar_network.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/boxes.h"
#include "kernels/reference/elementary.h"
#include "pipeline/stages/adversarial.h"
#include "pipeline/stages/object_output.h"
#include "pipeline/stages/parameter.h"
#include "pipeline/stages/stage_plan.h"
#include "runtime/exec/counts.h"

namespace takt::pipeline {

namespace {

// A cloud's points lie between these times from its stamp; poses in steps are more than their motion needs.
constexpr double kFirstPose_s = -0.15, kPoseStep_s = 0.05;
constexpr std::size_t kPoses = 5;

// Position and quaternion w x y z: T_world_vehicle.
using Pose = std::array<double, 7>;

// Where the vehicle is `dt` seconds after the sample: the turn is exact for a constant rate, the translation points
// along the heading in the middle, which misses 0.2 mm at 20 m/s, 0.5 rad/s and 0.1 s.
Pose moved(const sensors::EgoMotion& ego, double dt) {
  const auto turned = [&](double seconds) {
    const double* const w = ego.angular_velocity;
    const double rate = std::sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]);
    const double half = rate * seconds / 2;
    const double s = rate > 0 ? kernels::sin(half) / rate : 0, c = kernels::cos(half);
    const double x = w[0] * s, y = w[1] * s, z = w[2] * s;
    const double* const q = ego.orientation;
    return std::array<double, 4>{q[0] * c - q[1] * x - q[2] * y - q[3] * z, q[0] * x + q[1] * c + q[2] * z - q[3] * y,
                                 q[0] * y - q[1] * z + q[2] * c + q[3] * x, q[0] * z + q[1] * y - q[2] * x + q[3] * c};
  };
  const auto [w, x, y, z] = turned(dt / 2);
  const double* const v = ego.velocity;
  // The step in the world: the quaternion's rotation, for one of any length.
  const double norm = w * w + x * x + y * y + z * z;
  const double tx = 2 * (y * v[2] - z * v[1]), ty = 2 * (z * v[0] - x * v[2]), tz = 2 * (x * v[1] - y * v[0]);
  const std::array<double, 3> step{v[0] + (w * tx + y * tz - z * ty) / norm, v[1] + (w * ty + z * tx - x * tz) / norm,
                                   v[2] + (w * tz + x * ty - y * tx) / norm};
  const std::array<double, 4> q = turned(dt);
  return {ego.position[0] + step[0] * dt,
          ego.position[1] + step[1] * dt,
          ego.position[2] + step[2] * dt,
          q[0],
          q[1],
          q[2],
          q[3]};
}

// What the plan reads and gives besides what it counts.
struct Slots {
  std::size_t cloud = 0, poses = 0, pose_count = 0;
  std::optional<std::size_t> stamp, pose;  // of plans that remember sweeps
  std::size_t boxes = 0, scores = 0, classes = 0, count = 0;
};

class LidarNetwork final : public Stage {
 public:
  LidarNetwork(const StageSpec& spec, const DetectionInputs& inputs, const LidarNetworkConfig& config,
               const Slots& slots, StagePlan plan)
      : spec_(spec),
        inputs_(inputs),
        config_(config),
        slots_(slots),
        capacity_(spec.inputs[inputs.sample].sensor->capacity),
        plan_(std::move(plan)),
        counts_(*spec.plan) {
    const plan::Description& d = spec.plan->description();
    for (std::size_t slot = 0; slot < d.outputs.size(); ++slot) outputs_.push_back(plan_.output<std::byte>(slot));
    objects_.resize(static_cast<std::size_t>(d.tensors[d.outputs[slots.scores]].shape.dims[0]));
  }

  // Take the cloud; the plan; objects.
  [[nodiscard]] int phases() const override { return plan_.phases() + 2; }
  [[nodiscard]] bool parallel(int phase) const override {
    return plan_.parallel() && phase > 0 && phase <= plan_.phases();
  }
  [[nodiscard]] std::uint32_t output_schema() const override { return kObjectListSchema; }
  [[nodiscard]] std::uint64_t output_bytes() const override { return sizeof(ObjectList); }
  [[nodiscard]] exec::Session* session() override { return &plan_.session(); }
  [[nodiscard]] exec::Offload* offload() const override { return plan_.offload(); }
  [[nodiscard]] int behind_device() const override { return offload() != nullptr ? 1 + plan_.behind_device() : 0; }
  [[nodiscard]] const exec::CountLog* counts() const override { return &counts_; }

  void run(int phase, int part, int parts, StageJob& job) override {
    if (phase == 0) {
      take(job);
    } else if (phase <= plan_.phases()) {
      if (usable_) plan_.run(phase - 1, part, parts, job);
    } else if (!job.failed) {
      write(job);
    }
  }
  void published() override {
    if (usable_) plan_.publish();
  }

  void adversarial_input(std::size_t input, std::uint32_t seed, transport::ChunkHeader& header,
                         std::span<std::byte> payload) const override;

 private:
  void take(const StageJob& job);
  void place(const StageJob& job, const sensors::PointCloud& cloud, std::int64_t stamp_ns);
  void write(StageJob& job);
  StageSpec spec_;
  DetectionInputs inputs_;
  LidarNetworkConfig config_;
  Slots slots_;
  std::uint32_t capacity_;
  StagePlan plan_;
  exec::CountLog counts_;
  std::vector<const std::byte*> outputs_;  // by slot, for counts_
  std::vector<Object> objects_;
  bool usable_ = false;
};

// A cloud of the layout that was promised when the plan was compiled; anything else is left out.
void LidarNetwork::take(const StageJob& job) {
  usable_ = false;
  plan_.session().refresh_state();  // another variant may have run the last job
  const sensors::PointCloud* cloud = cloud_of(job.inputs[inputs_.sample]);
  if (cloud == nullptr || cloud->capacity != capacity_) return;
  const transport::ChunkHeader& header = *job.inputs[inputs_.sample].chunk.header;
  const std::span<const std::byte> payload(job.inputs[inputs_.sample].chunk.payload, header.payload_bytes);
  if (!plan_.bind_input(0, payload)) return;
  place(job, *cloud, header.capture_ns);
  usable_ = true;
}

// Where the vehicle was while the sweep was taken, and at its stamp.
void LidarNetwork::place(const StageJob& job, const sensors::PointCloud& cloud, std::int64_t stamp_ns) {
  const sensors::EgoMotion* ego = inputs_.ego ? ego_of(job.inputs[*inputs_.ego]) : nullptr;
  double age_s = 0;
  if (ego != nullptr) {
    // Unsigned, since stamps may be anything.
    const auto ego_ns = static_cast<std::uint64_t>(job.inputs[*inputs_.ego].chunk.header->capture_ns);
    age_s = static_cast<double>(static_cast<std::int64_t>(static_cast<std::uint64_t>(stamp_ns) - ego_ns)) * 1e-9;
    if (!(std::fabs(age_s) * 1e3 <= double{config_.ego_age_max_ms})) ego = nullptr;
  }
  const bool deskews = ego != nullptr && cloud.motion_compensated == 0;
  *plan_.input<std::int32_t>(slots_.pose_count) = deskews ? static_cast<std::int32_t>(kPoses) : 0;
  for (std::size_t i = 0; deskews && i < kPoses; ++i) {
    double* const row = plan_.input<double>(slots_.poses) + 8 * i;
    row[0] = kFirstPose_s + kPoseStep_s * static_cast<double>(i);
    const Pose pose = moved(*ego, age_s + row[0]);
    std::copy(pose.begin(), pose.end(), row + 1);
  }
  if (!slots_.stamp) return;
  *plan_.input<std::int64_t>(*slots_.stamp) = stamp_ns;
  Pose pose;
  pose.fill(std::numeric_limits<double>::quiet_NaN());  // nowhere: history is forgotten
  if (ego != nullptr) pose = moved(*ego, age_s);
  std::copy(pose.begin(), pose.end(), plan_.input<double>(*slots_.pose));
}

void LidarNetwork::write(StageJob& job) {
  std::size_t count = 0;
  ListFacts facts;
  if (usable_) {
    counts_.add(outputs_);
    const auto found = static_cast<std::size_t>(std::clamp<std::int64_t>(*plan_.output<std::int32_t>(slots_.count), 0,
                                                                         static_cast<std::int64_t>(objects_.size())));
    for (std::size_t i = 0; i < found; ++i) {
      const float* const box = plan_.output<float>(slots_.boxes) + i * kernels::kBoxColumns;
      const auto channel = static_cast<std::size_t>(plan_.output<std::int32_t>(slots_.classes)[i]);
      const float score = plan_.output<float>(slots_.scores)[i];
      if (!(score > config_.score_min) || channel >= spec_.model->classes.size()) continue;
      const std::optional<ObjectClass> meaning = spec_.model->classes[channel].meaning;
      if (!meaning) continue;
      Object& o = objects_[count++];
      o = {};
      o.x = box[0];
      o.y = box[1];
      o.z = box[2];
      o.length = box[3];
      o.width = box[4];
      o.height = box[5];
      o.yaw = box[6];
      o.score = score;
      o.object_class = *meaning;
      o.position_variance = config_.position_sigma_m * config_.position_sigma_m;
      o.flags = kHasPosition | kHasBox;
    }
    const sensors::PointCloud& cloud = *cloud_of(job.inputs[inputs_.sample]);
    facts.input_points = std::min(cloud.count, cloud.capacity);
    for (const exec::CountLog::Counter& c : counts_.counters()) {
      const auto value = static_cast<std::uint32_t>(std::max(plan_.output<std::int32_t>(c.slot)[c.element], 0));
      if (c.name == "rejected[0]") facts.invalid_points = value;
      if (c.name == "boxes_dropped") facts.dropped = value;
    }
  }
  job.repaired = !usable_ && job.inputs[inputs_.sample].chunk;
  write_objects(job, {objects_.data(), count}, facts, spec_.inputs, inputs_.sample, inputs_.ego);
}

// As many points as fit, spread over the square that contains every range: no two need fall into one pillar, so that
// all pillars are full and the rest is dropped. Stamps go on from seed to seed, so that history is full too.
void LidarNetwork::adversarial_input(std::size_t input, std::uint32_t seed, transport::ChunkHeader& header,
                                     std::span<std::byte> payload) const {
  constexpr std::int64_t kPeriod_ns = 100'000'000;
  if (input != inputs_.sample) {
    write_ego_input(header, payload);
    header.capture_ns = header.arrival_ns = seed * kPeriod_ns;
    return;
  }
  const std::uint64_t bytes = sensors::PointCloud::bytes_for(capacity_);
  if (payload.size() < bytes) return;
  header.schema = sensors::kPointCloudSchema;
  header.payload_bytes = bytes;
  header.capture_ns = header.arrival_ns = seed * kPeriod_ns;
  auto& cloud = *reinterpret_cast<sensors::PointCloud*>(payload.data());
  cloud = {};
  cloud.count = cloud.capacity = capacity_;
  SplitMix noise(seed);
  for (std::uint32_t i = 0; i < capacity_; ++i) {
    cloud.x()[i] = noise.uniform(-50, 50);
    cloud.y()[i] = noise.uniform(-50, 50);
    cloud.z()[i] = noise.uniform(-2, 2);
    cloud.intensity()[i] = noise.uniform(0, 1);
    // Fires together: sixty-four points, then the next instant.
    cloud.time_ns()[i] = static_cast<std::int32_t>(-100'000'000 + std::int64_t{i / 64} * 100'000'000 * 64 / capacity_);
    cloud.ring()[i] = static_cast<std::uint16_t>(i % 64);
  }
}

Status fail_slot(const StageSpec& spec, const std::string& what) {
  return fail(Code::kConfiguration, "stage '" + spec.name + "' (lidar_network): the plan " + what);
}

Result<Slots> find_slots(const StageSpec& spec, std::uint32_t capacity) {
  const plan::Plan& plan = *spec.plan;
  const plan::Description& d = plan.description();
  Slots slots;
  Status status;
  using kernels::DType;
  const auto find = [&](bool input, const char* name, DType dtype, std::int64_t elements) -> std::size_t {
    const auto slot = input ? plan.find_input(name) : plan.find_output(name);
    if (!slot) {
      if (status) status = fail_slot(spec, std::string("has no ") + (input ? "input '" : "output '") + name + "'");
      return 0;
    }
    const plan::Tensor& t = d.tensors[input ? d.inputs[*slot] : d.outputs[*slot]];
    if (status && (t.dtype != dtype || t.shape.elements() < elements)) {
      status = fail_slot(spec, std::string("has '") + name + "' of another type or size");
    }
    return *slot;
  };
  slots.cloud = find(true, "cloud", DType::kU8, 64);
  slots.poses = find(true, "poses", DType::kF64, 8 * kPoses);
  slots.pose_count = find(true, "poses_count", DType::kI32, 1);
  if (plan.find_input("stamp")) {
    slots.stamp = find(true, "stamp", DType::kI64, 1);
    slots.pose = find(true, "pose", DType::kF64, 7);
  }
  slots.boxes = find(false, "boxes", DType::kF32, kernels::kBoxColumns);
  slots.scores = find(false, "scores", DType::kF32, 1);
  slots.classes = find(false, "classes", DType::kI32, 1);
  slots.count = find(false, "count", DType::kI32, 1);
  TAKT_RETURN_IF_ERROR(status);
  const std::size_t inputs = slots.stamp ? 5 : 3;
  if (d.inputs.size() != inputs) return fail(fail_slot(spec, "has inputs that the stage does not know").error());
  const std::int64_t boxes = d.tensors[d.outputs[slots.scores]].shape.dims[0];
  if (d.tensors[d.outputs[slots.boxes]].shape.elements() != boxes * kernels::kBoxColumns ||
      d.tensors[d.outputs[slots.classes]].shape.elements() != boxes) {
    return fail(fail_slot(spec, "gives boxes, scores and classes of different numbers").error());
  }
  const std::uint64_t bytes = sensors::PointCloud::bytes_for(capacity);
  if (d.tensors[d.inputs[slots.cloud]].bytes != bytes) {
    return fail(fail_slot(spec, "was compiled for clouds of " + std::to_string(d.tensors[d.inputs[slots.cloud]].bytes) +
                                    " bytes; the sensor's have " + std::to_string(bytes) + " (" +
                                    std::to_string(capacity) + " points)")
                    .error());
  }
  return slots;
}

}  // namespace

LidarNetworkConfig read_lidar_network_config(const YamlNode& params) {
  LidarNetworkConfig config;
  read_parameter(params, "score_min", config.score_min, 0, 1);
  read_parameter(params, "ego_age_max_ms", config.ego_age_max_ms, 0, 10000);
  read_parameter(params, "position_sigma_m", config.position_sigma_m, 0.01, 10);
  return config;
}

Result<std::unique_ptr<Stage>> create_lidar_network(const StageSpec& spec, const LidarNetworkConfig& config) {
  TAKT_ASSIGN(const DetectionInputs inputs, find_inputs(spec, sensors::SensorKind::kLidar));
  if (!spec.plan || !spec.model) {
    return fail(Code::kConfiguration, "stage '" + spec.name + "' (lidar_network), variant '" + spec.variant +
                                          "': no model is given; name its file with 'model: FILE.yaml'");
  }
  const std::uint32_t capacity = spec.inputs[inputs.sample].sensor->capacity;
  TAKT_ASSIGN(const Slots slots, find_slots(spec, capacity));
  TAKT_ASSIGN(StagePlan plan, StagePlan::create(spec, {{{slots.cloud}}, {}}));
  return std::make_unique<LidarNetwork>(spec, inputs, config, slots, std::move(plan));
}

}  // namespace takt::pipeline
