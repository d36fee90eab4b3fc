#include "sensors/lidar/lidar_decoder.h"

#include <algorithm>
#include <cmath>

#include "sensors/logs/channel_messages.h"
#include "sensors/logs/point_fields.h"
#include "sensors/messages/messages.h"

namespace takt::sensors {
namespace {

// Per-point times come in several forms; all become nanoseconds from the message's stamp.
class PointTime {
 public:
  PointTime(PointLayout& layout, SensorTime stamp) : stamp_(stamp) {
    field_ = layout.find({"time_offset_ns", "t", "time", "timestamp", "time_stamp"}, false);
    absolute_ = field_.name() == "timestamp";
    scale_ = field_.is_float() ? 1e9 : 1;  // floats are seconds, integers nanoseconds
  }
  [[nodiscard]] std::int32_t at(const std::byte* point) const {
    if (!field_) return 0;
    double ns = field_.at(point) * scale_;
    if (absolute_) ns -= static_cast<double>(stamp_.ns);
    if (!std::isfinite(ns)) return 0;
    return static_cast<std::int32_t>(std::clamp(std::nearbyint(ns), -2147483648.0, 2147483647.0));
  }

 private:
  SensorTime stamp_;
  PointField field_;
  bool absolute_ = false;
  double scale_ = 1;
};

class LidarDecoder final : public Decoder {
 public:
  LidarDecoder(const RigSensor& sensor, MessageDecoder<log::PointCloud> read)
      : Decoder(payload_schema(sensor.kind), sensors::payload_capacity(sensor)),
        read_(std::move(read)),
        capacity_(sensor.capacity),
        scale_(sensor.intensity_scale),
        compensated_(sensor.motion_compensated) {}

  DecodeReport decode(std::span<const std::byte> message, std::span<std::byte> payload) override {
    DecodeReport report;
    if (payload.size() < payload_capacity()) {
      report.reason = "the chunk is smaller than the payload";
      return report;
    }
    const auto decoded = read_(message);
    if (!decoded) {
      report.reason = decoded.error().message;
      return report;
    }
    PointLayout layout(*decoded);
    const PointField x = layout.find({"x"}, true), y = layout.find({"y"}, true), z = layout.find({"z"}, true);
    const PointField intensity = layout.find({"intensity"}, false),
                     ring = layout.find({"ring", "channel", "line"}, false);
    const PointTime time(layout, decoded->stamp);
    if (!layout.reason().empty()) {
      report.reason = layout.reason();
      return report;
    }

    auto& cloud = *reinterpret_cast<PointCloud*>(payload.data());
    std::memset(payload.data(), 0, 64);
    cloud.capacity = capacity_;
    cloud.motion_compensated = compensated_ ? 1 : 0;
    float *const xs = cloud.x(), *const ys = cloud.y(), *const zs = cloud.z(), *const shades = cloud.intensity();
    std::int32_t* const times = cloud.time_ns();
    std::uint16_t* const rings = cloud.ring();
    std::uint32_t n = 0;
    for (std::size_t i = 0; i < layout.points(); ++i) {
      const std::byte* point = layout.point(i);
      const auto px = static_cast<float>(x.at(point));
      const auto py = static_cast<float>(y.at(point));
      const auto pz = static_cast<float>(z.at(point));
      if (!std::isfinite(px) || !std::isfinite(py) || !std::isfinite(pz)) {
        ++report.invalid_points;
        continue;
      }
      if (n == capacity_) {
        ++report.dropped_points;
        continue;
      }
      xs[n] = px;
      ys[n] = py;
      zs[n] = pz;
      const double shade = intensity ? intensity.at(point) * scale_ : 0;
      shades[n] = std::isfinite(shade) ? static_cast<float>(std::clamp(shade, 0.0, 1.0)) : 0;
      times[n] = time.at(point);
      const double row = ring ? ring.at(point) : 0;
      rings[n] = row >= 0 && row <= 65535 ? static_cast<std::uint16_t>(row) : 0;
      ++n;
    }
    cloud.count = n;
    cloud.dropped = report.dropped_points;
    clear_from(cloud, n);
    report.ok = true;
    report.stamp = decoded->stamp;
    report.repaired = decoded->repaired;
    report.payload_bytes = payload_capacity();
    return report;
  }

 private:
  // Everything behind the last point, array by array: a chunk is reused and its bytes are digested.
  static void clear_from(PointCloud& cloud, std::uint32_t n) {
    const auto clear = [&](auto* array) {
      const std::uint64_t bytes = PointCloud::array_bytes(cloud.capacity, sizeof *array);
      std::memset(static_cast<void*>(array + n), 0, bytes - n * sizeof *array);
    };
    clear(cloud.x());
    clear(cloud.y());
    clear(cloud.z());
    clear(cloud.intensity());
    clear(cloud.time_ns());
    clear(cloud.ring());
  }

  MessageDecoder<log::PointCloud> read_;
  std::uint32_t capacity_;
  double scale_;
  bool compensated_;
};

}  // namespace

Result<std::unique_ptr<Decoder>> make_lidar_decoder(const RigSensor& sensor, const LogChannel& channel) {
  if (sensor.kind != SensorKind::kLidar || sensor.capacity == 0) {
    return fail(Code::kConfiguration, "sensor " + sensor.name + " is no LiDAR with a capacity");
  }
  TAKT_ASSIGN(auto read, point_cloud_decoder(channel));
  return std::make_unique<LidarDecoder>(sensor, std::move(read));
}

Result<std::unique_ptr<Decoder>> make_lidar_decoder(const RigSensor& sensor) {
  return make_lidar_decoder(sensor, LogChannel{});
}

}  // namespace takt::sensors
