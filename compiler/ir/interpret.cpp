#include "compiler/ir/counted.h"
#include "compiler/ir/operators.h"

namespace takt::ir {

Result<std::vector<Constant>> evaluate(const Graph& graph, const Node& node, std::span<const kernels::Tensor> inputs) {
  const Operator* op = find_operator(node.op);
  if (op == nullptr || op->evaluate == nullptr) {
    return fail(Code::kInternal, "node " + printable(node.name) + " (" + printable(node.op) + ") cannot be evaluated");
  }
  std::vector<Constant> results;
  std::vector<kernels::Tensor> outputs;
  for (const ValueId id : node.outputs) {
    const Type& type = *graph[id].type;
    results.push_back(Constant::allocate(type.dtype, type.shape));
  }
  outputs.reserve(results.size());
  for (const Constant& result : results) outputs.push_back(result.tensor());
  if (Status done = op->evaluate(node, inputs, outputs); !done) {
    return fail(std::move(done).error().with_context("node " + printable(node.name) + " (" + node.op + ")"));
  }
  return results;
}

Result<std::vector<Constant>> interpret(const Graph& graph, std::span<const Constant> inputs) {
  if (inputs.size() != graph.inputs.size()) {
    return fail(Code::kUsage, "interpret: " + std::to_string(inputs.size()) + " inputs for a graph with " +
                                  std::to_string(graph.inputs.size()));
  }
  std::vector<Constant> values(graph.values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (graph.values[i].constant) values[i] = *graph.values[i].constant;
  }
  for (const State& state : graph.states) {
    const Type& type = *graph[state.previous].type;
    values[static_cast<std::size_t>(state.previous)] =
        state.initial != nullptr ? *state.initial : Constant::allocate(type.dtype, type.shape);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = graph[graph.inputs[i]];
    Type found = *value.type;
    found.dtype = inputs[i].dtype;
    found.shape = inputs[i].shape;
    if (!(found == *value.type) || inputs[i].bytes.size() != static_cast<std::size_t>(inputs[i].shape.elements()) *
                                                                 kernels::size_of(inputs[i].dtype)) {
      return fail(Code::kUsage, "interpret: input " + printable(value.name) + " is " + to_string(found) +
                                    ", expected " + to_string(*value.type));
    }
    values[static_cast<std::size_t>(graph.inputs[i])] = inputs[i];
  }
  const auto runs = [&](int guard) {
    for (; guard >= 0; guard = graph.guards[static_cast<std::size_t>(guard)].parent) {
      const Guard& g = graph.guards[static_cast<std::size_t>(guard)];
      const std::vector<std::byte>& condition = values[static_cast<std::size_t>(g.condition)].bytes;
      // Without a value: the guard's own parent does not run.
      if (condition.empty() || (condition[0] != std::byte{0}) != g.when) return false;
    }
    return true;
  };
  for (const Node& node : graph.nodes) {
    if (!runs(node.guard)) continue;
    std::vector<kernels::Tensor> operands(node.inputs.size());
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (node.inputs[i] != kNoValue) operands[i] = values[static_cast<std::size_t>(node.inputs[i])].tensor();
    }
    TAKT_ASSIGN(std::vector<Constant> results,
                is_counted(graph, node) ? evaluate_counted(graph, node, values) : evaluate(graph, node, operands));
    for (std::size_t i = 0; i < results.size(); ++i) {
      values[static_cast<std::size_t>(node.outputs[i])] = std::move(results[i]);
    }
  }
  return values;
}

}  // namespace takt::ir
