// Jobs on a device beside the cores, as their budgets give slots to them: what is handed over when.
//
//   cores | copy in | segments of the plan | copy out | cores      copies where chunks are copied, and only if they are
//                                                                  listed: otherwise they belong to the segments
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/assembly/pipeline_file.h"
#include "runtime/base/yaml.h"
#include "runtime/exec/offload.h"
#include "scheduler/model/gpu.h"
#include "scheduler/model/model.h"

namespace takt::pipeline {

// The segments of a budget that are not on the cores.
struct DeviceSlots {
  std::optional<std::uint32_t> copy_in, copy_out;  // units
  std::uint32_t unit = 0;                          // of the plan's segments
  std::size_t segments = 0;
};
// nullopt: they come in no order in which a job can be handed over.
std::optional<DeviceSlots> device_slots(const sched::Budget& budget, const sched::Board& board);
inline constexpr const char* kDeviceOrder =
    "submission on the cores, a copy engine where chunks are copied first, one GPU, a copy engine, completion on the "
    "cores";

// Of these tensors of a plan together.
std::uint64_t bytes_of(const plan::Plan& plan, const std::vector<std::uint32_t>& tensors);

// Of one variant, whose plan, where `models` replace those of contracts, runs on config.device: cut by the guard that
// the board declares of its GPU, with copies where its budgets have segments for them. What does not fit each other is
// an error at `variant`, the variant in the pipeline's file: other segments than the plan is cut into, a step that
// alone exceeds the guard, copies where nothing is copied or for which there is too little time.
exec::Submissions submissions_of(const PipelineConfig& config, std::size_t stage, std::size_t index,
                                 const sched::UnitFigures& figures, const ModelFiles& models, const YamlNode& variant);

}  // namespace takt::pipeline
