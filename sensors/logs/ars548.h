// Packets of the Continental ARS548 RDI radar: SOME/IP over UDP, big-endian. Layout: the vendor's interface description
// as it stands in the Apache-2.0 driver of github.com/tier4/nebula (continental_ars548.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/time.h"

namespace takt::sensors {

inline constexpr std::size_t kArs548DetectionBytes = 35336;  // UDP payload of a detection list
inline constexpr std::size_t kArs548ObjectBytes = 9401;      // of an object list

enum class Ars548Kind { kOther, kDetections, kObjects };
// By method and size; kOther for status packets and foreign data.
Ars548Kind ars548_kind(std::span<const std::byte> payload);

struct Ars548Stamp {
  SensorTime time;            // of the radar's clock
  bool synchronised = false;  // with the network's clock
};

struct Ars548Detection {
  float azimuth = 0, elevation = 0;  // rad; counter-clockwise, up
  float range = 0;                   // m
  float range_rate = 0;              // m/s, positive = receding
  std::int8_t rcs = 0;               // dBsm
  std::uint16_t measurement_id = 0;
  bool valid = false;  // distance, azimuth, elevation and range rate are
};
struct Ars548Detections {
  Ars548Stamp stamp;
  std::array<float, 3> origin{};                 // of the sensor in the vehicle, m
  float range_rate_min = 0, range_rate_max = 0;  // without ambiguity, m/s
  std::vector<Ars548Detection> detections;       // at most 800
};

struct Ars548Object {
  std::uint32_t id = 0;
  std::uint16_t age = 0;
  std::uint8_t reference = 255;              // which point of the box `position` is: 0 front left, clockwise to 7 left
  std::array<float, 3> position{};           // m, frame of the vehicle
  float orientation = 0;                     // rad
  std::array<float, 2> velocity{};           // over ground, m/s
  std::array<float, 2> relative_velocity{};  // m/s
  float existence = 0;                       // percent
  float length = 0, width = 0;               // m
};
struct Ars548Objects {
  Ars548Stamp stamp;
  std::vector<Ars548Object> objects;  // at most 50
};

// kInput: another kind or size of packet, more entries than fit, a value that is no number.
Result<Ars548Detections> parse_ars548_detections(std::span<const std::byte> payload);
Result<Ars548Objects> parse_ars548_objects(std::span<const std::byte> payload);

// foxglove.PointCloud in takt's radar layout; detections with an invalid part are left out.
std::string ars548_radar_message(const Ars548Detections& list, SensorTime stamp, std::string_view frame_id);
// foxglove.SceneUpdate: the objects that the radar itself tracks, box centres, 1.5 m high (it measures no height).
std::string ars548_scene_message(const Ars548Objects& list, SensorTime stamp, std::string_view frame_id);

}  // namespace takt::sensors
