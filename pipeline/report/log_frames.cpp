#include "pipeline/report/log_frames.h"

#include <cstdlib>
#include <cstring>
#include <memory>

#include "sensors/camera/camera_decoder.h"
#include "sensors/lidar/lidar_decoder.h"
#include "sensors/messages/messages.h"

namespace takt::pipeline {
namespace {

using Message = std::vector<std::byte>;

constexpr std::int64_t kFurthest = 3;  // periods between a moment and the frame shown for it

// The message nearest to a moment, as the log is read in order.
struct Nearest {
  std::int64_t distance = 0;
  SensorTime stamp;
  const sensors::LogChannel* channel = nullptr;
  Message bytes;
  void offer(SensorTime wanted, SensorTime capture, const sensors::LogMessage& message) {
    const std::int64_t apart = std::abs((capture - wanted).ns);
    if (!bytes.empty() && apart >= distance) return;
    distance = apart;
    stamp = capture;
    channel = message.channel;
    bytes.assign(message.bytes.begin(), message.bytes.end());
  }
};

// Payload memory as decoders want it.
class AlignedPayload {
 public:
  explicit AlignedPayload(std::size_t size) : size_(round_up(size, 64) + 64), bytes_(std::aligned_alloc(64, size_)) {
    if (bytes_ != nullptr) std::memset(bytes_, 0, size_);
  }
  ~AlignedPayload() { std::free(bytes_); }
  AlignedPayload(const AlignedPayload&) = delete;
  AlignedPayload& operator=(const AlignedPayload&) = delete;
  [[nodiscard]] std::span<std::byte> span() const {
    return {static_cast<std::byte*>(bytes_), bytes_ == nullptr ? 0 : size_};
  }
  template <class T>
  [[nodiscard]] const T& as() const {
    return *static_cast<const T*>(bytes_);
  }

 private:
  std::size_t size_;
  void* bytes_;
};

std::optional<RgbPicture> picture_of(const sensors::Image& image) {
  const std::uint32_t channels = image.format == sensors::PixelFormat::kMono8 ? 1 : 3;
  const bool blue_first = image.format == sensors::PixelFormat::kBgr8;
  if (channels == 3 && !blue_first && image.format != sensors::PixelFormat::kRgb8) return std::nullopt;
  RgbPicture out;
  out.width = image.width;
  out.height = image.height;
  out.pixels.resize(std::size_t{3} * out.width * out.height);
  for (std::uint32_t y = 0; y < out.height; ++y) {
    const std::uint8_t* row = image.row(y);
    std::uint8_t* to = out.pixels.data() + std::size_t{3} * y * out.width;
    for (std::size_t x = 0; x < out.width; ++x) {
      const std::uint8_t* pixel = row + x * channels;
      to[3 * x] = pixel[channels == 1 ? 0 : blue_first ? 2 : 0];
      to[3 * x + 1] = pixel[channels == 1 ? 0 : 1];
      to[3 * x + 2] = pixel[channels == 1 ? 0 : blue_first ? 0 : 2];
    }
  }
  return out;
}

// The first sensor of the kind that was part of the run.
std::optional<std::size_t> first_of(const RunData& run, sensors::SensorKind kind) {
  for (std::size_t i = 0; i < run.rig.sensors.size(); ++i) {
    if (run.rig.sensors[i].kind == kind && !run.sources[i].topic.empty()) return i;
  }
  return std::nullopt;
}

std::optional<CameraFrame> decode_camera(const sensors::Rig& rig, std::size_t sensor, const Nearest& nearest) {
  if (nearest.bytes.empty() || nearest.distance > kFurthest * rig.sensors[sensor].period.ns) return std::nullopt;
  auto decoder = sensors::make_camera_decoder(rig.sensors[sensor], *nearest.channel);
  if (!decoder) return std::nullopt;
  const AlignedPayload payload((*decoder)->payload_capacity());
  if (payload.span().empty() || !(*decoder)->decode(nearest.bytes, payload.span()).ok) return std::nullopt;
  auto picture = picture_of(payload.as<sensors::Image>());
  if (!picture) return std::nullopt;
  return CameraFrame{sensor, nearest.stamp, std::move(*picture)};
}

std::optional<LidarFrame> decode_lidar(const sensors::Rig& rig, std::size_t sensor, const Nearest& nearest) {
  if (nearest.bytes.empty() || nearest.distance > kFurthest * rig.sensors[sensor].period.ns) return std::nullopt;
  auto decoder = sensors::make_lidar_decoder(rig.sensors[sensor], *nearest.channel);
  if (!decoder) return std::nullopt;
  const AlignedPayload payload((*decoder)->payload_capacity());
  if (payload.span().empty() || !(*decoder)->decode(nearest.bytes, payload.span()).ok) return std::nullopt;
  const auto& cloud = payload.as<sensors::PointCloud>();
  LidarFrame out{sensor, nearest.stamp, {}};
  out.points.reserve(cloud.count);
  for (std::uint32_t i = 0; i < cloud.count; ++i) {
    const auto p = rig.sensors[sensor].vehicle_from_sensor.apply({cloud.x()[i], cloud.y()[i], cloud.z()[i]});
    out.points.push_back({static_cast<float>(p[0]), static_cast<float>(p[1]), static_cast<float>(p[2])});
  }
  return out;
}

}  // namespace

Status read_frames(const RunData& run, std::vector<Moment>& moments) {
  TAKT_ASSIGN(const auto log, sensors::open_log(run.log_path));
  const auto camera = first_of(run, sensors::SensorKind::kCamera);
  const auto lidar = first_of(run, sensors::SensorKind::kLidar);
  std::vector<std::string> topics;
  if (camera) topics.push_back(run.sources[*camera].topic);
  if (lidar) topics.push_back(run.sources[*lidar].topic);
  if (topics.empty()) return {};  // selecting none would select all
  log->select(topics);
  std::vector<Nearest> images(moments.size()), clouds(moments.size());
  while (true) {
    TAKT_ASSIGN(const auto message, log->next());
    if (!message) break;
    const bool is_camera = camera && message->channel->topic == run.sources[*camera].topic;
    const SensorTime capture = run.sources[is_camera ? *camera : *lidar].stamp.map_unchecked({message->capture.ns});
    for (std::size_t i = 0; i < moments.size(); ++i) {
      (is_camera ? images[i] : clouds[i]).offer(moments[i].wanted, capture, *message);
    }
  }
  for (std::size_t i = 0; i < moments.size(); ++i) {
    if (camera) moments[i].camera = decode_camera(run.rig, *camera, images[i]);
    if (lidar) moments[i].lidar = decode_lidar(run.rig, *lidar, clouds[i]);
  }
  return {};
}

}  // namespace takt::pipeline
