#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "runtime/plan/plan.h"

namespace takt::plan {

std::uint64_t weight_bytes(const Description& d) {
  std::uint64_t bytes = 0;
  for (const Section& section : d.sections) bytes += section.bytes;
  return bytes;
}

std::uint64_t dearest(const Description& d, std::span<const std::uint64_t> cost) {
  std::vector<std::uint64_t> total(d.guards.size(), 0);  // of a guard: its steps and what is nested in it
  std::uint64_t always = 0;
  const auto sum = [&](std::uint32_t guard) -> std::uint64_t& { return guard == kNone ? always : total[guard]; };
  for (std::size_t i = 0; i < d.steps.size(); ++i) sum(d.steps[i].guard) += cost[i];

  struct Condition {
    std::size_t first = SIZE_MAX;  // guard that asks it
    std::uint64_t ways[2] = {0, 0};
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Condition> conditions;
  const auto condition = [&](const Guard& g) -> Condition& { return conditions[{g.parent, g.condition}]; };
  for (std::size_t g = 0; g < d.guards.size(); ++g) {
    condition(d.guards[g]).first = std::min(condition(d.guards[g]).first, g);
  }
  // Children have larger indices: a guard's total is known when it is reached, and a condition's two ways at its first.
  for (std::size_t g = d.guards.size(); g-- > 0;) {
    Condition& c = condition(d.guards[g]);
    c.ways[d.guards[g].when ? 1 : 0] += total[g];
    if (c.first == g) sum(d.guards[g].parent) += std::max(c.ways[0], c.ways[1]);
  }
  return always;
}

}  // namespace takt::plan
