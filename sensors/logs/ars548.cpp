#include "sensors/logs/ars548.h"

#include <bit>
#include <cmath>

#include "kernels/reference/elementary.h"
#include "sensors/logs/encode.h"

namespace takt::sensors {
namespace {

constexpr std::size_t kDetections = 101, kDetectionBytes = 44, kMaxDetections = 800;
constexpr std::size_t kObjects = 51, kObjectBytes = 187, kMaxObjects = 50;
constexpr std::uint32_t kDetectionMethod = 336, kObjectMethod = 329;

// Big-endian values by offset; the size was checked.
class Packet {
 public:
  explicit Packet(std::span<const std::byte> bytes) : bytes_(bytes) {}
  [[nodiscard]] std::uint32_t u32(std::size_t at) const { return number(at, 4); }
  [[nodiscard]] std::uint16_t u16(std::size_t at) const { return static_cast<std::uint16_t>(number(at, 2)); }
  [[nodiscard]] std::uint8_t u8(std::size_t at) const { return static_cast<std::uint8_t>(bytes_[at]); }
  float f32(std::size_t at) {
    const auto value = std::bit_cast<float>(u32(at));
    if (!std::isfinite(value) && bad_ == 0) bad_ = at;
    return value;
  }
  [[nodiscard]] std::size_t bad() const { return bad_; }  // offset of the first value that is no number, 0 = none

 private:
  [[nodiscard]] std::uint32_t number(std::size_t at, std::size_t size) const {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i) value = value << 8 | static_cast<std::uint32_t>(bytes_[at + i]);
    return value;
  }
  std::span<const std::byte> bytes_;
  std::size_t bad_ = 0;
};

Ars548Stamp stamp_of(const Packet& packet) {
  const std::int64_t seconds = packet.u32(40), nanos = packet.u32(36);
  return {{seconds * 1'000'000'000 + nanos}, packet.u8(44) == 1};
}

}  // namespace

Ars548Kind ars548_kind(std::span<const std::byte> payload) {
  if (payload.size() != kArs548DetectionBytes && payload.size() != kArs548ObjectBytes) return Ars548Kind::kOther;
  const Packet packet(payload);
  if (packet.u16(0) != 0 || packet.u32(4) != payload.size() - 8) return Ars548Kind::kOther;
  if (packet.u16(2) == kDetectionMethod && payload.size() == kArs548DetectionBytes) return Ars548Kind::kDetections;
  if (packet.u16(2) == kObjectMethod && payload.size() == kArs548ObjectBytes) return Ars548Kind::kObjects;
  return Ars548Kind::kOther;
}

Result<Ars548Detections> parse_ars548_detections(std::span<const std::byte> payload) {
  if (ars548_kind(payload) != Ars548Kind::kDetections) {
    return fail(Code::kInput, "ARS548: " + std::to_string(payload.size()) + " bytes are no detection list");
  }
  Packet packet(payload);
  Ars548Detections list;
  list.stamp = stamp_of(packet);
  for (std::size_t k = 0; k < 3; ++k) list.origin[k] = packet.f32(52 + k * 8);
  list.range_rate_min = packet.f32(35301);
  list.range_rate_max = packet.f32(35305);
  const std::uint32_t count = packet.u32(35309);
  if (count > kMaxDetections) {
    return fail(Code::kInput,
                "ARS548: " + std::to_string(count) + " detections announced at byte 35309; at most 800 fit");
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = kDetections + i * kDetectionBytes;
    Ars548Detection& d = list.detections.emplace_back();
    constexpr std::uint8_t kNeeded = 0x01 | 0x04 | 0x10 | 0x40;  // distance, azimuth, elevation, range rate invalid
    d.azimuth = packet.f32(at);
    d.elevation = packet.f32(at + 9);
    d.range = packet.f32(at + 17);
    d.range_rate = packet.f32(at + 25);
    d.rcs = static_cast<std::int8_t>(packet.u8(at + 33));
    d.measurement_id = packet.u16(at + 34);
    constexpr float kMostAngle = 4;  // rad; more is damage
    d.valid =
        (packet.u8(at + 8) & kNeeded) == 0 && std::fabs(d.azimuth) < kMostAngle && std::fabs(d.elevation) < kMostAngle;
  }
  if (packet.bad() != 0) {
    return fail(Code::kInput, "ARS548: the value at byte " + std::to_string(packet.bad()) + " is no number");
  }
  return list;
}

Result<Ars548Objects> parse_ars548_objects(std::span<const std::byte> payload) {
  if (ars548_kind(payload) != Ars548Kind::kObjects) {
    return fail(Code::kInput, "ARS548: " + std::to_string(payload.size()) + " bytes are no object list");
  }
  Packet packet(payload);
  Ars548Objects list;
  list.stamp = stamp_of(packet);
  const std::size_t count = packet.u8(50);
  if (count > kMaxObjects) {
    return fail(Code::kInput, "ARS548: " + std::to_string(count) + " objects announced at byte 50; at most 50 fit");
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = kObjects + i * kObjectBytes;
    Ars548Object& o = list.objects.emplace_back();
    o.id = packet.u32(at + 2);
    o.age = packet.u16(at + 6);
    o.reference = packet.u8(at + 12);
    for (std::size_t k = 0; k < 3; ++k) o.position[k] = packet.f32(at + 13 + k * 8);
    o.orientation = packet.f32(at + 41);
    o.existence = packet.f32(at + 50);
    for (std::size_t k = 0; k < 2; ++k) o.velocity[k] = packet.f32(at + 69 + k * 8);
    for (std::size_t k = 0; k < 2; ++k) o.relative_velocity[k] = packet.f32(at + 90 + k * 8);
    o.length = packet.f32(at + 166);
    o.width = packet.f32(at + 179);
  }
  if (packet.bad() != 0) {
    return fail(Code::kInput, "ARS548: the value at byte " + std::to_string(packet.bad()) + " is no number");
  }
  return list;
}

std::string ars548_radar_message(const Ars548Detections& list, SensorTime stamp, std::string_view frame_id) {
  std::vector<RadarReturn> returns;
  for (const Ars548Detection& d : list.detections) {
    if (!d.valid) continue;
    const double flat = static_cast<double>(d.range) * kernels::cos(d.elevation);
    RadarReturn& r = returns.emplace_back();
    r.x = static_cast<float>(flat * kernels::cos(d.azimuth));
    r.y = static_cast<float>(flat * kernels::sin(d.azimuth));
    r.z = static_cast<float>(static_cast<double>(d.range) * kernels::sin(d.elevation));
    r.range_rate = d.range_rate;
    r.rcs = d.rcs;
  }
  return encode_radar(stamp, frame_id, returns);
}

std::string ars548_scene_message(const Ars548Objects& list, SensorTime stamp, std::string_view frame_id) {
  constexpr double kHeight = 1.5;
  // Where `position` lies on the box, in half lengths forward and half widths left.
  static constexpr double kPlace[8][2] = {{1, 1}, {1, 0}, {1, -1}, {0, -1}, {-1, -1}, {-1, 0}, {-1, 1}, {0, 1}};
  log::SceneUpdate scene;
  scene.stamp = stamp;
  scene.frame_id = frame_id;
  scene.lifetime = milliseconds(150);  // three cycles
  for (const Ars548Object& o : list.objects) {
    log::SceneBox& box = scene.boxes.emplace_back();
    box.id = "ars548-" + std::to_string(o.id);
    box.label = std::to_string(o.id);
    const double yaw = std::fabs(o.orientation) < 7 ? o.orientation : 0, c = kernels::cos(yaw), s = kernels::sin(yaw);
    const double forward = o.reference < 8 ? kPlace[o.reference][0] * static_cast<double>(o.length) / 2 : 0;
    const double left = o.reference < 8 ? kPlace[o.reference][1] * static_cast<double>(o.width) / 2 : 0;
    box.pose.position = {static_cast<double>(o.position[0]) - c * forward + s * left,
                         static_cast<double>(o.position[1]) - s * forward - c * left,
                         static_cast<double>(o.position[2])};
    box.pose.orientation = {kernels::cos(yaw / 2), 0, 0, kernels::sin(yaw / 2)};
    box.size = {static_cast<double>(o.length), static_cast<double>(o.width), kHeight};
    box.color = {0.2, 0.7, 1, 0.5};
  }
  return encode(scene);
}

}  // namespace takt::sensors
