#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "pipeline/bundle/bundle.h"
#include "scheduler/model/footprint.h"
#include "scheduler/model/text.h"

namespace takt::pipeline {
namespace {

std::optional<std::uint32_t> find_stage(const sched::Problem& problem, const std::string& name) {
  for (std::uint32_t i = 0; i < problem.stages.size(); ++i) {
    if (problem.stages[i].name == name) return i;
  }
  return std::nullopt;
}

const sched::Variant& chosen(const BundleMode& mode, std::uint32_t stage) {
  return mode.problem.stages[stage].variants[mode.schedule.choices[stage].variant];
}

std::uint64_t rounded_up(std::uint64_t bytes) {
  return (bytes + plan::kAlignment - 1) / plan::kAlignment * plan::kAlignment;
}

}  // namespace

Serialisation::Serialisation(const std::vector<BundleMode>& modes, const std::vector<BundleChange>& changes)
    : modes_(modes), changes_(changes) {
  for (const BundleMode& mode : modes) {
    std::map<std::string, Use>& uses = uses_.emplace_back();
    std::vector<Use*> by_stage;
    for (std::uint32_t stage = 0; stage < mode.problem.stages.size(); ++stage) {
      Use& use = uses[mode.problem.stages[stage].name];
      use.head = mode.problem.hyperperiod;
      use.tail = Duration{} - mode.problem.hyperperiod;
      if (const auto& mutex = chosen(mode, stage).arena_mutex) use.mutex = mode.problem.mutexes[*mutex].name;
      by_stage.push_back(&use);
    }
    std::vector<bool> leaves(by_stage.size(), false);  // its cores, while a part of its job runs elsewhere
    for (const sched::Slot& slot : mode.schedule.slots) {
      Use& use = *by_stage[slot.stage];
      use.head = std::min(use.head, mode.schedule.clock.start_at(0, slot.start) - TableTime{});
      use.tail = std::max(use.tail, mode.schedule.clock.end_at(0, slot.end) - (TableTime{} + mode.problem.hyperperiod));
      if (slot.unit || slot.segment > 0) leaves[slot.stage] = true;
      if (slot.job != 0 || slot.segment != 0) continue;  // the home is the same for all jobs
      for (const std::uint32_t core : slot.cores) use.cores.push_back(mode.problem.board.cores[core].name);
    }
    for (std::size_t stage = 0; stage < by_stage.size(); ++stage) {
      if (leaves[stage]) by_stage[stage]->cores.clear();
    }
  }
}

const Serialisation::Use* Serialisation::find(std::size_t mode, const std::string& stage) const {
  const auto found = uses_[mode].find(stage);
  return found == uses_[mode].end() ? nullptr : &found->second;
}

// Cores and mutexes are the same where they have the same name.
bool Serialisation::kept_apart(const Use& one, const Use& other) {
  if (!one.mutex.empty() && one.mutex == other.mutex) return true;
  return std::find_first_of(one.cores.begin(), one.cores.end(), other.cores.begin(), other.cores.end()) !=
         one.cores.end();
}

// Whether no job of `stage` in the old mode can run beside one of `other` in the new mode.
bool Serialisation::apart_across(const BundleChange& change, const std::string& stage, const std::string& other) const {
  const Use* old_use = find(change.from, stage);
  if (old_use == nullptr) return true;
  const sched::Problem& from = modes_[change.from].problem;
  const sched::Problem& to = modes_[change.to].problem;
  // Two clocks meet. A tail that outlives the whole next hyperperiod might meet a third mode.
  const Duration left = old_use->tail + std::max(from.board.clock_error, to.board.clock_error) - change.drain;
  if (left > to.hyperperiod) return false;
  const Use* new_use = find(change.to, other);
  return new_use == nullptr || left <= new_use->head || kept_apart(*old_use, *new_use);
}

bool Serialisation::apart(const std::string& stage, const std::string& other) const {
  for (std::size_t mode = 0; mode < modes_.size(); ++mode) {
    const Use* one = find(mode, stage);
    const Use* with = find(mode, other);
    if (one != nullptr && with != nullptr && !kept_apart(*one, *with)) return false;
  }
  return std::all_of(changes_.begin(), changes_.end(), [&](const BundleChange& change) {
    return apart_across(change, stage, other) && apart_across(change, other, stage);
  });
}

ArenaMap place_arenas(const std::vector<BundleMode>& modes, const std::vector<BundleChange>& changes,
                      const std::vector<BundleStage>& stages, const std::vector<std::uint64_t>& bytes) {
  std::vector<std::uint32_t> order(stages.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return bytes[a] > bytes[b]; });
  const Serialisation serialisation(modes, changes);
  ArenaMap map;
  for (const std::uint32_t stage : order) {
    if (bytes[stage] == 0) continue;
    const std::uint64_t size = rounded_up(bytes[stage]);
    std::vector<ArenaPlace> apart;  // whose bytes it must not have, by base
    for (const ArenaPlace& place : map.places) {
      if (!serialisation.apart(stages[stage].name, stages[place.stage].name)) apart.push_back(place);
    }
    std::sort(apart.begin(), apart.end(), [](const ArenaPlace& a, const ArenaPlace& b) { return a.base < b.base; });
    std::uint64_t base = 0;
    for (const ArenaPlace& place : apart) {
      if (base + size <= place.base) break;
      base = std::max(base, place.base + place.bytes);
    }
    map.places.push_back({stage, base, size});
    map.block_bytes = std::max(map.block_bytes, base + size);
  }
  std::sort(map.places.begin(), map.places.end(),
            [](const ArenaPlace& a, const ArenaPlace& b) { return a.stage < b.stage; });
  return map;
}

std::uint64_t arena_bytes(const Bundle& bundle, std::size_t stage) {
  std::uint64_t most = 0;
  for (const BundleMode& mode : bundle.modes) {
    const auto index = find_stage(mode.problem, bundle.stages[stage].name);
    if (!index) continue;
    const sched::Stage& planned = mode.problem.stages[*index];
    for (const std::uint32_t v : sched::variants_with(planned, mode.schedule.choices[*index].variant)) {
      most = std::max(most, static_cast<std::uint64_t>(planned.variants[v].arena));
      for (const BundleVariant& variant : bundle.stages[stage].variants) {
        if (variant.name != planned.variants[v].name || !variant.plan) continue;
        most = std::max(most, bundle.plans[*variant.plan]->description().arena_bytes);
      }
    }
  }
  return most;
}

Status check_memory(const std::vector<BundleMode>& modes, const ArenaMap& arenas) {
  const std::int64_t memory = modes.front().problem.board.memory;
  if (memory == 0) return {};
  std::map<std::pair<std::string, std::string>, std::int64_t> resident;  // by stage, variant
  for (const BundleMode& mode : modes) {
    for (std::uint32_t s = 0; s < mode.problem.stages.size(); ++s) {
      const sched::Stage& stage = mode.problem.stages[s];
      for (const std::uint32_t v : sched::variants_with(stage, mode.schedule.choices[s].variant)) {
        std::int64_t& bytes = resident[{stage.name, stage.variants[v].name}];
        bytes = std::max(bytes, stage.variants[v].resident);
      }
    }
  }
  __extension__ using Wide = __int128;
  Wide all = 0;
  for (const auto& [what, bytes] : resident) all += bytes;
  const Wide missing = all + Wide{arenas.block_bytes} - memory;
  if (missing <= 0) return {};
  constexpr Wide kMost = std::numeric_limits<std::int64_t>::max();
  const auto text = [&](Wide bytes) { return sched::bytes_text(static_cast<std::int64_t>(std::min(bytes, kMost))); };
  return fail(Code::kGate, "the variants of all modes keep " + text(all) + " resident, and the arenas as placed take " +
                               text(arenas.block_bytes) + "; the board has " + text(memory) + ": " + text(missing) +
                               " too much. Use smaller variants, or the same ones in more modes");
}

}  // namespace takt::pipeline
