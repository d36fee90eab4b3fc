#include "pipeline/assembly/board_bundle.h"

#include <algorithm>
#include <map>
#include <set>

#include "pipeline/assembly/transport_plan.h"

namespace takt::pipeline {
namespace {

Parameter parameter_of(const YamlNode& node) {
  Parameter out;
  if (node.is_map()) {
    for (const auto& [key, value] : node.entries()) {
      out.keys.push_back(key);
      out.items.push_back(parameter_of(value));
    }
  } else if (node.is_sequence()) {
    out.kind = Parameter::Kind::kList;
    for (const YamlNode& item : node.items()) out.items.push_back(parameter_of(item));
  } else if (node.is_scalar()) {
    out.kind = Parameter::Kind::kText;
    out.text = node.text();
  }
  return out;
}

// Which modes have the stage, and as which of theirs.
const sched::Stage* find_stage(const AdmittedMode& mode, const std::string& name) {
  for (const sched::Stage& stage : mode.problem->stages) {
    if (stage.name == name) return &stage;
  }
  return nullptr;
}

std::size_t input_index(const StageConfig& stage, const std::string& name) {
  const auto at = std::find_if(stage.connections.begin(), stage.connections.end(),
                               [&](const StageConnection& connection) { return connection.name == name; });
  return static_cast<std::size_t>(at - stage.connections.begin());
}

// The names of all stages of the modes, in the order of the pipeline; of a problem by itself in the order in which
// modes list them first.
std::vector<std::string> stage_names(const PipelineConfig& config, const std::vector<AdmittedMode>& modes) {
  std::vector<std::string> names;
  for (const StageConfig& stage : config.stages) {
    const bool runs = std::any_of(modes.begin(), modes.end(),
                                  [&](const AdmittedMode& mode) { return find_stage(mode, stage.name) != nullptr; });
    if (runs) names.push_back(stage.name);
  }
  for (const AdmittedMode& mode : modes) {
    for (const sched::Stage& stage : mode.problem->stages) {
      if (std::find(names.begin(), names.end(), stage.name) == names.end()) names.push_back(stage.name);
    }
  }
  return names;
}

// Topics and pools as a run has them that may change between all modes: over a change, jobs of both tables are in
// flight.
Status add_transport(const PipelineConfig& config, const std::vector<AdmittedMode>& modes, Bundle& out) {
  std::vector<sched::ModeTable> tables;
  if (!config.modes) {
    tables.push_back(sched::only_table(config.problem, *modes.front().schedule));
  } else {
    std::vector<sched::Schedule> schedules;
    schedules.reserve(modes.size());
    for (const AdmittedMode& mode : modes) schedules.push_back(*mode.schedule);
    TAKT_ASSIGN(tables, sched::tables_of(config.problem, *config.modes, schedules));
  }
  std::vector<std::uint64_t> output_bytes(config.stages.size(), 0);
  for (std::size_t s = 0; s < config.stages.size(); ++s) {
    std::set<std::uint32_t> variants;
    for (const sched::ModeTable& table : tables) {
      if (!table.runs(s)) continue;
      variants.insert(table.schedule.choices[s].variant);
      if (table.degraded[s]) variants.insert(*table.degraded[s]);
    }
    for (const std::uint32_t variant : variants) {
      TAKT_ASSIGN(const auto code, config.create(s, variant));
      output_bytes[s] = std::max(output_bytes[s], code->output_bytes());
    }
  }
  const transport::TransportSpec spec =
      plan_transport(config, tables, output_bytes, transport::Backend::kIceoryxEmbedded, false, 0);
  out.topics = spec.topics;
  TAKT_ASSIGN(out.pools, transport::plan_pools(spec));
  return {};
}

}  // namespace

Result<Bundle> make_bundle(const PipelineConfig& config, const std::vector<AdmittedMode>& modes,
                           const std::vector<BundleChange>& changes, const std::string& budgets_file,
                           const std::vector<std::string>& what_if) {
  Bundle out;
  out.name = config.name;
  for (const auto& [role, path] : {std::pair<std::string, std::string>{"pipeline", config.file},
                                   {"rig", config.rig_file},
                                   {"board", config.board_file},
                                   {"budgets", budgets_file}}) {
    if (path.empty()) continue;
    TAKT_ASSIGN(const Digest digest, digest_file(path));
    out.sources.push_back({role, digest});
  }
  for (const std::string& change : what_if) out.sources.push_back({"what-if " + change, digest(change)});
  for (const AdmittedMode& mode : modes)
    out.modes.push_back({mode.name, *mode.problem, *mode.schedule, mode.dwell, mode.lost});
  out.changes = changes;
  if (config.rig) {
    out.rig = *config.rig;
    out.rig.file.clear();  // a place on the host
  }

  std::map<const plan::Plan*, std::uint32_t> plans;
  for (const std::string& name : stage_names(config, modes)) {
    BundleStage& stage = out.stages.emplace_back();
    stage.name = name;
    const StageConfig* code = nullptr;
    for (std::size_t s = 0; s < config.stages.size(); ++s) {
      if (config.stages[s].name != name) continue;
      code = &config.stages[s];
      stage.params = parameter_of(config.params(s));
    }
    for (const AdmittedMode& mode : modes) {
      const sched::Stage* planned = find_stage(mode, name);
      if (planned == nullptr) continue;
      for (const sched::Input& from : planned->inputs) {
        const bool known = std::any_of(stage.inputs.begin(), stage.inputs.end(),
                                       [&](const BundleInput& input) { return input.name == from.name; });
        if (known) continue;
        BundleInput& input = stage.inputs.emplace_back();
        input.name = from.name;
        for (std::size_t i = 0; code != nullptr && i < code->connections.size(); ++i) {
          if (code->connections[i].name != from.name) continue;
          input.sensor = static_cast<std::uint32_t>(code->connections[i].sensor_index);
          input.schema = code->connections[i].schema;
          input.required = code->required[i];
        }
      }
      if (code != nullptr) {
        // As the plan of the stage has them, whichever mode leaves some of them out.
        std::sort(stage.inputs.begin(), stage.inputs.end(), [code](const BundleInput& a, const BundleInput& b) {
          return input_index(*code, a.name) < input_index(*code, b.name);
        });
      }
      for (const sched::Variant& variant : planned->variants) {
        const bool known = std::any_of(stage.variants.begin(), stage.variants.end(),
                                       [&](const BundleVariant& v) { return v.name == variant.name; });
        if (known) continue;
        BundleVariant& entry = stage.variants.emplace_back();
        entry.name = variant.name;
        if (code == nullptr) continue;
        const VariantConfig& with = code->variant(variant.name);
        entry.type = with.type;
        if (!with.plan) continue;
        const auto [at, fresh] = plans.try_emplace(with.plan.get(), static_cast<std::uint32_t>(out.plans.size()));
        if (fresh) out.plans.push_back(with.plan);
        entry.plan = at->second;
        if (!with.model) continue;
        entry.model = *with.model;
        entry.model->contract_file.clear();
        entry.model->file.clear();
      }
    }
    if (code != nullptr) {
      stage.type = code->type;
      stage.pixel_format = code->pixel_format;
    }
  }
  if (!config.stages.empty()) TAKT_RETURN_IF_ERROR(add_transport(config, modes, out));
  std::vector<std::uint64_t> bytes;
  for (std::size_t stage = 0; stage < out.stages.size(); ++stage) bytes.push_back(arena_bytes(out, stage));
  out.arenas = place_arenas(out.modes, out.changes, out.stages, bytes);
  TAKT_RETURN_IF_ERROR(check_memory(out.modes, out.arenas));
  return out;
}

}  // namespace takt::pipeline
