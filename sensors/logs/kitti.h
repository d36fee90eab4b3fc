// KITTI as a log. Folders that are read:
//
//   raw       DRIVE/{image_0N,velodyne_points,oxts}/data with timestamps.txt; calib_*.txt in the folder above
//   object    FOLDER[/training]/{velodyne,image_2,calib,label_2}
//   tracking  FOLDER[/training]/{velodyne,image_02}/SEQ, calib, label_02, oxts as SEQ.txt; FOLDER#SEQ names a sequence
//   flat      FOLDER/NNNNNN.bin (and .png), with calib/ and label_2/ where they are there
//
// Topics: /lidar/velodyne/points, /camera/image_N/{image,calibration}, /ego/takt, /ego, /truth/takt, /truth, /tf.
// Frames: "velodyne" (x forward, y left, z up), "image_N", "vehicle". The vehicle frame follows the sensor drawing of
// Geiger et al. 2013: the Velodyne stands 1.73 m above the road, 0.76 m before the rear axle.
// Stamps: raw as recorded (the LiDAR's when it faces forward, points timed by azimuth); object frame n and tracking
// frame n at n x 100 ms, since these sets hold no times. Arrival = last captured byte: no set has arrival times.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sensors/logs/log_reader.h"

namespace takt::sensors {

bool is_kitti(const std::string& folder);
// path: FOLDER or FOLDER#SEQUENCE. kInput: nothing that can be read, several sequences and none named.
Result<std::unique_ptr<LogReader>> open_kitti(const std::string& path, const std::vector<ReleaseRule>& rules = {});

}  // namespace takt::sensors
