#include <algorithm>
#include <set>

#include "pipeline/bundle/bundle.h"
#include "scheduler/analysis/change.h"
#include "scheduler/analysis/validate.h"
#include "scheduler/model/modes.h"

namespace takt::pipeline {
namespace {

tl::unexpected<Error> refuse(const std::string& why) {
  return fail(Code::kInput, "bundle: " + why + "; write it again with takt schedule --bundle");
}

Status refused_with(const std::string& where, const Status& status) {
  if (status) return {};
  return refuse(where + ": " + status.error().message);
}

template <class List>
Status unique_names(const List& list, const std::string& what) {
  std::set<std::string> seen;
  for (const auto& item : list) {
    if (item.name.empty()) return refuse("a " + what + " has no name");
    if (!seen.insert(item.name).second) return refuse("two " + what + "s are called '" + item.name + "'");
  }
  return {};
}

const BundleStage* find(const std::vector<BundleStage>& stages, const std::string& name) {
  for (const BundleStage& stage : stages) {
    if (stage.name == name) return &stage;
  }
  return nullptr;
}

const BundleVariant* find(const BundleStage& stage, const std::string& name) {
  for (const BundleVariant& variant : stage.variants) {
    if (variant.name == name) return &variant;
  }
  return nullptr;
}

Status check_parameter(const Parameter& value, const std::string& stage) {
  if (value.keys.size() != (value.kind == Parameter::Kind::kMap ? value.items.size() : 0) ||
      (value.kind == Parameter::Kind::kText && !value.items.empty()) ||
      (value.kind != Parameter::Kind::kText && !value.text.empty())) {
    return refuse("parameters of stage '" + stage + "' are of no kind");
  }
  for (const Parameter& item : value.items) TAKT_RETURN_IF_ERROR(check_parameter(item, stage));
  return {};
}

Status check_stages(const Bundle& bundle) {
  TAKT_RETURN_IF_ERROR(unique_names(bundle.stages, "stage"));
  std::set<std::uint32_t> used;
  for (const BundleStage& stage : bundle.stages) {
    const std::string where = "stage '" + stage.name + "'";
    TAKT_RETURN_IF_ERROR(unique_names(stage.variants, "variant of " + where));
    TAKT_RETURN_IF_ERROR(unique_names(stage.inputs, "input of " + where));
    TAKT_RETURN_IF_ERROR(check_parameter(stage.params, stage.name));
    for (const BundleVariant& variant : stage.variants) {
      if (variant.model && !variant.plan) {
        return refuse(where + ": variant '" + variant.name + "' has a model and no plan of it");
      }
      if (!variant.plan) continue;
      if (*variant.plan >= bundle.plans.size()) return refuse(where + ": it names a plan that is not there");
      used.insert(*variant.plan);
    }
    for (const BundleInput& input : stage.inputs) {
      if (!stage.type.empty() && input.sensor >= bundle.rig.sensors.size()) {
        return refuse(where + ": input '" + input.name + "' names a sensor that the rig does not have");
      }
    }
  }
  if (used.size() != bundle.plans.size()) return refuse("a plan belongs to no stage");
  return {};
}

Status check_mode(const Bundle& bundle, const BundleMode& mode) {
  const std::string where = "mode '" + mode.name + "'";
  TAKT_RETURN_IF_ERROR(refused_with(where, sched::check(mode.problem)));
  TAKT_RETURN_IF_ERROR(refused_with(where, sched::validate(mode.problem, mode.schedule)));
  if (!bundle.rig.sensors.empty()) {
    if (bundle.rig.sensors.size() != mode.problem.sensors.size())
      return refuse(where + ": its sensors are not the rig's");
    for (std::size_t i = 0; i < mode.problem.sensors.size(); ++i) {
      if (mode.problem.sensors[i].name != bundle.rig.sensors[i].name) {
        return refuse(where + ": its sensors are not the rig's");
      }
    }
  }
  for (std::size_t s = 0; s < mode.problem.stages.size(); ++s) {
    const sched::Stage& planned = mode.problem.stages[s];
    const BundleStage* stage = find(bundle.stages, planned.name);
    if (stage == nullptr) return refuse(where + ": stage '" + planned.name + "' is missing");
    for (const sched::Input& input : planned.inputs) {
      const bool known = std::any_of(stage->inputs.begin(), stage->inputs.end(),
                                     [&](const BundleInput& own) { return own.name == input.name; });
      if (!known) return refuse(where + ": input '" + input.name + "' of stage '" + planned.name + "' is missing");
    }
    for (const sched::Variant& variant : planned.variants) {
      if (find(*stage, variant.name) == nullptr) {
        return refuse(where + ": variant '" + variant.name + "' of stage '" + planned.name + "' is missing");
      }
    }
    const sched::Choice& choice = mode.schedule.choices[s];
    const BundleVariant& chosen = *find(*stage, planned.variants[choice.variant].name);
    if (chosen.plan && !bundle.plans[*chosen.plan]->admits(choice.budget.cores)) {
      return refuse(where + ": the plan of stage '" + planned.name + "' has no partition for " +
                    std::to_string(choice.budget.cores) + " cores");
    }
  }
  if (mode.dwell.ns < 0 || mode.dwell > sched::kLongestDwell) {
    return refuse(where + ": its dwell is negative or longer than a mode may declare");
  }
  return {};
}

// An instant of one table is an instant of every other, and the same cores and units run them.
Status check_common(const BundleMode& mode, const BundleMode& first) {
  const std::string where = "modes '" + first.name + "' and '" + mode.name + "'";
  __extension__ using Wide = __int128;
  const sched::TickClock& a = first.schedule.clock;
  const sched::TickClock& b = mode.schedule.clock;
  if (Wide{a.hyperperiod.ns} * b.ticks != Wide{b.hyperperiod.ns} * a.ticks) {
    return refuse(where + " have different ticks");
  }
  const sched::Board& board = first.problem.board;
  const sched::Board& other = mode.problem.board;
  const bool same_cores =
      std::equal(board.cores.begin(), board.cores.end(), other.cores.begin(), other.cores.end(),
                 [](const sched::Core& x, const sched::Core& y) { return x.name == y.name && x.cpu == y.cpu; });
  const bool same_units =
      std::equal(board.units.begin(), board.units.end(), other.units.begin(), other.units.end(),
                 [](const sched::Unit& x, const sched::Unit& y) { return x.name == y.name && x.kind == y.kind; });
  if (!same_cores || !same_units || board.memory != other.memory || board.clock_error != other.clock_error) {
    return refuse(where + " are of different boards");
  }
  return {};
}

Status check_changes(const Bundle& bundle) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  for (const BundleChange& change : bundle.changes) {
    if (change.from >= bundle.modes.size() || change.to >= bundle.modes.size() || change.from == change.to) {
      return refuse("a change names modes that are not there, or one mode twice");
    }
    if (!seen.insert({change.from, change.to}).second) return refuse("a change of mode is declared twice");
    if (change.drain.ns < 0 || change.drain > sched::kLongestDrain) {
      return refuse("a drain is negative or longer than a mode may declare");
    }
    const BundleMode& from = bundle.modes[change.from];
    const BundleMode& to = bundle.modes[change.to];
    TAKT_RETURN_IF_ERROR(refused_with(
        "change of mode",
        sched::validate_change({&from.problem, &from.schedule}, {&to.problem, &to.schedule}, change.drain)));
  }
  for (std::uint32_t m = 0; m < bundle.modes.size(); ++m) {
    const BundleMode& mode = bundle.modes[m];
    if (mode.lost && seen.count({m, *mode.lost}) == 0) {
      return refuse("mode '" + mode.name + "': no change leads to its mode of a lost reference");
    }
  }
  return {};
}

Status check_transport(const Bundle& bundle) {
  TAKT_RETURN_IF_ERROR(unique_names(bundle.topics, "topic"));
  std::set<std::string> seen;
  std::uint64_t user_bytes = 0;
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;
  for (const transport::Pool& pool : bundle.pools.pools) {
    std::uint64_t taken = 0;
    for (const std::string& name : pool.topics) {
      const auto topic =
          std::find_if(bundle.topics.begin(), bundle.topics.end(), [&](const auto& t) { return t.name == name; });
      if (topic == bundle.topics.end() || !seen.insert(name).second)
        return refuse("topic '" + name + "' is in no pool, or in two");
      if (topic->payload_capacity > pool.payload_capacity)
        return refuse("chunks of topic '" + name + "' do not fit its pool");
      taken += std::uint64_t{topic->loans} + 1;
      for (const transport::SubscriberSpec& subscriber : topic->subscribers) {
        taken += std::uint64_t{subscriber.queue_depth} + subscriber.held;
      }
    }
    if (pool.payload_capacity > pool.chunk_bytes || pool.chunk_bytes > kMostBytes)
      return refuse("a pool's chunks are smaller than their payload");
    if (taken > pool.chunks) {
      return refuse("a pool has " + std::to_string(pool.chunks) + " chunks, its topics take " + std::to_string(taken));
    }
    if (pool.chunks > kMostBytes / std::max<std::uint64_t>(pool.chunk_bytes, 1))
      return refuse("a pool is larger than any memory");
    user_bytes += pool.chunk_bytes * pool.chunks;
  }
  if (seen.size() != bundle.topics.size()) return refuse("a topic is in no pool");
  if (user_bytes != bundle.pools.user_bytes) return refuse("the pools do not add up");
  return {};
}

Status check_arenas(const Bundle& bundle) {
  const std::vector<ArenaPlace>& places = bundle.arenas.places;
  const Serialisation serialisation(bundle.modes, bundle.changes);
  std::vector<std::uint64_t> placed(bundle.stages.size(), 0);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const ArenaPlace& a = places[i];
    if (a.stage >= bundle.stages.size() || (i > 0 && places[i - 1].stage >= a.stage)) {
      return refuse("arenas are not listed by stage");
    }
    const std::string where = "the arena of stage '" + bundle.stages[a.stage].name + "'";
    if (a.base % plan::kAlignment != 0 || a.bytes == 0) return refuse(where + " does not begin at a multiple of 64");
    if (a.base > bundle.arenas.block_bytes || a.bytes > bundle.arenas.block_bytes - a.base) {
      return refuse(where + " leaves the block");
    }
    placed[a.stage] = a.bytes;
    for (std::size_t k = 0; k < i; ++k) {
      const ArenaPlace& b = places[k];
      if (a.base >= b.base + b.bytes || b.base >= a.base + a.bytes) continue;
      if (!serialisation.apart(bundle.stages[a.stage].name, bundle.stages[b.stage].name)) {
        return refuse(where + " shares bytes with that of stage '" + bundle.stages[b.stage].name +
                      "', and nothing keeps them apart in every mode and across every change");
      }
    }
  }
  for (std::size_t stage = 0; stage < bundle.stages.size(); ++stage) {
    if (placed[stage] < arena_bytes(bundle, stage)) {
      return refuse("the arena of stage '" + bundle.stages[stage].name + "' is too small or missing");
    }
  }
  return refused_with("memory", check_memory(bundle.modes, bundle.arenas));
}

}  // namespace

Status check_bundle(const Bundle& bundle) {
  if (bundle.modes.empty() || bundle.modes.size() > sched::kMostModes) {
    return refuse("it has no mode, or more than " + std::to_string(sched::kMostModes));
  }
  TAKT_RETURN_IF_ERROR(unique_names(bundle.modes, "mode"));
  TAKT_RETURN_IF_ERROR(check_stages(bundle));
  for (const BundleMode& mode : bundle.modes) {
    TAKT_RETURN_IF_ERROR(check_mode(bundle, mode));
    TAKT_RETURN_IF_ERROR(check_common(mode, bundle.modes.front()));
  }
  TAKT_RETURN_IF_ERROR(check_changes(bundle));
  TAKT_RETURN_IF_ERROR(check_transport(bundle));
  return check_arenas(bundle);
}

}  // namespace takt::pipeline
