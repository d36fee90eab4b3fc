// Operators without a kernel of their own: the generic reference kernel over row-major tensors. Right, not fast.

#include <algorithm>

#include "compiler/ir/generic.h"
#include "compiler/ir/operators.h"
#include "compiler/lower/builder.h"

namespace takt::lower {
namespace {

using kernels::cpu::KernelId;
using kernels::reference::GenericParams;
using kernels::reference::kGenericInputs;
using kernels::reference::kGenericOutputs;

// The fast kernel takes axes that lie side by side.
bool scattered_axes(const ir::Node& node) {
  const std::vector<std::int64_t> axes = node.integers("axes");
  for (std::size_t i = 1; i < axes.size(); ++i) {
    if (axes[i] != axes[i - 1] + 1) return true;
  }
  return false;
}

}  // namespace

bool wants_generic(const Builder& out, const ir::Node& node) {
  if (node.op == "ReduceMean" && scattered_axes(node)) return true;
  // The kernels of elementwise operators and reductions are for f32.
  return ir::has_generic(node.op) && std::any_of(node.inputs.begin(), node.inputs.end(), [&](ir::ValueId value) {
           return value != ir::kNoValue && out.type(value).dtype != kernels::DType::kF32;
         });
}

Status lower_generic_node(Builder& out, const ir::Node& node, bool* known) {
  *known = ir::has_generic(node.op);
  if (!*known) return {};
  TAKT_ASSIGN(const GenericParams params, ir::generic_params(node, ir::OperatorInputs{out.graph(), node}.tensors()));
  std::vector<TensorId> operands;
  for (const ir::ValueId value : node.inputs) operands.push_back(out.linear(value));
  operands.resize(kGenericInputs + 1, kAbsent);
  // One step for each result that there is.
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    GenericParams one = params;
    for (std::size_t k = 0; k < kGenericOutputs; ++k) {
      if (k != i) one.operands[kGenericInputs + k] = {};
    }
    operands[kGenericInputs] = out.define(node.outputs[i], false);
    out.step(kernels::cpu::make_call(KernelId::kReference, one), operands, &node);
  }
  return {};
}

}  // namespace takt::lower
