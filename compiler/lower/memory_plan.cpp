#include "compiler/lower/memory_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "compiler/lower/memory_search.h"
#include "runtime/base/sizes.h"

namespace takt::lower {
namespace {

using Order = std::vector<std::uint32_t>;

// The search keeps a list of what is left at every depth.
constexpr std::size_t kMostSearched = 4096;

bool together(const Block& a, const Block& b) { return a.first <= b.last && b.first <= a.last; }

std::uint64_t lower_bound_of(std::span<const Block> blocks) {
  std::map<std::uint64_t, std::int64_t> change;
  for (const Block& b : blocks) {
    change[b.first] += static_cast<std::int64_t>(b.bytes);
    change[std::uint64_t{b.last} + 1] -= static_cast<std::int64_t>(b.bytes);
  }
  std::int64_t live = 0, most = 0;
  for (const auto& [step, bytes] : change) most = std::max(most, live += bytes);
  return static_cast<std::uint64_t>(most);
}

std::uint64_t peak_of(std::span<const Block> blocks, const std::vector<std::uint64_t>& offsets) {
  std::uint64_t peak = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) peak = std::max(peak, offsets[i] + blocks[i].bytes);
  return peak;
}

enum class Fit { kFirst, kBest };

// One block after the other into the lowest (first fit) or the tightest (best fit) gap between the blocks placed so far
// that are alive with it.
std::vector<std::uint64_t> greedy(std::span<const Block> blocks, const Order& order, Fit fit) {
  std::vector<std::uint64_t> offsets(blocks.size(), 0);
  std::vector<std::uint32_t> by_offset;  // placed
  for (const std::uint32_t i : order) {
    std::uint64_t end = 0, chosen = UINT64_MAX, chosen_room = UINT64_MAX;
    for (const std::uint32_t j : by_offset) {
      if (!together(blocks[i], blocks[j])) continue;
      if (offsets[j] >= end + blocks[i].bytes) {
        const std::uint64_t room = offsets[j] - end;
        if (room < chosen_room) {
          chosen = end;
          chosen_room = room;
        }
        if (fit == Fit::kFirst) break;
      }
      end = std::max(end, offsets[j] + blocks[j].bytes);
    }
    offsets[i] = chosen == UINT64_MAX ? end : chosen;
    const auto after = std::upper_bound(by_offset.begin(), by_offset.end(), offsets[i],
                                        [&](std::uint64_t at, std::uint32_t j) { return at < offsets[j]; });
    by_offset.insert(after, i);
  }
  return offsets;
}

// Indices by descending key; equal keys keep the order of the blocks.
template <class Key>
Order sorted(std::span<const Block> blocks, Key key) {
  Order order(blocks.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return key(blocks[a]) > key(blocks[b]); });
  return order;
}

std::uint64_t length(const Block& b) { return std::uint64_t{b.last} - b.first + 1; }

}  // namespace

MemoryPlan plan_memory(std::span<const Block> given, const MemoryOptions& options) {
  std::vector<Block> blocks(given.begin(), given.end());
  for (Block& b : blocks) b.bytes = round_up(b.bytes, options.alignment);
  MemoryPlan plan;
  plan.lower_bound = lower_bound_of(blocks);
  plan.peak = UINT64_MAX;
  const auto consider = [&](std::vector<std::uint64_t> offsets) {
    const std::uint64_t peak = peak_of(blocks, offsets);
    if (peak < plan.peak) {
      plan.peak = peak;
      plan.offsets = std::move(offsets);
    }
    return peak;
  };
  const auto by_size = sorted(blocks, [](const Block& b) { return b.bytes; });
  const Order orders[] = {
      by_size,
      sorted(blocks, [](const Block& b) { return std::pair(b.bytes * length(b), b.bytes); }),
      sorted(blocks, [](const Block& b) { return std::pair(length(b), b.bytes); }),
      sorted(blocks, [](const Block& b) { return std::pair(UINT32_MAX - b.first, b.bytes); }),
  };
  plan.greedy_by_size_peak = consider(greedy(blocks, by_size, Fit::kFirst));
  for (const Order& order : orders) {
    for (const Fit fit : {Fit::kFirst, Fit::kBest}) consider(greedy(blocks, order, fit));
  }
  plan.greedy_peak = plan.peak;

  // First the lower bound itself, which is where most nets end, then the middle of what is left.
  std::uint64_t low = plan.lower_bound;         // the least peak that is still worth a try
  std::uint64_t impossible = plan.lower_bound;  // known: less than this cannot be
  if (plan.peak > low && blocks.size() <= kMostSearched) {
    MemorySearch search(blocks);
    std::uint64_t target = low;
    while (low < plan.peak && plan.nodes < options.node_limit) {
      const auto answer = search.run(target, (options.node_limit - plan.nodes + 1) / 2);
      plan.nodes = search.nodes();
      if (answer == MemorySearch::Answer::kYes) {
        consider(search.offsets());
      } else {
        low = target + options.alignment;
        if (answer == MemorySearch::Answer::kNo) impossible = low;
      }
      target = low + (plan.peak - low) / 2 / options.alignment * options.alignment;
    }
  }
  plan.proof = plan.peak == plan.lower_bound ? plan::Proof::kOptimal
               : impossible == plan.peak     ? plan::Proof::kSearched
                                             : plan::Proof::kOpen;
  if (blocks.empty()) plan.peak = 0;
  return plan;
}

Status validate(std::span<const Block> blocks, const MemoryPlan& plan, std::uint64_t alignment) {
  if (plan.offsets.size() != blocks.size()) return fail(Code::kInternal, "the memory plan has not one offset a block");
  std::uint64_t peak = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (plan.offsets[i] % alignment != 0) {
      return fail(Code::kInternal, "block " + std::to_string(i) + " is not aligned");
    }
    const std::uint64_t end = plan.offsets[i] + blocks[i].bytes;
    peak = std::max(peak, (end + alignment - 1) / alignment * alignment);
    for (std::size_t j = 0; j < i; ++j) {
      const bool in_time = !(blocks[i].last < blocks[j].first || blocks[j].last < blocks[i].first);
      const bool in_space = plan.offsets[i] < plan.offsets[j] + blocks[j].bytes && plan.offsets[j] < end;
      if (in_time && in_space) {
        return fail(Code::kInternal, "blocks " + std::to_string(j) + " and " + std::to_string(i) +
                                         " lie at the same place at the same time");
      }
    }
  }
  if (peak != plan.peak) {
    return fail(Code::kInternal,
                "the memory plan says " + std::to_string(plan.peak) + " bytes and needs " + std::to_string(peak));
  }
  return {};
}

}  // namespace takt::lower
