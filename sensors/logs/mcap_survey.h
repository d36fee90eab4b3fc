// What an MCAP file holds and where: channels, chunks with their earliest arrival, attachments, metadata, damage.
//
// Two ways to find out. By index: the summary names every chunk, and only what lies between the chunks is looked at, so
// that a file of any size opens at once. By scan: every chunk is unpacked and checked. The index is believed only when
// its CRC holds (or, without a CRC, every chunk's own head agrees) and it adds up with the statistics and the records
// between the chunks; otherwise the file is scanned, and the scan says what is wrong with the index.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sensors/logs/input_file.h"
#include "sensors/logs/log_reader.h"
#include "sensors/logs/mcap_chunk.h"

namespace takt::sensors::mcap {

struct SurveyOptions {
  std::uint64_t max_record_bytes = std::uint64_t{1} << 30;  // larger records and chunks are skipped as damage
  bool use_index = true;
};

// A chunk, or a run of messages outside chunks (then no channel list is kept and nothing is packed).
struct ChunkPlace {
  std::uint64_t offset = 0;  // of the record in the file
  std::uint64_t bytes = 0;   // of the whole record, of the whole run; as far as they lie in the file
  std::int64_t first = 0;    // no message of it arrives earlier
  std::uint64_t unpacked_bytes = 0;
  std::vector<std::uint16_t> channels;  // MCAP ids with messages in it; empty = not known
  bool outside = false;                 // a run of messages outside chunks
  bool scanned = false;                 // its bytes were unpacked and checked before
};

struct SurveySchema {
  std::string name, encoding, data;
};
struct SurveyChannel {
  std::uint16_t schema = 0;
  std::string topic, encoding;
  std::map<std::string, std::string> metadata;
  std::uint64_t messages = 0;
};
struct SurveyAttachment {
  LogAttachment about;
  std::uint64_t offset = 0, bytes = 0;  // of the record's content
};

// Arrivals are log times, changed by the rules of their topic.
class ArrivalRules {
 public:
  ArrivalRules() = default;
  explicit ArrivalRules(std::vector<ReleaseRule> rules) : rules_(std::move(rules)) {}
  [[nodiscard]] bool empty() const { return rules_.empty(); }
  [[nodiscard]] std::vector<std::size_t> of(const std::string& topic) const;
  // moved: counted per rule when given.
  [[nodiscard]] std::int64_t arrival(const std::vector<std::size_t>& rules, std::int64_t log_time, std::int64_t capture,
                                     std::vector<std::uint64_t>* moved = nullptr) const;
  [[nodiscard]] std::vector<std::string> notes(const std::vector<std::uint64_t>& moved) const;
  [[nodiscard]] std::size_t size() const { return rules_.size(); }

 private:
  std::vector<ReleaseRule> rules_;
};

struct Survey {
  std::map<std::uint16_t, SurveySchema> schemas;
  std::map<std::uint16_t, SurveyChannel> channels;
  std::vector<ChunkPlace> chunks;  // in file order
  std::vector<SurveyAttachment> attachments;
  std::vector<LogMetadata> metadata;
  std::vector<LogProblem> problems;
  std::vector<std::uint64_t> moved;  // messages per rule that arrive later than the log says
  std::optional<std::pair<std::int64_t, std::int64_t>> span;
  std::string profile, library;
  bool by_index = false;
};

// At most this many problems are listed: a hostile file may hold one per byte, a person reads the first ones.
void add_problem(std::vector<LogProblem>& problems, std::string kind, std::uint64_t offset, std::string detail);

// kInput only for a file that became unreadable; everything else is a problem of the survey. Rules need every capture
// stamp, so with rules the file is scanned.
Result<Survey> survey(const InputFile& file, const ArrivalRules& rules, const SurveyOptions& options);

}  // namespace takt::sensors::mcap
