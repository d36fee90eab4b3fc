// Reads rosbag2 recordings in SQLite (.db3) through libsqlite3: one file of a recording; split_log.h merges several.
// Only the tables `topics` and `messages` are needed; message definitions are used where they exist, metadata.yaml
// never.
//
// Opening walks over all rows once and reads the first bytes of each message. Rows on damaged pages are left out, the
// ones behind them are read. Messages that were compressed one by one (zstd) are unpacked when they are due.
//
// Arrival is the record time; capture is header.stamp where the type starts with a header, else the record time.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sensors/logs/log_reader.h"

namespace takt::sensors {

inline constexpr std::string_view kSqliteMagic{"SQLite format 3\0", 16};

// kInput: missing, unreadable, another kind of database, nothing recoverable (the message says what was found).
Result<std::unique_ptr<LogReader>> open_rosbag2(const std::string& path, const std::vector<ReleaseRule>& rules = {});

}  // namespace takt::sensors
