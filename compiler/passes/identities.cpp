#include <algorithm>
#include <string_view>

#include "compiler/ir/geometry.h"
#include "compiler/ir/operators.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

namespace takt::compiler {
namespace {

using ir::Graph;
using ir::Node;
using ir::ValueId;

bool same_type(const Graph& graph, const Node& node) {
  return *graph[node.inputs[0]].type == *graph[node.outputs[0]].type;
}

bool whole_slice(const Graph& graph, const Node& node) {
  const auto g = ir::slice_geometry(node, ir::OperatorInputs{graph, node}.tensors());
  return g && same_type(graph, node) &&
         std::all_of(g->step.begin(), g->step.end(), [](std::int64_t step) { return step > 0; });
}

bool no_resize(const Graph& graph, const Node& node) {
  const auto g = ir::resize_geometry(node, ir::OperatorInputs{graph, node}.tensors());
  using kernels::reference::Coordinates;
  return g && same_type(graph, node) && std::all_of(g->axes.begin(), g->axes.end(), [](const auto& axis) {
           return axis.scale == 1 && axis.coordinates != Coordinates::kTfCropAndResize &&
                  axis.coordinates != Coordinates::kTfHalfPixelForNn;
         });
}

std::vector<std::int64_t> compose(const std::vector<std::int64_t>& first, const std::vector<std::int64_t>& second) {
  std::vector<std::int64_t> both;
  for (const std::int64_t d : second) both.push_back(first[static_cast<std::size_t>(d)]);
  return both;
}

bool is_identity(const std::vector<std::int64_t>& perm) {
  for (std::size_t d = 0; d < perm.size(); ++d) {
    if (perm[d] != static_cast<std::int64_t>(d)) return false;
  }
  return true;
}

bool changes_nothing(const Graph& graph, const Node& node) {
  if (node.op == "Identity") return true;
  if (node.op == "Reshape" || node.op == "Cast" || node.op == "Expand" || node.op == "Pad") {
    if (node.op != "Pad") return same_type(graph, node);
    const auto g = ir::pad_geometry(node, ir::OperatorInputs{graph, node}.tensors());
    const auto zero = [](std::int64_t pad) { return pad == 0; };
    return g && std::all_of(g->before.begin(), g->before.end(), zero) &&
           std::all_of(g->after.begin(), g->after.end(), zero);
  }
  if (node.op == "Concat") return node.inputs.size() == 1;
  if (node.op == "Split") return node.outputs.size() == 1;
  if (node.op == "Slice") return whole_slice(graph, node);
  if (node.op == "Resize") return no_resize(graph, node);
  return node.op == "Transpose" && is_identity(node.integers("perm"));
}

bool remove(Graph& graph, const Uses& uses, std::size_t n) {
  const Node& node = graph.nodes[n];
  return changes_nothing(graph, node) && substitute(graph, uses, node.outputs[0], node.inputs[0]);
}

// Reshape of Reshape, Transpose of Transpose: the second does both.
bool merge_runs(Graph& graph, const Uses& uses, std::size_t n) {
  Node& node = graph.nodes[n];
  if (node.op != "Reshape" && node.op != "Transpose") return false;
  const int before = uses.writer(node.inputs[0]);
  if (before < 0 || graph.nodes[static_cast<std::size_t>(before)].op != node.op) return false;
  const Node& first = graph.nodes[static_cast<std::size_t>(before)];
  if (node.op == "Transpose") node.attributes["perm"] = compose(first.integers("perm"), node.integers("perm"));
  node.inputs[0] = first.inputs[0];
  return true;
}

// Operators that treat every element alike, wherever it lies.
bool elementwise(std::string_view op) {
  static constexpr std::string_view kNames[] = {"Abs",       "Clip", "Exp",      "HardSigmoid", "HardSwish",
                                                "LeakyRelu", "Neg",  "Relu",     "Sqrt",        "Sigmoid",
                                                "Tanh",      "Cast", "takt.Silu"};
  return std::find(std::begin(kNames), std::end(kNames), op) != std::end(kNames);
}

// Transpose, operator, Transpose: the operator moves to the front, where the transposes meet. It takes the place of the
// first transpose, so the order of the nodes stays topological.
bool meet(Graph& graph, const Uses& uses, std::size_t n) {
  Node& first = graph.nodes[n];
  if (first.op != "Transpose") return false;
  const int between = uses.only_reader(first.outputs[0]);
  if (between < 0) return false;
  Node& node = graph.nodes[static_cast<std::size_t>(between)];
  if (node.inputs[0] != first.outputs[0] || (node.op != "Softmax" && !elementwise(node.op))) return false;
  const int after = uses.only_reader(node.outputs[0]);
  if (after < 0 || graph.nodes[static_cast<std::size_t>(after)].op != "Transpose") return false;
  const std::vector<std::int64_t> perm = first.integers("perm");
  if (node.op == "Softmax") {
    node.attributes["axis"] = perm[static_cast<std::size_t>(node.integer("axis", 0))];
  }
  const ValueId x = first.inputs[0];
  const ValueId result = node.outputs[0];
  ir::Type type = *graph[x].type;
  type.dtype = graph[result].type->dtype;
  const ValueId inner = graph.add_value(node.name + ".inner", type);
  node.inputs[0] = x;
  node.outputs[0] = inner;
  first.inputs[0] = inner;
  first.outputs[0] = result;
  graph[result].type->dtype = graph[inner].type->dtype;
  // The operator's other inputs are constants (limits of Clip), known at the earlier place too.
  std::swap(graph.nodes[n], graph.nodes[static_cast<std::size_t>(between)]);
  return true;
}

bool meet_if_constant(Graph& graph, const Uses& uses, std::size_t n) {
  const int between = graph.nodes[n].op == "Transpose" ? uses.only_reader(graph.nodes[n].outputs[0]) : -1;
  if (between < 0) return false;
  const Node& node = graph.nodes[static_cast<std::size_t>(between)];
  const bool movable = std::all_of(node.inputs.begin() + 1, node.inputs.end(),
                                   [&](ValueId id) { return id == ir::kNoValue || graph[id].constant != nullptr; });
  return movable && meet(graph, uses, n);
}

}  // namespace

Status remove_identities(Graph& graph) {
  rewrite(graph, meet_if_constant);
  rewrite(graph, merge_runs);
  rewrite(graph, remove);
  return {};
}

}  // namespace takt::compiler
