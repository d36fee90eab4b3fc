// takt log: look at a recording, mend it, and cut it to size. One sub-verb each; the work is in sensors/logs.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "pipeline/app/app.h"
#include "pipeline/app/verb_log.h"

namespace takt::app {

Result<std::optional<SensorTime>> log_time(const std::string& text, std::optional<SensorTime> begin) {
  if (text.empty()) return std::optional<SensorTime>();
  const bool absolute = text.front() == '@';
  const std::string digits = text.substr(absolute ? 1 : 0);
  const auto bad = [&] {
    return fail(Code::kUsage,
                "'" + text + "' is no time: seconds from the start of the log (12.5) or of its clock (@1700000000.5)");
  };
  // Nanoseconds exactly: a double has no room for them.
  const std::size_t point = digits.find('.');
  const std::string whole = digits.substr(0, point);
  std::string fraction = point == std::string::npos ? "" : digits.substr(point + 1);
  const auto is_number = [](const std::string& s) { return s.find_first_not_of("0123456789") == std::string::npos; };
  if (whole.empty() || whole.size() > 10 || !is_number(whole) || !is_number(fraction)) return bad();
  fraction.resize(9, '0');
  const std::int64_t ns =
      std::stoll(whole) > 9'000'000'000 ? -1 : std::stoll(whole) * 1'000'000'000 + std::stoll(fraction);
  if (ns < 0) return bad();
  if (absolute) return std::optional(SensorTime{ns});
  if (!begin) return fail(Code::kInput, "the log is empty: there is no start to count '" + text + "' from");
  return std::optional(*begin + Duration{ns});
}

LogLine::LogLine(std::string label, bool quiet) : progress_(std::move(label), quiet), begin_(host_now()) {}

bool LogLine::operator()(std::uint64_t done, std::uint64_t total, std::uint64_t bytes) {
  const double seconds = static_cast<double>((host_now() - begin_).ns) * 1e-9;
  const double rate = seconds > 0 ? static_cast<double>(bytes) * 1e-6 / seconds : 0;
  char text[32];
  std::snprintf(text, sizeof text, "%.0f MB/s", rate);
  progress_.update(static_cast<double>(done), static_cast<double>(total), text);
  return !interrupted();
}

void add_log(CLI::App& app, Command& chosen) {
  CLI::App* verb = app.add_subcommand("log", "Look at a recording, mend it, cut it, convert it to MCAP");
  verb->require_subcommand(1);
  add_log_info(*verb, chosen);
  add_log_doctor(*verb, chosen);
  add_log_copies(*verb, chosen);
  add_log_export(*verb, chosen);
}

}  // namespace takt::app
