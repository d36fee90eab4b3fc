#include "pipeline/stages/bev_clusters.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace takt::pipeline {

BevClusters::BevClusters(const ClusterConfig& config, float range_m, std::uint32_t max_points)
    : config_(config),
      range_m_(range_m),
      cells_per_m_(1 / config.cell_m),
      side_(static_cast<std::int32_t>(std::ceil(2 * range_m / config.cell_m))),
      row_words_(static_cast<std::size_t>(side_) / 64 + 2),
      reach_(std::min(static_cast<std::int32_t>(config.gap_max_m / config.cell_m), kReachMax)) {
  const auto cells = static_cast<std::size_t>(side_) * static_cast<std::size_t>(side_);
  const std::size_t most_occupied = std::min<std::size_t>(cells, max_points);
  occupied_.resize(row_words_ * static_cast<std::size_t>(side_));
  raised_.resize(occupied_.size());
  slot_.resize(cells);
  cells_.resize(most_occupied);
  parent_.resize(most_occupied);
  label_.resize(most_occupied);
  hits_.resize(most_occupied);
  entries_.resize(max_points);
  grouped_.resize(max_points);
  clusters_.resize(config.max);

  for (std::int32_t squared = 0; squared <= reach_ * reach_; ++squared) {
    for (std::int32_t dy = 0; dy <= reach_; ++dy) {
      std::int32_t width = -1;
      while ((width + 1) * (width + 1) + dy * dy <= squared) ++width;
      half_width_.push_back(static_cast<std::int8_t>(width));
    }
  }
}

std::int32_t BevClusters::cell_of(float x, float y) const {
  const float column = std::floor((x + range_m_) * cells_per_m_);
  const float row = std::floor((y + range_m_) * cells_per_m_);
  const auto side = static_cast<float>(side_);
  if (!(column >= 0 && column < side && row >= 0 && row < side)) return kOutside;
  return static_cast<std::int32_t>(row) * side_ + static_cast<std::int32_t>(column);
}

void BevClusters::clear() {
  std::fill(occupied_.begin(), occupied_.end(), 0);
  std::fill(raised_.begin(), raised_.end(), 0);
  cell_count_ = entry_count_ = grouped_count_ = cluster_count_ = dropped_ = 0;
}

void BevClusters::add(std::int32_t cell, std::uint32_t point) {
  occupied_[word_of(cell % side_, cell / side_)] |= 1ULL << (cell % side_ % 64);
  entries_[entry_count_++] = {cell, point};
}

void BevClusters::mark_raised(std::int32_t cell) {
  raised_[word_of(cell % side_, cell / side_)] |= 1ULL << (cell % side_ % 64);
}

void BevClusters::connect() {
  number_cells();
  for (std::uint32_t i = 0; i < cell_count_; ++i) join_neighbours(i);
  number_clusters();
  group_points();
}

void BevClusters::number_cells() {
  for (std::int32_t row = 0; row < side_; ++row) {
    for (std::size_t word = 0; word + 1 < row_words_; ++word) {
      std::uint64_t bits = occupied_[static_cast<std::size_t>(row) * row_words_ + word];
      for (; bits != 0; bits &= bits - 1) {
        const std::int32_t cell = row * side_ + static_cast<std::int32_t>(word) * 64 + std::countr_zero(bits);
        slot_[static_cast<std::size_t>(cell)] = cell_count_;
        cells_[cell_count_] = cell;
        parent_[cell_count_] = cell_count_;
        hits_[cell_count_] = 0;
        ++cell_count_;
      }
    }
  }
  for (std::uint32_t e = 0; e < entry_count_; ++e) ++hits_[slot_[static_cast<std::size_t>(entries_[e].cell)]];
}

// Bits of `width` (at most 63) cells from `column` on.
std::uint64_t BevClusters::window(std::int32_t column, std::int32_t row, std::int32_t width) const {
  const std::uint64_t* words = &occupied_[word_of(column, row)];
  const int shift = column % 64;
  const std::uint64_t bits = shift == 0 ? words[0] : (words[0] >> shift) | (words[1] << (64 - shift));
  return bits & ((1ULL << width) - 1);
}

// Joins a cell with those within the gap in its own row (to the right) and in the rows above. Cells side by side always
// belong together, so one of each run is enough.
void BevClusters::join_neighbours(std::uint32_t i) {
  const std::int32_t column = cells_[i] % side_;
  const std::int32_t row = cells_[i] / side_;
  const float x = (static_cast<float>(column) + 0.5F) * config_.cell_m - range_m_;
  const float y = (static_cast<float>(row) + 0.5F) * config_.cell_m - range_m_;
  const float gap = std::min(config_.gap_m + config_.gap_per_m * std::sqrt(x * x + y * y), config_.gap_max_m);
  const std::int32_t squared =
      std::clamp(static_cast<std::int32_t>(gap * gap * cells_per_m_ * cells_per_m_), 1, reach_ * reach_);
  const std::int8_t* half_width = &half_width_[static_cast<std::size_t>(squared * (reach_ + 1))];
  for (std::int32_t dy = 0; dy <= reach_ && row + dy < side_ && half_width[dy] >= 0; ++dy) {
    const std::int32_t first = dy == 0 ? column + 1 : std::max(column - half_width[dy], 0);
    const std::int32_t last = std::min(column + half_width[dy], side_ - 1);
    if (first > last) continue;
    const std::uint64_t bits = window(first, row + dy, last - first + 1);
    for (std::uint64_t starts = bits & ~(bits << 1); starts != 0; starts &= starts - 1) {
      const std::int32_t cell = (row + dy) * side_ + first + std::countr_zero(starts);
      join(i, slot_[static_cast<std::size_t>(cell)]);
    }
  }
}

std::uint32_t BevClusters::root(std::uint32_t i) {
  while (parent_[i] != i) {
    parent_[i] = parent_[parent_[i]];
    i = parent_[i];
  }
  return i;
}

void BevClusters::join(std::uint32_t a, std::uint32_t b) {
  if (parent_[a] == parent_[b]) return;
  a = root(a);
  b = root(b);
  parent_[std::max(a, b)] = std::min(a, b);
}

// Clusters with enough points get numbers in the order of their roots; a root comes before all of its cells.
void BevClusters::number_clusters() {
  for (std::uint32_t i = 0; i < cell_count_; ++i) {
    parent_[i] = root(i);
    if (parent_[i] != i) hits_[parent_[i]] += hits_[i];
  }
  for (std::uint32_t i = 0; i < cell_count_; ++i) {
    if (parent_[i] != i) {
      label_[i] = label_[parent_[i]];
    } else if (hits_[i] < config_.points_min) {
      label_[i] = kNone;
    } else if (cluster_count_ == clusters_.size()) {
      label_[i] = kNone;
      ++dropped_;
    } else {
      label_[i] = cluster_count_;
      clusters_[cluster_count_++] = {grouped_count_, 0, 0, 0};
      grouped_count_ += hits_[i];
    }
    if (label_[i] == kNone) continue;
    Cluster& cluster = clusters_[label_[i]];
    const std::int32_t column = cells_[i] % side_;
    ++cluster.cells;
    if ((raised_[word_of(column, cells_[i] / side_)] >> (column % 64) & 1) != 0) ++cluster.raised_cells;
  }
}

void BevClusters::group_points() {
  for (std::uint32_t e = 0; e < entry_count_; ++e) {
    const std::uint32_t label = label_[slot_[static_cast<std::size_t>(entries_[e].cell)]];
    if (label == kNone) continue;
    Cluster& cluster = clusters_[label];
    grouped_[cluster.first + cluster.count++] = entries_[e].point;
  }
}

}  // namespace takt::pipeline
