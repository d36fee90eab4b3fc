// The stages of a run, allocated: every variant that one of its modes runs or degrades to.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "pipeline/assembly/pipeline_file.h"
#include "pipeline/assembly/stage_host.h"
#include "runtime/base/status.h"
#include "runtime/exec/counts.h"
#include "runtime/exec/offload.h"
#include "runtime/exec/session.h"
#include "runtime/memory/aligned_buffer.h"
#include "scheduler/model/modes.h"

namespace takt::pipeline {

// One block of memory per mutex of arenas, as large as the largest arena under it.
Result<std::vector<memory::AlignedBuffer>> shared_arenas(const PipelineConfig& config);

// By stage. Sessions, counts and offloads belong to the variants' stages.
struct RunStages {
  std::vector<std::vector<PipelineStageHost::VariantStage>> variants;  // the first mode's first; the hosts take them
  std::vector<std::uint64_t> output_bytes;                             // the most of all variants
  std::vector<std::uint32_t> shown;            // the variant that the report speaks of: the first mode's
  std::vector<exec::Session*> sessions;        // of that; null for plain code
  std::vector<const exec::CountLog*> counts;   // the same
  std::vector<const exec::Offload*> offloads;  // of all variants of all stages
};

// `arenas` outlive the stages. `device`: null where no variant is for one. `watch`: sessions watch their values (slow).
Result<RunStages> create_stages(const PipelineConfig& config, const std::vector<sched::ModeTable>& modes,
                                const std::vector<memory::AlignedBuffer>& arenas,
                                const std::shared_ptr<exec::Accelerator>& device, bool watch);

}  // namespace takt::pipeline
