#include "scheduler/model/footprint.h"

#include <algorithm>

namespace takt::sched {

std::vector<std::uint32_t> variants_with(const Stage& stage, std::uint32_t chosen) {
  std::vector<std::uint32_t> out{chosen};
  if (const auto degraded = degraded_variant(stage); degraded && *degraded != chosen) out.push_back(*degraded);
  return out;
}

Footprint footprint(const Stage& stage, std::uint32_t chosen) {
  Footprint out;
  for (const std::uint32_t v : variants_with(stage, chosen)) {
    out.resident += stage.variants[v].resident;
    out.arena = std::max(out.arena, stage.variants[v].arena);
  }
  return out;
}

}  // namespace takt::sched
