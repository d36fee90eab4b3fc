#include "pipeline/rig/labels.h"

#include <cmath>
#include <vector>

namespace takt::pipeline {
namespace {

// Upright box: centre, direction of its length on the ground, half sizes.
struct Box {
  double x, y, z, cos, sin, half_length, half_width, half_height;
  [[nodiscard]] bool contains(const VehiclePoint& p) const {
    const double dx = static_cast<double>(p[0]) - x, dy = static_cast<double>(p[1]) - y;
    return std::fabs(static_cast<double>(p[2]) - z) <= half_height && std::fabs(dx * cos + dy * sin) <= half_length &&
           std::fabs(dy * cos - dx * sin) <= half_width;
  }
};

// x and y of what a place or a direction becomes: rows of a signed permutation.
struct Axes {
  double xx, xy, yx, yy;
};
constexpr Axes kSame{1, 0, 0, 1};
constexpr Axes kAxes[kBoxReadings.size()] = {
    kSame,          {0, 1, 1, 0},   {1, 0, 0, -1}, {-1, 0, 0, 1}, {0, -1, 1, 0}, {0, 1, -1, 0},
    {-1, 0, 0, -1}, {0, -1, -1, 0}, kSame,         kSame,         kSame,
};
constexpr std::size_t kYawClockwise = 8, kSizesSwapped = 9, kBottom = 10;

Box read(const sensors::log::TruthBox& box, std::size_t reading) {
  const auto& q = box.pose.orientation;
  const auto& at = box.pose.position;
  const Axes& a = kAxes[reading];
  // The box's x axis, seen from above.
  double cos = 1 - 2 * (q[2] * q[2] + q[3] * q[3]), sin = 2 * (q[0] * q[3] + q[1] * q[2]);
  const double norm = std::hypot(cos, sin);
  cos = norm > 0 ? cos / norm : 1;
  sin = norm > 0 ? sin / norm : 0;
  if (reading == kYawClockwise) sin = -sin;
  Box out{a.xx * at[0] + a.xy * at[1],
          a.yx * at[0] + a.yy * at[1],
          at[2],
          a.xx * cos + a.xy * sin,
          a.yx * cos + a.yy * sin,
          box.size[0] / 2,
          box.size[1] / 2,
          box.size[2] / 2};
  if (reading == kSizesSwapped) std::swap(out.half_length, out.half_width);
  if (reading == kBottom) out.z += out.half_height;
  return out;
}

}  // namespace

std::array<std::size_t, kBoxReadings.size()> points_in_boxes(std::span<const VehiclePoint> points,
                                                             std::span<const sensors::log::TruthBox> boxes) {
  std::array<std::size_t, kBoxReadings.size()> out{};
  for (std::size_t reading = 0; reading < out.size(); ++reading) {
    std::vector<Box> read_so;
    for (const sensors::log::TruthBox& box : boxes) read_so.push_back(read(box, reading));
    for (const VehiclePoint& p : points) {
      for (const Box& box : read_so) {
        if (!box.contains(p)) continue;
        ++out[reading];
        break;
      }
    }
  }
  return out;
}

}  // namespace takt::pipeline
