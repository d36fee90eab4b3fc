#include "sensors/lidar/crop.h"

#include <cmath>

#include "sensors/lidar/cloud_points.h"

namespace takt::sensors {

bool Box3::contains(const std::array<double, 3>& p) const {
  for (std::size_t i = 0; i < 3; ++i) {
    if (!(p[i] >= min[i] && p[i] < max[i])) return false;
  }
  return true;
}

CropCount crop(PointCloud& cloud, const CropRule& rule) {
  CropCount count;
  const double near = rule.range_min_m * rule.range_min_m, far = rule.range_max_m * rule.range_max_m;
  for (std::uint32_t i = 0; i < cloud.count; ++i) {
    const std::array<double, 3> p{cloud.x()[i], cloud.y()[i], cloud.z()[i]};
    if (!std::isfinite(p[0]) || !std::isfinite(p[1]) || !std::isfinite(p[2])) {
      ++count.invalid;
      continue;
    }
    double square = 0;
    for (std::size_t k = 0; k < 3; ++k) square += (p[k] - rule.ray_origin[k]) * (p[k] - rule.ray_origin[k]);
    if (square < near || square >= far) {
      ++count.range;
      continue;
    }
    if (rule.region || rule.ego) {
      const std::array<double, 3> q = rule.vehicle_from_sensor.apply(p);
      if (rule.region && !rule.region->contains(q)) {
        ++count.region;
        continue;
      }
      if (rule.ego && rule.ego->contains(q)) {
        ++count.ego;
        continue;
      }
    }
    copy_point(cloud, i, cloud, count.kept++);
  }
  cloud.count = count.kept;
  return count;
}

}  // namespace takt::sensors
