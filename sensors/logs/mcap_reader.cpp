#include "sensors/logs/mcap_reader.h"

#include <algorithm>
#include <compare>
#include <cstring>

#include "sensors/logs/input_file.h"
#include "sensors/logs/mcap_survey.h"
#include "sensors/logs/ros_messages.h"

namespace takt::sensors {
namespace {

using mcap::Buffer;
using mcap::Bytes;
using mcap::ChunkPlace;
using mcap::Op;

// The total order of log_reader.h. Chunk and offset stand for the index in the channel: both count in file order.
struct Key {
  std::int64_t arrival = INT64_MIN;
  std::uint32_t topic = 0;  // rank of the topic by name
  std::int64_t capture = INT64_MIN;
  std::uint32_t channel = 0;  // place in channels(), ascending like the ids
  std::uint64_t chunk = 0;    // its offset in the file
  std::uint64_t offset = 0;   // in the unpacked chunk
  friend auto operator<=>(const Key&, const Key&) = default;
};

struct Entry {
  std::int64_t arrival = 0;
  std::int64_t capture = 0;
  std::uint64_t offset = 0;  // of the data, in the unpacked chunk
  std::uint32_t bytes = 0;
  std::uint32_t sequence = 0;
  std::uint16_t channel = 0;  // place in channels()
  std::uint16_t topic = 0;    // rank
};

// A chunk that may hold the next message.
struct OpenChunk {
  std::size_t place = 0;  // in the survey
  Key due;                // of the next message; before the chunk was unpacked, a lower bound of it
  bool loaded = false;
  bool seen = false;  // was loaded before
  Buffer bytes;
  std::vector<Entry> entries;  // in order
  std::size_t next = 0;
  [[nodiscard]] std::uint64_t memory() const { return bytes.size + entries.size() * sizeof(Entry); }
};

class McapReader final : public LogReader {
 public:
  McapReader(std::string path, const McapReaderOptions& options) : path_(std::move(path)), options_(options) {}

  Status open(const std::vector<ReleaseRule>& rules) {
    TAKT_RETURN_IF_ERROR(file_.open(path_));
    if (file_.size() == 0) return fail(Code::kInput, path_ + ": is empty");
    Buffer magic;
    const auto front = magic.resize(static_cast<std::size_t>(std::min<std::uint64_t>(file_.size(), 8)));
    TAKT_RETURN_IF_ERROR(file_.read(0, front));
    if (!mcap::looks_like({reinterpret_cast<const char*>(front.data()), front.size()})) {
      return fail(Code::kInput, path_ + ": is no MCAP file (first bytes are not 89 4D 43 41 50 30 0D 0A)");
    }
    rules_ = mcap::ArrivalRules(rules);
    TAKT_ASSIGN(survey_, mcap::survey(file_, rules_, {options_.max_record_bytes, !options_.scan}));
    if (!survey_.problems.empty() && survey_.channels.empty()) {
      const LogProblem& first = survey_.problems.front();
      return fail(Code::kInput, path_ + ": nothing can be recovered: " + first.kind + " at byte " +
                                    std::to_string(first.offset) + " (" + first.detail + ")");
    }
    list_channels();
    selected_.assign(channels_.size(), true);
    rewind();
    return {};
  }

  const std::vector<LogChannel>& channels() const override { return channels_; }
  const std::vector<LogProblem>& problems() const override { return survey_.problems; }
  std::vector<std::string> notes() const override { return rules_.notes(survey_.moved); }

  std::optional<std::pair<SensorTime, SensorTime>> span() const override {
    if (!survey_.span) return std::nullopt;
    return std::pair(SensorTime{survey_.span->first}, SensorTime{survey_.span->second});
  }

  void select(const std::vector<std::string>& topics) override {
    selected_.assign(channels_.size(), topics.empty());
    for (std::size_t i = 0; i < channels_.size(); ++i) {
      if (std::find(topics.begin(), topics.end(), channels_[i].topic) != topics.end()) selected_[i] = true;
    }
    rewind();
  }

  void rewind() override {
    indices_.assign(channels_.size(), 0);
    last_.reset();
    reset_merge();
  }

  Result<std::optional<LogMessage>> next() override {
    if (active_ && active_->loaded && active_->next == active_->entries.size()) retire();
    for (;;) {
      if (!open_.empty() && (!active_ || open_.front()->due < active_->due)) swap_active(pop());
      if (waiting_next_ < waiting_.size()) {
        const ChunkPlace& place = survey_.chunks[waiting_[waiting_next_]];
        if (!active_ || place.first <= active_->due.arrival) {
          const Key bound{.arrival = place.first};
          auto chunk = fresh();
          chunk->place = waiting_[waiting_next_++];
          chunk->due = bound;
          swap_active(std::move(chunk));
        }
      }
      if (!active_) return finish();
      if (active_->loaded) return deliver();
      TAKT_RETURN_IF_ERROR(load());
    }
  }

  std::vector<LogAttachment> attachments() const override {
    std::vector<LogAttachment> out;
    for (const auto& attachment : survey_.attachments) out.push_back(attachment.about);
    return out;
  }

  Result<std::string> read_attachment(std::size_t index) override {
    if (index >= survey_.attachments.size()) {
      return fail(Code::kInternal, path_ + ": has no attachment " + std::to_string(index));
    }
    const auto& attachment = survey_.attachments[index];
    Buffer buffer;
    const auto content = buffer.resize(static_cast<std::size_t>(attachment.bytes));
    TAKT_RETURN_IF_ERROR(file_.read(attachment.offset, content));
    const Bytes body = Bytes(content).first(content.size() - 4);
    ByteCursor crc(Bytes(content).last(4));
    const auto stored = crc.take<std::uint32_t>();
    ByteCursor cursor(body);
    cursor.bytes(16);
    cursor.text();
    cursor.text();
    const Bytes data = cursor.bytes(cursor.take<std::uint64_t>());
    if (!cursor.ok() || (stored != 0 && stored != mcap::crc_of(0, body))) {
      return fail(Code::kInput, path_ + ": attachment '" + attachment.about.name + "' at byte " +
                                    std::to_string(attachment.offset) + " is damaged");
    }
    return std::string(reinterpret_cast<const char*>(data.data()), data.size());
  }

  std::vector<LogMetadata> metadata() const override { return survey_.metadata; }

  std::vector<std::pair<std::string, std::string>> properties() const override {
    std::uint64_t chunks = 0, runs = 0;
    for (const ChunkPlace& place : survey_.chunks) ++(place.outside ? runs : chunks);
    std::vector<std::pair<std::string, std::string>> out{
        {"format", "MCAP"},
        {"profile", survey_.profile},
        {"library", survey_.library},
        {"bytes", std::to_string(file_.size())},
        {"chunks", std::to_string(chunks)},
        {"read by", survey_.by_index ? "index" : "scan"},
    };
    if (runs != 0) out.emplace_back("messages outside chunks", "yes");
    if (repeats_ != 0) out.emplace_back("chunks unpacked again (they overlap in time)", std::to_string(repeats_));
    return out;
  }

 private:
  static bool later(const std::unique_ptr<OpenChunk>& a, const std::unique_ptr<OpenChunk>& b) {
    return b->due < a->due;
  }

  void problem(std::string kind, std::uint64_t offset, std::string detail) {
    mcap::add_problem(survey_.problems, std::move(kind), offset, std::move(detail));
  }

  void list_channels() {
    std::vector<std::string> topics;
    for (const auto& [id, channel] : survey_.channels) {
      place_.resize(std::size_t{id} + 1, kNoPlace);
      place_[id] = static_cast<std::uint32_t>(channels_.size());
      const auto schema = survey_.schemas.find(channel.schema);
      const mcap::SurveySchema none;
      const mcap::SurveySchema& s = schema == survey_.schemas.end() ? none : schema->second;
      channels_.push_back(
          {id, channel.topic, channel.encoding, s.name, channel.messages, s.encoding, s.data, channel.metadata});
      topics.push_back(channel.topic);
      rules_of_.push_back(rules_.of(channel.topic));
      stamped_.push_back(ros::stamped_encoding(channel.encoding, s.name, s.data));
    }
    std::sort(topics.begin(), topics.end());
    for (const LogChannel& channel : channels_) {
      rank_.push_back(
          static_cast<std::uint16_t>(std::lower_bound(topics.begin(), topics.end(), channel.topic) - topics.begin()));
    }
  }

  [[nodiscard]] bool wanted(const ChunkPlace& place) const {
    if (place.channels.empty()) return place.first != INT64_MAX;  // INT64_MAX: scanned, nothing in it
    return std::any_of(place.channels.begin(), place.channels.end(), [&](std::uint16_t id) {
      return id < place_.size() && place_[id] != kNoPlace && selected_[place_[id]];
    });
  }

  void reset_merge() {
    active_.reset();
    open_.clear();
    loaded_bytes_ = 0;
    waiting_.clear();
    waiting_next_ = 0;
    for (std::size_t i = 0; i < survey_.chunks.size(); ++i) {
      if (wanted(survey_.chunks[i])) waiting_.push_back(i);
    }
    std::stable_sort(waiting_.begin(), waiting_.end(),
                     [&](std::size_t a, std::size_t b) { return survey_.chunks[a].first < survey_.chunks[b].first; });
  }

  // Buffers are used again: chunk after chunk without fresh pages.
  std::unique_ptr<OpenChunk> fresh() {
    if (spare_.empty()) return std::make_unique<OpenChunk>();
    auto chunk = std::move(spare_.back());
    spare_.pop_back();
    return chunk;
  }
  void unload(OpenChunk& chunk) {
    if (chunk.loaded) loaded_bytes_ -= chunk.memory();
    chunk.loaded = false;
    chunk.entries.clear();
    chunk.next = 0;
  }
  void retire() {
    unload(*active_);
    active_->seen = false;
    active_->bytes.size = 0;
    if (spare_.size() < 4) spare_.push_back(std::move(active_));
    active_.reset();
  }
  void push(std::unique_ptr<OpenChunk> chunk) {
    open_.push_back(std::move(chunk));
    std::push_heap(open_.begin(), open_.end(), later);
  }
  std::unique_ptr<OpenChunk> pop() {
    std::pop_heap(open_.begin(), open_.end(), later);
    auto chunk = std::move(open_.back());
    open_.pop_back();
    return chunk;
  }
  void swap_active(std::unique_ptr<OpenChunk> chunk) {
    if (active_) push(std::move(active_));
    active_ = std::move(chunk);
  }

  [[nodiscard]] Key key(const OpenChunk& chunk, const Entry& entry) const {
    return {entry.arrival, entry.topic, entry.capture, entry.channel, survey_.chunks[chunk.place].offset, entry.offset};
  }

  Result<std::optional<LogMessage>> deliver() {
    OpenChunk& chunk = *active_;
    const Entry& entry = chunk.entries[chunk.next++];
    if (survey_.by_index) last_ = chunk.due;
    LogMessage message;
    message.channel = &channels_[entry.channel];
    message.index = indices_[entry.channel]++;
    message.arrival = {entry.arrival};
    message.capture = {entry.capture};
    message.bytes = chunk.bytes.bytes().subspan(static_cast<std::size_t>(entry.offset), entry.bytes);
    message.sequence = entry.sequence;
    if (chunk.next < chunk.entries.size()) chunk.due = key(chunk, chunk.entries[chunk.next]);
    return std::optional(message);
  }

  // Fills the active chunk; it is retired when nothing of it is wanted.
  Status load() {
    OpenChunk& chunk = *active_;
    ChunkPlace& place = survey_.chunks[chunk.place];
    TAKT_ASSIGN(const bool there, unpack(place, chunk));
    if (!there) {
      if (active_) retire();
      return {};
    }
    if (chunk.seen) ++repeats_;
    const std::int64_t bound = place.first;
    std::int64_t earliest = INT64_MAX;
    std::uint64_t unknown = 0, bad = 0, stopped = 0;
    const bool resumed = last_ && !survey_.by_index;
    chunk.entries.clear();
    chunk.next = 0;
    const bool whole = mcap::for_each_record(chunk.bytes.bytes(), stopped, [&](Op op, Bytes content, std::uint64_t at) {
      if (op != Op::kMessage) return;
      mcap::MessageHead head;
      Bytes data;
      if (!mcap::parse_message(content, head, data) || head.log_time > INT64_MAX || head.publish_time > INT64_MAX ||
          data.size() > UINT32_MAX) {
        ++bad;
        return;
      }
      const std::uint32_t channel = head.channel < place_.size() ? place_[head.channel] : kNoPlace;
      if (channel == kNoPlace) {
        ++unknown;
        return;
      }
      Entry entry;
      entry.capture = static_cast<std::int64_t>(head.publish_time);
      if (stamped_[channel]) entry.capture = ros::capture_ns(stamped_[channel], data, entry.capture);
      entry.arrival = static_cast<std::int64_t>(head.log_time);
      if (!rules_of_[channel].empty()) {
        entry.arrival = rules_.arrival(rules_of_[channel], entry.arrival, entry.capture);
      }
      entry.offset = at + mcap::kMessageHead;
      entry.bytes = static_cast<std::uint32_t>(data.size());
      entry.sequence = head.sequence;
      entry.channel = static_cast<std::uint16_t>(channel);
      entry.topic = rank_[channel];
      earliest = std::min(earliest, entry.arrival);
      if (!selected_[channel]) return;
      // Delivered before the chunk was given up, or before the index was.
      if (chunk.seen && key(chunk, entry) < chunk.due) return;
      if (resumed && key(chunk, entry) <= *last_) return;
      chunk.entries.push_back(entry);
    });
    if (!place.scanned) {
      if (!whole) problem("bad Chunk", place.offset, "a record at byte " + std::to_string(stopped) + " exceeds it");
      if (bad != 0) problem("bad Message", place.offset, std::to_string(bad) + " messages of the chunk are no good");
      if (unknown != 0) {
        problem("unknown channel", place.offset,
                std::to_string(unknown) + " messages on channels that are not declared; left out");
      }
      if (earliest < bound) {
        return distrust(place.offset, "the chunk holds an earlier message than announced");
      }
      place.scanned = true;
    }
    if (chunk.entries.empty()) {
      retire();
      return {};
    }
    const auto before = [&](const Entry& a, const Entry& b) {
      return a.arrival != b.arrival ? a.arrival < b.arrival : key(chunk, a) < key(chunk, b);
    };
    if (!std::is_sorted(chunk.entries.begin(), chunk.entries.end(), before)) {
      std::sort(chunk.entries.begin(), chunk.entries.end(), before);
    }
    chunk.due = key(chunk, chunk.entries.front());
    chunk.loaded = chunk.seen = true;
    loaded_bytes_ += chunk.memory();
    make_room();
    return {};
  }

  // False: damaged, told, left out; or the index was given up and the merge began anew.
  Result<bool> unpack(const ChunkPlace& place, OpenChunk& chunk) {
    if (place.outside) {
      TAKT_RETURN_IF_ERROR(file_.read(place.offset, chunk.bytes.resize(static_cast<std::size_t>(place.bytes))));
      return true;
    }
    const auto record = packed_.resize(static_cast<std::size_t>(place.bytes));
    TAKT_RETURN_IF_ERROR(file_.read(place.offset, record));
    ByteCursor cursor(record);
    const auto op = static_cast<Op>(cursor.take<std::uint8_t>());
    const auto length = cursor.take<std::uint64_t>();
    mcap::ChunkHead head;
    if (op != Op::kChunk || !mcap::parse_chunk_head(cursor.rest(), head) ||
        head.unpacked_bytes != place.unpacked_bytes ||
        (!place.scanned && (length != place.bytes - mcap::kRecordHead || head.packed.size() != head.packed_bytes))) {
      if (place.scanned) return fail(Code::kInput, path_ + ": was changed while it was being read");
      TAKT_RETURN_IF_ERROR(distrust(place.offset, "no such chunk is there"));
      return false;
    }
    if (!place.scanned && !head.compression.empty() && head.compression != "lz4" && head.compression != "zstd") {
      problem("unknown compression", place.offset,
              "'" + std::string(head.compression.substr(0, 32)) + "'; known: none, lz4, zstd; the chunk is left out");
      return false;
    }
    const std::string error = unpacker_.unpack(head, chunk.bytes);
    if (place.scanned) return true;  // whole or cut: what there is was judged by the scan
    if (!error.empty()) {
      problem("bad Chunk", place.offset, error + "; the chunk is left out");
      return false;
    }
    if (head.crc != 0 && head.crc != mcap::crc_of(0, chunk.bytes.bytes())) {
      problem("bad CRC", place.offset, "chunk of " + std::to_string(chunk.bytes.size) + " bytes; it is left out");
      return false;
    }
    return true;
  }

  // Chunks over the limit are given up, the one due last first; they are unpacked again when they are due.
  void make_room() {
    while (loaded_bytes_ > options_.cache_bytes) {
      OpenChunk* last = nullptr;
      for (const auto& chunk : open_) {
        if (chunk->loaded && (last == nullptr || last->due < chunk->due)) last = chunk.get();
      }
      if (last == nullptr) return;
      unload(*last);
      last->bytes = {};
      last->entries.shrink_to_fit();
    }
  }

  // The index lied: what follows is read by scanning. Messages that should have come before are lost to this pass, and
  // counted at its end.
  Status distrust(std::uint64_t offset, std::string why) {
    std::vector<LogProblem> told = std::move(survey_.problems);
    mcap::add_problem(told, "bad ChunkIndex", offset, std::move(why) + "; the file is scanned instead");
    TAKT_ASSIGN(survey_, mcap::survey(file_, rules_, {options_.max_record_bytes, false}));
    for (LogProblem& found : survey_.problems) {
      mcap::add_problem(told, std::move(found.kind), found.offset, std::move(found.detail));
    }
    survey_.problems = std::move(told);
    // Callers hold pointers to channels: those known stay, with the counts that were found.
    for (LogChannel& channel : channels_) {
      const auto found = survey_.channels.find(static_cast<std::uint16_t>(channel.id));
      channel.messages = found == survey_.channels.end() ? 0 : found->second.messages;
    }
    reset_merge();
    return {};
  }

  // The end: what was announced must have come.
  Result<std::optional<LogMessage>> finish() {
    if (!checked_) {
      checked_ = true;
      std::uint64_t announced = 0, read = 0;
      for (std::size_t i = 0; i < channels_.size(); ++i) {
        if (selected_[i]) announced += channels_[i].messages;
        read += indices_[i];
      }
      if (announced != read && (survey_.problems.empty() || (last_ && !survey_.by_index))) {
        problem(survey_.by_index ? "bad Statistics" : "messages out of order", file_.size(),
                std::to_string(announced) + " messages announced, " + std::to_string(read) + " read");
      }
    }
    return std::optional<LogMessage>();
  }

  static constexpr std::uint32_t kNoPlace = UINT32_MAX;

  const std::string path_;
  const McapReaderOptions options_;
  InputFile file_;
  mcap::ArrivalRules rules_;
  mcap::Survey survey_;
  std::vector<LogChannel> channels_;
  std::vector<std::uint32_t> place_;                   // MCAP id -> place in channels_
  std::vector<std::uint16_t> rank_;                    // of the topic, by channel
  std::vector<std::vector<std::size_t>> rules_of_;     // by channel
  std::vector<std::optional<ros::Encoding>> stamped_;  // by channel: its messages hold their capture stamp
  std::vector<bool> selected_;                         // by channel
  std::vector<std::uint64_t> indices_;                 // next index, by channel
  // merge
  std::vector<std::size_t> waiting_;  // chunks not yet looked into, by earliest arrival
  std::size_t waiting_next_ = 0;
  std::vector<std::unique_ptr<OpenChunk>> open_;  // heap: the one due first in front
  std::unique_ptr<OpenChunk> active_;             // due before all others
  std::vector<std::unique_ptr<OpenChunk>> spare_;
  std::uint64_t loaded_bytes_ = 0;
  std::uint64_t repeats_ = 0;
  std::optional<Key> last_;  // delivered last, while the index may turn out to be wrong
  bool checked_ = false;
  Buffer packed_;
  mcap::Unpacker unpacker_;
};

}  // namespace

Result<std::unique_ptr<LogReader>> open_mcap(const std::string& path, const std::vector<ReleaseRule>& rules,
                                             const McapReaderOptions& options) {
  auto reader = std::make_unique<McapReader>(path, options);
  TAKT_RETURN_IF_ERROR(reader->open(rules));
  return std::unique_ptr<LogReader>(std::move(reader));
}

}  // namespace takt::sensors
