// Checked-in output digests: "your bytes equal ours". One file holds one entry per instruction set class.
#pragma once

#include <string>

#include "pipeline/report/run_data.h"
#include "runtime/base/status.h"

namespace takt::pipeline {

// kInput when the file cannot be read or is no digest file: asked before a run, so that a mistake does not cost one.
Status check_digests(const std::string& path);

// Fills TopicDigest::compared of every topic: "equal", "differs", or "NOT COMPARED: reason" when the file has no entry
// for this class, log, schedule, models or JPEG library. kInput when the file cannot be read.
Status compare_digests(RunData& data, const std::string& path);

// Adds or replaces the entry of this run's class.
Status save_digests(const RunData& data, const std::string& path);

}  // namespace takt::pipeline
