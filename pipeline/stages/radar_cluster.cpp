#include "pipeline/stages/radar_cluster.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "pipeline/stages/adversarial.h"
#include "pipeline/stages/object_output.h"
#include "pipeline/stages/parameter.h"
#include "pipeline/stages/rigid.h"

namespace takt::pipeline {

namespace {

// A return in the vehicle frame.
struct Echo {
  float range = 0;     // from the sensor, on the ground, m
  float x = 0, y = 0;  // m
  float z = 0;         // m
  float rate = 0;      // compensated, along the ray on the ground, m/s
  float ray_x = 0, ray_y = 0;
  float rcs = 0;  // dBsm
  bool moving = false;
};

// Nearest first; a total order over the values, so that the order of the scan cannot show.
bool nearer(const Echo& a, const Echo& b) {
  const auto key = [](const Echo& e) { return std::tuple(e.range, e.x, e.y, e.z, e.rate, e.rcs); };
  return key(a) < key(b);
}

class RadarCluster final : public Stage {
 public:
  RadarCluster(const StageSpec& spec, const DetectionInputs& inputs, const RadarConfig& config)
      : config_(config),
        connections_(spec.inputs),
        inputs_(inputs),
        capacity_(spec.inputs[inputs.sample].sensor->capacity),
        pose_(spec.inputs[inputs.sample].sensor->vehicle_from_sensor),
        echoes_(capacity_),
        parent_(capacity_),
        sums_(capacity_),
        objects_(capacity_) {}

  [[nodiscard]] int phases() const override { return 1; }
  [[nodiscard]] bool parallel(int) const override { return false; }
  [[nodiscard]] std::uint32_t output_schema() const override { return kObjectListSchema; }
  [[nodiscard]] std::uint64_t output_bytes() const override { return sizeof(ObjectList); }

  void run(int, int part, int, StageJob& job) override {
    if (part != 0) return;
    take_returns(job);
    std::sort(echoes_.begin(), echoes_.begin() + count_, nearer);
    connect();
    sum_clusters();
    write(job);
  }

  void adversarial_input(std::size_t input, std::uint32_t seed, transport::ChunkHeader& header,
                         std::span<std::byte> payload) const override;

 private:
  // Sums over one cluster, in sorted order.
  struct Sum {
    std::uint32_t hits = 0;
    double x = 0, y = 0, z = 0, rate = 0;
    float x0 = 0, x1 = 0, y0 = 0, y1 = 0;
  };

  void take_returns(const StageJob& job);
  void connect();
  void sum_clusters();
  void write(StageJob& job);
  [[nodiscard]] bool together(const Echo& a, const Echo& b) const;
  [[nodiscard]] bool object_of(const Sum& sum, bool moving, Object& object) const;
  std::uint32_t root(std::uint32_t i);

  RadarConfig config_;
  std::vector<StageConnection> connections_;
  DetectionInputs inputs_;
  std::uint32_t capacity_;
  VehicleFromSensor pose_;
  std::vector<Echo> echoes_;
  std::vector<std::uint32_t> parent_;
  std::vector<Sum> sums_;
  std::vector<Object> objects_;
  std::uint32_t count_ = 0;    // usable echoes
  std::uint32_t taken_ = 0;    // returns that went in, unusable ones included
  std::uint32_t invalid_ = 0;  // not finite
  bool compensated_ = false;
  bool clamped_ = false;
};

void RadarCluster::take_returns(const StageJob& job) {
  count_ = taken_ = invalid_ = 0;
  clamped_ = false;
  const sensors::RadarScan* scan = scan_of(job.inputs[inputs_.sample]);
  const sensors::EgoMotion* ego = inputs_.ego ? ego_of(job.inputs[*inputs_.ego]) : nullptr;
  compensated_ = ego != nullptr;
  if (scan == nullptr) return;

  // Velocity of the sensor over ground in the vehicle frame: v + omega x lever arm.
  const Point3 origin = pose_.origin();
  Point3 sensor_velocity;
  if (ego != nullptr) {
    const auto& v = ego->velocity;
    const auto& w = ego->angular_velocity;
    sensor_velocity = {static_cast<float>(v[0] + w[1] * origin.z - w[2] * origin.y),
                       static_cast<float>(v[1] + w[2] * origin.x - w[0] * origin.z),
                       static_cast<float>(v[2] + w[0] * origin.y - w[1] * origin.x)};
  }

  taken_ = std::min({scan->count, scan->capacity, capacity_});
  clamped_ = scan->count > taken_;
  for (std::uint32_t i = 0; i < taken_; ++i) {
    const sensors::RadarReturn& r = scan->returns()[i];
    const Point3 p = pose_.point(r.x, r.y, r.z);
    if (!std::isfinite(p.x + p.y + p.z) || !std::isfinite(r.range_rate) || !std::isfinite(r.rcs)) {
      ++invalid_;
      continue;
    }
    const float dx = p.x - origin.x, dy = p.y - origin.y, dz = p.z - origin.z;
    const float ground_range = std::sqrt(dx * dx + dy * dy);
    const float range = std::sqrt(dx * dx + dy * dy + dz * dz);
    if (ground_range < config_.range_min_m || range > config_.range_max_m || p.z > config_.height_max_m) continue;
    Echo& e = echoes_[count_++];
    e.range = ground_range;
    e.x = p.x;
    e.y = p.y;
    e.z = p.z;
    e.ray_x = dx / ground_range;
    e.ray_y = dy / ground_range;
    e.rcs = r.rcs;
    // A return at rest approaches with the sensor's own velocity along the ray; what remains is its own motion,
    // which happens on the ground.
    const float own = (sensor_velocity.x * dx + sensor_velocity.y * dy + sensor_velocity.z * dz) / range;
    e.rate = (r.range_rate + own) * range / ground_range;
    e.moving = compensated_ && std::fabs(e.rate) >= config_.moving_min_mps;
  }
}

bool RadarCluster::together(const Echo& a, const Echo& b) const {
  if (a.moving != b.moving) return false;
  const float gap = a.moving || !compensated_ ? config_.gap_m : config_.static_gap_m;
  const float dx = a.x - b.x, dy = a.y - b.y;
  if (dx * dx + dy * dy > gap * gap) return false;
  return !compensated_ || std::fabs(a.rate - b.rate) <= config_.gap_rate_mps;
}

std::uint32_t RadarCluster::root(std::uint32_t i) {
  while (parent_[i] != i) {
    parent_[i] = parent_[parent_[i]];
    i = parent_[i];
  }
  return i;
}

// Connected components; sorted by range, only returns within one gap of range can be close.
void RadarCluster::connect() {
  const float reach = std::max(config_.gap_m, config_.static_gap_m);
  for (std::uint32_t i = 0; i < count_; ++i) parent_[i] = i;
  for (std::uint32_t i = 0; i < count_; ++i) {
    for (std::uint32_t j = i + 1; j < count_ && echoes_[j].range - echoes_[i].range <= reach; ++j) {
      if (!together(echoes_[i], echoes_[j])) continue;
      const std::uint32_t a = root(i);
      const std::uint32_t b = root(j);
      parent_[std::max(a, b)] = std::min(a, b);
    }
  }
}

void RadarCluster::sum_clusters() {
  std::fill_n(sums_.begin(), count_, Sum{});
  for (std::uint32_t i = 0; i < count_; ++i) {
    const Echo& e = echoes_[i];
    Sum& s = sums_[root(i)];
    if (s.hits == 0) {
      s.x0 = s.x1 = e.x;
      s.y0 = s.y1 = e.y;
    }
    ++s.hits;
    s.x += e.x;
    s.y += e.y;
    s.z += e.z;
    s.rate += e.rate;
    s.x0 = std::min(s.x0, e.x);
    s.x1 = std::max(s.x1, e.x);
    s.y0 = std::min(s.y0, e.y);
    s.y1 = std::max(s.y1, e.y);
  }
}

// False: the cluster is no object.
bool RadarCluster::object_of(const Sum& sum, bool moving, Object& o) const {
  const float dx = sum.x1 - sum.x0, dy = sum.y1 - sum.y0;
  const float extent = std::sqrt(dx * dx + dy * dy);
  if (!moving) {
    if (sum.hits < config_.static_hits_min) return false;
    if (extent < config_.static_extent_min_m || extent > config_.static_extent_max_m) return false;
  }
  const double n = sum.hits;
  const Point3 origin = pose_.origin();
  o = {};
  o.x = static_cast<float>(sum.x / n);
  o.y = static_cast<float>(sum.y / n);
  o.z = static_cast<float>(sum.z / n);
  o.points = sum.hits;
  o.flags = kHasPosition;
  o.object_class = moving || !compensated_ ? ObjectClass::kUnknown : ObjectClass::kOther;
  const float rx = o.x - origin.x, ry = o.y - origin.y;
  const float range = std::max(std::sqrt(rx * rx + ry * ry), config_.range_min_m);
  o.ray_x = rx / range;
  o.ray_y = ry / range;
  if (compensated_) {
    o.range_rate = static_cast<float>(sum.rate / n);
    o.flags |= kHasRangeRate;
  }
  const float lateral = config_.sigma_azimuth_rad * range;
  o.position_variance = (config_.sigma_range_m * config_.sigma_range_m + lateral * lateral) / 2 +
                        extent * extent / 12;  // uniform over the extent that was seen
  const auto hits = static_cast<float>(sum.hits);
  o.score = moving ? std::min(1.0F, config_.score_moving * 4 * hits / (3 * hits + 2)) : config_.score_static;
  return true;
}

void RadarCluster::write(StageJob& job) {
  std::size_t objects = 0;
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (parent_[i] != i) continue;
    if (object_of(sums_[i], echoes_[i].moving, objects_[objects])) ++objects;
  }
  job.repaired = invalid_ > 0 || clamped_;
  write_objects(job, {objects_.data(), objects}, {taken_ - invalid_, invalid_, 0}, connections_, inputs_.sample,
                inputs_.ego);
}

// Every return within one gap of range of every other, none connected: the pair loop runs in full.
void RadarCluster::adversarial_input(std::size_t input, std::uint32_t seed, transport::ChunkHeader& header,
                                     std::span<std::byte> payload) const {
  if (input != inputs_.sample) {
    write_ego_input(header, payload);
    return;
  }
  if (payload.size() < sensors::RadarScan::bytes_for(capacity_)) return;
  header.schema = sensors::kRadarScanSchema;
  header.payload_bytes = sensors::RadarScan::bytes_for(capacity_);
  header.capture_ns = header.arrival_ns = 0;
  auto& scan = *reinterpret_cast<sensors::RadarScan*>(payload.data());
  scan = {};
  scan.count = scan.capacity = capacity_;
  SplitMix noise(seed);
  for (std::uint32_t i = 0; i < capacity_; ++i) {
    sensors::RadarReturn& r = scan.returns()[i];
    r.x = noise.uniform(20, 21);
    r.y = noise.uniform(-3, 3);
    r.z = 0;
    r.range_rate = noise.uniform(-40, 40);
    r.rcs = 10;
  }
}

}  // namespace

RadarConfig read_radar_config(const YamlNode& params) {
  RadarConfig c;
  read_parameter(params, "range_min_m", c.range_min_m, 0.1, 20);
  read_parameter(params, "range_max_m", c.range_max_m, 1, 500);
  read_parameter(params, "height_max_m", c.height_max_m, 0, 20);
  read_parameter(params, "moving_min_mps", c.moving_min_mps, 0.05, 10);
  read_parameter(params, "gap_m", c.gap_m, 0.1, 10);
  read_parameter(params, "gap_rate_mps", c.gap_rate_mps, 0.05, 20);
  read_parameter(params, "static_gap_m", c.static_gap_m, 0.1, 10);
  read_parameter(params, "static_extent_min_m", c.static_extent_min_m, 0, 20);
  read_parameter(params, "static_extent_max_m", c.static_extent_max_m, 0, 50);
  read_parameter(params, "static_hits_min", c.static_hits_min, 1, 1000);
  read_parameter(params, "score_moving", c.score_moving, 0, 1);
  read_parameter(params, "score_static", c.score_static, 0, 1);
  read_parameter(params, "sigma_range_m", c.sigma_range_m, 0.01, 10);
  read_parameter(params, "sigma_azimuth_rad", c.sigma_azimuth_rad, 0, 1);
  return c;
}

Result<std::unique_ptr<Stage>> create_radar_cluster(const StageSpec& spec, const RadarConfig& config) {
  TAKT_ASSIGN(const DetectionInputs inputs, find_inputs(spec, sensors::SensorKind::kRadar));
  const StageConnection& sample = spec.inputs[inputs.sample];
  if (sample.sensor->capacity == 0) {
    return fail(Code::kConfiguration, "stage '" + spec.name + "': radar '" + sample.sensor->name +
                                          "' declares no capacity; give the most returns a scan may hold");
  }
  return std::make_unique<RadarCluster>(spec, inputs, config);
}

}  // namespace takt::pipeline
