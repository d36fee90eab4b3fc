#include "compiler/ir/statistics.h"

#include "compiler/ir/operators.h"

namespace takt::ir {

Statistics statistics(const Graph& graph) {
  Statistics s;
  std::vector<bool> counted(graph.values.size(), false);
  const auto bytes = [&](ValueId id) {
    const Type& type = *graph[id].type;
    return static_cast<std::uint64_t>(type.shape.elements()) * kernels::size_of(type.dtype);
  };
  for (const Node& node : graph.nodes) {
    ++s.nodes;
    ++s.operators[node.op];
    std::vector<Type> outputs;
    for (const ValueId id : node.outputs) {
      outputs.push_back(*graph[id].type);
      s.activation_bytes += bytes(id);
    }
    for (const ValueId id : node.inputs) {
      if (id == kNoValue) continue;
      if (!graph[id].constant) {
        s.activation_bytes += bytes(id);
      } else if (!counted[static_cast<std::size_t>(id)]) {
        counted[static_cast<std::size_t>(id)] = true;
        s.constant_bytes += bytes(id);
      }
    }
    const Operator* op = find_operator(node.op);
    if (op != nullptr && op->flops != nullptr) s.flops += op->flops(OperatorInputs{graph, node}, outputs);
  }
  return s;
}

}  // namespace takt::ir
