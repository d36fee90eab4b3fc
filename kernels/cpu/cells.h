// Inside kernels/cpu: sorting and choosing cells (kernels/voxels.h). Nothing here computes with floats, so one plain
// source serves all targets.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>

#include "kernels/voxels.h"

namespace takt::kernels::cpu {

inline constexpr int kDigit = 11;  // a histogram stays in the first-level cache

// Bytes that the kernel of SparseCells works in.
std::uint64_t sparse_cells_scratch(const SparseCellsParams& params);

// The digits of cells of a grid, least first: only bits that a cell of it can have are sorted by.
struct CellDigits {
  int shift[6] = {}, bits[6] = {};
  int count = 0;

  explicit CellDigits(const std::int32_t (&grid)[3]) {  // x, y, z
    for (int d = 0; d < 3; ++d) {
      const int used = std::bit_width(static_cast<std::uint32_t>(grid[d] - 1));
      for (int from = 0; from < used; from += kDigit) {
        shift[count] = d * kCellBits + from;
        bits[count++] = used - from < kDigit ? used - from : kDigit;
      }
    }
  }
};

// Ascending and stable; `rows` go along (nullptr: there are none). The arrays behind are as long and hold the result
// afterwards where `true` is returned.
inline bool sort_cells(const CellDigits& digits, std::int32_t count, std::int64_t* cells, std::int32_t* rows,
                       std::int64_t* other_cells, std::int32_t* other_rows) {
  for (int d = 0; d < digits.count; ++d) {
    std::int32_t start[1 << kDigit] = {};
    const int shift = digits.shift[d];
    const std::int64_t mask = (std::int64_t{1} << digits.bits[d]) - 1;
    for (std::int32_t i = 0; i < count; ++i) ++start[(cells[i] >> shift) & mask];
    std::int32_t sum = 0;
    for (std::int64_t v = 0; v <= mask; ++v) sum += std::exchange(start[v], sum);
    for (std::int32_t i = 0; i < count; ++i) {
      const std::int32_t to = start[(cells[i] >> shift) & mask]++;
      other_cells[to] = cells[i];
      if (rows != nullptr) other_rows[to] = rows[i];
    }
    std::swap(cells, other_cells);
    std::swap(rows, other_rows);
  }
  return digits.count % 2 == 1;
}

// The rank up to which `room` of `count` items stay, and how many of those that have it: all below stay, and the first
// `equal` with that rank. rank(i) < 2^63; count > room >= 1.
struct Threshold {
  std::int64_t rank = 0;
  std::int32_t equal = 0;
};
template <class Rank>
Threshold threshold_of(std::int32_t count, std::int32_t room, Rank rank) {
  std::int64_t prefix = 0;
  std::int32_t left = room;
  for (int shift = 5 * kDigit; shift >= 0; shift -= kDigit) {
    std::int32_t have[1 << kDigit] = {};
    for (std::int32_t i = 0; i < count; ++i) {
      const std::int64_t r = rank(i);
      if (shift < 5 * kDigit && r >> (shift + kDigit) != prefix) continue;
      ++have[(r >> shift) & ((1 << kDigit) - 1)];
    }
    std::int64_t digit = 0;
    while (have[digit] < left) left -= have[digit++];
    prefix = (prefix << kDigit) | digit;
  }
  return {prefix, left};
}

}  // namespace takt::kernels::cpu
