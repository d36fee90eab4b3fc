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

// foxglove.PointCloud as it lies in the message. At most 32 fields are kept.
struct PointCloud {
  static constexpr std::size_t kMaxFields = 32;
  SensorTime stamp;
  std::string_view frame_id;
  Pose pose;
  std::uint32_t point_stride = 0;  // bytes
  std::array<PackedField, kMaxFields> fields{};
  std::size_t field_count = 0;
  std::span<const std::byte> data;
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
