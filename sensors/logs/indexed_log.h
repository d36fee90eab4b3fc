// What readers of different formats share once every message has an entry in an index: release rules, total order,
// selection, listing of problems. A format fills channels_ and entries_, then calls arrange().
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sensors/logs/log_reader.h"

namespace takt::sensors {

class IndexedLog : public LogReader {
 public:
  [[nodiscard]] const std::vector<LogChannel>& channels() const override { return channels_; }
  [[nodiscard]] std::optional<std::pair<SensorTime, SensorTime>> span() const override;
  Result<std::optional<LogMessage>> next() override;
  void select(const std::vector<std::string>& topics) override;
  void rewind() override;
  [[nodiscard]] const std::vector<LogProblem>& problems() const override { return problems_; }
  [[nodiscard]] std::vector<std::string> notes() const override { return notes_; }

 protected:
  // One message: where it lies and its place in the order.
  struct Entry {
    std::int64_t arrival = 0;
    std::int64_t capture = 0;
    std::uint64_t where = 0;  // the format's own: offset or row
    std::uint32_t bytes = 0;
    std::uint32_t unit = 0;     // the format's own: chunk
    std::uint32_t channel = 0;  // index into channels_
    std::uint32_t index = 0;    // in its channel, file order; set by add()
  };

  // Appends the entry and counts it in its channel.
  void add(Entry entry);
  void problem(std::string kind, std::uint64_t offset, std::string detail);
  // Applies the rules, sorts, selects everything. channels_ in ascending order of ids.
  void arrange(const std::vector<ReleaseRule>& rules);
  // Bytes of a message, valid until the next call.
  virtual Result<std::span<const std::byte>> fetch(const Entry& entry) = 0;

  std::vector<LogChannel> channels_;
  std::vector<Entry> entries_;
  std::vector<std::string> notes_;

 private:
  static constexpr std::size_t kMaxProblems = 1000;
  std::vector<LogProblem> problems_;
  std::vector<bool> selected_;          // by channel
  std::vector<std::uint64_t> indices_;  // next index, by channel
  std::size_t next_ = 0;
};

}  // namespace takt::sensors
