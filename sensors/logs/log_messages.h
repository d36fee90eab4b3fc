// Messages of takt's logs as plain structs, apart from their protobuf bytes (encode.h, decode.h). Text and data are
// views: the caller keeps them alive while encoding; a decoded view lives as long as the message's bytes.
//
// Types and field numbers of the foxglove.* messages: https://docs.foxglove.dev/docs/sdk/schemas and the .proto files
// of github.com/foxglove/foxglove-sdk (schemas/proto/foxglove). Metres, radians, pixels; quaternions w x y z here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/time.h"

namespace takt::sensors::log {

struct Pose {
  std::array<double, 3> position{0, 0, 0};
  std::array<double, 4> orientation{1, 0, 0, 0};  // w x y z
};

struct Color {
  double r = 1, g = 1, b = 1, a = 1;  // 0..1
};

// foxglove.CompressedImage
struct CompressedImage {
  SensorTime stamp;
  std::string_view frame_id;
  std::string_view format;  // "jpeg", "png"
  std::span<const std::byte> data;
};

// sensor_msgs/Image, foxglove.RawImage: `height` rows of `step` bytes.
struct RawImage {
  SensorTime stamp;
  std::string_view frame_id;
  std::uint32_t width = 0, height = 0;  // pixels
  std::string_view encoding;            // "rgb8", "mono16", "bayer_rggb8", "yuv422", ...
  bool big_endian = false;              // of 16-bit samples
  std::uint32_t step = 0;               // bytes
  std::span<const std::byte> data;
};

// foxglove.CameraCalibration; model plumb_bob (k1 k2 p1 p2 k3). Camera frame: x right, y down, z into the picture.
struct CameraCalibration {
  SensorTime stamp;
  std::string_view frame_id;
  std::uint32_t width = 0, height = 0;
  double fx = 0, fy = 0, cx = 0, cy = 0;
  std::array<double, 5> distortion{};
};

// foxglove.PackedElementField
enum class NumericType : std::uint32_t {
  kUnknown = 0,
  kUint8 = 1,
  kInt8 = 2,
  kUint16 = 3,
  kInt16 = 4,
  kUint32 = 5,
  kInt32 = 6,
  kFloat32 = 7,
  kFloat64 = 8
};
struct PackedField {
  std::string_view name;
  std::uint32_t offset = 0;  // bytes from the start of a point
  NumericType type = NumericType::kUnknown;
};

// foxglove.PointCloud or sensor_msgs/PointCloud2 as it lies in the message. At most 32 fields are kept. Points follow
// each other without gaps, or, where `rows` is not 0, in rows of `row_points` points that begin `row_stride` bytes
// apart.
struct PointCloud {
  static constexpr std::size_t kMaxFields = 32;
  SensorTime stamp;
  std::string_view frame_id;
  Pose pose;
  std::uint32_t point_stride = 0;  // bytes
  std::array<PackedField, kMaxFields> fields{};
  std::size_t field_count = 0;
  std::span<const std::byte> data;
  std::uint32_t rows = 0, row_points = 0, row_stride = 0;
  bool big_endian = false;         // of the points
  const char* repaired = nullptr;  // what was mended while decoding; nullptr = nothing
};

// One point of takt's own LiDAR layout: x y z intensity FLOAT32, time_offset_ns INT32, ring UINT16; stride 22.
struct LidarPoint {
  float x = 0, y = 0, z = 0;
  float intensity = 0;       // times the rig's intensity_scale = 0..1
  std::int32_t time_ns = 0;  // from the message's stamp
  std::uint16_t ring = 0;
};

// foxglove.PoseInFrame
struct PoseInFrame {
  SensorTime stamp;
  std::string_view frame_id;
  Pose pose;
};

// foxglove.FrameTransforms: the pose of `child` in `parent`, T_parent_child.
struct FrameTransform {
  SensorTime stamp;
  std::string parent, child;
  Pose pose;
};

// foxglove.SceneUpdate with one box (and a label above it) per entity.
struct SceneBox {
  std::string id;     // replaces the former box of this id on the topic
  std::string label;  // "" = none
  Pose pose;          // box centre
  std::array<double, 3> size{0, 0, 0};
  Color color;
};
struct SceneUpdate {
  SensorTime stamp;
  std::string_view frame_id;
  Duration lifetime;  // a box disappears this long after `stamp` unless replaced; 2-3 periods
  std::vector<SceneBox> boxes;
};

// foxglove.ImageAnnotations: rectangles with labels; the stamp is the picture's stamp.
struct ImageBox {
  double u0 = 0, v0 = 0, u1 = 0, v1 = 0;
  std::string label;  // "" = none
  Color color;
};
struct ImageAnnotations {
  SensorTime stamp;
  std::vector<ImageBox> boxes;
};

// sensor_msgs/Imu, in the sensor frame.
struct Imu {
  SensorTime stamp;
  std::string_view frame_id;
  std::array<double, 4> orientation{1, 0, 0, 0};  // w x y z
  bool has_orientation = false;                   // the message says when it is not measured
  std::array<double, 3> angular_velocity{};       // rad/s
  std::array<double, 3> linear_acceleration{};    // m/s^2, gravity included
};

// nav_msgs/Odometry: pose of `child_frame_id` in `frame_id`, its motion in its own axes.
struct Odometry {
  SensorTime stamp;
  std::string_view frame_id, child_frame_id;
  Pose pose;
  std::array<double, 3> velocity{}, angular_velocity{};  // m/s, rad/s
};

// sensor_msgs/NavSatFix: WGS 84.
struct NavSatFix {
  SensorTime stamp;
  std::string_view frame_id;
  std::int8_t status = 0;              // -1 no fix, 0 fix, 1 satellite-based, 2 ground-based augmentation
  double latitude = 0, longitude = 0;  // degrees, north and east positive
  double altitude = 0;                 // m above the ellipsoid
  std::array<double, 9> covariance{};  // east north up, m^2
};

// radar_msgs/RadarScan, in the sensor frame.
struct RadarReturn {
  float range = 0;             // m
  float azimuth = 0;           // rad, counter-clockwise from x
  float elevation = 0;         // rad, up from the x y plane
  float doppler_velocity = 0;  // m/s, positive = receding
  float amplitude = 0;         // dB
};
struct RadarScan {
  SensorTime stamp;
  std::string_view frame_id;
  std::vector<RadarReturn> returns;
};

// radar_msgs/RadarTracks: objects that the radar itself tracks, in the frame of the message.
struct RadarTrack {
  std::array<std::uint8_t, 16> uuid{};
  std::array<double, 3> position{}, velocity{}, acceleration{}, size{};
  std::uint16_t classification = 0;  // 0 none, 1 static, 2 dynamic, from 32000 on the vendor's
};
struct RadarTracks {
  SensorTime stamp;
  std::string_view frame_id;
  std::vector<RadarTrack> tracks;
};

// takt.EgoMotion: the numbers of sensors::EgoMotion with their frames.
struct EgoMotion {
  SensorTime stamp;
  std::string_view world_frame, vehicle_frame;
  Pose pose;                                        // T_world_vehicle
  std::array<double, 3> velocity{0, 0, 0};          // vehicle frame, m/s
  std::array<double, 3> angular_velocity{0, 0, 0};  // vehicle frame, rad/s
};

// takt.Truth: boxes in the vehicle frame at `stamp`.
struct TruthBox {
  std::uint32_t id = 0;
  std::uint32_t object_class = 0;           // 0 unknown, 1 vehicle, 2 pedestrian, 3 cyclist, 4 other
  Pose pose;                                // box centre
  std::array<double, 3> size{0, 0, 0};      // length width height
  std::array<double, 3> velocity{0, 0, 0};  // over ground, axes of the vehicle frame, m/s
  std::uint32_t lidar_points = 0;           // returns on it in the sweep of this stamp
};
struct Truth {
  SensorTime stamp;
  std::string_view frame_id;  // the vehicle frame
  std::vector<TruthBox> boxes;
};

}  // namespace takt::sensors::log
