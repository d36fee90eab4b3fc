// Motion compensation of a sweep: every point to where it would have been measured at one instant. All six degrees of
// freedom, poses interpolated between samples. This is the reference: double precision, plain loops, one pose per
// point; faster ones are compared with it.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "sensors/messages/messages.h"
#include "sensors/rig/rig.h"

namespace takt::sensors {

// T_world_vehicle at an instant.
struct StampedPose {
  SensorTime stamp;
  std::array<double, 3> position{};
  std::array<double, 4> orientation{1, 0, 0, 0};  // w x y z
};

// The pose at `t`: position linear, rotation along the shorter arc at constant speed (slerp). `poses` ascend in stamp.
// Outside them the motion of the nearest pair goes on, for at most `extrapolate` and 16 times the pair's distance;
// kInput beyond (with the gap in words), for no pose at all, and for a single pose that is not at `t`. No trigonometry:
// halves of an arc are normalised sums, so that equal input gives equal bytes everywhere.
Result<Transform> interpolate_pose(std::span<const StampedPose> poses, SensorTime t, Duration extrapolate);

struct DeskewSetup {
  Transform vehicle_from_sensor;    // T_vehicle_sensor
  bool motion_compensated = false;  // the recording did it already
  Duration extrapolate;             // how far beyond the poses a point may lie
};

// Moves the points of `cloud` (sensor frame, each at stamp + its time) into the sensor frame at `target`, in place;
// times stay what they are. Refused, cloud untouched: kConfiguration for a compensated cloud; kInput for a cloud
// without times (several points, all at time 0) and where poses do not reach.
Status deskew(PointCloud& cloud, SensorTime stamp, const DeskewSetup& setup, std::span<const StampedPose> poses,
              SensorTime target);

}  // namespace takt::sensors
