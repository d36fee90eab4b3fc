#include "pipeline/stages/ground_grid.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace takt::pipeline {

GroundGrid::GroundGrid(const GroundConfig& config, float range_m)
    : config_(config),
      range_m_(range_m),
      cells_per_m_(1 / config.cell_m),
      side_(static_cast<std::int32_t>(std::ceil(2 * range_m / config.cell_m))) {
  const auto cells = static_cast<std::size_t>(side_) * static_cast<std::size_t>(side_);
  lowest_.resize(cells);
  height_.resize(cells);
  outward_.resize(cells);
  position_.resize(cells);
  std::iota(outward_.begin(), outward_.end(), 0);
  const auto distance = [this](std::int32_t cell) {  // squared, in half cells: exact
    const std::int64_t x = 2 * (cell % side_) + 1 - side_;
    const std::int64_t y = 2 * (cell / side_) + 1 - side_;
    return x * x + y * y;
  };
  std::sort(outward_.begin(), outward_.end(),
            [&](std::int32_t a, std::int32_t b) { return std::pair(distance(a), a) < std::pair(distance(b), b); });
  for (std::size_t i = 0; i < cells; ++i) {
    position_[static_cast<std::size_t>(outward_[i])] = static_cast<std::int32_t>(i);
  }
  clear();
}

std::int32_t GroundGrid::cell_of(float x, float y) const {
  const float column = std::floor((x + range_m_) * cells_per_m_);
  const float row = std::floor((y + range_m_) * cells_per_m_);
  const auto side = static_cast<float>(side_);
  if (!(column >= 0 && column < side && row >= 0 && row < side)) return kOutside;
  return static_cast<std::int32_t>(row) * side_ + static_cast<std::int32_t>(column);
}

void GroundGrid::clear() { std::fill(lowest_.begin(), lowest_.end(), std::numeric_limits<float>::infinity()); }

void GroundGrid::add(std::int32_t cell, float z) {
  float& lowest = lowest_[static_cast<std::size_t>(cell)];
  lowest = std::min(lowest, z);
}

void GroundGrid::grow() {
  for (const std::int32_t cell : outward_) {
    const auto index = static_cast<std::size_t>(cell);
    const std::int32_t column = cell % side_;
    const std::int32_t row = cell / side_;
    float sum = 0;
    int known = 0;
    for (std::int32_t dy = -1; dy <= 1; ++dy) {
      for (std::int32_t dx = -1; dx <= 1; ++dx) {
        const std::int32_t x = column + dx;
        const std::int32_t y = row + dy;
        if (x < 0 || y < 0 || x >= side_ || y >= side_) continue;
        const auto neighbour = static_cast<std::size_t>(y * side_ + x);
        if (position_[neighbour] >= position_[index]) continue;
        sum += height_[neighbour];
        ++known;
      }
    }
    const float expected = known == 0 ? 0.0F : sum / static_cast<float>(known);
    const float step = lowest_[index] - expected;
    const bool continues = step <= config_.rise_max_m && step >= -config_.drop_max_m;
    height_[index] = continues ? lowest_[index] : expected;
  }
}

}  // namespace takt::pipeline
