// A pipeline file with the rig and the board it names: what shall run, on what, from which sensors.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/stages/stage.h"
#include "runtime/base/status.h"
#include "runtime/base/yaml.h"
#include "scheduler/model/model.h"
#include "sensors/rig/rig.h"

namespace takt::pipeline {

// Payload of a sensor topic: its layout, and the bytes its largest message takes.
std::uint32_t payload_schema(sensors::SensorKind kind);
std::uint64_t payload_capacity(const sensors::RigSensor& sensor);

// The perception side of a stage; its scheduling side is Problem::stages[i].
struct StageConfig {
  std::string name;
  std::string type;
  std::vector<StageConnection> connections;  // by input
  std::vector<bool> required;                // by input: a job without it does not run (class `missing`)
  [[nodiscard]] std::string topic() const { return "/stage/" + name; }
};

struct PipelineConfig {
  std::string name;
  std::string file, rig_file, board_file;
  std::shared_ptr<const sensors::Rig> rig;
  sched::Problem problem;           // problem.sensors[i] is rig sensor i
  std::vector<StageConfig> stages;  // by stage, as in problem.stages

  // Creates the stage in the given variant; allocates everything it will ever use.
  [[nodiscard]] Result<std::unique_ptr<Stage>> create(std::size_t stage, std::size_t variant) const;

 private:
  friend Result<PipelineConfig> load_pipeline(const std::string& path);
  std::vector<YamlNode> params_;  // by stage
};

// Reads the pipeline file, its rig and its board, and creates every stage variant once, so that every error of every
// file is reported here (kConfiguration) and none later.
Result<PipelineConfig> load_pipeline(const std::string& path);

}  // namespace takt::pipeline
