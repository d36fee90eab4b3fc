#include "pipeline/assembly/run_stages.h"

#include <algorithm>
#include <span>
#include <utility>

#include "runtime/device/device.h"
#include "runtime/exec/state.h"

namespace takt::pipeline {
namespace {

// The variants of a stage that some mode runs or degrades to, the first mode's first.
std::vector<std::uint32_t> variants_in(const std::vector<sched::ModeTable>& modes, std::size_t stage) {
  std::vector<std::uint32_t> out;
  const auto add = [&out](std::uint32_t variant) {
    if (std::find(out.begin(), out.end(), variant) == out.end()) out.push_back(variant);
  };
  for (const sched::ModeTable& mode : modes) {
    if (mode.runs(stage)) add(mode.schedule.choices[stage].variant);
  }
  for (const sched::ModeTable& mode : modes) {
    if (mode.runs(stage) && mode.degraded[stage]) add(*mode.degraded[stage]);
  }
  return out;
}

Result<std::vector<PipelineStageHost::VariantStage>> create_variants(const PipelineConfig& config,
                                                                     const std::vector<sched::ModeTable>& modes,
                                                                     std::size_t s,
                                                                     const std::vector<memory::AlignedBuffer>& arenas,
                                                                     const std::shared_ptr<exec::Accelerator>& device) {
  const sched::Stage& stage = config.problem.stages[s];
  std::vector<std::uint32_t> indices = variants_in(modes, s);
  // One that none of these modes runs stands by.
  if (indices.empty()) indices.push_back(0);
  std::vector<PipelineStageHost::VariantStage> out;
  // Variants go on with each other's state. It lies where all of them see it.
  std::shared_ptr<exec::StateStore> state;
  device::Device* home = &device::cpu();
  for (const std::uint32_t v : indices) {
    if (config.stages[s].variant(stage.variants[v].name).on_device) home = &device->device();
  }
  for (const std::uint32_t v : indices) {
    const sched::Variant& variant = stage.variants[v];
    const std::span<std::byte> arena =
        variant.arena_mutex ? arenas[*variant.arena_mutex].span() : std::span<std::byte>{};
    const VariantConfig& code = config.stages[s].variant(variant.name);
    const bool keeps = code.plan && !code.plan->description().states.empty();
    if (indices.size() > 1 && !state && keeps) {
      TAKT_ASSIGN(state, exec::StateStore::create(code.plan, *home));
    }
    TAKT_ASSIGN(auto created, config.create(s, v, arena, device, state).map_error([&](Error error) {
      return std::move(error).with_context(config.file + ": stage '" + stage.name + "', variant '" + variant.name +
                                           "', which goes on with the state of another");
    }));
    std::vector<std::vector<Duration>> worst_case(sched::kMaxGang);
    for (const sched::Budget& budget : variant.budgets) {
      // A job on a device is one phase: between its steps nobody can give it up.
      if (created->offload() != nullptr) continue;
      if (budget.steps.size() > static_cast<std::size_t>(created->phases())) {
        return fail(Code::kConfiguration, (budget.place.empty() ? "" : budget.place + ": ") + "steps_ms gives " +
                                              std::to_string(budget.steps.size()) + " times, and a job of stage '" +
                                              stage.name + "', variant '" + variant.name + "' has " +
                                              std::to_string(created->phases()) +
                                              " steps; profile the pipeline as it is now");
      }
      worst_case[static_cast<std::size_t>(budget.cores) - 1] = budget.steps;
    }
    out.push_back({v, std::move(created), std::move(worst_case)});
  }
  return out;
}

}  // namespace

Result<std::vector<memory::AlignedBuffer>> shared_arenas(const PipelineConfig& config) {
  std::vector<std::uint64_t> bytes(config.problem.mutexes.size(), 0);
  for (std::size_t s = 0; s < config.stages.size(); ++s) {
    for (const sched::Variant& variant : config.problem.stages[s].variants) {
      const auto& plan = config.stages[s].variant(variant.name).plan;
      if (variant.arena_mutex && plan) {
        bytes[*variant.arena_mutex] = std::max(bytes[*variant.arena_mutex], plan->description().arena_bytes);
      }
    }
  }
  std::vector<memory::AlignedBuffer> out(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == 0) continue;
    TAKT_ASSIGN(out[i], memory::AlignedBuffer::create(bytes[i]));
  }
  return out;
}

Result<RunStages> create_stages(const PipelineConfig& config, const std::vector<sched::ModeTable>& modes,
                                const std::vector<memory::AlignedBuffer>& arenas,
                                const std::shared_ptr<exec::Accelerator>& device, bool watch) {
  RunStages out;
  for (std::size_t s = 0; s < config.problem.stages.size(); ++s) {
    TAKT_ASSIGN(auto variants, create_variants(config, modes, s, arenas, device));
    out.shown.push_back(variants.front().index);
    out.sessions.push_back(variants.front().stage->session());
    out.counts.push_back(variants.front().stage->counts());
    if (exec::Session* const session = out.sessions.back(); session != nullptr) {
      session->enable_profile(true);
      if (watch) TAKT_RETURN_IF_ERROR(session->watch(true));
    }
    out.output_bytes.push_back(0);
    for (const auto& variant : variants) {
      if (variant.stage->offload() != nullptr) out.offloads.push_back(variant.stage->offload());
      out.output_bytes.back() = std::max(out.output_bytes.back(), variant.stage->output_bytes());
    }
    out.variants.push_back(std::move(variants));
  }
  return out;
}

}  // namespace takt::pipeline
