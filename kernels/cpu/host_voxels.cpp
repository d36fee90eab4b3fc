// Host halves of the operators on voxels: kernels/voxels.h has their parameters.
#include <cmath>

#include "kernels/cpu/operators.h"
#include "kernels/voxels.h"

namespace takt::kernels::cpu {
namespace {

template <class Params>
Params load(const void* params) {
  Params p;
  std::memcpy(&p, params, sizeof(p));
  return p;
}

const char* const kExtents = "extents are not positive or too large";

bool is_grid(const std::int32_t (&extent)[3]) {
  return std::all_of(extent, extent + 3, [](std::int32_t n) { return n >= 1 && n <= kMostCells; });
}

const char* voxelise_bytes(const void* params, OperandBytes* out) {
  const auto p = load<VoxeliseParams>(params);
  if (p.columns < 3) return "a point has fewer than three columns";
  if (p.most < 0 || (p.keep != Keep::kFirst && p.keep != Keep::kNear)) return "an option has an unknown value";
  if (!is_grid(p.grid)) return "the grid has no cells, or more than 2^20 in a row";
  for (int d = 0; d < 3; ++d) {
    const bool sound =
        std::isfinite(p.minimum[d]) && std::isfinite(p.maximum[d]) && std::isfinite(p.size[d]) && p.size[d] > 0;
    if (!sound) return "the range or the size of a voxel is no number";
  }
  for (const std::int32_t at : p.centre) {
    if (at < -kMostCells || at > kMostCells) return "the centre is far outside the grid";
  }
  const std::uint64_t rows = extent_bytes({p.points}, 4), voxels = extent_bytes({p.voxels}, 4);
  out->bytes[0] = extent_bytes({p.points, p.columns}, 4);
  out->bytes[1] = 4;
  out->bytes[2] = 2 * voxels;
  out->element[2] = 8;
  out->bytes[3] = voxels;
  out->bytes[4] = rows;
  out->bytes[5] = out->bytes[6] = out->bytes[7] = 4;
  out->bytes[8] = 7 * rows;  // two lists of cells and rows, and where voxels begin
  out->element[8] = 8;
  return out->bytes[0] == 0 || voxels == 0 ? kExtents : nullptr;
}

std::uint64_t voxelise_flops(const void* params) {
  return 6 * static_cast<std::uint64_t>(load<VoxeliseParams>(params).points);
}

constexpr OperatorKernel kVoxelise = {
    KernelId::kVoxelise, "voxelise_f32", 1, sizeof(VoxeliseParams), 1, 1, 6, 1, {1, -1, 5, 5, 6, -1, -1, -1, -1},
    voxelise_bytes,      voxelise_flops};

const char* voxel_mean_bytes(const void* params, OperandBytes* out) {
  const auto p = load<VoxelMeanParams>(params);
  out->bytes[0] = extent_bytes({p.points, p.columns}, 4);
  out->bytes[1] = extent_bytes({p.voxels}, 4);
  out->bytes[2] = extent_bytes({p.points}, 4);
  for (int i = 3; i < 6; ++i) out->bytes[i] = 4;
  out->bytes[6] = extent_bytes({p.voxels, p.columns}, 4);
  return out->bytes[0] == 0 || out->bytes[6] == 0 ? kExtents : nullptr;
}

std::uint64_t voxel_mean_flops(const void* params) {
  const auto p = load<VoxelMeanParams>(params);
  return static_cast<std::uint64_t>(p.points) * static_cast<std::uint64_t>(p.columns);
}

constexpr OperatorKernel kVoxelMean = {
    KernelId::kVoxelMean, "voxel_mean_f32", 1, sizeof(VoxelMeanParams), 3, 3, 1, 0, {3, 4, 5, -1, -1, -1, 4},
    voxel_mean_bytes,     voxel_mean_flops};

constexpr const OperatorKernel* kOperators[] = {&kVoxelise, &kVoxelMean};

}  // namespace

std::span<const OperatorKernel* const> voxel_operators() { return kOperators; }

}  // namespace takt::kernels::cpu
