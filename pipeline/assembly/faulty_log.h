// A log as it would be had its sensors failed: stands between the log and the feeder.
#pragma once

#include <memory>

#include "pipeline/assembly/fault_plan.h"
#include "sensors/logs/log_reader.h"

namespace takt::pipeline {

// Messages come in the order of their changed arrivals. `faults` is copied; `touched`, where given, counts the messages
// that each of them changed since the last rewind, and must outlive the log.
std::unique_ptr<sensors::LogReader> with_sensor_faults(std::unique_ptr<sensors::LogReader> log, const sensors::Rig& rig,
                                                       std::vector<SensorFault> faults,
                                                       std::vector<std::uint64_t>* touched = nullptr);

}  // namespace takt::pipeline
