#include "sensors/rig/message_probe.h"

#include <algorithm>
#include <cmath>

#include "sensors/logs/channel_messages.h"
#include "sensors/logs/point_fields.h"
#include "sensors/logs/ros_messages.h"

namespace takt::sensors {
namespace {

void complain(Evidence& evidence, const std::string& what) {
  if (evidence.problem.empty()) evidence.problem = what;
}

void add_picture(std::string_view frame, std::span<const std::byte> data, Evidence& evidence) {
  if (evidence.width != 0) return;
  const auto size = picture_size(data);
  if (!size) return complain(evidence, "its pictures are neither JPEG nor PNG");
  evidence.kind = SensorKind::kCamera;
  evidence.frame_id = frame;
  evidence.width = size->first;
  evidence.height = size->second;
}

bool has_field(const log::PointCloud& cloud, std::initializer_list<std::string_view> names) {
  for (std::size_t i = 0; i < cloud.field_count; ++i) {
    if (std::find(names.begin(), names.end(), cloud.fields[i].name) != names.end()) return true;
  }
  return false;
}

void add_cloud(const log::PointCloud& cloud, int limit, Evidence& evidence) {
  PointLayout layout(cloud);
  if (!layout.reason().empty()) return complain(evidence, layout.reason());
  evidence.largest = std::max<std::uint64_t>(evidence.largest, layout.points());
  if (layout.points() == 0 || evidence.probed >= limit) return;
  ++evidence.probed;
  evidence.frame_id = cloud.frame_id;
  // The names that the radar decoder reads.
  if (has_field(cloud, {"range_rate", "doppler_velocity", "radial_speed", "radial_velocity", "doppler", "velocity"})) {
    evidence.kind = SensorKind::kRadar;
    return;
  }
  evidence.kind = SensorKind::kLidar;
  const PointField intensity = layout.find({"intensity"}, false);
  const PointField time = layout.find({"time_offset_ns", "t", "time", "timestamp", "time_stamp"}, false);
  const double scale = time.is_float() ? 1e9 : 1;
  const double zero = time && time.name() == "timestamp" ? static_cast<double>(cloud.stamp.ns) : 0;
  const bool first = evidence.probed == 1;
  double least = first ? 1e300 : static_cast<double>(evidence.time_min_ns);
  double most = first ? -1e300 : static_cast<double>(evidence.time_max_ns);
  for (std::size_t i = 0; i < layout.points(); ++i) {
    const std::byte* point = layout.point(i);
    if (intensity) evidence.intensity_max = std::max(evidence.intensity_max, static_cast<float>(intensity.at(point)));
    if (!time) continue;
    const double ns = time.at(point) * scale - zero;
    if (!std::isfinite(ns) || std::fabs(ns) > 10e9) continue;
    least = std::min(least, ns);
    most = std::max(most, ns);
  }
  if (time && least <= most) {
    evidence.time_min_ns = std::llround(least);
    evidence.time_max_ns = std::llround(most);
  }
}

void add_transforms(std::vector<log::FrameTransform> transforms, Evidence& evidence) {
  for (log::FrameTransform& t : transforms) {
    const bool known = std::any_of(evidence.transforms.begin(), evidence.transforms.end(),
                                   [&](const log::FrameTransform& k) { return k.child == t.child; });
    if (!known) evidence.transforms.push_back(std::move(t));
  }
}

void add_calibration(log::CameraCalibration calibration, Evidence& evidence) {
  evidence.frame_id = calibration.frame_id;
  calibration.frame_id = {};
  evidence.calibration = calibration;
}

// Adds a message that `make` knows how to decode on this channel.
template <class Make, class Use>
void take(const LogChannel& channel, std::span<const std::byte> bytes, Evidence& evidence, Make make, Use use) {
  const auto decoder = make(channel);
  if (!decoder) return complain(evidence, decoder.error().message);
  auto message = (*decoder)(bytes);
  if (!message) return complain(evidence, message.error().message);
  use(*std::move(message));
}

void add_raw_picture(const log::RawImage& image, Evidence& evidence) {
  evidence.kind = SensorKind::kCamera;
  evidence.frame_id = image.frame_id;
  evidence.width = image.width;
  evidence.height = image.height;
}

void add_ego(const log::EgoMotion& motion, int preference, Evidence& evidence) {
  evidence.kind = SensorKind::kEgo;
  evidence.preference = preference;
  evidence.frame_id = motion.vehicle_frame;
  evidence.world_frame = motion.world_frame;
}

void add_radar_scan(const LogChannel& channel, std::span<const std::byte> bytes, Evidence& evidence) {
  log::RadarScan scan;
  if (const Status read = ros::decode_radar_scan(*ros::encoding_of(channel.encoding), bytes, scan); !read) {
    return complain(evidence, read.error().message);
  }
  evidence.kind = SensorKind::kRadar;
  evidence.frame_id = scan.frame_id;
  evidence.largest = std::max<std::uint64_t>(evidence.largest, scan.returns.size());
}

bool carries(const LogChannel& channel, std::string_view protobuf, std::initializer_list<std::string_view> ros) {
  if (!ros::encoding_of(channel.encoding)) return channel.schema == protobuf;
  return std::any_of(ros.begin(), ros.end(), [&](std::string_view type) { return ros::is_type(channel.schema, type); });
}

}  // namespace

std::optional<std::pair<std::uint32_t, std::uint32_t>> picture_size(std::span<const std::byte> picture) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(picture[i]); };
  const auto two = [&](std::size_t i) { return byte(i) << 8 | byte(i + 1); };
  const auto four = [&](std::size_t i) { return two(i) << 16 | two(i + 2); };
  if (picture.size() >= 24 && four(0) == 0x89504E47 && four(12) == 0x49484452) {
    return std::pair{four(16), four(20)};  // IHDR comes first
  }
  if (picture.size() < 4 || two(0) != 0xFFD8) return std::nullopt;
  // JPEG: segments up to the start of frame (SOF0-SOF15 apart from DHT, JPG and DAC), ITU-T T.81 B.1.1.3.
  for (std::size_t at = 2; at + 9 <= picture.size();) {
    if (byte(at) != 0xFF) return std::nullopt;
    const std::uint32_t marker = byte(at + 1);
    if (marker == 0xFF) {
      ++at;  // fill byte
      continue;
    }
    const bool frame = marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (frame) return std::pair{two(at + 7), two(at + 5)};
    at += 2 + two(at + 2);
  }
  return std::nullopt;
}

void probe(const LogChannel& channel, std::span<const std::byte> bytes, int limit, Evidence& evidence) {
  if (holds_raw_images(channel)) {
    if (evidence.width != 0) return;
    take(channel, bytes, evidence, raw_image_decoder, [&](const log::RawImage& m) { add_raw_picture(m, evidence); });
  } else if (holds_radar_scans(channel)) {
    add_radar_scan(channel, bytes, evidence);
  } else if (carries(channel, "foxglove.CompressedImage", {"sensor_msgs/CompressedImage"})) {
    if (evidence.width != 0) return;
    take(channel, bytes, evidence, compressed_image_decoder,
         [&](const log::CompressedImage& m) { add_picture(m.frame_id, m.data, evidence); });
  } else if (carries(channel, "foxglove.PointCloud", {"sensor_msgs/PointCloud2"})) {
    take(channel, bytes, evidence, point_cloud_decoder,
         [&](const log::PointCloud& m) { add_cloud(m, limit, evidence); });
  } else if (carries(channel, "foxglove.CameraCalibration", {"sensor_msgs/CameraInfo"})) {
    if (evidence.calibration) return;
    take(channel, bytes, evidence, camera_calibration_decoder,
         [&](const log::CameraCalibration& m) { add_calibration(m, evidence); });
  } else if (carries(channel, "foxglove.FrameTransforms", {"tf2_msgs/TFMessage", "tf/tfMessage"})) {
    take(channel, bytes, evidence, transforms_decoder,
         [&](std::vector<log::FrameTransform> m) { add_transforms(std::move(m), evidence); });
  } else if (carries(channel, "takt.EgoMotion", {"nav_msgs/Odometry"})) {
    if (evidence.kind) return;
    // takt's own first, and what was measured before what was estimated.
    const int preference = channel.schema != "takt.EgoMotion" ? 2 : channel.metadata.count("estimated") != 0 ? 1 : 3;
    take(channel, bytes, evidence, ego_motion_decoder,
         [&](const log::EgoMotion& m) { add_ego(m, preference, evidence); });
  }
}

}  // namespace takt::sensors
