// What the converters of data sets share: an MCAP drive log with takt's topics and schemas, topic by topic.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runtime/base/status.h"
#include "sensors/logs/encode.h"
#include "sensors/logs/mcap_writer.h"

namespace takt::tools {

class DriveWriter {
 public:
  // facts: what metadata takt.drive says beside "drive: recorded".
  static Result<DriveWriter> create(const std::string& path, const std::map<std::string, std::string>& facts) {
    TAKT_ASSIGN(sensors::McapWriter writer, sensors::McapWriter::create(path));
    std::map<std::string, std::string> all = facts;
    all["drive"] = "recorded";
    TAKT_RETURN_IF_ERROR(writer.add_metadata("takt.drive", all));
    return DriveWriter(std::move(writer));
  }
  // A message of this schema (sensors/logs/encode.h); the topic is declared by its first message.
  Status put(const std::string& topic, const char* schema, SensorTime arrival, SensorTime capture,
             const std::string& bytes) {
    auto found = channels_.find(topic);
    if (found == channels_.end()) {
      TAKT_ASSIGN(const sensors::LogSchema known, sensors::log_schema(schema));
      TAKT_ASSIGN(const std::uint16_t id, writer_.add_schema(known));
      TAKT_ASSIGN(const std::uint16_t channel, writer_.add_channel(topic, known.encoding, id));
      found = channels_.emplace(topic, Channel{channel, 0}).first;
    }
    return writer_.write(found->second.id, arrival, capture, found->second.count++, bytes);
  }
  Status finish() { return writer_.finish(); }

 private:
  struct Channel {
    std::uint16_t id = 0;
    std::uint32_t count = 0;
  };
  explicit DriveWriter(sensors::McapWriter writer) : writer_(std::move(writer)) {}
  sensors::McapWriter writer_;
  std::map<std::string, Channel> channels_;
};

}  // namespace takt::tools
