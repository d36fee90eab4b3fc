// Points of a log::PointCloud by field name, whatever the layout: fields are found by name, read by type, offset
// and stride, unaligned. Shared by the LiDAR and radar decoders.
#pragma once

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "sensors/logs/log_messages.h"

namespace takt::sensors {

// One field of a validated cloud.
class PointField {
 public:
  PointField() = default;
  explicit PointField(const log::PackedField& field, bool big_endian = false) : field_(field), swap_(big_endian) {}

  [[nodiscard]] explicit operator bool() const { return field_.type != log::NumericType::kUnknown; }
  [[nodiscard]] std::string_view name() const { return field_.name; }
  [[nodiscard]] bool is_float() const {
    return field_.type == log::NumericType::kFloat32 || field_.type == log::NumericType::kFloat64;
  }
  [[nodiscard]] double at(const std::byte* point) const {
    const std::byte* from = point + field_.offset;
    switch (field_.type) {
      case log::NumericType::kUint8: return load<std::uint8_t>(from);
      case log::NumericType::kInt8: return load<std::int8_t>(from);
      case log::NumericType::kUint16: return load<std::uint16_t>(from);
      case log::NumericType::kInt16: return load<std::int16_t>(from);
      case log::NumericType::kUint32: return load<std::uint32_t>(from);
      case log::NumericType::kInt32: return load<std::int32_t>(from);
      case log::NumericType::kFloat32: return static_cast<double>(load<float>(from));
      case log::NumericType::kFloat64: return load<double>(from);
      case log::NumericType::kUnknown: break;
    }
    return 0;
  }

 private:
  template <class T>
  [[nodiscard]] T load(const std::byte* from) const {
    T value;
    std::memcpy(&value, from, sizeof value);
    if (swap_) {
      std::byte raw[sizeof value];
      std::reverse_copy(from, from + sizeof value, raw);
      std::memcpy(&value, raw, sizeof value);
    }
    return value;
  }
  log::PackedField field_;
  bool swap_ = false;
};

inline std::uint32_t bytes_of(log::NumericType type) {
  switch (type) {
    case log::NumericType::kUint8:
    case log::NumericType::kInt8: return 1;
    case log::NumericType::kUint16:
    case log::NumericType::kInt16: return 2;
    case log::NumericType::kUint32:
    case log::NumericType::kInt32:
    case log::NumericType::kFloat32: return 4;
    case log::NumericType::kFloat64: return 8;
    case log::NumericType::kUnknown: break;
  }
  return 0;
}

// The layout of one cloud, checked: `reason` says what is wrong, empty = fine. Fields given by name stay readable for
// every point.
class PointLayout {
 public:
  explicit PointLayout(const log::PointCloud& cloud) : cloud_(cloud) {
    static const log::Pose kIdentity;
    if (cloud.pose.position != kIdentity.position || cloud.pose.orientation != kIdentity.orientation) {
      reason_ = "the cloud has a pose of its own; points must lie in the message's frame";
    } else if (!cloud.data.empty() && cloud.point_stride == 0) {
      reason_ = "point_stride is 0";
    } else if (cloud.rows != 0) {
      const std::uint64_t row = std::uint64_t{cloud.row_points} * cloud.point_stride;
      if (row > cloud.row_stride || std::uint64_t{cloud.rows - 1} * cloud.row_stride + row > cloud.data.size()) {
        reason_ = "its rows of " + std::to_string(row) + " bytes exceed the data";
      } else {
        points_ = std::uint64_t{cloud.rows} * cloud.row_points;
      }
    } else if (!cloud.data.empty() && cloud.data.size() % cloud.point_stride != 0) {
      reason_ = std::to_string(cloud.data.size()) + " bytes are no multiple of point_stride " +
                std::to_string(cloud.point_stride);
    } else if (!cloud.data.empty()) {
      points_ = cloud.data.size() / cloud.point_stride;
    }
  }

  // The first of `names` that the cloud has. A required field that is absent, or any that does not fit into a point, is
  // a reason; an empty cloud needs no fields.
  PointField find(std::initializer_list<std::string_view> names, bool required) {
    for (const auto name : names) {
      for (std::size_t i = 0; i < cloud_.field_count; ++i) {
        const log::PackedField& field = cloud_.fields[i];
        if (field.name != name) continue;
        const std::uint64_t end = std::uint64_t{field.offset} + bytes_of(field.type);
        if (bytes_of(field.type) == 0) {
          complain("field '" + std::string(name) + "' has the unknown type " +
                   std::to_string(static_cast<std::uint32_t>(field.type)));
          return {};
        }
        if (points_ != 0 && end > cloud_.point_stride) {
          complain("field '" + std::string(name) + "' ends at byte " + std::to_string(end) + " of a point of " +
                   std::to_string(cloud_.point_stride));
          return {};
        }
        return PointField(field, cloud_.big_endian);
      }
    }
    if (required && points_ != 0) complain("field '" + std::string(*names.begin()) + "' is missing");
    return {};
  }

  [[nodiscard]] const std::string& reason() const { return reason_; }
  [[nodiscard]] std::size_t points() const { return points_; }
  [[nodiscard]] const std::byte* point(std::size_t i) const {
    if (cloud_.rows == 0) return cloud_.data.data() + i * cloud_.point_stride;
    return cloud_.data.data() + i / cloud_.row_points * cloud_.row_stride + i % cloud_.row_points * cloud_.point_stride;
  }

 private:
  void complain(std::string what) {
    if (reason_.empty()) reason_ = std::move(what);
  }
  const log::PointCloud& cloud_;
  std::size_t points_ = 0;
  std::string reason_;
};

}  // namespace takt::sensors
