// Operators on counted tensors: the counted kernel over row-major tensors. Right, not fast.

#include "compiler/ir/counted.h"
#include "compiler/lower/builder.h"
#include "kernels/reference/counted.h"

namespace takt::lower {

using kernels::cpu::KernelId;
using kernels::reference::kGenericInputs;
using kernels::reference::kMostCounts;

Status lower_counted_node(Builder& out, const ir::Node& node) {
  if (node.op == "Identity") {
    out.define_same(node.outputs[0], node.inputs[0]);
    return {};
  }
  if (ir::keeps_elements(node)) {
    out.define_view(node.outputs[0], false, out.linear(node.inputs[0]), 0);
    ++out.statistics().views;
    return {};
  }
  TAKT_ASSIGN(const std::vector<ir::CountedStep> steps, ir::counted_steps(out.graph(), node));
  for (const ir::CountedStep& step : steps) {
    // A result that nobody reads is left out, but for the one that makes the count.
    if (step.made == ir::kNoValue && !out.is_read(step.output)) continue;
    std::vector<TensorId> operands;
    for (const ir::ValueId value : step.inputs) {
      operands.push_back(value != ir::kNoValue ? out.linear(value) : kAbsent);
    }
    operands.resize(kGenericInputs, kAbsent);
    for (const ir::ValueId count : step.counts) operands.push_back(out.linear(count));
    operands.resize(kGenericInputs + kMostCounts, kAbsent);
    operands.push_back(out.define(step.output, false));
    if (step.made != ir::kNoValue) operands.push_back(out.define(step.made, false));
    out.step(kernels::cpu::make_call(step.made != ir::kNoValue ? KernelId::kCounting : KernelId::kCounted, step.params),
             std::move(operands), &node);
  }
  return {};
}

}  // namespace takt::lower
