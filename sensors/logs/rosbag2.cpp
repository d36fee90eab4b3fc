#include "sensors/logs/rosbag2.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
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

constexpr std::uint64_t kMaxMessage = std::uint64_t{1} << 30;
constexpr std::uint64_t kMaxChecked = std::uint64_t{1} << 30;  // larger files are not searched for the damaged page
constexpr std::string_view kZstdMagic = "\x28\xb5\x2f\xfd";

bool is_zstd(Bytes bytes) {
  return bytes.size() >= kZstdMagic.size() && std::memcmp(bytes.data(), kZstdMagic.data(), kZstdMagic.size()) == 0;
}

struct Close {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  void operator()(sqlite3_blob* blob) const { sqlite3_blob_close(blob); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Close>;

std::string text_of(sqlite3_stmt* row, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
  return text == nullptr ? "" : std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(row, column)));
}

// The library pads the last page of a cut file with zeros and takes them for data. With this the file ends where its
// last whole page does.
std::atomic<int (*)(sqlite3_file*, sqlite3_int64*)> original_file_size;
int whole_pages_size(sqlite3_file* file, sqlite3_int64* size) {
  const int code = original_file_size.load()(file, size);
  unsigned char bytes[2] = {};
  if (code != SQLITE_OK || file->pMethods->xRead(file, bytes, 2, 16) != SQLITE_OK) return code;
  const int page = bytes[0] << 8 | bytes[1];
  if (page != 0) *size -= *size % (page == 1 ? 65536 : page);
  return SQLITE_OK;
}
void hide_cut_page(sqlite3* db) {
  sqlite3_file* file = nullptr;
  if (sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || file->pMethods == nullptr)
    return;
  // All files of this kind of access share one table of methods.
  static const sqlite3_io_methods methods = [&] {
    sqlite3_io_methods copy = *file->pMethods;
    original_file_size = copy.xFileSize;
    copy.xFileSize = whole_pages_size;
    return copy;
  }();
  file->pMethods = &methods;
}

class Rosbag2 final : public IndexedLog {
 public:
  explicit Rosbag2(std::string path) : path_(std::move(path)) {}

  Status open(const std::vector<ReleaseRule>& rules) {
    TAKT_RETURN_IF_ERROR(check_size());
    TAKT_RETURN_IF_ERROR(connect());
    TAKT_RETURN_IF_ERROR(read_topics());
    read_definitions();
    read_rows();
    if (compressed_ != 0) {
      notes_.push_back(std::to_string(compressed_) + " messages are compressed one by one (zstd) and unpacked in turn");
    }
    arrange(rules);
    return {};
  }

  [[nodiscard]] std::vector<std::pair<std::string, std::string>> properties() const override {
    return {{"format", "rosbag2 SQLite"},
            {"message definitions", definitions_ == 0 ? "absent" : std::to_string(definitions_)}};
  }

 protected:
  Result<Bytes> fetch(const Entry& entry) override {
    const auto row = static_cast<sqlite3_int64>(entry.where);
    message_.resize(entry.bytes);
    if (!read_data(row, message_)) {
      return fail(Code::kInput, path_ + ": message " + std::to_string(row) + " cannot be read any more: " + reason());
    }
    if (entry.unit == kPlain) return Bytes(message_);
    // Damaged data give a short message: a bad frame of its sensor.
    decompress("zstd", message_, kMaxMessage, unpacked_);
    return Bytes(unpacked_);
  }

 private:
  static constexpr std::uint32_t kPlain = 0, kZstd = 1;  // Entry::unit

  // A database that is shorter than its first page says was cut.
  Status check_size() {
    InputFile file;
    TAKT_RETURN_IF_ERROR(file.open(path_));
    Buffer head(static_cast<std::size_t>(std::min<std::uint64_t>(100, file.size())));
    TAKT_RETURN_IF_ERROR(file.read(0, head));
    if (head.size() < kSqliteMagic.size() || std::memcmp(head.data(), kSqliteMagic.data(), kSqliteMagic.size()) != 0) {
      return fail(Code::kInput, path_ + ": is no SQLite database");
    }
    bytes_ = file.size();
    if (head.size() < 100)
      return fail(Code::kInput, path_ + ": is cut inside its first page; nothing can be recovered");
    const auto big_endian = [&](std::size_t at, std::size_t size) {
      std::uint64_t value = 0;
      for (std::size_t i = 0; i < size; ++i) value = value << 8 | static_cast<std::uint64_t>(head[at + i]);
      return value;
    };
    page_ = big_endian(16, 2) == 1 ? 65536 : big_endian(16, 2);  // https://www.sqlite.org/fileformat.html, 1.3
    const std::uint64_t pages = big_endian(28, 4);
    if (page_ != 0 && pages * page_ > bytes_) {
      problem("truncated file", bytes_,
              std::to_string(pages) + " pages of " + std::to_string(page_) + " bytes announced, " +
                  std::to_string(bytes_ / page_) + " left; messages on whole pages are read");
    }
    return {};
  }

  Status connect() {
    // A write-ahead log beside the file belongs to it; without one nobody writes and no lock files are needed.
    struct stat info {};
    const bool has_wal = ::stat((path_ + "-wal").c_str(), &info) == 0 && info.st_size > 0;
    if (has_wal && open_database("") && readable()) return {};
    if (has_wal) {
      problem("unread write-ahead log", 0, path_ + "-wal cannot be read (" + reason() + "); its messages are missing");
    }
    // An immutable file is measured while it is opened, too early for hide_cut_page().
    const bool cut = page_ != 0 && bytes_ % page_ != 0;
    if (!open_database(cut ? "&nolock=1" : "&immutable=1"))
      return fail(Code::kInput, path_ + ": cannot be opened: " + reason());
    return {};
  }

  bool open_database(const char* more) {
    std::string uri = "file:";
    for (const char c : path_) {
      if (c == '%' || c == '?' || c == '#') {
        uri += c == '%' ? "%25" : c == '?' ? "%3f" : "%23";
      } else {
        uri += c;
      }
    }
    uri += std::string("?mode=ro") + more;
    sqlite3* db = nullptr;
    const int code = sqlite3_open_v2(uri.c_str(), &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
    db_.reset(db);
    if (code != SQLITE_OK) return false;
    if (std::strcmp(more, "&nolock=1") == 0) hide_cut_page(db);
    // The file may be hostile: no functions or views of its own, cell sizes are checked. With writable_schema the
    // library reads a database that is shorter than announced (nothing is written: the connection is read-only).
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
    sqlite3_exec(db, "PRAGMA cell_size_check=ON; PRAGMA writable_schema=ON", nullptr, nullptr, nullptr);
    return true;
  }
  bool readable() {
    const Statement any = prepare("SELECT 1 FROM topics LIMIT 1");
    return any && (sqlite3_step(any.get()) == SQLITE_ROW || sqlite3_errcode(db_.get()) == SQLITE_DONE);
  }

  Statement prepare(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    sqlite3_prepare_v2(db_.get(), sql, -1, &statement, nullptr);
    return Statement(statement);
  }
  std::string reason() const { return db_ ? sqlite3_errmsg(db_.get()) : "no memory"; }

  Status read_topics() {
    const Statement rows = prepare("SELECT id, name, type, serialization_format FROM topics ORDER BY id");
    if (!rows || !prepare("SELECT rowid, topic_id, timestamp, data FROM messages")) {
      return fail(Code::kInput, path_ + ": holds no rosbag2 recording that can be read: " + reason() +
                                    "; needed are the tables topics (id, name, type, serialization_format) and "
                                    "messages (topic_id, timestamp, data)");
    }
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(rows.get())) == SQLITE_ROW) {
      const sqlite3_int64 id = sqlite3_column_int64(rows.get(), 0);
      if (id < 0 || id > UINT32_MAX) {
        problem("bad topic", 0, "number " + std::to_string(id) + "; it is left out");
        continue;
      }
      LogChannel channel;
      channel.id = static_cast<std::uint32_t>(id);
      channel.topic = text_of(rows.get(), 1);
      channel.schema = text_of(rows.get(), 2);
      channel.encoding = text_of(rows.get(), 3);
      if (place_.try_emplace(id, static_cast<std::uint32_t>(channels_.size())).second) {
        channels_.push_back(std::move(channel));
      }
    }
    if (code != SQLITE_DONE) damaged("table topics: " + reason());
    if (channels_.empty() && !problems().empty()) {
      return fail(Code::kInput, path_ + ": nothing can be recovered: " + problems().back().kind + " (" +
                                    problems().back().detail + ")");
    }
    // Recordings since Iron say how a publisher offered a topic; a copy keeps it.
    const Statement qos = prepare("SELECT id, offered_qos_profiles FROM topics");
    while (qos && sqlite3_step(qos.get()) == SQLITE_ROW) {
      const auto known = place_.find(sqlite3_column_int64(qos.get(), 0));
      if (known != place_.end()) channels_[known->second].metadata["offered_qos_profiles"] = text_of(qos.get(), 1);
    }
    return {};
  }

  void read_definitions() {
    const Statement rows = prepare("SELECT topic_type, encoding, encoded_message_definition FROM message_definitions");
    while (rows && sqlite3_step(rows.get()) == SQLITE_ROW) {
      ++definitions_;
      const std::string type = text_of(rows.get(), 0);
      for (LogChannel& channel : channels_) {
        if (channel.schema != type) continue;
        channel.schema_encoding = text_of(rows.get(), 1);
        channel.schema_data = text_of(rows.get(), 2);
      }
    }
  }

  // All rows in ascending order. Where the library stops at a damaged page, the next row that it reads again is found
  // by doubling the distance, then halving the gap.
  void read_rows() {
    for (const LogChannel& channel : channels_) {
      stamped_.push_back(channel.encoding == "cdr" && ros::starts_with_header(channel.schema, channel.schema_data));
    }
    std::map<sqlite3_int64, std::uint64_t> unknown;
    const Statement rows = prepare("SELECT rowid, topic_id, timestamp FROM messages WHERE rowid >= ?1 ORDER BY rowid");
    std::optional<sqlite3_int64> from = INT64_MIN;
    while (from) {
      sqlite3_reset(rows.get());
      sqlite3_bind_int64(rows.get(), 1, *from);
      sqlite3_int64 last = *from;
      int code = SQLITE_ROW;
      while ((code = sqlite3_step(rows.get())) == SQLITE_ROW) {
        last = sqlite3_column_int64(rows.get(), 0);
        row(last, sqlite3_column_int64(rows.get(), 1), sqlite3_column_int64(rows.get(), 2), unknown);
      }
      if (code == SQLITE_DONE) break;
      const std::string what = reason();
      from = after_damage(std::max<sqlite3_int64>(last, 0));
      damaged(what + " behind message " + std::to_string(std::max<sqlite3_int64>(last, 0)) +
              (from ? "; reading goes on at " + std::to_string(*from) : "; nothing behind it can be read"));
    }
    for (const auto& [topic, count] : unknown) {
      problem("unknown topic", 0,
              std::to_string(count) + " messages on topic number " + std::to_string(topic) +
                  ", which is not declared; left out");
    }
  }

  // The smallest row number above `last` from which the library reads again.
  std::optional<sqlite3_int64> after_damage(sqlite3_int64 last) {
    static constexpr sqlite3_int64 kFurthest = sqlite3_int64{1} << 40;
    const Statement first = prepare("SELECT rowid FROM messages WHERE rowid >= ?1 ORDER BY rowid LIMIT 1");
    const auto reads = [&](sqlite3_int64 row) -> std::optional<sqlite3_int64> {
      sqlite3_reset(first.get());
      sqlite3_bind_int64(first.get(), 1, row);
      const int code = sqlite3_step(first.get());
      if (code == SQLITE_ROW) return sqlite3_column_int64(first.get(), 0);
      if (code == SQLITE_DONE) return INT64_MAX;
      return std::nullopt;
    };
    sqlite3_int64 step = 1;
    std::optional<sqlite3_int64> found;
    while (step < kFurthest && !(found = reads(last + step))) step *= 2;
    if (!found) return std::nullopt;
    sqlite3_int64 bad = last + step / 2, good = last + step;
    while (good - bad > 1) {
      const sqlite3_int64 middle = bad + (good - bad) / 2;
      const auto row = reads(middle);
      if (row) {
        good = middle;
        found = row;
      } else {
        bad = middle;
      }
    }
    return *found == INT64_MAX ? std::nullopt : found;
  }

  void row(sqlite3_int64 number, sqlite3_int64 topic, sqlite3_int64 time,
           std::map<sqlite3_int64, std::uint64_t>& unknown) {
    const auto known = place_.find(topic);
    if (known == place_.end()) {
      ++unknown[topic];
      return;
    }
    const std::string name = "message " + std::to_string(number);
    if (time < 0) return problem("bad message", 0, name + ": negative time; left out");
    if (!open_data(number)) return problem("bad message", 0, name + ": " + reason() + "; left out");
    const auto size = static_cast<std::uint64_t>(sqlite3_blob_bytes(blob_.get()));
    Entry entry;
    entry.arrival = entry.capture = time;
    entry.where = static_cast<std::uint64_t>(number);
    entry.bytes = static_cast<std::uint32_t>(size);
    entry.channel = known->second;
    start_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(size, ros::kHeaderBytes)));
    // The last bytes are reached through all pages of the message, so that a lost page is noticed now.
    std::byte end{};
    if (sqlite3_blob_read(blob_.get(), start_.data(), static_cast<int>(start_.size()), 0) != SQLITE_OK ||
        (size != 0 && sqlite3_blob_read(blob_.get(), &end, 1, static_cast<int>(size) - 1) != SQLITE_OK)) {
      return damaged(name + ": " + reason() + "; left out");
    }
    Bytes start = start_;
    if (is_zstd(start_)) {
      ++compressed_;
      entry.unit = kZstd;
      message_.resize(static_cast<std::size_t>(size));
      if (!read_data(number, message_)) return damaged(name + ": " + reason() + "; left out");
      decompress("zstd", message_, ros::kHeaderBytes, unpacked_);
      start = unpacked_;
    }
    if (stamped_[known->second]) {
      if (const auto stamp = ros::header_stamp(ros::Encoding::kCdr, start)) entry.capture = stamp->ns;
    }
    add(entry);
  }

  bool open_data(sqlite3_int64 row) {
    if (blob_ && sqlite3_blob_reopen(blob_.get(), row) == SQLITE_OK) return true;
    blob_.reset();
    sqlite3_blob* blob = nullptr;
    const int code = sqlite3_blob_open(db_.get(), "main", "messages", "data", row, 0, &blob);
    blob_.reset(blob);
    return code == SQLITE_OK;
  }
  bool read_data(sqlite3_int64 row, std::span<std::byte> out) {
    return open_data(row) && static_cast<std::size_t>(sqlite3_blob_bytes(blob_.get())) == out.size() &&
           (out.empty() || sqlite3_blob_read(blob_.get(), out.data(), static_cast<int>(out.size()), 0) == SQLITE_OK);
  }

  // Damage that the library reports without a place: its own check names the page.
  void damaged(std::string what) {
    if (!damaged_at_) {
      damaged_at_ = 0;
      if (bytes_ <= kMaxChecked) damaged_at_ = damaged_page();
    }
    problem("damaged page", *damaged_at_, std::move(what));
  }
  std::uint64_t damaged_page() {
    const Statement check = prepare("PRAGMA quick_check(20)");
    while (check && sqlite3_step(check.get()) == SQLITE_ROW) {
      const std::string line = text_of(check.get(), 0);
      for (const char* word : {"page ", "Page "}) {
        const std::size_t at = line.find(word);
        if (at == std::string::npos) continue;
        const std::uint64_t page = std::strtoull(line.c_str() + at + 5, nullptr, 10);
        if (page != 0) return (page - 1) * page_;
      }
    }
    return 0;
  }

  const std::string path_;
  std::uint64_t bytes_ = 0, page_ = 0;
  std::unique_ptr<sqlite3, Close> db_;
  std::unique_ptr<sqlite3_blob, Close> blob_;     // closed before the database
  std::map<sqlite3_int64, std::uint32_t> place_;  // topic number -> channel
  std::vector<bool> stamped_;                     // by channel
  std::size_t definitions_ = 0;
  std::uint64_t compressed_ = 0;
  std::optional<std::uint64_t> damaged_at_;
  Buffer start_, message_, unpacked_;
};

}  // namespace

Result<std::unique_ptr<LogReader>> open_rosbag2(const std::string& path, const std::vector<ReleaseRule>& rules) {
  auto reader = std::make_unique<Rosbag2>(path);
  TAKT_RETURN_IF_ERROR(reader->open(rules));
  return std::unique_ptr<LogReader>(std::move(reader));
}

}  // namespace takt::sensors
