// Log messages from their protobuf bytes. Every length is bounded by the bytes left; unknown fields are skipped, as
// protobuf demands. kInput with field and byte offset when the bytes are no valid message of the type.
// Views in the result point into `bytes`.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/base/status.h"
#include "sensors/logs/log_messages.h"

namespace takt::sensors {

Result<log::CompressedImage> decode_compressed_image(std::span<const std::byte> bytes);
Result<log::RawImage> decode_raw_image(std::span<const std::byte> bytes);
Result<log::CameraCalibration> decode_camera_calibration(std::span<const std::byte> bytes);
Result<log::PointCloud> decode_point_cloud(std::span<const std::byte> bytes);
Result<log::PoseInFrame> decode_pose_in_frame(std::span<const std::byte> bytes);
Result<std::vector<log::FrameTransform>> decode_frame_transforms(std::span<const std::byte> bytes);
Result<log::EgoMotion> decode_ego_motion(std::span<const std::byte> bytes);
Result<log::Truth> decode_truth(std::span<const std::byte> bytes);

}  // namespace takt::sensors
