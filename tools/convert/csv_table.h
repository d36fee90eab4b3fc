// A comma-separated table with a header line, read whole. Shared by the converters.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/base/status.h"

namespace takt::tools {

// A table with a header line. Cells are looked up by column name; the first error stays.
class CsvTable {
 public:
  static Result<CsvTable> load(const std::string& path) {
    TAKT_ASSIGN(const std::string text, read_file(path));
    CsvTable table;
    table.path_ = path;
    std::size_t begin = 0;
    while (begin < text.size()) {
      std::size_t end = text.find('\n', begin);
      if (end == std::string::npos) end = text.size();
      const std::size_t last = end > begin && text[end - 1] == '\r' ? end - 1 : end;
      std::vector<std::string> cells;
      for (std::size_t at = begin; at <= last;) {
        const std::size_t comma = std::min(text.find(',', at), last);
        cells.push_back(text.substr(at, comma - at));
        at = comma + 1;
      }
      if (table.columns_.empty()) {
        for (std::size_t i = 0; i < cells.size(); ++i) table.columns_[cells[i]] = i;
      } else {
        table.rows_.push_back(std::move(cells));
      }
      begin = end + 1;
    }
    return table;
  }
  [[nodiscard]] std::size_t rows() const { return rows_.size(); }
  std::string text(std::size_t row, const std::string& column) {
    const auto found = columns_.find(column);
    if (found == columns_.end() || found->second >= rows_[row].size()) {
      note(row, "has no column '" + column + "'");
      return {};
    }
    return rows_[row][found->second];
  }
  double number(std::size_t row, const std::string& column) {
    const std::string cell = text(row, column);
    double value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc() || end != cell.data() + cell.size() || !std::isfinite(value)) {
      note(row, "column '" + column + "': '" + cell + "' is no number");
      return 0;
    }
    return value;
  }
  // Whole numbers that a double would round: nanosecond stamps.
  std::int64_t integer(std::size_t row, const std::string& column) {
    const std::string cell = text(row, column);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc() || end != cell.data() + cell.size()) {
      note(row, "column '" + column + "': '" + cell + "' is no whole number");
      return 0;
    }
    return value;
  }
  // Says that a row is wrong.
  void refuse(std::size_t row, const std::string& what) { note(row, what); }
  [[nodiscard]] Status status() const {
    if (!error_.empty()) return fail(Code::kInput, error_);
    return {};
  }

 private:
  void note(std::size_t row, const std::string& what) {
    if (error_.empty()) error_ = path_ + ":" + std::to_string(row + 2) + ": " + what;
  }
  std::string path_;
  std::map<std::string, std::size_t> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::string error_;
};

}  // namespace takt::tools
