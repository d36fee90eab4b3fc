#include <algorithm>

#include "compiler/passes/passes.h"

namespace takt::compiler {

std::vector<bool> keep_needed(ir::Graph& graph) {
  std::vector<bool> needed(graph.values.size(), false);
  const auto need = [&](ir::ValueId id) {
    if (id != ir::kNoValue) needed[static_cast<std::size_t>(id)] = true;
  };
  std::for_each(graph.outputs.begin(), graph.outputs.end(), need);
  for (const ir::State& state : graph.states) need(state.next);
  std::vector<ir::Node> kept;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool alive = std::any_of(node->outputs.begin(), node->outputs.end(), [&](ir::ValueId id) {
      return id != ir::kNoValue && needed[static_cast<std::size_t>(id)];
    });
    if (!alive) continue;
    std::for_each(node->inputs.begin(), node->inputs.end(), need);
    for (int g = node->guard; g >= 0; g = graph.guards[static_cast<std::size_t>(g)].parent) {
      need(graph.guards[static_cast<std::size_t>(g)].condition);
    }
    for (const ir::ValueId id : node->outputs) {
      if (graph[id].type) need(graph[id].type->count);
    }
    kept.push_back(std::move(*node));
  }
  std::reverse(kept.begin(), kept.end());
  graph.nodes = std::move(kept);
  return needed;
}

Status remove_dead(ir::Graph& graph) {
  keep_needed(graph);
  return {};
}

}  // namespace takt::compiler
