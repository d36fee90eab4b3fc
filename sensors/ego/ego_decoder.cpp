#include "sensors/ego/ego_decoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "sensors/logs/channel_messages.h"
#include "sensors/messages/messages.h"

namespace takt::sensors {
namespace {

class EgoDecoder final : public Decoder {
 public:
  EgoDecoder(const RigSensor& sensor, MessageDecoder<log::EgoMotion> read)
      : Decoder(payload_schema(sensor.kind), sensors::payload_capacity(sensor)), read_(std::move(read)) {}

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
    EgoMotion motion;
    std::copy_n(decoded->pose.position.begin(), 3, motion.position);
    std::copy_n(decoded->pose.orientation.begin(), 4, motion.orientation);
    std::copy_n(decoded->velocity.begin(), 3, motion.velocity);
    std::copy_n(decoded->angular_velocity.begin(), 3, motion.angular_velocity);
    const auto finite = [](const auto& values) {
      return std::all_of(std::begin(values), std::end(values), [](double v) { return std::isfinite(v); });
    };
    if (!finite(motion.position) || !finite(motion.orientation) || !finite(motion.velocity) ||
        !finite(motion.angular_velocity)) {
      report.reason = "a value is not finite";
      return report;
    }
    double norm = 0;
    for (const double v : motion.orientation) norm += v * v;
    if (std::fabs(norm - 1) > 2e-3) {
      report.reason = "the orientation is no unit quaternion (squared norm " + std::to_string(norm) + ")";
      return report;
    }
    std::memcpy(payload.data(), &motion, sizeof motion);
    report.ok = true;
    report.stamp = decoded->stamp;
    report.payload_bytes = payload_capacity();
    return report;
  }

 private:
  MessageDecoder<log::EgoMotion> read_;
};

}  // namespace

Result<std::unique_ptr<Decoder>> make_ego_decoder(const RigSensor& sensor, const LogChannel& channel) {
  if (sensor.kind != SensorKind::kEgo) {
    return fail(Code::kConfiguration, "sensor " + sensor.name + " is no source of ego motion");
  }
  TAKT_ASSIGN(auto read, ego_motion_decoder(channel));
  return std::make_unique<EgoDecoder>(sensor, std::move(read));
}

Result<std::unique_ptr<Decoder>> make_ego_decoder(const RigSensor& sensor) {
  return make_ego_decoder(sensor, LogChannel{});
}

}  // namespace takt::sensors
