// Ego motion out of LiDAR sweeps alone, for logs without odometry. Marked as estimated wherever it is written.
#pragma once

#include <functional>
#include <string>

#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "sensors/rig/rig.h"

namespace takt::pipeline {

struct EgoEstimate {
  std::string lidar;  // the sensor that was registered
  std::string topic;  // takt.EgoMotion
  std::size_t poses = 0;
  std::size_t failed = 0;  // sweeps that did not register: the motion before went on
  double distance_m = 0;
  Duration duration;
};

// Copies the log to `out` (MCAP) and adds takt.EgoMotion on `/ego/estimated/takt`, a pose per sweep of the rig's first
// LiDAR (sensors::SweepOdometry): positions drift slowly, the world is the first sweep's vehicle frame, velocities are
// differences over the neighbouring sweeps. Stamps are those of the sweeps, arrivals too. The channel and the metadata
// `takt.ego` say that it is estimated. kConfiguration: no LiDAR in the rig; kEnvironment: no PCL, disk.
Result<EgoEstimate> add_estimated_ego(const sensors::Rig& rig, const std::string& log_path, const std::string& out,
                                      const std::function<void(double, double)>& progress = {});

}  // namespace takt::pipeline
