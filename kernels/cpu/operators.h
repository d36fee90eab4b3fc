// takt's own operators as kernels: one row each, in host_voxels.cpp, host_points.cpp, host_tracking.cpp. The compiler
// reads from a row which operands are counted and by what; the row is also the host half of the kernel.
//
// Operands: inputs, counts of inputs, outputs, scratch. All row-major; what is counted is counted on dimension 0. An
// input may be absent where the parameters say so. A count is absent where the tensor is not counted: then all rows of
// its capacity are valid. Rows behind a count are never read and never written. Scratch is bytes of the arena that live
// as long as the step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "kernels/cpu/host.h"
#include "kernels/kernel.h"

namespace takt::kernels::cpu {

struct OperatorKernel {
  KernelId id{};
  const char* name = nullptr;  // "voxelise_f32"
  std::uint16_t version = 1;
  std::uint32_t params_bytes = 0;
  std::uint8_t inputs = 0, counts = 0, outputs = 0, scratch = 0;
  // By operand: the operand that says how many of its rows are valid, of the counts for inputs, also of the outputs for
  // what the operator counts itself. -1: all are.
  std::int16_t count_of[kMaxOperands] = {};
  // Bytes of every operand, scratch of a CPU included, as in host.h; for a count 4 bytes, which may be absent. nullptr,
  // or what is wrong with the parameters: trusts nothing and cannot overflow.
  const char* (*operand_bytes)(const void* params, OperandBytes* out) = nullptr;
  // Floating-point operations at capacity; nullptr: none.
  std::uint64_t (*flops)(const void* params) = nullptr;
  // Bytes of scratch of a CUDA kernel that keeps other things there (cuda_scratch.h), in one operand; 0: the extents
  // are too large for it. nullptr: as on a CPU.
  std::uint64_t (*cuda_scratch)(const void* params) = nullptr;

  [[nodiscard]] constexpr int scratch_on(Target target) const {
    return cuda_scratch != nullptr && is_cuda(target) ? 1 : scratch;
  }
  [[nodiscard]] constexpr int operands(Target target = Target::kAvx2) const {
    return first_scratch() + scratch_on(target);
  }
  [[nodiscard]] constexpr bool is_count(int operand) const { return operand >= inputs && operand < inputs + counts; }
  [[nodiscard]] constexpr int first_output() const { return inputs + counts; }
  [[nodiscard]] constexpr int first_scratch() const { return inputs + counts + outputs; }
};

// One span for each family.
std::span<const OperatorKernel* const> voxel_operators();
std::span<const OperatorKernel* const> point_operators();
std::span<const OperatorKernel* const> tracking_operators();
// nullptr: no operator of takt's.
const OperatorKernel* find_operator_kernel(KernelId id);

// The valid rows of a tensor with that capacity, whatever its count says.
inline std::int32_t rows_of(const Operand& count, std::int32_t capacity) {
  if (count.data == nullptr) return capacity;
  std::int32_t rows = 0;
  std::memcpy(&rows, count.data, sizeof rows);
  return std::clamp(rows, 0, capacity);
}

// The bytes of the product of extents; 0 when one is not positive or it is more than 2^35.
inline std::uint64_t extent_bytes(std::initializer_list<std::int64_t> extents, std::uint64_t element) {
  constexpr std::int64_t kMost = std::int64_t{1} << 35;
  std::int64_t n = static_cast<std::int64_t>(element);
  for (const std::int64_t extent : extents) {
    if (extent < 1 || extent > kMost || n > kMost / extent) return 0;
    n *= extent;
  }
  return static_cast<std::uint64_t>(n);
}

}  // namespace takt::kernels::cpu
