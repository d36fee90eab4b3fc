// A first pipeline for a rig: one detection stage per sensor that takt has a stage for, fusion, a chain per sensor.
// Budgets are declared guesses by the size of the data (`takt profile` measures), limits are loose ones.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "sensors/rig/rig.h"

namespace takt::pipeline {

struct PipelineDraft {
  std::string yaml;
  std::vector<std::string> sensors;  // with a stage, most useful first
  std::vector<std::string> notes;    // sensors that got no stage, and why
};

// `rig_file`, `board_file`: as the pipeline file shall name them, relative to itself. At most `stages` detection stages
// (a fusion stage takes 7). kConfiguration when no sensor of the rig has a stage.
Result<PipelineDraft> draft_pipeline(const sensors::Rig& rig, const std::string& rig_file,
                                     const std::string& board_file, const std::string& heading, std::size_t stages = 7);

}  // namespace takt::pipeline
