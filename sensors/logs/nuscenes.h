// nuScenes as a log (Caesar et al., CVPR 2020; tables: https://www.nuscenes.org/nuscenes#data-format), and sets in its
// layout: the folder of the JSON tables (v1.0-mini), or the folder above it. FOLDER#SCENE names a scene.
//
// Tables are joined by token: sample_data -> calibrated_sensor -> sensor, ego_pose; sample_annotation -> instance ->
// category. A row whose partner is missing is a problem and left out.
// Topics: /LIDAR_TOP/points, /RADAR_x/returns, /CAM_x/image, /CAM_x/calibration by the set's channel names; /ego/takt,
// /ego, /truth/takt, /truth, /tf. The ego frame of the set (rear axle, on the ground, x forward) is the vehicle frame.
// - LIDAR_*.pcd.bin: 5 x f32 (x y z intensity 0..255 ring), no header. The stamp is the end of the sweep.
// - RADAR_*.pcd: PCD with mixed types. Returns are filtered as by default in the set's own kit: invalid_state 0,
//   dynProp 0..6, ambig_state 3. range_rate is vx, vy (relative) along the ray; the published vx_comp, vy_comp stay
//   beside it.
// - Stamps are microseconds; arrival = stamp: the set has no arrival times.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sensors/logs/log_reader.h"

namespace takt::sensors {

bool is_nuscenes(const std::string& folder);
Result<std::unique_ptr<LogReader>> open_nuscenes(const std::string& path, const std::vector<ReleaseRule>& rules = {});

// foxglove.PointCloud with the fields x y z range_rate rcs vx_comp vy_comp (FLOAT32) from the bytes of a radar PCD.
// `filtered` receives how many returns the default filters took. kInput: no PCD or without the set's fields.
Result<std::string> nuscenes_radar_message(std::string_view pcd, const std::string& name, SensorTime stamp,
                                           std::string_view frame_id, std::uint64_t& filtered);

}  // namespace takt::sensors
