// What the sub-verbs of `takt log` share.
#pragma once

#include <optional>
#include <string>

#include "pipeline/app/app.h"
#include "runtime/base/time.h"
#include "sensors/logs/log_tools.h"

namespace takt::app {

void add_log_info(CLI::App& log, Command& chosen);
void add_log_doctor(CLI::App& log, Command& chosen);
void add_log_copies(CLI::App& log, Command& chosen);  // recover, convert, cut, merge, filter
void add_log_export(CLI::App& log, Command& chosen);

// "" = none; "12.5" = seconds after `begin`; "@1700000000.5" = seconds of the log's clock. kUsage for anything else.
Result<std::optional<SensorTime>> log_time(const std::string& text, std::optional<SensorTime> begin);

// A progress line with rate and time left on a terminal; false once the user wants to stop.
class LogLine {
 public:
  LogLine(std::string label, bool quiet);
  bool operator()(std::uint64_t done, std::uint64_t total, std::uint64_t bytes);

 private:
  Progress progress_;
  HostTime begin_;
};

}  // namespace takt::app
