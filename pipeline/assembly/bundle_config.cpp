#include "pipeline/assembly/bundle_config.h"

#include <algorithm>
#include <utility>

#include "runtime/base/yaml_tree.h"

namespace takt::pipeline {
namespace {

// Parameters as stages read them from a file.
YamlTree tree_of(const Parameter& parameter) {
  YamlTree out;
  out.kind = parameter.kind == Parameter::Kind::kMap    ? YamlTree::Kind::kMap
             : parameter.kind == Parameter::Kind::kList ? YamlTree::Kind::kSequence
                                                        : YamlTree::Kind::kScalar;
  out.text = parameter.text;
  for (std::size_t i = 0; i < parameter.items.size(); ++i) {
    YamlTree& child = out.children.emplace_back(tree_of(parameter.items[i]));
    if (parameter.kind != Parameter::Kind::kMap) continue;
    child.key = parameter.keys[i];
    child.named = true;
  }
  return out;
}

// There by check_bundle().
template <class List>
const auto& named(const List& list, const std::string& name) {
  return *std::find_if(list.begin(), list.end(), [&](const auto& item) { return item.name == name; });
}

}  // namespace

Result<PipelineConfig> pipeline_of(const Bundle& bundle, std::size_t mode) {
  PipelineConfig config;
  config.name = bundle.name;
  config.problem = bundle.modes[mode].problem;
  config.rig = std::make_shared<const sensors::Rig>(bundle.rig);
  std::vector<YamlDocument> documents;
  for (const sched::Stage& planned : config.problem.stages) {
    const BundleStage& stage = named(bundle.stages, planned.name);
    if (stage.type.empty() || bundle.rig.sensors.empty()) {
      return fail(Code::kConfiguration, "bundle '" + bundle.name +
                                            "' is of a problem by itself: it has tables, and no stages that could run");
    }
    StageConfig& out = config.stages.emplace_back();
    out.name = stage.name;
    out.type = stage.type;
    out.pixel_format = stage.pixel_format;
    for (const BundleVariant& variant : stage.variants) {
      VariantConfig& own = out.variants.emplace_back();
      own.name = variant.name;
      own.type = variant.type;
      if (variant.plan) own.plan = bundle.plans[*variant.plan];
      if (variant.model) own.model = std::make_shared<const ModelContract>(*variant.model);
    }
    for (const sched::Input& from : planned.inputs) {
      const BundleInput& input = named(stage.inputs, from.name);
      StageConnection& connection = out.connections.emplace_back();
      connection.name = input.name;
      connection.sensor_index = input.sensor;
      connection.schema = input.schema;
      if (from.from_sensor) connection.sensor = &config.rig->sensors[input.sensor];
      out.required.push_back(input.required);
    }
    documents.push_back(YamlDocument::of("parameters of stage '" + stage.name + "'", tree_of(stage.params)));
    config.params_.push_back(documents.back().root());
  }
  for (std::size_t s = 0; s < config.stages.size(); ++s) {
    for (std::size_t v = 0; v < config.problem.stages[s].variants.size(); ++v) {
      if (auto stage = config.create(s, v); !stage) {
        return fail(Code::kInput, "bundle '" + bundle.name + "': " + stage.error().message);
      }
    }
    if (const Status read = documents[s].finish(); !read) return fail(Code::kInput, read.error().message);
  }
  return config;
}

}  // namespace takt::pipeline
