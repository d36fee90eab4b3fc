// The only header that CUDA kernels include. Every name here has two bodies: on the device by nvcc, on the host by the
// SIMT harness (kernels/cuda/simt), so that the same kernel sources run in tests on machines without a GPU. PTX, warp
// operations and launches stand here and nowhere else; of the CUDA API only what 12.6 and 13 share.
//
// A kernel is a TAKT_KERNEL function in namespace takt::kernels::cuda::TAKT_BODY. Its shared memory is dynamic, its
// blocks are whole warps, and warp operations are for all 32 lanes together: what diverges before one of them is an
// error, which the harness reports.
//
// Source of the rules: CUDA C++ Programming Guide 12.6, chapters 7 ("C++ Language Extensions") and 8; PTX ISA 8.5,
// section 9.7.9 (cp.async).
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#define TAKT_KERNEL static __global__
#define TAKT_DEVICE __device__ __forceinline__
#define TAKT_BODY device
#else
#include "kernels/cuda/simt/simt.h"
#define TAKT_KERNEL static
#define TAKT_DEVICE inline
#if defined(TAKT_SIMT_CHECKED)
#define TAKT_BODY simt_checked
#else
#define TAKT_BODY simt
#endif
#endif

namespace takt::kernels::cuda {

// Blocks and threads of a launch; `threads_x * threads_y` is a multiple of 32, at most 1024.
struct Grid {
  std::uint32_t blocks_x = 1, blocks_y = 1, blocks_z = 1;
  std::uint32_t threads_x = 32, threads_y = 1;
  std::uint32_t shared_bytes = 0;
};

inline constexpr std::uint32_t kWarp = 32;

// IEEE 754 binary16 as it is stored; computed in f32.
struct Half {
  std::uint16_t bits;
};

// 16 bytes that are moved by one instruction.
struct alignas(16) Bytes16 {
  std::uint32_t words[4];
};

inline namespace TAKT_BODY {

using Stream = void*;  // cudaStream_t on the device, ignored by the harness

#if defined(__CUDACC__)

// Puts a kernel into a stream. The name is for messages. Returns 0 or the number of the CUDA error.
template <class... Parameters, class... Arguments>
[[nodiscard]] int launch(const char* /*name*/, void (*kernel)(Parameters...), const Grid& grid, Stream stream,
                         const Arguments&... arguments) {
  const auto* const function = reinterpret_cast<const void*>(kernel);
  constexpr std::uint32_t kWithoutAsking = 48 * 1024;
  if (grid.shared_bytes > kWithoutAsking) {
    const cudaError_t error = cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                   static_cast<int>(grid.shared_bytes));
    if (error != cudaSuccess) return static_cast<int>(error);
  }
  // One more, since there are kernels without parameters and no arrays of length 0.
  void* pointers[sizeof...(Arguments) + 1] = {
      const_cast<void*>(static_cast<const void*>(&static_cast<const Parameters&>(arguments)))..., nullptr};
  return static_cast<int>(cudaLaunchKernel(function, dim3(grid.blocks_x, grid.blocks_y, grid.blocks_z),
                                           dim3(grid.threads_x, grid.threads_y), pointers, grid.shared_bytes,
                                           static_cast<cudaStream_t>(stream)));
}

TAKT_DEVICE std::uint32_t thread_x() { return threadIdx.x; }
TAKT_DEVICE std::uint32_t thread_y() { return threadIdx.y; }
TAKT_DEVICE std::uint32_t block_x() { return blockIdx.x; }
TAKT_DEVICE std::uint32_t block_y() { return blockIdx.y; }
TAKT_DEVICE std::uint32_t block_z() { return blockIdx.z; }
TAKT_DEVICE std::uint32_t threads_x() { return blockDim.x; }
TAKT_DEVICE std::uint32_t threads_y() { return blockDim.y; }
TAKT_DEVICE std::uint32_t blocks_x() { return gridDim.x; }
TAKT_DEVICE std::uint32_t blocks_y() { return gridDim.y; }

// The dynamic shared memory of the block, at a multiple of 16.
template <class T>
TAKT_DEVICE T* shared_memory() {
  extern __shared__ Bytes16 takt_shared[];
  return reinterpret_cast<T*>(takt_shared);
}

TAKT_DEVICE void sync_block() { __syncthreads(); }
// Whether the value is true in any thread of the block; a barrier too.
TAKT_DEVICE bool sync_block_or(bool value) { return __syncthreads_or(value ? 1 : 0) != 0; }
TAKT_DEVICE void sync_warp() { __syncwarp(); }

inline constexpr std::uint32_t kAllLanes = 0xffffffff;
template <class T>
TAKT_DEVICE T shuffle(T value, std::uint32_t lane) {
  return __shfl_sync(kAllLanes, value, static_cast<int>(lane));
}
template <class T>
TAKT_DEVICE T shuffle_up(T value, std::uint32_t delta) {
  return __shfl_up_sync(kAllLanes, value, delta);
}
template <class T>
TAKT_DEVICE T shuffle_down(T value, std::uint32_t delta) {
  return __shfl_down_sync(kAllLanes, value, delta);
}
template <class T>
TAKT_DEVICE T shuffle_xor(T value, std::uint32_t mask) {
  return __shfl_xor_sync(kAllLanes, value, static_cast<int>(mask));
}
TAKT_DEVICE std::uint32_t ballot(bool value) { return __ballot_sync(kAllLanes, value ? 1 : 0); }
TAKT_DEVICE bool any(bool value) { return __any_sync(kAllLanes, value ? 1 : 0) != 0; }
TAKT_DEVICE bool all(bool value) { return __all_sync(kAllLanes, value ? 1 : 0) != 0; }

// Integers only: sums of floats would depend on the order.
TAKT_DEVICE std::int32_t atomic_add(std::int32_t* at, std::int32_t value) { return atomicAdd(at, value); }
TAKT_DEVICE std::int32_t atomic_min(std::int32_t* at, std::int32_t value) { return atomicMin(at, value); }
TAKT_DEVICE std::int32_t atomic_max(std::int32_t* at, std::int32_t value) { return atomicMax(at, value); }
// What was there; `value` is there now if that was `expected`.
TAKT_DEVICE std::int32_t atomic_cas(std::int32_t* at, std::int32_t expected, std::int32_t value) {
  return atomicCAS(at, expected, value);
}

// Starts a copy of kBytes (4, 8 or 16, both sides aligned to it) from global to shared memory, of which the first
// `valid` come from `from` and the rest is zero. It has landed, for this thread, after copy_async_wait; for others
// after a barrier behind that.
template <int kBytes>
TAKT_DEVICE void copy_async(void* to, const void* from, std::uint32_t valid = kBytes) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(valid) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(address), "l"(from), "n"(kBytes), "r"(valid)
                 : "memory");
  }
}
// Ends a group of copies of this thread.
TAKT_DEVICE void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until at most kGroups of this thread's newest groups are in flight.
template <int kGroups>
TAKT_DEVICE void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
}

// a * b + c, rounded once.
TAKT_DEVICE float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
TAKT_DEVICE float to_float(Half value) { return __half2float(__ushort_as_half(value.bits)); }
TAKT_DEVICE Half to_half(float value) { return {__half_as_ushort(__float2half_rn(value))}; }
TAKT_DEVICE std::uint32_t bits_of(float value) { return __float_as_uint(value); }
TAKT_DEVICE float float_of(std::uint32_t bits) { return __uint_as_float(bits); }
TAKT_DEVICE int count_ones(std::uint32_t value) { return __popc(value); }

#else

// The bodies above, on the host. They are called by instrumented code and are not instrumented themselves.
#define TAKT_HOST_BODY __attribute__((no_sanitize_thread)) inline

template <class... Parameters, class... Arguments>
[[nodiscard]] __attribute__((no_sanitize_thread)) int launch(const char* name, void (*kernel)(Parameters...),
                                                             const Grid& grid, Stream /*stream*/,
                                                             const Arguments&... arguments) {
  const auto body = [&]() __attribute__((no_sanitize_thread)) { kernel(arguments...); };
  takt::simt::run(
      name, {{grid.blocks_x, grid.blocks_y, grid.blocks_z}, {grid.threads_x, grid.threads_y, 1}, grid.shared_bytes},
      [](const void* closure) __attribute__((no_sanitize_thread)) { (*static_cast<decltype(&body)>(closure))(); },
      &body);
  return 0;
}

TAKT_HOST_BODY std::uint32_t thread_x() { return takt::simt::self().thread.x; }
TAKT_HOST_BODY std::uint32_t thread_y() { return takt::simt::self().thread.y; }
TAKT_HOST_BODY std::uint32_t block_x() { return takt::simt::self().block.x; }
TAKT_HOST_BODY std::uint32_t block_y() { return takt::simt::self().block.y; }
TAKT_HOST_BODY std::uint32_t block_z() { return takt::simt::self().block.z; }
TAKT_HOST_BODY std::uint32_t threads_x() { return takt::simt::self().threads.x; }
TAKT_HOST_BODY std::uint32_t threads_y() { return takt::simt::self().threads.y; }
TAKT_HOST_BODY std::uint32_t blocks_x() { return takt::simt::self().blocks.x; }
TAKT_HOST_BODY std::uint32_t blocks_y() { return takt::simt::self().blocks.y; }

template <class T>
TAKT_HOST_BODY T* shared_memory() {
  return reinterpret_cast<T*>(takt::simt::self().shared);
}

#define TAKT_SITE_PARAMETERS const char *file = __builtin_FILE(), int line = __builtin_LINE()
TAKT_HOST_BODY void sync_block(TAKT_SITE_PARAMETERS) { (void)takt::simt::sync_block(false, {file, line}); }
TAKT_HOST_BODY bool sync_block_or(bool value, TAKT_SITE_PARAMETERS) {
  return takt::simt::sync_block(value, {file, line});
}
TAKT_HOST_BODY void sync_warp(TAKT_SITE_PARAMETERS) { takt::simt::sync_warp({file, line}); }

template <class T>
TAKT_HOST_BODY T exchange(T value, takt::simt::Exchange how, std::uint32_t argument, takt::simt::Site site) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = takt::simt::exchange(bits, how, argument, site);
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}
template <class T>
TAKT_HOST_BODY T shuffle(T value, std::uint32_t lane, TAKT_SITE_PARAMETERS) {
  return exchange(value, takt::simt::Exchange::kLane, lane, {file, line});
}
template <class T>
TAKT_HOST_BODY T shuffle_up(T value, std::uint32_t delta, TAKT_SITE_PARAMETERS) {
  return exchange(value, takt::simt::Exchange::kUp, delta, {file, line});
}
template <class T>
TAKT_HOST_BODY T shuffle_down(T value, std::uint32_t delta, TAKT_SITE_PARAMETERS) {
  return exchange(value, takt::simt::Exchange::kDown, delta, {file, line});
}
template <class T>
TAKT_HOST_BODY T shuffle_xor(T value, std::uint32_t mask, TAKT_SITE_PARAMETERS) {
  return exchange(value, takt::simt::Exchange::kXor, mask, {file, line});
}
TAKT_HOST_BODY std::uint32_t ballot(bool value, TAKT_SITE_PARAMETERS) {
  return takt::simt::ballot(value, {file, line});
}
TAKT_HOST_BODY bool any(bool value, TAKT_SITE_PARAMETERS) { return takt::simt::ballot(value, {file, line}) != 0; }
TAKT_HOST_BODY bool all(bool value, TAKT_SITE_PARAMETERS) { return takt::simt::ballot(!value, {file, line}) == 0; }

TAKT_HOST_BODY std::int32_t atomic_add(std::int32_t* at, std::int32_t value, TAKT_SITE_PARAMETERS) {
  return takt::simt::atomic(at, takt::simt::Atomic::kAdd, value, 0, {file, line});
}
TAKT_HOST_BODY std::int32_t atomic_min(std::int32_t* at, std::int32_t value, TAKT_SITE_PARAMETERS) {
  return takt::simt::atomic(at, takt::simt::Atomic::kMin, value, 0, {file, line});
}
TAKT_HOST_BODY std::int32_t atomic_max(std::int32_t* at, std::int32_t value, TAKT_SITE_PARAMETERS) {
  return takt::simt::atomic(at, takt::simt::Atomic::kMax, value, 0, {file, line});
}
TAKT_HOST_BODY std::int32_t atomic_cas(std::int32_t* at, std::int32_t expected, std::int32_t value,
                                       TAKT_SITE_PARAMETERS) {
  return takt::simt::atomic(at, takt::simt::Atomic::kCompareAndSwap, value, expected, {file, line});
}

template <int kBytes>
TAKT_HOST_BODY void copy_async(void* to, const void* from, std::uint32_t valid = kBytes, TAKT_SITE_PARAMETERS) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);
  takt::simt::copy_async(to, from, kBytes, valid, {file, line});
}
TAKT_HOST_BODY void copy_async_commit() { takt::simt::copy_async_commit(); }
template <int kGroups>
TAKT_HOST_BODY void copy_async_wait() {
  takt::simt::copy_async_wait(kGroups);
}

TAKT_HOST_BODY float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
TAKT_HOST_BODY float to_float(Half value) { return takt::simt::half_to_float(value.bits); }
TAKT_HOST_BODY Half to_half(float value) { return {takt::simt::float_to_half(value)}; }
TAKT_HOST_BODY std::uint32_t bits_of(float value) { return __builtin_bit_cast(std::uint32_t, value); }
TAKT_HOST_BODY float float_of(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }
TAKT_HOST_BODY int count_ones(std::uint32_t value) { return __builtin_popcount(value); }

#undef TAKT_SITE_PARAMETERS
#undef TAKT_HOST_BODY

#endif

}  // namespace TAKT_BODY
}  // namespace takt::kernels::cuda
