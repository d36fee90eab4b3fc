#include <cmath>

#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

namespace takt::compiler {
namespace {

using ir::Constant;
using ir::Graph;
using ir::Node;
using ir::ValueId;

// y = multiply[c] * x + add[c] for every channel.
struct Affine {
  std::vector<double> multiply;
  std::vector<double> add;
};

std::optional<std::span<const float>> constant_floats(const Graph& graph, ValueId id) {
  if (id == ir::kNoValue || !graph[id].constant || graph[id].constant->dtype != ir::DType::kF32) return std::nullopt;
  return floats(*graph[id].constant);
}

std::optional<Affine> of_batch_normalization(const Graph& graph, const Node& node) {
  std::span<const float> parts[4];
  for (std::size_t i = 0; i < 4; ++i) {
    const auto part = constant_floats(graph, node.inputs[i + 1]);
    if (!part) return std::nullopt;
    parts[i] = *part;
  }
  const auto epsilon = static_cast<double>(node.number("epsilon", 1e-5F));
  Affine affine;
  for (std::size_t c = 0; c < parts[0].size(); ++c) {
    const double multiply = static_cast<double>(parts[0][c]) / std::sqrt(static_cast<double>(parts[3][c]) + epsilon);
    affine.multiply.push_back(multiply);
    affine.add.push_back(static_cast<double>(parts[1][c]) - static_cast<double>(parts[2][c]) * multiply);
  }
  return affine;
}

// Mul, Div, Add, Sub of an image tensor with a constant that is one number or one per channel. x is input `x_at`.
std::optional<Affine> of_binary(const Graph& graph, const Node& node, std::size_t x_at) {
  const ir::Shape& x = graph[node.inputs[x_at]].type->shape;
  const ValueId other = node.inputs[1 - x_at];
  const auto values = constant_floats(graph, other);
  if (!values || x.rank != 4 || !(graph[node.outputs[0]].type->shape == x)) return std::nullopt;
  const ir::Shape& shape = graph[other].constant->shape;
  for (int d = 0; d < shape.rank; ++d) {
    if (shape.dims[d] != 1 && d + 4 - shape.rank != 1) return std::nullopt;
  }
  Affine affine;
  for (std::int64_t c = 0; c < x.dims[1]; ++c) {
    const auto value = static_cast<double>((*values)[values->size() == 1 ? 0 : static_cast<std::size_t>(c)]);
    if (node.op == "Mul") {
      affine.multiply.push_back(value);
      affine.add.push_back(0);
    } else if (node.op == "Div" && x_at == 0) {
      affine.multiply.push_back(1 / value);
      affine.add.push_back(0);
    } else if (node.op == "Add") {
      affine.multiply.push_back(1);
      affine.add.push_back(value);
    } else if (node.op == "Sub") {
      affine.multiply.push_back(x_at == 0 ? 1 : -1);
      affine.add.push_back(x_at == 0 ? -value : value);
    } else {
      return std::nullopt;
    }
  }
  return affine;
}

bool plain_convolution(const Graph& graph, const Node& node) {
  if (node.op != "Conv" && node.op != "ConvTranspose") return false;
  const bool has_bias = node.inputs.size() > 2 && node.inputs[2] != ir::kNoValue;
  return node.text("activation", "none") == "none" && node.inputs.size() <= 3 &&
         constant_floats(graph, node.inputs[1]) && (!has_bias || constant_floats(graph, node.inputs[2]));
}

void fold_into(Graph& graph, Node& conv, const Affine& affine) {
  Constant weights = *graph[conv.inputs[1]].constant;
  auto* w = weights.tensor().as<float>();
  const ir::Shape& shape = weights.shape;
  const std::int64_t taps = shape.dims[2] * shape.dims[3];
  const std::int64_t groups = conv.integer("group", 1);
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    std::int64_t filter = i / (shape.dims[1] * taps);
    if (conv.op == "ConvTranspose") {  // [channel][filter of its group]
      filter = filter / (shape.dims[0] / groups) * shape.dims[1] + i / taps % shape.dims[1];
    }
    w[i] = static_cast<float>(static_cast<double>(w[i]) * affine.multiply[static_cast<std::size_t>(filter)]);
  }
  Constant bias = Constant::allocate(ir::DType::kF32, ir::Shape{1, {static_cast<std::int64_t>(affine.add.size())}});
  const bool has_bias = conv.inputs.size() > 2 && conv.inputs[2] != ir::kNoValue;
  for (std::size_t m = 0; m < affine.add.size(); ++m) {
    const double old = has_bias ? static_cast<double>(floats(*graph[conv.inputs[2]].constant)[m]) : 0;
    bias.tensor().as<float>()[m] = static_cast<float>(old * affine.multiply[m] + affine.add[m]);
  }
  conv.inputs.resize(3);
  conv.inputs[1] = graph.add_constant(conv.name + ".weights", std::move(weights));
  conv.inputs[2] = graph.add_constant(conv.name + ".bias", std::move(bias));
}

bool fold(Graph& graph, const Uses& uses, std::size_t n) {
  Node& node = graph.nodes[n];
  const bool normalisation = node.op == "BatchNormalization";
  if (!normalisation && node.op != "Mul" && node.op != "Div" && node.op != "Add" && node.op != "Sub") return false;
  for (std::size_t x_at = 0; x_at < (normalisation ? 1U : 2U); ++x_at) {
    const ValueId x = node.inputs[x_at];
    const int writer = uses.writer(x);
    if (writer < 0 || uses.only_reader(x) != static_cast<int>(n)) continue;
    Node& conv = graph.nodes[static_cast<std::size_t>(writer)];
    if (!plain_convolution(graph, conv)) continue;
    const auto affine = normalisation ? of_batch_normalization(graph, node) : of_binary(graph, node, x_at);
    if (!affine) continue;
    fold_into(graph, conv, *affine);
    // The convolution writes the result; this node, now without readers, goes.
    const ValueId result = node.outputs[0];
    node.outputs[0] = graph.add_value(node.name + ".gone", graph[result].type);
    conv.outputs[0] = result;
    node.inputs[x_at] = result;
    return true;
  }
  return false;
}

// y = fma(x, a, b) with a and b rounded to f32 where the operator itself does: the same bits.
bool as_depthwise(Graph& graph, const Uses& /*uses*/, std::size_t n) {
  Node& node = graph.nodes[n];
  if (node.op != "BatchNormalization" || graph[node.inputs[0]].type->shape.rank != 4) return false;
  std::span<const float> parts[4];  // scale, B, mean, variance
  for (std::size_t i = 0; i < 4; ++i) {
    const auto part = constant_floats(graph, node.inputs[i + 1]);
    if (!part) return false;
    parts[i] = *part;
  }
  const auto& [scale, shift, mean, variance] = parts;
  const float epsilon = node.number("epsilon", 1e-5F);
  std::vector<float> weights, bias;
  for (std::size_t c = 0; c < scale.size(); ++c) {
    weights.push_back(scale[c] / std::sqrt(variance[c] + epsilon));
    bias.push_back(std::fma(-mean[c], weights[c], shift[c]));
  }
  const auto channels = static_cast<std::int64_t>(scale.size());
  node.op = "Conv";
  node.inputs = {node.inputs[0],
                 graph.add_constant(node.name + ".weights", Constant::of(weights, ir::Shape{4, {channels, 1, 1, 1}})),
                 graph.add_constant(node.name + ".bias", Constant::of(bias, ir::Shape{1, {channels}}))};
  using Integers = std::vector<std::int64_t>;
  node.attributes = {
      {"dilations", Integers{1, 1}}, {"group", channels}, {"pads", Integers{0, 0, 0, 0}}, {"strides", Integers{1, 1}}};
  return true;
}

}  // namespace

Status fold_affine(Graph& graph) {
  rewrite(graph, fold);
  rewrite(graph, as_depthwise);
  return {};
}

}  // namespace takt::compiler
