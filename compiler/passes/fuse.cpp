#include "compiler/ir/operators.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

namespace takt::compiler {
namespace {

using ir::Graph;
using ir::Node;
using ir::ValueId;

// Only convolutions of constant weights have a kernel that does more.
bool open_convolution(const Graph& graph, const Node& node) {
  if ((node.op != "Conv" && node.op != "ConvTranspose") || node.text("activation", "none") != "none") return false;
  const bool bias = node.inputs.size() > 2 && node.inputs[2] != ir::kNoValue;
  return graph[node.inputs[1]].constant && (!bias || graph[node.inputs[2]].constant);
}

// The convolution takes the place of the later node, where everything that it reads has been written. Its old node
// loses its readers and goes.
void take_place(Graph& graph, std::size_t later, Node conv) {
  conv.outputs = graph.nodes[later].outputs;
  conv.guard = graph.nodes[later].guard;
  graph.nodes[later] = std::move(conv);
}

bool fuse_residual(Graph& graph, const Uses& uses, std::size_t n) {
  const Node& add = graph.nodes[n];
  if (add.op != "Add") return false;
  for (const std::size_t i : {std::size_t{1}, std::size_t{0}}) {
    const ValueId x = add.inputs[i];
    const ValueId other = add.inputs[1 - i];
    const int writer = uses.writer(x);
    if (writer < 0 || uses.only_reader(x) != static_cast<int>(n)) continue;
    const Node& conv = graph.nodes[static_cast<std::size_t>(writer)];
    if (!open_convolution(graph, conv) || conv.op != "Conv" || conv.inputs.size() > 3 || graph[other].constant)
      continue;
    Node merged = conv;
    merged.inputs.resize(4, ir::kNoValue);
    merged.inputs[3] = other;
    if (!(graph[x].type->shape == graph[other].type->shape)) continue;
    take_place(graph, n, std::move(merged));
    return true;
  }
  return false;
}

bool fuse_activation(Graph& graph, const Uses& uses, std::size_t n) {
  const Node& node = graph.nodes[n];
  if (node.inputs.empty() || node.inputs[0] == ir::kNoValue) return false;
  const ValueId x = node.inputs[0];
  const int writer = uses.writer(x);
  if (writer < 0 || uses.only_reader(x) != static_cast<int>(n)) return false;
  const Node& conv = graph.nodes[static_cast<std::size_t>(writer)];
  if (!open_convolution(graph, conv)) return false;
  Node merged = conv;
  if (!describe_activation(graph, node, &merged)) return false;
  take_place(graph, n, std::move(merged));
  return true;
}

}  // namespace

bool describe_activation(const Graph& graph, const Node& node, Node* conv) {
  const auto set = [&](const char* name, float alpha, float beta) {
    conv->attributes["activation"] = std::string(name);
    conv->attributes["alpha"] = alpha;
    conv->attributes["beta"] = beta;
    return true;
  };
  if (node.op == "Relu") return set("relu", 0, 0);
  if (node.op == "LeakyRelu") return set("leaky", node.number("alpha", 0.01F), 0);
  if (node.op == "Sigmoid") return set("sigmoid", 0, 0);
  if (node.op == "HardSwish") return set("hardswish", 0, 0);
  if (node.op == "takt.Silu") return set("silu", 0, 0);
  if (node.op == "Clip" && node.inputs.size() == 3) {
    const auto lowest = scalar(graph, node.inputs[1]);
    const auto highest = scalar(graph, node.inputs[2]);
    return lowest && highest && set("clip", *lowest, *highest);
  }
  return false;
}

Status fuse_convolutions(Graph& graph) {
  rewrite(graph, fuse_residual);
  rewrite(graph, fuse_activation);
  return {};
}

}  // namespace takt::compiler
