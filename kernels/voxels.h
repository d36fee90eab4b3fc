// Voxels and sparse convolutions: what the operators mean, for the reference and the kernels; docs/operators.md.
//
// A cell is one i64: z << 42 | y << 21 | x, its sign is not looked at. Lists of cells are ascending, so that neighbours
// along x lie side by side and every map between two lists is a merge. Extents are at most 2^20, so that an index of -1
// or of the extent never meets a cell of another row. Whatever lists really hold, nothing outside the operands is
// touched.
//
// A kernel of extents (z, y, x) has taps in that order, k = (kz * extent_y + ky) * extent_x + kx. Cell o of a result
// reads cell o * stride - padding + k of its input, in each dimension.
#pragma once

#include <cstdint>

#include "kernels/device_code.h"

namespace takt::kernels {

inline constexpr int kCellBits = 21;
inline constexpr std::int32_t kMostCells = 1 << 20;              // of each extent
inline constexpr std::int32_t kMostKernel = 7, kMostStride = 8;  // extents of a kernel, strides

// Wraps around where a hostile index lies far outside the grid.
constexpr std::int64_t cell_of(std::int64_t z, std::int64_t y, std::int64_t x) {
  constexpr std::uint64_t row = std::uint64_t{1} << kCellBits;
  return static_cast<std::int64_t>((static_cast<std::uint64_t>(z) * row + static_cast<std::uint64_t>(y)) * row +
                                   static_cast<std::uint64_t>(x));
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
// below `maximum` (no NaN is, nor infinity) and its index, (coordinate - minimum) / size in double, rounded down, lies
// in the grid. Of a voxel the first `most` points in the cloud's order are kept, of the voxels `voxels` as `keep` says.
//   cells i64[voxels], ends i32[voxels], members i32[points], count, kept, dropped (i32)
// members: rows of the cloud, voxel by voxel in the order of cells, the cloud's order inside; those of voxel v are
// [ends[v-1], ends[v]), of voxel 0 from 0 on. kept: how many there are. dropped: points in range that are not among
// them.
struct VoxeliseParams {
  std::int32_t points = 1, columns = 4, voxels = 1;
  std::int32_t most = 0;  // points of a voxel; 0: all
  Keep keep = Keep::kFirst;
  std::int32_t grid[3] = {1, 1, 1};                                     // x, y, z
  std::int32_t centre[2] = {};                                          // x, y; of kNear
  double minimum[3] = {}, maximum[3] = {1, 1, 1}, size[3] = {1, 1, 1};  // x, y, z; metres
};
static_assert(sizeof(VoxeliseParams) == 112);

inline namespace TAKT_SIDE {
// The cell of a point, for kernels; -1: it is in none.
TAKT_FUNCTION std::int64_t cell_of_point(const VoxeliseParams& p, const float* point) {
  std::int64_t index[3];
  for (int d = 0; d < 3; ++d) {
    // NaN fails each of these.
    const auto coordinate = static_cast<double>(point[d]);
    if (!(coordinate >= p.minimum[d] && coordinate < p.maximum[d])) return -1;
    const double at = (coordinate - p.minimum[d]) / p.size[d];
    if (!(at < p.grid[d])) return -1;
    index[d] = static_cast<std::int64_t>(at);  // not negative: rounded down
  }
  return cell_of(index[2], index[1], index[0]);
}
}  // namespace TAKT_SIDE

// The mean of every column over the members of each voxel: added in the order of members in double, divided, rounded
// once. Members that are no rows are left out; a voxel without any gives zeros.
//   points f32[points][columns], ends i32[voxels], members i32[points] -> f32[voxels][columns]
struct VoxelMeanParams {
  std::int32_t points = 1, columns = 4, voxels = 1, reserved = 0;
};

// The cells of a strided convolution's result: every cell of its grid of which some tap reads a cell of the input.
//   input i64[cells] -> cells i64[results], count, dropped (i32)
// When there are more than `results`, those nearest to `centre` in the plane stay (as Keep::kNear); dropped: the
// others.
struct SparseCellsParams {
  std::int32_t cells = 1, results = 1;
  std::int32_t grid[3] = {1, 1, 1};                                            // of the result; x, y, z
  std::int32_t kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, padding[3] = {};  // x, y, z
  std::int32_t centre[2] = {};                                                 // x, y
};
static_assert(sizeof(SparseCellsParams) == 64);

// Which row of the input each tap of each result reads; -1: no cell is there. One map serves every convolution over
// the same lists; with one list for both it is that of submanifold convolutions.
//   input i64[inputs], output i64[results] -> map i32[results][taps]
struct SparseMapParams {
  std::int32_t inputs = 1, results = 1;
  std::int32_t kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, padding[3] = {};  // x, y, z
  std::int32_t reserved = 0;
};
static_assert(sizeof(SparseMapParams) == 48);

// The way back: where map[i][k] = j, the result has [j][k] = i; -1 elsewhere.
//   map i32[results][taps], cells i64[cells] (their number counts) -> i32[cells][taps]
struct InverseMapParams {
  std::int32_t results = 1, cells = 1, taps = 1, reserved = 0;
};

// y[i] = activation(bias + sum over taps k, then channels c, of x[map[i][k]][c] * weights[k][c] + residual[i]), each
// product added by fma, in that order; rows that are none of x give nothing.
//   x f32[inputs][c_in], weights f32[taps][c_in][c_out], map i32[results][taps], [bias f32[c_out]],
//   [residual f32[results][c_out]] -> f32[results][c_out]
struct SparseConvParams {
  std::int32_t inputs = 1, results = 1, taps = 1, c_in = 1, c_out = 1;
  std::int32_t bias = 0, residual = 0;  // 1: the operand is there
  std::int32_t activation = 0;          // as cpu::Activation
  float alpha = 0, beta = 0;            // of the activation
};
static_assert(sizeof(SparseConvParams) == 40);

// Rows into a dense tensor, zero where there is no cell: y[0][c * grid_z + z][y][x] = x[i][c]. Cells outside the grid
// are left out; of equal ones the last stays. `block`: channels of a block of a blocked result (kernels/tensor.h),
// holes zero; 0: row-major.
//   x f32[rows][channels], cells i64[rows] -> f32[1][channels * grid_z][grid_y][grid_x]
struct ScatterBevParams {
  std::int32_t rows = 1, channels = 1;
  std::int32_t grid[3] = {1, 1, 1};  // x, y, z
  std::int32_t block = 0;
};
static_assert(sizeof(ScatterBevParams) == 24);

}  // namespace takt::kernels
