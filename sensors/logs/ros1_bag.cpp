#include "sensors/logs/ros1_bag.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <span>

#include "sensors/logs/decompress.h"
#include "sensors/logs/indexed_log.h"
#include "sensors/logs/input_file.h"
#include "sensors/logs/ros_messages.h"

namespace takt::sensors {
namespace {

using Bytes = std::span<const std::byte>;
using Buffer = std::vector<std::byte>;

enum class Op : std::uint8_t {
  kMessage = 0x02,
  kBagHeader = 0x03,
  kIndexData = 0x04,
  kChunk = 0x05,
  kChunkInfo = 0x06,
  kConnection = 0x07,
};

constexpr std::uint64_t kMaxHeader = 1 << 20;  // of a record; real ones have some hundred bytes

template <class T>
std::optional<T> value_at(Bytes bytes, std::uint64_t offset) {
  T value{};
  if (offset > bytes.size() || sizeof value > bytes.size() - offset) return std::nullopt;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// The named fields of a record header or of a connection: u32 length, "name=value", one after the other.
class Fields {
 public:
  // nullopt when the bytes are no such list.
  static std::optional<Fields> parse(Bytes bytes) {
    Fields fields;
    while (!bytes.empty()) {
      const auto length = value_at<std::uint32_t>(bytes, 0);
      if (!length || *length > bytes.size() - 4) return std::nullopt;
      const Bytes field = bytes.subspan(4, *length);
      bytes = bytes.subspan(std::size_t{4} + *length);
      const std::string_view text(reinterpret_cast<const char*>(field.data()), field.size());
      const std::size_t equals = text.find('=');
      if (equals == std::string_view::npos || equals == 0) return std::nullopt;
      fields.values_.try_emplace(text.substr(0, equals), field.subspan(equals + 1));
    }
    return fields;
  }
  template <class T>
  [[nodiscard]] std::optional<T> number(std::string_view name) const {
    const auto field = values_.find(name);
    if (field == values_.end() || field->second.size() != sizeof(T)) return std::nullopt;
    return value_at<T>(field->second, 0);
  }
  [[nodiscard]] std::string text(std::string_view name) const {
    const auto field = values_.find(name);
    if (field == values_.end()) return "";
    return {reinterpret_cast<const char*>(field->second.data()), field->second.size()};
  }
  [[nodiscard]] std::optional<Op> op() const {
    const auto op = number<std::uint8_t>("op");
    if (!op || *op < 2 || *op > 7) return std::nullopt;
    return static_cast<Op>(*op);
  }
  // "time" is seconds, then nanoseconds, of 32 bits each.
  [[nodiscard]] std::optional<std::int64_t> time(std::string_view name) const {
    const auto raw = number<std::uint64_t>(name);
    if (!raw || *raw >> 32 >= 1'000'000'000) return std::nullopt;
    return static_cast<std::int64_t>((*raw & 0xffffffff) * 1'000'000'000 + (*raw >> 32));
  }

 private:
  std::map<std::string_view, Bytes> values_;
};

struct Chunk {
  std::string compression;
  std::uint64_t offset = 0;  // of its data in the file
  std::uint64_t bytes = 0;   // of its data in the file
  std::uint64_t unpacked = 0;
};

constexpr std::uint32_t kInFile = 0xffffffff;  // Entry::unit: `where` is an offset in the file

class Ros1Bag final : public IndexedLog {
 public:
  Ros1Bag(std::string path, const Ros1BagOptions& options) : path_(std::move(path)), options_(options) {}

  Status open(const std::vector<ReleaseRule>& rules) {
    TAKT_RETURN_IF_ERROR(file_.open(path_));
    Buffer magic(static_cast<std::size_t>(std::min<std::uint64_t>(kRos1BagMagic.size(), file_.size())));
    TAKT_RETURN_IF_ERROR(file_.read(0, magic));
    const std::string_view text(reinterpret_cast<const char*>(magic.data()), magic.size());
    if (text.starts_with("#ROSBAG V") && text != kRos1BagMagic) {
      return fail(Code::kInput, path_ + ": is a bag of the version '" +
                                    std::string(text.substr(8, text.find('\n') - 8)) +
                                    "'; known: V2.0. Convert it with ROS: rosbag fix");
    }
    if (text != kRos1BagMagic) return fail(Code::kInput, path_ + ": is no ROS 1 bag (it does not begin with #ROSBAG)");
    TAKT_RETURN_IF_ERROR(scan());
    resolve();
    arrange(rules);
    if (!problems().empty() && channels_.empty()) {
      return fail(Code::kInput, path_ + ": nothing can be recovered: " + problems().front().kind + " at byte " +
                                    std::to_string(problems().front().offset) + " (" + problems().front().detail + ")");
    }
    return {};
  }

  [[nodiscard]] std::vector<std::pair<std::string, std::string>> properties() const override {
    std::map<std::string, std::size_t> kinds;
    for (const Chunk& chunk : chunks_) ++kinds[chunk.compression];
    std::string compressions;
    for (const auto& [kind, count] : kinds) {
      compressions += (compressions.empty() ? "" : ", ") + std::to_string(count) + " " + kind;
    }
    return {{"format", "ROS 1 bag 2.0"},
            {"chunks", compressions.empty() ? "0" : compressions},
            {"index", index_position_ == 0 ? "absent" : "present"}};
  }

 protected:
  Result<Bytes> fetch(const Entry& entry) override {
    if (entry.unit == kInFile) {
      message_.resize(entry.bytes);
      TAKT_RETURN_IF_ERROR(file_.read(entry.where, message_));
      return Bytes(message_);
    }
    TAKT_ASSIGN(const Buffer* chunk, load(entry.unit));
    if (entry.where > chunk->size() || entry.bytes > chunk->size() - entry.where) {
      return fail(Code::kInput, path_ + ": was changed while it was being read");
    }
    return Bytes(*chunk).subspan(static_cast<std::size_t>(entry.where), entry.bytes);
  }

 private:
  struct Connection {
    std::string topic, type, definition, md5sum;
  };
  struct Found {
    Entry entry;  // `channel` is the connection's number
    std::int64_t stamp = 0;
    bool has_stamp = false;
  };
  // A record in the file.
  struct Record {
    Buffer header;
    Fields fields;
    Op op = Op::kMessage;
    std::uint64_t data = 0;       // offset
    std::uint64_t announced = 0;  // bytes of data
    std::uint64_t present = 0;    // of them in the file
  };

  // The record at `at`, nullopt when the bytes there are none.
  Result<std::optional<Record>> read_record(std::uint64_t at) const {
    Record record;
    std::uint64_t left = file_.size() - at;
    std::uint32_t length = 0;
    if (left < 4) return std::optional<Record>();
    TAKT_RETURN_IF_ERROR(file_.read(at, std::as_writable_bytes(std::span(&length, 1))));
    left -= 4;
    if (length > kMaxHeader || left < std::uint64_t{length} + 4) return std::optional<Record>();
    record.header.resize(std::size_t{length} + 4);
    TAKT_RETURN_IF_ERROR(file_.read(at + 4, record.header));
    auto fields = Fields::parse(Bytes(record.header).first(length));
    const auto op = fields ? fields->op() : std::nullopt;
    if (!op) return std::optional<Record>();
    record.fields = *std::move(fields);
    record.op = *op;
    record.announced = *value_at<std::uint32_t>(record.header, length);
    record.data = at + 8 + length;
    record.present = std::min(record.announced, left - length - 4);
    return std::optional(std::move(record));
  }

  Status scan() {
    std::uint64_t at = kRos1BagMagic.size();
    while (at < file_.size()) {
      TAKT_ASSIGN(const std::optional<Record> record, read_record(at));
      if (!record) {
        TAKT_RETURN_IF_ERROR(
            resume(at, file_.size() - at < 8 ? "truncated file" : "damaged record", "no record begins here"));
        continue;
      }
      const bool cut = record->present < record->announced;
      const std::size_t problems_before = problems().size();
      if (!fits(*record)) {
        TAKT_RETURN_IF_ERROR(resume(at, "damaged record", "its size contradicts its count"));
        continue;
      }
      if (record->op == Op::kChunk) {
        TAKT_RETURN_IF_ERROR(chunk(*record, at, cut));
      } else if (!cut) {
        TAKT_RETURN_IF_ERROR(other(*record, at));
      }
      if (cut) {
        TAKT_RETURN_IF_ERROR(resume(at, record->op == Op::kChunk ? "truncated chunk" : "truncated record",
                                    std::to_string(record->announced) + " bytes announced, " +
                                        std::to_string(record->present) + " left in the file"));
        continue;
      }
      const std::uint64_t end = record->data + record->announced;
      // The size of a chunk that turned out bad is not trusted when another one begins inside.
      if (record->op == Op::kChunk && problems().size() != problems_before) {
        TAKT_ASSIGN(const std::uint64_t next, next_chunk(at + 1));
        at = std::min(next, end);
      } else {
        at = end;
      }
    }
    if (!encryption_.empty()) {
      return fail(Code::kInput, path_ + ": is encrypted with " + encryption_ + "; decrypt it with ROS first");
    }
    if (index_position_ == 0) {
      problem("truncated file", file_.size(), "the bag was never closed: it has no index; all whole records are read");
    } else if (problems().empty() && index_position_ > file_.size()) {
      problem("truncated file", file_.size(), "the index at byte " + std::to_string(index_position_) + " is missing");
    } else if (problems().empty() && indexed_ != found_.size()) {
      problem("bad index", index_position_,
              std::to_string(indexed_) + " messages announced, " + std::to_string(found_.size()) + " found");
    }
    return {};
  }

  // Records of the index say twice how long they are.
  static bool fits(const Record& record) {
    const std::uint64_t count = record.fields.number<std::uint32_t>("count").value_or(0);
    if (record.op == Op::kIndexData) return record.announced == count * 12;
    if (record.op == Op::kChunkInfo) return record.announced == count * 8;
    return true;
  }

  // Tells a fault at `at` and moves there where the next chunk begins, or to the end.
  Status resume(std::uint64_t& at, const char* kind, const std::string& what) {
    const std::uint64_t from = at;
    TAKT_ASSIGN(at, next_chunk(at + 1));
    problem(kind, from,
            what + (at < file_.size() ? "; reading goes on at the chunk at byte " + std::to_string(at)
                                      : "; no chunk follows"));
    return {};
  }

  // A chunk is recognised by the field op=5 in a header that can be parsed as a whole.
  Result<std::uint64_t> next_chunk(std::uint64_t from) const {
    static constexpr std::string_view kOp("\x04\0\0\0op=\x05", 8);
    static constexpr std::uint64_t kWindow = 1 << 20, kFieldsBefore = 64;
    Buffer window;
    for (std::uint64_t start = from; start < file_.size(); start += kWindow) {
      // Windows overlap, so that neither the field nor the fields before it are cut.
      window.resize(static_cast<std::size_t>(std::min(kWindow + kFieldsBefore + kOp.size(), file_.size() - start)));
      TAKT_RETURN_IF_ERROR(file_.read(start, window));
      const std::string_view text(reinterpret_cast<const char*>(window.data()), window.size());
      for (std::size_t hit = text.find(kOp); hit != std::string_view::npos; hit = text.find(kOp, hit + 1)) {
        for (std::size_t before = 4; before <= std::min<std::size_t>(hit, kFieldsBefore); ++before) {
          const auto length = value_at<std::uint32_t>(window, hit - before);
          if (*length < 8 || *length > 256) continue;
          TAKT_ASSIGN(const std::optional<Record> record, read_record(start + hit - before));
          if (record && record->op == Op::kChunk && record->fields.number<std::uint32_t>("size")) {
            return start + hit - before;
          }
        }
      }
    }
    return file_.size();
  }

  // Any record but a chunk, whole.
  Status other(const Record& record, std::uint64_t at) {
    switch (record.op) {
      case Op::kBagHeader:
        index_position_ = record.fields.number<std::uint64_t>("index_pos").value_or(0);
        encryption_ = record.fields.text("encryptor");
        return {};
      case Op::kConnection: {
        Buffer data;
        TAKT_RETURN_IF_ERROR(read_data(record, at, data));
        connection(record.fields, data, at);
        return {};
      }
      case Op::kChunkInfo: {
        Buffer data;
        TAKT_RETURN_IF_ERROR(read_data(record, at, data));
        for (std::uint64_t i = 4; i < data.size(); i += 8) indexed_ += value_at<std::uint32_t>(data, i).value_or(0);
        return {};
      }
      case Op::kMessage: {
        Buffer start(static_cast<std::size_t>(std::min<std::uint64_t>(record.present, ros::kHeaderBytes)));
        TAKT_RETURN_IF_ERROR(file_.read(record.data, start));
        message(record.fields, start, record.present, record.data, kInFile, at);
        return {};
      }
      case Op::kIndexData:
      case Op::kChunk: break;
    }
    return {};
  }

  Status read_data(const Record& record, std::uint64_t at, Buffer& data) {
    if (record.present > options_.max_chunk_bytes) {
      problem("record too large", at, std::to_string(record.present) + " bytes");
      return {};
    }
    data.resize(static_cast<std::size_t>(record.present));
    return file_.read(record.data, data);
  }

  Status chunk(const Record& record, std::uint64_t at, bool cut) {
    Chunk chunk{record.fields.text("compression"), record.data, record.present,
                record.fields.number<std::uint32_t>("size").value_or(0)};
    if (chunk.compression != "none" && chunk.compression != "bz2" && chunk.compression != "lz4") {
      problem("unknown compression", at,
              "'" + chunk.compression.substr(0, 32) + "'; known: none, bz2, lz4; the chunk is left out");
      return {};
    }
    if (chunk.bytes > options_.max_chunk_bytes || chunk.unpacked > options_.max_chunk_bytes) {
      problem("chunk too large", at,
              std::to_string(std::max(chunk.bytes, chunk.unpacked)) + " bytes; the limit is " +
                  std::to_string(options_.max_chunk_bytes) + "; the chunk is left out");
      return {};
    }
    if (chunk.compression == "none") {
      // A length that was damaged may reach into the next chunk; both sizes say the same in a sound one.
      if (!cut && chunk.bytes != chunk.unpacked) {
        problem("bad chunk", at, std::to_string(chunk.bytes) + " bytes instead of " + std::to_string(chunk.unpacked));
      }
      chunk.bytes = std::min(chunk.bytes, chunk.unpacked);
      scratch_.resize(static_cast<std::size_t>(chunk.bytes));
      TAKT_RETURN_IF_ERROR(file_.read(chunk.offset, scratch_));
    } else {
      Buffer packed(static_cast<std::size_t>(chunk.bytes));
      TAKT_RETURN_IF_ERROR(file_.read(chunk.offset, packed));
      std::string error = decompress(chunk.compression, packed, chunk.unpacked, scratch_);
      if (error.empty() && scratch_.size() != chunk.unpacked) {
        error = "unpacks to " + std::to_string(scratch_.size()) + " instead of " + std::to_string(chunk.unpacked) +
                " bytes";
      }
      if (!error.empty() && !cut) {
        problem("bad chunk", at, error + "; the chunk is left out");
        return {};
      }
    }
    chunks_.push_back(chunk);
    records_of_chunk(static_cast<std::uint32_t>(chunks_.size() - 1), at, cut);
    return {};
  }

  void records_of_chunk(std::uint32_t unit, std::uint64_t at, bool cut) {
    const Bytes bytes = scratch_;
    const bool plain = chunks_[unit].compression == "none";
    std::uint64_t offset = 0;
    while (offset < bytes.size()) {
      const auto length = value_at<std::uint32_t>(bytes, offset);
      const std::uint64_t left = bytes.size() - offset;
      std::optional<Fields> fields;
      std::optional<std::uint32_t> size;
      if (length && *length <= left - 4) {
        fields = Fields::parse(bytes.subspan(static_cast<std::size_t>(offset) + 4, *length));
        size = value_at<std::uint32_t>(bytes, offset + 4 + *length);
      }
      if (!fields || !fields->op() || !size || *size > left - 8 - *length) {
        if (!cut) {
          problem("bad chunk", at,
                  "its record at byte " + std::to_string(offset) + " is damaged; the rest is left out");
        }
        return;
      }
      const std::uint64_t data_at = offset + 8 + *length;
      const Bytes data = bytes.subspan(static_cast<std::size_t>(data_at), *size);
      if (fields->op() == Op::kConnection) connection(*fields, data, at);
      if (fields->op() == Op::kMessage) {
        message(*fields, data, *size, plain ? chunks_[unit].offset + data_at : data_at, plain ? kInFile : unit, at);
      }
      offset = data_at + *size;
    }
  }

  void connection(const Fields& fields, Bytes data, std::uint64_t at) {
    const auto id = fields.number<std::uint32_t>("conn");
    const auto more = Fields::parse(data);
    if (!id || !more) return problem("bad connection", at, "its fields are damaged");
    // The topic under which it was recorded, not the one it had before remapping.
    Connection connection{fields.text("topic"), more->text("type"), more->text("message_definition"),
                          more->text("md5sum")};
    const auto [known, added] = connections_.try_emplace(*id, connection);
    if (!added && (known->second.topic != connection.topic || known->second.type != connection.type)) {
      problem("bad connection", at,
              "connection " + std::to_string(*id) + " was " + known->second.topic + " (" + known->second.type +
                  ") and is now " + connection.topic + " (" + connection.type + ")");
    }
  }

  // `start`: its first bytes at least.
  void message(const Fields& fields, Bytes start, std::uint64_t size, std::uint64_t where, std::uint32_t unit,
               std::uint64_t at) {
    const auto id = fields.number<std::uint32_t>("conn");
    const auto time = fields.time("time");
    if (!id || !time) return problem("bad message", at, "connection or time are damaged; it is left out");
    Found found;
    found.entry.arrival = *time;
    found.entry.where = where;
    found.entry.bytes = static_cast<std::uint32_t>(size);
    found.entry.unit = unit;
    found.entry.channel = *id;
    const auto stamp = ros::header_stamp(ros::Encoding::kRos1, start.first(std::min(start.size(), ros::kHeaderBytes)));
    found.has_stamp = stamp.has_value();
    found.stamp = stamp ? stamp->ns : 0;
    found_.push_back(found);
  }

  // From connections to channels; messages whose connection nobody declared cannot be named and are left out.
  void resolve() {
    std::map<std::uint32_t, std::uint32_t> place;
    std::vector<bool> stamped;
    for (auto& [id, connection] : connections_) {
      place[id] = static_cast<std::uint32_t>(channels_.size());
      stamped.push_back(ros::starts_with_header(connection.type, connection.definition));
      LogChannel channel;
      channel.id = id;
      channel.topic = connection.topic;
      channel.encoding = "ros1";
      channel.schema = connection.type;
      channel.schema_encoding = "ros1msg";
      channel.schema_data = connection.definition;
      channel.metadata["md5sum"] = connection.md5sum;
      channels_.push_back(std::move(channel));
    }
    std::map<std::uint32_t, std::uint64_t> lost;
    for (Found& found : found_) {
      const auto known = place.find(found.entry.channel);
      if (known == place.end()) {
        ++lost[found.entry.channel];
        continue;
      }
      found.entry.channel = known->second;
      found.entry.capture = found.has_stamp && stamped[known->second] ? found.stamp : found.entry.arrival;
      add(found.entry);
    }
    found_ = {};
    for (const auto& [id, count] : lost) {
      problem("unknown connection", 0,
              std::to_string(count) + " messages on connection " + std::to_string(id) +
                  ", which is not declared; left out");
    }
  }

  Result<const Buffer*> load(std::uint32_t unit) {
    Loaded& slot = loaded_[unit];
    slot.used = ++clock_;
    if (!slot.bytes.empty()) return &slot.bytes;
    const Chunk& chunk = chunks_[unit];
    Buffer packed(static_cast<std::size_t>(chunk.bytes));
    if (auto status = file_.read(chunk.offset, packed); !status) {
      loaded_.erase(unit);
      return fail(std::move(status).error());
    }
    decompress(chunk.compression, packed, chunk.unpacked, slot.bytes);
    loaded_bytes_ += slot.bytes.size();
    while (loaded_bytes_ > options_.cache_bytes && loaded_.size() > 1) {
      const auto oldest = std::min_element(loaded_.begin(), loaded_.end(),
                                           [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
      loaded_bytes_ -= oldest->second.bytes.size();
      loaded_.erase(oldest);
    }
    return &loaded_.at(unit).bytes;
  }

  struct Loaded {
    Buffer bytes;
    std::uint64_t used = 0;  // value of the clock at the last use
  };

  const std::string path_;
  const Ros1BagOptions options_;
  InputFile file_;
  // found while scanning
  std::uint64_t index_position_ = 0;
  std::uint64_t indexed_ = 0;  // messages that the index announces
  std::string encryption_;
  std::map<std::uint32_t, Connection> connections_;
  std::vector<Found> found_;
  std::vector<Chunk> chunks_;
  Buffer scratch_;
  // reading
  std::map<std::uint32_t, Loaded> loaded_;
  std::uint64_t loaded_bytes_ = 0, clock_ = 0;
  Buffer message_;
};

}  // namespace

Result<std::unique_ptr<LogReader>> open_ros1_bag(const std::string& path, const std::vector<ReleaseRule>& rules,
                                                 const Ros1BagOptions& options) {
  auto reader = std::make_unique<Ros1Bag>(path, options);
  TAKT_RETURN_IF_ERROR(reader->open(rules));
  return std::unique_ptr<LogReader>(std::move(reader));
}

}  // namespace takt::sensors
