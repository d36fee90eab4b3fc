// What every tensor of a plan held in one run: for finding the first layer that is wrong. Host only; allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/tensor.h"
#include "runtime/base/status.h"
#include "runtime/exec/session.h"
#include "runtime/plan/plan.h"

namespace takt::exec {

struct TracedTensor {
  std::string name;
  std::size_t step = 0;  // that wrote it
  kernels::DType dtype = kernels::DType::kF32;
  kernels::Shape shape;
  std::vector<std::byte> bytes;  // row-major; of a counted tensor the valid part, whose extent is then the count
};

// Runs the plan once, one worker, and keeps the result of every step that is run (of an assembled tensor: of its last
// step), in the order of the steps; then outputs that were written in parts. `inputs` by slot, row-major, of the plan's
// sizes.
Result<std::vector<TracedTensor>> trace(const std::shared_ptr<const plan::Plan>& plan,
                                        std::span<const std::vector<std::byte>> inputs);

// The same made-up input on every machine: floats of any width in [-1, 1), bytes 0 to 255, integers and booleans 0
// or 1.
std::vector<std::byte> made_up_input(const plan::Tensor& tensor);

// Where a pair of tensors differs most.
struct TensorDifference {
  std::string name;                 // empty: nowhere
  std::size_t step = 0;             // of the first trace
  double difference = 0;            // over the largest absolute value in the first trace's tensor
  std::vector<std::int64_t> index;  // in its shape
  double a = 0, b = 0;              // the values there
};
// Where two traces part: tensors are paired by name, in the order of the first; shapes may differ, sizes may not.
// Floats of any width are compared by value, other types by bytes.
struct Divergence {
  std::size_t compared = 0;   // pairs of one type and size
  std::size_t unmatched = 0;  // of the first, without a partner
  TensorDifference first;     // beyond the tolerance
  TensorDifference worst;     // of all pairs
};
// `tolerance`: of the largest absolute value in the first trace's tensor. NaN differs from everything but NaN.
Divergence compare(std::span<const TracedTensor> a, std::span<const TracedTensor> b, double tolerance);

}  // namespace takt::exec
