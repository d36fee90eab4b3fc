// What a run reads in its log before and behind the samples that it is fed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/assembly/pipeline_file.h"
#include "pipeline/report/run_data.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "sensors/logs/log_reader.h"

namespace takt::pipeline {

// Table time 0 in sensor time. A phase-locked sensor decides it: its stamps then fall where the table expects them.
// `hyperperiod`: of the mode in which the run begins. `log` is rewound. kInput: it has no messages of the rig.
Result<SensorTime> table_origin(sensors::LogReader& log, const PipelineConfig& config, Duration hyperperiod);

// Arrivals of every sensor's messages in table time, ascending, by sensor. `log` is rewound.
Result<std::vector<std::vector<std::int64_t>>> read_arrivals(sensors::LogReader& log, const sensors::Rig& rig,
                                                             SensorTime origin);

// Ground truth by stamp; empty where the log has none.
Result<std::vector<TruthFrame>> read_truth(const std::string& log_path);

}  // namespace takt::pipeline
