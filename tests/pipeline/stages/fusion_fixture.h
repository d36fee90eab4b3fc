// The fusion stage with its graph compiled for it, as a pipeline file would have it.
#pragma once

#include <memory>
#include <vector>

#include "pipeline/models/fusion_graph.h"
#include "pipeline/stages/fusion_tracker.h"
#include "runtime/exec/state.h"

namespace takt::pipeline::testing {

// What survives the jobs of such a stage, to be shared by its variants.
inline std::shared_ptr<exec::StateStore> fusion_state(const StageSpec& spec, const FusionModel& model) {
  const auto sources = fusion_sources(spec, model);
  if (!sources) return nullptr;
  auto plan = compile_fusion(model, *sources, spec.inputs.size(), {1, 2});
  if (!plan) return nullptr;
  auto state = exec::StateStore::create(*std::move(plan), device::cpu());
  return state ? *std::move(state) : nullptr;
}

inline Result<std::unique_ptr<Stage>> make_fusion(StageSpec spec, const FusionModel& model) {
  TAKT_ASSIGN(const std::vector<kernels::ListSource> sources, fusion_sources(spec, model));
  TAKT_ASSIGN(spec.plan, compile_fusion(model, sources, spec.inputs.size(), {1, 2}));
  return create_fusion_tracker(spec);
}

// A payload where chunks have theirs.
template <class Payload>
struct alignas(64) Aligned {
  Payload payload{};
};

}  // namespace takt::pipeline::testing
