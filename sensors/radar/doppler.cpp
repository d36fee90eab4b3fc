#include "sensors/radar/doppler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace takt::sensors {
namespace {

struct Ray {
  std::array<double, 3> direction{};
  double rate = 0;
};

// Unit vector to the return; false for a return without direction.
bool ray_of(const RadarReturn& r, Ray& ray) {
  const double x = r.x, y = r.y, z = r.z;
  const double range = std::sqrt(x * x + y * y + z * z);
  if (!(range > 0) || !std::isfinite(range) || !std::isfinite(r.range_rate)) return false;
  ray = {{x / range, y / range, z / range}, r.range_rate};
  return true;
}

double along(const Ray& ray, const std::array<double, 3>& v) {
  return v[0] * ray.direction[0] + v[1] * ray.direction[1] + v[2] * ray.direction[2];
}

// Least squares of rate = -v . direction over the rays that `keep` names, by Gauss elimination with pivoting over the
// components that the rays show. False when fewer than two are observable.
template <class Keep>
bool solve(const std::vector<Ray>& rays, const Keep& keep, std::array<double, 3>& v) {
  double a[3][4] = {};
  double n = 0;
  for (const Ray& ray : rays) {
    if (!keep(ray)) continue;
    n += 1;
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) a[i][j] += ray.direction[i] * ray.direction[j];
      a[i][3] -= ray.direction[i] * ray.rate;
    }
  }
  constexpr double kObservable = 1e-4;  // mean square of a direction's part that counts
  int rows[3] = {0, 1, 2};
  bool solved[3] = {};
  for (int step = 0; step < 3; ++step) {
    int pivot = step;
    for (int i = step; i < 3; ++i) {
      if (a[rows[i]][rows[i]] > a[rows[pivot]][rows[pivot]]) pivot = i;
    }
    std::swap(rows[step], rows[pivot]);
    const int p = rows[step];
    if (a[p][p] < kObservable * n) break;
    solved[p] = true;
    for (int i = 0; i < 3; ++i) {
      if (i == p) continue;
      const double f = a[i][p] / a[p][p];
      for (int j = 0; j < 4; ++j) a[i][j] -= f * a[p][j];
    }
  }
  int count = 0;
  for (int i = 0; i < 3; ++i) {
    v[static_cast<std::size_t>(i)] = solved[i] ? a[i][3] / a[i][i] : 0;
    count += solved[i] ? 1 : 0;
  }
  return count >= 2;
}

}  // namespace

std::array<double, 3> sensor_velocity(const EgoMotion& ego, const Transform& vehicle_from_sensor) {
  const double* v = ego.velocity;
  const double* w = ego.angular_velocity;
  const std::array<double, 3>& arm = vehicle_from_sensor.translation;
  const std::array<double, 3> at{v[0] + w[1] * arm[2] - w[2] * arm[1], v[1] + w[2] * arm[0] - w[0] * arm[2],
                                 v[2] + w[0] * arm[1] - w[1] * arm[0]};
  Transform turn = vehicle_from_sensor.inverse();
  turn.translation = {};
  return turn.apply(at);
}

double compensated_range_rate(const RadarReturn& r, const std::array<double, 3>& sensor_velocity) {
  Ray ray;
  if (!ray_of(r, ray)) return std::numeric_limits<double>::quiet_NaN();
  return ray.rate + along(ray, sensor_velocity);
}

Result<EgoVelocity> estimate_sensor_velocity(std::span<const RadarReturn> returns) {
  std::vector<Ray> rays;
  for (const RadarReturn& r : returns) {
    Ray ray;
    if (ray_of(r, ray)) rays.push_back(ray);
  }
  EgoVelocity out;
  out.used = static_cast<std::uint32_t>(rays.size());
  if (rays.size() < 8) return fail(Code::kInput, "a radar scan with fewer than 8 returns does not show its own motion");
  const auto plane = [] {
    return fail(Code::kInput, "the returns lie in one direction: the motion of the radar is not observable");
  };
  if (!solve(
          rays, [](const Ray&) { return true; }, out.velocity))
    return plane();
  constexpr double kAtRest = 0.5;  // m/s
  std::vector<double> distances(rays.size());
  for (int round = 0; round < 12; ++round) {
    const std::array<double, 3> v = out.velocity;
    for (std::size_t i = 0; i < rays.size(); ++i) distances[i] = std::fabs(rays[i].rate + along(rays[i], v));
    const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
    std::nth_element(distances.begin(), middle, distances.end());
    const double limit = std::max(kAtRest, *middle);
    if (!solve(
            rays, [&](const Ray& ray) { return std::fabs(ray.rate + along(ray, v)) <= limit; }, out.velocity)) {
      return plane();
    }
  }
  for (const Ray& ray : rays) out.at_rest += std::fabs(ray.rate + along(ray, out.velocity)) <= kAtRest ? 1 : 0;
  if (out.at_rest * 2 < out.used) {
    return fail(Code::kInput, "no velocity of the radar explains half of its returns as standing things");
  }
  return out;
}

}  // namespace takt::sensors
