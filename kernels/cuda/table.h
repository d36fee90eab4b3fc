// Launches of the CUDA kernels by kernel id: what a device calls for a step of a plan. Parameter blocks, packing and
// check() are those of kernels/cpu for the targets cuda:*, whose blocks of channels are a warp wide, so that one host
// half serves all.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/params.h"

namespace takt::kernels::cuda {

// Where an operand lies: at an address, or behind an address that stands in device memory when the kernel runs, so that
// a captured launch follows chunks that move.
struct Address {
  std::byte* fixed = nullptr;         // nullptr with `bound` nullptr: the operand is absent
  std::byte* const* bound = nullptr;  // of the binding table
  std::uint64_t offset = 0;           // behind *bound
};

// Bools of one element that are asked when a kernel runs: it does nothing unless each is what it must be.
inline constexpr int kMostConditions = 4;
struct Conditions {
  int count = 0;
  Address flags[kMostConditions];
  bool when[kMostConditions] = {};
};

// Parameters are those that check() has accepted.
struct Call {
  const void* params = nullptr;
  const Address* operands = nullptr;
  Conditions conditions;
  void* stream = nullptr;  // cudaStream_t; the harness has none
};
// Puts a call into its stream. 0, or the number of the CUDA error.
using Launch = int (*)(const Call& call);

// nullptr: there is none for this kernel. The same ids in each body.
namespace device {
Launch launch_of(cpu::KernelId id);  // by nvcc
}
namespace simt {
Launch launch_of(cpu::KernelId id);  // on the host
}
namespace simt_checked {
Launch launch_of(cpu::KernelId id);  // on the host, every access judged
}

}  // namespace takt::kernels::cuda
