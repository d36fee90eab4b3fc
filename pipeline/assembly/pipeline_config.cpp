// A pipeline that has been read, from whatever: apart from the readers, so that a board links no compiler and no YAML.
#include <algorithm>

#include "pipeline/assembly/pipeline_file.h"

namespace takt::pipeline {

const VariantConfig& StageConfig::variant(const std::string& variant_name) const {
  const auto at =
      std::find_if(variants.begin(), variants.end(), [&](const VariantConfig& v) { return v.name == variant_name; });
  return at == variants.end() ? variants.front() : *at;
}

StageSpec PipelineConfig::spec_of(std::size_t stage, const VariantConfig& chosen) const {
  StageSpec spec;
  spec.type = chosen.type;
  spec.variant = chosen.name;
  spec.name = stages[stage].name;
  spec.inputs = stages[stage].connections;
  spec.rig = rig.get();
  spec.plan = chosen.plan;
  spec.model = chosen.model;
  spec.pixel_format = stages[stage].pixel_format;
  return spec;
}

Result<std::unique_ptr<Stage>> PipelineConfig::create(std::size_t stage, std::size_t variant,
                                                      std::span<std::byte> arena,
                                                      const std::shared_ptr<exec::Accelerator>& accelerator,
                                                      std::shared_ptr<exec::StateStore> state) const {
  const VariantConfig& chosen = stages[stage].variant(problem.stages[stage].variants[variant].name);
  StageSpec spec = spec_of(stage, chosen);
  spec.arena = arena;
  spec.state = std::move(state);
  if (chosen.on_device) {
    spec.submissions = chosen.submissions;
    spec.accelerator = accelerator ? accelerator : std::make_shared<exec::Accelerator>(device.device, device.exchange);
  }
  return create_stage(spec, params_of(stage, chosen));
}

}  // namespace takt::pipeline
