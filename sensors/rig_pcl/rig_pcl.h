// What rig checks need of the Point Cloud Library: the ground plane and the motion between two sweeps. No PCL type
// leaves this folder; without PCL (TAKT_WITH_PCL off, or not installed) both functions fail with kEnvironment and the
// remedy.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "runtime/base/status.h"
#include "sensors/rig/rig.h"

namespace takt::sensors {

using CloudPoint = std::array<float, 3>;  // metres

bool has_pcl();

// normal . p = offset, normal upwards (z > 0), metres. The origin lies `-offset / normal z` above the plane.
struct GroundPlane {
  std::array<double, 3> normal{0, 0, 1};
  double offset = 0;
  std::size_t points = 0;  // on the plane
  double rms_m = 0;        // of their distances
};

struct GroundOptions {
  double distance_m = 0.15;  // points this near belong to the plane
  double max_tilt_rad = 0.5;
};
// The plane with most points whose normal is within `max_tilt_rad` of z: RANSAC, then least squares over its inliers
// (M. A. Fischler, R. C. Bolles, CACM 24(6), 1981). Deterministic. kInput: fewer than 50 points on any plane.
Result<GroundPlane> fit_ground(std::span<const CloudPoint> points, const GroundOptions& options = {});

// How far `source` must be moved to lie on `target`: T_target_source. Generalised ICP (A. Segal, D. Haehnel, S. Thrun,
// RSS 2009) on clouds thinned to a voxel grid.
struct Registration {
  Transform target_from_source;
  double rms_m = 0;  // distance of matched points
};
struct RegistrationOptions {
  double voxel_m = 0.3;
  double reach_m = 2;  // points further apart never match
  int iterations = 30;
};
// kInput: fewer than 100 points after thinning, or no convergence.
Result<Registration> register_clouds(std::span<const CloudPoint> target, std::span<const CloudPoint> source,
                                     const Transform& guess, const RegistrationOptions& options = {});

}  // namespace takt::sensors
