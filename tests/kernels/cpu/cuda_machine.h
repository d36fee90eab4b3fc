// Where the tests of kernels run CUDA kernels: TAKT_TEST_SIMT the host harness, with every access judged, TAKT_TEST_GPU
// a GPU, with guard bytes around each operand.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/table.h"
#if defined(TAKT_TEST_SIMT)
#include "kernels/cuda/simt/simt.h"
#else
#include <cuda_runtime_api.h>
#endif

namespace takt::kernels::cpu {

#if defined(TAKT_TEST_SIMT)

class CudaMachine {
 public:
  // `order`: of blocks and threads.
  explicit CudaMachine(int order)
      : machine_({.seed = static_cast<std::uint64_t>(order), .check = true}), use_(machine_) {}
  std::byte* allocate(std::span<const std::byte> contents, const std::string& name) {
    std::byte* const start = machine_.allocate(contents.size(), name);
    std::memcpy(start, contents.data(), contents.size());
    return start;
  }
  void run(KernelId id, const cuda::Call& call) {
    const cuda::Launch launch = cuda::simt_checked::launch_of(id);
    ASSERT_NE(launch, nullptr);
    EXPECT_EQ(launch(call), 0);
    for (const simt::Finding& finding : machine_.take_findings()) ADD_FAILURE() << finding.text;
  }
  void read(const std::byte* from, std::span<std::byte> to) { std::memcpy(to.data(), from, to.size()); }

 private:
  simt::Machine machine_;
  simt::Use use_;
};

#else

class CudaMachine {
 public:
  explicit CudaMachine(int /*order*/) {}
  ~CudaMachine() {
    for (const Allocation& a : allocations_) cudaFree(a.start);
  }
  CudaMachine(const CudaMachine&) = delete;
  CudaMachine& operator=(const CudaMachine&) = delete;

  std::byte* allocate(std::span<const std::byte> contents, const std::string& name) {
    std::vector<std::byte> all(contents.size() + 2 * kGuard, kGuardByte);
    std::copy(contents.begin(), contents.end(), all.begin() + kGuard);
    void* start = nullptr;
    expect(cudaMalloc(&start, all.size()));
    expect(cudaMemcpy(start, all.data(), all.size(), cudaMemcpyHostToDevice));
    allocations_.push_back({static_cast<std::byte*>(start), contents.size(), name});
    return static_cast<std::byte*>(start) + kGuard;
  }
  void run(KernelId id, const cuda::Call& call) {
    const cuda::Launch launch = cuda::device::launch_of(id);
    ASSERT_NE(launch, nullptr);
    EXPECT_EQ(launch(call), 0);
    expect(cudaDeviceSynchronize());
    for (const Allocation& a : allocations_) {
      for (std::byte* const guard : {a.start, a.start + kGuard + a.bytes}) {
        std::byte bytes[kGuard];
        expect(cudaMemcpy(bytes, guard, kGuard, cudaMemcpyDeviceToHost));
        const bool intact = std::all_of(bytes, bytes + kGuard, [](std::byte b) { return b == kGuardByte; });
        EXPECT_TRUE(intact) << "wrote beside " << a.name;
      }
    }
  }
  void read(const std::byte* from, std::span<std::byte> to) {
    expect(cudaMemcpy(to.data(), from, to.size(), cudaMemcpyDeviceToHost));
  }

 private:
  static constexpr std::size_t kGuard = 256;
  static constexpr std::byte kGuardByte{0xA5};
  struct Allocation {
    std::byte* start;
    std::size_t bytes;
    std::string name;
  };
  static void expect(cudaError_t error) { EXPECT_EQ(error, cudaSuccess) << cudaGetErrorString(error); }
  std::vector<Allocation> allocations_;
};

#endif

}  // namespace takt::kernels::cpu
