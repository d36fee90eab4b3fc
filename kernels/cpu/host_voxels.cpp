// Host halves of the operators on voxels: kernels/voxels.h has their parameters.
#include <cmath>

#include "kernels/cpu/cells.h"
#include "kernels/cpu/cuda_scratch.h"
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

std::uint64_t voxelise_on_cuda(const void* params) { return VoxeliseScratch(load<VoxeliseParams>(params)).bytes; }

constexpr OperatorKernel kVoxelise = {KernelId::kVoxelise,
                                      "voxelise_f32",
                                      1,
                                      sizeof(VoxeliseParams),
                                      1,
                                      1,
                                      6,
                                      1,
                                      {1, -1, 5, 5, 6, -1, -1, -1, -1},
                                      voxelise_bytes,
                                      voxelise_flops,
                                      voxelise_on_cuda};

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

// Extents of a kernel and how it moves; the products with extents of a grid stay small.
template <class Params>
const char* window(const Params& p) {
  for (int d = 0; d < 3; ++d) {
    if (p.kernel[d] < 1 || p.kernel[d] > kMostKernel || p.stride[d] < 1 || p.stride[d] > kMostStride ||
        p.padding[d] < 0 || p.padding[d] >= kMostKernel) {
      return "kernel, stride or padding out of range";
    }
  }
  return nullptr;
}
template <class Params>
std::int64_t taps_of(const Params& p) {
  return std::int64_t{p.kernel[0]} * p.kernel[1] * p.kernel[2];
}

const char* sparse_cells_bytes(const void* params, OperandBytes* out) {
  const auto p = load<SparseCellsParams>(params);
  if (const char* const problem = window(p)) return problem;
  if (!is_grid(p.grid)) return "the grid has no cells, or more than 2^20 in a row";
  for (const std::int32_t at : p.centre) {
    if (at < 0 || at > kMostCells) return "the centre is far outside the grid";
  }
  out->bytes[0] = extent_bytes({p.cells}, 8);
  out->element[0] = out->element[2] = out->element[5] = 8;
  out->bytes[1] = out->bytes[3] = out->bytes[4] = 4;
  out->bytes[2] = extent_bytes({p.results}, 8);
  out->bytes[5] = sparse_cells_scratch(p);
  return out->bytes[0] == 0 || out->bytes[2] == 0 || out->bytes[5] == 0 ? kExtents : nullptr;
}

// Candidates are counted in 32 bits.
std::uint64_t sparse_cells_on_cuda(const void* params) {
  const SparseCellsScratch scratch(load<SparseCellsParams>(params));
  return scratch.candidates <= 0x7fffffff ? scratch.bytes : 0;
}

constexpr OperatorKernel kSparseCells = {
    KernelId::kSparseCells, "sparse_cells",     1,       sizeof(SparseCellsParams), 1, 1, 3, 1,
    {1, -1, 3, -1, -1, -1}, sparse_cells_bytes, nullptr, sparse_cells_on_cuda};

const char* sparse_map_bytes(const void* params, OperandBytes* out) {
  const auto p = load<SparseMapParams>(params);
  if (const char* const problem = window(p)) return problem;
  out->bytes[0] = extent_bytes({p.inputs}, 8);
  out->bytes[1] = extent_bytes({p.results}, 8);
  out->element[0] = out->element[1] = 8;
  out->bytes[2] = out->bytes[3] = 4;
  out->bytes[4] = extent_bytes({p.results, taps_of(p)}, 4);
  return out->bytes[0] == 0 || out->bytes[4] == 0 ? kExtents : nullptr;
}

constexpr OperatorKernel kSparseMap = {
    KernelId::kSparseMap, "sparse_map",     1,      sizeof(SparseMapParams), 2, 2, 1, 0,
    {2, 3, -1, -1, 3},    sparse_map_bytes, nullptr};

const char* inverse_map_bytes(const void* params, OperandBytes* out) {
  const auto p = load<InverseMapParams>(params);
  out->bytes[0] = extent_bytes({p.results, p.taps}, 4);
  out->bytes[1] = extent_bytes({p.cells}, 8);
  out->element[1] = 8;
  out->bytes[2] = out->bytes[3] = 4;
  out->bytes[4] = extent_bytes({p.cells, p.taps}, 4);
  return out->bytes[0] == 0 || out->bytes[4] == 0 ? kExtents : nullptr;
}

constexpr OperatorKernel kInverseMap = {
    KernelId::kInverseMap, "inverse_map",     1,      sizeof(InverseMapParams), 2, 2, 1, 0,
    {2, 3, -1, -1, 3},     inverse_map_bytes, nullptr};

const char* sparse_conv_bytes(const void* params, OperandBytes* out) {
  const auto p = load<SparseConvParams>(params);
  if (p.bias < 0 || p.bias > 1 || p.residual < 0 || p.residual > 1 || p.activation < 0 || p.activation > 8) {
    return "an option has an unknown value";
  }
  if (p.taps > kMostKernel * kMostKernel * kMostKernel) return kExtents;
  out->bytes[0] = extent_bytes({p.inputs, p.c_in}, 4);
  out->bytes[1] = extent_bytes({p.taps, p.c_in, p.c_out}, 4);
  out->bytes[3] = p.bias == 1 ? extent_bytes({p.c_out}, 4) : 0;
  out->bytes[2] = extent_bytes({p.results, p.taps}, 4);
  out->bytes[5] = out->bytes[6] = 4;
  out->bytes[7] = extent_bytes({p.results, p.c_out}, 4);
  out->bytes[4] = p.residual == 1 ? out->bytes[7] : 0;
  return out->bytes[0] == 0 || out->bytes[1] == 0 || out->bytes[2] == 0 || out->bytes[7] == 0 ? kExtents : nullptr;
}

std::uint64_t sparse_conv_flops(const void* params) {
  const auto p = load<SparseConvParams>(params);
  return 2 * static_cast<std::uint64_t>(p.results) * static_cast<std::uint64_t>(p.taps) *
         static_cast<std::uint64_t>(p.c_in) * static_cast<std::uint64_t>(p.c_out);
}

constexpr OperatorKernel kSparseConv = {
    KernelId::kSparseConv, "sparse_conv_f32", 1, sizeof(SparseConvParams), 5, 2, 1, 0, {5, -1, 6, -1, 6, -1, -1, 6},
    sparse_conv_bytes,     sparse_conv_flops};

const char* scatter_bev_bytes(const void* params, OperandBytes* out) {
  const auto p = load<ScatterBevParams>(params);
  if (!is_grid(p.grid)) return "the grid has no cells, or more than 2^20 in a row";
  out->bytes[0] = extent_bytes({p.rows, p.channels}, 4);
  out->bytes[1] = extent_bytes({p.rows}, 8);
  out->element[1] = 8;
  out->bytes[2] = 4;
  if (p.block != 0 && p.block != 8 && p.block != 16 && p.block != 32) return "an option has an unknown value";
  out->bytes[3] = extent_bytes({p.channels, p.grid[0], p.grid[1], p.grid[2]}, 4);
  if (p.block != 0 && out->bytes[3] != 0) {
    const std::int64_t blocks = (std::int64_t{p.channels} * p.grid[2] + p.block - 1) / p.block;
    out->bytes[3] = extent_bytes({blocks, p.block, p.grid[0], p.grid[1]}, 4);
  }
  return out->bytes[0] == 0 || out->bytes[3] == 0 ? kExtents : nullptr;
}

constexpr OperatorKernel kScatterBev = {
    KernelId::kScatterBev, "scatter_bev_f32", 1,      sizeof(ScatterBevParams), 2, 1, 1, 0,
    {2, 2, -1, -1},        scatter_bev_bytes, nullptr};

constexpr const OperatorKernel* kOperators[] = {&kVoxelise,   &kVoxelMean,  &kSparseCells, &kSparseMap,
                                                &kInverseMap, &kSparseConv, &kScatterBev};

}  // namespace

std::uint64_t sparse_cells_scratch(const SparseCellsParams& p) {
  // What each cell gives at most, where each stream is, the cells' places and what they may give.
  return extent_bytes({p.cells, streams_of(p) + 2}, 8);
}

std::span<const OperatorKernel* const> voxel_operators() { return kOperators; }

}  // namespace takt::kernels::cpu
