#include "kernels/reference/voxels.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "kernels/reference/activation.h"

namespace takt::kernels::reference {
namespace {

std::int64_t distance(const std::int32_t (&centre)[2], std::int64_t cell) {
  const std::int64_t x = x_of(cell) - centre[0], y = y_of(cell) - centre[1];
  return x * x + y * y;
}

// Calls f(tap, {x, y, z}).
template <class F>
void for_each_tap(const std::int32_t (&kernel)[3], F&& f) {
  int tap = 0;
  for (std::int32_t z = 0; z < kernel[2]; ++z) {
    for (std::int32_t y = 0; y < kernel[1]; ++y) {
      for (std::int32_t x = 0; x < kernel[0]; ++x) f(tap++, {x, y, z});
    }
  }
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
      const double v = points[static_cast<std::size_t>(i) * p.columns + d];
      inside = v >= p.minimum[d] && v < p.maximum[d];
      if (!inside) break;
      const double at = std::floor((v - p.minimum[d]) / p.size[d]);
      inside = at < p.grid[d];
      if (inside) index[d] = static_cast<std::int64_t>(at);
    }
    if (!inside) continue;
    ++in_range;
    voxels[cell_of(index[2], index[1], index[0])].push_back(i);
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> ranked;  // what decides, cell
  ranked.reserve(voxels.size());
  for (const auto& [cell, members] : voxels) {
    ranked.emplace_back(p.keep == Keep::kFirst ? members.front() : distance(p.centre, cell), cell);
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

Cells sparse_cells(const SparseCellsParams& p, std::span<const std::int64_t> input, std::int64_t* cells) {
  std::set<std::int64_t> found;
  for (const std::int64_t cell : input) {
    const std::int64_t at[3] = {x_of(cell), y_of(cell), z_of(cell)};
    for_each_tap(p.kernel, [&](int /*tap*/, const std::int32_t(&k)[3]) {
      std::int64_t o[3];
      for (int d = 0; d < 3; ++d) {
        const std::int64_t from = at[d] + p.padding[d] - k[d];
        if (from < 0 || from % p.stride[d] != 0 || from / p.stride[d] >= p.grid[d]) return;
        o[d] = from / p.stride[d];
      }
      found.insert(cell_of(o[2], o[1], o[0]));
    });
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> ranked;
  ranked.reserve(found.size());
  for (const std::int64_t cell : found) ranked.emplace_back(distance(p.centre, cell), cell);
  std::sort(ranked.begin(), ranked.end());
  for (std::size_t i = p.results; i < ranked.size(); ++i) found.erase(ranked[i].second);
  std::copy(found.begin(), found.end(), cells);
  return {static_cast<std::int32_t>(found.size()), static_cast<std::int32_t>(ranked.size() - found.size())};
}

void sparse_map(const SparseMapParams& p, std::span<const std::int64_t> input, std::span<const std::int64_t> output,
                std::int32_t* map) {
  std::map<std::int64_t, std::int32_t> row;
  for (std::size_t i = 0; i < input.size(); ++i) row.emplace(input[i], static_cast<std::int32_t>(i));
  for (const std::int64_t cell : output) {
    for_each_tap(p.kernel, [&](int tap, const std::int32_t(&k)[3]) {
      const std::int64_t x = x_of(cell) * p.stride[0] - p.padding[0] + k[0],
                         y = y_of(cell) * p.stride[1] - p.padding[1] + k[1],
                         z = z_of(cell) * p.stride[2] - p.padding[2] + k[2];
      const bool inside = x >= 0 && y >= 0 && z >= 0 && x < kMostCells && y < kMostCells && z < kMostCells;
      const auto at = inside ? row.find(cell_of(z, y, x)) : row.end();
      map[tap] = at != row.end() ? at->second : -1;
    });
    map += std::ptrdiff_t{p.kernel[0]} * p.kernel[1] * p.kernel[2];
  }
}

void inverse_map(const InverseMapParams& p, std::span<const std::int32_t> map, std::int32_t cells,
                 std::int32_t* inverse) {
  std::fill_n(inverse, std::int64_t{cells} * p.taps, -1);
  for (std::size_t i = 0; i < map.size(); ++i) {
    const auto row = static_cast<std::int32_t>(i) / p.taps, tap = static_cast<std::int32_t>(i) % p.taps;
    if (map[i] >= 0 && map[i] < cells) inverse[std::int64_t{map[i]} * p.taps + tap] = row;
  }
}

void sparse_conv(const SparseConvParams& p, std::int32_t inputs, std::int32_t results, const float* x,
                 const float* weights, const float* bias, const std::int32_t* map, const float* residual, float* y) {
  for (std::int64_t i = 0; i < results; ++i) {
    for (std::int64_t o = 0; o < p.c_out; ++o) {
      float sum = bias != nullptr ? bias[o] : 0.0F;
      for (std::int64_t k = 0; k < p.taps; ++k) {
        const std::int64_t row = map[i * p.taps + k];
        if (row < 0 || row >= inputs) continue;
        for (std::int64_t c = 0; c < p.c_in; ++c) {
          sum = std::fma(x[row * p.c_in + c], weights[(k * p.c_in + c) * p.c_out + o], sum);
        }
      }
      if (residual != nullptr) sum += residual[i * p.c_out + o];
      y[i * p.c_out + o] = activate_f32(static_cast<Activation>(p.activation), sum, p.alpha, p.beta);
    }
  }
}

void scatter_bev(const ScatterBevParams& p, std::span<const std::int64_t> cells, const float* x, float* y) {
  const std::int64_t plane = std::int64_t{p.grid[0]} * p.grid[1];
  std::fill_n(y, plane * p.grid[2] * p.channels, 0.0F);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::int64_t at[3] = {x_of(cells[i]), y_of(cells[i]), z_of(cells[i])};
    if (at[0] >= p.grid[0] || at[1] >= p.grid[1] || at[2] >= p.grid[2]) continue;
    for (std::int64_t c = 0; c < p.channels; ++c) {
      y[(c * p.grid[2] + at[2]) * plane + at[1] * p.grid[0] + at[0]] = x[i * static_cast<std::size_t>(p.channels) + c];
    }
  }
}

}  // namespace takt::kernels::reference
