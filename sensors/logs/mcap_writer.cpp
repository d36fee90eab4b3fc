#include "sensors/logs/mcap_writer.h"

#include <lz4frame.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/file.h"
#include "sensors/logs/crc32.h"
#include "sensors/logs/mcap_format.h"

namespace takt::sensors {
namespace {

using mcap::Op;

std::uint32_t crc_of(std::uint32_t start, std::string_view bytes) {
  return crc32(start, std::as_bytes(std::span(bytes)));
}

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<std::uint32_t>(text.size()));
  out += text;
}
void put_map(std::string& out, const std::map<std::string, std::string>& map) {
  std::string entries;
  for (const auto& [key, value] : map) {
    put_text(entries, key);
    put_text(entries, value);
  }
  put_text(out, entries);
}
std::string record(Op op, std::string_view content) {
  std::string out;
  out.reserve(content.size() + mcap::kRecordHead);
  out.push_back(static_cast<char>(op));
  put(out, static_cast<std::uint64_t>(content.size()));
  out += content;
  return out;
}

const char* name_of(Compression compression) {
  switch (compression) {
    case Compression::kNone: return "";
    case Compression::kLz4: return "lz4";
    case Compression::kZstd: return "zstd";
  }
  return "";
}

// zstd at its default level 3, LZ4 fast: the slow levels cost much more than they save.
Status compress(Compression compression, std::string_view in, std::string& out) {
  std::size_t size = 0;
  if (compression == Compression::kZstd) {
    out.resize(ZSTD_compressBound(in.size()));
    size = ZSTD_compress(out.data(), out.size(), in.data(), in.size(), 3);
    if (ZSTD_isError(size) != 0) return fail(Code::kInternal, std::string("zstd: ") + ZSTD_getErrorName(size));
  } else {
    out.resize(LZ4F_compressFrameBound(in.size(), nullptr));
    size = LZ4F_compressFrame(out.data(), out.size(), in.data(), in.size(), nullptr);
    if (LZ4F_isError(size) != 0) return fail(Code::kInternal, std::string("lz4: ") + LZ4F_getErrorName(size));
  }
  out.resize(size);
  return {};
}

struct TimeRange {
  std::uint64_t first = 0, last = 0;
  bool any = false;
  void add(std::uint64_t time) {
    first = any ? std::min(first, time) : time;
    last = any ? std::max(last, time) : time;
    any = true;
  }
};

struct ChunkBuilder {
  std::string records;
  TimeRange times;
  std::map<std::uint16_t, std::vector<std::pair<std::uint64_t, std::uint64_t>>> index;  // channel: log time, offset
};

struct ChannelState {
  Compression compression = Compression::kNone;
  std::uint64_t messages = 0;
};

}  // namespace

struct McapWriter::State {
  std::string path;
  McapWriterOptions options;
  std::optional<AtomicFile> file;
  Status status;
  std::uint32_t data_crc = 0;
  std::vector<LogSchema> schemas;
  std::vector<ChannelState> channels;
  std::array<ChunkBuilder, 3> open_chunks;  // by Compression
  TimeRange times;
  std::uint64_t messages = 0;
  std::uint32_t chunks = 0, attachments = 0, metadata = 0;
  // Records of the summary section, one string per group.
  std::string schema_records, channel_records, chunk_index, attachment_index, metadata_index;

  Status keep(Status result) {
    if (!result) status = result;
    return result;
  }
  Status misuse(const std::string& what) { return keep(fail(Code::kInternal, path + ": " + what)); }

  Status write(std::string_view bytes) {
    data_crc = crc_of(data_crc, bytes);
    return keep(file->write(bytes));
  }

  Status flush(Compression compression) {
    ChunkBuilder& chunk = open_chunks[static_cast<std::size_t>(compression)];
    if (chunk.index.empty()) return {};
    std::string packed;
    if (compression != Compression::kNone) TAKT_RETURN_IF_ERROR(keep(compress(compression, chunk.records, packed)));
    // Less than 2 % saved: plain bytes are cheaper to read.
    const bool plain = compression == Compression::kNone || packed.size() * 100 > chunk.records.size() * 98;
    const std::string& body = plain ? chunk.records : packed;
    const char* name = plain ? "" : name_of(compression);

    std::string head;
    put(head, chunk.times.first);
    put(head, chunk.times.last);
    put(head, static_cast<std::uint64_t>(chunk.records.size()));
    put(head, crc_of(0, chunk.records));
    put_text(head, name);
    put(head, static_cast<std::uint64_t>(body.size()));
    std::string prefix;
    prefix.push_back(static_cast<char>(Op::kChunk));
    put(prefix, static_cast<std::uint64_t>(head.size() + body.size()));

    const std::uint64_t start = file->position();
    TAKT_RETURN_IF_ERROR(write(prefix + head));
    TAKT_RETURN_IF_ERROR(write(body));
    const std::uint64_t end = file->position();

    std::string index_records, index_offsets;
    for (const auto& [channel, entries] : chunk.index) {
      put(index_offsets, channel);
      put(index_offsets, end + index_records.size());
      std::string content;
      put(content, channel);
      put(content, static_cast<std::uint32_t>(entries.size() * 16));
      for (const auto& [time, offset] : entries) {
        put(content, time);
        put(content, offset);
      }
      index_records += record(Op::kMessageIndex, content);
    }
    TAKT_RETURN_IF_ERROR(write(index_records));

    std::string content;
    put(content, chunk.times.first);
    put(content, chunk.times.last);
    put(content, start);
    put(content, end - start);
    put_text(content, index_offsets);
    put(content, static_cast<std::uint64_t>(index_records.size()));
    put_text(content, name);
    put(content, static_cast<std::uint64_t>(body.size()));
    put(content, static_cast<std::uint64_t>(chunk.records.size()));
    chunk_index += record(Op::kChunkIndex, content);
    ++chunks;
    chunk.records.clear();
    chunk.index.clear();
    chunk.times = {};
    return {};
  }
};

McapWriter::McapWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
McapWriter::McapWriter(McapWriter&&) noexcept = default;
McapWriter& McapWriter::operator=(McapWriter&&) noexcept = default;
McapWriter::~McapWriter() = default;

Result<McapWriter> McapWriter::create(const std::string& path, const McapWriterOptions& options) {
  auto state = std::make_unique<State>();
  TAKT_ASSIGN(state->file, AtomicFile::create(path));
  state->path = path;
  state->options = options;
  std::string content;
  put_text(content, options.profile);
  put_text(content, options.library);
  TAKT_RETURN_IF_ERROR(state->write(std::string(mcap::kMagic) + record(Op::kHeader, content)));
  return McapWriter(std::move(state));
}

Result<std::uint16_t> McapWriter::add_schema(const LogSchema& schema) {
  State& s = *state_;
  TAKT_RETURN_IF_ERROR(s.status);
  for (std::size_t i = 0; i < s.schemas.size(); ++i) {
    if (s.schemas[i].name == schema.name && s.schemas[i].data == schema.data) return static_cast<std::uint16_t>(i + 1);
  }
  if (s.schemas.size() >= 0xffff) return fail(s.misuse("more than 65535 schemas").error());
  s.schemas.push_back(schema);
  const auto id = static_cast<std::uint16_t>(s.schemas.size());
  std::string content;
  put(content, id);
  put_text(content, schema.name);
  put_text(content, schema.encoding);
  put_text(content, schema.data);
  const std::string bytes = record(Op::kSchema, content);
  s.schema_records += bytes;
  TAKT_RETURN_IF_ERROR(s.write(bytes));
  return id;
}

Result<std::uint16_t> McapWriter::add_channel(const std::string& topic, const std::string& message_encoding,
                                              std::uint16_t schema,
                                              const std::map<std::string, std::string>& metadata) {
  return add_channel(topic, message_encoding, schema, metadata, state_->options.compression);
}

Result<std::uint16_t> McapWriter::add_channel(const std::string& topic, const std::string& message_encoding,
                                              std::uint16_t schema, const std::map<std::string, std::string>& metadata,
                                              Compression compression) {
  State& s = *state_;
  TAKT_RETURN_IF_ERROR(s.status);
  if (schema > s.schemas.size()) {
    return fail(s.misuse("channel " + topic + " names the unknown schema " + std::to_string(schema)).error());
  }
  if (s.channels.size() >= 0xffff) return fail(s.misuse("more than 65535 channels").error());
  s.channels.push_back({compression, 0});
  const auto id = static_cast<std::uint16_t>(s.channels.size());
  std::string content;
  put(content, id);
  put(content, schema);
  put_text(content, topic);
  put_text(content, message_encoding);
  put_map(content, metadata);
  const std::string bytes = record(Op::kChannel, content);
  s.channel_records += bytes;
  TAKT_RETURN_IF_ERROR(s.write(bytes));
  return id;
}

Status McapWriter::write(std::uint16_t channel, SensorTime log_time, SensorTime publish_time, std::uint32_t sequence,
                         std::string_view bytes) {
  State& s = *state_;
  TAKT_RETURN_IF_ERROR(s.status);
  if (channel == 0 || channel > s.channels.size()) return s.misuse("unknown channel " + std::to_string(channel));
  if (log_time.ns < 0 || publish_time.ns < 0) {
    return s.misuse("MCAP stores no times before zero: " + std::to_string(std::min(log_time.ns, publish_time.ns)) +
                    " ns");
  }
  ChannelState& state = s.channels[channel - 1u];
  ChunkBuilder& chunk = s.open_chunks[static_cast<std::size_t>(state.compression)];
  if (!chunk.records.empty() && chunk.records.size() + bytes.size() > s.options.chunk_bytes) {
    TAKT_RETURN_IF_ERROR(s.flush(state.compression));
  }
  const auto log_ns = static_cast<std::uint64_t>(log_time.ns);
  chunk.index[channel].emplace_back(log_ns, chunk.records.size());
  chunk.times.add(log_ns);
  chunk.records.push_back(static_cast<char>(Op::kMessage));
  put(chunk.records, static_cast<std::uint64_t>(mcap::kMessageHead + bytes.size()));
  put(chunk.records, channel);
  put(chunk.records, sequence);
  put(chunk.records, log_ns);
  put(chunk.records, static_cast<std::uint64_t>(publish_time.ns));
  chunk.records += bytes;
  s.times.add(log_ns);
  ++state.messages;
  ++s.messages;
  return {};
}

Status McapWriter::add_attachment(const std::string& name, const std::string& media_type, SensorTime log_time,
                                  std::string_view data) {
  State& s = *state_;
  TAKT_RETURN_IF_ERROR(s.status);
  if (log_time.ns < 0) return s.misuse("MCAP stores no times before zero");
  std::string content;
  put(content, static_cast<std::uint64_t>(log_time.ns));
  put(content, std::uint64_t{0});  // creation time not known
  put_text(content, name);
  put_text(content, media_type);
  put(content, static_cast<std::uint64_t>(data.size()));
  content += data;
  put(content, crc_of(0, content));
  const std::uint64_t start = s.file->position();
  TAKT_RETURN_IF_ERROR(s.write(record(Op::kAttachment, content)));
  std::string index;
  put(index, start);
  put(index, s.file->position() - start);
  put(index, static_cast<std::uint64_t>(log_time.ns));
  put(index, std::uint64_t{0});
  put(index, static_cast<std::uint64_t>(data.size()));
  put_text(index, name);
  put_text(index, media_type);
  s.attachment_index += record(Op::kAttachmentIndex, index);
  ++s.attachments;
  return {};
}

Status McapWriter::add_metadata(const std::string& name, const std::map<std::string, std::string>& entries) {
  State& s = *state_;
  TAKT_RETURN_IF_ERROR(s.status);
  std::string content;
  put_text(content, name);
  put_map(content, entries);
  const std::uint64_t start = s.file->position();
  TAKT_RETURN_IF_ERROR(s.write(record(Op::kMetadata, content)));
  std::string index;
  put(index, start);
  put(index, s.file->position() - start);
  put_text(index, name);
  s.metadata_index += record(Op::kMetadataIndex, index);
  ++s.metadata;
  return {};
}

Status McapWriter::finish() {
  State& s = *state_;
  TAKT_RETURN_IF_ERROR(s.status);
  for (const auto compression : {Compression::kNone, Compression::kLz4, Compression::kZstd}) {
    TAKT_RETURN_IF_ERROR(s.flush(compression));
  }
  std::string end;
  put(end, s.data_crc);
  TAKT_RETURN_IF_ERROR(s.write(record(Op::kDataEnd, end)));

  std::string statistics, counts;
  for (std::size_t i = 0; i < s.channels.size(); ++i) {
    put(counts, static_cast<std::uint16_t>(i + 1));
    put(counts, s.channels[i].messages);
  }
  put(statistics, s.messages);
  put(statistics, static_cast<std::uint16_t>(s.schemas.size()));
  put(statistics, static_cast<std::uint32_t>(s.channels.size()));
  put(statistics, s.attachments);
  put(statistics, s.metadata);
  put(statistics, s.chunks);
  put(statistics, s.times.first);
  put(statistics, s.times.last);
  put_text(statistics, counts);

  const std::uint64_t summary_start = s.file->position();
  std::string summary, offsets;
  const auto group = [&](Op op, const std::string& records) {
    if (records.empty()) return;
    std::string content;
    content.push_back(static_cast<char>(op));
    put(content, summary_start + summary.size());
    put(content, static_cast<std::uint64_t>(records.size()));
    offsets += record(Op::kSummaryOffset, content);
    summary += records;
  };
  group(Op::kSchema, s.schema_records);
  group(Op::kChannel, s.channel_records);
  group(Op::kStatistics, record(Op::kStatistics, statistics));
  group(Op::kChunkIndex, s.chunk_index);
  group(Op::kAttachmentIndex, s.attachment_index);
  group(Op::kMetadataIndex, s.metadata_index);

  const std::uint64_t offset_start = summary_start + summary.size();
  summary += offsets;
  summary.push_back(static_cast<char>(Op::kFooter));
  put(summary, std::uint64_t{20});
  put(summary, summary_start);
  put(summary, offset_start);
  put(summary, crc_of(0, summary));
  summary += mcap::kMagic;
  TAKT_RETURN_IF_ERROR(s.write(summary));
  TAKT_RETURN_IF_ERROR(s.keep(s.file->commit()));
  s.status = fail(Code::kInternal, s.path + ": is finished");
  return {};
}

}  // namespace takt::sensors
