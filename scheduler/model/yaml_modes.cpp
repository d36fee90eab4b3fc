// The `modes` key of a pipeline or problem file.
#include <algorithm>
#include <cmath>
#include <map>

#include "runtime/base/suggest.h"
#include "scheduler/model/text.h"
#include "scheduler/model/yaml.h"
#include "scheduler/model/yaml_read.h"

namespace takt::sched {
namespace {

using namespace yaml_read;

// One stage as a mode runs it.
struct Kept {
  std::uint32_t index = 0;  // in the base
  Stage stage;
};

// Jobs per hyperperiod of the mode, from those of the base; records an error where they are no whole number.
std::vector<std::int64_t> rates_in(const YamlNode& place, const Stage& stage, Duration base, Duration mode) {
  std::vector<std::int64_t> out;
  for (const std::int64_t rate : stage.rates) {
    __extension__ using Wide = __int128;
    const Wide jobs = static_cast<Wide>(rate) * mode.ns;
    if (jobs % base.ns == 0) {
      out.push_back(static_cast<std::int64_t>(jobs / base.ns));
      continue;
    }
    place.error("stage '" + stage.name + "' runs " + std::to_string(rate) + " times in " + ms_text(base) +
                ", which is no whole number of times in the hyperperiod of " + ms_text(mode) +
                " of this mode; give the stage 'rates_hz' here, or choose another hyperperiod");
    out.push_back(1);
  }
  return out;
}

Kept read_kept(const YamlNode& node, const Problem& base, Duration hyperperiod) {
  Kept out;
  const YamlNode name = node.at("name");
  const auto index = reference(name, base.stages, "stage");
  const auto rates = node.find("rates_hz");
  const auto variants = node.find("variants");
  const auto without = node.find("without");
  if (!index) return out;
  out.index = *index;
  out.stage = base.stages[*index];
  if (rates) {
    out.stage.rates.clear();
    for (const YamlNode& item : rates->items()) out.stage.rates.push_back(read_rate(item, hyperperiod));
    if (rates->is_sequence() && out.stage.rates.empty()) rates->error("at least one rate is needed");
  } else {
    out.stage.rates = rates_in(name, out.stage, base.hyperperiod, hyperperiod);
  }
  if (variants) {
    out.stage.variants.clear();
    for (const YamlNode& item : variants->items()) {
      const auto variant = reference(item, base.stages[*index].variants, "variant");
      if (variant) out.stage.variants.push_back(base.stages[*index].variants[*variant]);
    }
    if (variants->is_sequence() && variants->items().empty()) variants->error("at least one variant is needed");
  }
  if (without) {
    for (const YamlNode& item : without->items()) {
      const auto input = reference(item, out.stage.inputs, "input");
      if (input) out.stage.inputs.erase(out.stage.inputs.begin() + *input);
    }
    if (out.stage.inputs.empty() && !base.stages[*index].inputs.empty()) {
      without->error("stage '" + out.stage.name + "' has no input left in this mode; leave out the stage as well");
    }
  }
  return out;
}

ModeSpec read_mode(const YamlNode& node, const Problem& base) {
  ModeSpec mode;
  const YamlNode name = node.at("name");
  mode.name = name.text();
  Problem& problem = mode.problem;
  problem = base;
  problem.name = base.name + "/" + mode.name;
  if (const auto own = node.find("hyperperiod_ms")) problem.hyperperiod = own->milliseconds(0.01, kMostMs);
  if (problem.hyperperiod < microseconds(10)) problem.hyperperiod = base.hyperperiod;
  if (const auto drain = node.find("entry_drain_ms")) mode.entry_drain = drain->milliseconds(0, kLongestDrain.ms());
  if (const auto dwell = node.find("dwell_ms")) mode.dwell = dwell->milliseconds(0, kLongestDwell.ms());
  const auto locked = node.find("locked");
  if (locked && !locked->boolean() && problem.phase_lock && problem.phase_lock->sensor < problem.sensors.size()) {
    // Without the lock the reference keeps its drift and has no place in the table.
    problem.sensors[problem.phase_lock->sensor].phase.reset();
    problem.phase_lock.reset();
  }
  std::vector<Kept> kept;
  if (const auto stages = node.find("stages")) {
    for (const YamlNode& item : stages->items()) {
      kept.push_back(read_kept(item, base, problem.hyperperiod));
      if (kept.back().stage.name.empty()) {
        kept.pop_back();
      } else if (std::count_if(kept.begin(), kept.end(), [&](const Kept& k) { return k.index == kept.back().index; }) >
                 1) {
        item.error("stage '" + kept.back().stage.name + "' is listed twice");
        kept.pop_back();
      }
    }
    if (stages->is_sequence() && kept.empty()) stages->error("at least one stage is needed");
  } else {
    for (std::uint32_t i = 0; i < base.stages.size(); ++i) {
      kept.push_back({i, base.stages[i]});
      kept.back().stage.rates = rates_in(name, base.stages[i], base.hyperperiod, problem.hyperperiod);
    }
  }
  std::sort(kept.begin(), kept.end(), [](const Kept& a, const Kept& b) { return a.index < b.index; });
  std::map<std::uint32_t, std::uint32_t> place;  // of a base stage in this mode
  for (std::uint32_t i = 0; i < kept.size(); ++i) place[kept[i].index] = i;
  problem.stages.clear();
  for (Kept& each : kept) {
    for (Input& input : each.stage.inputs) {
      if (input.from_sensor) continue;
      const auto source = place.find(input.source);
      if (source == place.end()) {
        name.error("stage '" + each.stage.name + "' reads '" + base.stages[input.source].name +
                   "', which this mode does not have; list that stage, or take the input away with 'without: [" +
                   input.name + "]'");
        continue;
      }
      input.source = source->second;
    }
    problem.stages.push_back(std::move(each.stage));
  }
  std::int64_t jobs = 0;  // at the highest rates
  for (const Stage& stage : problem.stages) {
    if (!stage.rates.empty()) jobs += *std::max_element(stage.rates.begin(), stage.rates.end());
  }
  if (jobs > kMostJobs) {
    name.error("the stages of this mode have " + std::to_string(jobs) + " jobs in a hyperperiod of " +
               ms_text(problem.hyperperiod) + "; at most " + std::to_string(kMostJobs) + " are planned");
  }

  // A chain whose stages are all there, and still connected.
  const auto chain_in = [&](Chain chain) -> std::optional<Chain> {
    for (std::size_t i = 0; i < chain.stages.size(); ++i) {
      const auto stage = place.find(chain.stages[i]);
      if (stage == place.end()) return std::nullopt;
      const std::uint32_t before = i == 0 ? chain.sensor : chain.stages[i - 1];
      chain.stages[i] = stage->second;
      const std::vector<Input>& inputs = problem.stages[stage->second].inputs;
      const bool connected = std::any_of(inputs.begin(), inputs.end(), [&](const Input& input) {
        return input.from_sensor == (i == 0) && input.source == before;
      });
      if (!connected) return std::nullopt;
    }
    return chain;
  };
  std::map<std::uint32_t, std::uint32_t> chain_place;
  problem.chains.clear();
  if (const auto chains = node.find("chains")) {
    for (const YamlNode& item : chains->items()) {
      const YamlNode chain_name = item.at("name");
      const auto index = reference(chain_name, base.chains, "chain");
      const auto limits = item.find("limit_ms");
      if (!index) continue;
      std::optional<Chain> chain = chain_in(base.chains[*index]);
      if (!chain) {
        chain_name.error("chain '" + base.chains[*index].name +
                         "' leads through a stage or input that this mode lacks");
        continue;
      }
      if (!chain_place.emplace(*index, static_cast<std::uint32_t>(problem.chains.size())).second) {
        chain_name.error("this chain is listed twice");
        continue;
      }
      if (limits) read_limits(*limits, *chain);
      problem.chains.push_back(*std::move(chain));
    }
  } else {
    for (std::uint32_t i = 0; i < base.chains.size(); ++i) {
      std::optional<Chain> chain = chain_in(base.chains[i]);
      if (!chain) continue;
      chain_place[i] = static_cast<std::uint32_t>(problem.chains.size());
      problem.chains.push_back(*std::move(chain));
    }
  }
  problem.disparities.clear();
  for (Disparity disparity : base.disparities) {
    std::vector<std::uint32_t> members;
    for (const std::uint32_t chain : disparity.chains) {
      if (const auto found = chain_place.find(chain); found != chain_place.end()) members.push_back(found->second);
    }
    const auto stage = place.find(disparity.stage);
    if (members.size() < 2 || stage == place.end()) continue;
    disparity.stage = stage->second;
    disparity.chains = std::move(members);
    problem.disparities.push_back(std::move(disparity));
  }
  return mode;
}

}  // namespace

std::optional<ModeSet> read_modes(const YamlNode& root, const Problem& base) {
  const auto list = root.find("modes");
  if (!list) return std::nullopt;
  ModeSet set;
  set.name = base.name;
  const std::vector<YamlNode> items = list->items();
  if (list->is_sequence() && items.empty()) list->error("at least one mode is needed");
  for (const YamlNode& node : items) {
    ModeSpec mode = read_mode(node, base);
    refuse_twice(node.at("name"), mode.name, set.modes, "mode");
    set.modes.push_back(std::move(mode));
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    ModeSpec& mode = set.modes[i];
    if (const auto exits = items[i].find("exits")) {
      for (const YamlNode& item : exits->items()) {
        const auto exit = reference(item, set.modes, "mode");
        if (!exit) continue;
        if (*exit == i) item.error("a mode does not lead to itself");
        if (std::count(mode.exits.begin(), mode.exits.end(), *exit) != 0) item.error("this exit is listed twice");
        mode.exits.push_back(*exit);
      }
    }
    if (const auto lost = items[i].find("lost")) {
      mode.lost = reference(*lost, set.modes, "mode");
      if (mode.lost && std::count(mode.exits.begin(), mode.exits.end(), *mode.lost) == 0) {
        lost->error("'" + set.modes[*mode.lost].name + "' is not among the exits of '" + mode.name + "'");
      }
      if (!mode.problem.phase_lock) lost->error("this mode has no phase lock whose reference could be lost");
    }
  }
  std::vector<Problem> problems;
  for (const ModeSpec& mode : set.modes) problems.push_back(mode.problem);
  const Result<std::vector<Tick>> ticks = common_ticks(problems);
  if (!ticks) {
    if (!problems.empty()) list->error(ticks.error().message);
    return set;
  }
  for (std::size_t i = 0; i < set.modes.size(); ++i) set.modes[i].problem.ticks = (*ticks)[i];
  return set;
}

}  // namespace takt::sched
