#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "pipeline/bundle/bundle.h"
#include "scheduler/model/text.h"

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

const sched::Variant& chosen(const BundleMode& mode, std::uint32_t stage) {
  return mode.problem.stages[stage].variants[mode.schedule.choices[stage].variant];
}

// Whether a core or a mutex keeps jobs of one stage in one mode from those of the other stage in the same mode or,
// where a change is permitted, in another. Cores and mutexes are the same where they have the same name.
bool kept_apart(const BundleMode& mode, std::uint32_t stage, const BundleMode& other_mode, std::uint32_t other) {
  const std::optional<std::uint32_t>& mutex = chosen(mode, stage).arena_mutex;
  const std::optional<std::uint32_t>& other_mutex = chosen(other_mode, other).arena_mutex;
  if (mutex && other_mutex && mode.problem.mutexes[*mutex].name == other_mode.problem.mutexes[*other_mutex].name) {
    return true;
  }
  const std::vector<std::uint32_t> others = held_throughout(other_mode.schedule, other);
  const std::vector<std::uint32_t> cores = held_throughout(mode.schedule, stage);
  return std::any_of(cores.begin(), cores.end(), [&](std::uint32_t core) {
    return std::any_of(others.begin(), others.end(), [&](std::uint32_t with) {
      return mode.problem.board.cores[core].name == other_mode.problem.board.cores[with].name;
    });
  });
}

// How long after the end of a hyperperiod the last job that began in it may run.
Duration tail(const BundleMode& mode, std::uint32_t stage) {
  Duration out;
  for (const sched::Slot& slot : mode.schedule.slots) {
    if (slot.stage != stage) continue;
    out = std::max(out, mode.schedule.clock.end_at(0, slot.end) - (TableTime{} + mode.problem.hyperperiod));
  }
  return out;
}

// When the first job of the table begins.
Duration head(const BundleMode& mode, std::uint32_t stage) {
  Duration out = mode.problem.hyperperiod;
  for (const sched::Slot& slot : mode.schedule.slots) {
    if (slot.stage == stage) out = std::min(out, mode.schedule.clock.start_at(0, slot.start) - TableTime{});
  }
  return out;
}

// Whether no job of `stage` in the old mode can run beside one of `other` in the new mode.
bool apart_across(const BundleMode& from, const std::string& stage, const BundleMode& to, const std::string& other,
                  Duration drain) {
  const auto old_stage = find_stage(from.problem, stage);
  if (!old_stage) return true;
  // Two clocks meet. A tail that outlives the whole next hyperperiod might meet a third mode.
  const Duration left =
      tail(from, *old_stage) + std::max(from.problem.board.clock_error, to.problem.board.clock_error) - drain;
  if (left > to.problem.hyperperiod) return false;
  const auto new_stage = find_stage(to.problem, other);
  return !new_stage || left <= head(to, *new_stage) || kept_apart(from, *old_stage, to, *new_stage);
}

std::uint64_t rounded_up(std::uint64_t bytes) {
  return (bytes + plan::kAlignment - 1) / plan::kAlignment * plan::kAlignment;
}

}  // namespace

bool serialised(const std::vector<BundleMode>& modes, const std::vector<BundleChange>& changes,
                const std::string& stage, const std::string& other) {
  for (const BundleMode& mode : modes) {
    const auto a = find_stage(mode.problem, stage);
    const auto b = find_stage(mode.problem, other);
    if (a && b && !kept_apart(mode, *a, mode, *b)) return false;
  }
  return std::all_of(changes.begin(), changes.end(), [&](const BundleChange& change) {
    const BundleMode& from = modes[change.from];
    const BundleMode& to = modes[change.to];
    return apart_across(from, stage, to, other, change.drain) && apart_across(from, other, to, stage, change.drain);
  });
}

ArenaMap place_arenas(const std::vector<BundleMode>& modes, const std::vector<BundleChange>& changes,
                      const std::vector<BundleStage>& stages, const std::vector<std::uint64_t>& bytes) {
  std::vector<std::uint32_t> order(stages.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return bytes[a] > bytes[b]; });
  ArenaMap map;
  for (const std::uint32_t stage : order) {
    if (bytes[stage] == 0) continue;
    const std::uint64_t size = rounded_up(bytes[stage]);
    std::vector<ArenaPlace> apart;  // whose bytes it must not have, by base
    for (const ArenaPlace& place : map.places) {
      if (!serialised(modes, changes, stages[stage].name, stages[place.stage].name)) apart.push_back(place);
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
    const sched::Variant& with = chosen(mode, *index);
    most = std::max(most, static_cast<std::uint64_t>(with.arena));
    for (const BundleVariant& variant : bundle.stages[stage].variants) {
      if (variant.name != with.name || !variant.plan) continue;
      most = std::max(most, bundle.plans[*variant.plan]->description().arena_bytes);
    }
  }
  return most;
}

Status check_memory(const std::vector<BundleMode>& modes, const ArenaMap& arenas) {
  const std::int64_t memory = modes.front().problem.board.memory;
  if (memory == 0) return {};
  std::map<std::pair<std::string, std::string>, std::int64_t> resident;  // by stage, variant
  for (const BundleMode& mode : modes) {
    for (std::uint32_t stage = 0; stage < mode.problem.stages.size(); ++stage) {
      std::int64_t& bytes = resident[{mode.problem.stages[stage].name, chosen(mode, stage).name}];
      bytes = std::max(bytes, chosen(mode, stage).resident);
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
