// records.mcap and results.mcap: what a run produced, for viewers and for takt itself.
//
// records.mcap   /jobs/STAGE/takt   takt.JobRecord         /jobs/STAGE     takt.JobMetrics (JSON, for plots)
// results.mcap   TOPIC/takt         takt.ObjectList, takt.TrackList
//                TOPIC              foxglove.SceneUpdate   TOPIC/image     foxglove.ImageAnnotations
//                /truth/takt        takt.Truth             /truth          foxglove.SceneUpdate
//                /tf                foxglove.FrameTransforms, the rig's, beside every track list
//                attachment run.json, metadata takt.run
// TOPIC is the stage's topic. Log time is the publication in sensor time, publish time the stamp the content refers to.
#pragma once

#include <string>

#include "pipeline/report/run_data.h"
#include "runtime/base/status.h"
#include "sensors/logs/log_messages.h"

namespace takt::pipeline {

// One truth message of a log; classes outside the taxonomy become unknown.
TruthFrame truth_frame(const sensors::log::Truth& message);

// Atomically. kEnvironment: disk full, rights.
Status write_records_mcap(const RunData& run, const std::string& path);
Status write_results_mcap(const RunData& run, const std::string& path);

// Fill records; objects, tracks and truth. `run` holds everything else already. kInput: missing, damaged, or not of
// this run.
Status read_records_mcap(RunData& run, const std::string& path);
Status read_results_mcap(RunData& run, const std::string& path);

}  // namespace takt::pipeline
