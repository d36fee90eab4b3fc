// foxglove.PointCloud, sensor_msgs/PointCloud2 -> sensors::PointCloud.
#pragma once

#include <memory>

#include "runtime/base/status.h"
#include "sensors/logs/log_reader.h"
#include "sensors/messages/decoder.h"
#include "sensors/rig/rig.h"

namespace takt::sensors {

// kConfiguration when the sensor is of another kind or lacks what the decoder needs, or the channel carries
// another type.
Result<std::unique_ptr<Decoder>> make_lidar_decoder(const RigSensor& sensor, const LogChannel& channel);
// Of foxglove.PointCloud.
Result<std::unique_ptr<Decoder>> make_lidar_decoder(const RigSensor& sensor);

}  // namespace takt::sensors
