#include "pipeline/assembly/bundle_config.h"

#include <algorithm>
#include <utility>

#include "runtime/base/yaml_tree.h"
#include "scheduler/analysis/modes.h"

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
std::size_t index_in(const List& list, const std::string& name) {
  const auto at = std::find_if(list.begin(), list.end(), [&](const auto& item) { return item.name == name; });
  return static_cast<std::size_t>(at - list.begin());
}

// Indices into a mode's list as those into the list of all modes.
template <class List>
void renumber(std::vector<std::uint32_t>& indices, const List& own, const List& all) {
  for (std::uint32_t& index : indices) index = static_cast<std::uint32_t>(index_in(all, own[index].name));
}

// The problem that all modes are parts of: what is in any of them, by name, stages and their inputs in the order of the
// bundle. What is in several is as the first of them has it.
sched::Problem whole_of(const Bundle& bundle) {
  sched::Problem whole = bundle.modes.front().problem;
  if (bundle.modes.size() == 1) return whole;
  whole.name = bundle.name;
  whole.stages.clear();
  whole.mutexes.clear();
  whole.chains.clear();
  whole.disparities.clear();
  for (const BundleStage& stage : bundle.stages) whole.stages.emplace_back().name = stage.name;
  const auto add_new = [](auto& all, const auto& own) {
    for (const auto& item : own) {
      if (index_in(all, item.name) == all.size()) all.push_back(item);
    }
  };
  for (const BundleMode& mode : bundle.modes) {
    const sched::Problem& own = mode.problem;
    if (!whole.phase_lock) whole.phase_lock = own.phase_lock;
    add_new(whole.mutexes, own.mutexes);
    for (sched::Stage stage : own.stages) {
      for (sched::Input& input : stage.inputs) {
        if (input.from_sensor) continue;
        input.source = static_cast<std::uint32_t>(index_in(whole.stages, own.stages[input.source].name));
      }
      for (sched::Variant& variant : stage.variants) {
        const auto place = [&](std::uint32_t mutex) {
          return static_cast<std::uint32_t>(index_in(whole.mutexes, own.mutexes[mutex].name));
        };
        if (variant.arena_mutex) variant.arena_mutex = place(*variant.arena_mutex);
        for (sched::Budget& budget : variant.budgets) {
          for (sched::Segment& segment : budget.segments) renumber(segment.mutexes, own.mutexes, whole.mutexes);
        }
      }
      sched::Stage& known = whole.stages[index_in(whole.stages, stage.name)];
      if (known.variants.empty()) {
        known = std::move(stage);
        continue;
      }
      add_new(known.variants, stage.variants);
      add_new(known.inputs, stage.inputs);
    }
    for (sched::Chain chain : own.chains) {
      renumber(chain.stages, own.stages, whole.stages);
      if (index_in(whole.chains, chain.name) == whole.chains.size()) whole.chains.push_back(std::move(chain));
    }
    for (sched::Disparity disparity : own.disparities) {
      disparity.stage = static_cast<std::uint32_t>(index_in(whole.stages, own.stages[disparity.stage].name));
      renumber(disparity.chains, own.chains, whole.chains);
      if (index_in(whole.disparities, disparity.name) < whole.disparities.size()) continue;
      whole.disparities.push_back(std::move(disparity));
    }
  }
  for (std::size_t s = 0; s < whole.stages.size(); ++s) {
    const std::vector<BundleInput>& order = bundle.stages[s].inputs;
    std::sort(whole.stages[s].inputs.begin(), whole.stages[s].inputs.end(),
              [&order](const auto& a, const auto& b) { return index_in(order, a.name) < index_in(order, b.name); });
  }
  return whole;
}

// Bounds across changes are found again, as on the host: they are no part of the file.
Result<std::vector<sched::ModeTable>> tables_of(const Bundle& bundle, const sched::Problem& whole) {
  if (bundle.modes.size() == 1) return std::vector{sched::only_table(whole, bundle.modes.front().schedule)};
  sched::ModeSet set;
  set.name = bundle.name;
  std::vector<sched::Answer> answers;
  for (const BundleMode& mode : bundle.modes) {
    sched::ModeSpec& spec = set.modes.emplace_back();
    spec.name = mode.name;
    spec.problem = mode.problem;
    spec.dwell = mode.dwell;
    spec.lost = mode.lost;
    answers.emplace_back();
    answers.back().verdict = sched::Verdict::kFeasible;
    answers.back().schedule = mode.schedule;
  }
  for (const BundleChange& change : bundle.changes) {
    set.modes[change.from].exits.push_back(change.to);
    set.modes[change.to].entry_drain = change.drain;  // the same for all that lead there
  }
  return sched::admitted_tables(whole, set, answers, sched::judge_modes(set, answers));
}

}  // namespace

Result<BoardPipeline> pipeline_of(const Bundle& bundle) {
  BoardPipeline board;
  PipelineConfig& config = board.config;
  config.name = bundle.name;
  config.problem = whole_of(bundle);
  config.rig = std::make_shared<const sensors::Rig>(bundle.rig);
  TAKT_ASSIGN(board.modes, tables_of(bundle, config.problem));
  std::vector<YamlDocument> documents;
  for (const sched::Stage& planned : config.problem.stages) {
    const BundleStage& stage = bundle.stages[index_in(bundle.stages, planned.name)];
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
      const BundleInput& input = stage.inputs[index_in(stage.inputs, from.name)];
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
  return board;
}

}  // namespace takt::pipeline
