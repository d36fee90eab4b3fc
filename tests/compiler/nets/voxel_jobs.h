// The voxel network in small, and jobs of it: clouds as a sensor gives them, and as none does.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "compiler/nets/voxels.h"
#include "tests/support/run_plan.h"

namespace takt::compiler {
namespace voxels {

using Bytes = std::vector<std::byte>;

inline constexpr std::int64_t kPoints = 600;

inline VoxelNetwork small() {
  VoxelNetwork n;
  n.points = kPoints;
  n.range = {-6.4F, -6.4F, -2, 6.4F, 6.4F, 3};
  n.voxel = {0.4F, 0.4F, 0.5F};
  n.points_per_voxel = 3;
  n.capacities = {400, 300};
  n.channels = {8, 16};
  n.flat_cells = 150;
  n.blocks = 1;
  n.map_channels = {16, 24};
  n.map_convs = {1, 1};
  n.neck = 8;
  n.boxes = 20;
  return n;
}

using test::bytes_of;

// Rows at capacity, NaN behind the count, and the count. `fill`: what every coordinate is; absent: a street.
inline std::vector<Bytes> inputs_of(int seed, std::int32_t count, std::optional<float> fill = {}) {
  std::mt19937 engine(static_cast<unsigned>(seed));
  std::uniform_real_distribution<float> unit(0, 1);
  std::vector<float> rows(kPoints * 5, std::numeric_limits<float>::quiet_NaN());
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    for (std::size_t d = 0; d < 3; ++d) rows[5 * i + d] = fill ? *fill : (unit(engine) - 0.5F) * (d == 2 ? 2.5F : 13);
    rows[5 * i + 3] = unit(engine);
    rows[5 * i + 4] = 0;
  }
  return {bytes_of(rows), bytes_of(std::vector<std::int32_t>{count})};
}

inline std::vector<std::vector<Bytes>> all_jobs() {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  return {inputs_of(1, 500),
          inputs_of(2, 0),
          inputs_of(3, 600, nan),
          inputs_of(4, 600, 1.0F),
          inputs_of(5, 600, 206494.75F),
          inputs_of(6, 1)};
}

}  // namespace voxels
}  // namespace takt::compiler
