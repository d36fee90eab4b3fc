#include <algorithm>
#include <cstring>

#include "compiler/ir/counted.h"
#include "compiler/ir/operators.h"
#include "compiler/ir/takt_operators.h"

namespace takt::ir {
namespace {

// Shape arithmetic is small. Larger constants wait for the folding pass, which can be switched off.
constexpr std::int64_t kSmall = 4096;

// Operations that nobody waits for: a small result may take long.
constexpr std::uint64_t kQuick = 1 << 26;

bool computable(const Graph& graph, const Node& node, const std::vector<Type>& types) {
  const bool small =
      std::all_of(types.begin(), types.end(), [](const Type& t) { return t.shape.elements() <= kSmall; });
  if (!small || is_counted(graph, node)) return false;
  if (node.op == "Shape") return true;  // needs the type of its input alone
  const Operator* op = find_operator(node.op);
  if (op->flops != nullptr && op->flops(OperatorInputs{graph, node}, types) > kQuick) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId id) { return id == kNoValue || graph[id].constant != nullptr; });
}

// What the data decide is known when they are: the results become constants of their true shapes.
Result<bool> resolved(Graph& graph, const Node& node) {
  if (find_takt_operator(node.op) != nullptr) return false;
  const bool known = std::all_of(node.inputs.begin(), node.inputs.end(),
                                 [&](ValueId id) { return id == kNoValue || graph[id].constant != nullptr; });
  const bool small = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
    return id == kNoValue || graph[id].type->shape.elements() <= kSmall;
  });
  if (!known || !small) return false;
  std::vector<Constant> values(graph.values.size());
  for (const ValueId id : node.inputs) {
    if (id != kNoValue) values[static_cast<std::size_t>(id)] = *graph[id].constant;
  }
  TAKT_ASSIGN(const std::vector<Constant> results, evaluate_counted(graph, node, values));
  std::int32_t count = 0;
  std::memcpy(&count, results.back().bytes.data(), sizeof count);
  for (std::size_t i = 0; i < results.size(); ++i) {
    Value& value = graph[node.outputs[i]];
    const bool counted = value.type->count != kNoValue;
    value.constant = std::make_shared<const Constant>(counted ? cut(results[i], value.type->axis, count) : results[i]);
    value.type = Type{value.constant->dtype, value.constant->shape};
  }
  return true;
}

// Numbers of a settled Reshape hold for any count.
void free_counted_extent(Graph& graph, Node& node) {
  const Type& y = *graph[node.outputs[0]].type;
  std::vector<std::int64_t> extents(y.shape.dims, y.shape.dims + y.shape.rank);
  extents[static_cast<std::size_t>(y.axis)] = -1;
  node.inputs[1] = graph.add_constant(graph[node.outputs[0]].name + ".counted", Constant::of(extents));
}

}  // namespace

Status append(Graph& graph, Node node) {
  const bool counted = is_counted(graph, node);
  if (counted) TAKT_RETURN_IF_ERROR(prepare_counted(graph, node));
  TAKT_ASSIGN(const std::vector<Type> types, infer(graph, node));
  for (std::size_t i = 0; i < types.size(); ++i) graph[node.outputs[i]].type = types[i];
  if (computable(graph, node, types)) {
    TAKT_ASSIGN(std::vector<Constant> results, evaluate(graph, node, OperatorInputs{graph, node}.tensors()));
    for (std::size_t i = 0; i < results.size(); ++i) {
      graph[node.outputs[i]].constant = std::make_shared<const Constant>(std::move(results[i]));
    }
    return {};
  }
  if (counted) {
    TAKT_ASSIGN(const bool done, resolved(graph, node));
    if (done) return {};
  }
  const Operator* op = find_operator(node.op);
  // Positions of a counted dimension mean what they say for any count: only axes and shapes are settled there.
  const bool positions = counted && (node.op == "Gather" || node.op == "Slice");
  if (op->settle != nullptr && !positions) op->settle(graph, node);
  if (counted && node.op == "Reshape") free_counted_extent(graph, node);
  graph.nodes.push_back(std::move(node));
  return {};
}

}  // namespace takt::ir
