#include "kernels/voxels.h"
#include "tests/kernels/cpu/operator_calls.h"

namespace takt::kernels::cpu {

std::vector<Call> voxel_calls() {
  VoxeliseParams voxelise;
  voxelise.points = 40;
  voxelise.columns = 5;
  voxelise.voxels = 7;
  for (int d = 0; d < 3; ++d) {
    voxelise.grid[d] = 4 - d;
    voxelise.maximum[d] = 4 - d;
  }
  SparseCellsParams cells{9, 5, {4, 3, 2}, {3, 3, 3}, {2, 2, 1}, {1, 1, 0}, {2, 1}};
  SparseMapParams map{9, 5, {3, 3, 1}, {2, 2, 2}, {1, 1, 0}, 0};
  SparseConvParams conv{9, 5, 3, 4, 19, 1, 1, 1, 0, 0};
  return {make_call(KernelId::kVoxelise, voxelise),
          make_call(KernelId::kVoxelMean, VoxelMeanParams{40, 5, 7, 0}),
          make_call(KernelId::kSparseCells, cells),
          make_call(KernelId::kSparseMap, map),
          make_call(KernelId::kInverseMap, InverseMapParams{5, 9, 3, 0}),
          make_call(KernelId::kSparseConv, conv),
          make_call(KernelId::kScatterBev, ScatterBevParams{9, 3, {4, 3, 2}, 0})};
}

}  // namespace takt::kernels::cpu
