#include "compiler/ir/statistics.h"

#include <algorithm>
#include <vector>

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
  // From where a value is written (the start, for inputs) to where it is read last (the end, for results).
  const std::size_t count = graph.nodes.size();
  std::vector<std::int64_t> change(count + 1, 0);
  std::vector<std::size_t> first(graph.values.size(), 0), last(graph.values.size(), 0);
  std::vector<bool> used(graph.values.size(), false);
  const auto touch = [&](ValueId id, std::size_t at, bool writes) {
    if (id == kNoValue || graph[id].constant) return;
    const auto v = static_cast<std::size_t>(id);
    used[v] = true;
    if (writes) first[v] = at;
    last[v] = std::max(last[v], at);
  };
  for (std::size_t n = 0; n < count; ++n) {
    for (const ValueId id : graph.nodes[n].inputs) touch(id, n, false);
    for (const ValueId id : graph.nodes[n].outputs) touch(id, n, true);
  }
  if (count > 0) {
    for (const ValueId id : graph.outputs) touch(id, count - 1, false);
    for (const State& state : graph.states) touch(state.next, count - 1, false);
  }
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    if (!used[v]) continue;
    const auto size = static_cast<std::int64_t>(bytes(static_cast<ValueId>(v)));
    change[first[v]] += size;
    change[last[v] + 1] -= size;
  }
  std::int64_t live = 0;
  for (const std::int64_t c : change) s.peak_bytes = std::max(s.peak_bytes, static_cast<std::uint64_t>(live += c));
  return s;
}

std::string to_json(const Statistics& s) {
  std::string out = "{\n  \"nodes\": " + std::to_string(s.nodes) + ",\n  \"operators\": {";
  const char* separator = "\n";
  for (const auto& [name, count] : s.operators) {
    out += separator + ("    \"" + name + "\": " + std::to_string(count));
    separator = ",\n";
  }
  out += s.operators.empty() ? "}" : "\n  }";
  out += ",\n  \"flops\": " + std::to_string(s.flops) + ",\n  \"constant_bytes\": " + std::to_string(s.constant_bytes) +
         ",\n  \"activation_bytes\": " + std::to_string(s.activation_bytes) +
         ",\n  \"peak_bytes\": " + std::to_string(s.peak_bytes) + "\n}\n";
  return out;
}

}  // namespace takt::ir
