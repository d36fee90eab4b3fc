// Voxels and sparse convolutions (kernels/voxels.h). Lists are made by sorting and compaction (order.h); whatever
// belongs to one result is computed by one thread.
#include "kernels/cuda/calls.h"
#include "kernels/cuda/order.h"
#include "kernels/voxels.h"

namespace takt::kernels::cuda::TAKT_BODY {
namespace {

using cpu::KernelId;

TAKT_DEVICE std::uint64_t squared_distance(std::int64_t cell, const std::int32_t (&centre)[2]) {
  const std::int64_t x = x_of(cell) - centre[0], y = y_of(cell) - centre[1];
  return static_cast<std::uint64_t>(x * x + y * y);
}

// --- Voxelise ------------------------------------------------------------------------------------------------------
// Points in range, in their order.
struct InRange {
  VoxeliseParams p;
  Address points, count, keys, rows, counters, tile_sums;
  TAKT_DEVICE std::int64_t cell(std::int64_t i) const {
    return i < rows_of(count, p.points) ? cell_of_point(p, at<const float>(points) + i * p.columns) : -1;
  }
  TAKT_DEVICE std::uint64_t weight(std::int64_t i) const { return cell(i) >= 0 ? 1 : 0; }
  TAKT_DEVICE void emit(std::int64_t i, std::uint64_t weight, std::uint64_t to) const {
    if (weight == 0) return;
    at<std::int64_t>(keys)[to] = cell(i);
    at<std::int32_t>(rows)[to] = static_cast<std::int32_t>(i);
  }
  TAKT_DEVICE void finish(std::uint64_t total) const {
    at<std::int32_t>(counters)[0] = static_cast<std::int32_t>(total);
  }
};

// Where each voxel begins among the sorted points, and behind the last one how many points there are.
struct VoxelBegins {
  Address keys, counters, begins, tile_sums;
  TAKT_DEVICE std::uint64_t weight(std::int64_t i) const {
    if (i >= at<const std::int32_t>(counters)[0]) return 0;
    return i == 0 || at<const std::int64_t>(keys)[i] != at<const std::int64_t>(keys)[i - 1] ? 1 : 0;
  }
  TAKT_DEVICE void emit(std::int64_t i, std::uint64_t weight, std::uint64_t to) const {
    if (weight != 0) at<std::int32_t>(begins)[to] = static_cast<std::int32_t>(i);
  }
  TAKT_DEVICE void finish(std::uint64_t total) const {
    at<std::int32_t>(counters)[1] = static_cast<std::int32_t>(total);
    at<std::int32_t>(begins)[total] = at<const std::int32_t>(counters)[0];
  }
};

// The sorted points, voxel by voxel.
struct VoxelList {
  VoxeliseParams p;
  Address keys, rows, begins, counters, threshold;
  [[nodiscard]] TAKT_DEVICE std::int64_t size() const { return at<const std::int32_t>(counters)[1]; }
  [[nodiscard]] TAKT_DEVICE std::int64_t room() const { return p.voxels; }
  [[nodiscard]] TAKT_DEVICE std::int32_t begin(std::int64_t v) const { return at<const std::int32_t>(begins)[v]; }
  [[nodiscard]] TAKT_DEVICE std::int32_t points_of(std::int64_t v) const {
    const std::int32_t points = begin(v + 1) - begin(v);
    return p.most > 0 && points > p.most ? p.most : points;
  }
  [[nodiscard]] TAKT_DEVICE std::uint64_t rank(std::int64_t v) const {
    if (p.keep == Keep::kFirst) return static_cast<std::uint64_t>(at<const std::int32_t>(rows)[begin(v)]);
    return squared_distance(at<const std::int64_t>(keys)[begin(v)], p.centre);
  }
};

// Voxels that stay: one in the upper half of a weight, its points in the lower.
struct KeptVoxels {
  VoxelList voxels;
  Address cells, ends, offsets, count, kept, dropped, tile_sums;
  TAKT_DEVICE std::uint64_t weight(std::int64_t v) const {
    if (v >= voxels.size() || !at<const Threshold>(voxels.threshold)->keeps(voxels.rank(v), v)) return 0;
    return (std::uint64_t{1} << 32) + static_cast<std::uint64_t>(voxels.points_of(v));
  }
  TAKT_DEVICE void emit(std::int64_t v, std::uint64_t weight, std::uint64_t before) const {
    if (v >= voxels.size()) return;
    const auto offset = static_cast<std::int32_t>(before & 0xffffffff);
    at<std::int32_t>(offsets)[v] = weight != 0 ? offset : -1;
    if (weight == 0) return;
    at<std::int64_t>(cells)[before >> 32] = at<const std::int64_t>(voxels.keys)[voxels.begin(v)];
    at<std::int32_t>(ends)[before >> 32] = offset + voxels.points_of(v);
  }
  TAKT_DEVICE void finish(std::uint64_t total) const {
    const auto points = static_cast<std::int32_t>(total & 0xffffffff);
    *at<std::int32_t>(count) = static_cast<std::int32_t>(total >> 32);
    *at<std::int32_t>(kept) = points;
    *at<std::int32_t>(dropped) = at<const std::int32_t>(voxels.counters)[0] - points;
  }
};

struct Members {
  VoxelList voxels;
  Address offsets, members;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    if (i >= at<const std::int32_t>(voxels.counters)[0]) return;
    std::int64_t v = 0;  // the last one that begins at i or before
    for (std::int64_t after = voxels.size(); after - v > 1;) {
      const std::int64_t middle = (v + after) / 2;
      (voxels.begin(middle) <= i ? v : after) = middle;
    }
    const std::int64_t place = i - voxels.begin(v);
    const std::int32_t offset = at<const std::int32_t>(offsets)[v];
    if (offset < 0 || place >= voxels.points_of(v)) return;
    at<std::int32_t>(members)[offset + place] = at<const std::int32_t>(voxels.rows)[i];
  }
};

int voxelise(const Call& call) {
  const auto p = load_params<VoxeliseParams>(call.params);
  const cpu::VoxeliseScratch layout(p);
  const Address* const o = call.operands;
  const auto scratch = [&](std::uint64_t offset) { return within(o[8], offset); };
  const Address keys[2] = {scratch(layout.keys[0]), scratch(layout.keys[1])};
  const Address rows[2] = {scratch(layout.rows[0]), scratch(layout.rows[1])};
  const Address begins = scratch(layout.begins), histogram = scratch(layout.histogram);
  const Address counters = scratch(layout.counters);
  if (const int error =
          compact("voxelise_points", InRange{p, o[0], o[1], keys[0], rows[0], counters, histogram}, p.points, call)) {
    return error;
  }
  const CellDigits digits(p.grid);
  if (const int error = sort_cells("voxelise_sort", digits, keys, rows, histogram, counters, p.points, call)) {
    return error;
  }
  const int sorted = digits.count % 2;
  if (const int error =
          compact("voxelise_begins", VoxelBegins{keys[sorted], counters, begins, histogram}, p.points, call)) {
    return error;
  }
  const VoxelList voxels{p, keys[sorted], rows[sorted], begins, counters, scratch(layout.threshold)};
  if (const int error = select("voxelise_select", voxels, call)) return error;
  const Address offsets = rows[1 - sorted];
  if (const int error = compact("voxelise_voxels", KeptVoxels{voxels, o[2], o[3], offsets, o[5], o[6], o[7], histogram},
                                p.points, call)) {
    return error;
  }
  return each("voxelise_members", Members{voxels, offsets, o[4]}, p.points, call);
}

// --- VoxelMean -----------------------------------------------------------------------------------------------------
struct VoxelMean {
  VoxelMeanParams p;
  Address points, ends, members, point_count, voxel_count, member_count, y;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t v = i / p.columns, c = i % p.columns;
    if (v >= rows_of(voxel_count, p.voxels)) return;
    const std::int64_t rows = rows_of(point_count, p.points), kept = rows_of(member_count, p.points);
    const auto end_of = [&](std::int64_t voxel) {
      const std::int64_t end = at<const std::int32_t>(ends)[voxel];
      return end < 0 ? 0 : end < kept ? end : kept;
    };
    double sum = 0, count = 0;
    for (std::int64_t m = v > 0 ? end_of(v - 1) : 0, last = end_of(v); m < last; ++m) {
      const std::int64_t row = at<const std::int32_t>(members)[m];
      if (row < 0 || row >= rows) continue;
      sum += static_cast<double>(at<const float>(points)[row * p.columns + c]);
      ++count;
    }
    at<float>(y)[i] = count > 0 ? static_cast<float>(sum / count) : 0.0F;
  }
};
int voxel_mean(const Call& call) {
  const auto p = load_params<VoxelMeanParams>(call.params);
  const Address* const o = call.operands;
  return each("voxel_mean", VoxelMean{p, o[0], o[1], o[2], o[3], o[4], o[5], o[6]}, std::int64_t{p.voxels} * p.columns,
              call);
}

// --- SparseCells ---------------------------------------------------------------------------------------------------
// Results that a tap of some cell gives: cell by cell, what its taps with the right remainder of the stride give.
struct Candidates {
  SparseCellsParams p;
  Address input, count, keys, counters, tile_sums;
  std::int64_t streams;
  TAKT_DEVICE std::int64_t result(std::int64_t i) const {
    const std::int64_t row = i / streams;
    if (row >= rows_of(count, p.cells)) return -1;
    const std::int64_t cell = at<const std::int64_t>(input)[row];
    const std::int64_t from[3] = {x_of(cell), y_of(cell), z_of(cell)};
    std::int64_t stream = i % streams, result[3];
    for (int d = 0; d < 3; ++d) {
      const std::int64_t lanes = (p.kernel[d] + p.stride[d] - 1) / p.stride[d], back = stream % lanes;
      stream /= lanes;
      const std::int64_t padded = from[d] + p.padding[d];
      if (padded % p.stride[d] + back * p.stride[d] >= p.kernel[d]) return -1;
      result[d] = padded / p.stride[d] - back;
      if (result[d] < 0 || result[d] >= p.grid[d]) return -1;
    }
    return cell_of(result[2], result[1], result[0]);
  }
  TAKT_DEVICE std::uint64_t weight(std::int64_t i) const { return result(i) >= 0 ? 1 : 0; }
  TAKT_DEVICE void emit(std::int64_t i, std::uint64_t weight, std::uint64_t to) const {
    if (weight != 0) at<std::int64_t>(keys)[to] = result(i);
  }
  TAKT_DEVICE void finish(std::uint64_t total) const {
    at<std::int32_t>(counters)[0] = static_cast<std::int32_t>(total);
  }
};

// Each once.
struct Different {
  Address sorted, found, counters, tile_sums;
  TAKT_DEVICE std::uint64_t weight(std::int64_t i) const {
    if (i >= at<const std::int32_t>(counters)[0]) return 0;
    return i == 0 || at<const std::int64_t>(sorted)[i] != at<const std::int64_t>(sorted)[i - 1] ? 1 : 0;
  }
  TAKT_DEVICE void emit(std::int64_t i, std::uint64_t weight, std::uint64_t to) const {
    if (weight != 0) at<std::int64_t>(found)[to] = at<const std::int64_t>(sorted)[i];
  }
  TAKT_DEVICE void finish(std::uint64_t total) const {
    at<std::int32_t>(counters)[1] = static_cast<std::int32_t>(total);
  }
};

struct FoundCells {
  SparseCellsParams p;
  Address list, counters, threshold;
  [[nodiscard]] TAKT_DEVICE std::int64_t size() const { return at<const std::int32_t>(counters)[1]; }
  [[nodiscard]] TAKT_DEVICE std::int64_t room() const { return p.results; }
  [[nodiscard]] TAKT_DEVICE std::uint64_t rank(std::int64_t i) const {
    return squared_distance(at<const std::int64_t>(list)[i], p.centre);
  }
};

int sparse_cells(const Call& call) {
  const auto p = load_params<SparseCellsParams>(call.params);
  const cpu::SparseCellsScratch layout(p);
  const Address* const o = call.operands;
  const auto scratch = [&](std::uint64_t offset) { return within(o[5], offset); };
  const Address keys[2] = {scratch(layout.keys[0]), scratch(layout.keys[1])};
  const Address histogram = scratch(layout.histogram), counters = scratch(layout.counters);
  if (const int error = compact("sparse_cells_candidates",
                                Candidates{p, o[0], o[1], keys[0], counters, histogram, cpu::streams_of(p)},
                                layout.candidates, call)) {
    return error;
  }
  const CellDigits digits(p.grid);
  if (const int error =
          sort_cells("sparse_cells_sort", digits, keys, {}, histogram, counters, layout.candidates, call)) {
    return error;
  }
  const Address sorted = keys[digits.count % 2], found = keys[1 - digits.count % 2];
  if (const int error =
          compact("sparse_cells_different", Different{sorted, found, counters, histogram}, layout.candidates, call)) {
    return error;
  }
  const FoundCells all{p, found, counters, scratch(layout.threshold)};
  if (const int error = select("sparse_cells_select", all, call)) return error;
  return compact("sparse_cells_kept", Selected<std::int64_t, FoundCells>{all, o[2], o[3], o[4], histogram},
                 layout.candidates, call);
}

// --- maps ----------------------------------------------------------------------------------------------------------
struct SparseMap {
  SparseMapParams p;
  Address input, output, inputs, results, map;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const std::int32_t taps = p.kernel[0] * p.kernel[1] * p.kernel[2];
    const std::int64_t result = i / taps, tap = i % taps;
    if (result >= rows_of(results, p.results)) return;
    const std::int64_t cell = at<const std::int64_t>(output)[result];
    const std::int64_t x = x_of(cell) * p.stride[0] - p.padding[0] + tap % p.kernel[0];
    const std::int64_t y = y_of(cell) * p.stride[1] - p.padding[1] + tap / p.kernel[0] % p.kernel[1];
    const std::int64_t z = z_of(cell) * p.stride[2] - p.padding[2] + tap / p.kernel[0] / p.kernel[1];
    std::int32_t row = -1;
    if (x >= 0 && y >= 0 && z >= 0 && x < kMostCells && y < kMostCells && z < kMostCells) {
      const std::int64_t wanted = cell_of(z, y, x), rows = rows_of(inputs, p.inputs);
      std::int64_t first = 0;  // that is not below
      for (std::int64_t left = rows; left > 0;) {
        const std::int64_t half = left / 2;
        const bool below = at<const std::int64_t>(input)[first + half] < wanted;
        first = below ? first + half + 1 : first;
        left = below ? left - half - 1 : half;
      }
      if (first < rows && at<const std::int64_t>(input)[first] == wanted) row = static_cast<std::int32_t>(first);
    }
    at<std::int32_t>(map)[i] = row;
  }
};
int sparse_map(const Call& call) {
  const auto p = load_params<SparseMapParams>(call.params);
  const Address* const o = call.operands;
  return each("sparse_map", SparseMap{p, o[0], o[1], o[2], o[3], o[4]},
              std::int64_t{p.results} * p.kernel[0] * p.kernel[1] * p.kernel[2], call);
}

struct NoRows {
  InverseMapParams p;
  Address cells, inverse;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    if (i / p.taps < rows_of(cells, p.cells)) at<std::int32_t>(inverse)[i] = -1;
  }
};
// Of several results that read the same with one tap, which no real map has, the last stays.
struct InverseMap {
  InverseMapParams p;
  Address map, results, cells, inverse;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    if (i / p.taps >= rows_of(results, p.results)) return;
    const std::int64_t row = at<const std::int32_t>(map)[i];
    if (row < 0 || row >= rows_of(cells, p.cells)) return;
    atomic_max(at<std::int32_t>(inverse) + row * p.taps + i % p.taps, static_cast<std::int32_t>(i / p.taps));
  }
};
int inverse_map(const Call& call) {
  const auto p = load_params<InverseMapParams>(call.params);
  const Address* const o = call.operands;
  if (const int error = each("inverse_map_clear", NoRows{p, o[3], o[4]}, std::int64_t{p.cells} * p.taps, call)) {
    return error;
  }
  return each("inverse_map", InverseMap{p, o[0], o[2], o[3], o[4]}, std::int64_t{p.results} * p.taps, call);
}

// --- SparseConv ----------------------------------------------------------------------------------------------------
struct SparseConv {
  SparseConvParams p;
  Address x, weights, map, bias, residual, inputs, results, y;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t result = i / p.c_out, o = i % p.c_out;
    if (result >= rows_of(results, p.results)) return;
    const std::int64_t rows = rows_of(inputs, p.inputs);
    float sum = p.bias == 1 ? at<const float>(bias)[o] : 0.0F;
    const float* w = at<const float>(weights) + o;
    for (std::int64_t k = 0; k < p.taps; ++k, w += std::int64_t{p.c_in} * p.c_out) {
      const std::int64_t row = at<const std::int32_t>(map)[result * p.taps + k];
      if (row < 0 || row >= rows) continue;
      const float* const in = at<const float>(x) + row * p.c_in;
      for (std::int64_t c = 0; c < p.c_in; ++c) sum = fma(in[c], w[c * p.c_out], sum);
    }
    if (p.residual == 1) sum += at<const float>(residual)[i];
    at<float>(y)[i] = activate(static_cast<cpu::Activation>(p.activation), sum, p.alpha, p.beta);
  }
};
int sparse_conv(const Call& call) {
  const auto p = load_params<SparseConvParams>(call.params);
  const Address* const o = call.operands;
  return each("sparse_conv", SparseConv{p, o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7]},
              std::int64_t{p.results} * p.c_out, call);
}

// --- ScatterBev ----------------------------------------------------------------------------------------------------
// Where an element of the result comes from.
struct BevPlace {
  std::int64_t channel, z, pixel;
  bool hole;
};
// The row of each cell first takes the place of its channel 0, which is written last.
struct Bev {
  ScatterBevParams p;
  Address x, cells, rows, y;
  [[nodiscard]] TAKT_DEVICE std::int64_t pixels() const { return std::int64_t{p.grid[0]} * p.grid[1]; }
  [[nodiscard]] TAKT_DEVICE std::int64_t element(std::int64_t channel, std::int64_t z, std::int64_t pixel) const {
    const std::int64_t plane = channel * p.grid[2] + z;
    return p.block == 0 ? plane * pixels() + pixel : (plane / p.block * pixels() + pixel) * p.block + plane % p.block;
  }
  [[nodiscard]] TAKT_DEVICE BevPlace place(std::int64_t i) const {
    const std::int64_t block = p.block == 0 ? 1 : p.block;
    const std::int64_t plane = i / block / pixels() * block + i % block;
    return {plane / p.grid[2], plane % p.grid[2], i / block % pixels(), plane >= std::int64_t{p.channels} * p.grid[2]};
  }
  [[nodiscard]] TAKT_DEVICE std::int32_t* row_of(std::int64_t z, std::int64_t pixel) const {
    return at<std::int32_t>(y) + element(0, z, pixel);
  }
  TAKT_DEVICE void write(std::int64_t i, const BevPlace& to) const {
    const std::int32_t row = *row_of(to.z, to.pixel);
    at<float>(y)[i] = row < 0 ? 0.0F : at<const float>(x)[std::int64_t{row} * p.channels + to.channel];
  }
};
struct BevNoRows {
  Bev bev;
  TAKT_DEVICE void operator()(std::int64_t i) const { *bev.row_of(i / bev.pixels(), i % bev.pixels()) = -1; }
};
struct BevRows {
  Bev bev;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    if (i >= rows_of(bev.rows, bev.p.rows)) return;
    const std::int64_t cell = at<const std::int64_t>(bev.cells)[i];
    const std::int64_t cx = x_of(cell), cy = y_of(cell), cz = z_of(cell);
    if (cx >= bev.p.grid[0] || cy >= bev.p.grid[1] || cz >= bev.p.grid[2]) return;
    atomic_max(bev.row_of(cz, cy * bev.p.grid[0] + cx), static_cast<std::int32_t>(i));
  }
};
struct BevOthers {
  Bev bev;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const BevPlace to = bev.place(i);
    if (to.hole) {
      at<float>(bev.y)[i] = 0;
    } else if (to.channel != 0) {
      bev.write(i, to);
    }
  }
};
struct BevFirst {
  Bev bev;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const BevPlace to{0, i / bev.pixels(), i % bev.pixels(), false};
    bev.write(bev.element(0, to.z, to.pixel), to);
  }
};
int scatter_bev(const Call& call) {
  const auto p = load_params<ScatterBevParams>(call.params);
  const Address* const o = call.operands;
  const Bev bev{p, o[0], o[1], o[2], o[3]};
  const std::int64_t pixels = std::int64_t{p.grid[0]} * p.grid[1], cells = pixels * p.grid[2];
  const std::int64_t block = p.block == 0 ? 1 : p.block;
  const std::int64_t planes = (std::int64_t{p.channels} * p.grid[2] + block - 1) / block * block;
  if (const int error = each("scatter_bev_clear", BevNoRows{bev}, cells, call)) return error;
  if (const int error = each("scatter_bev_rows", BevRows{bev}, p.rows, call)) return error;
  if (const int error = each("scatter_bev_others", BevOthers{bev}, planes * pixels, call)) return error;
  return each("scatter_bev_first", BevFirst{bev}, cells, call);
}

}  // namespace

std::span<const DeviceHalf> voxel_kernels() {
  static constexpr DeviceHalf kHalves[] = {{KernelId::kVoxelise, voxelise},        {KernelId::kVoxelMean, voxel_mean},
                                           {KernelId::kSparseCells, sparse_cells}, {KernelId::kSparseMap, sparse_map},
                                           {KernelId::kInverseMap, inverse_map},   {KernelId::kSparseConv, sparse_conv},
                                           {KernelId::kScatterBev, scatter_bev}};
  return kHalves;
}

}  // namespace takt::kernels::cuda::TAKT_BODY
