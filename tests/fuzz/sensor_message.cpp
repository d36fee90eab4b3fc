// Any bytes as a message of a sensor: the first byte chooses the decoder. A decoded payload keeps its promises
// (finite points, counts within capacity, zero padding); everything else is a bad frame with a reason.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "pipeline/messages/encode.h"
#include "sensors/camera/camera_decoder.h"
#include "sensors/ego/ego_decoder.h"
#include "sensors/lidar/lidar_decoder.h"
#include "sensors/logs/decode.h"
#include "sensors/messages/messages.h"
#include "sensors/radar/radar_decoder.h"

using namespace takt::sensors;

namespace {

constexpr std::uint32_t kCapacity = 5, kWidth = 16, kHeight = 16;

void require(bool condition) {
  if (!condition) std::abort();
}

RigSensor sensor(SensorKind kind) {
  RigSensor out;
  out.kind = kind;
  out.capacity = kCapacity;
  out.camera = CameraModel{kWidth, kHeight, 10, 10, 8, 8, {}};
  return out;
}

struct Chunk {
  explicit Chunk(std::unique_ptr<Decoder> d) : decoder(std::move(d)) {}
  const std::byte* decode(std::span<const std::byte> message) {
    const auto report = decoder->decode(message, {bytes, decoder->payload_capacity()});
    require(report.ok == report.reason.empty());
    require(!report.ok || report.payload_bytes <= decoder->payload_capacity());
    return report.ok ? bytes : nullptr;
  }
  std::unique_ptr<Decoder> decoder;
  alignas(64) std::byte bytes[4096];
};

void cloud(std::span<const std::byte> message) {
  static Chunk chunk(make_lidar_decoder(sensor(SensorKind::kLidar)).value());
  const auto* out = reinterpret_cast<const PointCloud*>(chunk.decode(message));
  if (out == nullptr) return;
  require(out->count <= kCapacity && out->capacity == kCapacity);
  for (std::uint32_t i = 0; i < kCapacity; ++i) {
    require(std::isfinite(out->x()[i]) && std::isfinite(out->y()[i]) && std::isfinite(out->z()[i]));
    require(out->intensity()[i] >= 0 && out->intensity()[i] <= 1);
    require(i < out->count || out->x()[i] == 0);
  }
}

void scan(std::span<const std::byte> message) {
  static Chunk chunk(make_radar_decoder(sensor(SensorKind::kRadar)).value());
  const auto* out = reinterpret_cast<const RadarScan*>(chunk.decode(message));
  if (out == nullptr) return;
  require(out->count <= kCapacity);
  for (std::uint32_t i = 0; i < kCapacity; ++i) require(std::isfinite(out->returns()[i].range_rate));
}

void picture(std::span<const std::byte> message) {
  static Chunk chunk(make_camera_decoder(sensor(SensorKind::kCamera)).value());
  const auto* out = reinterpret_cast<const Image*>(chunk.decode(message));
  if (out == nullptr) return;
  require(out->width == kWidth && out->height == kHeight && out->row_pitch == 64);
  for (std::uint32_t y = 0; y < kHeight; ++y) {
    for (std::uint32_t i = kWidth * 3; i < out->row_pitch; ++i) require(out->row(y)[i] == 0);
  }
}

void ego(std::span<const std::byte> message) {
  static Chunk chunk(make_ego_decoder(sensor(SensorKind::kEgo)).value());
  const auto* out = reinterpret_cast<const EgoMotion*>(chunk.decode(message));
  if (out != nullptr) require(std::isfinite(out->velocity[0]));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto message = std::as_bytes(std::span(data, size)).subspan(1);
  switch (data[0] % 9) {
    case 0: cloud(message); break;
    case 1: scan(message); break;
    case 2: picture(message); break;
    case 3: ego(message); break;
    case 4: (void)decode_truth(message); break;
    case 5: (void)decode_frame_transforms(message); break;
    case 6: (void)decode_camera_calibration(message); break;
    case 7: {
      const auto list = takt::pipeline::decode_object_list(message);
      require(!list || list->count <= takt::pipeline::kMaxObjects);
      break;
    }
    case 8: {
      const auto list = takt::pipeline::decode_track_list(message);
      require(!list || list->count <= takt::pipeline::kMaxTracks);
      break;
    }
  }
  return 0;
}
