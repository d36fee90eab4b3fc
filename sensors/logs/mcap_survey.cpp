#include "sensors/logs/mcap_survey.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "sensors/logs/ros_messages.h"

namespace takt::sensors::mcap {
namespace {

constexpr std::uint64_t kRunBytes = std::uint64_t{1} << 20;  // messages outside chunks are read in runs of this size

const char* name_of(Op op) {
  static constexpr const char* kNames[] = {"unknown record", "Header",        "Footer",          "Schema",
                                           "Channel",        "Message",       "Chunk",           "MessageIndex",
                                           "ChunkIndex",     "Attachment",    "AttachmentIndex", "Statistics",
                                           "Metadata",       "MetadataIndex", "SummaryOffset",   "DataEnd"};
  const auto i = static_cast<std::size_t>(op);
  return kNames[i < std::size(kNames) ? i : 0];
}

std::map<std::string, std::string> take_map(ByteCursor& cursor) {
  std::map<std::string, std::string> map;
  ByteCursor entries(cursor.bytes(cursor.take<std::uint32_t>()));
  while (entries.ok() && !entries.rest().empty()) {
    const auto key = entries.text();
    const auto value = entries.text();
    if (entries.ok()) map.emplace(key, value);
  }
  return map;
}

struct ChunkIndex {
  std::uint64_t first_time = 0, last_time = 0, offset = 0, chunk_bytes = 0, index_bytes = 0;
  std::uint64_t packed_bytes = 0, unpacked_bytes = 0;
  std::string compression;
  std::vector<std::uint16_t> channels;
  [[nodiscard]] std::uint64_t end() const { return offset + chunk_bytes + index_bytes; }
};

struct Statistics {
  std::uint64_t messages = 0, first_time = 0, last_time = 0;
  std::uint32_t chunks = 0;
  std::map<std::uint16_t, std::uint64_t> by_channel;
};

class Surveyor {
 public:
  Surveyor(const InputFile& file, const ArrivalRules& rules, const SurveyOptions& options)
      : file_(file), rules_(rules), options_(options) {}

  Result<Survey> run() {
    TAKT_RETURN_IF_ERROR(check_magic());
    TAKT_RETURN_IF_ERROR(read_summary());
    const Survey before = out_;
    if (options_.use_index && rules_.empty()) {
      TAKT_ASSIGN(const bool trusted, index_adds_up());
      if (trusted) {
        skip_chunks_ = true;
        TAKT_RETURN_IF_ERROR(walk());
        if (out_.problems.size() == before.problems.size()) {
          take_statistics();
          return std::move(out_);
        }
        skip_chunks_ = false;
        start_again(before);
      }
    }
    TAKT_RETURN_IF_ERROR(walk());
    if (late_channels()) {
      // Messages came before the channel that names them: once more, with all channels known.
      Survey known = before;
      known.schemas = std::move(out_.schemas);
      known.channels = std::move(out_.channels);
      start_again(known);
      TAKT_RETURN_IF_ERROR(walk());
    }
    finish_counts();
    return std::move(out_);
  }

 private:
  struct Tally {
    std::uint64_t messages = 0;
    std::int64_t first = INT64_MAX, last = INT64_MIN;
    std::size_t chunk = SIZE_MAX;  // the last one that lists the channel
    bool declared = false;         // at the first message
    std::vector<std::size_t> rules;
    std::optional<ros::Encoding> stamped;  // its messages hold their capture stamp
  };

  void problem(std::string kind, std::uint64_t offset, std::string detail) {
    add_problem(out_.problems, std::move(kind), offset, std::move(detail));
  }

  void start_again(const Survey& from) {
    out_ = from;
    tally_.clear();
    last_tally_ = nullptr;
    messages_ = 0;
  }

  Status check_magic() {
    std::array<std::byte, 8> magic{};
    TAKT_RETURN_IF_ERROR(file_.read(0, magic));
    if (std::memcmp(magic.data(), kMagic.data(), magic.size()) != 0) {
      problem("bad magic", 0, "the first bytes are not quite those of MCAP");
    }
    return {};
  }

  // Footer and summary, when they are whole.
  Status read_summary() {
    const std::uint64_t tail = kFooterRecord + kMagic.size();
    if (file_.size() < kMagic.size() + tail) return {};
    std::vector<std::byte> end(tail);
    TAKT_RETURN_IF_ERROR(file_.read(file_.size() - tail, end));
    if (std::memcmp(end.data() + kFooterRecord, kMagic.data(), kMagic.size()) != 0) return {};
    ByteCursor footer(end);
    if (footer.take<std::uint8_t>() != static_cast<std::uint8_t>(Op::kFooter) || footer.take<std::uint64_t>() != 20) {
      return {};
    }
    const std::uint64_t footer_offset = file_.size() - tail;
    const auto start = footer.take<std::uint64_t>();
    footer.take<std::uint64_t>();
    const auto crc = footer.take<std::uint32_t>();
    complete_ = true;
    if (start == 0) return {};
    if (start > footer_offset || start < kMagic.size() || footer_offset - start > options_.max_record_bytes) {
      problem("bad Footer", footer_offset, "the summary lies outside the file");
      return {};
    }
    std::vector<std::byte> summary(static_cast<std::size_t>(footer_offset - start + kFooterRecord - 4));
    TAKT_RETURN_IF_ERROR(file_.read(start, summary));
    if (crc != 0 && crc != crc_of(0, summary)) {
      problem("bad CRC", start, "summary section; it is not used");
      return {};
    }
    summary_start_ = start;
    summary_crc_ = crc;
    std::uint64_t stopped = 0;
    const bool whole = for_each_record(Bytes(summary).first(static_cast<std::size_t>(footer_offset - start)), stopped,
                                       [&](Op op, Bytes content, std::uint64_t offset) {
                                         const std::uint64_t at = start + offset - kRecordHead;
                                         if (op == Op::kSchema) schema(content, at);
                                         if (op == Op::kChannel) channel(content, at);
                                         if (op == Op::kStatistics) statistics(content);
                                         if (op == Op::kChunkIndex) chunk_index(content, at);
                                       });
    if (!whole) problem("bad summary", start, "a record exceeds the section");
    return {};
  }

  void statistics(Bytes content) {
    ByteCursor cursor(content);
    Statistics found;
    found.messages = cursor.take<std::uint64_t>();
    cursor.take<std::uint16_t>();
    cursor.take<std::uint32_t>();
    cursor.take<std::uint32_t>();
    cursor.take<std::uint32_t>();
    found.chunks = cursor.take<std::uint32_t>();
    found.first_time = cursor.take<std::uint64_t>();
    found.last_time = cursor.take<std::uint64_t>();
    ByteCursor counts(cursor.bytes(cursor.take<std::uint32_t>()));
    while (counts.ok() && !counts.rest().empty()) {
      const auto id = counts.take<std::uint16_t>();
      const auto count = counts.take<std::uint64_t>();
      if (counts.ok()) found.by_channel[id] = count;
    }
    if (cursor.ok()) statistics_ = std::move(found);
  }

  void chunk_index(Bytes content, std::uint64_t at) {
    ByteCursor cursor(content);
    ChunkIndex found;
    found.first_time = cursor.take<std::uint64_t>();
    found.last_time = cursor.take<std::uint64_t>();
    found.offset = cursor.take<std::uint64_t>();
    found.chunk_bytes = cursor.take<std::uint64_t>();
    ByteCursor offsets(cursor.bytes(cursor.take<std::uint32_t>()));
    while (offsets.ok() && !offsets.rest().empty()) {
      found.channels.push_back(offsets.take<std::uint16_t>());
      offsets.take<std::uint64_t>();
    }
    found.index_bytes = cursor.take<std::uint64_t>();
    found.compression = cursor.text();
    found.packed_bytes = cursor.take<std::uint64_t>();
    found.unpacked_bytes = cursor.take<std::uint64_t>();
    const std::uint64_t room = summary_start_;
    if (!cursor.ok() || !offsets.ok() || found.offset < kMagic.size() || found.offset >= room ||
        found.chunk_bytes > room - found.offset || found.chunk_bytes < kRecordHead ||
        found.index_bytes > room - found.offset - found.chunk_bytes) {
      problem("bad ChunkIndex", at, "it names no place of the data section");
      return;
    }
    index_.emplace(found.offset, std::move(found));
  }

  // Whether chunks may be skipped. Contradictions are left to the scan, which says what is wrong.
  Result<bool> index_adds_up() {
    if (!statistics_ || !out_.problems.empty() || statistics_->chunks != index_.size()) return false;
    std::uint64_t sum = 0;
    for (const auto& [id, count] : statistics_->by_channel) {
      if (!out_.channels.contains(id) || count > statistics_->messages) return false;
      sum += count;
    }
    if (sum != statistics_->messages) return false;
    if (statistics_->messages != 0 &&
        (statistics_->first_time > statistics_->last_time || statistics_->last_time > INT64_MAX)) {
      return false;
    }
    std::uint64_t end = 0;
    for (const auto& [offset, chunk] : index_) {
      if (offset < end || chunk.first_time > chunk.last_time || chunk.last_time > INT64_MAX) return false;
      if (chunk.unpacked_bytes > options_.max_record_bytes || chunk.chunk_bytes > options_.max_record_bytes)
        return false;
      end = chunk.end();
      for (const std::uint16_t id : chunk.channels) {
        if (!out_.channels.contains(id)) return false;
      }
      if (summary_crc_ == 0) {
        TAKT_ASSIGN(const bool agrees, head_agrees(chunk));
        if (!agrees) return false;
      }
    }
    return true;
  }

  Result<bool> head_agrees(const ChunkIndex& chunk) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(std::min<std::uint64_t>(chunk.chunk_bytes, 96)));
    TAKT_RETURN_IF_ERROR(file_.read(chunk.offset, bytes));
    ByteCursor cursor(bytes);
    ChunkHead head;
    return static_cast<Op>(cursor.take<std::uint8_t>()) == Op::kChunk &&
           cursor.take<std::uint64_t>() == chunk.chunk_bytes - kRecordHead && parse_chunk_head(cursor.rest(), head) &&
           agree(head, chunk);
  }
  static bool agree(const ChunkHead& head, const ChunkIndex& chunk) {
    return head.first_time == chunk.first_time && head.last_time == chunk.last_time &&
           head.compression == chunk.compression && head.packed_bytes == chunk.packed_bytes &&
           head.unpacked_bytes == chunk.unpacked_bytes;
  }

  void take_statistics() {
    out_.by_index = true;
    for (const auto& [id, count] : statistics_->by_channel) out_.channels.at(id).messages = count;
    if (statistics_->messages != 0) {
      out_.span = {static_cast<std::int64_t>(statistics_->first_time),
                   static_cast<std::int64_t>(statistics_->last_time)};
    }
  }

  // The data section from front to back; indexed chunks are passed over where that is allowed.
  Status walk() {
    std::uint64_t at = kMagic.size();
    std::array<std::byte, 8> magic{};
    TAKT_RETURN_IF_ERROR(file_.read(0, magic));
    std::uint32_t crc = crc_of(0, magic);
    std::array<std::byte, kRecordHead> head{};
    while (at < file_.size()) {
      if (skip_chunks_) {
        const auto known = index_.find(at);
        if (known != index_.end()) {
          const ChunkIndex& chunk = known->second;
          out_.chunks.push_back({at, chunk.chunk_bytes, static_cast<std::int64_t>(chunk.first_time),
                                 chunk.unpacked_bytes, chunk.channels, false, false});
          at = chunk.end();
          continue;
        }
        if (!out_.problems.empty()) return {};  // the index is not to be trusted: no need to go on
      }
      const std::uint64_t left = file_.size() - at;
      if (left < head.size()) {
        problem("truncated file", at, std::to_string(left) + " bytes left, too few for a record");
        return {};
      }
      TAKT_RETURN_IF_ERROR(file_.read(at, head));
      ByteCursor cursor(head);
      const auto op = static_cast<Op>(cursor.take<std::uint8_t>());
      const auto length = cursor.take<std::uint64_t>();
      const std::uint64_t body = at + kRecordHead;
      const std::uint64_t present = std::min(length, left - kRecordHead);
      const bool footer_here = !complete_ || at == file_.size() - kFooterRecord - kMagic.size();
      if (op == Op::kFooter && footer_here) {  // without DataEnd, which some writers leave out
        finish_walk(at);
        return {};
      }
      if (static_cast<std::uint8_t>(op) == 0 || op == Op::kFooter) {
        problem("damaged record", at, op == Op::kFooter ? "a footer before the end" : "opcode 0 does not exist");
        TAKT_ASSIGN(const bool more, resume(at));
        if (!more) return {};
        continue;
      }
      const bool cut = present < length;
      if (cut) {
        problem(std::string("truncated ") + name_of(op), at,
                std::to_string(length) + " bytes announced, " + std::to_string(present) + " left in the file");
      } else {
        TAKT_ASSIGN(const std::uint64_t inside, indexed_chunk_after(at));
        if (inside < body + present) {
          problem(std::string("damaged ") + name_of(op), at,
                  "its " + std::to_string(length) + " bytes would cover the chunk at byte " + std::to_string(inside));
          at = inside;
          continue;
        }
      }
      if (present > options_.max_record_bytes) {
        problem("record too large", at,
                std::string(name_of(op)) + " of " + std::to_string(length) + " bytes; the limit is " +
                    std::to_string(options_.max_record_bytes));
      } else if (!skip_chunks_ || wanted(op)) {
        const auto content = content_.resize(static_cast<std::size_t>(present));
        TAKT_RETURN_IF_ERROR(file_.read(body, content));
        if (!cut && !consistent(op, content, at, length)) {
          problem(std::string("damaged ") + name_of(op), at, "its length contradicts its content");
          TAKT_ASSIGN(const bool more, resume(at));
          if (!more) return {};
          continue;
        }
        if (cut && op == Op::kChunk && consistent(op, content, at, length)) {
          record(op, content, at, true);  // the file ends inside this chunk: nothing can follow
          return {};
        }
        if (!cut) record(op, content, at, false);
      } else if (op == Op::kAttachment) {
        TAKT_RETURN_IF_ERROR(attachment_head(body, present, at));
      }
      if (cut) {
        TAKT_ASSIGN(const bool more, resume(at));
        if (!more) return {};
        continue;
      }
      if (op == Op::kDataEnd) {
        ByteCursor end(content_.bytes());
        const auto stored = end.take<std::uint32_t>();
        if (!skip_chunks_ && out_.problems.empty() && stored != 0 && stored != crc) {
          problem("bad CRC", at, "data section");
        }
        finish_walk(body + present);
        return {};
      }
      if (!skip_chunks_) crc = crc_of(crc_of(crc, head), content_.bytes());
      at = body + present;
    }
    problem("truncated file", file_.size(), "no end of the data section");
    return {};
  }

  // Lengths that are stated twice: a record whose length was damaged must not swallow what follows it.
  [[nodiscard]] bool consistent(Op op, Bytes content, std::uint64_t at, std::uint64_t length) const {
    constexpr std::uint64_t kTrailing = 64;  // later versions may append fields
    ByteCursor cursor(content);
    switch (op) {
      case Op::kChunk: {
        ChunkHead head;
        if (!parse_chunk_head(content, head)) return content.size() < length || length < 40;
        const std::uint64_t fixed = 40 + head.compression.size();
        return head.packed_bytes <= length && length - head.packed_bytes >= fixed &&
               length - head.packed_bytes - fixed <= kTrailing;
      }
      case Op::kMessageIndex: {
        cursor.take<std::uint16_t>();
        const auto bytes = cursor.take<std::uint32_t>();
        return cursor.ok() && bytes <= cursor.rest().size() && cursor.rest().size() - bytes <= kTrailing;
      }
      case Op::kDataEnd: return content.size() == 4 && (summary_start_ == 0 || at + kRecordHead + 4 == summary_start_);
      default: return true;
    }
  }

  void finish_walk(std::uint64_t at) {
    if (!complete_) {
      problem("truncated file", at, "footer or closing magic is missing; all messages before it are there");
      return;
    }
    if (summary_start_ != 0 && at != summary_start_ && skip_chunks_) {
      problem("bad ChunkIndex", at, "the data section ends elsewhere");
    }
    if (skip_chunks_ || !statistics_) return;
    if (statistics_->messages != messages_) {
      problem("bad Statistics", at,
              std::to_string(statistics_->messages) + " messages announced, " + std::to_string(messages_) + " found");
    }
    if (!out_.problems.empty()) return;  // what was damaged differs from the index anyway
    std::size_t found = 0;
    for (const ChunkPlace& chunk : out_.chunks) {
      const auto known = index_.find(chunk.offset);
      if (known == index_.end() || chunk.outside) continue;
      ++found;
      if (known->second.chunk_bytes != chunk.bytes || known->second.unpacked_bytes != chunk.unpacked_bytes) {
        problem("bad ChunkIndex", chunk.offset, "the chunk has another size than announced");
      } else if (rules_.empty() && static_cast<std::int64_t>(known->second.first_time) > chunk.first) {
        problem("bad ChunkIndex", chunk.offset, "its first message is earlier than announced");
      }
    }
    if (found != index_.size()) {
      problem("bad ChunkIndex", at, std::to_string(index_.size() - found) + " chunks that it names are not there");
    }
    for (const auto& [id, count] : statistics_->by_channel) {
      const auto seen = tally_.find(id);
      const std::uint64_t there = seen == tally_.end() ? 0 : seen->second.messages;
      if (there != count) {
        problem("bad Statistics", at,
                "channel " + std::to_string(id) + ": " + std::to_string(count) + " messages announced, " +
                    std::to_string(there) + " found");
      }
    }
  }

  // The next chunk that the index names and that really is there; UINT64_MAX = none.
  Result<std::uint64_t> indexed_chunk_after(std::uint64_t at) {
    auto next = index_.upper_bound(at);
    for (int tries = 0; next != index_.end() && tries < 8; ++next, ++tries) {
      TAKT_ASSIGN(const bool there, skip_chunks_ ? Result<bool>(true) : head_agrees(next->second));
      if (there) return next->first;
    }
    return UINT64_MAX;
  }

  // After a record that cannot be trusted: the next chunk that the file's index knows, or else the next bytes that look
  // like a chunk or like a message of a declared channel.
  Result<bool> resume(std::uint64_t& at) {
    TAKT_ASSIGN(const std::uint64_t next, indexed_chunk_after(at));
    if (next < file_.size()) {
      at = next;
      return true;
    }
    constexpr std::uint64_t kHead = 96;  // the longest head looked at
    std::uint64_t step = 4096;           // grows, so that neither near nor far goals cost much
    for (std::uint64_t start = at + 1; start < file_.size(); start += step, step = std::min(step * 4, kRunBytes)) {
      const std::uint64_t there = std::min(file_.size() - start, step + kHead);
      const auto window = search_.resize(static_cast<std::size_t>(there));
      TAKT_RETURN_IF_ERROR(file_.read(start, window));
      for (std::uint64_t i = 0; i < std::min(step, there); ++i) {
        const auto op = static_cast<Op>(window[i]);
        if (op != Op::kChunk && op != Op::kMessage) continue;
        if (plausible(op, Bytes(window).subspan(i + 1), file_.size() - start - i - 1)) {
          at = start + i;
          return true;
        }
      }
    }
    return false;
  }

  // `after` begins behind the opcode; `left` bytes of the file follow there.
  [[nodiscard]] bool plausible(Op op, Bytes after, std::uint64_t left) const {
    ByteCursor cursor(after);
    const auto length = cursor.take<std::uint64_t>();
    if (!cursor.ok() || length > left - 8) return false;
    if (op == Op::kChunk) {
      ChunkHead head;
      if (!parse_chunk_head(cursor.rest(), head)) return false;
      return (head.compression.empty() || head.compression == "lz4" || head.compression == "zstd") &&
             length == 40 + head.compression.size() + head.packed_bytes;
    }
    MessageHead head;
    Bytes data;
    return length >= kMessageHead && parse_message(cursor.rest(), head, data) && head.log_time <= INT64_MAX &&
           head.publish_time <= INT64_MAX && out_.channels.contains(head.channel);
  }

  static bool wanted(Op op) {
    return op == Op::kHeader || op == Op::kSchema || op == Op::kChannel || op == Op::kMessage || op == Op::kChunk ||
           op == Op::kMetadata || op == Op::kDataEnd;
  }

  void record(Op op, Bytes content, std::uint64_t at, bool cut) {
    switch (op) {
      case Op::kHeader: header(content); break;
      case Op::kSchema: schema(content, at); break;
      case Op::kChannel: channel(content, at); break;
      case Op::kMessage: message_outside(content, at); break;
      case Op::kChunk: chunk(content, at, cut); break;
      case Op::kAttachment: attachment(content, at); break;
      case Op::kMetadata: metadata(content, at); break;
      default: break;
    }
  }

  void header(Bytes content) {
    ByteCursor cursor(content);
    out_.profile = cursor.text();
    out_.library = cursor.text();
  }

  void schema(Bytes content, std::uint64_t at) {
    ByteCursor cursor(content);
    const auto id = cursor.take<std::uint16_t>();
    SurveySchema found;
    found.name = cursor.text();
    const bool named = cursor.ok();
    found.encoding = cursor.text();
    found.data = cursor.text();
    if (!named) return problem("bad Schema", at, "the record is too short");
    if (id != 0) out_.schemas.try_emplace(id, std::move(found));
  }

  void channel(Bytes content, std::uint64_t at) {
    ByteCursor cursor(content);
    const auto id = cursor.take<std::uint16_t>();
    SurveyChannel found;
    found.schema = cursor.take<std::uint16_t>();
    found.topic = cursor.text();
    found.encoding = cursor.text();
    if (!cursor.ok()) return problem("bad Channel", at, "the record is too short");
    found.metadata = take_map(cursor);
    const auto known = out_.channels.find(id);
    if (known == out_.channels.end()) {
      out_.channels.emplace(id, std::move(found));
    } else if (known->second.topic != found.topic) {
      problem("bad Channel", at,
              "channel " + std::to_string(id) + " was " + known->second.topic + " and is now " + found.topic);
    }
  }

  Tally& tally(std::uint16_t id) {
    if (last_tally_ != nullptr && last_id_ == id) return *last_tally_;
    auto found = tally_.find(id);
    if (found == tally_.end()) {
      found = tally_.emplace(id, Tally{}).first;
      const auto declared = out_.channels.find(id);
      found->second.declared = declared != out_.channels.end();
      if (found->second.declared) {
        found->second.rules = rules_.of(declared->second.topic);
        const auto schema = out_.schemas.find(declared->second.schema);
        if (schema != out_.schemas.end()) {
          found->second.stamped =
              ros::stamped_encoding(declared->second.encoding, schema->second.name, schema->second.data);
        }
      }
    }
    last_id_ = id;
    last_tally_ = &found->second;
    return *last_tally_;
  }

  // Counts a message; its arrival, or nullopt when it is no good.
  std::optional<std::int64_t> count(Bytes content, std::uint64_t at, std::size_t place, std::uint16_t& id) {
    MessageHead head;
    Bytes data;
    const auto bad = [&](const char* why) {
      problem("bad Message", at, why);
      return std::nullopt;
    };
    if (!parse_message(content, head, data)) return bad("the record is too short");
    if (head.log_time > INT64_MAX || head.publish_time > INT64_MAX) return bad("time beyond the year 2262");
    if (data.size() > UINT32_MAX) return bad("larger than 4 GiB");
    id = head.channel;
    Tally& channel = tally(head.channel);
    ++messages_;
    ++channel.messages;
    if (channel.chunk != place) {
      channel.chunk = place;
      out_.chunks[place].channels.push_back(head.channel);
    }
    const std::int64_t arrival =
        rules_.arrival(channel.rules, static_cast<std::int64_t>(head.log_time),
                       ros::capture_ns(channel.stamped, data, static_cast<std::int64_t>(head.publish_time)),
                       rules_.empty() ? nullptr : &moved());
    channel.first = std::min(channel.first, arrival);
    channel.last = std::max(channel.last, arrival);
    return arrival;
  }
  std::vector<std::uint64_t>& moved() {
    out_.moved.resize(rules_.size());
    return out_.moved;
  }

  void message_outside(Bytes content, std::uint64_t at) {
    const std::uint64_t bytes = kRecordHead + content.size();
    auto& chunks = out_.chunks;
    const bool extend = !chunks.empty() && chunks.back().outside && chunks.back().offset + chunks.back().bytes == at &&
                        chunks.back().bytes + bytes <= kRunBytes;
    if (!extend) chunks.push_back({at, 0, INT64_MAX, 0, {}, true, true});
    ChunkPlace& run = chunks.back();
    run.bytes += bytes;
    run.unpacked_bytes += bytes;
    std::uint16_t id = 0;
    if (const auto arrival = count(content, at, chunks.size() - 1, id)) run.first = std::min(run.first, *arrival);
  }

  void chunk(Bytes content, std::uint64_t at, bool cut) {
    ChunkHead head;
    if (!parse_chunk_head(content, head) || (!cut && head.packed_bytes > head.packed.size())) {
      if (!cut) problem("bad Chunk", at, "the record is too short");
      return;
    }
    const bool packed_cut = head.packed.size() < head.packed_bytes;
    if (!head.compression.empty() && head.compression != "zstd" && head.compression != "lz4") {
      return problem(
          "unknown compression", at,
          "'" + std::string(head.compression.substr(0, 32)) + "'; known: none, lz4, zstd; the chunk is left out");
    }
    if (head.unpacked_bytes > options_.max_record_bytes) {
      return problem("chunk too large", at,
                     std::to_string(head.unpacked_bytes) + " bytes announced; the limit is " +
                         std::to_string(options_.max_record_bytes) + "; the chunk is left out");
    }
    const std::string error = unpacker_.unpack(head, unpacked_);
    if (!packed_cut) {
      if (!error.empty()) return problem("bad Chunk", at, error + "; the chunk is left out");
      if (head.crc != 0 && head.crc != crc_of(0, unpacked_.bytes())) {
        return problem("bad CRC", at, "chunk of " + std::to_string(unpacked_.size) + " bytes; it is left out");
      }
    }
    const std::uint64_t before = messages_;
    const std::size_t this_problem = out_.problems.size() - 1;  // "truncated Chunk", when cut
    const std::size_t place = out_.chunks.size();
    out_.chunks.push_back({at, kRecordHead + content.size(), INT64_MAX, head.unpacked_bytes, {}, false, true});
    std::uint64_t stopped = 0;
    const bool whole = for_each_record(unpacked_.bytes(), stopped, [&](Op op, Bytes inner, std::uint64_t) {
      if (op == Op::kSchema) schema(inner, at);
      if (op == Op::kChannel) channel(inner, at);
      if (op != Op::kMessage) return;
      std::uint16_t id = 0;
      const auto arrival = count(inner, at, place, id);
      if (arrival) out_.chunks[place].first = std::min(out_.chunks[place].first, *arrival);
    });
    if (!whole && !packed_cut) {
      problem("bad Chunk", at, "its record at byte " + std::to_string(stopped) + " exceeds the chunk");
    }
    if (packed_cut && this_problem < out_.problems.size()) {
      out_.problems[this_problem].detail += "; " + std::to_string(messages_ - before) + " messages of it recovered";
    }
  }

  bool take_attachment_head(ByteCursor& cursor, SurveyAttachment& found) {
    found.about.log_time = {static_cast<std::int64_t>(cursor.take<std::uint64_t>())};
    cursor.take<std::uint64_t>();
    found.about.name = cursor.text();
    found.about.media_type = cursor.text();
    found.about.bytes = cursor.take<std::uint64_t>();
    return cursor.ok();
  }

  void attachment(Bytes content, std::uint64_t at) {
    if (content.size() < 4) return problem("bad Attachment", at, "the record is too short");
    ByteCursor crc(content.last(4));
    const auto stored = crc.take<std::uint32_t>();
    if (stored != 0 && stored != crc_of(0, content.first(content.size() - 4))) {
      return problem("bad CRC", at, "attachment");
    }
    SurveyAttachment found{{}, at + kRecordHead, content.size()};
    ByteCursor cursor(content.first(content.size() - 4));
    if (!take_attachment_head(cursor, found) || found.about.bytes > cursor.rest().size()) {
      return problem("bad Attachment", at, "the record is too short");
    }
    out_.attachments.push_back(std::move(found));
  }

  Status attachment_head(std::uint64_t body, std::uint64_t bytes, std::uint64_t at) {
    const auto front = content_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, 65536)));
    TAKT_RETURN_IF_ERROR(file_.read(body, front));
    SurveyAttachment found{{}, body, bytes};
    ByteCursor cursor(front);
    if (!take_attachment_head(cursor, found) || found.about.bytes > bytes) {
      problem("bad Attachment", at, "the record is too short");
    } else {
      out_.attachments.push_back(std::move(found));
    }
    return {};
  }

  void metadata(Bytes content, std::uint64_t at) {
    ByteCursor cursor(content);
    LogMetadata found;
    found.name = cursor.text();
    found.entries = take_map(cursor);
    if (!cursor.ok()) return problem("bad Metadata", at, "the record is too short");
    out_.metadata.push_back(std::move(found));
  }

  bool late_channels() const {
    return std::any_of(tally_.begin(), tally_.end(), [&](const auto& entry) {
      return !entry.second.declared && out_.channels.contains(entry.first);
    });
  }

  // Messages whose channel nobody declared cannot be named and are left out.
  void finish_counts() {
    for (const auto& [id, channel] : tally_) {
      const auto declared = out_.channels.find(id);
      if (declared == out_.channels.end()) {
        problem("unknown channel", 0,
                std::to_string(channel.messages) + " messages on channel " + std::to_string(id) +
                    ", which is not declared; left out");
        continue;
      }
      declared->second.messages = channel.messages;
      if (!out_.span) out_.span = {channel.first, channel.last};
      out_.span->first = std::min(out_.span->first, channel.first);
      out_.span->second = std::max(out_.span->second, channel.last);
    }
  }

  const InputFile& file_;
  const ArrivalRules& rules_;
  const SurveyOptions& options_;
  Survey out_;
  bool complete_ = false;  // footer and closing magic are there
  std::uint64_t summary_start_ = 0;
  std::uint32_t summary_crc_ = 0;
  std::optional<Statistics> statistics_;
  std::map<std::uint64_t, ChunkIndex> index_;  // by offset
  bool skip_chunks_ = false;
  std::map<std::uint16_t, Tally> tally_;
  std::uint16_t last_id_ = 0;
  Tally* last_tally_ = nullptr;
  std::uint64_t messages_ = 0;
  Unpacker unpacker_;
  Buffer content_, unpacked_, search_;
};

}  // namespace

void add_problem(std::vector<LogProblem>& problems, std::string kind, std::uint64_t offset, std::string detail) {
  constexpr std::size_t kMaxProblems = 1000;
  if (problems.size() < kMaxProblems) {
    problems.push_back({std::move(kind), offset, std::move(detail)});
  } else if (problems.size() == kMaxProblems) {
    problems.push_back({"more problems", offset, "not listed: the first " + std::to_string(kMaxProblems) + " are"});
  }
}

std::vector<std::size_t> ArrivalRules::of(const std::string& topic) const {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    if (rules_[i].topic == topic) out.push_back(i);
  }
  return out;
}

namespace {
std::int64_t later(std::int64_t ns, Duration delay) {  // stamps come from the file: no overflow
  std::int64_t sum = 0;
  return __builtin_add_overflow(ns, delay.ns, &sum) ? INT64_MAX : sum;
}
}  // namespace

std::int64_t ArrivalRules::arrival(const std::vector<std::size_t>& rules, std::int64_t log_time, std::int64_t capture,
                                   std::vector<std::uint64_t>* moved) const {
  std::int64_t arrival = log_time;
  for (const std::size_t i : rules) {
    const ReleaseRule& rule = rules_[i];
    if (rule.declared_delay) {
      arrival = later(capture, *rule.declared_delay);
    } else if (const std::int64_t earliest = later(capture, rule.captured); arrival < earliest) {
      arrival = earliest;
      if (moved != nullptr) ++(*moved)[i];
    }
  }
  return arrival;
}

std::vector<std::string> ArrivalRules::notes(const std::vector<std::uint64_t>& moved) const {
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const ReleaseRule& rule = rules_[i];
    if (rule.declared_delay) {
      notes.push_back(rule.topic + ": the log has no arrival times; arrival = stamp + declared " +
                      std::to_string(rule.declared_delay->ns) + " ns");
    }
    if (i < moved.size() && moved[i] != 0) {
      notes.push_back(rule.topic + ": " + std::to_string(moved[i]) +
                      " messages arrived before their last captured byte; released then, " +
                      std::to_string(rule.captured.ns) + " ns after their stamp");
    }
  }
  return notes;
}

Result<Survey> survey(const InputFile& file, const ArrivalRules& rules, const SurveyOptions& options) {
  return Surveyor(file, rules, options).run();
}

}  // namespace takt::sensors::mcap
