// What rig checks need of the Point Cloud Library: the ground plane and the motion between two sweeps. No PCL type
// leaves this folder; without PCL (TAKT_WITH_PCL off, or not installed) both functions fail with kEnvironment and the
// remedy.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

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

// The path of a vehicle from its sweeps alone: each one is deskewed with a constant motion, registered to a map of the
// last ten (point to plane where the map is flat, point to point elsewhere, robust weights), and added to it. After
// I. Vizzo et al., KISS-ICP (IEEE RA-L 8(2), 2023), with planes of the map's neighbourhoods.
struct SweepPoint {
  float x = 0, y = 0, z = 0;  // vehicle frame, m
  float after_s = 0;          // captured so long after the stamp; 0 for all: compensated
};
struct SweepPose {
  Transform world_from_vehicle;  // at the stamp; the world is the first sweep's vehicle frame
  bool registered = false;       // false: too little in common with the map; the motion before goes on
  std::size_t matched = 0;       // points on the map
};
class SweepOdometry {
 public:
  SweepOdometry();
  SweepOdometry(SweepOdometry&&) noexcept;
  ~SweepOdometry();
  // kInput: fewer than 100 points, a stamp that is not later than the one before; kEnvironment: without PCL.
  Result<SweepPose> add(std::vector<SweepPoint> sweep, SensorTime stamp);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace takt::sensors
