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

}  // namespace takt::kernels::reference
