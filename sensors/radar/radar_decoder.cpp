#include "sensors/radar/radar_decoder.h"

#include <cmath>
#include <cstring>

#include "kernels/reference/elementary.h"
#include "sensors/logs/channel_messages.h"
#include "sensors/logs/point_fields.h"
#include "sensors/logs/ros_messages.h"
#include "sensors/messages/messages.h"

namespace takt::sensors {
namespace {

class RadarDecoder : public Decoder {
 public:
  explicit RadarDecoder(const RigSensor& sensor)
      : Decoder(payload_schema(sensor.kind), sensors::payload_capacity(sensor)), capacity_(sensor.capacity) {}

  DecodeReport decode(std::span<const std::byte> message, std::span<std::byte> payload) override {
    DecodeReport report;
    if (payload.size() < payload_capacity()) {
      report.reason = "the chunk is smaller than the payload";
      return report;
    }
    auto& scan = *reinterpret_cast<RadarScan*>(payload.data());
    std::memset(payload.data(), 0, 64);
    scan.capacity = capacity_;
    if (!read(message, scan, report)) return report;
    scan.dropped = report.dropped_points;
    // A chunk is reused and its bytes are digested.
    std::memset(static_cast<void*>(scan.returns() + scan.count), 0, (capacity_ - scan.count) * sizeof(RadarReturn));
    report.ok = true;
    report.payload_bytes = payload_capacity();
    return report;
  }

 protected:
  // Adds all returns of the message; false with report.reason.
  virtual bool read(std::span<const std::byte> message, RadarScan& scan, DecodeReport& report) = 0;

  static void add(const RadarReturn& r, RadarScan& scan, DecodeReport& report) {
    if (!std::isfinite(r.x) || !std::isfinite(r.y) || !std::isfinite(r.z) || !std::isfinite(r.range_rate) ||
        !std::isfinite(r.rcs)) {
      ++report.invalid_points;
    } else if (scan.count == scan.capacity) {
      ++report.dropped_points;
    } else {
      scan.returns()[scan.count++] = r;
    }
  }

 private:
  std::uint32_t capacity_;
};

class PointRadarDecoder final : public RadarDecoder {
 public:
  PointRadarDecoder(const RigSensor& sensor, MessageDecoder<log::PointCloud> decode)
      : RadarDecoder(sensor), decode_(std::move(decode)) {}

 private:
  bool read(std::span<const std::byte> message, RadarScan& scan, DecodeReport& report) override {
    const auto decoded = decode_(message);
    if (!decoded) {
      report.reason = decoded.error().message;
      return false;
    }
    PointLayout layout(*decoded);
    const PointField x = layout.find({"x"}, true), y = layout.find({"y"}, true), z = layout.find({"z"}, false);
    // Names of drivers for the same quantity.
    const PointField range_rate =
        layout.find({"range_rate", "doppler_velocity", "radial_speed", "radial_velocity", "doppler", "velocity"}, true);
    const PointField rcs = layout.find({"rcs", "RCS", "amplitude"}, false);
    if (!layout.reason().empty()) {
      report.reason = layout.reason();
      return false;
    }
    const auto value = [](const PointField& field, const std::byte* point) {
      return field ? static_cast<float>(field.at(point)) : 0.0F;
    };
    for (std::size_t i = 0; i < layout.points(); ++i) {
      const std::byte* point = layout.point(i);
      add({value(x, point), value(y, point), value(z, point), value(range_rate, point), value(rcs, point)}, scan,
          report);
    }
    report.stamp = decoded->stamp;
    report.repaired = decoded->repaired;
    return true;
  }

  MessageDecoder<log::PointCloud> decode_;
};

// radar_msgs/RadarScan: polar. The amplitude (dB) stands for the radar cross-section, which the type does not have.
class PolarRadarDecoder final : public RadarDecoder {
 public:
  PolarRadarDecoder(const RigSensor& sensor, ros::Encoding encoding) : RadarDecoder(sensor), encoding_(encoding) {}

 private:
  bool read(std::span<const std::byte> message, RadarScan& scan, DecodeReport& report) override {
    if (const auto status = ros::decode_radar_scan(encoding_, message, polar_); !status) {
      report.reason = status.error().message;
      return false;
    }
    for (const log::RadarReturn& r : polar_.returns) {
      // Angles beyond a few turns are no angles; the series of sin and cos would not hold there.
      if (!(std::fabs(r.azimuth) < 100 && std::fabs(r.elevation) < 100)) {
        ++report.invalid_points;
        continue;
      }
      const double range = static_cast<double>(r.range), azimuth = static_cast<double>(r.azimuth),
                   elevation = static_cast<double>(r.elevation);
      const double along = range * kernels::cos(elevation);
      add({static_cast<float>(along * kernels::cos(azimuth)), static_cast<float>(along * kernels::sin(azimuth)),
           static_cast<float>(range * kernels::sin(elevation)), r.doppler_velocity, r.amplitude},
          scan, report);
    }
    report.stamp = polar_.stamp;
    return true;
  }

  ros::Encoding encoding_;
  log::RadarScan polar_;
};

}  // namespace

Result<std::unique_ptr<Decoder>> make_radar_decoder(const RigSensor& sensor, const LogChannel& channel) {
  if (sensor.kind != SensorKind::kRadar || sensor.capacity == 0) {
    return fail(Code::kConfiguration, "sensor " + sensor.name + " is no radar with a capacity");
  }
  if (holds_radar_scans(channel)) {
    return std::make_unique<PolarRadarDecoder>(sensor, *ros::encoding_of(channel.encoding));
  }
  TAKT_ASSIGN(auto read, point_cloud_decoder(channel));
  return std::make_unique<PointRadarDecoder>(sensor, std::move(read));
}

Result<std::unique_ptr<Decoder>> make_radar_decoder(const RigSensor& sensor) {
  return make_radar_decoder(sensor, LogChannel{});
}

}  // namespace takt::sensors
