#include <cstring>

#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

namespace takt::compiler {
namespace {

using ir::Graph;
using ir::Node;
using ir::ValueId;

const Node* writer_of(const Graph& graph, const Uses& uses, ValueId id, const char* op) {
  const int n = id == ir::kNoValue ? -1 : uses.writer(id);
  const Node* node = n < 0 ? nullptr : &graph.nodes[static_cast<std::size_t>(n)];
  return node != nullptr && node->op == op ? node : nullptr;
}

// What `id` is the mean of over its last dimension, which stays as an extent of 1; kNoValue otherwise.
ValueId averaged(const Graph& graph, const Uses& uses, ValueId id) {
  const Node* mean = writer_of(graph, uses, id, "ReduceMean");
  if (mean == nullptr || mean->integer("keepdims", 1) == 0) return ir::kNoValue;
  const std::int64_t last = graph[mean->inputs[0]].type->shape.rank - 1;
  return mean->integers("axes") == std::vector<std::int64_t>{last} ? mean->inputs[0] : ir::kNoValue;
}

// Whether `id` is sqrt(mean of centred^2 + epsilon).
bool deviation(const Graph& graph, const Uses& uses, ValueId id, ValueId centred, float* epsilon) {
  const Node* root = writer_of(graph, uses, id, "Sqrt");
  const Node* sum = root == nullptr ? nullptr : writer_of(graph, uses, root->inputs[0], "Add");
  for (std::size_t i = 0; sum != nullptr && i < 2; ++i) {
    const auto constant = scalar(graph, sum->inputs[1 - i]);
    const ValueId square = averaged(graph, uses, sum->inputs[i]);
    if (!constant || square == ir::kNoValue) continue;
    *epsilon = *constant;
    if (const Node* power = writer_of(graph, uses, square, "Pow")) {
      return power->inputs[0] == centred && scalar(graph, power->inputs[1]) == 2.0F;
    }
    const Node* product = writer_of(graph, uses, square, "Mul");
    return product != nullptr && product->inputs[0] == centred && product->inputs[1] == centred;
  }
  return false;
}

// centred / deviation, or centred * (1 / deviation).
bool core(Graph& graph, const Uses& uses, std::size_t n) {
  Node& node = graph.nodes[n];
  if (node.op != "Div" && node.op != "Mul") return false;
  for (std::size_t i = 0; i < (node.op == "Div" ? 1U : 2U); ++i) {
    const Node* centred = writer_of(graph, uses, node.inputs[i], "Sub");
    if (centred == nullptr) continue;
    const ValueId x = centred->inputs[0];
    if (averaged(graph, uses, centred->inputs[1]) != x) continue;
    ValueId root = node.inputs[1 - i];
    if (node.op == "Mul") {
      const Node* inverse = writer_of(graph, uses, root, "Div");
      if (inverse == nullptr || scalar(graph, inverse->inputs[0]) != 1.0F) continue;
      root = inverse->inputs[1];
    }
    float epsilon = 0;
    if (!deviation(graph, uses, root, node.inputs[i], &epsilon)) continue;
    node.op = "takt.LayerNorm";
    node.inputs = {x};
    node.attributes = {{"epsilon", epsilon}};
    return true;
  }
  return false;
}

// A constant along the last dimension of `x`, as f32[extent]; kNoValue when it is none.
ValueId along_last(Graph& graph, ValueId id, const ir::Shape& x) {
  const ir::Constant* constant = graph[id].constant.get();
  const std::int64_t extent = x.dims[x.rank - 1];
  if (constant == nullptr || constant->dtype != ir::DType::kF32 || constant->shape.rank < 1 ||
      constant->shape.rank > x.rank || constant->shape.elements() != extent ||
      constant->shape.dims[constant->shape.rank - 1] != extent) {
    return ir::kNoValue;
  }
  if (constant->shape.rank == 1) return id;
  ir::Constant flat = *constant;
  flat.shape = ir::Shape{1, {extent}};
  return graph.add_constant(graph[id].name + ":flat", std::move(flat));
}

// Behind it: a product with a constant, then a sum.
bool affine(Graph& graph, const Uses& uses, std::size_t n) {
  const Node& node = graph.nodes[n];
  if (node.op != "Mul" && node.op != "Add") return false;
  for (std::size_t i = 0; i < 2; ++i) {
    const Node* norm = writer_of(graph, uses, node.inputs[i], "takt.LayerNorm");
    if (norm == nullptr || uses.only_reader(node.inputs[i]) != static_cast<int>(n)) continue;
    const bool sum = node.op == "Add";
    if (norm->inputs.size() > (sum ? 2U : 1U)) continue;
    const ValueId constant = along_last(graph, node.inputs[1 - i], graph[node.inputs[i]].type->shape);
    if (constant == ir::kNoValue) continue;
    Node merged = *norm;
    merged.inputs.resize(sum ? 3 : 2, ir::kNoValue);
    merged.inputs.back() = constant;
    merged.outputs = node.outputs;
    graph.nodes[n] = std::move(merged);
    return true;
  }
  return false;
}

}  // namespace

Status recognise_norms(Graph& graph) {
  rewrite(graph, core);
  rewrite(graph, affine);
  return {};
}

}  // namespace takt::compiler
