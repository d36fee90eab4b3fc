#include "compiler/ir/geometry.h"
#include "compiler/ir/operators.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

namespace takt::compiler {
namespace {

using ir::Graph;
using ir::Node;

// Rows and columns of zeros around the images, and nothing else.
std::optional<ir::PadGeometry> zero_border(const Graph& graph, const Node& node) {
  const auto inputs = ir::OperatorInputs{graph, node}.tensors();
  if (node.op != "Pad" || inputs[0].shape.rank != 4 || inputs[0].dtype != ir::DType::kF32) return std::nullopt;
  const bool given = node.inputs.size() > 2 && node.inputs[2] != ir::kNoValue;
  if (given && (inputs[2].data == nullptr || ir::pad_value(inputs) != 0)) return std::nullopt;
  auto g = ir::pad_geometry(node, inputs);
  if (!g || g->mode != "constant") return std::nullopt;
  for (std::size_t d = 0; d < 4; ++d) {
    const bool zero = g->before[d] == 0 && g->after[d] == 0;
    if (g->before[d] < 0 || g->after[d] < 0 || (d < 2 && !zero)) return std::nullopt;
  }
  return *std::move(g);
}

bool fold(Graph& graph, const Uses& uses, std::size_t n) {
  Node& node = graph.nodes[n];
  if (node.op != "Conv" && node.op != "AveragePool") return false;
  const int writer = uses.writer(node.inputs[0]);
  if (writer < 0) return false;
  const Node& pad = graph.nodes[static_cast<std::size_t>(writer)];
  const auto border = zero_border(graph, pad);
  if (!border) return false;
  Node padded = node;
  padded.inputs[0] = pad.inputs[0];
  std::vector<std::int64_t> pads = node.integers("pads");
  const bool none = pads == std::vector<std::int64_t>(4, 0);
  for (std::size_t i = 0; i < 2; ++i) {
    pads[i] += border->before[i + 2];
    pads[i + 2] += border->after[i + 2];
  }
  padded.attributes["pads"] = pads;
  if (node.op == "AveragePool") {
    // The zeros were elements: they count. Padding of its own that does not count cannot be told apart afterwards.
    if (!none && node.integer("count_include_pad", 0) == 0) return false;
    padded.attributes["count_include_pad"] = std::int64_t{1};
  }
  if (!keeps_types(graph, padded)) return false;  // a window wholly inside the border, or another rounding up
  node = std::move(padded);
  return true;
}

}  // namespace

Status fold_pads(Graph& graph) {
  rewrite(graph, fold);
  return {};
}

}  // namespace takt::compiler
