#include <algorithm>
#include <optional>

#include "compiler/ir/counted.h"
#include "compiler/ir/operators.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

namespace takt::compiler {
namespace {

constexpr std::int64_t kMost =
    1 << 24;  // elements of a folded constant: a plan should not grow by what is cheap to compute

// Branches whose condition has become known: their nodes run always or never, and selections are made.
void settle_guards(ir::Graph& graph) {
  const auto known = [&](ir::ValueId condition) -> std::optional<bool> {
    if (!graph[condition].constant) return std::nullopt;
    return graph[condition].constant->bytes[0] != std::byte{0};
  };
  for (ir::Node& node : graph.nodes) {
    // The first guard of a chain that is not known to hold.
    while (node.guard >= 0) {
      const ir::Guard& guard = graph.guards[static_cast<std::size_t>(node.guard)];
      if (known(guard.condition) != guard.when) break;
      node.guard = guard.parent;
    }
  }
  for (ir::Guard& guard : graph.guards) {
    while (guard.parent >= 0) {
      const ir::Guard& parent = graph.guards[static_cast<std::size_t>(guard.parent)];
      if (known(parent.condition) != parent.when) break;
      guard.parent = parent.parent;
    }
  }
  const auto never = [&](const ir::Node& node) {
    for (int g = node.guard; g >= 0; g = graph.guards[static_cast<std::size_t>(g)].parent) {
      const ir::Guard& guard = graph.guards[static_cast<std::size_t>(g)];
      if (known(guard.condition) == !guard.when) return true;
    }
    return false;
  };
  for (ir::Node& node : graph.nodes) {
    const auto chosen = node.op == "takt.Select" ? known(node.inputs[0]) : std::nullopt;
    if (!chosen) continue;
    node.op = "Identity";
    node.inputs = {node.inputs[*chosen ? 1 : 2]};
  }
  std::erase_if(graph.nodes, never);
}

}  // namespace

Status fold_constants(ir::Graph& graph) {
  std::vector<ir::Node> kept;
  const Uses uses(graph);
  for (ir::Node& node : graph.nodes) {
    // A result of the graph has to be written by someone.
    const bool foldable =
        !ir::is_counted(graph, node) &&
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
  settle_guards(graph);
  return {};
}

}  // namespace takt::compiler
