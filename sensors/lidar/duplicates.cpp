#include "sensors/lidar/duplicates.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "sensors/lidar/cloud_points.h"

namespace takt::sensors {

std::uint32_t DuplicateFilter::remove(PointCloud& cloud) {
  const std::uint32_t n = cloud.count;
  if (n > order_.size()) return 0;
  const auto bits = [](float f) { return std::bit_cast<std::uint32_t>(f); };
  const auto key = [&](std::uint32_t i) {
    return std::tuple(bits(cloud.x()[i]), bits(cloud.y()[i]), bits(cloud.z()[i]), bits(cloud.intensity()[i]),
                      cloud.time_ns()[i], cloud.ring()[i]);
  };
  for (std::uint32_t i = 0; i < n; ++i) order_[i] = i;
  // Among equals the first in the message leads: a total order.
  std::sort(order_.begin(), order_.begin() + n, [&](std::uint32_t a, std::uint32_t b) {
    const auto ka = key(a), kb = key(b);
    return ka != kb ? ka < kb : a < b;
  });
  std::fill_n(drop_.begin(), n, std::uint8_t{0});
  for (std::uint32_t i = 1; i < n; ++i) drop_[order_[i]] = key(order_[i]) == key(order_[i - 1]) ? 1 : 0;
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    if (drop_[i] == 0) copy_point(cloud, i, cloud, kept++);
  }
  cloud.count = kept;
  return n - kept;
}

}  // namespace takt::sensors
