// Topics, queues and chunks of a run: how many samples and outputs wait or are held at most, computed from its tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/assembly/pipeline_file.h"
#include "runtime/transport/transport.h"
#include "scheduler/model/modes.h"

namespace takt::pipeline {

inline constexpr const char* kRelay = "relay";          // subscriber that feeds the export topics
inline constexpr const char* kRecorder = "recorder";    // subscriber of every stage topic
inline constexpr const char* kStatusTopic = "/status";  // the watchdog's

std::string sensor_topic(const sensors::RigSensor& sensor);
std::string export_topic(const std::string& topic);
// Of a stage's input: the name of its subscriber.
std::string input_name(const PipelineConfig& config, std::size_t stage, std::size_t input);

// A: how many samples of a sensor may wait beyond the last latch of its slowest consumer. Everything that can arrive
// until that consumer's next latch, one partial period at each end, one more so that the feeder decodes meanwhile. One
// figure per topic, since a fast consumer's queue, too, fills up to what the slowest lets the feeder publish.
std::uint32_t samples_ahead(const PipelineConfig& config, const std::vector<sched::ModeTable>& modes,
                            std::size_t sensor);
// The most jobs of a stage between two of its consumer's.
std::uint32_t most_jobs(const std::vector<sched::ModeTable>& modes, std::size_t stage);

// The transport that tables need. `stage_output_bytes` by stage; `lossless`: the recorder paces the run (lockstep);
// `run`: token of its topics; `exported`: with an export topic for every output and the status.
transport::TransportSpec plan_transport(const PipelineConfig& config, const std::vector<sched::ModeTable>& modes,
                                        const std::vector<std::uint64_t>& stage_output_bytes,
                                        transport::Backend backend, bool lossless, std::uint64_t run,
                                        bool exported = false);

}  // namespace takt::pipeline
