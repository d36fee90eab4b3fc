#include "sensors/sim/radar.h"

#include <algorithm>
#include <cmath>

#include "kernels/reference/elementary.h"
#include "sensors/sim/random.h"

namespace takt::sensors::sim {
namespace {

constexpr std::uint64_t kRadarNoise = 301;

// A point that may reflect: world position, the velocity it moves with, mean radar cross section, and how likely it is
// to be detected at short range.
struct Reflector {
  Vec3 point;
  Vec3 velocity;
  double rcs = 0;     // dBsm
  double chance = 0;  // 0..1
};

class Scan {
 public:
  Scan(const World& world, const RigSensor& sensor, std::uint64_t index, double t, std::vector<RadarReturn>* out)
      : world_(world), sensor_(sensor), random_(world.scene().seed, kRadarNoise, index), out_(out) {
    world_.pose(t, &motions_);
    const Motion ego = world_.ego(t);
    pose_ = sensor_pose(ego, sensor_.vehicle_from_sensor);
    velocity_ = ego.velocity_at(pose_.origin);
  }

  void run() {
    for (std::size_t i = 0; i < motions_.size(); ++i) {
      const Shape& shape = world_.shapes()[i];
      const Motion& motion = motions_[i];
      const double reach = world_.scene().radar.maximum_range + shape.size.x;
      const Vec3 gap = motion.position - pose_.origin;
      if (dot(gap, gap) > reach * reach) continue;
      switch (shape.kind) {
        case ShapeKind::kCar: vehicle(i, shape, motion, 8); break;
        case ShapeKind::kVan: vehicle(i, shape, motion, 11); break;
        case ShapeKind::kTruck: vehicle(i, shape, motion, 16); break;
        case ShapeKind::kPedestrian: pole(i, motion, 0.15, 0.9, -7, 0.7); break;
        case ShapeKind::kTree: pole(i, motion, 0.2, 1.0, -4, 0.35); break;
        case ShapeKind::kLamp: pole(i, motion, 0.08, 1.0, 2, 0.6); break;
        case ShapeKind::kBuilding: walls(i, shape, motion); break;
      }
    }
    clutter();
  }

 private:
  void vehicle(std::size_t index, const Shape& shape, const Motion& motion, double rcs) {
    const double l = shape.size.x / 2;
    const double w = shape.size.y / 2;
    struct Spot {
      double x, y, nx, ny, gain, chance;
    };
    const Spot spots[] = {{l, 0, 1, 0, 4, 0.8},          {-l, 0, -1, 0, 5, 0.85},
                          {0, w, 0, 1, 4, 0.6},          {0, -w, 0, -1, 4, 0.6},
                          {l, w, 0.7, 0.7, 0, 0.55},     {l, -w, 0.7, -0.7, 0, 0.55},
                          {-l, w, -0.7, 0.7, 0, 0.6},    {-l, -w, -0.7, -0.7, 0, 0.6},
                          {0.62 * l, w, 0, 1, -3, 0.45}, {0.62 * l, -w, 0, -1, -3, 0.45},
                          {-0.6 * l, w, 0, 1, -3, 0.45}, {-0.6 * l, -w, 0, -1, -3, 0.45}};
    for (const Spot& spot : spots) {
      const Vec3 point = motion.to_world({spot.x, spot.y, 0.55});
      const Vec3 to_sensor = unit(pose_.origin - point);
      const double facing = dot(motion.rotate({spot.nx, spot.ny, 0}), to_sensor);
      const double chance = random_.uniform();  // drawn for every spot: a hidden one changes no other
      const double fluctuation = random_.gauss();
      if (facing < 0.15) continue;
      add(index, {point, motion.velocity_at(point), rcs + spot.gain * facing + 2.5 * fluctuation, spot.chance}, chance);
    }
  }

  void pole(std::size_t index, const Motion& motion, double radius, double height, double rcs, double chance) {
    const double luck = random_.uniform();
    const double fluctuation = random_.gauss();
    const Vec3 axis = motion.position + Vec3{0, 0, height};
    const Vec3 towards = unit(Vec3{pose_.origin.x - axis.x, pose_.origin.y - axis.y, 0});
    add(index, {axis + towards * radius, motion.velocity, rcs + 3 * fluctuation, chance}, luck);
  }

  // Window frames and downpipes: a possible reflector every 3 m along the walls.
  void walls(std::size_t index, const Shape& shape, const Motion& motion) {
    const double half = shape.size.x / 2;
    const double depth = shape.size.y / 2;
    for (double u = -half + 0.3; u < half; u += 3.0) {
      const double luck = random_.uniform();
      const double fluctuation = random_.gauss();
      const Vec3 local = motion.to_local(pose_.origin);
      const double side = local.y > 0 ? 1.0 : -1.0;
      const Vec3 point = motion.to_world({u, side * depth, 1.2});
      add(index, {point, {}, 6 + 4 * fluctuation, 0.18}, luck);
    }
  }

  // Detects a reflector unless it is out of view, too weak, unlucky or hidden behind another object.
  void add(std::size_t index, const Reflector& reflector, double luck) {
    const RadarSettings& settings = world_.scene().radar;
    const Vec3 gap = reflector.point - pose_.origin;
    const double range = norm(gap);
    const Vec3 seen = pose_.rotate_back(gap);
    const double azimuth = kernels::atan2(seen.y, seen.x);
    if (range < 0.5 || range > settings.maximum_range || std::fabs(azimuth) > settings.field_of_view) return;
    // Signal over the detection threshold falls with the fourth power of range: 0 dBsm is lost at about 75 m.
    const double margin = reflector.rcs + 40.0 * (4.317 - kernels::log(range)) / 2.302585092994046;
    if (margin < 0 || luck > reflector.chance * std::min(1.0, 0.4 + margin / 20)) return;
    const Ray ray{pose_.origin, gap * (1 / range)};
    for (std::size_t i = 0; i < motions_.size(); ++i) {
      if (i == index) continue;
      Hit hit;
      hit.range = range - 0.3;
      if (cast_object(world_, static_cast<std::int32_t>(i), motions_[i], ray, &hit)) return;
    }
    emit(range, azimuth, dot(reflector.velocity - velocity_, ray.direction), reflector.rcs);
  }

  void emit(double range, double azimuth, double range_rate, double rcs) {
    const RadarSettings& settings = world_.scene().radar;
    const double r = range + settings.range_noise * random_.gauss();
    const double a = azimuth + settings.azimuth_noise * random_.gauss();
    const double rate = range_rate + settings.speed_noise * random_.gauss();
    if (out_->size() >= sensor_.capacity) return;
    RadarReturn& found = out_->emplace_back();
    found.x = static_cast<float>(r * kernels::cos(a));
    found.y = static_cast<float>(r * kernels::sin(a));
    found.z = 0;  // it does not measure elevation
    found.range_rate = static_cast<float>(rate);
    found.rcs = static_cast<float>(rcs);
  }

  void clutter() {
    const RadarSettings& settings = world_.scene().radar;
    // Binomial stand-in for a Poisson count with the same mean.
    const int trials = static_cast<int>(std::floor(settings.clutter * 2));
    for (int i = 0; i < trials; ++i) {
      const bool present = random_.uniform() < 0.5;
      const double range = 3 + (settings.maximum_range - 3) * random_.uniform();
      const double azimuth = settings.field_of_view * random_.uniform(-1, 1);
      const double rcs = random_.uniform(-12, 0);
      const bool wrong_speed = random_.uniform() < 0.3;
      const double speed = random_.uniform(-12, 12);
      if (!present) continue;
      const Vec3 direction = pose_.rotate({kernels::cos(azimuth), kernels::sin(azimuth), 0});
      emit(range, azimuth, wrong_speed ? speed : -dot(velocity_, direction), rcs);
    }
  }

  const World& world_;
  const RigSensor& sensor_;
  Random random_;
  std::vector<RadarReturn>* out_;
  std::vector<Motion> motions_;
  SensorPose pose_;
  Vec3 velocity_;
};

}  // namespace

void simulate_scan(const World& world, const RigSensor& sensor, std::uint64_t index, double t,
                   std::vector<RadarReturn>* out) {
  out->clear();
  Scan(world, sensor, index, t, out).run();
}

}  // namespace takt::sensors::sim
