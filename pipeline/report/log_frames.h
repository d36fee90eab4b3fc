// Sensor data behind chosen moments of a run, read again from its log.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/report/rgb_picture.h"
#include "pipeline/report/run_data.h"

namespace takt::pipeline {

struct CameraFrame {
  std::size_t sensor = 0;  // in the rig
  SensorTime stamp;
  RgbPicture picture;
};
struct LidarFrame {
  std::size_t sensor = 0;
  SensorTime stamp;
  std::vector<std::array<float, 3>> points;  // vehicle frame, m
};
struct Moment {
  SensorTime wanted;                  // in
  std::optional<CameraFrame> camera;  // out: of the first camera of the rig, nearest in time
  std::optional<LidarFrame> lidar;    // out: of the first LiDAR
};

// Fills the frames of all moments in one pass over the log. A frame more than three periods away, or one that cannot
// be decoded, is left out. kInput when the log cannot be read.
Status read_frames(const RunData& run, std::vector<Moment>& moments);

}  // namespace takt::pipeline
