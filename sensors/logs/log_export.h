// Pictures and clouds of a log as files that every program opens.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "sensors/logs/log_messages.h"
#include "sensors/logs/log_tools.h"

namespace takt::sensors {

// A PCD file (version 0.7) of the cloud's points: x y z and every other field with a numeric type, in the order and
// with the types of the message; big-endian points are turned. Points that are not finite stay in. kInput: a layout
// that contradicts itself (the cloud's own pose is written as VIEWPOINT, not refused).
Result<std::string> pcd_of(const log::PointCloud& cloud, bool ascii);

// A PNG file: 8-bit colour or grey; 16UC1 (depth) as 16-bit grey with its values unchanged. kInput: an encoding or a
// size that is not understood.
Result<std::string> png_of(const log::RawImage& image);

struct ExportOptions {
  std::vector<std::string> topics, exclude;  // patterns with * and ?; no topics = all
  std::optional<SensorTime> start, end;      // arrivals
  bool ascii = false;                        // PCD as text
  LogProgress progress;
};
struct ExportReport {
  std::map<std::string, std::uint64_t> files;  // by topic
  std::uint64_t bytes = 0;
  std::map<std::string, std::uint64_t> refused;  // messages by reason, "topic: what is wrong"
  std::vector<std::string> other_topics;         // chosen, but neither pictures nor clouds
  std::vector<LogProblem> problems;
};

// FOLDER/topic_with_underscores/INDEX_STAMP.jpg|png|pcd: compressed pictures as they are (by their first bytes), raw
// ones as PNG, clouds as PCD. Protobuf (foxglove.*), CDR and ROS 1 messages. Files are complete or absent.
// kInput: the log cannot be read, or holds nothing to export on the chosen topics. kEnvironment: the disk.
Result<ExportReport> export_log(const std::string& log, const std::string& folder, const ExportOptions& options);

}  // namespace takt::sensors
