#include "sensors/logs/channel_messages.h"

#include <initializer_list>
#include <string>
#include <string_view>

#include "sensors/logs/decode.h"
#include "sensors/logs/ros_messages.h"

namespace takt::sensors {
namespace {

using Bytes = std::span<const std::byte>;

bool is_ros(const LogChannel& channel, std::string_view type) {
  return ros::encoding_of(channel.encoding) && ros::is_type(channel.schema, type);
}

// One ROS type, or else the protobuf type of the same content.
template <class Message>
Result<MessageDecoder<Message>> choose(const LogChannel& channel, std::initializer_list<const char*> ros_types,
                                       Result<Message> (*from_ros)(ros::Encoding, Bytes),
                                       Result<Message> (*from_protobuf)(Bytes)) {
  const auto encoding = ros::encoding_of(channel.encoding);
  if (!encoding) return MessageDecoder<Message>(from_protobuf);
  for (const char* type : ros_types) {
    if (ros::is_type(channel.schema, type)) {
      return MessageDecoder<Message>([from_ros, e = *encoding](Bytes bytes) { return from_ros(e, bytes); });
    }
  }
  return fail(Code::kConfiguration, "topic " + channel.topic + " carries " + channel.schema + " (" + channel.encoding +
                                        "), needed here is " + *ros_types.begin());
}

Result<log::EgoMotion> ego_from_odometry(ros::Encoding encoding, Bytes bytes) {
  TAKT_ASSIGN(const log::Odometry odometry, ros::decode_odometry(encoding, bytes));
  return log::EgoMotion{odometry.stamp, odometry.frame_id, odometry.child_frame_id,
                        odometry.pose,  odometry.velocity, odometry.angular_velocity};
}

}  // namespace

Result<MessageDecoder<log::CompressedImage>> compressed_image_decoder(const LogChannel& channel) {
  return choose<log::CompressedImage>(channel, {"sensor_msgs/CompressedImage"}, ros::decode_compressed_image,
                                      decode_compressed_image);
}

Result<MessageDecoder<log::RawImage>> raw_image_decoder(const LogChannel& channel) {
  return choose<log::RawImage>(channel, {"sensor_msgs/Image"}, ros::decode_image, decode_raw_image);
}

Result<MessageDecoder<log::PointCloud>> point_cloud_decoder(const LogChannel& channel) {
  return choose<log::PointCloud>(channel, {"sensor_msgs/PointCloud2"}, ros::decode_point_cloud, decode_point_cloud);
}

Result<MessageDecoder<log::CameraCalibration>> camera_calibration_decoder(const LogChannel& channel) {
  return choose<log::CameraCalibration>(channel, {"sensor_msgs/CameraInfo"}, ros::decode_camera_info,
                                        decode_camera_calibration);
}

Result<MessageDecoder<std::vector<log::FrameTransform>>> transforms_decoder(const LogChannel& channel) {
  return choose<std::vector<log::FrameTransform>>(channel, {"tf2_msgs/TFMessage", "tf/tfMessage"},
                                                  ros::decode_transforms, decode_frame_transforms);
}

Result<MessageDecoder<log::EgoMotion>> ego_motion_decoder(const LogChannel& channel) {
  return choose<log::EgoMotion>(channel, {"nav_msgs/Odometry"}, ego_from_odometry, decode_ego_motion);
}

bool holds_raw_images(const LogChannel& channel) {
  return is_ros(channel, "sensor_msgs/Image") ||
         (!ros::encoding_of(channel.encoding) && channel.schema == "foxglove.RawImage");
}

bool holds_radar_scans(const LogChannel& channel) { return is_ros(channel, "radar_msgs/RadarScan"); }

}  // namespace takt::sensors
