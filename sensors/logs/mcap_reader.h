// Reads MCAP files, whole or damaged (docs/log_format.md, "Reading").
//
// Opening scans the file once from front to back: every chunk is unpacked and checked, every message gets an entry of
// 40 bytes in an index, which is then sorted into the order of log_reader.h. So counts, span and problems are exact
// from the start, and the file's own index (absent after a crash) is not needed. Reading unpacks chunks again; those
// with messages still to come are kept up to `cache_bytes`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sensors/logs/log_reader.h"

namespace takt::sensors {

struct McapReaderOptions {
  std::uint64_t cache_bytes = std::uint64_t{256} << 20;     // unpacked chunks kept (one at least)
  std::uint64_t max_record_bytes = std::uint64_t{1} << 30;  // larger records and chunks are skipped as damage
};

// kInput: missing, unreadable, no MCAP, nothing recoverable (the message says what was found).
Result<std::unique_ptr<LogReader>> open_mcap(const std::string& path, const std::vector<ReleaseRule>& rules = {},
                                             const McapReaderOptions& options = {});

}  // namespace takt::sensors
