#include "sensors/logs/encode.h"

#include <array>
#include <cstring>

#include "sensors/logs/wire.h"

namespace takt::sensors {
namespace {

using wire::Writer;

constexpr unsigned char kFoxgloveSchema[] = {
#include "sensors/logs/foxglove.proto.inc"
};
constexpr unsigned char kTaktSchema[] = {
#include "sensors/logs/takt_sensors.proto.inc"
};

using Vector = std::array<double, 3>;

void write_vector(Writer& w, std::uint32_t field, const Vector& v) {
  w.message(field, [&](Writer& m) {
    m.double_(1, v[0]);
    m.double_(2, v[1]);
    m.double_(3, v[2]);
  });
}

void write_quaternion(Writer& w, std::uint32_t field, const std::array<double, 4>& wxyz) {  // foxglove: x y z w
  w.message(field, [&](Writer& m) {
    m.double_(1, wxyz[1]);
    m.double_(2, wxyz[2]);
    m.double_(3, wxyz[3]);
    m.double_(4, wxyz[0]);
  });
}

void write_rotation(Writer& w, std::uint32_t field, const std::array<double, 4>& wxyz) {  // takt: w x y z
  w.message(field, [&](Writer& m) {
    for (std::uint32_t i = 0; i < 4; ++i) m.double_(i + 1, wxyz[i]);
  });
}

void write_pose(Writer& w, std::uint32_t field, const log::Pose& pose) {
  w.message(field, [&](Writer& m) {
    write_vector(m, 1, pose.position);
    write_quaternion(m, 2, pose.orientation);
  });
}

void write_color(Writer& w, std::uint32_t field, const log::Color& color) {
  w.message(field, [&](Writer& m) {
    m.double_(1, color.r);
    m.double_(2, color.g);
    m.double_(3, color.b);
    m.double_(4, color.a);
  });
}

void write_point(Writer& w, std::uint32_t field, double x, double y) {
  w.message(field, [&](Writer& m) {
    m.double_(1, x);
    m.double_(2, y);
  });
}

void write_label(Writer& w, std::uint32_t field, const log::SceneBox& box) {
  log::Pose above;
  above.position = box.pose.position;
  above.position[2] += box.size[2] / 2 + 0.5;
  w.message(field, [&](Writer& m) {
    write_pose(m, 1, above);
    m.unsigned_(2, 1);  // billboard: faces the viewer
    m.double_(3, 12);   // pixels
    m.unsigned_(4, 1);  // scale_invariant
    write_color(m, 5, box.color);
    m.text(6, box.label);
  });
}

// takt's own point layouts: packed, little-endian.
constexpr std::uint32_t kLidarStride = 22;
constexpr std::uint32_t kRadarStride = 20;
constexpr log::NumericType kFloat = log::NumericType::kFloat32;
constexpr std::array<log::PackedField, 6> kLidarFields{{{"x", 0, kFloat},
                                                        {"y", 4, kFloat},
                                                        {"z", 8, kFloat},
                                                        {"intensity", 12, kFloat},
                                                        {"time_offset_ns", 16, log::NumericType::kInt32},
                                                        {"ring", 20, log::NumericType::kUint16}}};
constexpr std::array<log::PackedField, 5> kRadarFields{
    {{"x", 0, kFloat}, {"y", 4, kFloat}, {"z", 8, kFloat}, {"range_rate", 12, kFloat}, {"rcs", 16, kFloat}}};

template <class T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

void put_lidar(std::byte* at, const log::LidarPoint& p) {
  put(at, p.x);
  put(at + 4, p.y);
  put(at + 8, p.z);
  put(at + 12, p.intensity);
  put(at + 16, p.time_ns);
  put(at + 20, p.ring);
}

std::string encode_points(SensorTime stamp, std::string_view frame_id, std::uint32_t stride,
                          std::span<const log::PackedField> fields, std::span<const std::byte> data) {
  log::PointCloud cloud;
  cloud.stamp = stamp;
  cloud.frame_id = frame_id;
  cloud.point_stride = stride;
  for (const auto& field : fields) cloud.fields[cloud.field_count++] = field;
  cloud.data = data;
  return encode(cloud);
}

LogSchema embedded(std::string_view name, std::span<const unsigned char> data) {
  return {std::string(name), "protobuf", std::string(data.begin(), data.end())};
}

}  // namespace

Result<LogSchema> log_schema(std::string_view name) {
  for (const char* known :
       {"foxglove.CompressedImage", "foxglove.CameraCalibration", "foxglove.PointCloud", "foxglove.PoseInFrame",
        "foxglove.FrameTransforms", "foxglove.SceneUpdate", "foxglove.ImageAnnotations"}) {
    if (name == known) return embedded(name, kFoxgloveSchema);
  }
  for (const char* known : {"takt.EgoMotion", "takt.Truth"}) {
    if (name == known) return embedded(name, kTaktSchema);
  }
  return fail(Code::kInternal, "no log schema is called '" + std::string(name) + "'");
}

std::string encode(const log::CompressedImage& message) {
  std::string out;
  out.reserve(message.data.size() + 128);
  Writer w(out);
  w.stamp(1, message.stamp);
  w.bytes(2, message.data);
  w.text(3, message.format);
  w.text(4, message.frame_id);
  return out;
}

std::string encode(const log::CameraCalibration& m) {
  std::string out;
  Writer w(out);
  w.stamp(1, m.stamp);
  w.fixed32(2, m.width);
  w.fixed32(3, m.height);
  w.text(4, "plumb_bob");
  w.doubles(5, m.distortion);
  w.doubles(6, std::array<double, 9>{m.fx, 0, m.cx, 0, m.fy, m.cy, 0, 0, 1});
  w.doubles(7, std::array<double, 9>{1, 0, 0, 0, 1, 0, 0, 0, 1});
  w.doubles(8, std::array<double, 12>{m.fx, 0, m.cx, 0, 0, m.fy, m.cy, 0, 0, 0, 1, 0});
  w.text(9, m.frame_id);
  return out;
}

std::string encode(const log::PointCloud& message) {
  std::string out;
  out.reserve(message.data.size() + 512);
  Writer w(out);
  w.stamp(1, message.stamp);
  w.text(2, message.frame_id);
  write_pose(w, 3, message.pose);
  w.fixed32(4, message.point_stride);
  for (std::size_t i = 0; i < message.field_count; ++i) {
    w.message(5, [&](Writer& m) {
      m.text(1, message.fields[i].name);
      m.fixed32(2, message.fields[i].offset);
      m.unsigned_(3, static_cast<std::uint32_t>(message.fields[i].type));
    });
  }
  w.bytes(6, message.data);
  return out;
}

std::string encode(const log::PoseInFrame& message) {
  std::string out;
  Writer w(out);
  w.stamp(1, message.stamp);
  w.text(2, message.frame_id);
  write_pose(w, 3, message.pose);
  return out;
}

std::string encode(std::span<const log::FrameTransform> transforms) {
  std::string out;
  Writer w(out);
  for (const auto& transform : transforms) {
    w.message(1, [&](Writer& m) {
      m.stamp(1, transform.stamp);
      m.text(2, transform.parent);
      m.text(3, transform.child);
      write_vector(m, 4, transform.pose.position);
      write_quaternion(m, 5, transform.pose.orientation);
    });
  }
  return out;
}

std::string encode(const log::SceneUpdate& message) {
  std::string out;
  Writer w(out);
  for (const auto& box : message.boxes) {
    w.message(2, [&](Writer& entity) {
      entity.stamp(1, message.stamp);
      entity.text(2, message.frame_id);
      entity.text(3, box.id);
      entity.duration(4, message.lifetime);
      entity.unsigned_(5, 1);  // frame_locked: the box moves with its frame
      entity.message(8, [&](Writer& cube) {
        write_pose(cube, 1, box.pose);
        write_vector(cube, 2, box.size);
        write_color(cube, 3, box.color);
      });
      if (!box.label.empty()) write_label(entity, 13, box);
    });
  }
  return out;
}

std::string encode(const log::ImageAnnotations& message) {
  std::string out;
  Writer w(out);
  for (const auto& box : message.boxes) {
    w.message(2, [&](Writer& m) {
      m.stamp(1, message.stamp);
      m.unsigned_(2, 2);  // LINE_LOOP
      write_point(m, 3, box.u0, box.v0);
      write_point(m, 3, box.u1, box.v0);
      write_point(m, 3, box.u1, box.v1);
      write_point(m, 3, box.u0, box.v1);
      write_color(m, 4, box.color);
      m.double_(7, 2);  // pixels
    });
  }
  for (const auto& box : message.boxes) {
    if (box.label.empty()) continue;
    w.message(3, [&](Writer& m) {
      m.stamp(1, message.stamp);
      write_point(m, 2, box.u0, box.v0);
      m.text(3, box.label);
      m.double_(4, 12);  // pixels
      write_color(m, 5, box.color);
      write_color(m, 6, {0, 0, 0, 0.6});
    });
  }
  return out;
}

std::string encode(const log::EgoMotion& message) {
  std::string out;
  Writer w(out);
  w.stamp(1, message.stamp);
  w.text(2, message.world_frame);
  w.text(3, message.vehicle_frame);
  write_vector(w, 4, message.pose.position);
  write_rotation(w, 5, message.pose.orientation);
  write_vector(w, 6, message.velocity);
  write_vector(w, 7, message.angular_velocity);
  return out;
}

std::string encode(const log::Truth& message) {
  std::string out;
  Writer w(out);
  w.stamp(1, message.stamp);
  w.text(2, message.frame_id);
  for (const auto& box : message.boxes) {
    w.message(3, [&](Writer& m) {
      m.unsigned_(1, box.id);
      m.unsigned_(2, box.object_class);
      write_vector(m, 3, box.pose.position);
      write_rotation(m, 4, box.pose.orientation);
      write_vector(m, 5, box.size);
      write_vector(m, 6, box.velocity);
      m.unsigned_(7, box.lidar_points);
    });
  }
  return out;
}

std::string encode_lidar(SensorTime stamp, std::string_view frame_id, std::span<const log::LidarPoint> points) {
  std::vector<std::byte> data(points.size() * kLidarStride);
  for (std::size_t i = 0; i < points.size(); ++i) put_lidar(data.data() + i * kLidarStride, points[i]);
  return encode_points(stamp, frame_id, kLidarStride, kLidarFields, data);
}

std::string encode_lidar(SensorTime stamp, std::string_view frame_id, const PointCloud& cloud) {
  std::vector<std::byte> data(std::size_t{cloud.count} * kLidarStride);
  for (std::size_t i = 0; i < cloud.count; ++i) {
    put_lidar(data.data() + i * kLidarStride,
              {cloud.x()[i], cloud.y()[i], cloud.z()[i], cloud.intensity()[i], cloud.time_ns()[i], cloud.ring()[i]});
  }
  return encode_points(stamp, frame_id, kLidarStride, kLidarFields, data);
}

std::string encode_radar(SensorTime stamp, std::string_view frame_id, std::span<const RadarReturn> returns) {
  static_assert(sizeof(RadarReturn) == kRadarStride);
  return encode_points(stamp, frame_id, kRadarStride, kRadarFields, std::as_bytes(returns));
}

log::SceneUpdate scene_of(const log::Truth& truth, Duration lifetime) {
  static constexpr const char* kNames[] = {"unknown", "vehicle", "pedestrian", "cyclist", "other"};
  log::SceneUpdate scene;
  scene.stamp = truth.stamp;
  scene.frame_id = truth.frame_id;
  scene.lifetime = lifetime;
  for (const auto& box : truth.boxes) {
    log::SceneBox shown;
    shown.id = "truth-" + std::to_string(box.id);
    shown.label = std::string(kNames[box.object_class < 5 ? box.object_class : 0]) + " " + std::to_string(box.id);
    shown.pose = box.pose;
    shown.size = box.size;
    shown.color = {1, 1, 1, 0.3};
    scene.boxes.push_back(std::move(shown));
  }
  return scene;
}

}  // namespace takt::sensors
