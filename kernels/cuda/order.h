// Private to kernels/cuda: prefix sums, stable compaction, stable radix sort, and the least of a list; each a few
// launches of its own, none of which waits for another block. How many items there are may be known to the device
// alone: grids cover capacities. Results do not depend on the order of blocks and threads.
//
// Sorting: Merrill and Grimshaw 2011, "High Performance and Scalable Radix Sorting", in its plain three-kernel form.
#pragma once

#include <cstdint>

#include "kernels/cpu/cuda_scratch.h"
#include "kernels/cuda/each.h"

namespace takt::kernels::cuda {
inline namespace TAKT_BODY {

using cpu::kRadixBits;
using cpu::kTileItems;
using cpu::tiles_of;
inline constexpr std::uint32_t kTile = static_cast<std::uint32_t>(kTileItems);  // items of a block, one for each thread
inline constexpr std::uint32_t kTileWarps = kTile / kWarp;
inline constexpr std::uint32_t kRadix = 1 << kRadixBits;

// A part of an operand.
inline Address within(Address address, std::uint64_t bytes) {
  if (address.fixed != nullptr) address.fixed += bytes;
  if (address.bound != nullptr) address.offset += bytes;
  return address;
}

inline Grid grid_of(std::int64_t tiles, std::uint32_t shared_bytes) {
  Grid grid;
  grid.blocks_x = static_cast<std::uint32_t>(tiles);
  grid.threads_x = kTile;
  grid.shared_bytes = shared_bytes;
  return grid;
}

// The sum over the threads of the block before this one; `total`: over all. The block's shared memory begins with a T
// for each warp.
template <class T>
TAKT_DEVICE T block_prefix(T value, T* total) {
  T* const sums = shared_memory<T>();
  const std::uint32_t lane = thread_x() % kWarp, warp = thread_x() / kWarp;
  T sum = value;
  for (std::uint32_t distance = 1; distance < kWarp; distance *= 2) {
    const T other = shuffle_up(sum, distance);
    if (lane >= distance) sum += other;
  }
  if (lane == kWarp - 1) sums[warp] = sum;
  sync_block();
  T before = 0, all = 0;
  for (std::uint32_t w = 0; w < kTileWarps; ++w) {
    const T other = sums[w];
    if (w < warp) before += other;
    all += other;
  }
  sync_block();
  *total = all;
  return before + sum - value;
}

// --- compaction ----------------------------------------------------------------------------------------------------
// Work: weight(i), 0 for what is left out; tile_sums, an Address of tiles_of(count) u64; emit(i, weight, position) with
// the sum of the weights before i; finish(sum of all).
template <class Work>
TAKT_KERNEL void tile_sums_kernel(Work work, std::int64_t count, Conditions conditions) {
  if (!hold(conditions)) return;
  const std::int64_t i = static_cast<std::int64_t>(block_x()) * kTile + thread_x();
  std::uint64_t total = 0;
  (void)block_prefix(i < count ? work.weight(i) : std::uint64_t{0}, &total);
  if (thread_x() == 0) at<std::uint64_t>(work.tile_sums)[block_x()] = total;
}

// One block: what lies before each value takes its place.
template <class T, class Finish>
TAKT_KERNEL void prefix_kernel(Address values, std::int64_t count, Finish finish, Conditions conditions) {
  if (!hold(conditions)) return;
  T before = 0;
  for (std::int64_t first = 0; first < count; first += kTile) {
    const std::int64_t i = first + thread_x();
    T total = 0;
    const T prefix = block_prefix(i < count ? at<T>(values)[i] : T{0}, &total);
    if (i < count) at<T>(values)[i] = before + prefix;
    before += total;
  }
  if (thread_x() == 0) finish.finish(before);
}

template <class Work>
TAKT_KERNEL void emit_kernel(Work work, std::int64_t count, Conditions conditions) {
  if (!hold(conditions)) return;
  const std::int64_t i = static_cast<std::int64_t>(block_x()) * kTile + thread_x();
  const std::uint64_t weight = i < count ? work.weight(i) : 0;
  std::uint64_t total = 0;
  const std::uint64_t before = block_prefix(weight, &total);
  if (i < count) work.emit(i, weight, at<const std::uint64_t>(work.tile_sums)[block_x()] + before);
}

template <class Work>
int compact(const char* name, const Work& work, std::int64_t count, const Call& call) {
  const std::int64_t tiles = tiles_of(count);
  const Grid grid = grid_of(tiles, kTileWarps * sizeof(std::uint64_t));
  if (const int error = launch(name, tile_sums_kernel<Work>, grid, call.stream, work, count, call.conditions)) {
    return error;
  }
  if (const int error = launch(name, prefix_kernel<std::uint64_t, Work>, grid_of(1, grid.shared_bytes), call.stream,
                               work.tile_sums, tiles, work, call.conditions)) {
    return error;
  }
  return launch(name, emit_kernel<Work>, grid, call.stream, work, count, call.conditions);
}

// --- sort ----------------------------------------------------------------------------------------------------------
// Keys i64 and, where there are any, rows i32 that go along.
struct SortPass {
  Address keys, rows, to_keys, to_rows;
  Address histogram;  // i32[kRadix][tiles]
  Address count;      // i32: how many keys there are
  std::int64_t tiles;
  int shift, bits;

  TAKT_DEVICE std::uint32_t digit(std::int64_t key) const {
    return static_cast<std::uint32_t>(key >> shift) & ((1U << bits) - 1);
  }
};

TAKT_KERNEL void histogram_kernel(SortPass p, Conditions conditions) {
  if (!hold(conditions)) return;
  auto* const have = shared_memory<std::int32_t>();
  for (std::uint32_t d = thread_x(); d < kRadix; d += kTile) have[d] = 0;
  sync_block();
  const std::int64_t i = static_cast<std::int64_t>(block_x()) * kTile + thread_x();
  if (i < *at<const std::int32_t>(p.count)) atomic_add(have + p.digit(at<const std::int64_t>(p.keys)[i]), 1);
  sync_block();
  for (std::uint32_t d = thread_x(); d < kRadix; d += kTile) {
    at<std::int32_t>(p.histogram)[d * p.tiles + block_x()] = have[d];
  }
}

TAKT_KERNEL void scatter_kernel(SortPass p, Conditions conditions) {
  if (!hold(conditions)) return;
  auto* const have = shared_memory<std::int32_t>();  // [warp][digit]
  for (std::uint32_t d = thread_x(); d < kTileWarps * kRadix; d += kTile) have[d] = 0;
  sync_block();
  const std::uint32_t lane = thread_x() % kWarp, warp = thread_x() / kWarp;
  const std::int64_t i = static_cast<std::int64_t>(block_x()) * kTile + thread_x();
  const bool valid = i < *at<const std::int32_t>(p.count);
  const std::int64_t key = valid ? at<const std::int64_t>(p.keys)[i] : 0;
  const std::uint32_t digit = p.digit(key);
  std::uint32_t same = ballot(valid);  // lanes with the same digit
  for (int b = 0; b < p.bits; ++b) {
    const bool set = (digit >> b & 1) != 0;
    const std::uint32_t lanes = ballot(set);
    same &= set ? lanes : ~lanes;
  }
  const int before_in_warp = count_ones(same & ((1U << lane) - 1));
  if (valid && before_in_warp == 0) have[warp * kRadix + digit] = count_ones(same);
  sync_block();
  if (!valid) return;
  std::int64_t to = at<const std::int32_t>(p.histogram)[digit * p.tiles + block_x()] + before_in_warp;
  for (std::uint32_t w = 0; w < warp; ++w) to += have[w * kRadix + digit];
  at<std::int64_t>(p.to_keys)[to] = key;
  if (!is_absent(p.rows)) at<std::int32_t>(p.to_rows)[to] = at<const std::int32_t>(p.rows)[i];
}

struct NothingToFinish {
  TAKT_DEVICE void finish(std::int32_t /*total*/) const {}
};

// The digits of cells of a grid (x, y, z), least first: only bits that a cell of it can have are sorted by.
struct CellDigits {
  int shift[12] = {}, bits[12] = {};
  int count = 0;

  explicit CellDigits(const std::int32_t (&grid)[3]) {
    for (int d = 0; d < 3; ++d) {
      int used = 0;
      while ((std::int64_t{1} << used) < grid[d]) ++used;
      for (int from = 0; from < used; from += kRadixBits) {
        shift[count] = d * kCellBits + from;
        bits[count++] = used - from < kRadixBits ? used - from : kRadixBits;
      }
    }
  }
};

// Up to `capacity` keys, ascending and stable. They lie in keys[0] at first, in keys[digits.count % 2] afterwards;
// rows[0] absent: there are none.
inline int sort_cells(const char* name, const CellDigits& digits, const Address (&keys)[2], const Address (&rows)[2],
                      const Address& histogram, const Address& count, std::int64_t capacity, const Call& call) {
  const std::int64_t tiles = tiles_of(capacity);
  for (int d = 0; d < digits.count; ++d) {
    const int from = d % 2, to = 1 - from;
    const SortPass pass{keys[from], rows[from], keys[to],        rows[to],      histogram,
                        count,      tiles,      digits.shift[d], digits.bits[d]};
    if (const int error = launch(name, histogram_kernel, grid_of(tiles, kRadix * sizeof(std::int32_t)), call.stream,
                                 pass, call.conditions)) {
      return error;
    }
    if (const int error =
            launch(name, prefix_kernel<std::int32_t, NothingToFinish>, grid_of(1, kTileWarps * sizeof(std::int32_t)),
                   call.stream, histogram, kRadix * tiles, NothingToFinish{}, call.conditions)) {
      return error;
    }
    if (const int error = launch(name, scatter_kernel, grid_of(tiles, kTileWarps * kRadix * sizeof(std::int32_t)),
                                 call.stream, pass, call.conditions)) {
      return error;
    }
  }
  return 0;
}

// --- the least of a list -------------------------------------------------------------------------------------------
// What stays: ranks below, and of that rank the items up to `index`.
struct Threshold {
  std::uint64_t rank, index;
  TAKT_DEVICE bool keeps(std::uint64_t other, std::int64_t i) const {
    return other < rank || (other == rank && static_cast<std::uint64_t>(i) <= index);
  }
};
static_assert(sizeof(Threshold) == cpu::kThresholdBytes);

// One block. Items: size(), room() of at least 1, rank(i), and an Address `threshold`. All stay where there is room.
// Digit by digit from the top, first of the rank, then, among those that have it, of the index.
template <class Items>
TAKT_KERNEL void select_kernel(Items items, Conditions conditions) {
  if (!hold(conditions)) return;
  constexpr int kBits = 8, kTop = 56;
  struct Shared {
    std::int32_t have[1 << kBits];
    std::int32_t digit, left;
  };
  auto* const shared = shared_memory<Shared>();
  const std::int64_t size = items.size(), room = items.room();
  Threshold found{~std::uint64_t{0}, ~std::uint64_t{0}};
  auto left = static_cast<std::int32_t>(room);
  for (int word = 0; word < 2 && size > room; ++word) {
    std::uint64_t prefix = 0;
    for (int shift = kTop; shift >= 0; shift -= kBits) {
      for (std::uint32_t d = thread_x(); d < 1U << kBits; d += kTile) shared->have[d] = 0;
      sync_block();
      for (std::int64_t i = thread_x(); i < size; i += kTile) {
        const std::uint64_t rank = items.rank(i);
        if (word == 1 && rank != found.rank) continue;
        const std::uint64_t key = word == 0 ? rank : static_cast<std::uint64_t>(i);
        if (shift < kTop && key >> (shift + kBits) != prefix) continue;
        atomic_add(shared->have + (key >> shift & ((1U << kBits) - 1)), 1);
      }
      sync_block();
      if (thread_x() == 0) {
        std::int32_t digit = 0;
        while (shared->have[digit] < left) left -= shared->have[digit++];
        shared->digit = digit;
        shared->left = left;
      }
      sync_block();
      prefix = prefix << kBits | static_cast<std::uint64_t>(shared->digit);
      left = shared->left;
    }
    (word == 0 ? found.rank : found.index) = prefix;
  }
  if (thread_x() == 0) *at<Threshold>(items.threshold) = found;
}

template <class Items>
int select(const char* name, const Items& items, const Call& call) {
  return launch(name, select_kernel<Items>, grid_of(1, (256 + 2) * sizeof(std::int32_t)), call.stream, items,
                call.conditions);
}

// To be compacted behind select(): what stays of a list of T, in its order, how much that is, and how much does not.
// Items: as above, with the list at an Address `list`.
template <class T, class Items>
struct Selected {
  Items all;
  Address rows, count, dropped, tile_sums;
  TAKT_DEVICE std::uint64_t weight(std::int64_t i) const {
    return i < all.size() && at<const Threshold>(all.threshold)->keeps(all.rank(i), i) ? 1 : 0;
  }
  TAKT_DEVICE void emit(std::int64_t i, std::uint64_t weight, std::uint64_t to) const {
    if (weight != 0) at<T>(rows)[to] = at<const T>(all.list)[i];
  }
  TAKT_DEVICE void finish(std::uint64_t total) const {
    *at<std::int32_t>(count) = static_cast<std::int32_t>(total);
    *at<std::int32_t>(dropped) = static_cast<std::int32_t>(all.size() - static_cast<std::int64_t>(total));
  }
};

}  // namespace TAKT_BODY
}  // namespace takt::kernels::cuda
