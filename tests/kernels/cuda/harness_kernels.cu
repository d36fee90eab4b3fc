#include "tests/kernels/cuda/harness_kernels.h"

#include "kernels/cuda/device.h"

namespace takt::kernels::cuda::TAKT_BODY {
namespace {

TAKT_KERNEL void row_sums_kernel(const std::int32_t* x, std::int32_t* sums, std::uint32_t width) {
  auto* const of_warp = shared_memory<std::int32_t>();
  const std::uint32_t t = thread_x();
  std::int32_t sum = t < width ? x[block_x() * width + t] : 0;
  for (std::uint32_t delta = kWarp / 2; delta > 0; delta /= 2) sum += shuffle_down(sum, delta);
  if (t % kWarp == 0) of_warp[t / kWarp] = sum;
  sync_block();
  if (t != 0) return;
  std::int32_t all = 0;
  for (std::uint32_t w = 0; w < threads_x() / kWarp; ++w) all += of_warp[w];
  sums[block_x()] = all;
}

constexpr std::uint32_t kTile = 32;

TAKT_KERNEL void transpose_kernel(const float* x, float* y, std::uint32_t n) {
  auto* const tile = shared_memory<float>();
  const std::uint32_t column = block_x() * kTile + thread_x();
  for (std::uint32_t r = thread_y(); r < kTile; r += threads_y()) {
    const std::uint32_t row = block_y() * kTile + r;
    if (row < n && column < n) tile[r * (kTile + 1) + thread_x()] = x[row * n + column];
  }
  sync_block();
  const std::uint32_t out_column = block_y() * kTile + thread_x();
  for (std::uint32_t r = thread_y(); r < kTile; r += threads_y()) {
    const std::uint32_t out_row = block_x() * kTile + r;
    if (out_row < n && out_column < n) y[out_row * n + out_column] = tile[thread_x() * (kTile + 1) + r];
  }
}

TAKT_KERNEL void histogram_kernel(const std::int32_t* x, std::int32_t* bins_of, std::uint32_t n, std::uint32_t bins) {
  auto* const own = shared_memory<std::int32_t>();
  for (std::uint32_t b = thread_x(); b < bins; b += threads_x()) own[b] = 0;
  sync_block();
  const std::uint32_t i = block_x() * threads_x() + thread_x();
  if (i < n) atomic_add(&own[static_cast<std::uint32_t>(x[i]) % bins], 1);
  sync_block();
  for (std::uint32_t b = thread_x(); b < bins; b += threads_x()) {
    if (own[b] != 0) atomic_add(&bins_of[b], own[b]);
  }
}

constexpr std::uint32_t kCopyTile = 128;

TAKT_KERNEL void twice_async_kernel(const float* x, float* y, std::uint32_t tiles) {
  auto* const buffer = shared_memory<float>();
  const std::uint32_t t = thread_x();
  copy_async<16>(buffer + 4 * t, x + 4 * t);
  copy_async_commit();
  for (std::uint32_t i = 0; i < tiles; ++i) {
    float* const now = buffer + i % 2 * kCopyTile;
    if (i + 1 < tiles) {
      float* const next = buffer + (i + 1) % 2 * kCopyTile;
      copy_async<16>(next + 4 * t, x + (i + 1) * kCopyTile + 4 * t);
      copy_async_commit();
      copy_async_wait<1>();
    } else {
      copy_async_wait<0>();
    }
    sync_block();
    // Another thread's copies.
    for (std::uint32_t k = t; k < kCopyTile; k += kWarp) y[i * kCopyTile + k] = 2 * now[k];
    sync_block();
  }
}

TAKT_KERNEL void warp_operations_kernel(std::uint32_t* y) {
  const std::uint32_t lane = thread_x();
  std::uint32_t* const out = y + 12 * lane;
  out[0] = shuffle(lane * 3, 5);
  out[1] = shuffle(lane * 3, lane + 31);  // modulo 32
  out[2] = shuffle_up(lane, 3);
  out[3] = shuffle_down(lane, 3);
  out[4] = shuffle_xor(lane, 17);
  out[5] = ballot(lane % 3 == 0);
  out[6] = any(lane == 7) ? 1 : 0;
  out[7] = any(lane == 40) ? 1 : 0;
  out[8] = all(lane < 32) ? 1 : 0;
  out[9] = all(lane != 9) ? 1 : 0;
  out[10] = sync_block_or(lane == 31) ? 1 : 0;
  out[11] = static_cast<std::uint32_t>(shuffle(static_cast<std::uint64_t>(lane) << 33, 2) >> 32);
}

TAKT_KERNEL void through_half_kernel(const float* x, float* y, std::uint32_t n) {
  const std::uint32_t i = block_x() * threads_x() + thread_x();
  if (i < n) y[i] = to_float(to_half(x[i]));
}

int row_sums(const std::int32_t* x, std::int32_t* sums, std::uint32_t rows, std::uint32_t width) {
  const std::uint32_t threads = (width + kWarp - 1) / kWarp * kWarp;
  return launch("row_sums", row_sums_kernel,
                {.blocks_x = rows, .threads_x = threads, .shared_bytes = 4 * threads / kWarp}, nullptr, x, sums, width);
}
int transpose(const float* x, float* y, std::uint32_t n) {
  const std::uint32_t tiles = (n + kTile - 1) / kTile;
  return launch("transpose", transpose_kernel,
                {.blocks_x = tiles,
                 .blocks_y = tiles,
                 .threads_x = kTile,
                 .threads_y = 8,
                 .shared_bytes = 4 * kTile * (kTile + 1)},
                nullptr, x, y, n);
}
int histogram(const std::int32_t* x, std::int32_t* bins_of, std::uint32_t n, std::uint32_t bins) {
  return launch("histogram", histogram_kernel,
                {.blocks_x = (n + 127) / 128, .threads_x = 128, .shared_bytes = 4 * bins}, nullptr, x, bins_of, n,
                bins);
}
int twice_async(const float* x, float* y, std::uint32_t tiles) {
  return launch("twice_async", twice_async_kernel, {.threads_x = kWarp, .shared_bytes = 2 * 4 * kCopyTile}, nullptr, x,
                y, tiles);
}
int warp_operations(std::uint32_t* y) { return launch("warp_operations", warp_operations_kernel, {}, nullptr, y); }
int through_half(const float* x, float* y, std::uint32_t n) {
  return launch("through_half", through_half_kernel, {.blocks_x = (n + 63) / 64, .threads_x = 64}, nullptr, x, y, n);
}

}  // namespace

const test::HarnessKernels& kernels() {
  static constexpr test::HarnessKernels kAll{row_sums,    transpose,       histogram,
                                             twice_async, warp_operations, through_half};
  return kAll;
}

}  // namespace takt::kernels::cuda::TAKT_BODY

namespace takt::test {

#if defined(TAKT_SIMT_CHECKED)
const HarnessKernels& checked_harness_kernels() { return kernels::cuda::simt_checked::kernels(); }
#elif !defined(__CUDACC__)
const HarnessKernels& harness_kernels() { return kernels::cuda::simt::kernels(); }
#endif

}  // namespace takt::test
