#include "sensors/logs/mcap_reader.h"

#include <fcntl.h>
#include <lz4frame.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include "sensors/logs/mcap_format.h"

namespace takt::sensors {
namespace {

using mcap::Op;
using Bytes = std::span<const std::byte>;
using Buffer = std::vector<std::byte>;

const char* name_of(Op op) {
  static constexpr const char* kNames[] = {"unknown record", "Header",        "Footer",          "Schema",
                                           "Channel",        "Message",       "Chunk",           "MessageIndex",
                                           "ChunkIndex",     "Attachment",    "AttachmentIndex", "Statistics",
                                           "Metadata",       "MetadataIndex", "SummaryOffset",   "DataEnd"};
  const auto i = static_cast<std::size_t>(op);
  return kNames[i < std::size(kNames) ? i : 0];
}

std::uint32_t crc_of(std::uint32_t start, Bytes bytes) {
  return static_cast<std::uint32_t>(::crc32_z(start, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// A file read by position; every read is checked.
class InputFile {
 public:
  InputFile() = default;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  Status open(const std::string& path) {
    path_ = path;
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) return fail(Code::kInput, path + ": cannot be opened: " + std::strerror(errno));
    struct stat info {};
    if (::fstat(fd_, &info) != 0) return fail(Code::kInput, path + ": cannot be read: " + std::strerror(errno));
    if (!S_ISREG(info.st_mode)) return fail(Code::kInput, path + ": is not a regular file");
    size_ = static_cast<std::uint64_t>(info.st_size);
    return {};
  }
  Status read(std::uint64_t offset, std::span<std::byte> out) const {
    while (!out.empty()) {
      const ssize_t n = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        return fail(Code::kInput, path_ + ": cannot be read at byte " + std::to_string(offset) + ": " +
                                      (n == 0 ? "the file became shorter" : std::strerror(errno)));
      }
      offset += static_cast<std::uint64_t>(n);
      out = out.subspan(static_cast<std::size_t>(n));
    }
    return {};
  }
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  std::string path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

// Takes values off the front; ok() turns false when the bytes do not suffice, and stays so.
class Cursor {
 public:
  explicit Cursor(Bytes bytes) : rest_(bytes) {}
  template <class T>
  T take() {
    T value{};
    const Bytes from = bytes(sizeof value);
    if (ok_) std::memcpy(&value, from.data(), sizeof value);
    return value;
  }
  Bytes bytes(std::uint64_t size) {
    if (!ok_ || size > rest_.size()) {
      ok_ = false;
      return {};
    }
    const Bytes front = rest_.first(static_cast<std::size_t>(size));
    rest_ = rest_.subspan(static_cast<std::size_t>(size));
    return front;
  }
  std::string_view text() {
    const Bytes b = bytes(take<std::uint32_t>());
    return {reinterpret_cast<const char*>(b.data()), b.size()};
  }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] Bytes rest() const { return rest_; }

 private:
  Bytes rest_;
  bool ok_ = true;
};

struct ChunkHead {
  std::uint64_t unpacked_bytes = 0;
  std::uint32_t crc = 0;
  std::string compression;
  std::uint64_t packed_offset = 0;  // in the file
  std::uint64_t packed_bytes = 0;   // present in the file
  bool cut = false;                 // fewer than the chunk announced
};

// Unpacks as far as the bytes allow; the buffer grows with what is really there, so that a lying size costs nothing.
// Returns what stopped it, "" when everything was unpacked.
std::string unpack(const std::string& compression, Bytes packed, std::uint64_t expected, Buffer& out) {
  out.clear();
  if (compression.empty()) {
    out.assign(packed.begin(), packed.end());
    return out.size() == expected ? "" : "size differs from the announced " + std::to_string(expected) + " bytes";
  }
  std::size_t filled = 0;
  const auto room = [&]() -> std::span<std::byte> {
    if (filled == out.size() && out.size() < expected) {
      const std::uint64_t next = std::max<std::uint64_t>({out.size() * 2, packed.size() * 4, 65536});
      out.resize(static_cast<std::size_t>(std::min(next, expected)));
    }
    return std::span(out).subspan(filled);
  };
  std::string error;
  const std::byte* in = packed.data();
  std::size_t left = packed.size();
  if (compression == "zstd") {
    static thread_local const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(),
                                                                                              ZSTD_freeDCtx);
    ZSTD_DCtx_reset(context.get(), ZSTD_reset_session_only);
    ZSTD_inBuffer input{in, left, 0};
    for (;;) {
      const auto space = room();
      ZSTD_outBuffer output{space.data(), space.size(), 0};
      const std::size_t before = input.pos;
      const std::size_t code = ZSTD_decompressStream(context.get(), &output, &input);
      filled += output.pos;
      if (ZSTD_isError(code) != 0) {
        error = std::string("zstd: ") + ZSTD_getErrorName(code);
        break;
      }
      if (input.pos == before && output.pos == 0) break;  // no progress: done, out of input or out of room
    }
    left = input.size - input.pos;
  } else {
    LZ4F_dctx* context = nullptr;
    LZ4F_createDecompressionContext(&context, LZ4F_VERSION);
    for (;;) {
      const auto space = room();
      std::size_t written = space.size(), consumed = left;
      const std::size_t code = LZ4F_decompress(context, space.data(), &written, in, &consumed, nullptr);
      if (LZ4F_isError(code) != 0) {
        error = std::string("lz4: ") + LZ4F_getErrorName(code);
        break;
      }
      filled += written;
      in += consumed;
      left -= consumed;
      if (written == 0 && consumed == 0) break;
    }
    LZ4F_freeDecompressionContext(context);
  }
  out.resize(filled);
  if (!error.empty()) return error;
  if (left != 0) return "unpacks to more than the announced " + std::to_string(expected) + " bytes";
  if (filled != expected) {
    return "unpacks to " + std::to_string(filled) + " instead of " + std::to_string(expected) + " bytes";
  }
  return "";
}

constexpr std::uint32_t kNoChunk = 0xffffffff;

// One message: where it lies and its place in the order.
struct Entry {
  std::int64_t arrival = 0;
  std::int64_t capture = 0;
  std::uint64_t offset = 0;  // of its data: in the unpacked chunk, or in the file for a message outside chunks
  std::uint32_t bytes = 0;
  std::uint32_t chunk = kNoChunk;
  std::uint32_t channel = 0;  // MCAP channel id while scanning, index into channels_ afterwards
  std::uint32_t index = 0;    // in its channel, file order
};
static_assert(sizeof(Entry) == 40);

struct LoadedChunk {
  Buffer bytes;
  std::uint64_t used = 0;  // value of the clock at the last use
};

class McapReader final : public LogReader {
 public:
  McapReader(std::string path, const McapReaderOptions& options) : path_(std::move(path)), options_(options) {}

  Status open(const std::vector<ReleaseRule>& rules) {
    TAKT_RETURN_IF_ERROR(file_.open(path_));
    Buffer magic(mcap::kMagic.size());
    if (file_.size() == 0) return fail(Code::kInput, path_ + ": is empty");
    if (file_.size() >= magic.size()) TAKT_RETURN_IF_ERROR(file_.read(0, magic));
    if (file_.size() < magic.size() || std::memcmp(magic.data(), mcap::kMagic.data(), magic.size()) != 0) {
      return fail(Code::kInput, path_ + ": is no MCAP file (first bytes are not 89 4D 43 41 50 30 0D 0A)");
    }
    TAKT_RETURN_IF_ERROR(read_summary());
    TAKT_RETURN_IF_ERROR(scan());
    resolve_channels();
    apply(rules);
    sort();
    if (!problems_.empty() && channels_.empty()) {
      return fail(Code::kInput, path_ + ": nothing can be recovered: " + problems_.front().kind + " at byte " +
                                    std::to_string(problems_.front().offset) + " (" + problems_.front().detail + ")");
    }
    return {};
  }

  const std::vector<LogChannel>& channels() const override { return channels_; }
  const std::vector<LogProblem>& problems() const override { return problems_; }
  std::vector<std::string> notes() const override { return notes_; }

  std::optional<std::pair<SensorTime, SensorTime>> span() const override {
    if (entries_.empty()) return std::nullopt;
    return std::pair(SensorTime{entries_.front().arrival}, SensorTime{entries_.back().arrival});
  }

  void select(const std::vector<std::string>& topics) override {
    selected_.assign(channels_.size(), topics.empty());
    for (std::size_t i = 0; i < channels_.size(); ++i) {
      if (std::find(topics.begin(), topics.end(), channels_[i].topic) != topics.end()) selected_[i] = true;
    }
    rewind();
  }

  void rewind() override {
    next_ = 0;
    indices_.assign(channels_.size(), 0);
    loaded_.clear();
    loaded_bytes_ = 0;
    pending_.assign(chunks_.size(), 0);
    for (const Entry& entry : entries_) {
      if (entry.chunk != kNoChunk && selected_[entry.channel]) ++pending_[entry.chunk];
    }
  }

  Result<std::optional<LogMessage>> next() override {
    release_finished();
    while (next_ < entries_.size() && !selected_[entries_[next_].channel]) ++next_;
    if (next_ == entries_.size()) return std::optional<LogMessage>();
    const Entry& entry = entries_[next_++];
    LogMessage message;
    message.channel = &channels_[entry.channel];
    message.index = indices_[entry.channel]++;
    message.arrival = {entry.arrival};
    message.capture = {entry.capture};
    if (entry.chunk == kNoChunk) {
      outside_.resize(entry.bytes);
      TAKT_RETURN_IF_ERROR(file_.read(entry.offset, outside_));
      message.bytes = outside_;
      return std::optional(message);
    }
    TAKT_ASSIGN(const Buffer* chunk, load(entry.chunk));
    if (entry.offset > chunk->size() || entry.bytes > chunk->size() - entry.offset) {
      return fail(Code::kInput, path_ + ": was changed while it was being read");
    }
    message.bytes = Bytes(*chunk).subspan(static_cast<std::size_t>(entry.offset), entry.bytes);
    if (--pending_[entry.chunk] == 0) finished_ = entry.chunk;
    return std::optional(message);
  }

 private:
  struct Schema {
    std::string name;
  };
  struct Channel {
    std::uint16_t schema = 0;
    std::string topic, encoding;
  };

  void problem(std::string kind, std::uint64_t offset, std::string detail) {
    // A hostile file may hold a problem per byte; a person reads the first ones.
    if (problems_.size() < kMaxProblems) {
      problems_.push_back({std::move(kind), offset, std::move(detail)});
    } else if (problems_.size() == kMaxProblems) {
      problems_.push_back({"more problems", offset, "not listed: the first " + std::to_string(kMaxProblems) + " are"});
    }
  }

  // Footer and summary, when they are whole: channels for chunks whose own copy is lost, and chunk positions to go on
  // from after a damaged record.
  Status read_summary() {
    const std::uint64_t tail = mcap::kFooterRecord + mcap::kMagic.size();
    if (file_.size() < mcap::kMagic.size() + tail) return {};
    Buffer end(tail);
    TAKT_RETURN_IF_ERROR(file_.read(file_.size() - tail, end));
    if (std::memcmp(end.data() + mcap::kFooterRecord, mcap::kMagic.data(), mcap::kMagic.size()) != 0) return {};
    Cursor footer(end);
    if (footer.take<std::uint8_t>() != static_cast<std::uint8_t>(Op::kFooter) || footer.take<std::uint64_t>() != 20) {
      return {};
    }
    const std::uint64_t footer_offset = file_.size() - tail;
    const auto start = footer.take<std::uint64_t>();
    footer.take<std::uint64_t>();
    const auto crc = footer.take<std::uint32_t>();
    complete_ = true;
    if (start == 0) return {};
    if (start > footer_offset || footer_offset - start > options_.max_record_bytes) {
      problem("bad Footer", footer_offset, "the summary lies outside the file");
      return {};
    }
    Buffer summary(static_cast<std::size_t>(footer_offset - start + mcap::kFooterRecord - 4));
    TAKT_RETURN_IF_ERROR(file_.read(start, summary));
    if (crc != 0 && crc != crc_of(0, summary)) {
      problem("bad CRC", start, "summary section; it is not used");
      return {};
    }
    Cursor cursor(Bytes(summary).first(static_cast<std::size_t>(footer_offset - start)));
    while (!cursor.rest().empty()) {
      const auto op = static_cast<Op>(cursor.take<std::uint8_t>());
      const Bytes content = cursor.bytes(cursor.take<std::uint64_t>());
      if (!cursor.ok()) {
        problem("bad summary", start, "a record exceeds the section");
        break;
      }
      Cursor record(content);
      if (op == Op::kSchema) schema(content, start);
      if (op == Op::kChannel) channel(content, start);
      if (op == Op::kStatistics) {
        const auto messages = record.take<std::uint64_t>();
        if (record.ok()) announced_ = messages;
      }
      if (op == Op::kChunkIndex) {
        record.take<std::uint64_t>();
        record.take<std::uint64_t>();
        const auto offset = record.take<std::uint64_t>();
        if (record.ok()) chunk_offsets_.insert(offset);
      }
    }
    return {};
  }

  // The data section from front to back.
  Status scan() {
    std::uint64_t at = mcap::kMagic.size();
    Buffer magic(at);
    TAKT_RETURN_IF_ERROR(file_.read(0, magic));
    std::uint32_t crc = crc_of(0, magic);
    Buffer content;
    while (at < file_.size()) {
      const std::uint64_t left = file_.size() - at;
      Buffer head(mcap::kRecordHead);
      if (left < head.size()) {
        problem("truncated file", at, std::to_string(left) + " bytes left, too few for a record");
        return {};
      }
      TAKT_RETURN_IF_ERROR(file_.read(at, head));
      Cursor cursor(head);
      const auto op = static_cast<Op>(cursor.take<std::uint8_t>());
      const auto length = cursor.take<std::uint64_t>();
      const std::uint64_t body = at + mcap::kRecordHead;
      const std::uint64_t present = std::min(length, left - mcap::kRecordHead);
      if (op == Op::kFooter) return finish_scan(at);  // without DataEnd, which some writers leave out
      if (static_cast<std::uint8_t>(op) == 0) {
        problem("damaged record", at, "opcode 0 does not exist");
        if (!resume(at)) return {};
        continue;
      }
      const bool cut = present < length;
      if (cut) {
        problem(std::string("truncated ") + name_of(op), at,
                std::to_string(length) + " bytes announced, " + std::to_string(present) + " left in the file");
      }
      if (present > options_.max_record_bytes) {
        problem("record too large", at,
                std::string(name_of(op)) + " of " + std::to_string(length) + " bytes; the limit is " +
                    std::to_string(options_.max_record_bytes));
      } else if (wanted(op)) {
        content.resize(static_cast<std::size_t>(present));
        TAKT_RETURN_IF_ERROR(file_.read(body, content));
        if (!cut || op == Op::kChunk) record(op, content, at, cut);
      } else if (!cut) {
        content.resize(static_cast<std::size_t>(present));
        TAKT_RETURN_IF_ERROR(file_.read(body, content));
      }
      if (cut) {
        if (!resume(at)) return {};
        continue;
      }
      if (op == Op::kDataEnd) {
        Cursor end(content);
        const auto stored = end.take<std::uint32_t>();
        if (problems_.empty() && stored != 0 && stored != crc) problem("bad CRC", at, "data section");
        return finish_scan(body + present);
      }
      crc = crc_of(crc_of(crc, head), content);
      at = body + present;
    }
    problem("truncated file", file_.size(), "no end of the data section");
    return {};
  }

  Status finish_scan(std::uint64_t at) {
    if (!complete_) {
      problem("truncated file", at, "footer or closing magic is missing; all messages before it are there");
    } else if (announced_ && *announced_ != entries_.size()) {
      problem("bad Statistics", at,
              std::to_string(*announced_) + " messages announced, " + std::to_string(entries_.size()) + " found");
    }
    return {};
  }

  // After a record whose length cannot be trusted: the next chunk that the file's index knows.
  bool resume(std::uint64_t& at) {
    const auto next = chunk_offsets_.upper_bound(at);
    if (next == chunk_offsets_.end() || *next >= file_.size()) return false;
    at = *next;
    return true;
  }

  static bool wanted(Op op) {
    return op == Op::kSchema || op == Op::kChannel || op == Op::kMessage || op == Op::kChunk || op == Op::kAttachment ||
           op == Op::kDataEnd;
  }

  void record(Op op, Bytes content, std::uint64_t at, bool cut) {
    switch (op) {
      case Op::kSchema: schema(content, at); break;
      case Op::kChannel: channel(content, at); break;
      case Op::kMessage: message(content, kNoChunk, at + mcap::kRecordHead, at); break;
      case Op::kChunk: chunk(content, at, cut); break;
      case Op::kAttachment: attachment(content, at); break;
      default: break;
    }
  }

  void schema(Bytes content, std::uint64_t at) {
    Cursor cursor(content);
    const auto id = cursor.take<std::uint16_t>();
    const auto name = cursor.text();
    if (!cursor.ok()) return problem("bad Schema", at, "the record is too short");
    if (id != 0) schemas_.try_emplace(id, Schema{std::string(name)});
  }

  void channel(Bytes content, std::uint64_t at) {
    Cursor cursor(content);
    const auto id = cursor.take<std::uint16_t>();
    Channel channel;
    channel.schema = cursor.take<std::uint16_t>();
    channel.topic = cursor.text();
    channel.encoding = cursor.text();
    if (!cursor.ok()) return problem("bad Channel", at, "the record is too short");
    const auto [known, added] = declared_.try_emplace(id, channel);
    if (!added && known->second.topic != channel.topic) {
      problem("bad Channel", at,
              "channel " + std::to_string(id) + " was " + known->second.topic + " and is now " + channel.topic);
    }
  }

  void message(Bytes content, std::uint32_t chunk, std::uint64_t offset, std::uint64_t at) {
    Cursor cursor(content);
    Entry entry;
    entry.channel = cursor.take<std::uint16_t>();
    cursor.take<std::uint32_t>();
    const auto log_time = cursor.take<std::uint64_t>();
    const auto publish_time = cursor.take<std::uint64_t>();
    if (!cursor.ok()) return problem("bad Message", at, "the record is too short");
    if (log_time > INT64_MAX || publish_time > INT64_MAX) {
      return problem("bad Message", at, "time beyond the year 2262");
    }
    if (cursor.rest().size() > UINT32_MAX) return problem("bad Message", at, "larger than 4 GiB");
    entry.arrival = static_cast<std::int64_t>(log_time);
    entry.capture = static_cast<std::int64_t>(publish_time);
    entry.offset = offset + mcap::kMessageHead;
    entry.bytes = static_cast<std::uint32_t>(cursor.rest().size());
    entry.chunk = chunk;
    entry.index = found_[entry.channel]++;
    entries_.push_back(entry);
  }

  void chunk(Bytes content, std::uint64_t at, bool cut) {
    Cursor cursor(content);
    ChunkHead head;
    cursor.take<std::uint64_t>();
    cursor.take<std::uint64_t>();
    head.unpacked_bytes = cursor.take<std::uint64_t>();
    head.crc = cursor.take<std::uint32_t>();
    head.compression = cursor.text();
    const auto announced = cursor.take<std::uint64_t>();
    if (!cursor.ok() || (!cut && announced > cursor.rest().size())) {
      if (!cut) problem("bad Chunk", at, "the record is too short");
      return;
    }
    const Bytes packed =
        cursor.rest().first(static_cast<std::size_t>(std::min<std::uint64_t>(announced, cursor.rest().size())));
    head.packed_offset = at + mcap::kRecordHead + static_cast<std::uint64_t>(packed.data() - content.data());
    head.packed_bytes = packed.size();
    head.cut = packed.size() < announced;
    if (!head.compression.empty() && head.compression != "zstd" && head.compression != "lz4") {
      return problem("unknown compression", at,
                     "'" + head.compression.substr(0, 32) + "'; known: none, lz4, zstd; the chunk is left out");
    }
    if (head.unpacked_bytes > options_.max_record_bytes) {
      return problem("chunk too large", at,
                     std::to_string(head.unpacked_bytes) + " bytes announced; the limit is " +
                         std::to_string(options_.max_record_bytes) + "; the chunk is left out");
    }
    const std::string error = unpack(head.compression, packed, head.unpacked_bytes, scratch_);
    if (!head.cut) {
      if (!error.empty()) return problem("bad Chunk", at, error + "; the chunk is left out");
      if (head.crc != 0 && head.crc != crc_of(0, scratch_)) {
        return problem("bad CRC", at, "chunk of " + std::to_string(scratch_.size()) + " bytes; it is left out");
      }
    }
    const std::size_t before = entries_.size();
    const std::size_t this_problem = problems_.size() - 1;  // "truncated Chunk", when cut
    chunks_.push_back(head);
    records_of_chunk(scratch_, static_cast<std::uint32_t>(chunks_.size() - 1), at, head.cut);
    if (head.cut) {
      problems_[this_problem].detail += "; " + std::to_string(entries_.size() - before) + " messages of it recovered";
    }
  }

  void records_of_chunk(Bytes bytes, std::uint32_t chunk, std::uint64_t at, bool cut) {
    Cursor cursor(bytes);
    while (!cursor.rest().empty()) {
      const auto op = static_cast<Op>(cursor.take<std::uint8_t>());
      const auto length = cursor.take<std::uint64_t>();
      const std::uint64_t offset = bytes.size() - cursor.rest().size();
      const Bytes content = cursor.bytes(length);
      if (!cursor.ok()) {
        if (!cut) problem("bad Chunk", at, "its record at byte " + std::to_string(offset) + " exceeds the chunk");
        return;
      }
      if (op == Op::kSchema) schema(content, at);
      if (op == Op::kChannel) channel(content, at);
      if (op == Op::kMessage) message(content, chunk, offset, at);
    }
  }

  void attachment(Bytes content, std::uint64_t at) {
    if (content.size() < 4) return problem("bad Attachment", at, "the record is too short");
    Cursor crc(content.last(4));
    const auto stored = crc.take<std::uint32_t>();
    if (stored != 0 && stored != crc_of(0, content.first(content.size() - 4))) problem("bad CRC", at, "attachment");
  }

  // From MCAP ids to the listed channels; messages whose channel nobody declared cannot be named and are left out.
  void resolve_channels() {
    std::map<std::uint32_t, std::uint32_t> place;
    for (const auto& [id, declared] : declared_) {
      place[id] = static_cast<std::uint32_t>(channels_.size());
      const auto schema = schemas_.find(declared.schema);
      channels_.push_back({id, declared.topic, declared.encoding, schema == schemas_.end() ? "" : schema->second.name,
                           found_.contains(id) ? found_.at(id) : 0});
    }
    std::map<std::uint32_t, std::uint64_t> lost;
    std::erase_if(entries_, [&](Entry& entry) {
      const auto known = place.find(entry.channel);
      if (known == place.end()) {
        ++lost[entry.channel];
        return true;
      }
      entry.channel = known->second;
      return false;
    });
    for (const auto& [id, count] : lost) {
      problem(
          "unknown channel", 0,
          std::to_string(count) + " messages on channel " + std::to_string(id) + ", which is not declared; left out");
    }
    selected_.assign(channels_.size(), true);
  }

  static std::int64_t later(std::int64_t ns, Duration delay) {  // stamps come from the file: no overflow
    std::int64_t sum = 0;
    return __builtin_add_overflow(ns, delay.ns, &sum) ? INT64_MAX : sum;
  }

  void apply(const std::vector<ReleaseRule>& rules) {
    for (const ReleaseRule& rule : rules) {
      std::uint64_t moved = 0;
      for (Entry& entry : entries_) {
        if (channels_[entry.channel].topic != rule.topic) continue;
        if (rule.declared_delay) {
          entry.arrival = later(entry.capture, *rule.declared_delay);
        } else if (entry.arrival < later(entry.capture, rule.captured)) {
          entry.arrival = later(entry.capture, rule.captured);
          ++moved;
        }
      }
      if (rule.declared_delay) {
        notes_.push_back(rule.topic + ": the log has no arrival times; arrival = stamp + declared " +
                         std::to_string(rule.declared_delay->ns) + " ns");
      }
      if (moved != 0) {
        notes_.push_back(rule.topic + ": " + std::to_string(moved) +
                         " messages arrived before their last captured byte; released then, " +
                         std::to_string(rule.captured.ns) + " ns after their stamp");
      }
    }
  }

  void sort() {
    std::vector<std::string> topics;
    for (const auto& channel : channels_) topics.push_back(channel.topic);
    std::sort(topics.begin(), topics.end());
    std::vector<std::size_t> rank;
    for (const auto& channel : channels_) {
      rank.push_back(
          static_cast<std::size_t>(std::lower_bound(topics.begin(), topics.end(), channel.topic) - topics.begin()));
    }
    // channels_ is in ascending order of ids, so comparing places compares ids.
    std::sort(entries_.begin(), entries_.end(), [&](const Entry& a, const Entry& b) {
      return std::tuple(a.arrival, rank[a.channel], a.capture, a.channel, a.index) <
             std::tuple(b.arrival, rank[b.channel], b.capture, b.channel, b.index);
    });
    rewind();
  }

  Result<const Buffer*> load(std::uint32_t index) {
    LoadedChunk& slot = loaded_[index];
    slot.used = ++clock_;
    if (!slot.bytes.empty()) return &slot.bytes;
    const ChunkHead& head = chunks_[index];
    Buffer packed(static_cast<std::size_t>(head.packed_bytes));
    if (auto status = file_.read(head.packed_offset, packed); !status) {
      loaded_.erase(index);
      return fail(std::move(status).error());
    }
    unpack(head.compression, packed, head.unpacked_bytes, slot.bytes);
    loaded_bytes_ += slot.bytes.size();
    while (loaded_bytes_ > options_.cache_bytes && loaded_.size() > 1) {
      const auto oldest = std::min_element(loaded_.begin(), loaded_.end(),
                                           [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
      loaded_bytes_ -= oldest->second.bytes.size();
      loaded_.erase(oldest);
    }
    return &loaded_.at(index).bytes;
  }

  // The last message of a chunk was delivered before: its bytes are no longer promised.
  void release_finished() {
    if (finished_ == kNoChunk) return;
    if (const auto chunk = loaded_.find(finished_); chunk != loaded_.end()) {
      loaded_bytes_ -= chunk->second.bytes.size();
      loaded_.erase(chunk);
    }
    finished_ = kNoChunk;
  }

  static constexpr std::size_t kMaxProblems = 1000;

  const std::string path_;
  const McapReaderOptions options_;
  InputFile file_;
  std::vector<LogChannel> channels_;
  std::vector<LogProblem> problems_;
  std::vector<std::string> notes_;
  // found while scanning
  std::map<std::uint32_t, Schema> schemas_;
  std::map<std::uint32_t, Channel> declared_;
  std::map<std::uint32_t, std::uint32_t> found_;  // messages per MCAP channel id
  std::vector<ChunkHead> chunks_;
  std::set<std::uint64_t> chunk_offsets_;  // from the summary
  std::optional<std::uint64_t> announced_;
  bool complete_ = false;  // footer and closing magic are there
  Buffer scratch_;
  // reading
  std::vector<Entry> entries_;
  std::vector<bool> selected_;          // by channel
  std::vector<std::uint64_t> indices_;  // next index, by channel
  std::vector<std::uint64_t> pending_;  // messages still to come, by chunk
  std::size_t next_ = 0;
  std::map<std::uint32_t, LoadedChunk> loaded_;
  std::uint64_t loaded_bytes_ = 0;
  std::uint64_t clock_ = 0;
  std::uint32_t finished_ = kNoChunk;
  Buffer outside_;
};

}  // namespace

Result<std::unique_ptr<LogReader>> open_mcap(const std::string& path, const std::vector<ReleaseRule>& rules,
                                             const McapReaderOptions& options) {
  auto reader = std::make_unique<McapReader>(path, options);
  TAKT_RETURN_IF_ERROR(reader->open(rules));
  return std::unique_ptr<LogReader>(std::move(reader));
}

}  // namespace takt::sensors
