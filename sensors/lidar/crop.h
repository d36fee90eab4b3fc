// Which points of a sweep are looked at: a range, a box, and not the own vehicle.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "sensors/messages/messages.h"
#include "sensors/rig/rig.h"

namespace takt::sensors {

// Half-open in each axis: [min, max), m.
struct Box3 {
  std::array<double, 3> min{}, max{};
  [[nodiscard]] bool contains(const std::array<double, 3>& p) const;
};

struct CropRule {
  double range_min_m = 0;              // distance from `ray_origin`: kept when in [min, max)
  double range_max_m = 1e9;            //
  std::array<double, 3> ray_origin{};  // sensor frame
  std::optional<Box3> region;          // vehicle frame: kept when inside
  std::optional<Box3> ego;             // vehicle frame: the own body, removed when inside
  Transform vehicle_from_sensor;       // T_vehicle_sensor
};

// What became of the points; each is counted once, in this order.
struct CropCount {
  std::uint32_t invalid = 0;  // a coordinate is NaN or infinite, whatever the message claims
  std::uint32_t range = 0;    // outside the range
  std::uint32_t region = 0;   // outside the region
  std::uint32_t ego = 0;      // on the own vehicle
  std::uint32_t kept = 0;     // now first in the cloud, in their order
};

// In place; `dropped` of the cloud stays. Allocates nothing. Coordinates are compared in double.
CropCount crop(PointCloud& cloud, const CropRule& rule);

}  // namespace takt::sensors
