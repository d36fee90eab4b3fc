// Voxels and sparse convolutions: what the operators mean, for the reference and the kernels; docs/operators.md.
//
// A cell is one i64: z << 42 | y << 21 | x. Lists of cells are ascending, so that neighbours along x lie side by side
// and every map between two lists is a merge. Extents are at most 2^20, so that an index of -1 or of the extent never
// meets a cell of another row. Whatever lists really hold, nothing outside the operands is touched.
//
// A kernel of extents (z, y, x) has taps in that order, k = (kz * extent_y + ky) * extent_x + kx. Cell o of a result
// reads cell o * stride - padding + k of its input, in each dimension.
#pragma once

#include <cstdint>

namespace takt::kernels {

inline constexpr int kCellBits = 21;
inline constexpr std::int32_t kMostCells = 1 << 20;  // of each extent
inline constexpr std::int32_t kMostTaps = 343;

constexpr std::int64_t cell_of(std::int64_t z, std::int64_t y, std::int64_t x) {
  return ((z * (std::int64_t{1} << kCellBits)) + y) * (std::int64_t{1} << kCellBits) + x;
}
constexpr std::int64_t x_of(std::int64_t cell) { return cell & ((1 << kCellBits) - 1); }
constexpr std::int64_t y_of(std::int64_t cell) { return (cell >> kCellBits) & ((1 << kCellBits) - 1); }
constexpr std::int64_t z_of(std::int64_t cell) { return (cell >> (2 * kCellBits)) & ((1 << kCellBits) - 1); }

// Which cells stay when there are more than the capacity. Numbered as stored.
enum class Keep : std::int32_t {
  kFirst = 0,  // those whose first point comes first
  kNear = 1,   // those nearest to `centre` in the plane: (x - centre_x)^2 + (y - centre_y)^2 in cells, then by cell
};

// Points f32[points][columns], x y z first, to cells. A point is taken when every coordinate is at least `minimum` and
// below `maximum` (no NaN is, nor infinity) and its index, (coordinate - minimum) / size in f32, rounded down, lies in
// the grid. Of a voxel the first `most` points in the cloud's order are kept, of the voxels `voxels` as `keep` says.
//   cells i64[voxels], ends i32[voxels], members i32[points], count, kept, dropped (i32)
// members: rows of the cloud, voxel by voxel in the order of cells, the cloud's order inside; those of voxel v are
// [ends[v-1], ends[v]), of voxel 0 from 0 on. kept: how many there are. dropped: points in range that are not among
// them.
struct VoxeliseParams {
  std::int32_t points = 1, columns = 4, voxels = 1;
  std::int32_t most = 0;  // points of a voxel; 0: all
  Keep keep = Keep::kFirst;
  std::int32_t grid[3] = {1, 1, 1};                                    // x, y, z
  float minimum[3] = {}, maximum[3] = {1, 1, 1}, size[3] = {1, 1, 1};  // x, y, z; metres
  std::int32_t centre[2] = {};                                         // x, y; of kNear
  std::int32_t reserved = 0;
};
static_assert(sizeof(VoxeliseParams) == 80);

// The mean of every column over the members of each voxel: added in the order of members in double, divided, rounded
// once. Members that are no rows are left out; a voxel without any gives zeros.
//   points f32[points][columns], ends i32[voxels], members i32[points] -> f32[voxels][columns]
struct VoxelMeanParams {
  std::int32_t points = 1, columns = 4, voxels = 1, reserved = 0;
};

}  // namespace takt::kernels
