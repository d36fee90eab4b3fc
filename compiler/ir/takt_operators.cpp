#include "compiler/ir/takt_operators.h"

#include <algorithm>

namespace takt::ir {
namespace {

using kernels::Operand;
using kernels::cpu::OperatorKernel;

const OperatorKernel& kernel_of(const TaktOperator& op) { return *kernels::cpu::find_operator_kernel(op.kernel); }

}  // namespace

const TaktOperator* find_takt_operator(std::string_view name) {
  for (const auto family : {voxel_operators(), point_operators(), tracking_operators()}) {
    for (const TaktOperator& op : family) {
      if (op.name == name) return &op;
    }
  }
  return nullptr;
}

Result<std::vector<ValueId>> kernel_operands(const Graph& graph, const Node& node) {
  const OperatorKernel& kernel = kernel_of(*find_takt_operator(node.op));
  std::vector<ValueId> operands(kernel.inputs + std::size_t{kernel.counts}, kNoValue);
  std::copy(node.inputs.begin(), node.inputs.end(), operands.begin());
  std::vector<bool> known(operands.size(), false);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    const Type& type = *graph[node.inputs[i]].type;
    const int at = kernel.count_of[i];
    if (at < 0) {
      if (type.count == kNoValue) continue;
      return fail(Code::kInput, "takes no counted tensor as input " + std::to_string(i) + ": " + to_string(type));
    }
    if (type.count != kNoValue && type.axis != 0) {
      return fail(Code::kInput, "input " + std::to_string(i) + " is not counted by rows: " + to_string(type));
    }
    const auto count = static_cast<std::size_t>(at);
    if (known[count] && operands[count] != type.count) {
      return fail(Code::kInput, "input " + std::to_string(i) + " has another count than the inputs that it belongs to");
    }
    known[count] = true;
    operands[count] = type.count;
  }
  return operands;
}

Result<std::vector<Type>> infer_takt(const Graph& graph, const Node& node) {
  const TaktOperator& op = *find_takt_operator(node.op);
  const OperatorKernel& kernel = kernel_of(op);
  TAKT_ASSIGN(const std::vector<ValueId> operands, kernel_operands(graph, node));
  TAKT_ASSIGN(OperatorCall call, op.describe(OperatorInputs{graph, node}));
  if (call.outputs.size() != kernel.outputs) return fail(Code::kInternal, "its rule gives another number of outputs");
  for (std::size_t o = 0; o < std::min<std::size_t>(node.outputs.size(), kernel.outputs); ++o) {
    const int at = kernel.count_of[kernel.first_output() + static_cast<int>(o)];
    if (at < 0) continue;
    const auto own = static_cast<std::size_t>(at - kernel.first_output());
    if (at < kernel.first_output()) {
      call.outputs[o].count = operands[static_cast<std::size_t>(at)];
    } else if (own < node.outputs.size()) {
      call.outputs[o].count = node.outputs[own];
    }
  }
  return std::move(call.outputs);
}

void complete_outputs(Graph& graph, Node& node) {
  const OperatorKernel& kernel = kernel_of(*find_takt_operator(node.op));
  while (node.outputs.size() < kernel.outputs) {
    const std::size_t next = node.outputs.size();
    std::string name = node.name + ":" + std::to_string(next);
    for (std::size_t o = 0; o < next; ++o) {
      const int at = kernel.count_of[kernel.first_output() + o];
      if (at >= 0 && static_cast<std::size_t>(at) == kernel.first_output() + next) {
        name = graph[node.outputs[o]].name + ":count";
        break;
      }
    }
    node.outputs.push_back(graph.add_value(std::move(name)));
  }
}

Result<std::vector<Constant>> evaluate_takt(const Graph& graph, const Node& node, std::span<const Constant> values) {
  const TaktOperator& op = *find_takt_operator(node.op);
  TAKT_ASSIGN(const std::vector<ValueId> read, kernel_operands(graph, node));
  TAKT_ASSIGN(const OperatorCall call, op.describe(OperatorInputs{graph, node}));
  std::vector<Operand> operands;
  const auto add = [&](const std::vector<std::byte>& bytes) {
    operands.push_back({const_cast<std::byte*>(bytes.data()), bytes.size()});  // NOLINT: inputs are only read
  };
  for (const ValueId id : read) {
    if (id == kNoValue) {
      operands.push_back({});
    } else {
      add(values[static_cast<std::size_t>(id)].bytes);
    }
  }
  std::vector<Constant> results;
  for (const ValueId id : node.outputs) {
    results.push_back(Constant::allocate(graph[id].type->dtype, graph[id].type->shape));
  }
  for (const Constant& result : results) add(result.bytes);
  std::vector<std::vector<std::byte>> scratch;
  for (const std::uint64_t bytes : call.scratch) scratch.emplace_back(bytes);
  for (const std::vector<std::byte>& bytes : scratch) add(bytes);
  op.evaluate(call.params.data(), operands.data());
  return results;
}

}  // namespace takt::ir
