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
    voxelise.maximum[d] = static_cast<float>(4 - d);
  }
  return {make_call(KernelId::kVoxelise, voxelise), make_call(KernelId::kVoxelMean, VoxelMeanParams{40, 5, 7, 0})};
}

}  // namespace takt::kernels::cpu
