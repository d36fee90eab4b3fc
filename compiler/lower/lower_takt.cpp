// takt's own operators: every one is a call of its kernel, over row-major tensors but for a result that may be blocked.

#include "compiler/ir/takt_operators.h"
#include "compiler/lower/builder.h"

namespace takt::lower {

Status lower_takt_node(Builder& out, const ir::Node& node) {
  const ir::TaktOperator& op = *ir::find_takt_operator(node.op);
  TAKT_ASSIGN(const std::vector<ir::ValueId> read, ir::kernel_operands(out.graph(), node));
  TAKT_ASSIGN(ir::OperatorCall call, op.describe(ir::OperatorInputs{out.graph(), node}));
  std::vector<TensorId> operands;
  operands.reserve(read.size());
  for (const ir::ValueId value : read) operands.push_back(value != ir::kNoValue ? out.linear(value) : kAbsent);
  const bool blocked = op.set_block != nullptr && out.wants_blocked(node.outputs[0]) &&
                       out.blocked_type() == kernels::DType::kF32;  // no operator writes f16
  if (blocked) op.set_block(call.params.data(), out.block());
  for (const ir::ValueId value : node.outputs) {
    operands.push_back(out.define(value, blocked && value == node.outputs[0]));
  }
  const kernels::cpu::OperatorKernel& kernel = *kernels::cpu::find_operator_kernel(op.kernel);
  kernels::cpu::OperandBytes needed;
  if (const char* const error = kernels::cpu::operand_bytes(op.kernel, call.params.data(), out.target(), &needed)) {
    return fail(Code::kInput, error);
  }
  for (int i = kernel.first_scratch(); i < kernel.operands(out.target()); ++i) {
    const ir::Type type{kernels::DType::kU8, {1, {static_cast<std::int64_t>(needed.bytes[i])}}};
    operands.push_back(out.temporary(node.name + ":scratch", type));
  }
  out.step({op.kernel, std::move(call.params), {}, -1}, std::move(operands), &node);
  return {};
}

}  // namespace takt::lower
