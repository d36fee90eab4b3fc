// A data set read as a log: a format lists messages with a function that makes the bytes of each on demand (as the
// foxglove.* or takt.* message that the decoders know), and says what was wrong. Used by kitti, view_of_delft, nuscenes
// and the packet formats.
#pragma once

#include <array>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sensors/logs/indexed_log.h"
#include "sensors/logs/log_messages.h"

namespace takt::sensors {

// Called for damage: kind, byte offset (or 0), what and where.
using ReportProblem = std::function<void(std::string kind, std::uint64_t offset, std::string detail)>;

class DatasetLog final : public IndexedLog {
 public:
  using Make = std::function<Result<std::string>()>;

  // format: as it is called in docs/formats.md; path: what was opened.
  DatasetLog(std::string format, std::string path) : format_(std::move(format)), path_(std::move(path)) {}

  // A channel of protobuf messages of this schema (encode.h); its id. One per topic.
  std::uint32_t channel(const std::string& topic, std::string_view schema);
  // make() runs each time the message is read. When it fails, the message is left out and becomes a problem.
  void message(std::uint32_t channel, SensorTime capture, SensorTime arrival, Make make);
  void note(std::string text) { notes_.push_back(std::move(text)); }
  void damage(std::string kind, std::uint64_t offset, std::string detail) {
    problem(std::move(kind), offset, std::move(detail));
  }
  [[nodiscard]] ReportProblem report() {
    return [this](std::string kind, std::uint64_t offset, std::string detail) {
      problem(std::move(kind), offset, std::move(detail));
    };
  }
  // Text that notes() asks for each time, for figures that grow while reading; "" = nothing to say.
  void running_note(std::function<std::string()> text) { running_.push_back(std::move(text)); }

  // Orders everything. kInput when nothing can be read; the message names the first problem.
  Status finish(const std::vector<ReleaseRule>& rules);
  // The same where an empty log is no fault.
  void arrange_empty(const std::vector<ReleaseRule>& rules) { arrange(rules); }

  Result<std::optional<LogMessage>> next() override;
  [[nodiscard]] std::vector<std::string> notes() const override;
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> properties() const override {
    return {{"format", format_}};
  }

 protected:
  Result<std::span<const std::byte>> fetch(const Entry& entry) override;

 private:
  std::string format_, path_;
  std::vector<Make> makers_;
  std::vector<std::function<std::string()>> running_;
  std::set<std::uint64_t> failed_;  // entries already reported
  std::uint64_t current_ = 0;
  std::string buffer_;
};

// A data set may hold several sequences: FOLDER#SEQUENCE names one.
struct DatasetPath {
  std::string folder, sequence;  // sequence "" = not named
};
DatasetPath split_dataset_path(const std::string& path);

// What the reader does when the set holds several sequences and none (or an unknown one) was named.
Error choose_sequence(const DatasetPath& path, const std::vector<std::string>& sequences);

// Names of the regular files (or folders) of a folder with this ending, without the ending, sorted.
std::vector<std::string> list_files(const std::string& folder, std::string_view ending);
std::vector<std::string> list_folders(const std::string& folder);

// Whole rows of a file of `row` bytes each: a rest is a problem ("truncated cloud") and left out; 0 and a problem when
// the file is missing or larger than 1 GiB.
std::uint64_t whole_rows(const std::string& path, std::uint64_t row, const ReportProblem& report);

// Width and height of a PNG or JPEG from its first bytes; {0, 0} when they do not say.
std::array<std::uint32_t, 2> picture_size(std::string_view bytes);

// foxglove.CompressedImage of a PNG or JPEG file, bytes kept.
Result<std::string> picture_message(const std::string& path, SensorTime stamp, std::string_view frame_id);

}  // namespace takt::sensors
