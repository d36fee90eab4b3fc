// Protobuf bytes of log messages, and the schemas that describe them. Deterministic: equal structs give equal bytes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sensors/logs/log_messages.h"
#include "sensors/logs/mcap_writer.h"
#include "sensors/messages/messages.h"

namespace takt::sensors {

// Schema of "foxglove.CompressedImage", ".CameraCalibration", ".PointCloud", ".PoseInFrame", ".FrameTransforms",
// ".SceneUpdate", ".ImageAnnotations", "takt.EgoMotion", "takt.Truth". kInternal for another name.
Result<LogSchema> log_schema(std::string_view name);

std::string encode(const log::CompressedImage& message);
std::string encode(const log::CameraCalibration& message);
std::string encode(const log::PointCloud& message);  // any layout
std::string encode(const log::PoseInFrame& message);
std::string encode(std::span<const log::FrameTransform> transforms);  // foxglove.FrameTransforms
std::string encode(const log::SceneUpdate& message);
std::string encode(const log::ImageAnnotations& message);
std::string encode(const log::EgoMotion& message);
std::string encode(const log::Truth& message);

// foxglove.PointCloud in takt's own layouts (docs/log_format.md).
std::string encode_lidar(SensorTime stamp, std::string_view frame_id, std::span<const log::LidarPoint> points);
std::string encode_lidar(SensorTime stamp, std::string_view frame_id, const PointCloud& cloud);
std::string encode_radar(SensorTime stamp, std::string_view frame_id, std::span<const RadarReturn> returns);

// The boxes of a truth message as its displayable twin.
log::SceneUpdate scene_of(const log::Truth& truth, Duration lifetime);

}  // namespace takt::sensors
