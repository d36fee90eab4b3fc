#include <algorithm>

#include "compiler/ir/operators.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

namespace takt::compiler {
namespace {

constexpr std::int64_t kMost =
    1 << 24;  // elements of a folded constant: a plan should not grow by what is cheap to compute

}  // namespace

Status fold_constants(ir::Graph& graph) {
  std::vector<ir::Node> kept;
  const Uses uses(graph);
  for (ir::Node& node : graph.nodes) {
    // A result of the graph has to be written by someone.
    const bool foldable =
        std::all_of(node.inputs.begin(), node.inputs.end(),
                    [&](ir::ValueId id) { return id == ir::kNoValue || graph[id].constant != nullptr; }) &&
        std::all_of(node.outputs.begin(), node.outputs.end(),
                    [&](ir::ValueId id) { return !uses.is_result(id) && graph[id].type->shape.elements() <= kMost; });
    if (!foldable) {
      kept.push_back(std::move(node));
      continue;
    }
    TAKT_ASSIGN(std::vector<ir::Constant> results,
                ir::evaluate(graph, node, ir::OperatorInputs{graph, node}.tensors()));
    for (std::size_t i = 0; i < results.size(); ++i) {
      graph[node.outputs[i]].constant = std::make_shared<const ir::Constant>(std::move(results[i]));
    }
  }
  graph.nodes = std::move(kept);
  return {};
}

}  // namespace takt::compiler
