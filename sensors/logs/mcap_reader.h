// Reads MCAP files, whole or damaged (docs/log_format.md, "Reading").
//
// With a sound summary a file opens without being read: message counts are those of its statistics, and damage inside
// chunks is found when they are unpacked. Otherwise, and whenever rules are given (they need every capture stamp), the
// file is scanned once from front to back: counts, span and problems are exact from the start.
//
// Either way messages come in the total order of log_reader.h by merging chunks: a chunk is unpacked when its earliest
// message may be due and freed after its last. Memory: the chunks that overlap in time, at most `cache_bytes` of them
// (one at least; those over the limit are unpacked again when they are due), and about a hundred bytes per chunk.
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
  bool scan = false;  // even where the index would do: all damage is known at open
};

// kInput: missing, unreadable, no MCAP, nothing recoverable (the message says what was found).
Result<std::unique_ptr<LogReader>> open_mcap(const std::string& path, const std::vector<ReleaseRule>& rules = {},
                                             const McapReaderOptions& options = {});

}  // namespace takt::sensors
