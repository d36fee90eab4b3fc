// Range rates over ground, recomputed from the measured ones: a return at rest approaches with the sensor's own
// velocity along the ray. Compensated columns of recordings are not trusted (some do not match their theory).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "runtime/base/status.h"
#include "sensors/messages/messages.h"
#include "sensors/rig/rig.h"

namespace takt::sensors {

// Velocity of the sensor over ground in its own frame, m/s: v + omega x lever arm, turned into the sensor frame. `ego`
// is in the vehicle frame (messages.h), the lever arm is the translation of T_vehicle_sensor.
std::array<double, 3> sensor_velocity(const EgoMotion& ego, const Transform& vehicle_from_sensor);

// range_rate + velocity of the sensor along the ray, m/s; 0 for a return at rest. NaN when the return lies in the
// sensor's origin or is not finite.
double compensated_range_rate(const RadarReturn& r, const std::array<double, 3>& sensor_velocity);

// Velocity of the sensor over ground in its own frame, from the scan alone: most returns are at rest. Least squares
// over all, then twelve times over those within 0.5 m/s of the last answer (falling from the median distance).
// Deterministic; independent of the order only up to rounding. kInput: fewer than 8 usable returns, rays that all lie
// in one plane or line (a component is not observable; a scan without height has none vertically: that component is
// then 0), or fewer than half of the returns agree.
struct EgoVelocity {
  std::array<double, 3> velocity{};
  std::uint32_t at_rest = 0;  // returns that agree
  std::uint32_t used = 0;     // returns that could be used
};
Result<EgoVelocity> estimate_sensor_velocity(std::span<const RadarReturn> returns);

}  // namespace takt::sensors
