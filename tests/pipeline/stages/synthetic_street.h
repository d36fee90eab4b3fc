// A flat street with boxes on it, ray-cast as a spinning LiDAR sees it. Vehicle frame; sensor axes parallel to it.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/reference/elementary.h"
#include "pipeline/stages/adversarial.h"
#include "stage_fixture.h"

namespace takt::pipeline::testing {

struct StreetBox {
  float x = 0, y = 0;  // centre
  float length = 4.5F, width = 1.8F, height = 1.5F;
  float yaw = 0;
  [[nodiscard]] static StreetBox car(float x, float y, float yaw) { return {x, y, 4.5F, 1.8F, 1.5F, yaw}; }
};

struct StreetLidar {
  int rings = 32;
  float lowest = -0.42F, highest = 0.05F;  // elevation, rad
  int columns = 900;
  float range_max = 80;
  float noise = 0.02F;  // half width of a uniform range error, m
};

// First hit of a ray from (ox, oy, oz) with the unit direction d, range_max when there is none.
inline float range_of(const std::vector<StreetBox>& boxes, const Point3& o, const Point3& d, float range_max) {
  float nearest = d.z < 0 ? std::min(range_max, -o.z / d.z) : range_max;
  for (const StreetBox& box : boxes) {
    const auto c = static_cast<float>(kernels::cos(box.yaw));
    const auto s = static_cast<float>(kernels::sin(box.yaw));
    const float rx = o.x - box.x, ry = o.y - box.y;
    const float origin[3] = {c * rx + s * ry, c * ry - s * rx, o.z - box.height / 2};
    const float ray[3] = {c * d.x + s * d.y, c * d.y - s * d.x, d.z};
    const float half[3] = {box.length / 2, box.width / 2, box.height / 2};
    float enter = 0, leave = nearest;
    for (int i = 0; i < 3; ++i) {
      if (std::fabs(ray[i]) < 1e-9F) {
        if (std::fabs(origin[i]) > half[i]) enter = leave + 1;
        continue;
      }
      const float a = (-half[i] - origin[i]) / ray[i], b = (half[i] - origin[i]) / ray[i];
      enter = std::max(enter, std::min(a, b));
      leave = std::min(leave, std::max(a, b));
    }
    if (enter < leave) nearest = std::min(nearest, enter);
  }
  return nearest;
}

// In the sensor frame of `sensor`; misses are left out.
inline std::vector<CloudPoint> scan_street(const std::vector<StreetBox>& boxes, const sensors::RigSensor& sensor,
                                           std::uint32_t seed, const StreetLidar& lidar = {}) {
  const VehicleFromSensor pose(sensor.vehicle_from_sensor);
  const Point3 origin = pose.origin();
  SplitMix noise(seed);
  std::vector<CloudPoint> points;
  for (int column = 0; column < lidar.columns; ++column) {
    const double azimuth = 2 * kernels::kPi * column / lidar.columns;
    for (int ring = 0; ring < lidar.rings; ++ring) {
      const double up = lidar.lowest +
                        (lidar.highest - lidar.lowest) * static_cast<float>(ring) / static_cast<float>(lidar.rings - 1);
      const Point3 d{static_cast<float>(kernels::cos(up) * kernels::cos(azimuth)),
                     static_cast<float>(kernels::cos(up) * kernels::sin(azimuth)),
                     static_cast<float>(kernels::sin(up))};
      const float range = range_of(boxes, origin, d, lidar.range_max);
      if (range >= lidar.range_max) continue;
      const float r = range + noise.uniform(-lidar.noise, lidar.noise);
      const Point3 p = pose.in_sensor(origin.x + d.x * r, origin.y + d.y * r, origin.z + d.z * r);
      points.push_back({p.x, p.y, p.z, static_cast<std::int32_t>(100'000'000LL * column / lidar.columns)});
    }
  }
  return points;
}

}  // namespace takt::pipeline::testing
