// Voxels and sparse convolutions by plain loops: kernels/voxels.h says what each computes.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/voxels.h"

namespace takt::kernels::reference {

// `points`: only the valid rows. Results have room for the capacities.
struct Voxels {
  std::int64_t* cells;
  std::int32_t* ends;
  std::int32_t* members;
  std::int32_t count = 0, kept = 0, dropped = 0;
};
void voxelise(const VoxeliseParams& params, std::span<const float> points, Voxels* out);

// `ends`: only the valid voxels; `members` likewise. y: as many rows as `ends`.
void voxel_mean(const VoxelMeanParams& params, std::span<const float> points, std::span<const std::int32_t> ends,
                std::span<const std::int32_t> members, float* y);

// Lists are as long as their counts. Result of sparse_cells: count and dropped; cells has room for the capacity.
struct Cells {
  std::int32_t count = 0, dropped = 0;
};
Cells sparse_cells(const SparseCellsParams& params, std::span<const std::int64_t> input, std::int64_t* cells);
void sparse_map(const SparseMapParams& params, std::span<const std::int64_t> input,
                std::span<const std::int64_t> output, std::int32_t* map);
void inverse_map(const InverseMapParams& params, std::span<const std::int32_t> map, std::int32_t cells,
                 std::int32_t* inverse);

// `inputs` and `results`: the valid rows. bias, residual: nullptr where absent.
void sparse_conv(const SparseConvParams& params, std::int32_t inputs, std::int32_t results, const float* x,
                 const float* weights, const float* bias, const std::int32_t* map, const float* residual, float* y);

void scatter_bev(const ScatterBevParams& params, std::span<const std::int64_t> cells, const float* x, float* y);

}  // namespace takt::kernels::reference
