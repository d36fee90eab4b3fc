// Turns one log message into the payload of a chunk (DESIGN section 4.1): the feeder's side of every sensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/time.h"

namespace takt::sensors {

// What became of one message. A frame that is not ok is a bad frame: dropped, counted, reported; the run goes on.
struct DecodeReport {
  bool ok = false;
  std::string reason;                // why not ok; empty otherwise
  SensorTime stamp;                  // stamp inside the message, when ok
  const char* repaired = nullptr;    // what was mended by rule, a text that stays valid; nullptr = nothing
  std::uint64_t payload_bytes = 0;   // used bytes of the payload, when ok
  std::uint32_t invalid_points = 0;  // NaN or infinite: removed
  std::uint32_t dropped_points = 0;  // over capacity: the first `capacity` in message order are kept
};

// Reuses its buffers: no allocation per message beyond the first few. One thread at a time. Equal messages give equal
// bytes (padding included), so payloads can be digested.
class Decoder {
 public:
  virtual ~Decoder() = default;
  [[nodiscard]] std::uint32_t schema() const { return schema_; }                      // of the payload: sensors::Schema
  [[nodiscard]] std::uint64_t payload_capacity() const { return payload_capacity_; }  // what decode() may need at most
  // `payload`: 64-byte aligned, at least payload_capacity() bytes.
  virtual DecodeReport decode(std::span<const std::byte> message, std::span<std::byte> payload) = 0;

 protected:
  Decoder(std::uint32_t schema, std::uint64_t payload_capacity)
      : schema_(schema), payload_capacity_(payload_capacity) {}

 private:
  std::uint32_t schema_;
  std::uint64_t payload_capacity_;
};

}  // namespace takt::sensors
