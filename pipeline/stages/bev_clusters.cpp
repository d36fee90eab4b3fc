#include "pipeline/stages/bev_clusters.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace takt::pipeline {

namespace {
constexpr std::uint32_t kNone = ~0U;
}

BevClusters::BevClusters(const ClusterConfig& config, float range_m, std::uint32_t max_points)
    : config_(config),
      range_m_(range_m),
      cells_per_m_(1 / config.cell_m),
      side_(static_cast<std::int32_t>(std::ceil(2 * range_m / config.cell_m))) {
  const auto cells = static_cast<std::size_t>(side_) * static_cast<std::size_t>(side_);
  const std::size_t most_occupied = std::min<std::size_t>(cells, max_points);
  slot_.assign(cells, 0);
  raised_.assign(cells, 0);
  occupied_.resize(most_occupied);
  parent_.resize(most_occupied);
  label_.resize(most_occupied);
  hits_.resize(most_occupied);
  entries_.resize(max_points);
  grouped_.resize(max_points);
  clusters_.resize(config.max);

  const auto reach = static_cast<std::int32_t>(std::floor(config.gap_max_m / config.cell_m));
  for (std::int32_t dy = 0; dy <= reach; ++dy) {
    for (std::int32_t dx = dy == 0 ? 1 : -reach; dx <= reach; ++dx) offsets_.push_back({dx, dy, dx * dx + dy * dy});
  }
  std::sort(offsets_.begin(), offsets_.end(), [](const Offset& a, const Offset& b) {
    return std::tuple(a.squared, a.dy, a.dx) < std::tuple(b.squared, b.dy, b.dx);
  });
}

std::int32_t BevClusters::cell_of(float x, float y) const {
  const float column = std::floor((x + range_m_) * cells_per_m_);
  const float row = std::floor((y + range_m_) * cells_per_m_);
  const auto side = static_cast<float>(side_);
  if (!(column >= 0 && column < side && row >= 0 && row < side)) return kOutside;
  return static_cast<std::int32_t>(row) * side_ + static_cast<std::int32_t>(column);
}

void BevClusters::clear() {
  for (std::uint32_t i = 0; i < occupied_count_; ++i) slot_[static_cast<std::size_t>(occupied_[i])] = 0;
  occupied_count_ = entry_count_ = grouped_count_ = cluster_count_ = dropped_ = 0;
  ++frame_;
}

void BevClusters::add(std::int32_t cell, std::uint32_t point) {
  std::uint32_t& slot = slot_[static_cast<std::size_t>(cell)];
  if (slot == 0) {
    occupied_[occupied_count_] = cell;
    parent_[occupied_count_] = occupied_count_;
    hits_[occupied_count_] = 0;
    slot = ++occupied_count_;
  }
  ++hits_[slot - 1];
  entries_[entry_count_++] = {slot - 1, point};
}

void BevClusters::mark_raised(std::int32_t cell) { raised_[static_cast<std::size_t>(cell)] = frame_; }

std::uint32_t BevClusters::root(std::uint32_t i) {
  while (parent_[i] != i) {
    parent_[i] = parent_[parent_[i]];
    i = parent_[i];
  }
  return i;
}

void BevClusters::connect() {
  // Neighbours within the gap join; the smaller index becomes the root.
  for (std::uint32_t i = 0; i < occupied_count_; ++i) {
    const std::int32_t column = occupied_[i] % side_;
    const std::int32_t row = occupied_[i] / side_;
    const float x = (static_cast<float>(column) + 0.5F) * config_.cell_m - range_m_;
    const float y = (static_cast<float>(row) + 0.5F) * config_.cell_m - range_m_;
    const float gap = std::min(config_.gap_m + config_.gap_per_m * std::sqrt(x * x + y * y), config_.gap_max_m);
    const float squared = gap * gap * cells_per_m_ * cells_per_m_;
    for (const Offset& offset : offsets_) {
      if (static_cast<float>(offset.squared) > squared) break;
      const std::int32_t cx = column + offset.dx;
      const std::int32_t cy = row + offset.dy;
      if (cx < 0 || cx >= side_ || cy >= side_) continue;
      const std::uint32_t slot = slot_[static_cast<std::size_t>(cy * side_ + cx)];
      if (slot == 0) continue;
      const std::uint32_t a = root(i);
      const std::uint32_t b = root(slot - 1);
      if (a < b) parent_[b] = a;
      if (b < a) parent_[a] = b;
    }
  }
  // Clusters with enough points get numbers in the order of their roots.
  for (std::uint32_t i = 0; i < occupied_count_; ++i) {
    const std::uint32_t r = root(i);
    if (r != i) hits_[r] += hits_[i];
  }
  for (std::uint32_t i = 0; i < occupied_count_; ++i) {
    label_[i] = kNone;
    if (parent_[i] != i || hits_[i] < config_.min_hits) continue;
    if (cluster_count_ == clusters_.size()) {
      ++dropped_;
      continue;
    }
    label_[i] = cluster_count_;
    clusters_[cluster_count_++] = {grouped_count_, 0, 0, 0};
    grouped_count_ += hits_[i];
  }
  for (std::uint32_t i = 0; i < occupied_count_; ++i) {
    label_[i] = label_[root(i)];
    if (label_[i] == kNone) continue;
    ++clusters_[label_[i]].cells;
    if (raised_[static_cast<std::size_t>(occupied_[i])] == frame_) ++clusters_[label_[i]].raised_cells;
  }
  for (std::uint32_t e = 0; e < entry_count_; ++e) {
    const std::uint32_t label = label_[entries_[e].occupied];
    if (label == kNone) continue;
    Cluster& cluster = clusters_[label];
    grouped_[cluster.first + cluster.count++] = entries_[e].point;
  }
}

}  // namespace takt::pipeline
