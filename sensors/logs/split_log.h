// Recordings that consist of several files, and packed ones.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sensors/logs/log_reader.h"

namespace takt::sensors {

// One part of a log under the name that people see.
struct LogPart {
  std::string name;
  std::unique_ptr<LogReader> reader;
};

// Parts that may overlap in time, as one log: channels of equal topic, type and encoding become one; messages come in
// the order of log_reader.h, equal ones by part. `notes` and `problems` are told with those of the parts.
std::unique_ptr<LogReader> merge_parts(std::vector<LogPart> parts, std::vector<std::string> notes,
                                       std::vector<LogProblem> problems);

// A folder holds a file of rosbag2: *.db3 or *.mcap, packed or not.
bool is_rosbag2_folder(const std::string& folder);
// A folder as rosbag2 writes it: all *.db3 and *.mcap files, packed ones (.zstd) too; metadata.yaml is not needed.
// Parts that cannot be read are problems as long as one can.
Result<std::unique_ptr<LogReader>> open_rosbag2_folder(const std::string& folder,
                                                       const std::vector<ReleaseRule>& rules);

// A log packed as a whole with zstd: unpacked into a temporary file (TMPDIR), which disappears with the reader.
// kEnvironment when there is no room for it.
Result<std::unique_ptr<LogReader>> open_zstd_log(const std::string& path, const std::vector<ReleaseRule>& rules);

}  // namespace takt::sensors
