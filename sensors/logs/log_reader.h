// One interface for every recorded format (DESIGN sections 2 and 8).
//
// Order of messages: (arrival, topic, capture stamp, channel id, index in channel): total, the same on every machine.
// A message is never released before its last captured byte: arrival >= end of exposure or sweep; sets without arrival
// times get a declared delay, which `describe` prints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/time.h"

namespace takt::sensors {

struct LogChannel {
  std::uint32_t id = 0;
  std::string topic;
  std::string encoding;  // message encoding: "protobuf", "json", "cdr"
  std::string schema;    // "foxglove.CompressedImage"
  // Announced by the log where it is read by its index, counted where it was scanned.
  std::uint64_t messages = 0;
  // What a copy of the log must keep.
  std::string schema_encoding{};                  // "protobuf", "jsonschema", "ros2msg"; "" = none
  std::string schema_data{};                      // in that encoding
  std::map<std::string, std::string> metadata{};  // of the channel
};

// One message; bytes stay valid until the next call of the reader.
struct LogMessage {
  const LogChannel* channel = nullptr;
  std::uint64_t index = 0;  // within its channel, in log order
  SensorTime arrival;       // when the system could have had it
  SensorTime capture;       // its stamp reference
  std::span<const std::byte> bytes;
  std::uint32_t sequence = 0;  // as the recorder counted; 0 where the format has none
};

// A whole file inside a log.
struct LogAttachment {
  std::string name, media_type;
  SensorTime log_time;
  std::uint64_t bytes = 0;
};

// A named list of texts inside a log.
struct LogMetadata {
  std::string name;
  std::map<std::string, std::string> entries;
};

// Damage found while reading: it is counted and reported, reading goes on where that is possible.
struct LogProblem {
  std::string kind;          // "truncated Chunk", "bad CRC", "unknown compression", ...
  std::uint64_t offset = 0;  // byte offset in the file
  std::string detail;
};

// How the arrivals of one topic follow from its stamps, from the rig (sensors/rig/rig.h, release_rules).
struct ReleaseRule {
  std::string topic;
  Duration captured;                       // stamp reference -> last captured byte: nothing arrives earlier
  std::optional<Duration> declared_delay;  // the log has no arrival times: arrival = capture + this
};

class LogReader {
 public:
  virtual ~LogReader() = default;
  [[nodiscard]] virtual const std::vector<LogChannel>& channels() const = 0;
  // First and last arrival; nullopt for an empty log.
  [[nodiscard]] virtual std::optional<std::pair<SensorTime, SensorTime>> span() const = 0;
  // The next message in order, nullopt at the end. Only messages of `select`ed topics (all by default).
  virtual Result<std::optional<LogMessage>> next() = 0;
  virtual void select(const std::vector<std::string>& topics) = 0;
  virtual void rewind() = 0;
  [[nodiscard]] virtual const std::vector<LogProblem>& problems() const = 0;
  // What was done to arrivals by the rules given to open_log, in words, to be printed. No damage.
  [[nodiscard]] virtual std::vector<std::string> notes() const { return {}; }

  // Formats without them keep the defaults.
  [[nodiscard]] virtual std::vector<LogAttachment> attachments() const { return {}; }
  // Data of attachments()[index]. kInput: damaged, unreadable.
  virtual Result<std::string> read_attachment(std::size_t index) {
    return fail(Code::kInternal, "attachment " + std::to_string(index) + ": the log has none");
  }
  [[nodiscard]] virtual std::vector<LogMetadata> metadata() const { return {}; }
  // Facts about the file, in the order to print: ("format", "MCAP"), ("chunks", "12"), ...
  [[nodiscard]] virtual std::vector<std::pair<std::string, std::string>> properties() const { return {}; }
};

// Opens by magic bytes. kInput: missing, unreadable, unknown format, nothing recoverable. Rules change the arrivals
// before messages are ordered; topics without a rule keep the arrivals of the log.
Result<std::unique_ptr<LogReader>> open_log(const std::string& path, const std::vector<ReleaseRule>& rules = {});

}  // namespace takt::sensors
