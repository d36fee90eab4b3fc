#include <cmath>
#include <limits>
#include <vector>

#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

namespace takt::compiler {
namespace {

using ir::Graph;
using ir::Node;
using ir::ValueId;

constexpr double kSixth = 1.0 / 6.0;

const Node* writer_of(const Graph& graph, const Uses& uses, ValueId id) {
  const int n = id == ir::kNoValue ? -1 : uses.writer(id);
  return n < 0 ? nullptr : &graph.nodes[static_cast<std::size_t>(n)];
}

bool is_scalar(const Graph& graph, ValueId id, double value) {
  const auto found = scalar(graph, id);
  return found && std::fabs(static_cast<double>(*found) - value) < 1e-6;
}

// The other operand of a commutative call with a scalar constant; kNoValue when it is none.
ValueId beside_scalar(const Graph& graph, const Node& node, double value) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (is_scalar(graph, node.inputs[i], value)) return node.inputs[1 - i];
  }
  return ir::kNoValue;
}

// x where `id` is clip(x + 3, 0, 6).
ValueId of_relu6(const Graph& graph, const Uses& uses, ValueId id) {
  const Node* clip = writer_of(graph, uses, id);
  if (clip == nullptr || clip->op != "Clip" || clip->inputs.size() < 3 || !is_scalar(graph, clip->inputs[1], 0) ||
      !is_scalar(graph, clip->inputs[2], 6)) {
    return ir::kNoValue;
  }
  const Node* add = writer_of(graph, uses, clip->inputs[0]);
  return add != nullptr && add->op == "Add" ? beside_scalar(graph, *add, 3) : ir::kNoValue;
}

// `id` without the sixth that it is multiplied by; kNoValue when there is none.
ValueId without_sixth(const Graph& graph, const Uses& uses, ValueId id) {
  const Node* node = writer_of(graph, uses, id);
  if (node == nullptr) return ir::kNoValue;
  if (node->op == "Div" && is_scalar(graph, node->inputs[1], 6)) return node->inputs[0];
  return node->op == "Mul" ? beside_scalar(graph, *node, kSixth) : ir::kNoValue;
}

// x where `id` is hardsigmoid(x) as HardSwish has it, in one operator or spelled out.
ValueId of_hard_sigmoid(const Graph& graph, const Uses& uses, ValueId id) {
  const Node* node = writer_of(graph, uses, id);
  if (node == nullptr) return ir::kNoValue;
  if (node->op == "HardSigmoid") {
    const bool same = std::fabs(static_cast<double>(node->number("alpha", 0.2F)) - kSixth) < 1e-6 &&
                      node->number("beta", 0.5F) == 0.5F;
    return same ? node->inputs[0] : ir::kNoValue;
  }
  return of_relu6(graph, uses, without_sixth(graph, uses, id));
}

void become(Node& node, const char* op, ValueId x) {
  node.op = op;
  node.inputs = {x};
  node.attributes.clear();
}

bool product(Graph& graph, const Uses& uses, std::size_t n) {
  Node& node = graph.nodes[n];
  if (node.op != "Mul") return false;
  for (std::size_t i = 0; i < 2; ++i) {
    const ValueId x = node.inputs[i];
    const Node* other = writer_of(graph, uses, node.inputs[1 - i]);
    if (other == nullptr) continue;
    if (other->op == "Sigmoid" && other->inputs[0] == x) {
      become(node, "takt.Silu", x);
      return true;
    }
    if (of_hard_sigmoid(graph, uses, node.inputs[1 - i]) == x) {
      become(node, "HardSwish", x);
      return true;
    }
  }
  return false;
}

// x * clip(x + 3, 0, 6), then the sixth.
bool sixth_last(Graph& graph, const Uses& uses, std::size_t n) {
  Node& node = graph.nodes[n];
  if (node.op != "Mul" && node.op != "Div") return false;
  const Node* inner = writer_of(graph, uses, without_sixth(graph, uses, node.outputs[0]));
  if (inner == nullptr || inner->op != "Mul") return false;
  for (std::size_t i = 0; i < 2; ++i) {
    const ValueId x = inner->inputs[i];
    if (of_relu6(graph, uses, inner->inputs[1 - i]) != x) continue;
    become(node, "HardSwish", x);
    return true;
  }
  return false;
}

// What a product is made of: its scalar constants as one number, and the other factors.
struct Factors {
  double scalar = 1;
  std::vector<ValueId> others;
};
void collect(const Graph& graph, const Uses& uses, ValueId id, int depth, Factors& factors) {
  if (const auto value = scalar(graph, id)) {
    factors.scalar *= static_cast<double>(*value);
    return;
  }
  const Node* node = depth > 0 ? writer_of(graph, uses, id) : nullptr;
  if (node != nullptr && node->op == "Mul") {
    for (const ValueId input : node->inputs) collect(graph, uses, input, depth - 1, factors);
  } else {
    factors.others.push_back(id);
  }
}

// x where `id` is 1 + erf(x / sqrt(2)).
ValueId of_error_function(const Graph& graph, const Uses& uses, ValueId id) {
  const Node* add = writer_of(graph, uses, id);
  const Node* erf =
      add != nullptr && add->op == "Add" ? writer_of(graph, uses, beside_scalar(graph, *add, 1)) : nullptr;
  const Node* inner = erf != nullptr && erf->op == "Erf" ? writer_of(graph, uses, erf->inputs[0]) : nullptr;
  if (inner == nullptr) return ir::kNoValue;
  if (inner->op == "Div" && is_scalar(graph, inner->inputs[1], std::sqrt(2.0))) return inner->inputs[0];
  return inner->op == "Mul" ? beside_scalar(graph, *inner, std::sqrt(0.5)) : ir::kNoValue;
}

// x / 2 * (1 + erf(x / sqrt(2))), the factors in any order.
bool gelu(Graph& graph, const Uses& uses, std::size_t n) {
  Node& node = graph.nodes[n];
  if (node.op != "Mul") return false;
  Factors factors;
  for (const ValueId input : node.inputs) collect(graph, uses, input, 2, factors);
  if (factors.others.size() != 2 || std::fabs(factors.scalar - 0.5) > 1e-6) return false;
  for (std::size_t i = 0; i < 2; ++i) {
    const ValueId x = factors.others[i];
    if (of_error_function(graph, uses, factors.others[1 - i]) != x) continue;
    become(node, "Gelu", x);
    return true;
  }
  return false;
}

// Clip from 0 without a finite end.
bool clip_to_relu(Graph& graph, const Uses& /*uses*/, std::size_t n) {
  Node& node = graph.nodes[n];
  if (node.op != "Clip" || node.inputs.size() < 2 || scalar(graph, node.inputs[1]) != 0.0F) return false;
  const bool open = node.inputs.size() < 3 || node.inputs[2] == ir::kNoValue;
  const auto highest = open ? std::optional<float>() : scalar(graph, node.inputs[2]);
  if (!open && (!highest || *highest < std::numeric_limits<float>::max())) return false;
  become(node, "Relu", node.inputs[0]);
  return true;
}

}  // namespace

Status recognise_activations(Graph& graph) {
  rewrite(graph, product);
  rewrite(graph, sixth_last);
  rewrite(graph, clip_to_relu);
  rewrite(graph, gelu);
  return {};
}

}  // namespace takt::compiler
