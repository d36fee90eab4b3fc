// Log messages from the bytes of ROS messages, CDR or ROS 1 (docs/formats/ros.md). Text and data of the results are
// views into `bytes`. kInput with type, what and byte offset when the bytes are no valid message of the type.
//
// Layouts: the .msg files of common_interfaces, geometry2 and radar_msgs (github.com/ros2, ros-perception).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "sensors/logs/log_messages.h"
#include "sensors/logs/ros_cursor.h"

namespace takt::sensors::ros {

// "cdr" and "ros1" of a channel's encoding; nullopt for any other.
std::optional<Encoding> encoding_of(std::string_view channel_encoding);
// Whether a schema is the type `name`, "sensor_msgs/Image": as ROS 1 writes it or, with "/msg/" inside, ROS 2.
bool is_type(std::string_view schema, std::string_view name);

// Messages of the type begin with a std_msgs/Header: known types, or the first field of the definition ("" = unknown).
bool starts_with_header(std::string_view type, std::string_view definition);
// Stamp of a message that starts with a header; nullopt where the bytes do not suffice. `bytes` may be cut after the
// first kHeaderBytes.
inline constexpr std::size_t kHeaderBytes = 16;
std::optional<SensorTime> header_stamp(Encoding encoding, std::span<const std::byte> bytes);

// The serialisation of a channel whose messages start with a header; nullopt for any other channel.
std::optional<Encoding> stamped_encoding(std::string_view channel_encoding, std::string_view type,
                                         std::string_view definition);
// header.stamp of a message of such a channel in ns, or `otherwise`.
inline std::int64_t capture_ns(const std::optional<Encoding>& stamped, std::span<const std::byte> bytes,
                               std::int64_t otherwise) {
  if (!stamped) return otherwise;
  const auto stamp = header_stamp(*stamped, bytes);
  return stamp ? stamp->ns : otherwise;
}

Result<log::RawImage> decode_image(Encoding encoding, std::span<const std::byte> bytes);
Result<log::CompressedImage> decode_compressed_image(Encoding encoding, std::span<const std::byte> bytes);
// sensor_msgs/PointCloud2. A row_step that contradicts the size is mended where only one reading fits the data (a
// single row, or rows without gaps); otherwise the cloud is refused with the numbers.
Result<log::PointCloud> decode_point_cloud(Encoding encoding, std::span<const std::byte> bytes);
// sensor_msgs/CameraInfo with plumb_bob distortion (or none); other models are refused by name.
Result<log::CameraCalibration> decode_camera_info(Encoding encoding, std::span<const std::byte> bytes);
Result<log::Imu> decode_imu(Encoding encoding, std::span<const std::byte> bytes);
Result<log::Odometry> decode_odometry(Encoding encoding, std::span<const std::byte> bytes);
Result<log::NavSatFix> decode_nav_sat_fix(Encoding encoding, std::span<const std::byte> bytes);
// tf2_msgs/TFMessage (and tf/tfMessage), of /tf and /tf_static.
Result<std::vector<log::FrameTransform>> decode_transforms(Encoding encoding, std::span<const std::byte> bytes);
// Reuse the vectors of `out`.
Status decode_radar_scan(Encoding encoding, std::span<const std::byte> bytes, log::RadarScan& out);
Status decode_radar_tracks(Encoding encoding, std::span<const std::byte> bytes, log::RadarTracks& out);

}  // namespace takt::sensors::ros
