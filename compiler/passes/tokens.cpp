#include <algorithm>

#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

namespace takt::compiler {
namespace {

using ir::Graph;
using ir::Node;
using ir::ValueId;

// The image [N,C,H,W] of which `id` is the [N,C,H*W]; kNoValue when it is none.
ValueId flattened(const Graph& graph, const Uses& uses, ValueId id) {
  const int n = uses.writer(id);
  if (n < 0 || graph.nodes[static_cast<std::size_t>(n)].op != "Reshape") return ir::kNoValue;
  const ValueId image = graph.nodes[static_cast<std::size_t>(n)].inputs[0];
  const ir::Shape& from = graph[image].type->shape;
  const ir::Shape& to = graph[id].type->shape;
  const bool cells = from.rank == 4 && to.rank == 3 && from.dims[0] == to.dims[0] && from.dims[1] == to.dims[1] &&
                     graph[image].type->count == ir::kNoValue;
  return cells ? image : ir::kNoValue;
}

// Two nodes that make [N,H*W,C] of an image, `tokens` as the result; appended to `nodes`.
void add_tokens(Graph& graph, const Node& place, ValueId image, ValueId tokens, std::vector<Node>& nodes) {
  ir::Type last = *graph[image].type;
  const ir::Shape from = last.shape;
  last.shape = {4, {from.dims[0], from.dims[2], from.dims[3], from.dims[1]}};
  const std::string name = graph[tokens].name;
  const ValueId moved = graph.add_value(name + ":last", last);
  const std::vector<std::int64_t> extents = {from.dims[0], from.dims[2] * from.dims[3], from.dims[1]};
  const ValueId shape = graph.add_constant(name + ":extents", ir::Constant::of(extents));
  nodes.push_back({.op = "Transpose",
                   .name = place.name + ":last",
                   .inputs = {image},
                   .outputs = {moved},
                   .attributes = {{"perm", std::vector<std::int64_t>{0, 2, 3, 1}}},
                   .guard = place.guard});
  nodes.push_back({.op = "Reshape",
                   .name = place.name,
                   .inputs = {moved, shape},
                   .outputs = {tokens},
                   .attributes = {},
                   .guard = place.guard});
}

// [N,C,H*W] -> [N,H*W,C], of one image or of several side by side.
bool channels_last(Graph& graph, const Uses& uses, std::size_t n) {
  const Node place = graph.nodes[n];
  if (place.op != "Transpose" || place.integers("perm") != std::vector<std::int64_t>{0, 2, 1}) return false;
  const ValueId x = place.inputs[0];
  if (uses.only_reader(x) != static_cast<int>(n)) return false;
  std::vector<Node> nodes;
  if (const ValueId image = flattened(graph, uses, x); image != ir::kNoValue) {
    add_tokens(graph, place, image, place.outputs[0], nodes);
  } else {
    const int joined = uses.writer(x);
    if (joined < 0) return false;
    Node concat = graph.nodes[static_cast<std::size_t>(joined)];
    if (concat.op != "Concat" || concat.integer("axis", 0) != 2) return false;
    std::vector<ValueId> images;
    for (const ValueId part : concat.inputs) images.push_back(flattened(graph, uses, part));
    if (std::find(images.begin(), images.end(), ir::kNoValue) != images.end()) return false;
    for (std::size_t i = 0; i < images.size(); ++i) {
      ir::Type type = *graph[concat.inputs[i]].type;
      std::swap(type.shape.dims[1], type.shape.dims[2]);
      const ValueId tokens = graph.add_value(graph[concat.inputs[i]].name + ":tokens" + std::to_string(i), type);
      add_tokens(graph, place, images[i], tokens, nodes);
      concat.inputs[i] = tokens;
    }
    concat.attributes["axis"] = std::int64_t{1};
    concat.outputs = place.outputs;
    concat.guard = place.guard;
    nodes.push_back(std::move(concat));
  }
  graph.nodes[n] = std::move(nodes.back());
  nodes.pop_back();
  graph.nodes.insert(graph.nodes.begin() + static_cast<std::ptrdiff_t>(n), nodes.begin(), nodes.end());
  return true;
}

}  // namespace

Status recognise_tokens(Graph& graph) {
  rewrite(graph, channels_last);
  return {};
}

}  // namespace takt::compiler
