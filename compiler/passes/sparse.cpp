#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

namespace takt::compiler {
namespace {

using ir::Constant;
using ir::Graph;
using ir::Node;
using ir::ValueId;

// Inputs of takt.SparseConv.
constexpr std::size_t kWeights = 1, kBias = 3, kResidual = 4;

bool has(const Node& node, std::size_t i) { return node.inputs.size() > i && node.inputs[i] != ir::kNoValue; }

// The convolution that writes x for node n alone, whose sums nothing has been done to yet; nullptr: there is none.
const Node* open_convolution(const Graph& graph, const Uses& uses, ValueId x, std::size_t n) {
  const int writer = uses.writer(x);
  if (writer < 0 || uses.only_reader(x) != static_cast<int>(n)) return nullptr;
  const Node& conv = graph.nodes[static_cast<std::size_t>(writer)];
  const bool open = conv.op == "takt.SparseConv" && conv.text("activation", "none") == "none" &&
                    graph[conv.inputs[kWeights]].constant && (!has(conv, kBias) || graph[conv.inputs[kBias]].constant);
  return open ? &conv : nullptr;
}

// The convolution takes the place of the later node; its old node loses its readers and goes.
bool take_place(Graph& graph, std::size_t later, Node conv) {
  conv.outputs = graph.nodes[later].outputs;
  if (!keeps_types(graph, conv)) return false;
  conv.guard = graph.nodes[later].guard;
  graph.nodes[later] = std::move(conv);
  return true;
}

// One number, or one for each of the last dimension.
std::optional<std::vector<double>> per_channel(const Graph& graph, ValueId id, std::int64_t channels) {
  if (id == ir::kNoValue || !graph[id].constant || graph[id].constant->dtype != ir::DType::kF32) return std::nullopt;
  const ir::Shape& shape = graph[id].constant->shape;
  const std::span<const float> values = floats(*graph[id].constant);
  const bool along = shape.rank > 0 && shape.dims[shape.rank - 1] == channels && shape.elements() == channels;
  if (shape.rank > 2 || (!along && shape.elements() != 1)) return std::nullopt;
  std::vector<double> out;
  for (std::int64_t c = 0; c < channels; ++c) {
    out.push_back(static_cast<double>(values[along ? static_cast<std::size_t>(c) : 0]));
  }
  return out;
}

// A product or sum with constants: weights and bias change, in double, rounded once.
bool fold_affine(Graph& graph, const Uses& uses, std::size_t n) {
  const Node& node = graph.nodes[n];
  if (node.op != "Mul" && node.op != "Div" && node.op != "Add" && node.op != "Sub") return false;
  for (const std::size_t x_at : {std::size_t{0}, std::size_t{1}}) {
    const Node* const found = open_convolution(graph, uses, node.inputs[x_at], n);
    if (found == nullptr || has(*found, kResidual) || (node.op == "Div" && x_at == 1)) continue;
    Constant weights = *graph[found->inputs[kWeights]].constant;
    const std::int64_t channels = weights.shape.dims[2];
    const auto values = per_channel(graph, node.inputs[1 - x_at], channels);
    if (!values) continue;
    Constant bias = Constant::allocate(ir::DType::kF32, ir::Shape{1, {channels}});
    if (has(*found, kBias)) bias = *graph[found->inputs[kBias]].constant;
    std::vector<double> multiply, add;
    for (const double value : *values) {
      multiply.push_back(node.op == "Mul"                ? value
                         : node.op == "Div"              ? 1 / value
                         : node.op == "Sub" && x_at == 1 ? -1
                                                         : 1);
      add.push_back(node.op == "Add" || (node.op == "Sub" && x_at == 1) ? value : node.op == "Sub" ? -value : 0);
    }
    auto* const w = weights.tensor().as<float>();
    for (std::int64_t i = 0; i < weights.shape.elements(); ++i) {
      w[i] = static_cast<float>(static_cast<double>(w[i]) * multiply[static_cast<std::size_t>(i % channels)]);
    }
    auto* const b = bias.tensor().as<float>();
    for (std::int64_t c = 0; c < channels; ++c) {
      const auto at = static_cast<std::size_t>(c);
      b[c] = static_cast<float>(static_cast<double>(b[c]) * multiply[at] + add[at]);
    }
    Node merged = *found;
    merged.inputs.resize(kBias + 1, ir::kNoValue);
    merged.inputs[kWeights] = graph.add_constant(merged.name + ".weights", std::move(weights));
    merged.inputs[kBias] = graph.add_constant(merged.name + ".bias", std::move(bias));
    if (take_place(graph, n, std::move(merged))) return true;
  }
  return false;
}

bool fuse_residual(Graph& graph, const Uses& uses, std::size_t n) {
  const Node& add = graph.nodes[n];
  if (add.op != "Add") return false;
  for (const std::size_t x_at : {std::size_t{1}, std::size_t{0}}) {
    const Node* const conv = open_convolution(graph, uses, add.inputs[x_at], n);
    const ValueId other = add.inputs[1 - x_at];
    if (conv == nullptr || has(*conv, kResidual) || graph[other].constant ||
        !(*graph[other].type == *graph[add.inputs[x_at]].type)) {
      continue;
    }
    Node merged = *conv;
    merged.inputs.resize(kResidual + 1, ir::kNoValue);
    merged.inputs[kResidual] = other;
    if (take_place(graph, n, std::move(merged))) return true;
  }
  return false;
}

bool fuse_activation(Graph& graph, const Uses& uses, std::size_t n) {
  const Node& node = graph.nodes[n];
  if (node.inputs.empty() || node.inputs[0] == ir::kNoValue) return false;
  const Node* const conv = open_convolution(graph, uses, node.inputs[0], n);
  if (conv == nullptr) return false;
  Node merged = *conv;
  return describe_activation(graph, node, &merged) && take_place(graph, n, std::move(merged));
}

}  // namespace

Status fuse_sparse(Graph& graph) {
  rewrite(graph, fold_affine, Nodes::kCounted);
  rewrite(graph, fuse_residual, Nodes::kCounted);
  rewrite(graph, fuse_activation, Nodes::kCounted);
  return {};
}

}  // namespace takt::compiler
