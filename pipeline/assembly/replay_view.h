// Which part of a log is replayed, under which names and in which time: everything between the log's reader and the
// feeder. What comes out is a function of the log, the rig and these choices.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/report/run_data.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "sensors/logs/log_reader.h"
#include "sensors/rig/rig.h"
#include "sensors/sync/clock_check.h"

namespace takt::pipeline {

struct ReplayView {
  std::string start, end;            // "" = of the log; seconds from its first believable arrival, or ISO 8601 (UTC)
  std::optional<SensorTime> seek;    // begins here instead of at `start`, within the window
  std::vector<std::string> topics;   // shell patterns; none = all
  std::vector<std::string> exclude;  // shell patterns
  std::vector<std::pair<std::string, std::string>> remap;  // topic in the log -> topic of the rig
};

// "12.5" is `origin` + 12.5 s; "2024-05-01T12:00:00.5Z" is itself (without Z, too, it is UTC). kUsage otherwise.
Result<SensorTime> parse_replay_time(const std::string& text, SensorTime origin);

struct OpenedReplay {
  std::unique_ptr<sensors::LogReader> log;  // of the wanted topics, under the rig's names, in the window
  SensorTime first;                         // where relative times count from
  std::vector<SensorSource> sources;        // by sensor of the rig
  std::vector<sensors::ClockFinding> findings;
  std::vector<std::string> options;   // of `takt replay`, that give the same once more; a seek as --start
  std::vector<std::string> notes;     // what was done to stamps and topics, in words
  std::vector<std::string> excluded;  // topics of the rig that were left out by choice
};

// Checks the clocks of `topics` (of the rig), estimates the map of every sensor with a clock of its own, and opens the
// log. kInput: unreadable, a topic has no messages, a device clock cannot be mapped. kUsage: the choices leave nothing, or a
// pattern matches no topic of the rig.
Result<OpenedReplay> open_replay(const std::string& path, const sensors::Rig& rig,
                                 const std::vector<std::string>& topics, const ReplayView& view);

}  // namespace takt::pipeline
