// Writes MCAP files (https://mcap.dev/spec): chunked, compressed, indexed, with CRCs and statistics.
// docs/log_format.md says which topics and schemas files of profile "takt" carry.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/base/time.h"

namespace takt::sensors {

enum class Compression { kNone, kLz4, kZstd };

// What a viewer needs to decode the messages of a channel without knowing takt.
struct LogSchema {
  std::string name;      // "foxglove.PointCloud"
  std::string encoding;  // "protobuf"
  std::string data;      // binary FileDescriptorSet with imports
};

struct McapWriterOptions {
  Compression compression = Compression::kZstd;  // of channels that do not say otherwise
  std::uint64_t chunk_bytes = 1 << 20;           // uncompressed; a larger message gets a chunk of its own
  std::string profile = "takt";
  std::string library = "takt";
};

// Nothing appears under `path` before finish() succeeded (AtomicFile): no half-written file is left behind. After a
// failed call every further call fails with the same error. Errors: kEnvironment (disk full, rights) and kInternal
// (unknown channel or schema id, negative time: mistakes of the caller). One thread at a time.
class McapWriter {
 public:
  static Result<McapWriter> create(const std::string& path, const McapWriterOptions& options = {});
  McapWriter(McapWriter&&) noexcept;
  McapWriter& operator=(McapWriter&&) noexcept;
  ~McapWriter();

  // Equal schemas share one id. Ids start at 1; 0 means "no schema".
  Result<std::uint16_t> add_schema(const LogSchema& schema);
  // message_encoding: "protobuf", "json". Channels of different compression fill different chunks, so that pictures
  // (which do not compress) and clouds (which do) may be mixed freely.
  Result<std::uint16_t> add_channel(const std::string& topic, const std::string& message_encoding, std::uint16_t schema,
                                    const std::map<std::string, std::string>& metadata = {});
  Result<std::uint16_t> add_channel(const std::string& topic, const std::string& message_encoding, std::uint16_t schema,
                                    const std::map<std::string, std::string>& metadata, Compression compression);
  // Profile "takt": log_time = arrival, publish_time = capture stamp (stamp reference of the rig). Both >= 0.
  // Messages may come in any order; readers sort.
  Status write(std::uint16_t channel, SensorTime log_time, SensorTime publish_time, std::uint32_t sequence,
               std::string_view bytes);
  // A whole file inside the log: a configuration, a schedule, a report.
  Status add_attachment(const std::string& name, const std::string& media_type, SensorTime log_time,
                        std::string_view data);
  Status add_metadata(const std::string& name, const std::map<std::string, std::string>& entries);
  // Writes index and statistics, flushes to disk, renames. Required; the destructor discards an unfinished file.
  Status finish();

 private:
  struct State;
  explicit McapWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace takt::sensors
