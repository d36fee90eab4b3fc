// How the messages of a channel become structs: by its encoding (protobuf, cdr, ros1) and its type. The decoders of the
// sensors use these, so that a topic may be recorded in any format.
//
// Each function fails with kConfiguration when the channel carries ROS messages of another type; the message names the
// topic, its type and what can be read. Other encodings are taken as the foxglove or takt type of the struct.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "runtime/base/status.h"
#include "sensors/logs/log_messages.h"
#include "sensors/logs/log_reader.h"

namespace takt::sensors {

// Views in the result point into the bytes.
template <class Message>
using MessageDecoder = std::function<Result<Message>(std::span<const std::byte> bytes)>;

Result<MessageDecoder<log::CompressedImage>> compressed_image_decoder(const LogChannel& channel);
Result<MessageDecoder<log::RawImage>> raw_image_decoder(const LogChannel& channel);
Result<MessageDecoder<log::PointCloud>> point_cloud_decoder(const LogChannel& channel);
Result<MessageDecoder<log::CameraCalibration>> camera_calibration_decoder(const LogChannel& channel);
Result<MessageDecoder<std::vector<log::FrameTransform>>> transforms_decoder(const LogChannel& channel);
Result<MessageDecoder<log::EgoMotion>> ego_motion_decoder(const LogChannel& channel);  // takt.EgoMotion, Odometry

// The channel holds whole pictures, not compressed ones.
bool holds_raw_images(const LogChannel& channel);
// The channel holds radar_msgs/RadarScan, which no other format has.
bool holds_radar_scans(const LogChannel& channel);

}  // namespace takt::sensors
