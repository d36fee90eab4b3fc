#include "compiler/passes/rewrite.h"

#include <algorithm>

#include "compiler/ir/counted.h"
#include "compiler/ir/operators.h"
#include "compiler/passes/passes.h"

namespace takt::compiler {

using ir::Graph;
using ir::Node;
using ir::ValueId;

Uses::Uses(const Graph& graph)
    : writers_(graph.producers()), readers_(graph.consumers()), results_(graph.values.size(), false) {
  for (const ValueId id : graph.outputs) results_[static_cast<std::size_t>(id)] = true;
  for (const ir::State& state : graph.states) results_[static_cast<std::size_t>(state.next)] = true;
  // What guards and types read is read by name.
  for (const ir::Guard& guard : graph.guards) results_[static_cast<std::size_t>(guard.condition)] = true;
  for (const ir::Value& value : graph.values) {
    if (value.type && value.type->count != ir::kNoValue) results_[static_cast<std::size_t>(value.type->count)] = true;
  }
  for (const Node& node : graph.nodes) guards_.push_back(node.guard);
}

int Uses::only_reader(ValueId id) const {
  const std::vector<int>& all = readers(id);
  if (all.size() != 1 || is_result(id)) return -1;
  // A reader under another guard keeps its writer where it is.
  const int from = writer(id);
  return from < 0 || guards_[static_cast<std::size_t>(from)] == guards_[static_cast<std::size_t>(all[0])] ? all[0] : -1;
}

void rewrite(Graph& graph, bool (*rule)(Graph& graph, const Uses& uses, std::size_t n), Nodes nodes) {
  bool changed = true;
  while (changed) {
    changed = false;
    Uses uses(graph);
    for (std::size_t n = 0; n < graph.nodes.size();) {
      const bool counted = ir::is_counted(graph, graph.nodes[n]);
      if (counted != (nodes == Nodes::kCounted) || !rule(graph, uses, n)) {
        ++n;
        continue;
      }
      changed = true;
      (void)remove_dead(graph);
      uses = Uses(graph);
    }
  }
}

bool substitute(Graph& graph, const Uses& uses, ValueId from, ValueId to) {
  if (!uses.is_result(from)) {
    graph.replace_uses(from, to);
    return true;
  }
  const int writer = uses.writer(to);
  const int old = uses.writer(from);
  if (writer < 0 || uses.is_result(to)) return false;
  graph.replace_reads(to, from);
  Node& dead = graph.nodes[static_cast<std::size_t>(old)];
  std::replace(dead.outputs.begin(), dead.outputs.end(), from,
               graph.add_value(graph[from].name + ".gone", graph[from].type));
  Node& kept = graph.nodes[static_cast<std::size_t>(writer)];
  std::replace(kept.outputs.begin(), kept.outputs.end(), to, from);
  // Nothing may read the value that its own writer now makes: the dead node alone did.
  std::replace(dead.inputs.begin(), dead.inputs.end(), from, to);
  graph[from].type = graph[to].type;
  return true;
}

std::span<const float> floats(const ir::Constant& constant) {
  return {constant.tensor().as<const float>(), static_cast<std::size_t>(constant.shape.elements())};
}

std::optional<float> scalar(const Graph& graph, ValueId id) {
  if (id == ir::kNoValue || !graph[id].constant) return std::nullopt;
  const ir::Constant& constant = *graph[id].constant;
  if (constant.dtype != ir::DType::kF32 || constant.shape.elements() != 1) return std::nullopt;
  return floats(constant)[0];
}

bool keeps_types(const Graph& graph, const Node& node) {
  const auto types = ir::infer(graph, node);
  if (!types) return false;
  for (std::size_t i = 0; i < types->size(); ++i) {
    if (!((*types)[i] == *graph[node.outputs[i]].type)) return false;
  }
  return true;
}

}  // namespace takt::compiler
