// Where the blocks of an arena lie: a component of its own, from sizes and lifetimes to offsets. Deterministic: limits
// are counts of search nodes, never time.
//
// First greedy placement under several orders (by size, by area, by length, by start; first fit and best fit: Pisarchyk
// and Lee, arXiv 2001.03288), then, while the best lies above the lower bound, the exact search of memory_search.h.
// Never worse than greedy by size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/plan/plan.h"

namespace takt::lower {

struct Block {
  std::uint64_t bytes = 0;
  std::uint32_t first = 0, last = 0;  // steps in which it is alive, both included
};

struct MemoryOptions {
  std::uint64_t alignment = plan::kAlignment;  // offsets are multiples of it, sizes are rounded up to it
  std::uint64_t node_limit = 200'000;          // of the exact search; 0: greedy only
};

struct MemoryPlan {
  std::vector<std::uint64_t> offsets;  // by block
  std::uint64_t peak = 0;
  std::uint64_t lower_bound = 0;  // most bytes alive in one step
  plan::Proof proof = plan::Proof::kOpen;
  std::uint64_t greedy_peak = 0;          // best of the greedy orders
  std::uint64_t greedy_by_size_peak = 0;  // of first fit by size
  std::uint64_t nodes = 0;                // searched
};

MemoryPlan plan_memory(std::span<const Block> blocks, const MemoryOptions& options = {});

// Shares nothing with the planner: pairs of blocks alive in one step that overlap, offsets that are not aligned, a peak
// that is not the end of the last block. kInternal, naming the pair.
Status validate(std::span<const Block> blocks, const MemoryPlan& plan, std::uint64_t alignment);

}  // namespace takt::lower
