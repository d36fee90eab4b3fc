#include "tests/integration/rewritten_log.h"

#include <map>

#include "sensors/logs/encode.h"
#include "sensors/logs/mcap_writer.h"

namespace takt::test {

Status rewrite_log(const std::string& from, const std::string& to,
                   const std::function<void(const RewrittenMessage&, std::vector<RewrittenMessage>&)>& edit) {
  TAKT_ASSIGN(auto reader, sensors::open_log(from));
  TAKT_ASSIGN(auto writer, sensors::McapWriter::create(to));
  std::map<std::string, std::uint16_t> channels;
  std::map<std::string, std::uint32_t> sequence;
  for (const sensors::LogChannel& channel : reader->channels()) {
    TAKT_ASSIGN(const auto schema, sensors::log_schema(channel.schema));
    TAKT_ASSIGN(const std::uint16_t schema_id, writer.add_schema(schema));
    TAKT_ASSIGN(channels[channel.topic], writer.add_channel(channel.topic, channel.encoding, schema_id));
  }
  for (;;) {
    TAKT_ASSIGN(const auto message, reader->next());
    if (!message) break;
    RewrittenMessage original;
    original.topic = message->channel->topic;
    original.index = message->index;
    original.arrival_ns = message->arrival.ns;
    original.capture_ns = message->capture.ns;
    original.bytes.assign(reinterpret_cast<const char*>(message->bytes.data()), message->bytes.size());
    std::vector<RewrittenMessage> out;
    edit(original, out);
    for (const RewrittenMessage& m : out) {
      if (!channels.contains(m.topic)) {  // a new name for messages of the original's type
        TAKT_ASSIGN(const auto schema, sensors::log_schema(message->channel->schema));
        TAKT_ASSIGN(const std::uint16_t schema_id, writer.add_schema(schema));
        TAKT_ASSIGN(channels[m.topic], writer.add_channel(m.topic, message->channel->encoding, schema_id));
      }
      TAKT_RETURN_IF_ERROR(
          writer.write(channels[m.topic], {m.arrival_ns}, {m.capture_ns}, sequence[m.topic]++, m.bytes));
    }
  }
  return writer.finish();
}

}  // namespace takt::test
