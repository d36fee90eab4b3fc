#include "compiler/lower/memory_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "runtime/base/sizes.h"

namespace takt::lower {
namespace {

using Order = std::vector<std::uint32_t>;

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

// Is there a placement below a capacity? Blocks are placed at ascending offsets, each as low as the blocks placed
// before it allow; every placement can be pushed into this form, so nothing is lost.
class Search {
 public:
  Search(std::span<const Block> blocks, Order preference) : blocks_(blocks), preference_(std::move(preference)) {
    rank_.resize(blocks.size());
    for (std::size_t i = 0; i < preference_.size(); ++i) rank_[preference_[i]] = static_cast<std::uint32_t>(i);
    // Sections: spans of steps over which the set of live blocks does not change.
    std::set<std::uint64_t> cuts;
    for (const Block& b : blocks) {
      cuts.insert(b.first);
      cuts.insert(std::uint64_t{b.last} + 1);
    }
    const std::vector<std::uint64_t> cut(cuts.begin(), cuts.end());
    const auto index = [&](std::uint64_t step) {
      return static_cast<std::uint32_t>(std::lower_bound(cut.begin(), cut.end(), step) - cut.begin());
    };
    section_left_.assign(cut.size(), 0);
    for (const Block& b : blocks) {
      spans_.push_back({index(b.first), index(std::uint64_t{b.last} + 1)});
      for (std::uint32_t s = spans_.back().first; s < spans_.back().second; ++s) section_left_[s] += b.bytes;
    }
    offsets_.assign(blocks.size(), 0);
    floor_.assign(blocks.size(), 0);
    placed_.assign(blocks.size(), false);
    neighbours_.resize(blocks.size());
    for (std::uint32_t i = 0; i < blocks.size(); ++i) {
      for (std::uint32_t j = 0; j < blocks.size(); ++j) {
        if (i != j && together(blocks[i], blocks[j])) neighbours_[i].push_back(j);
      }
    }
  }

  enum class Answer { kYes, kNo, kUnknown };
  Answer run(std::uint64_t capacity, std::uint64_t node_limit) {
    capacity_ = capacity;
    nodes_ = 0;
    limit_ = node_limit;
    const bool found = descend(0, 0, blocks_.size());
    return found ? Answer::kYes : nodes_ >= limit_ ? Answer::kUnknown : Answer::kNo;
  }
  [[nodiscard]] std::uint64_t nodes() const { return nodes_; }
  [[nodiscard]] const std::vector<std::uint64_t>& offsets() const { return offsets_; }

 private:
  struct Candidate {
    std::uint64_t offset;
    std::uint32_t block;
  };

  // What is left in every section still fits above the lowest place that any of its blocks can have.
  bool fits(std::uint64_t lowest) {
    section_floor_.assign(section_left_.size(), UINT64_MAX);
    for (std::uint32_t i = 0; i < blocks_.size(); ++i) {
      if (placed_[i]) continue;
      const std::uint64_t floor = std::max(floor_[i], lowest);
      if (floor + blocks_[i].bytes > capacity_) return false;
      for (std::uint32_t s = spans_[i].first; s < spans_[i].second; ++s) {
        section_floor_[s] = std::min(section_floor_[s], floor);
      }
    }
    for (std::size_t s = 0; s < section_left_.size(); ++s) {
      if (section_left_[s] > 0 && section_floor_[s] + section_left_[s] > capacity_) return false;
    }
    return true;
  }

  bool descend(std::uint64_t lowest, std::uint32_t lowest_rank, std::size_t left) {
    if (left == 0) return true;
    if (++nodes_ >= limit_ || !fits(lowest)) return false;
    // A block that would begin above the place where another could end leaves room for that one below it: the same
    // placement is found with the other one first.
    std::uint64_t ceiling = UINT64_MAX;
    for (std::uint32_t i = 0; i < blocks_.size(); ++i) {
      if (!placed_[i]) ceiling = std::min(ceiling, std::max(floor_[i], lowest) + blocks_[i].bytes);
    }
    std::vector<Candidate> candidates;
    for (const std::uint32_t i : preference_) {
      if (placed_[i] || floor_[i] < lowest || floor_[i] >= ceiling) continue;
      if (floor_[i] == lowest && rank_[i] < lowest_rank) continue;  // would have come before
      candidates.push_back({floor_[i], i});
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.offset < b.offset; });
    for (const Candidate& candidate : candidates) {
      const std::size_t mark = undo_.size();
      place(candidate);
      if (descend(candidate.offset, rank_[candidate.block], left - 1)) return true;
      remove(candidate.block, mark);
      if (nodes_ >= limit_) return false;
    }
    return false;
  }

  void place(const Candidate& candidate) {
    const std::uint32_t i = candidate.block;
    placed_[i] = true;
    offsets_[i] = candidate.offset;
    const std::uint64_t end = candidate.offset + blocks_[i].bytes;
    for (std::uint32_t s = spans_[i].first; s < spans_[i].second; ++s) section_left_[s] -= blocks_[i].bytes;
    for (const std::uint32_t j : neighbours_[i]) {
      if (placed_[j] || floor_[j] >= end) continue;
      undo_.push_back({floor_[j], j});
      floor_[j] = end;
    }
  }
  void remove(std::uint32_t i, std::size_t mark) {
    for (; undo_.size() > mark; undo_.pop_back()) floor_[undo_.back().block] = undo_.back().offset;
    for (std::uint32_t s = spans_[i].first; s < spans_[i].second; ++s) section_left_[s] += blocks_[i].bytes;
    placed_[i] = false;
  }

  std::span<const Block> blocks_;
  Order preference_;
  std::vector<std::uint32_t> rank_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> spans_;  // of sections, by block
  std::vector<std::uint64_t> section_left_, section_floor_;
  std::vector<std::uint64_t> offsets_, floor_;
  std::vector<bool> placed_;
  std::vector<std::vector<std::uint32_t>> neighbours_;
  std::vector<Candidate> undo_;
  std::uint64_t capacity_ = 0, nodes_ = 0, limit_ = 0;
};

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

  // First the lower bound itself, which is where most nets end; then ever less below the best.
  bool impossible = false;  // one unit less than the best
  std::uint64_t target = plan.lower_bound;
  while (plan.peak > plan.lower_bound && !impossible && plan.nodes < options.node_limit) {
    const std::uint64_t share = (options.node_limit - plan.nodes) / std::size(orders) + 1;
    auto answer = Search::Answer::kUnknown;
    for (const Order& order : orders) {
      Search search(blocks, order);
      answer = search.run(target, std::min(share, options.node_limit - plan.nodes));
      plan.nodes += search.nodes();
      if (answer == Search::Answer::kYes) consider(search.offsets());
      if (answer != Search::Answer::kUnknown) break;
    }
    if (answer == Search::Answer::kUnknown) break;
    impossible = answer == Search::Answer::kNo && target + options.alignment >= plan.peak;
    target = plan.peak - options.alignment;
  }
  plan.proof = plan.peak == plan.lower_bound ? plan::Proof::kOptimal
               : impossible                  ? plan::Proof::kSearched
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
