// Private to kernels/cuda: operators whose reference function is the kernel. It divides its rows among parts, and a
// thread is a part; what is serial runs in the first one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/each.h"
#include "kernels/kernel.h"

namespace takt::kernels::cuda {
inline namespace TAKT_BODY {

template <int count>
struct Operands {
  Address at[count];
};
template <int count>
Operands<count> operands_of(const Call& call) {
  Operands<count> operands;
  for (int i = 0; i < count; ++i) operands.at[i] = call.operands[i];
  return operands;
}

// The valid rows of a tensor with that capacity, whatever its count says.
TAKT_DEVICE std::int64_t rows_of(const Address& count, std::int64_t capacity) {
  if (is_absent(count)) return capacity;
  const std::int64_t rows = *at<const std::int32_t>(count);
  return rows < 0 ? 0 : rows < capacity ? rows : capacity;
}

inline constexpr std::uint32_t kPartThreads = 64;  // such functions take many registers

// Work: `work(&params, operands, part, parts)`.
template <class Work, class Params, int count>
TAKT_KERNEL void parts_kernel(Params p, Operands<count> operands, std::int32_t parts, Conditions conditions) {
  const auto part = static_cast<std::int32_t>(block_x() * kPartThreads + thread_x());
  if (part >= parts || !hold(conditions)) return;
  Operand plain[count];
  for (int i = 0; i < count; ++i) plain[i].data = at<std::byte>(operands.at[i]);
  Work()(&p, plain, part, parts);
}

template <class Work, int count, class Params>
int by_parts(const char* name, const Params& p, std::int64_t parts, const Call& call) {
  Grid grid;
  grid.blocks_x = static_cast<std::uint32_t>((parts + kPartThreads - 1) / kPartThreads);
  grid.threads_x = kPartThreads;
  return launch(name, parts_kernel<Work, Params, count>, grid, call.stream, p, operands_of<count>(call),
                static_cast<std::int32_t>(parts), call.conditions);
}

}  // namespace TAKT_BODY
}  // namespace takt::kernels::cuda
