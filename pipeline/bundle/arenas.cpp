#include <algorithm>
#include <numeric>
#include <optional>

#include "pipeline/bundle/bundle.h"

namespace takt::pipeline {
namespace {

std::optional<std::uint32_t> find_stage(const sched::Problem& problem, const std::string& name) {
  for (std::uint32_t i = 0; i < problem.stages.size(); ++i) {
    if (problem.stages[i].name == name) return i;
  }
  return std::nullopt;
}

// Cores that every job of the stage holds from its start to its end: its home, unless a part of the job runs elsewhere
// while other jobs may use them.
std::vector<std::uint32_t> held_throughout(const sched::Schedule& schedule, std::uint32_t stage) {
  std::vector<std::uint32_t> cores;
  for (const sched::Slot& slot : schedule.slots) {
    if (slot.stage != stage) continue;
    if (slot.unit || slot.segment > 0) return {};
    cores = slot.cores;  // the home is the same for all jobs
  }
  return cores;
}

std::uint64_t rounded_up(std::uint64_t bytes) {
  return (bytes + plan::kAlignment - 1) / plan::kAlignment * plan::kAlignment;
}

}  // namespace

bool serialised(const std::vector<BundleMode>& modes, const std::string& stage, const std::string& other) {
  for (const BundleMode& mode : modes) {
    const auto a = find_stage(mode.problem, stage);
    const auto b = find_stage(mode.problem, other);
    if (!a || !b) continue;
    const auto& variant_a = mode.problem.stages[*a].variants[mode.schedule.choices[*a].variant];
    const auto& variant_b = mode.problem.stages[*b].variants[mode.schedule.choices[*b].variant];
    if (variant_a.arena_mutex && variant_a.arena_mutex == variant_b.arena_mutex) continue;
    const std::vector<std::uint32_t> cores_a = held_throughout(mode.schedule, *a);
    const std::vector<std::uint32_t> cores_b = held_throughout(mode.schedule, *b);
    const bool common = std::any_of(cores_a.begin(), cores_a.end(), [&](std::uint32_t core) {
      return std::find(cores_b.begin(), cores_b.end(), core) != cores_b.end();
    });
    if (!common) return false;
  }
  return true;
}

ArenaMap place_arenas(const std::vector<BundleMode>& modes, const std::vector<BundleStage>& stages,
                      const std::vector<std::uint64_t>& bytes) {
  std::vector<std::uint32_t> order(stages.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return bytes[a] > bytes[b]; });
  ArenaMap map;
  for (const std::uint32_t stage : order) {
    if (bytes[stage] == 0) continue;
    const std::uint64_t size = rounded_up(bytes[stage]);
    std::vector<ArenaPlace> apart;  // whose bytes it must not have, by base
    for (const ArenaPlace& place : map.places) {
      if (!serialised(modes, stages[stage].name, stages[place.stage].name)) apart.push_back(place);
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
    const sched::Variant& chosen = mode.problem.stages[*index].variants[mode.schedule.choices[*index].variant];
    most = std::max(most, static_cast<std::uint64_t>(chosen.arena));
    for (const BundleVariant& variant : bundle.stages[stage].variants) {
      if (variant.name != chosen.name || !variant.plan) continue;
      most = std::max(most, bundle.plans[*variant.plan]->description().arena_bytes);
    }
  }
  return most;
}

}  // namespace takt::pipeline
