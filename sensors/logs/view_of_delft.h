// View-of-Delft as a log: ROOT/{lidar,radar}/training/{velodyne,image_2,calib,pose,label_2} (Palffy et al.,
// "Multi-class Road User Detection with 3+1D Radar in the View-of-Delft Dataset", RA-L 2022).
//
// Topics: /lidar/points, /radar/returns, /camera/image, /camera/calibration, /ego, /truth/takt, /truth, /tf.
// - LiDAR: every row of the published files occurs twice; exact duplicates are dropped (the first is kept) and told.
//   Points are already in one pose: the rig of this set says motion_compensated: true.
// - Radar: range_rate is the measured, relative Doppler; the published ego-compensated one is kept beside it as
//   range_rate_compensated.
// - Labels are upright in the LiDAR frame (docs/formats.md, "View-of-Delft").
// - Frames: "lidar", "radar", "camera", "vehicle" (below the LiDAR, on the road) and "world" (the odometry's).
// - The set has no times: frame n is stamped n x 100 ms. Arrival = stamp. Poses of neighbouring frames give velocities;
//   a frame without neighbours has a pose but no /ego/takt.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sensors/logs/log_reader.h"

namespace takt::sensors {

bool is_view_of_delft(const std::string& folder);
Result<std::unique_ptr<LogReader>> open_view_of_delft(const std::string& folder,
                                                      const std::vector<ReleaseRule>& rules = {});

}  // namespace takt::sensors
