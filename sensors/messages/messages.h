// Fixed-layout, relocatable payloads of the sensor topics. No pointers: everything is an offset from the payload's
// first byte, so a payload may lie at any address of any process. All lengths metres, angles radians, times ns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "runtime/base/sizes.h"

namespace takt::sensors {

// Payload ids (ChunkHeader::schema). A changed layout gets a new number.
enum Schema : std::uint32_t {
  kImageSchema = 0x0101,
  kPointCloudSchema = 0x0201,
  kRadarScanSchema = 0x0301,
  kEgoMotionSchema = 0x0401,
};

enum class PixelFormat : std::uint32_t { kRgb8 = 1, kBgr8 = 2, kMono8 = 3, kNv12 = 4, kBayerRggb8 = 5 };

// Rows start on 64-byte boundaries: row_pitch is a multiple of 64; bytes beyond width are zero.
struct Image {
  std::uint32_t width = 0;  // pixels
  std::uint32_t height = 0;
  std::uint32_t row_pitch = 0;  // bytes
  PixelFormat format = PixelFormat::kRgb8;
  std::uint64_t data_offset = 64;

  static constexpr std::uint32_t pitch_for(std::uint32_t width, std::uint32_t bytes_per_pixel) {
    return static_cast<std::uint32_t>(round_up(std::uint64_t{width} * bytes_per_pixel, 64));
  }
  static constexpr std::uint64_t bytes_for(std::uint32_t width, std::uint32_t height, std::uint32_t bytes_per_pixel) {
    return 64 + std::uint64_t{pitch_for(width, bytes_per_pixel)} * height;
  }
  [[nodiscard]] const std::uint8_t* row(std::uint32_t y) const {
    return reinterpret_cast<const std::uint8_t*>(this) + data_offset + std::uint64_t{y} * row_pitch;
  }
  [[nodiscard]] std::uint8_t* row(std::uint32_t y) {
    return reinterpret_cast<std::uint8_t*>(this) + data_offset + std::uint64_t{y} * row_pitch;
  }
};

// Structure of arrays over `capacity` points, each array 64-byte aligned, in the order x y z intensity time ring.
// Points lie in the frame that the rig names for the topic (usually the sensor's own frame).
struct PointCloud {
  std::uint32_t count = 0;
  std::uint32_t capacity = 0;
  std::uint32_t motion_compensated = 0;  // 1: points are already in one pose, times are informative only
  std::uint32_t dropped = 0;             // points left out because of the capacity

  static constexpr std::uint64_t array_bytes(std::uint32_t capacity, std::uint64_t element) {
    return round_up(std::uint64_t{capacity} * element, 64);
  }
  static constexpr std::uint64_t bytes_for(std::uint32_t capacity) {
    return 64 + 5 * array_bytes(capacity, 4) + array_bytes(capacity, 2);
  }
  [[nodiscard]] const float* x() const { return floats(0); }
  [[nodiscard]] const float* y() const { return floats(1); }
  [[nodiscard]] const float* z() const { return floats(2); }
  [[nodiscard]] const float* intensity() const { return floats(3); }  // 0..1, scale declared by the rig
  [[nodiscard]] const std::int32_t* time_ns() const {                 // from the capture stamp
    return reinterpret_cast<const std::int32_t*>(array(4));
  }
  [[nodiscard]] const std::uint16_t* ring() const { return reinterpret_cast<const std::uint16_t*>(array(5)); }
  [[nodiscard]] float* x() { return const_cast<float*>(floats(0)); }
  [[nodiscard]] float* y() { return const_cast<float*>(floats(1)); }
  [[nodiscard]] float* z() { return const_cast<float*>(floats(2)); }
  [[nodiscard]] float* intensity() { return const_cast<float*>(floats(3)); }
  [[nodiscard]] std::int32_t* time_ns() { return const_cast<std::int32_t*>(std::as_const(*this).time_ns()); }
  [[nodiscard]] std::uint16_t* ring() { return const_cast<std::uint16_t*>(std::as_const(*this).ring()); }

 private:
  [[nodiscard]] const std::byte* array(std::uint64_t index) const {
    return reinterpret_cast<const std::byte*>(this) + 64 + index * array_bytes(capacity, 4);
  }
  [[nodiscard]] const float* floats(std::uint64_t index) const { return reinterpret_cast<const float*>(array(index)); }
};

// One return of a radar, in the sensor frame.
struct RadarReturn {
  float x = 0, y = 0, z = 0;  // m
  float range_rate = 0;       // m/s, positive = receding, relative to the sensor (not ego-compensated)
  float rcs = 0;              // dBsm
};
struct RadarScan {
  std::uint32_t count = 0;
  std::uint32_t capacity = 0;
  std::uint32_t dropped = 0;
  std::uint32_t reserved = 0;

  static constexpr std::uint64_t bytes_for(std::uint32_t capacity) {
    return 64 + std::uint64_t{capacity} * sizeof(RadarReturn);
  }
  [[nodiscard]] const RadarReturn* returns() const {
    return reinterpret_cast<const RadarReturn*>(reinterpret_cast<const std::byte*>(this) + 64);
  }
  [[nodiscard]] RadarReturn* returns() { return const_cast<RadarReturn*>(std::as_const(*this).returns()); }
};

// Pose and motion of the vehicle frame (origin on the ground under the rear-axle centre; x forward, y left, z up).
struct EgoMotion {
  double position[3] = {0, 0, 0};          // of the vehicle frame in the world frame, m
  double orientation[4] = {1, 0, 0, 0};    // T_world_vehicle, quaternion w x y z
  double velocity[3] = {0, 0, 0};          // in the vehicle frame, m/s
  double angular_velocity[3] = {0, 0, 0};  // in the vehicle frame, rad/s
  static constexpr std::uint64_t bytes_for() { return sizeof(EgoMotion); }
};

}  // namespace takt::sensors
