// Reads ROS 1 bags, format 2.0 (http://wiki.ros.org/Bags/Format/2.0): chunks without compression, bz2 or lz4; with or
// without index.
//
// Opening scans the file once from front to back: every chunk is unpacked, every message gets an entry in an index. The
// bag's own index serves as a check only, so a bag that was never closed reads like any other. After a record whose
// lengths make no sense, reading goes on at the next chunk, found by its bytes.
//
// Arrival is the record time; capture is header.stamp where the type starts with a header, else the record time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sensors/logs/log_reader.h"

namespace takt::sensors {

inline constexpr std::string_view kRos1BagMagic = "#ROSBAG V2.0\n";

struct Ros1BagOptions {
  std::uint64_t cache_bytes = std::uint64_t{64} << 20;     // unpacked chunks kept (one at least)
  std::uint64_t max_chunk_bytes = std::uint64_t{1} << 30;  // larger records and chunks are skipped as damage
};

// kInput: missing, unreadable, another version, encrypted, nothing recoverable (the message says what was found).
Result<std::unique_ptr<LogReader>> open_ros1_bag(const std::string& path, const std::vector<ReleaseRule>& rules = {},
                                                 const Ros1BagOptions& options = {});

}  // namespace takt::sensors
