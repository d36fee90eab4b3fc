// Voxels: cells of points, means, maps between lists of cells, scatter. No arithmetic that a vector would pay for.
#include <cstring>
#include <limits>

#include "kernels/cpu/cells.h"
#include "kernels/cpu/device.h"
#include "kernels/cpu/operators.h"

namespace takt::kernels::cpu {
namespace {

template <class Params>
Params load_params(const void* params) {
  Params p;
  std::memcpy(&p, params, sizeof(p));
  return p;
}
template <class T>
T* data(const Operand& operand) {
  return reinterpret_cast<T*>(operand.data);
}

// One part: a sort is what it is, and it is short beside what follows.
void voxelise(const void* params, const Operand* operands, int part, int /*parts*/) {
  if (part != 0) return;
  const auto p = load_params<VoxeliseParams>(params);
  const float* const points = data<const float>(operands[0]);
  const std::int32_t rows = rows_of(operands[1], p.points);
  auto* cells = reinterpret_cast<std::int64_t*>(operands[8].data);
  std::int64_t* const other_cells = cells + p.points;
  auto* members = reinterpret_cast<std::int32_t*>(other_cells + p.points);
  std::int32_t* const other_members = members + p.points;
  std::int32_t* const begins = other_members + p.points;

  std::int32_t in_range = 0;
  for (std::int32_t i = 0; i < rows; ++i) {
    const std::int64_t cell = cell_of_point(p, points + std::int64_t{i} * p.columns);
    if (cell < 0) continue;
    cells[in_range] = cell;
    members[in_range++] = i;
  }
  if (sort_cells(CellDigits(p.grid), in_range, cells, members, other_cells, other_members)) {
    cells = other_cells;
    members = other_members;
  }
  std::int32_t voxels = 0;
  for (std::int32_t i = 0; i < in_range; ++i) {
    if (i == 0 || cells[i] != cells[i - 1]) begins[voxels++] = i;
  }

  const auto rank = [&](std::int32_t v) -> std::int64_t {
    const std::int32_t begin = begins[v];
    if (p.keep == Keep::kFirst) return members[begin];
    const std::int64_t x = x_of(cells[begin]) - p.centre[0], y = y_of(cells[begin]) - p.centre[1];
    return x * x + y * y;
  };
  const bool crowded = voxels > p.voxels;
  Threshold threshold;
  if (crowded) threshold = threshold_of(voxels, p.voxels, rank);

  auto* const out_cells = data<std::int64_t>(operands[2]);
  auto* const out_ends = data<std::int32_t>(operands[3]);
  auto* const out_members = data<std::int32_t>(operands[4]);
  std::int32_t count = 0, kept = 0;
  for (std::int32_t v = 0; v < voxels; ++v) {
    if (crowded) {
      const std::int64_t r = rank(v);
      if (r > threshold.rank || (r == threshold.rank && threshold.equal-- <= 0)) continue;
    }
    const std::int32_t begin = begins[v];
    std::int32_t end = v + 1 < voxels ? begins[v + 1] : in_range;
    if (p.most > 0 && end - begin > p.most) end = begin + p.most;
    for (std::int32_t i = begin; i < end; ++i) out_members[kept++] = members[i];
    out_cells[count] = cells[begin];
    out_ends[count++] = kept;
  }
  *data<std::int32_t>(operands[5]) = count;
  *data<std::int32_t>(operands[6]) = kept;
  *data<std::int32_t>(operands[7]) = in_range - kept;
}

void voxel_mean(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<VoxelMeanParams>(params);
  const float* const points = data<const float>(operands[0]);
  const auto* const ends = data<const std::int32_t>(operands[1]);
  const auto* const members = data<const std::int32_t>(operands[2]);
  const std::int32_t rows = rows_of(operands[3], p.points), kept = rows_of(operands[5], p.points);
  const std::int64_t voxels = rows_of(operands[4], p.voxels);
  for (std::int64_t v = voxels * part / parts; v < voxels * (part + 1) / parts; ++v) {
    const std::int32_t first = v > 0 ? std::clamp(ends[v - 1], 0, kept) : 0, last = std::clamp(ends[v], 0, kept);
    float* const y = data<float>(operands[6]) + v * p.columns;
    for (std::int32_t c = 0; c < p.columns; ++c) {
      double sum = 0, count = 0;
      for (std::int32_t i = first; i < last; ++i) {
        if (members[i] < 0 || members[i] >= rows) continue;
        sum += static_cast<double>(points[std::int64_t{members[i]} * p.columns + c]);
        ++count;
      }
      y[c] = count > 0 ? static_cast<float>(sum / count) : 0.0F;
    }
  }
}

// In each dimension a cell at i gives tap k the result (i + padding - k) / stride where that is a whole number: those
// with the same remainder of (i + padding) / stride serve the same taps, as quotient - k / stride. So cells are grouped
// by their remainders first; for one tap the results of its group ascend as its cells do, and all taps are merged. One
// part: a merge is what it is.
void sparse_cells(const void* params, const Operand* operands, int part, int /*parts*/) {
  if (part != 0) return;
  const auto p = load_params<SparseCellsParams>(params);
  const auto* const input = data<const std::int64_t>(operands[0]);
  const std::int32_t rows = rows_of(operands[1], p.cells);
  auto* const quotients = data<std::int64_t>(operands[5]);  // by group
  auto* const groups = reinterpret_cast<std::int32_t*>(quotients + p.cells);
  auto* const found = quotients + 2 * std::int64_t{p.cells};

  std::int32_t begins[kMostStride * kMostStride * kMostStride + 1] = {};
  for (std::int32_t i = 0; i < rows; ++i) {
    const std::int64_t at[3] = {x_of(input[i]), y_of(input[i]), z_of(input[i])};
    std::int64_t quotient[3];
    std::int32_t group = 0;
    for (int d = 2; d >= 0; --d) {
      const auto from = static_cast<std::int32_t>(at[d]) + p.padding[d];
      quotient[d] = from / p.stride[d];
      group = group * p.stride[d] + from % p.stride[d];
    }
    found[i] = cell_of(quotient[2], quotient[1], quotient[0]);
    groups[i] = group;
    ++begins[group + 1];
  }
  const int count_of_groups = p.stride[0] * p.stride[1] * p.stride[2];
  for (int g = 0; g < count_of_groups; ++g) begins[g + 1] += begins[g];
  std::int32_t ends[kMostStride * kMostStride * kMostStride];
  for (int g = 0; g < count_of_groups; ++g) ends[g] = begins[g];
  for (std::int32_t i = 0; i < rows; ++i) quotients[ends[groups[i]]++] = found[i];

  struct Tap {
    std::int32_t at, end;
    std::int32_t back[3];
  };
  constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
  constexpr int kMostTaps = kMostKernel * kMostKernel * kMostKernel;
  Tap taps[kMostTaps];
  std::int64_t heads[kMostTaps];
  const auto advance = [&](int t) {
    Tap& tap = taps[t];
    for (; tap.at < tap.end; ++tap.at) {
      const std::int64_t cell = quotients[tap.at];
      const std::int64_t x = x_of(cell) - tap.back[0], y = y_of(cell) - tap.back[1], z = z_of(cell) - tap.back[2];
      if (x < 0 || y < 0 || z < 0 || x >= p.grid[0] || y >= p.grid[1] || z >= p.grid[2]) continue;
      ++tap.at;
      heads[t] = cell_of(z, y, x);
      return;
    }
    heads[t] = kEnd;
  };
  int count_of_taps = 0;
  for (std::int32_t z = 0; z < p.kernel[2]; ++z) {
    for (std::int32_t y = 0; y < p.kernel[1]; ++y) {
      for (std::int32_t x = 0; x < p.kernel[0]; ++x, ++count_of_taps) {
        const int group = (z % p.stride[2] * p.stride[1] + y % p.stride[1]) * p.stride[0] + x % p.stride[0];
        taps[count_of_taps] = {begins[group], ends[group], {x / p.stride[0], y / p.stride[1], z / p.stride[2]}};
        advance(count_of_taps);
      }
    }
  }
  std::int32_t count = 0;
  for (;;) {
    std::int64_t least = kEnd;
    for (int t = 0; t < count_of_taps; ++t) least = std::min(least, heads[t]);
    if (least == kEnd) break;
    found[count++] = least;
    for (int t = 0; t < count_of_taps; ++t) {
      if (heads[t] == least) advance(t);
    }
  }

  const auto rank = [&](std::int32_t i) {
    const std::int64_t x = x_of(found[i]) - p.centre[0], y = y_of(found[i]) - p.centre[1];
    return x * x + y * y;
  };
  const bool crowded = count > p.results;
  Threshold threshold;
  if (crowded) threshold = threshold_of(count, p.results, rank);
  auto* const cells = data<std::int64_t>(operands[2]);
  std::int32_t kept = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    if (crowded) {
      const std::int64_t r = rank(i);
      if (r > threshold.rank || (r == threshold.rank && threshold.equal-- <= 0)) continue;
    }
    cells[kept++] = found[i];
  }
  *data<std::int32_t>(operands[3]) = kept;
  *data<std::int32_t>(operands[4]) = count - kept;
}

// Taps along x read neighbouring cells of the input's list: a place in it for every (z, y) of the kernel moves forward
// only, as the results do.
void sparse_map(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<SparseMapParams>(params);
  const auto* const input = data<const std::int64_t>(operands[0]);
  const auto* const output = data<const std::int64_t>(operands[1]);
  const std::int32_t inputs = rows_of(operands[2], p.inputs);
  const std::int64_t results = rows_of(operands[3], p.results);
  const std::int64_t own = results * part / parts, end = results * (part + 1) / parts;
  const int lines = p.kernel[1] * p.kernel[2], taps = lines * p.kernel[0];
  // Of cells that are none the arithmetic wraps; what is found then means nothing and lies inside the list.
  using Bits = std::uint64_t;
  const auto cell = [](Bits z, Bits y, Bits x) { return (((z << kCellBits) + y) << kCellBits) + x; };
  const auto base = [&](std::int64_t i) {
    const auto at = [&](std::int64_t o, int d) { return static_cast<Bits>(o * p.stride[d] - p.padding[d]); };
    return cell(at(z_of(output[i]), 2), at(y_of(output[i]), 1), at(x_of(output[i]), 0));
  };
  Bits offset[kMostKernel * kMostKernel];
  std::int32_t place[kMostKernel * kMostKernel];
  if (own >= end) return;
  for (int l = 0; l < lines; ++l) {
    offset[l] = cell(static_cast<Bits>(l / p.kernel[1]), static_cast<Bits>(l % p.kernel[1]), 0);
    const auto wanted = static_cast<std::int64_t>(base(own) + offset[l]);
    place[l] = static_cast<std::int32_t>(std::lower_bound(input, input + inputs, wanted) - input);
  }
  for (std::int64_t i = own; i < end; ++i) {
    std::int32_t* const to = data<std::int32_t>(operands[4]) + i * taps;
    const Bits from = base(i);
    for (int l = 0; l < lines; ++l) {
      std::int32_t* const line = to + std::ptrdiff_t{l} * p.kernel[0];
      for (int x = 0; x < p.kernel[0]; ++x) line[x] = -1;
      const auto wanted = static_cast<std::int64_t>(from + offset[l]);
      std::int32_t at = place[l];
      while (at < inputs && input[at] < wanted) ++at;
      place[l] = at;
      for (; at < inputs; ++at) {
        const Bits x = static_cast<Bits>(input[at]) - static_cast<Bits>(wanted);
        if (x >= static_cast<Bits>(p.kernel[0])) break;
        line[x] = at;
      }
    }
  }
}

// Every part reads all of the map and writes its own rows.
void inverse_map(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<InverseMapParams>(params);
  const auto* const map = data<const std::int32_t>(operands[0]);
  const std::int64_t results = rows_of(operands[2], p.results), cells = rows_of(operands[3], p.cells);
  const std::int64_t own = cells * part / parts, end = cells * (part + 1) / parts;
  auto* const inverse = data<std::int32_t>(operands[4]);
  for (std::int64_t i = own * p.taps; i < end * p.taps; ++i) inverse[i] = -1;
  for (std::int64_t i = 0; i < results; ++i) {
    for (std::int32_t k = 0; k < p.taps; ++k) {
      const std::int64_t j = map[i * p.taps + k];
      if (j >= own && j < end) inverse[j * p.taps + k] = static_cast<std::int32_t>(i);
    }
  }
}

// A part has its own lines of the result. Row-major, cells of a line lie together, so that a line of a channel is
// written as a whole; blocked, channels of a cell do.
void scatter_bev(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<ScatterBevParams>(params);
  const auto* const x = data<const float>(operands[0]);
  const auto* const cells = data<const std::int64_t>(operands[1]);
  auto* const y = data<float>(operands[3]);
  const std::int64_t rows = rows_of(operands[2], p.rows);
  const std::int64_t width = p.grid[0], height = p.grid[1], depth = p.grid[2], channels = p.channels;
  const std::int64_t own = height * part / parts, end = height * (part + 1) / parts;
  const std::int64_t block = p.block == 0 ? 1 : p.block, blocks = (channels * depth + block - 1) / block;
  for (std::int64_t b = 0; b < blocks; ++b) {
    float* const plane = y + b * height * width * block;
    for (std::int64_t i = own * width * block; i < end * width * block; ++i) plane[i] = 0;
  }
  for (std::int64_t i = 0; i < rows;) {
    const std::int64_t line = cells[i] >> kCellBits, at_z = z_of(cells[i]), at_y = y_of(cells[i]);
    std::int64_t next = i + 1;
    while (next < rows && cells[next] >> kCellBits == line) ++next;
    const bool here = at_y >= own && at_y < end && at_z < depth;
    for (std::int64_t c = 0; here && block == 1 && c < channels; ++c) {
      float* const to = y + ((c * depth + at_z) * height + at_y) * width;
      for (std::int64_t r = i; r < next; ++r) {
        if (const std::int64_t at_x = x_of(cells[r]); at_x < width) to[at_x] = x[r * channels + c];
      }
    }
    for (std::int64_t r = i; here && block > 1 && r < next; ++r) {
      const std::int64_t at_x = x_of(cells[r]);
      if (at_x >= width) continue;
      for (std::int64_t c = 0; c < channels; ++c) {
        const std::int64_t channel = c * depth + at_z;
        y[((channel / block * height + at_y) * width + at_x) * block + channel % block] = x[r * channels + c];
      }
    }
    i = next;
  }
}

constexpr DeviceHalf kTable[] = {{KernelId::kVoxelise, voxelise},        {KernelId::kVoxelMean, voxel_mean},
                                 {KernelId::kSparseCells, sparse_cells}, {KernelId::kSparseMap, sparse_map},
                                 {KernelId::kInverseMap, inverse_map},   {KernelId::kScatterBev, scatter_bev}};

}  // namespace

std::span<const DeviceHalf> voxel_kernels(Target /*target*/) { return kTable; }

}  // namespace takt::kernels::cpu
