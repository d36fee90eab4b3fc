// Private: is there a placement of blocks below a capacity? An exact depth-first search with restarts.
//
// Blocks are placed at ascending offsets, each as low as the blocks placed before it allow; every placement can be
// pushed into this form, so nothing is lost (M. D. Moffitt, MiniMalloc, ASPLOS 2023, doi 10.1145/3623278.3624752).
// Blocks that no unplaced block connects in time any more are problems of their own. Runs are short at first, then
// twice as long, under several orders of preference; between them, orders that begin with the blocks at which earlier
// runs failed (Boussemart et al., "Boosting systematic search by weighting constraints", ECAI 2004).
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "compiler/lower/memory_plan.h"

namespace takt::lower {

class MemorySearch {
 public:
  explicit MemorySearch(std::span<const Block> blocks);  // bytes are multiples of the alignment; kept by reference

  enum class Answer { kYes, kNo, kUnknown };
  // kUnknown: the limit of nodes came first. What earlier calls learned of these blocks is kept.
  Answer run(std::uint64_t capacity, std::uint64_t node_limit);
  [[nodiscard]] std::uint64_t nodes() const { return nodes_; }                          // of all calls
  [[nodiscard]] const std::vector<std::uint64_t>& offsets() const { return offsets_; }  // after kYes

 private:
  using Index = std::uint32_t;
  using Order = std::vector<Index>;
  static constexpr std::uint64_t kPlacement = UINT64_MAX;
  struct Change {  // of a floor, or the placement of a block
    Index block = 0;
    std::uint64_t floor = 0;
  };

  Answer attempt(const Order& preference, std::uint64_t node_limit);
  bool descend(const Order& left, std::uint64_t lowest, Index lowest_rank);
  // The problems that `left` falls into; empty when it is one.
  [[nodiscard]] std::vector<Order> parts_of(const Order& left) const;
  // Whether what is left may fit: lowest places of blocks, loads of sections.
  bool estimate(const Order& left, std::uint64_t lowest, Index lowest_rank);
  [[nodiscard]] bool excluded(Index block, std::uint64_t lowest, Index lowest_rank) const {
    return floor_[block] < lowest || (floor_[block] == lowest && rank_[block] < lowest_rank);
  }
  void place(Index block, std::uint64_t offset);
  void undo(std::size_t mark);
  [[nodiscard]] Order learned(const Order& from);

  std::span<const Block> blocks_;
  std::vector<Order> orders_;
  std::vector<std::pair<Index, Index>> spans_;  // of sections, by block: steps over which the live blocks are the same
  std::vector<std::vector<Index>> neighbours_;  // alive together with the block
  std::vector<Index> rank_;                     // in the preference of this attempt
  std::vector<std::uint64_t> section_left_;     // bytes of unplaced blocks
  std::vector<std::uint64_t> offsets_, floor_;
  std::vector<bool> placed_;
  std::vector<Change> changes_;
  // Of estimate(): the lowest place that a block can have; of a section its lowest block, and its load from above.
  std::vector<std::uint64_t> place_, section_floor_, section_load_;
  std::vector<std::uint64_t> block_failures_, section_failures_;
  std::uint64_t capacity_ = 0, nodes_ = 0, limit_ = 0;
};

}  // namespace takt::lower
