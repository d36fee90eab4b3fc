// The bundle of an admitted pipeline: what the board needs of files that only the host can read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pipeline/assembly/pipeline_file.h"
#include "pipeline/bundle/bundle.h"

namespace takt::pipeline {

// One mode of an answer.
struct AdmittedMode {
  std::string name;
  const sched::Problem* problem = nullptr;
  const sched::Schedule* schedule = nullptr;
  Duration dwell = {};
  std::optional<std::uint32_t> lost = {};  // index of the mode to enter when the reference stays lost
};

// `config` of the pipeline file, whose stages are those of the modes (by name); of a problem by itself it has neither
// rig nor stages, and the bundle has tables and arenas only. `budgets_file` may be empty; `what_if` are the changes
// that were applied to the problem, in order. kInput when a file that decided the bundle cannot be read again,
// kConfiguration when a library limit of the transport is broken, kGate when the arenas as placed do not fit the board.
Result<Bundle> make_bundle(const PipelineConfig& config, const std::vector<AdmittedMode>& modes,
                           const std::vector<BundleChange>& changes, const std::string& budgets_file,
                           const std::vector<std::string>& what_if);

}  // namespace takt::pipeline
