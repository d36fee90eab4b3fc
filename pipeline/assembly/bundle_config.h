// A pipeline out of a bundle: what a board runs. No file is read, nothing is compiled.
#pragma once

#include <cstddef>

#include "pipeline/assembly/pipeline_file.h"
#include "pipeline/bundle/bundle.h"
#include "runtime/base/status.h"

namespace takt::pipeline {

// The pipeline as one of the bundle's modes runs it, to be run with that mode's table. kConfiguration: the bundle is a
// problem by itself, without stages or rig; kInput: a stage refuses what the bundle says of it.
Result<PipelineConfig> pipeline_of(const Bundle& bundle, std::size_t mode);

}  // namespace takt::pipeline
