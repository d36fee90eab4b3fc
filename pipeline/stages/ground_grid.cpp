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
  deepest_.resize(cells);
  lowest_.resize(cells);
  above_.resize(cells);
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
  for (std::size_t i = 0; i < cells; ++i) {
    const float x = centre(static_cast<std::int32_t>(i) % side_);
    const float y = centre(static_cast<std::int32_t>(i) / side_);
    deepest_[i] = -0.5F - config.slope_max * std::sqrt(x * x + y * y);
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
  const auto index = static_cast<std::size_t>(cell);
  if (z < lowest_[index] && z >= deepest_[index]) lowest_[index] = z;
}

// Starts from the flat ground under the vehicle with a gate that opens with the distance; each round refits within a
// gate half as wide. Normal equations in double, cells in a fixed order.
GroundGrid::Plane GroundGrid::fit_plane() const {
  Plane plane;
  float slope_gate = config_.slope_max;
  for (int round = 0; round < 5; ++round, slope_gate /= 2) {
    double n = 0, sx = 0, sy = 0, sz = 0, sxx = 0, sxy = 0, syy = 0, sxz = 0, syz = 0;
    for (const std::int32_t cell : outward_) {
      const float x = centre(cell % side_);
      const float y = centre(cell / side_);
      const float distance = std::sqrt(x * x + y * y);
      if (distance > config_.plane_range_m) break;
      const float z = lowest_[static_cast<std::size_t>(cell)];
      if (!(std::fabs(z - at(plane, cell)) <= config_.plane_gate_m + slope_gate * distance)) continue;
      n += 1;
      sx += x;
      sy += y;
      sz += z;
      sxx += double{x} * x;
      sxy += double{x} * y;
      syy += double{y} * y;
      sxz += double{x} * z;
      syz += double{y} * z;
    }
    // Centred, so that two slopes remain.
    if (n < 12) return plane;
    const double mx = sx / n, my = sy / n, mz = sz / n;
    const double xx = sxx / n - mx * mx, xy = sxy / n - mx * my, yy = syy / n - my * my;
    const double xz = sxz / n - mx * mz, yz = syz / n - my * mz;
    const double determinant = xx * yy - xy * xy;
    if (!(determinant > 1e-3 * xx * yy) || !(xx > 1) || !(yy > 1)) return plane;  // all on one line
    const double dx = (xz * yy - yz * xy) / determinant;
    const double dy = (yz * xx - xz * xy) / determinant;
    if (std::fabs(dx) > config_.slope_max || std::fabs(dy) > config_.slope_max) return plane;
    plane = {static_cast<float>(mz - dx * mx - dy * my), static_cast<float>(dx), static_cast<float>(dy)};
  }
  return plane;
}

void GroundGrid::grow() {
  const Plane plane = fit_plane();
  for (const std::int32_t cell : outward_) {
    const auto index = static_cast<std::size_t>(cell);
    const std::int32_t column = cell % side_;
    const std::int32_t row = cell / side_;
    float sum = 0;
    int known = 0;
    for (std::int32_t y = std::max(row - 1, 0); y <= std::min(row + 1, side_ - 1); ++y) {
      for (std::int32_t x = std::max(column - 1, 0); x <= std::min(column + 1, side_ - 1); ++x) {
        const auto neighbour = static_cast<std::size_t>(y * side_ + x);
        if (position_[neighbour] >= position_[index]) continue;
        sum += above_[neighbour];
        ++known;
      }
    }
    const float expected = known == 0 ? 0.0F : sum / static_cast<float>(known);
    const float on_plane = at(plane, cell);
    const float measured = lowest_[index] - on_plane;
    const float step = measured - expected;
    const bool continues = step <= config_.rise_max_m && step >= -config_.drop_max_m;
    above_[index] = continues ? measured : expected;
    height_[index] = on_plane + above_[index];
  }
}

}  // namespace takt::pipeline
