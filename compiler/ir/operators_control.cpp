// Where branches meet.

#include <cstring>

#include "compiler/ir/operator_tables.h"

namespace takt::ir {
namespace {

Result<Types> infer_select(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  TAKT_RETURN_IF_ERROR(expect_type(in, 0, {DType::kBool}));
  if (in.shape(0).elements() != 1) {
    return fail(Code::kInput, "the condition is " + to_string(in.type(0)) + "; expected one element");
  }
  if (!(in.type(1) == in.type(2))) {
    return fail(Code::kInput, "selects between " + to_string(in.type(1)) + " and " + to_string(in.type(2)));
  }
  return Types{in.type(1)};
}

// The value that is not selected may not have been computed: it is not read.
Status evaluate_select(const Node& /*node*/, std::span<const kernels::Tensor> in,
                       std::span<const kernels::Tensor> out) {
  const kernels::Tensor& chosen = in[*in[0].as<const std::uint8_t>() != 0 ? 1 : 2];
  const auto bytes = static_cast<std::size_t>(out[0].shape.elements()) * kernels::size_of(out[0].dtype);
  if (chosen.data == nullptr && bytes > 0) return fail(Code::kInternal, "the selected value was not computed");
  if (bytes > 0) std::memcpy(out[0].data, chosen.data, bytes);
  return {};
}

constexpr Operator kOperators[] = {
    {"takt.Select", 3, 3, infer_select, evaluate_select, nullptr, nullptr},
};

}  // namespace

std::span<const Operator> control_operators() { return kOperators; }

}  // namespace takt::ir
