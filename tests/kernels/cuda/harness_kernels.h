// Small kernels that use everything of device.h, and one kernel for each kind of fault that the harness must find.
#pragma once

#include <cstdint>

namespace takt::test {

// A body of device.h by name; the host tests call them without knowing which it is.
struct HarnessKernels {
  // Sums of rows of `width` (at most 1024): shuffles, shared memory, a barrier.
  int (*row_sums)(const std::int32_t* x, std::int32_t* sums, std::uint32_t rows, std::uint32_t width);
  // Transpose of a square matrix of f32 through tiles of shared memory.
  int (*transpose)(const float* x, float* y, std::uint32_t n);
  // Counts of values modulo `bins` by atomics.
  int (*histogram)(const std::int32_t* x, std::int32_t* bins_of, std::uint32_t n, std::uint32_t bins);
  // y = 2 x by double-buffered asynchronous copies, `tiles` tiles of 128 floats each.
  int (*twice_async)(const float* x, float* y, std::uint32_t tiles);
  // Every warp and vote operation once; 12 results for each of 32 lanes.
  int (*warp_operations)(std::uint32_t* y);
  // y = half(x) back to f32.
  int (*through_half)(const float* x, float* y, std::uint32_t n);
};

// Each does one thing wrong, in the line that its name is written in (harness_faults.cu). `x` and `y` are 64 floats.
struct HarnessFaults {
  int (*read_behind_end)(const float* x, float* y);
  int (*write_before_start)(float* y);
  int (*write_host_memory)(float* y, float* host);
  int (*shared_behind_end)(float* y);
  int (*uninitialised_shared)(float* y);
  int (*missing_barrier)(float* y);
  int (*write_after_read)(float* y);
  int (*neighbouring_bytes)(std::uint8_t* y);  // no fault: bytes of one word by different threads
  int (*shuffle_is_no_barrier)(float* y);
  int (*warp_barrier_is_one)(float* y);        // no fault
  int (*warp_barrier_across_warps)(float* y);  // between warps it is none
  int (*blocks_write_same)(float* y);
  int (*block_reads_other)(float* y);
  int (*atomic_and_plain)(std::int32_t* y);
  int (*atomics_only)(std::int32_t* y);  // no fault
  int (*barrier_in_branch)(float* y);
  int (*barriers_in_both_branches)(float* y);
  int (*early_return)(float* y);
  int (*shuffle_in_branch)(float* y);
  int (*read_before_wait)(const float* x, float* y);
  int (*read_before_barrier)(const float* x, float* y);  // of what another thread copied, after its wait
  int (*misaligned_copy)(const float* x, float* y);
  int (*too_many_threads)(float* y);
};

const HarnessKernels& harness_kernels();          // unchecked
const HarnessKernels& checked_harness_kernels();  // instrumented
const HarnessFaults& harness_faults();            // instrumented

}  // namespace takt::test
