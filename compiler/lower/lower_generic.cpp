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

// Batches that are broadcast against each other: the fast kernel repeats one matrix at most.
bool several_batches(const Shape& a, const Shape& b) {
  std::int64_t of_a = 1, of_b = 1;
  bool same = a.rank == b.rank;
  for (int d = 0; d + 2 < a.rank; ++d) of_a *= a.dims[d];
  for (int d = 0; d + 2 < b.rank; ++d) of_b *= b.dims[d];
  for (int d = 0; same && d + 2 < a.rank; ++d) same = a.dims[d] == b.dims[d];
  return a.rank >= 2 && b.rank >= 2 && of_a != 1 && of_b != 1 && !same;
}

}  // namespace

bool wants_generic(const Builder& out, const ir::Node& node) {
  if (node.op == "ReduceMean" && scattered_axes(node)) return true;
  if ((node.op == "Conv" || node.op == "ConvTranspose") &&
      std::any_of(node.inputs.begin() + 1, node.inputs.begin() + std::min<std::ptrdiff_t>(node.inputs.size(), 3),
                  [&](ir::ValueId value) { return value != ir::kNoValue && out.constant_of(value) == nullptr; })) {
    return true;
  }
  if (node.op == "MatMul" && several_batches(out.shape(node.inputs[0]), out.shape(node.inputs[1]))) return true;
  if (node.op == "Cast") return false;  // its own lowering comes back here
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
  for (const ir::ValueId value : node.inputs) {
    operands.push_back(value != ir::kNoValue ? out.linear(value) : kAbsent);
  }
  operands.resize(kGenericInputs + 1, kAbsent);
  // One step for each result; of several, those that nobody reads are left out.
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs.size() > 1 && !out.is_read(node.outputs[i])) continue;
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
