#include "sensors/logs/decode.h"

#include "sensors/logs/wire.h"

namespace takt::sensors {
namespace {

using wire::Reader;

std::array<double, 3> read_vector(Reader& reader) {
  std::array<double, 3> v{0, 0, 0};
  reader.message([&](Reader& r) {
    if (r.field() >= 1 && r.field() <= 3) v[r.field() - 1] = r.double_();
  });
  return v;
}

// An absent or all-zero quaternion counts as no rotation, as viewers treat it.
std::array<double, 4> or_identity(const std::array<double, 4>& q) {
  return q == std::array<double, 4>{0, 0, 0, 0} ? std::array<double, 4>{1, 0, 0, 0} : q;
}

std::array<double, 4> read_quaternion(Reader& reader) {  // foxglove: x y z w
  std::array<double, 4> q{0, 0, 0, 0};
  reader.message([&](Reader& r) {
    if (r.field() >= 1 && r.field() <= 4) q[r.field() % 4] = r.double_();
  });
  return or_identity(q);
}

std::array<double, 4> read_rotation(Reader& reader) {  // takt: w x y z
  std::array<double, 4> q{0, 0, 0, 0};
  reader.message([&](Reader& r) {
    if (r.field() >= 1 && r.field() <= 4) q[r.field() - 1] = r.double_();
  });
  return or_identity(q);
}

log::Pose read_pose(Reader& reader) {
  log::Pose pose;
  reader.message([&](Reader& r) {
    if (r.field() == 1) pose.position = read_vector(r);
    if (r.field() == 2) pose.orientation = read_quaternion(r);
  });
  return pose;
}

// Walks all fields with `read(reader)` and gives `message`, or the error.
template <class Message, class Read>
Result<Message> decode_with(const char* type, std::span<const std::byte> bytes, Message& message, Read&& read) {
  Reader reader(bytes);
  while (reader.next()) read(reader);
  if (auto status = reader.status(); !status) return fail(std::move(status).error().with_context(type));
  return std::move(message);
}

}  // namespace

Result<log::CompressedImage> decode_compressed_image(std::span<const std::byte> bytes) {
  log::CompressedImage m;
  return decode_with("foxglove.CompressedImage", bytes, m, [&](Reader& r) {
    switch (r.field()) {
      case 1: m.stamp = r.stamp(); break;
      case 2: m.data = r.bytes(); break;
      case 3: m.format = r.text(); break;
      case 4: m.frame_id = r.text(); break;
    }
  });
}

Result<log::RawImage> decode_raw_image(std::span<const std::byte> bytes) {
  log::RawImage m;
  return decode_with("foxglove.RawImage", bytes, m, [&](Reader& r) {
    switch (r.field()) {
      case 1: m.stamp = r.stamp(); break;
      case 2: m.width = r.fixed32(); break;
      case 3: m.height = r.fixed32(); break;
      case 4: m.encoding = r.text(); break;
      case 5: m.step = r.fixed32(); break;
      case 6: m.data = r.bytes(); break;
      case 7: m.frame_id = r.text(); break;
    }
  });
}

Result<log::CameraCalibration> decode_camera_calibration(std::span<const std::byte> bytes) {
  log::CameraCalibration m;
  std::array<double, 9> k{};
  std::size_t d_count = 0, k_count = 0;
  std::string_view model = "plumb_bob";
  auto result = decode_with("foxglove.CameraCalibration", bytes, m, [&](Reader& r) {
    switch (r.field()) {
      case 1: m.stamp = r.stamp(); break;
      case 2: m.width = r.fixed32(); break;
      case 3: m.height = r.fixed32(); break;
      case 4: model = r.text(); break;
      case 5: r.doubles(m.distortion, d_count); break;
      case 6: r.doubles(k, k_count); break;
      case 9: m.frame_id = r.text(); break;
    }
  });
  if (!result) return result;
  if (model != "plumb_bob" && !model.empty()) {
    return fail(Code::kInput, "foxglove.CameraCalibration: distortion model '" + std::string(model) +
                                  "' is not supported; known: plumb_bob");
  }
  if (k_count != 9) return fail(Code::kInput, "foxglove.CameraCalibration: K has not nine elements");
  result->fx = k[0];
  result->cx = k[2];
  result->fy = k[4];
  result->cy = k[5];
  return result;
}

Result<log::PointCloud> decode_point_cloud(std::span<const std::byte> bytes) {
  log::PointCloud m;
  return decode_with("foxglove.PointCloud", bytes, m, [&](Reader& r) {
    switch (r.field()) {
      case 1: m.stamp = r.stamp(); break;
      case 2: m.frame_id = r.text(); break;
      case 3: m.pose = read_pose(r); break;
      case 4: m.point_stride = r.fixed32(); break;
      case 5: {
        log::PackedField field;
        r.message([&](Reader& f) {
          if (f.field() == 1) field.name = f.text();
          if (f.field() == 2) field.offset = f.fixed32();
          if (f.field() == 3) field.type = static_cast<log::NumericType>(f.unsigned32());
        });
        if (m.field_count < m.fields.size()) m.fields[m.field_count++] = field;
        break;
      }
      case 6: m.data = r.bytes(); break;
    }
  });
}

Result<log::PoseInFrame> decode_pose_in_frame(std::span<const std::byte> bytes) {
  log::PoseInFrame m;
  return decode_with("foxglove.PoseInFrame", bytes, m, [&](Reader& r) {
    switch (r.field()) {
      case 1: m.stamp = r.stamp(); break;
      case 2: m.frame_id = r.text(); break;
      case 3: m.pose = read_pose(r); break;
    }
  });
}

Result<std::vector<log::FrameTransform>> decode_frame_transforms(std::span<const std::byte> bytes) {
  std::vector<log::FrameTransform> transforms;
  return decode_with("foxglove.FrameTransforms", bytes, transforms, [&](Reader& r) {
    if (r.field() != 1) return;
    log::FrameTransform t;
    r.message([&](Reader& m) {
      switch (m.field()) {
        case 1: t.stamp = m.stamp(); break;
        case 2: t.parent = m.text(); break;
        case 3: t.child = m.text(); break;
        case 4: t.pose.position = read_vector(m); break;
        case 5: t.pose.orientation = read_quaternion(m); break;
      }
    });
    transforms.push_back(std::move(t));
  });
}

Result<log::EgoMotion> decode_ego_motion(std::span<const std::byte> bytes) {
  log::EgoMotion m;
  return decode_with("takt.EgoMotion", bytes, m, [&](Reader& r) {
    switch (r.field()) {
      case 1: m.stamp = r.stamp(); break;
      case 2: m.world_frame = r.text(); break;
      case 3: m.vehicle_frame = r.text(); break;
      case 4: m.pose.position = read_vector(r); break;
      case 5: m.pose.orientation = read_rotation(r); break;
      case 6: m.velocity = read_vector(r); break;
      case 7: m.angular_velocity = read_vector(r); break;
    }
  });
}

Result<log::Truth> decode_truth(std::span<const std::byte> bytes) {
  log::Truth m;
  return decode_with("takt.Truth", bytes, m, [&](Reader& r) {
    switch (r.field()) {
      case 1: m.stamp = r.stamp(); break;
      case 2: m.frame_id = r.text(); break;
      case 3: {
        log::TruthBox box;
        r.message([&](Reader& b) {
          switch (b.field()) {
            case 1: box.id = b.unsigned32(); break;
            case 2: box.object_class = b.unsigned32(); break;
            case 3: box.pose.position = read_vector(b); break;
            case 4: box.pose.orientation = read_rotation(b); break;
            case 5: box.size = read_vector(b); break;
            case 6: box.velocity = read_vector(b); break;
            case 7: box.lidar_points = b.unsigned32(); break;
          }
        });
        m.boxes.push_back(box);
        break;
      }
    }
  });
}

}  // namespace takt::sensors
