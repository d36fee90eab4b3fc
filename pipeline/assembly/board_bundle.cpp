#include "pipeline/assembly/board_bundle.h"

#include <algorithm>
#include <map>

#include "pipeline/assembly/runner.h"

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

// The names of all stages, in the order in which modes list them first.
std::vector<std::string> stage_names(const std::vector<AdmittedMode>& modes) {
  std::vector<std::string> names;
  for (const AdmittedMode& mode : modes) {
    for (const sched::Stage& stage : mode.problem->stages) {
      if (std::find(names.begin(), names.end(), stage.name) == names.end()) names.push_back(stage.name);
    }
  }
  return names;
}

// A topic holds what the mode that takes most of it takes.
void join(std::vector<transport::TopicSpec>& all, const std::vector<transport::TopicSpec>& more) {
  for (const transport::TopicSpec& topic : more) {
    const auto at = std::find_if(all.begin(), all.end(), [&](const auto& t) { return t.name == topic.name; });
    if (at == all.end()) {
      all.push_back(topic);
      continue;
    }
    at->payload_capacity = std::max(at->payload_capacity, topic.payload_capacity);
    at->loans = std::max(at->loans, topic.loans);
    for (const transport::SubscriberSpec& subscriber : topic.subscribers) {
      const auto own = std::find_if(at->subscribers.begin(), at->subscribers.end(),
                                    [&](const auto& s) { return s.name == subscriber.name; });
      if (own == at->subscribers.end()) {
        at->subscribers.push_back(subscriber);
        continue;
      }
      own->queue_depth = std::max(own->queue_depth, subscriber.queue_depth);
      own->held = std::max(own->held, subscriber.held);
    }
  }
}

// Index into a list by name; one that is not there is a fault of the caller.
template <class List>
Result<std::size_t> index_of(const List& list, const std::string& name) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].name == name) return i;
  }
  return fail(Code::kInternal, "the pipeline has no '" + name + "' that a mode names");
}

Status add_transport(const PipelineConfig& config, const std::vector<AdmittedMode>& modes, Bundle& out) {
  for (const AdmittedMode& mode : modes) {
    // The pipeline as this mode sees it: its stages only, each in the variant that was chosen.
    PipelineConfig own = config;
    own.problem = *mode.problem;
    own.stages.clear();
    std::vector<std::uint64_t> output_bytes;
    for (std::size_t s = 0; s < mode.problem->stages.size(); ++s) {
      const sched::Stage& planned = mode.problem->stages[s];
      const std::string& variant = planned.variants[mode.schedule->choices[s].variant].name;
      TAKT_ASSIGN(const std::size_t stage, index_of(config.stages, planned.name));
      TAKT_ASSIGN(const std::size_t chosen, index_of(config.problem.stages[stage].variants, variant));
      TAKT_ASSIGN(const auto code, config.create(stage, chosen));
      output_bytes.push_back(code->output_bytes());
      own.stages.push_back(config.stages[stage]);
    }
    join(out.topics, plan_transport(own, {sched::only_table(own.problem, *mode.schedule)}, output_bytes,
                                    transport::Backend::kIceoryxEmbedded, false, 0)
                         .topics);
  }
  transport::TransportSpec spec;
  spec.topics = out.topics;
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
  for (const std::string& name : stage_names(modes)) {
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
