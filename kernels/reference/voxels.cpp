#include "kernels/reference/voxels.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

namespace takt::kernels::reference {
namespace {

std::int64_t distance(const VoxeliseParams& p, std::int64_t cell) {
  const std::int64_t x = x_of(cell) - p.centre[0], y = y_of(cell) - p.centre[1];
  return x * x + y * y;
}

}  // namespace

void voxelise(const VoxeliseParams& p, std::span<const float> points, Voxels* out) {
  std::map<std::int64_t, std::vector<std::int32_t>> voxels;
  std::int32_t in_range = 0;
  const auto rows = static_cast<std::int32_t>(points.size()) / p.columns;
  for (std::int32_t i = 0; i < rows; ++i) {
    std::int64_t index[3] = {};
    bool inside = true;
    for (int d = 0; d < 3 && inside; ++d) {
      const float v = points[static_cast<std::size_t>(i) * p.columns + d];
      inside = v >= p.minimum[d] && v < p.maximum[d];
      if (!inside) break;
      const float at = std::floor((v - p.minimum[d]) / p.size[d]);
      inside = at < static_cast<float>(p.grid[d]);
      if (inside) index[d] = static_cast<std::int64_t>(at);
    }
    if (!inside) continue;
    ++in_range;
    voxels[cell_of(index[2], index[1], index[0])].push_back(i);
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> ranked;  // what decides, cell
  for (const auto& [cell, members] : voxels) {
    ranked.emplace_back(p.keep == Keep::kFirst ? members.front() : distance(p, cell), cell);
  }
  std::sort(ranked.begin(), ranked.end());
  for (std::size_t i = p.voxels; i < ranked.size(); ++i) voxels.erase(ranked[i].second);
  out->count = out->kept = 0;
  for (const auto& [cell, members] : voxels) {
    for (std::size_t i = 0; i < members.size() && (p.most == 0 || i < static_cast<std::size_t>(p.most)); ++i) {
      out->members[out->kept++] = members[i];
    }
    out->cells[out->count] = cell;
    out->ends[out->count++] = out->kept;
  }
  out->dropped = in_range - out->kept;
}

void voxel_mean(const VoxelMeanParams& p, std::span<const float> points, std::span<const std::int32_t> ends,
                std::span<const std::int32_t> members, float* y) {
  const auto rows = static_cast<std::int32_t>(points.size()) / p.columns;
  const auto kept = static_cast<std::int32_t>(members.size());
  for (std::size_t v = 0; v < ends.size(); ++v) {
    const std::int32_t first = v > 0 ? std::clamp(ends[v - 1], 0, kept) : 0, last = std::clamp(ends[v], 0, kept);
    for (std::int32_t c = 0; c < p.columns; ++c) {
      double sum = 0, count = 0;
      for (std::int32_t i = first; i < last; ++i) {
        if (members[i] < 0 || members[i] >= rows) continue;
        sum += static_cast<double>(points[static_cast<std::size_t>(members[i]) * p.columns + c]);
        ++count;
      }
      y[v * static_cast<std::size_t>(p.columns) + static_cast<std::size_t>(c)] =
          count > 0 ? static_cast<float>(sum / count) : 0.0F;
    }
  }
}

}  // namespace takt::kernels::reference
