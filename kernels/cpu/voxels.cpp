// Voxels: cells of points, means.
#include <cstring>

#include "kernels/cpu/cells.h"
#include "kernels/cpu/device.h"
#include "kernels/cpu/operators.h"

namespace takt::kernels::cpu {
namespace {

template <class Params>
Params load_params(const void* params) {
  Params p;
  std::memcpy(&p, params, sizeof(p));
  return p;
}
template <class T>
T* data(const Operand& operand) {
  return reinterpret_cast<T*>(operand.data);
}

// The cell of a point; -1: it is in none.
std::int64_t cell_of_point(const VoxeliseParams& p, const float* point) {
  std::int64_t index[3];
  for (int d = 0; d < 3; ++d) {
    // NaN fails each of these.
    if (!(point[d] >= p.minimum[d] && point[d] < p.maximum[d])) return -1;
    const float at = (point[d] - p.minimum[d]) / p.size[d];
    if (!(at < static_cast<float>(p.grid[d]))) return -1;
    index[d] = static_cast<std::int64_t>(at);  // not negative: rounded down
  }
  return cell_of(index[2], index[1], index[0]);
}

// One part: a sort is what it is, and it is short beside what follows.
void voxelise(const void* params, const Operand* operands, int part, int /*parts*/) {
  if (part != 0) return;
  const auto p = load_params<VoxeliseParams>(params);
  const float* const points = data<const float>(operands[0]);
  const std::int32_t rows = rows_of(operands[1], p.points);
  auto* cells = reinterpret_cast<std::int64_t*>(operands[8].data);
  std::int64_t* const other_cells = cells + p.points;
  auto* members = reinterpret_cast<std::int32_t*>(other_cells + p.points);
  std::int32_t* const other_members = members + p.points;
  std::int32_t* const begins = other_members + p.points;

  std::int32_t in_range = 0;
  for (std::int32_t i = 0; i < rows; ++i) {
    const std::int64_t cell = cell_of_point(p, points + std::int64_t{i} * p.columns);
    if (cell < 0) continue;
    cells[in_range] = cell;
    members[in_range++] = i;
  }
  if (sort_cells(CellDigits(p.grid), in_range, cells, members, other_cells, other_members)) {
    cells = other_cells;
    members = other_members;
  }
  std::int32_t voxels = 0;
  for (std::int32_t i = 0; i < in_range; ++i) {
    if (i == 0 || cells[i] != cells[i - 1]) begins[voxels++] = i;
  }

  const auto rank = [&](std::int32_t v) -> std::int64_t {
    const std::int32_t begin = begins[v];
    if (p.keep == Keep::kFirst) return members[begin];
    const std::int64_t x = x_of(cells[begin]) - p.centre[0], y = y_of(cells[begin]) - p.centre[1];
    return x * x + y * y;
  };
  const bool crowded = voxels > p.voxels;
  Threshold threshold;
  if (crowded) threshold = threshold_of(voxels, p.voxels, rank);

  auto* const out_cells = data<std::int64_t>(operands[2]);
  auto* const out_ends = data<std::int32_t>(operands[3]);
  auto* const out_members = data<std::int32_t>(operands[4]);
  std::int32_t count = 0, kept = 0;
  for (std::int32_t v = 0; v < voxels; ++v) {
    if (crowded) {
      const std::int64_t r = rank(v);
      if (r > threshold.rank || (r == threshold.rank && threshold.equal-- <= 0)) continue;
    }
    const std::int32_t begin = begins[v];
    std::int32_t end = v + 1 < voxels ? begins[v + 1] : in_range;
    if (p.most > 0 && end - begin > p.most) end = begin + p.most;
    for (std::int32_t i = begin; i < end; ++i) out_members[kept++] = members[i];
    out_cells[count] = cells[begin];
    out_ends[count++] = kept;
  }
  *data<std::int32_t>(operands[5]) = count;
  *data<std::int32_t>(operands[6]) = kept;
  *data<std::int32_t>(operands[7]) = in_range - kept;
}

void voxel_mean(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<VoxelMeanParams>(params);
  const float* const points = data<const float>(operands[0]);
  const auto* const ends = data<const std::int32_t>(operands[1]);
  const auto* const members = data<const std::int32_t>(operands[2]);
  const std::int32_t rows = rows_of(operands[3], p.points), kept = rows_of(operands[5], p.points);
  const std::int64_t voxels = rows_of(operands[4], p.voxels);
  for (std::int64_t v = voxels * part / parts; v < voxels * (part + 1) / parts; ++v) {
    const std::int32_t first = v > 0 ? std::clamp(ends[v - 1], 0, kept) : 0, last = std::clamp(ends[v], 0, kept);
    float* const y = data<float>(operands[6]) + v * p.columns;
    for (std::int32_t c = 0; c < p.columns; ++c) {
      double sum = 0, count = 0;
      for (std::int32_t i = first; i < last; ++i) {
        if (members[i] < 0 || members[i] >= rows) continue;
        sum += static_cast<double>(points[std::int64_t{members[i]} * p.columns + c]);
        ++count;
      }
      y[c] = count > 0 ? static_cast<float>(sum / count) : 0.0F;
    }
  }
}

constexpr DeviceHalf kTable[] = {{KernelId::kVoxelise, voxelise}, {KernelId::kVoxelMean, voxel_mean}};

}  // namespace

std::span<const DeviceHalf> voxel_kernels(Target /*target*/) { return kTable; }

}  // namespace takt::kernels::cpu
