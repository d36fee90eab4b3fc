// A pipeline out of a bundle: what a board runs. No file is read, nothing is compiled.
#pragma once

#include <vector>

#include "pipeline/assembly/pipeline_file.h"
#include "pipeline/bundle/bundle.h"
#include "runtime/base/status.h"
#include "scheduler/model/modes.h"

namespace takt::pipeline {

// The stages, inputs, variants and chains of all modes, and each mode's table over them; a run begins in the first.
struct BoardPipeline {
  PipelineConfig config;
  std::vector<sched::ModeTable> modes;
};

// kConfiguration: the bundle is a problem by itself, without stages or rig; kInput: a stage refuses what the bundle
// says of it.
Result<BoardPipeline> pipeline_of(const Bundle& bundle);

}  // namespace takt::pipeline
