#include <algorithm>
#include <map>
#include <tuple>

#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"
#include "runtime/base/digest.h"

namespace takt::compiler {
namespace {

using ir::ValueId;

void merge_constants(ir::Graph& graph) {
  std::map<std::tuple<ir::DType, std::string, Digest>, ValueId> first;
  for (std::size_t i = 0; i < graph.values.size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    const auto constant = graph[id].constant;
    if (!constant) continue;
    const auto [entry, fresh] = first.emplace(
        std::tuple(constant->dtype, ir::to_string(constant->shape), digest(std::span(constant->bytes))), id);
    // Equal digests are only a hint; a result keeps its own value.
    if (fresh || graph[entry->second].constant->bytes != constant->bytes) continue;
    for (ir::Node& node : graph.nodes) std::replace(node.inputs.begin(), node.inputs.end(), id, entry->second);
  }
}

bool merge_call(ir::Graph& graph, const Uses& uses, std::size_t n) {
  const ir::Node& node = graph.nodes[n];
  for (const ValueId input : node.inputs) {
    if (input == ir::kNoValue) continue;
    // An equal call reads the same values: it is among the readers of any of them.
    for (const int other : uses.readers(input)) {
      if (static_cast<std::size_t>(other) >= n) break;
      const ir::Node& earlier = graph.nodes[static_cast<std::size_t>(other)];
      if (earlier.op != node.op || earlier.inputs != node.inputs || earlier.attributes != node.attributes ||
          earlier.outputs.size() != node.outputs.size() || !graph.implies(node.guard, earlier.guard)) {
        continue;
      }
      bool results = false;
      for (const ValueId id : node.outputs) results = results || uses.is_result(id);
      if (results) continue;  // it writes what the caller asked for by name
      for (std::size_t i = 0; i < node.outputs.size(); ++i) graph.replace_uses(node.outputs[i], earlier.outputs[i]);
      return true;
    }
    return false;
  }
  return false;
}

}  // namespace

Status merge_common(ir::Graph& graph) {
  merge_constants(graph);
  rewrite(graph, merge_call);
  return {};
}

}  // namespace takt::compiler
