// The first value of a run that is no finite number: a debug mode of sessions (Session::watch).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "kernels/tensor.h"
#include "runtime/plan/plan.h"

namespace takt::exec {

class Session;

struct NonFinite {
  std::uint32_t tensor = 0;                    // of the plan
  std::size_t step = plan::kNone;              // that wrote it; kNone: an input held it
  std::int64_t index[kernels::kMaxRank] = {};  // in the tensor's shape, the first one row-major
  double value = 0;                            // NaN or an infinity
  std::uint64_t count = 0;                     // of such values in this tensor
  std::uint64_t run = 0;                       // since watching began, the first is 1
};
std::string to_string(const NonFinite& found, const plan::Plan& plan);  // one line for people

// In an input, or in the result of a step that has just been run; nothing where the step's guards did not hold, or the
// tensor is of whole numbers. No allocation.
std::optional<NonFinite> find_in_input(const Session& session, std::size_t slot);
std::optional<NonFinite> find_in_result(const Session& session, std::size_t step);

// Whether the guards of a step that has just been run held: otherwise it wrote nothing.
bool ran(const Session& session, std::size_t step);

// The shape of a tensor as far as it is valid: a count in place of the counted extent.
kernels::Shape valid_shape(const Session& session, std::uint32_t tensor);
// Results of a step: its output, and the count behind it where it makes one.
std::span<const std::uint32_t> results_of(const plan::Plan& plan, std::size_t step);

// Where a row-major element of a tensor lies, counted in elements.
std::int64_t place_of(const plan::Tensor& tensor, std::int64_t element);

}  // namespace takt::exec
