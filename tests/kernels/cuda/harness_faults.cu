#include "kernels/cuda/device.h"
#include "tests/kernels/cuda/harness_kernels.h"

// The tests look for the name of a fault in the line that is reported, so each stands behind it.
namespace takt::kernels::cuda::TAKT_BODY {
namespace {

constexpr Grid kWarpOnly{.shared_bytes = 256};
constexpr Grid kTwoWarps{.threads_x = 64, .shared_bytes = 256};

TAKT_KERNEL void read_behind_end_kernel(const float* x, float* y) {
  y[thread_x()] = x[thread_x() + 33];  // read_behind_end
}
TAKT_KERNEL void write_before_start_kernel(float* y) {
  y[static_cast<int>(thread_x()) - 1] = 1;  // write_before_start
}
TAKT_KERNEL void write_host_memory_kernel(float* y, float* host) {
  y[thread_x()] = 1;
  host[thread_x()] = 1;  // write_host_memory
}
TAKT_KERNEL void shared_behind_end_kernel(float* y) {
  auto* const shared = shared_memory<float>();
  shared[thread_x() + 33] = 1;  // shared_behind_end
  y[thread_x()] = 1;
}
TAKT_KERNEL void uninitialised_shared_kernel(float* y) {
  auto* const shared = shared_memory<float>();
  if (thread_x() != 5) shared[thread_x()] = 1;
  sync_block();
  y[thread_x()] = shared[thread_x()];  // uninitialised_shared
}
TAKT_KERNEL void missing_barrier_kernel(float* y) {
  auto* const shared = shared_memory<float>();
  shared[thread_x()] = static_cast<float>(thread_x()); /* missing_barrier */
  y[thread_x()] = shared[thread_x() ^ 1U];             // missing_barrier
}
TAKT_KERNEL void write_after_read_kernel(float* y) {
  auto* const shared = shared_memory<float>();
  shared[thread_x()] = 1;
  sync_block();
  y[thread_x()] = shared[0];            // write_after_read
  if (thread_x() == 40) shared[0] = 2;  // write_after_read
}
TAKT_KERNEL void neighbouring_bytes_kernel(std::uint8_t* y) { y[thread_x()] = 1; }
TAKT_KERNEL void shuffle_is_no_barrier_kernel(float* y) {
  auto* const shared = shared_memory<float>();
  shared[thread_x()] = 1;  // shuffle_is_no_barrier
  const float other = shuffle_xor(1.0F, 1);
  y[thread_x()] = shared[thread_x() ^ 1U] + other;  // shuffle_is_no_barrier
}
TAKT_KERNEL void warp_barrier_is_one_kernel(float* y) {
  auto* const shared = shared_memory<float>();
  shared[thread_x()] = 1;
  sync_warp();
  y[thread_x()] = shared[thread_x() ^ 1U];
  // Read by all lanes, and by one of them again before it writes.
  const float first = shared[thread_x() / kWarp * kWarp];
  sync_warp();
  if (thread_x() % kWarp == 0) shared[thread_x()] += first;
}
TAKT_KERNEL void warp_barrier_across_warps_kernel(float* y) {
  auto* const shared = shared_memory<float>();
  shared[thread_x()] = 1;  // warp_barrier_across_warps
  sync_warp();
  y[thread_x()] = shared[thread_x() ^ 32U];  // warp_barrier_across_warps
}
TAKT_KERNEL void blocks_write_same_kernel(float* y) {
  y[thread_x()] = static_cast<float>(block_x());  // blocks_write_same
}
TAKT_KERNEL void block_reads_other_kernel(float* y) {
  if (block_x() == 0) y[thread_x()] = 1;                   // block_reads_other
  if (block_x() == 1) y[32 + thread_x()] = y[thread_x()];  // block_reads_other
}
TAKT_KERNEL void atomic_and_plain_kernel(std::int32_t* y) {
  if (thread_x() == 0) {
    y[0] = 1;  // atomic_and_plain
  } else {
    atomic_add(y, 1);  // atomic_and_plain
  }
}
TAKT_KERNEL void atomics_only_kernel(std::int32_t* y) { atomic_max(y, static_cast<std::int32_t>(thread_x())); }
TAKT_KERNEL void barrier_in_branch_kernel(float* y) {
  if (thread_x() < 40) sync_block();  // barrier_in_branch
  y[thread_x()] = 1;
}
TAKT_KERNEL void barriers_in_both_branches_kernel(float* y) {
  if (thread_x() < 40) {
    sync_block();  // barriers_in_both_branches
  } else {
    sync_block();  // barriers_in_both_branches
  }
  y[thread_x()] = 1;
}
TAKT_KERNEL void early_return_kernel(float* y) {
  if (thread_x() == 63) return;
  y[thread_x()] = 1;
  sync_block();  // early_return
}
TAKT_KERNEL void shuffle_in_branch_kernel(float* y) {
  float value = 0;
  if (thread_x() % 2 == 0) value = shuffle_down(1.0F, 2);  // shuffle_in_branch
  y[thread_x()] = value;
}
TAKT_KERNEL void read_before_wait_kernel(const float* x, float* y) {
  auto* const shared = shared_memory<float>();
  copy_async<4>(shared + thread_x(), x + thread_x());
  copy_async_commit();
  copy_async_wait<1>();
  y[thread_x()] = shared[thread_x()];  // read_before_wait
}
TAKT_KERNEL void read_before_barrier_kernel(const float* x, float* y) {
  auto* const shared = shared_memory<float>();
  copy_async<4>(shared + thread_x(), x + thread_x());
  copy_async_commit();
  copy_async_wait<0>();
  y[thread_x()] = shared[thread_x() ^ 1U];  // read_before_barrier
}
TAKT_KERNEL void misaligned_copy_kernel(const float* x, float* y) {
  auto* const shared = shared_memory<float>();
  copy_async<16>(shared, x + 1);  // misaligned_copy
  y[thread_x()] = 1;
}

#define TAKT_FAULT(name, grid) \
  int name(float* y) { return launch(#name, name##_kernel, grid, nullptr, y); }
#define TAKT_FAULT2(name, grid) \
  int name(const float* x, float* y) { return launch(#name, name##_kernel, grid, nullptr, x, y); }
constexpr Grid kTwoBlocks{.blocks_x = 2};
TAKT_FAULT2(read_behind_end, kWarpOnly)
TAKT_FAULT(write_before_start, kWarpOnly)
int write_host_memory(float* y, float* host) {
  return launch("write_host_memory", write_host_memory_kernel, kWarpOnly, nullptr, y, host);
}
TAKT_FAULT(shared_behind_end, kWarpOnly)
TAKT_FAULT(uninitialised_shared, kTwoWarps)
TAKT_FAULT(missing_barrier, kTwoWarps)
TAKT_FAULT(write_after_read, kTwoWarps)
int neighbouring_bytes(std::uint8_t* y) {
  return launch("neighbouring_bytes", neighbouring_bytes_kernel, kTwoWarps, nullptr, y);
}
TAKT_FAULT(shuffle_is_no_barrier, kWarpOnly)
TAKT_FAULT(warp_barrier_is_one, kTwoWarps)
TAKT_FAULT(warp_barrier_across_warps, kTwoWarps)
TAKT_FAULT(blocks_write_same, kTwoBlocks)
TAKT_FAULT(block_reads_other, kTwoBlocks)
int atomic_and_plain(std::int32_t* y) {
  return launch("atomic_and_plain", atomic_and_plain_kernel, kWarpOnly, nullptr, y);
}
int atomics_only(std::int32_t* y) { return launch("atomics_only", atomics_only_kernel, kTwoBlocks, nullptr, y); }
TAKT_FAULT(barrier_in_branch, kTwoWarps)
TAKT_FAULT(barriers_in_both_branches, kTwoWarps)
TAKT_FAULT(early_return, kTwoWarps)
TAKT_FAULT(shuffle_in_branch, kWarpOnly)
TAKT_FAULT2(read_before_wait, kWarpOnly)
TAKT_FAULT2(read_before_barrier, kWarpOnly)
TAKT_FAULT2(misaligned_copy, kWarpOnly)
int too_many_threads(float* y) {
  return launch("too_many_threads", early_return_kernel, Grid{.threads_x = 2048}, nullptr, y);
}
#undef TAKT_FAULT
#undef TAKT_FAULT2

}  // namespace
}  // namespace takt::kernels::cuda::TAKT_BODY

namespace takt::test {

const HarnessFaults& harness_faults() {
  using namespace kernels::cuda::TAKT_BODY;  // NOLINT(google-build-using-namespace)
  static constexpr HarnessFaults kAll{read_behind_end,     write_before_start,        write_host_memory,
                                      shared_behind_end,   uninitialised_shared,      missing_barrier,
                                      write_after_read,    neighbouring_bytes,        shuffle_is_no_barrier,
                                      warp_barrier_is_one, warp_barrier_across_warps, blocks_write_same,
                                      block_reads_other,   atomic_and_plain,          atomics_only,
                                      barrier_in_branch,   barriers_in_both_branches, early_return,
                                      shuffle_in_branch,   read_before_wait,          read_before_barrier,
                                      misaligned_copy,     too_many_threads};
  return kAll;
}

}  // namespace takt::test
