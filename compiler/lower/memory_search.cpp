#include "compiler/lower/memory_search.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

namespace takt::lower {
namespace {

constexpr std::uint64_t kFirstRun = 1000;  // nodes

}  // namespace

MemorySearch::MemorySearch(std::span<const Block> blocks) : blocks_(blocks) {
  const std::size_t count = blocks.size();
  std::set<std::uint64_t> cuts;
  for (const Block& b : blocks) {
    cuts.insert(b.first);
    cuts.insert(std::uint64_t{b.last} + 1);
  }
  const std::vector<std::uint64_t> cut(cuts.begin(), cuts.end());
  const auto section_at = [&](std::uint64_t step) {
    return static_cast<Index>(std::lower_bound(cut.begin(), cut.end(), step) - cut.begin());
  };
  section_left_.assign(cut.size(), 0);
  section_floor_.assign(cut.size(), 0);
  section_load_.assign(cut.size(), 0);
  section_failures_.assign(cut.size(), 0);
  for (const Block& b : blocks) {
    spans_.emplace_back(section_at(b.first), section_at(std::uint64_t{b.last} + 1));
    for (Index s = spans_.back().first; s < spans_.back().second; ++s) section_left_[s] += b.bytes;
  }
  rank_.assign(count, 0);
  offsets_.assign(count, 0);
  floor_.assign(count, 0);
  placed_.assign(count, false);
  place_.assign(count, 0);
  block_failures_.assign(count, 0);
  neighbours_.resize(count);
  for (Index i = 0; i < count; ++i) {
    for (Index j = 0; j < count; ++j) {
      if (i != j && blocks[i].first <= blocks[j].last && blocks[j].first <= blocks[i].last) neighbours_[i].push_back(j);
    }
  }

  // Descending by the fullest section, length, area and size, in the combinations that solve different instances.
  std::vector<std::uint64_t> fullest(count, 0), length(count), area(count), size(count);
  for (Index i = 0; i < count; ++i) {
    for (Index s = spans_[i].first; s < spans_[i].second; ++s) fullest[i] = std::max(fullest[i], section_left_[s]);
    size[i] = blocks[i].bytes;
    length[i] = std::uint64_t{blocks[i].last} - blocks[i].first + 1;
    area[i] = length[i] * size[i];
  }
  using Keys = std::vector<std::uint64_t>;
  for (const auto& [a, b, c] : {std::tuple<const Keys&, const Keys&, const Keys&>(fullest, length, area),
                                {fullest, area, length},
                                {length, area, fullest},
                                {size, length, area},
                                {area, length, fullest}}) {
    Order& order = orders_.emplace_back(count);
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&, &a = a, &b = b, &c = c](Index i, Index j) {
      return std::tuple(a[i], b[i], c[i]) > std::tuple(a[j], b[j], c[j]);
    });
  }
}

MemorySearch::Answer MemorySearch::run(std::uint64_t capacity, std::uint64_t node_limit) {
  capacity_ = capacity;
  const std::uint64_t end = nodes_ + node_limit;
  for (std::uint64_t nodes = kFirstRun; nodes_ < end; nodes *= 2) {
    for (const Order& order : orders_) {
      const Answer answer = attempt(order, std::min(nodes, end - nodes_));
      if (answer != Answer::kUnknown || nodes_ >= end) return answer;
    }
    for (int round = 0; round < 4; ++round) {
      for (const Order& order : orders_) {
        const Answer answer = attempt(learned(order), std::min(nodes / 4, end - nodes_));
        if (answer != Answer::kUnknown || nodes_ >= end) return answer;
      }
    }
  }
  return Answer::kUnknown;
}

// The order with blocks drawn to the front where runs failed lately: at most twice the whole length of the order.
MemorySearch::Order MemorySearch::learned(const Order& from) {
  std::vector<std::uint64_t> failures = block_failures_;
  for (Index i = 0; i < failures.size(); ++i) {
    std::uint64_t most = 0;
    for (Index s = spans_[i].first; s < spans_[i].second; ++s) most = std::max(most, section_failures_[s]);
    failures[i] += most;
  }
  const std::uint64_t most = std::max<std::uint64_t>(1, *std::max_element(failures.begin(), failures.end()));
  std::vector<std::int64_t> key(from.size());
  for (std::size_t at = 0; at < from.size(); ++at) {
    key[from[at]] =
        static_cast<std::int64_t>(at * most) - static_cast<std::int64_t>(2 * failures[from[at]] * from.size());
  }
  Order order = from;
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return key[a] < key[b]; });
  for (std::uint64_t& f : block_failures_) f -= f / 5;
  for (std::uint64_t& f : section_failures_) f -= f / 5;
  return order;
}

MemorySearch::Answer MemorySearch::attempt(const Order& preference, std::uint64_t node_limit) {
  for (Index at = 0; at < preference.size(); ++at) rank_[preference[at]] = at;
  limit_ = nodes_ + node_limit;
  const bool found = descend(preference, 0, 0);
  const Answer answer = found ? Answer::kYes : nodes_ >= limit_ ? Answer::kUnknown : Answer::kNo;
  undo(0);
  return answer;
}

// `left`: unplaced blocks that hang together, in the order of preference. Later ones lie at `lowest` or above, and at
// `lowest` only when they come later in the order: other placements have been tried.
bool MemorySearch::descend(const Order& left, std::uint64_t lowest, Index lowest_rank) {
  if (left.empty()) return true;
  if (left.size() == 1) {
    if (floor_[left[0]] + blocks_[left[0]].bytes > capacity_) return false;
    place(left[0], floor_[left[0]]);
    return true;
  }
  if (++nodes_ >= limit_) return false;
  const std::size_t mark = changes_.size();
  if (std::vector<Order> parts = parts_of(left); !parts.empty()) {
    std::stable_sort(parts.begin(), parts.end(), [](const Order& a, const Order& b) { return a.size() > b.size(); });
    for (const Order& part : parts) {
      if (descend(part, lowest, lowest_rank)) continue;
      undo(mark);
      return false;
    }
    return true;
  }
  if (!estimate(left, lowest, lowest_rank)) return false;
  // A block that would begin above the place where another could end leaves room for that one below it: the same
  // placement is found with the other one first.
  std::uint64_t ceiling = UINT64_MAX;
  for (const Index i : left) ceiling = std::min(ceiling, place_[i] + blocks_[i].bytes);
  std::vector<std::pair<std::uint64_t, Index>> candidates;
  for (const Index i : left) {
    if (!excluded(i, lowest, lowest_rank) && floor_[i] < ceiling) candidates.emplace_back(floor_[i], i);
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  Order rest;
  for (const auto& [offset, block] : candidates) {
    place(block, offset);
    rest.clear();
    std::copy_if(left.begin(), left.end(), std::back_inserter(rest), [b = block](Index i) { return i != b; });
    if (descend(rest, offset, rank_[block])) return true;
    undo(mark);
    if (nodes_ >= limit_) return false;
  }
  return false;
}

std::vector<MemorySearch::Order> MemorySearch::parts_of(const Order& left) const {
  Index first = UINT32_MAX, last = 0;
  for (const Index i : left) {
    first = std::min(first, spans_[i].first);
    last = std::max(last, spans_[i].second);
  }
  std::vector<Index> end(last - first, 0);  // by section: where the longest block that begins in it ends
  for (const Index i : left) {
    Index& e = end[spans_[i].first - first];
    e = std::max(e, spans_[i].second - first);
  }
  Index part = 0, reach = end[0];
  std::vector<Index> part_of(end.size(), 0);
  for (Index s = 0; s < end.size(); ++s) {
    if (s >= reach && end[s] > 0) ++part;
    reach = std::max(reach, end[s]);
    part_of[s] = part;
  }
  std::vector<Order> parts;
  if (part == 0) return parts;
  parts.resize(part + 1);
  for (const Index i : left) parts[part_of[spans_[i].first - first]].push_back(i);
  return parts;
}

bool MemorySearch::estimate(const Order& left, std::uint64_t lowest, Index lowest_rank) {
  Index first = UINT32_MAX, last = 0;
  for (const Index i : left) {
    place_[i] = std::max(floor_[i], lowest);
    if (place_[i] + blocks_[i].bytes > capacity_) {
      ++block_failures_[i];
      return false;
    }
    first = std::min(first, spans_[i].first);
    last = std::max(last, spans_[i].second);
  }
  // A block that may not lie where it could will have to lie on one that is still to be placed. Only lower bounds are
  // read, so the order in which they rise does not matter for what is true.
  for (const Index i : left) {
    if (!excluded(i, lowest, lowest_rank)) continue;
    std::uint64_t below = UINT64_MAX;
    for (const Index j : neighbours_[i]) {
      if (!placed_[j]) below = std::min(below, place_[j] + blocks_[j].bytes);
    }
    if (below == UINT64_MAX || below + blocks_[i].bytes > capacity_) {
      ++block_failures_[i];
      return false;
    }
    place_[i] = std::max(place_[i], below);
  }
  for (Index s = first; s < last; ++s) {
    section_floor_[s] = UINT64_MAX;
    section_load_[s] = 0;
  }
  for (const Index i : left) {
    for (Index s = spans_[i].first; s < spans_[i].second; ++s) {
      section_floor_[s] = std::min(section_floor_[s], place_[i]);
    }
  }
  for (Index s = first; s < last; ++s) {
    if (section_left_[s] == 0 || section_floor_[s] + section_left_[s] <= capacity_) continue;
    ++section_failures_[s];
    return false;
  }
  // The same for the blocks that begin at some place or above.
  Order from_above = left;
  std::stable_sort(from_above.begin(), from_above.end(), [&](Index a, Index b) { return place_[a] > place_[b]; });
  for (const Index i : from_above) {
    for (Index s = spans_[i].first; s < spans_[i].second; ++s) {
      section_load_[s] += blocks_[i].bytes;
      if (section_load_[s] + place_[i] <= capacity_) continue;
      ++section_failures_[s];
      return false;
    }
  }
  return true;
}

void MemorySearch::place(Index block, std::uint64_t offset) {
  placed_[block] = true;
  offsets_[block] = offset;
  changes_.push_back({block, kPlacement});
  const std::uint64_t end = offset + blocks_[block].bytes;
  for (Index s = spans_[block].first; s < spans_[block].second; ++s) section_left_[s] -= blocks_[block].bytes;
  for (const Index j : neighbours_[block]) {
    if (placed_[j] || floor_[j] >= end) continue;
    changes_.push_back({j, floor_[j]});
    floor_[j] = end;
  }
}

void MemorySearch::undo(std::size_t mark) {
  for (; changes_.size() > mark; changes_.pop_back()) {
    const auto [block, floor] = changes_.back();
    if (floor != kPlacement) {
      floor_[block] = floor;
      continue;
    }
    placed_[block] = false;
    for (Index s = spans_[block].first; s < spans_[block].second; ++s) section_left_[s] += blocks_[block].bytes;
  }
}

}  // namespace takt::lower
