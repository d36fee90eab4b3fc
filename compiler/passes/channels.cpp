// Channel shuffles come in many spellings. None is matched here: a chain of operators that only move elements is run
// by reference kernels on the numbers of the elements, and what comes out says which channels it picks.
#include <algorithm>
#include <numeric>
#include <string_view>

#include "compiler/ir/operators.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite.h"

namespace takt::compiler {
namespace {

using ir::Constant;
using ir::Graph;
using ir::Node;
using ir::Shape;
using ir::ValueId;

constexpr std::int64_t kMost = 1 << 24;  // elements that are numbered

bool moves(const Graph& graph, const Node& node) {
  static constexpr std::string_view kNames[] = {"Gather", "Reshape",   "Slice",
                                                "Split",  "Transpose", "takt.ChannelGather"};
  return std::find(std::begin(kNames), std::end(kNames), node.op) != std::end(kNames) &&
         std::all_of(node.inputs.begin() + 1, node.inputs.end(),
                     [&](ValueId id) { return id == ir::kNoValue || graph[id].constant != nullptr; });
}

bool same_pixels(const Shape& a, const Shape& b) {
  return a.rank == 4 && b.rank == 4 && a.dims[0] == b.dims[0] && a.dims[2] == b.dims[2] && a.dims[3] == b.dims[3];
}

// Runs the chain `path` (last node first) on the numbers of the elements of its source; the numbers at `target`.
std::optional<Constant> moved_numbers(const Graph& graph, const std::vector<std::size_t>& path, ValueId source,
                                      ValueId target) {
  Constant numbers = Constant::allocate(ir::DType::kI64, graph[source].type->shape);
  auto* first = numbers.tensor().as<std::int64_t>();
  std::iota(first, first + numbers.shape.elements(), std::int64_t{0});
  for (std::size_t step = path.size(); step-- > 0;) {
    const Node& node = graph.nodes[path[step]];
    const ValueId wanted = step > 0 ? graph.nodes[path[step - 1]].inputs[0] : target;
    std::vector<kernels::Tensor> inputs = ir::OperatorInputs{graph, node}.tensors();
    inputs[0] = numbers.tensor();
    std::vector<Constant> results;
    std::vector<kernels::Tensor> outputs;
    for (const ValueId id : node.outputs) {
      results.push_back(Constant::allocate(ir::DType::kI64, graph[id].type->shape));
      outputs.push_back(results.back().tensor());
    }
    if (!ir::find_operator(node.op)->evaluate(node, inputs, outputs)) return std::nullopt;
    const auto at = std::find(node.outputs.begin(), node.outputs.end(), wanted) - node.outputs.begin();
    numbers = std::move(results[static_cast<std::size_t>(at)]);
  }
  return numbers;
}

// The channels, when every pixel of the result takes the same channels of the same pixel.
std::optional<std::vector<std::int64_t>> picked_channels(const Constant& numbers, const Shape& source) {
  const Shape& shape = numbers.shape;
  const std::int64_t pixels = shape.dims[2] * shape.dims[3];
  const auto* at = numbers.tensor().as<std::int64_t>();
  std::vector<std::int64_t> channels;
  for (std::int64_t c = 0; c < shape.dims[1]; ++c) channels.push_back(at[c * pixels] / pixels);
  for (std::int64_t n = 0; n < shape.dims[0]; ++n) {
    for (const std::int64_t c : channels) {
      for (std::int64_t p = 0; p < pixels; ++p) {
        if (*at++ != (n * source.dims[1] + c) * pixels + p) return std::nullopt;
      }
    }
  }
  return channels;
}

bool recognise(Graph& graph, const Uses& uses, std::size_t n) {
  // The farthest image tensor behind nothing but moves, of the same pixels as an output of this node.
  for (const ValueId target : graph.nodes[n].outputs) {
    const Shape& shape = graph[target].type->shape;
    if (shape.rank != 4 || shape.elements() == 0 || !moves(graph, graph.nodes[n])) continue;
    if (uses.readers(target).empty() && !uses.is_result(target)) continue;  // what an earlier match left of a split
    const bool already = graph.nodes[n].op == "takt.ChannelGather";
    std::vector<std::size_t> path;
    std::vector<std::size_t> best;
    for (int at = static_cast<int>(n); at >= 0 && moves(graph, graph.nodes[static_cast<std::size_t>(at)]);) {
      path.push_back(static_cast<std::size_t>(at));
      const ValueId source = graph.nodes[path.back()].inputs[0];
      const Shape& whole = graph[source].type->shape;
      const bool shorter_than_known = already && path.size() == 1;
      if (same_pixels(whole, shape) && whole.elements() <= kMost && !shorter_than_known) best = path;
      at = uses.writer(source);
    }
    if (best.empty()) continue;
    const ValueId source = graph.nodes[best.back()].inputs[0];
    const auto numbers = moved_numbers(graph, best, source, target);
    if (!numbers) continue;
    const auto channels = picked_channels(*numbers, graph[source].type->shape);
    if (!channels) continue;
    Node gather;
    gather.op = "takt.ChannelGather";
    gather.name = graph.nodes[n].name;
    gather.inputs = {source};
    gather.outputs = {target};
    gather.guard = graph.nodes[n].guard;
    gather.attributes["channels"] = *channels;
    Node& node = graph.nodes[n];
    if (node.outputs.size() == 1) {
      node = std::move(gather);
    } else {
      // One of several outputs: it is written by the new node, in front of the old one.
      gather.name = graph[target].name;
      std::replace(node.outputs.begin(), node.outputs.end(), target,
                   graph.add_value(gather.name + ".gone", graph[target].type));
      graph.nodes.insert(graph.nodes.begin() + static_cast<std::ptrdiff_t>(n), std::move(gather));
    }
    return true;
  }
  return false;
}

bool whole(Graph& graph, const Uses& uses, std::size_t n) {
  const Node& node = graph.nodes[n];
  if (node.op != "takt.ChannelGather") return false;
  const std::vector<std::int64_t> channels = node.integers("channels");
  std::vector<std::int64_t> all(static_cast<std::size_t>(graph[node.inputs[0]].type->shape.dims[1]));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  return channels == all && substitute(graph, uses, node.outputs[0], node.inputs[0]);
}

}  // namespace

Status recognise_channel_gathers(Graph& graph) {
  rewrite(graph, recognise);
  rewrite(graph, whole);
  return {};
}

}  // namespace takt::compiler
