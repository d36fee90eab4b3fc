// Hardware-independent passes over the IR: each makes the same function with less work, in a form that lowering knows.
// One file each. Results stay within rounding of the unoptimised graph (tests/compiler/passes compares them by the
// interpreter); weights change only where a pass says so.
#pragma once

#include <atomic>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "compiler/ir/graph.h"

namespace takt::compiler {

// Nodes that only read constants become constants.
Status fold_constants(ir::Graph& graph);
// Goes: Identity, reshapes, pads, casts, slices, expands and concats that change nothing; runs of reshapes and of
// transposes become one; a transpose moves behind an operator when it meets its inverse there.
Status remove_identities(ir::Graph& graph);
// BatchNormalization, and products and sums with one constant per channel, go into the weights of the convolution in
// front (computed in double, rounded once); a BatchNormalization without one becomes a 1x1 depthwise convolution.
Status fold_affine(ir::Graph& graph);
// A Pad with zeros goes into the convolution or average pool behind it.
Status fold_pads(ir::Graph& graph);
// x * sigmoid(x) and the spelled-out forms of HardSwish and GELU become one operator; Clip from 0 becomes Relu.
Status recognise_activations(ir::Graph& graph);
// (x - mean) / sqrt(variance + epsilon) over the last dimension, a product with a constant and a sum with one behind
// it, become one takt.LayerNorm.
Status recognise_norms(ir::Graph& graph);
// The cells of images as a sequence, [N,C,H*W] transposed to [N,H*W,C], also of several images side by side: the
// transpose comes first, of the image, where blocked channels already lie side by side.
Status recognise_tokens(ir::Graph& graph);
// Whatever only picks channels of an image tensor, as slices, splits, gathers or the reshape-transpose-reshape of a
// channel shuffle, becomes one takt.ChannelGather.
Status recognise_channel_gathers(ir::Graph& graph);
// A sum with another tensor and an activation go into the convolution in front.
Status fuse_convolutions(ir::Graph& graph);
// The same for sparse convolutions, and with them products and sums with a constant per channel, as an imported
// BatchNormalization of rows is.
Status fuse_sparse(ir::Graph& graph);
// Equal constants become one, and equal calls.
Status merge_common(ir::Graph& graph);
// Nodes go whose results nobody reads.
Status remove_dead(ir::Graph& graph);
// The same; says of every value whether an output or a state needs it.
std::vector<bool> keep_needed(ir::Graph& graph);
// Nodes move where that lowers the most bytes alive at one of them; otherwise they stay where they are.
Status order_for_peak(ir::Graph& graph);

struct Pass {
  std::string_view name;
  Status (*run)(ir::Graph&) = nullptr;
};
// In the order in which they run.
std::span<const Pass> passes();

struct PassOptions {
  bool verify = true;              // the graph after each pass
  std::set<std::string> off = {};  // names of passes that are left out
  // Called after each pass, for dumps and statistics.
  std::function<void(std::string_view pass, const ir::Graph& graph)> after = {};
  const std::atomic<bool>* stop = nullptr;  // no pass begins when it is true
};

// kUsage when `off` names no pass; kInternal when the verifier refuses what a pass has made; kInterrupted when stopped.
Status run_passes(ir::Graph& graph, const PassOptions& options);

}  // namespace takt::compiler
