#include "sensors/sim/lidar.h"

#include <algorithm>
#include <cmath>

#include "kernels/reference/elementary.h"
#include "sensors/sim/random.h"

namespace takt::sensors::sim {
namespace {

constexpr std::uint64_t kLidarNoise = 201;
// Least reflectivity * cos(incidence) / range^2 that the receiver sees: a 10 % target at 150 m, asphalt at about 30 m.
constexpr double kSensitivity = 4.5e-6;

float rounded(double metres) { return static_cast<float>(std::floor(metres * 512.0 + 0.5) / 512.0); }

}  // namespace

void simulate_sweep(const World& world, const RigSensor& sensor, std::uint64_t index, double start,
                    Duration stamp_offset, Sweep* out) {
  const LidarSettings& settings = world.scene().lidar;
  out->points.clear();
  out->actor_points.assign(world.scene().actors.size(), 0);
  out->dropped = 0;
  Random random(world.scene().seed, kLidarNoise, index);
  std::vector<double> ring_cosine, ring_sine;
  for (const double elevation : settings.elevations) {
    ring_cosine.push_back(kernels::cos(elevation));
    ring_sine.push_back(kernels::sin(elevation));
  }
  std::vector<Motion> motions;
  for (std::uint32_t column = 0; column < settings.columns; ++column) {
    const std::int64_t firing_ns = sensor.duration.ns * column / settings.columns;
    const double t = start + static_cast<double>(firing_ns) * 1e-9;
    world.pose(t, &motions);
    const SensorPose pose = sensor_pose(world.ego(t), sensor.vehicle_from_sensor);
    const double azimuth = kernels::kPi - 2 * kernels::kPi * (column + 0.5) / settings.columns;
    const double c = kernels::cos(azimuth);
    const double s = kernels::sin(azimuth);
    for (std::size_t ring = 0; ring < settings.elevations.size(); ++ring) {
      const Vec3 direction{ring_cosine[ring] * c, ring_cosine[ring] * s, ring_sine[ring]};
      const Ray ray{pose.origin, pose.rotate(direction)};
      const double noise = random.gauss();
      const double luck = random.uniform();
      Hit hit = cast_all(world, motions, ray, settings.maximum_range);
      if (hit.object == Hit::kNothing) continue;
      resolve(world, motions, &hit);
      const double incidence = std::fabs(dot(hit.normal, ray.direction));
      const double power = reflectivity(world, hit) * incidence;
      const bool pane =
          hit.surface == Surface::kGlass || hit.surface == Surface::kWindow || hit.surface == Surface::kShopfront;
      if (power / (hit.range * hit.range) < kSensitivity || luck < settings.dropout || (pane && luck < 0.7)) continue;
      if (out->points.size() >= sensor.capacity) {
        ++out->dropped;
        continue;
      }
      const Vec3 point = direction * (hit.range + settings.range_noise * noise);
      log::LidarPoint& p = out->points.emplace_back();
      p.x = rounded(point.x);
      p.y = rounded(point.y);
      p.z = rounded(point.z);
      p.intensity = static_cast<float>(std::floor(255.0 * std::min(1.0, power) + 0.5));
      p.time_ns = static_cast<std::int32_t>(firing_ns - stamp_offset.ns);
      p.ring = static_cast<std::uint16_t>(ring);
      const auto object = static_cast<std::size_t>(std::max(hit.object, 0));
      if (hit.object >= 0 && object < out->actor_points.size()) ++out->actor_points[object];
    }
  }
}

}  // namespace takt::sensors::sim
