#include <algorithm>

#include "compiler/ir/operators.h"

namespace takt::ir {
namespace {

// Shape arithmetic is small. Larger constants wait for the folding pass, which can be switched off.
constexpr std::int64_t kSmall = 4096;

// Operations that nobody waits for: a small result may take long.
constexpr std::uint64_t kQuick = 1 << 26;

bool computable(const Graph& graph, const Node& node, const std::vector<Type>& types) {
  const bool small =
      std::all_of(types.begin(), types.end(), [](const Type& t) { return t.shape.elements() <= kSmall; });
  if (!small) return false;
  if (node.op == "Shape") return true;  // needs the type of its input alone
  const Operator* op = find_operator(node.op);
  if (op->flops != nullptr && op->flops(OperatorInputs{graph, node}, types) > kQuick) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId id) { return id == kNoValue || graph[id].constant != nullptr; });
}

}  // namespace

Status append(Graph& graph, Node node) {
  TAKT_ASSIGN(const std::vector<Type> types, infer(graph, node));
  for (std::size_t i = 0; i < types.size(); ++i) graph[node.outputs[i]].type = types[i];
  if (computable(graph, node, types)) {
    TAKT_ASSIGN(std::vector<Constant> results, evaluate(graph, node, OperatorInputs{graph, node}.tensors()));
    for (std::size_t i = 0; i < results.size(); ++i) {
      graph[node.outputs[i]].constant = std::make_shared<const Constant>(std::move(results[i]));
    }
    return {};
  }
  const Operator* op = find_operator(node.op);
  if (op->settle != nullptr) op->settle(graph, node);
  graph.nodes.push_back(std::move(node));
  return {};
}

}  // namespace takt::ir
