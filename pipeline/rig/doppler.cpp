#include "pipeline/rig/doppler.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace takt::pipeline {

std::optional<std::array<double, 2>> sensor_velocity(std::span<const sensors::RadarReturn> returns) {
  struct Ray {
    double x, y, rate;
  };
  std::vector<Ray> rays;
  for (const sensors::RadarReturn& r : returns) {
    const auto x = static_cast<double>(r.x), y = static_cast<double>(r.y), z = static_cast<double>(r.z);
    const double range = std::sqrt(x * x + y * y + z * z);
    if (range > 0.5) rays.push_back({x / range, y / range, static_cast<double>(r.range_rate)});
  }
  if (rays.size() < 6) return std::nullopt;
  std::array<double, 2> v{0, 0};
  double scale = 1e9;  // first round: all count alike
  const auto residual = [&](const Ray& ray) { return ray.rate + ray.x * v[0] + ray.y * v[1]; };
  for (int round = 0; round < 20; ++round) {
    double xx = 0, xy = 0, yy = 0, xr = 0, yr = 0;
    for (const Ray& ray : rays) {
      const double e = residual(ray) / scale;
      const double w = 1 / ((1 + e * e) * (1 + e * e));  // Geman-McClure
      xx += w * ray.x * ray.x;
      xy += w * ray.x * ray.y;
      yy += w * ray.y * ray.y;
      xr -= w * ray.x * ray.rate;
      yr -= w * ray.y * ray.rate;
    }
    const double det = xx * yy - xy * xy;
    if (det < 1e-3 * xx * xx || det <= 0) return std::nullopt;
    v = {(yy * xr - xy * yr) / det, (xx * yr - xy * xr) / det};
    scale = round == 0 ? 4 : std::max(0.25, scale * 0.7);
  }
  std::size_t agree = 0;
  for (const Ray& ray : rays) agree += std::fabs(residual(ray)) < 0.5 ? 1 : 0;
  if (agree * 2 < rays.size()) return std::nullopt;
  return v;
}

}  // namespace takt::pipeline
