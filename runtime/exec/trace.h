// What every tensor of a plan held in one run: for finding the first layer that is wrong. Host only; allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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
  std::vector<std::byte> bytes;  // row-major
};

// Runs the plan once, one worker, and keeps the result of every step that is run (of an assembled tensor: of its last
// step), in the order of the steps; then outputs that were written in parts. `inputs` by slot, row-major, of the plan's sizes.
Result<std::vector<TracedTensor>> trace(const std::shared_ptr<const plan::Plan>& plan,
                                        std::span<const std::vector<std::byte>> inputs);

// A value that is no finite number.
struct NonFinite {
  std::uint32_t tensor = 0;                    // of the plan
  std::size_t step = plan::kNone;              // that wrote it; kNone: an input held it
  std::int64_t index[kernels::kMaxRank] = {};  // in the tensor's shape
  float value = 0;
  std::uint64_t count = 0;  // of such values in this tensor
};
std::string to_string(const NonFinite& found, const plan::Plan& plan);  // one line for people
// The first one, row-major, in the result of a step that has just been run; f32 alone has any.
std::optional<NonFinite> find_non_finite(const Session& session, std::size_t step);
// A debug mode in place of Session::run: every step's result is looked at before the next step begins, inputs before
// the first. Stops with the first step that wrote a NaN or an infinity. Every slot is bound.
std::optional<NonFinite> run_watched(Session& session);

// The same made-up input on every machine: floats in [-1, 1), bytes 0 to 255, integers and booleans 0 or 1.
std::vector<std::byte> made_up_input(const plan::Tensor& tensor);

// Where a pair of tensors differs most.
struct TensorDifference {
  std::string name;                 // empty: nowhere
  std::size_t step = 0;             // of the first trace
  double difference = 0;            // over the largest absolute value in the first trace's tensor
  std::vector<std::int64_t> index;  // in its shape
  double a = 0, b = 0;              // the values there
};
// Where two traces part: tensors are paired by name, in the order of the first; shapes may differ, sizes may not. f32
// is compared by value, other types by bytes.
struct Divergence {
  std::size_t compared = 0;   // pairs of one type and size
  std::size_t unmatched = 0;  // of the first, without a partner
  TensorDifference first;     // beyond the tolerance
  TensorDifference worst;     // of all pairs
};
// `tolerance`: of the largest absolute value in the first trace's tensor. NaN differs from everything but NaN.
Divergence compare(std::span<const TracedTensor> a, std::span<const TracedTensor> b, double tolerance);

}  // namespace takt::exec
