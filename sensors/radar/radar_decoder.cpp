#include "sensors/radar/radar_decoder.h"

#include <cmath>
#include <cstring>

#include "sensors/logs/decode.h"
#include "sensors/logs/point_fields.h"
#include "sensors/messages/messages.h"

namespace takt::sensors {
namespace {

class RadarDecoder final : public Decoder {
 public:
  explicit RadarDecoder(const RigSensor& sensor) : capacity_(sensor.capacity) {}

  std::uint32_t schema() const override { return kRadarScanSchema; }
  std::uint64_t payload_capacity() const override { return RadarScan::bytes_for(capacity_); }

  DecodeReport decode(std::span<const std::byte> message, std::span<std::byte> payload) override {
    DecodeReport report;
    if (payload.size() < payload_capacity()) {
      report.reason = "the chunk is smaller than the payload";
      return report;
    }
    const auto decoded = decode_point_cloud(message);
    if (!decoded) {
      report.reason = decoded.error().message;
      return report;
    }
    PointLayout layout(*decoded);
    const PointField x = layout.find({"x"}, true), y = layout.find({"y"}, true), z = layout.find({"z"}, false);
    const PointField range_rate = layout.find({"range_rate"}, true), rcs = layout.find({"rcs"}, false);
    if (!layout.reason().empty()) {
      report.reason = layout.reason();
      return report;
    }

    auto& scan = *reinterpret_cast<RadarScan*>(payload.data());
    std::memset(payload.data(), 0, 64);
    scan.capacity = capacity_;
    const auto value = [](const PointField& field, const std::byte* point) {
      return field ? static_cast<float>(field.at(point)) : 0.0F;
    };
    std::uint32_t n = 0;
    for (std::size_t i = 0; i < layout.points(); ++i) {
      const std::byte* point = layout.point(i);
      const RadarReturn r{value(x, point), value(y, point), value(z, point), value(range_rate, point),
                          value(rcs, point)};
      if (!std::isfinite(r.x) || !std::isfinite(r.y) || !std::isfinite(r.z) || !std::isfinite(r.range_rate) ||
          !std::isfinite(r.rcs)) {
        ++report.invalid_points;
      } else if (n == capacity_) {
        ++report.dropped_points;
      } else {
        scan.returns()[n++] = r;
      }
    }
    scan.count = n;
    scan.dropped = report.dropped_points;
    // A chunk is reused and its bytes are digested.
    std::memset(static_cast<void*>(scan.returns() + n), 0, (capacity_ - n) * sizeof(RadarReturn));
    report.ok = true;
    report.stamp = decoded->stamp;
    report.payload_bytes = payload_capacity();
    return report;
  }

 private:
  std::uint32_t capacity_;
};

}  // namespace

Result<std::unique_ptr<Decoder>> make_radar_decoder(const RigSensor& sensor) {
  if (sensor.kind != SensorKind::kRadar || sensor.capacity == 0) {
    return fail(Code::kConfiguration, "sensor " + sensor.name + " is no radar with a capacity");
  }
  return std::make_unique<RadarDecoder>(sensor);
}

}  // namespace takt::sensors
