#include <algorithm>

#include "compiler/ir/operators.h"

namespace takt::ir {
namespace {

// Shape arithmetic is small. Larger constants wait for the folding pass, which can be switched off.
constexpr std::int64_t kSmall = 4096;

bool computable(const Graph& graph, const Node& node, const std::vector<Type>& types) {
  const bool small =
      std::all_of(types.begin(), types.end(), [](const Type& t) { return t.shape.elements() <= kSmall; });
  if (!small) return false;
  if (node.op == "Shape") return true;  // needs the type of its input alone
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId id) { return id == kNoValue || graph[id].constant != nullptr; });
}

}  // namespace

Status resolve(Graph& graph) {
  std::vector<Node> kept;
  for (Node& node : graph.nodes) {
    auto types = infer(graph, node);
    if (!types) return fail(std::move(types).error());
    for (std::size_t i = 0; i < types->size(); ++i) graph[node.outputs[i]].type = (*types)[i];
    if (computable(graph, node, *types)) {
      auto results = evaluate(graph, node, OperatorInputs{graph, node}.tensors());
      if (!results) return fail(std::move(results).error());
      for (std::size_t i = 0; i < results->size(); ++i) {
        graph[node.outputs[i]].constant = std::make_shared<const Constant>(std::move((*results)[i]));
      }
      continue;
    }
    const Operator* op = find_operator(node.op);
    if (op->settle != nullptr) op->settle(graph, node);
    kept.push_back(std::move(node));
  }
  graph.nodes = std::move(kept);
  return {};
}

}  // namespace takt::ir
