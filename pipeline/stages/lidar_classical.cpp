#include "pipeline/stages/lidar_classical.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/reference/elementary.h"
#include "pipeline/stages/adversarial.h"
#include "pipeline/stages/box_fit.h"
#include "pipeline/stages/object_output.h"
#include "pipeline/stages/parameter.h"
#include "pipeline/stages/rigid.h"
#include "pipeline/stages/share.h"

namespace takt::pipeline {

namespace {

// The vehicle's motion during a sweep, seen from the pose at the stamp reference.
struct SweepMotion {
  float vx = 0, vy = 0;  // m/s
  float yaw_rate = 0;    // rad/s
  bool compensate = false;

  // Moves a point measured `seconds` after the stamp into the vehicle frame at the stamp. Series of sine and cosine:
  // below 1e-6 for the 0.1 rad that a vehicle turns within a sweep.
  [[nodiscard]] Point3 at_stamp(const Point3& p, float seconds) const {
    const float a = yaw_rate * seconds;
    const float cosine = 1 - a * a * (0.5F - a * a / 24);
    const float sine = a * (1 - a * a / 6);
    const float half_cosine = 1 - a * a / 8;  // the translation points along the mean heading
    const float half_sine = a / 2;
    const float dx = (vx * half_cosine - vy * half_sine) * seconds;
    const float dy = (vx * half_sine + vy * half_cosine) * seconds;
    return {cosine * p.x - sine * p.y + dx, sine * p.x + cosine * p.y + dy, p.z};
  }
};

// A box on the ground with a margin around it.
struct Footprint {
  float x = 0, y = 0;
  float cosine = 1, sine = 0;
  float half_length = 0, half_width = 0;
};

class LidarClassical final : public Stage {
 public:
  LidarClassical(const StageSpec& spec, const DetectionInputs& inputs, const LidarConfig& config)
      : config_(config),
        connections_(spec.inputs),
        inputs_(inputs),
        capacity_(spec.inputs[inputs.sample].sensor->capacity),
        pose_(spec.inputs[inputs.sample].sensor->vehicle_from_sensor),
        ray_origin_(origin_of_rays(*spec.inputs[inputs.sample].sensor)),
        ground_(config.ground, config.range_m),
        clusters_(config.cluster, config.range_m, capacity_),
        fit_(config.fit_floor_m, config.fit_points_max),
        x_(capacity_),
        y_(capacity_),
        z_(capacity_),
        ground_cell_(capacity_),
        obstacle_cell_(capacity_),
        raised_cell_(capacity_),
        cluster_x_(capacity_),
        cluster_y_(capacity_),
        found_(config.cluster.max),
        objects_(config.cluster.max),
        vehicles_(config.cluster.max) {}

  [[nodiscard]] int phases() const override { return 6; }
  [[nodiscard]] bool parallel(int phase) const override { return phase % 2 == 0; }
  [[nodiscard]] std::uint32_t output_schema() const override { return kObjectListSchema; }
  [[nodiscard]] std::uint64_t output_bytes() const override { return sizeof(ObjectList); }

  void run(int phase, int part, int parts, StageJob& job) override {
    switch (phase) {
      case 0: to_vehicle_frame(job, part, parts); break;
      case 1: find_ground(job); break;
      case 2: find_obstacles(part, parts); break;
      case 3: cluster(); break;
      case 4: fit_boxes(part, parts); break;
      default: write(job); break;
    }
  }

  void adversarial_input(std::size_t input, std::uint32_t seed, transport::ChunkHeader& header,
                         std::span<std::byte> payload) const override;

 private:
  static constexpr std::int32_t kInvalid = -2;  // ground_cell_: NaN or infinite
  static constexpr std::int32_t kNoCell = -1;   // outside, the vehicle itself, or not of this kind

  static Point3 origin_of_rays(const sensors::RigSensor& sensor) {
    const auto& o = sensor.ray_origin;
    return VehicleFromSensor(sensor.vehicle_from_sensor)
        .point(static_cast<float>(o[0]), static_cast<float>(o[1]), static_cast<float>(o[2]));
  }

  [[nodiscard]] std::uint32_t points_of(const sensors::PointCloud* cloud) const {
    return cloud == nullptr ? 0 : std::min({cloud->count, cloud->capacity, capacity_});
  }
  [[nodiscard]] SweepMotion motion_of(const StageJob& job, const sensors::PointCloud& cloud) const;
  void to_vehicle_frame(const StageJob& job, int part, int parts);
  void find_ground(const StageJob& job);
  void find_obstacles(int part, int parts);
  void cluster();
  void fit_boxes(int part, int parts);
  [[nodiscard]] std::size_t suppress_inside(std::size_t count);
  void write(StageJob& job);
  [[nodiscard]] bool on_ego(const Point3& p) const;
  [[nodiscard]] Object object_of(const BevClusters::Cluster& cluster) const;
  void classify(const FittedBox& box, float top, Object& object) const;
  void complete_vehicle(FittedBox box, float top, Object& object) const;
  void place(const FittedBox& box, int length_axis, float top, Object& object) const;

  LidarConfig config_;
  std::vector<StageConnection> connections_;
  DetectionInputs inputs_;
  std::uint32_t capacity_;
  VehicleFromSensor pose_;
  Point3 ray_origin_;  // vehicle frame
  GroundGrid ground_;
  BevClusters clusters_;
  BoxFit fit_;

  // One entry per point, vehicle frame at the stamp.
  std::uint32_t count_ = 0;
  std::vector<float> x_, y_, z_;
  std::vector<std::int32_t> ground_cell_;
  std::vector<std::int32_t> obstacle_cell_, raised_cell_;  // cells of the clustering grid
  std::vector<float> cluster_x_, cluster_y_;               // grouped by cluster
  std::vector<Object> found_;                              // per cluster; points == 0: nothing
  std::vector<Object> objects_;
  std::vector<Footprint> vehicles_;
  std::uint32_t invalid_ = 0;
};

SweepMotion LidarClassical::motion_of(const StageJob& job, const sensors::PointCloud& cloud) const {
  SweepMotion motion;
  if (cloud.motion_compensated != 0 || !inputs_.ego) return motion;
  const sensors::EgoMotion* ego = ego_of(job.inputs[*inputs_.ego]);
  if (ego == nullptr) return motion;
  motion.vx = static_cast<float>(ego->velocity[0]);
  motion.vy = static_cast<float>(ego->velocity[1]);
  motion.yaw_rate = static_cast<float>(ego->angular_velocity[2]);
  motion.compensate = true;
  return motion;
}

bool LidarClassical::on_ego(const Point3& p) const {
  return p.x > -config_.ego_rear_m && p.x < config_.ego_front_m && std::fabs(p.y) < config_.ego_half_width_m;
}

void LidarClassical::to_vehicle_frame(const StageJob& job, int part, int parts) {
  const sensors::PointCloud* cloud = cloud_of(job.inputs[inputs_.sample]);
  if (cloud == nullptr) return;
  const SweepMotion motion = motion_of(job, *cloud);
  const float* sx = cloud->x();
  const float* sy = cloud->y();
  const float* sz = cloud->z();
  const std::int32_t* time = cloud->time_ns();
  const Share share = share_of(points_of(cloud), part, parts);
  for (std::uint32_t i = share.begin; i < share.end; ++i) {
    Point3 p = pose_.point(sx[i], sy[i], sz[i]);
    if (!std::isfinite(p.x) || !std::isfinite(p.y) || !std::isfinite(p.z)) {
      ground_cell_[i] = kInvalid;
      continue;
    }
    if (on_ego(p)) {
      ground_cell_[i] = kNoCell;
      continue;
    }
    if (motion.compensate) p = motion.at_stamp(p, static_cast<float>(time[i]) * 1e-9F);
    x_[i] = p.x;
    y_[i] = p.y;
    z_[i] = p.z;
    ground_cell_[i] = ground_.cell_of(p.x, p.y);
  }
}

void LidarClassical::find_ground(const StageJob& job) {
  count_ = points_of(cloud_of(job.inputs[inputs_.sample]));
  invalid_ = 0;
  ground_.clear();
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (ground_cell_[i] >= 0) ground_.add(ground_cell_[i], z_[i]);
    if (ground_cell_[i] == kInvalid) ++invalid_;
  }
  ground_.grow();
}

void LidarClassical::find_obstacles(int part, int parts) {
  const Share share = share_of(count_, part, parts);
  for (std::uint32_t i = share.begin; i < share.end; ++i) {
    obstacle_cell_[i] = raised_cell_[i] = kNoCell;
    if (ground_cell_[i] < 0) continue;
    z_[i] -= ground_.height(ground_cell_[i]);  // from here on: height over the local ground
    if (z_[i] >= config_.obstacle_low_m && z_[i] <= config_.obstacle_high_m) {
      obstacle_cell_[i] = clusters_.cell_of(x_[i], y_[i]);
    } else if (z_[i] > config_.obstacle_high_m && z_[i] <= config_.raised_max_m) {
      raised_cell_[i] = clusters_.cell_of(x_[i], y_[i]);
    }
  }
}

void LidarClassical::cluster() {
  clusters_.clear();
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (obstacle_cell_[i] >= 0) clusters_.add(obstacle_cell_[i], i);
    if (raised_cell_[i] >= 0) clusters_.mark_raised(raised_cell_[i]);
  }
  clusters_.connect();
}

void LidarClassical::fit_boxes(int part, int parts) {
  const auto clusters = clusters_.clusters();
  for (std::size_t c = static_cast<std::size_t>(part); c < clusters.size(); c += static_cast<std::size_t>(parts)) {
    for (std::uint32_t i = 0; i < clusters[c].count; ++i) {
      const std::uint32_t point = clusters_.points()[clusters[c].first + i];
      cluster_x_[clusters[c].first + i] = x_[point];
      cluster_y_[clusters[c].first + i] = y_[point];
    }
    found_[c] = object_of(clusters[c]);
  }
}

// points == 0 in the result: no object.
Object LidarClassical::object_of(const BevClusters::Cluster& cluster) const {
  const std::span x(cluster_x_.data() + cluster.first, cluster.count);
  const std::span y(cluster_y_.data() + cluster.first, cluster.count);
  const auto [x0, x1] = std::minmax_element(x.begin(), x.end());
  const auto [y0, y1] = std::minmax_element(y.begin(), y.end());
  const float diagonal = std::sqrt((*x1 - *x0) * (*x1 - *x0) + (*y1 - *y0) * (*y1 - *y0));
  if (diagonal > config_.vehicle_length_max_m + config_.vehicle_width_max_m) return {};

  float top = 0;
  for (std::uint32_t i = 0; i < cluster.count; ++i) {
    top = std::max(top, z_[clusters_.points()[cluster.first + i]]);
  }
  const std::uint32_t anchor = clusters_.points()[cluster.first];
  Object object;
  object.points = cluster.count;
  object.z = ground_.height(ground_cell_[anchor]);  // of its foot; place() moves it to the box centre
  const FittedBox box = fit_.fit(x, y, ray_origin_.x, ray_origin_.y);
  const bool raised =
      static_cast<float>(cluster.raised_cells) > config_.raised_share * static_cast<float>(cluster.cells);
  const float longer = std::max(box.extent(0), box.extent(1));
  const float shorter = std::min(box.extent(0), box.extent(1));
  if (raised && (longer < config_.raised_length_min_m || shorter < config_.raised_width_min_m)) return {};
  classify(box, top, object);
  return object;
}

void LidarClassical::classify(const FittedBox& box, float top, Object& object) const {
  const float longer = std::max(box.extent(0), box.extent(1));
  const float shorter = std::min(box.extent(0), box.extent(1));
  const auto points = static_cast<float>(object.points);
  object.score = points / (points + config_.score_points);
  if (longer >= config_.vehicle_face_min_m && longer <= config_.vehicle_length_max_m &&
      shorter <= config_.vehicle_width_max_m && top >= config_.vehicle_top_min_m) {
    object.object_class = ObjectClass::kVehicle;
    complete_vehicle(box, top, object);
  } else if (longer <= config_.pedestrian_extent_max_m && top >= config_.pedestrian_top_min_m &&
             top <= config_.pedestrian_top_max_m) {
    object.object_class = ObjectClass::kPedestrian;
    place(box, 0, top, object);
  } else {
    object.object_class = ObjectClass::kOther;
    object.score *= 0.5F;
    place(box, box.extent(0) >= box.extent(1) ? 0 : 1, top, object);
  }
}

// Only the sides that face the sensor are seen. The visible edges stay where they were measured; the hidden extent is
// filled up to the nominal size, away from the sensor.
void LidarClassical::complete_vehicle(FittedBox box, float top, Object& object) const {
  const int longer = box.extent(0) >= box.extent(1) ? 0 : 1;
  // A longer side of at most the width of a vehicle is its rear or front, or the part of a flank that was hit. The
  // face that the rays meet head-on is seen completely, so it is the width.
  const float view[2] = {std::fabs(box.low[0] + box.high[0] - 2 * box.sensor[0]),
                         std::fabs(box.low[1] + box.high[1] - 2 * box.sensor[1])};
  const int along_view = view[0] >= view[1] ? 0 : 1;
  const int length_axis = box.extent(longer) > config_.rear_face_max_m ? longer : along_view;
  float hidden = 0;
  const auto fill = [&](int axis, float nominal) {
    const float missing = nominal - box.extent(axis);
    if (missing <= 0) return;
    hidden += missing;
    (box.low_faces_sensor(axis) ? box.high[axis] : box.low[axis]) += box.low_faces_sensor(axis) ? missing : -missing;
  };
  fill(length_axis, config_.vehicle_length_m);
  fill(1 - length_axis, config_.vehicle_width_m);
  place(box, length_axis, std::max(top, config_.vehicle_height_m), object);
  object.position_variance += hidden * hidden / 16;  // the centre moves by half of an extent that varies by a half
}

void LidarClassical::place(const FittedBox& box, int length_axis, float top, Object& object) const {
  const float centre[2] = {(box.low[0] + box.high[0]) / 2, (box.low[1] + box.high[1]) / 2};
  object.x = centre[0] * box.cosine - centre[1] * box.sine;
  object.y = centre[0] * box.sine + centre[1] * box.cosine;
  object.z += top / 2;
  object.length = box.extent(length_axis);
  object.width = box.extent(1 - length_axis);
  object.height = top;
  // A box looks the same turned by pi: headings in (-pi/2, pi/2].
  object.yaw = length_axis == 0 ? box.heading : box.heading - static_cast<float>(kernels::kPi / 2);
  object.position_variance = 0.04F;  // 0.2 m: range noise and the cells of the clustering
  object.flags = kHasPosition | kHasBox;
}

// Rays that graze a side or look through a window leave slivers beside the cluster of their vehicle: what lies inside
// the box of a better vehicle belongs to it. Keeps the order of scores; returns the new count.
std::size_t LidarClassical::suppress_inside(std::size_t count) {
  std::sort(objects_.begin(), objects_.begin() + static_cast<std::ptrdiff_t>(count), better);
  std::size_t vehicles = 0;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Object candidate = objects_[i];
    const bool inside = std::any_of(vehicles_.begin(), vehicles_.begin() + static_cast<std::ptrdiff_t>(vehicles),
                                    [&](const Footprint& box) {
                                      const float dx = candidate.x - box.x, dy = candidate.y - box.y;
                                      return std::fabs(box.cosine * dx + box.sine * dy) <= box.half_length &&
                                             std::fabs(box.cosine * dy - box.sine * dx) <= box.half_width;
                                    });
    if (inside) continue;
    if (candidate.object_class == ObjectClass::kVehicle) {
      vehicles_[vehicles++] = {candidate.x,
                               candidate.y,
                               static_cast<float>(kernels::cos(candidate.yaw)),
                               static_cast<float>(kernels::sin(candidate.yaw)),
                               candidate.length / 2 + config_.suppress_margin_m,
                               candidate.width / 2 + config_.suppress_margin_m};
    }
    objects_[kept++] = candidate;
  }
  return kept;
}

void LidarClassical::write(StageJob& job) {
  std::size_t count = 0;
  for (std::size_t c = 0; c < clusters_.clusters().size(); ++c) {
    if (found_[c].points > 0) objects_[count++] = found_[c];
  }
  count = suppress_inside(count);
  const sensors::PointCloud* cloud = cloud_of(job.inputs[inputs_.sample]);
  const bool clamped = cloud != nullptr && cloud->count > count_;
  job.repaired = invalid_ > 0 || clamped;
  write_objects(job, {objects_.data(), count}, {count_ - invalid_, invalid_, clusters_.dropped()}, connections_,
                inputs_.sample, inputs_.ego);
}

// As many separate clusters as are looked at, each spread over as many cells as its points can fill: every box fit
// runs, and hardly any cell is shared.
void LidarClassical::adversarial_input(std::size_t input, std::uint32_t seed, transport::ChunkHeader& header,
                                       std::span<std::byte> payload) const {
  if (input != inputs_.sample) {
    write_ego_input(header, payload);
    return;
  }
  const std::uint32_t capacity = capacity_;
  if (payload.size() < sensors::PointCloud::bytes_for(capacity)) return;
  header.schema = sensors::kPointCloudSchema;
  header.payload_bytes = sensors::PointCloud::bytes_for(capacity);
  header.capture_ns = header.arrival_ns = 0;
  auto& cloud = *reinterpret_cast<sensors::PointCloud*>(payload.data());
  cloud = {};
  cloud.count = cloud.capacity = capacity;
  SplitMix noise(seed);
  const float pitch = 1.6F + 0.5F + config_.cluster.gap_max_m;  // just too far to connect
  const auto side = static_cast<std::uint32_t>(config_.range_m * 2 / pitch);
  const std::uint32_t sites = std::max(1U, std::min(side * side, config_.cluster.max));
  for (std::uint32_t i = 0; i < capacity; ++i) {
    const std::uint32_t site = i % sites;
    const float x = -config_.range_m + pitch * static_cast<float>(site % side) + noise.uniform(0, 1.6F);
    const float y = -config_.range_m + pitch * static_cast<float>(site / side) + noise.uniform(0, 1.6F);
    const Point3 p = pose_.in_sensor(x, y, noise.uniform(0.3F, 2.0F));
    cloud.x()[i] = p.x;
    cloud.y()[i] = p.y;
    cloud.z()[i] = p.z;
    cloud.intensity()[i] = 0;
    cloud.time_ns()[i] = static_cast<std::int32_t>(100'000'000ULL * site / sites);
    cloud.ring()[i] = 0;
  }
}

}  // namespace

LidarConfig read_lidar_config(const YamlNode& params) {
  LidarConfig c;
  read_parameter(params, "range_m", c.range_m, 5, 200);
  read_parameter(params, "ego_rear_m", c.ego_rear_m, 0, 20);
  read_parameter(params, "ego_front_m", c.ego_front_m, 0, 20);
  read_parameter(params, "ego_half_width_m", c.ego_half_width_m, 0, 5);
  read_parameter(params, "ground_cell_m", c.ground.cell_m, 0.5, 10);
  read_parameter(params, "ground_rise_max_m", c.ground.rise_max_m, 0, 2);
  read_parameter(params, "ground_drop_max_m", c.ground.drop_max_m, 0, 2);
  read_parameter(params, "ground_slope_max", c.ground.slope_max, 0, 1);
  read_parameter(params, "ground_plane_range_m", c.ground.plane_range_m, 5, 200);
  read_parameter(params, "ground_plane_gate_m", c.ground.plane_gate_m, 0.01, 2);
  read_parameter(params, "obstacle_low_m", c.obstacle_low_m, 0, 2);
  read_parameter(params, "obstacle_high_m", c.obstacle_high_m, 0.5, 10);
  read_parameter(params, "raised_max_m", c.raised_max_m, 0.5, 50);
  read_parameter(params, "cluster_cell_m", c.cluster.cell_m, 0.1, 2);
  read_parameter(params, "cluster_gap_m", c.cluster.gap_m, 0.1, 5);
  read_parameter(params, "cluster_gap_per_m", c.cluster.gap_per_m, 0, 0.2);
  read_parameter(params, "cluster_gap_max_m", c.cluster.gap_max_m, 0.1, 5);
  read_parameter(params, "clusters_max", c.cluster.max, 1, 16384);
  read_parameter(params, "cluster_points_min", c.cluster.points_min, 1, 1000);
  read_parameter(params, "fit_floor_m", c.fit_floor_m, 0.001, 1);
  read_parameter(params, "fit_points_max", c.fit_points_max, 8, 100000);
  read_parameter(params, "vehicle_length_max_m", c.vehicle_length_max_m, 1, 30);
  read_parameter(params, "vehicle_width_max_m", c.vehicle_width_max_m, 1, 10);
  read_parameter(params, "vehicle_face_min_m", c.vehicle_face_min_m, 0.1, 5);
  read_parameter(params, "vehicle_top_min_m", c.vehicle_top_min_m, 0, 5);
  read_parameter(params, "vehicle_length_m", c.vehicle_length_m, 1, 20);
  read_parameter(params, "vehicle_width_m", c.vehicle_width_m, 0.5, 5);
  read_parameter(params, "vehicle_height_m", c.vehicle_height_m, 0.5, 5);
  read_parameter(params, "rear_face_max_m", c.rear_face_max_m, 0.5, 10);
  read_parameter(params, "pedestrian_extent_max_m", c.pedestrian_extent_max_m, 0.2, 3);
  read_parameter(params, "pedestrian_top_min_m", c.pedestrian_top_min_m, 0.2, 3);
  read_parameter(params, "pedestrian_top_max_m", c.pedestrian_top_max_m, 0.2, 3);
  read_parameter(params, "raised_share", c.raised_share, 0, 1);
  read_parameter(params, "raised_length_min_m", c.raised_length_min_m, 0, 30);
  read_parameter(params, "raised_width_min_m", c.raised_width_min_m, 0, 30);
  read_parameter(params, "score_points", c.score_points, 0, 1000);
  read_parameter(params, "suppress_margin_m", c.suppress_margin_m, 0, 5);
  return c;
}

Result<std::unique_ptr<Stage>> create_lidar_classical(const StageSpec& spec, const LidarConfig& config) {
  TAKT_ASSIGN(const DetectionInputs inputs, find_inputs(spec, sensors::SensorKind::kLidar));
  const StageConnection& sample = spec.inputs[inputs.sample];
  if (sample.sensor->capacity == 0) {
    return fail(Code::kConfiguration, "stage '" + spec.name + "': LiDAR '" + sample.sensor->name +
                                          "' declares no capacity; give the most points a sweep may hold");
  }
  const ClusterConfig& cluster = config.cluster;
  if (cluster.gap_m < cluster.cell_m || cluster.gap_max_m > BevClusters::kReachMax * cluster.cell_m) {
    return fail(Code::kConfiguration, "stage '" + spec.name +
                                          "': cluster_gap_m must be at least cluster_cell_m, and cluster_gap_max_m at "
                                          "most 31 times cluster_cell_m");
  }
  return std::make_unique<LidarClassical>(spec, inputs, config);
}

}  // namespace takt::pipeline
