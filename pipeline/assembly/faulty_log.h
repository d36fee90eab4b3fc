// A log as it would be had its sensors failed: stands between the log and the feeder.
#pragma once

#include <memory>

#include "pipeline/assembly/fault_plan.h"
#include "sensors/logs/log_reader.h"

namespace takt::pipeline {

// Messages come in the order of their changed arrivals; notes() says how many each fault touched. `faults` is copied.
std::unique_ptr<sensors::LogReader> with_sensor_faults(std::unique_ptr<sensors::LogReader> log, const sensors::Rig& rig,
                                                       std::vector<SensorFault> faults);

}  // namespace takt::pipeline
