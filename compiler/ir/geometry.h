// What an operator call means in numbers: the one place where attributes and shape operands of windows, slices, pads
// and resizes are read. Shape rules, reference evaluation and lowering all use it. Every result is within bounds:
// extents are at least 0 and at most kMaxElements, indices lie inside.
#pragma once

#include <span>
#include <vector>

#include "compiler/ir/graph.h"
#include "kernels/preprocess.h"
#include "kernels/reference/conv.h"
#include "kernels/reference/resize.h"

namespace takt::ir {

// The inputs of a node; data == nullptr where a value is not constant. Shape operands have to be constant.
using Tensors = std::span<const kernels::Tensor>;

// Conv, ConvTranspose, MaxPool, AveragePool over [N,C,H,W].
struct WindowGeometry {
  kernels::reference::Window window;
  std::int64_t pad_end[2] = {0, 0};
  std::int64_t group = 1;
  std::int64_t out[2] = {0, 0};
};
Result<WindowGeometry> conv_geometry(const Node& node, Tensors inputs);
Result<WindowGeometry> conv_transpose_geometry(const Node& node, Tensors inputs);
Result<WindowGeometry> pool_geometry(const Node& node, Tensors inputs);

// "activation", "alpha", "beta" of takt's fused convolution.
Result<kernels::reference::ConvEpilogue> epilogue(const Node& node);

struct SliceGeometry {
  Shape out;
  std::vector<std::int64_t> start;  // one for each dimension
  std::vector<std::int64_t> step;   // never 0; negative walks back
};
Result<SliceGeometry> slice_geometry(const Node& node, Tensors inputs);

struct PadGeometry {
  Shape out;
  std::vector<std::int64_t> before;  // negative cuts
  std::vector<std::int64_t> after;
  std::string mode;  // constant, edge, reflect
  // Input index for each output index of one dimension; -1: the pad value.
  [[nodiscard]] std::vector<std::int64_t> indices(int dimension, std::int64_t extent) const;
};
Result<PadGeometry> pad_geometry(const Node& node, Tensors inputs);
// The constant value of a Pad in f32; 0 where none is given.
float pad_value(Tensors inputs);

struct ResizeGeometry {
  Shape out;
  bool linear = false;
  bool cubic = false;
  std::vector<kernels::reference::ResizeAxis> axes;  // one for each dimension
  kernels::reference::Nearest nearest = kernels::reference::Nearest::kRoundPreferFloor;
  float extrapolation = 0;
};
// Every form of ONNX; what the IR's Resize takes of it, its shape rule says.
Result<ResizeGeometry> resize_geometry(const Node& node, Tensors inputs);

// Sizes along the axis, one for each output; their sum is the extent.
Result<std::vector<std::int64_t>> split_sizes(const Node& node, Tensors inputs);

// takt.Preprocess: attributes format, width, height, pitch, offset, chroma_offset, chroma_pitch, out_width, out_height,
// mode (plain, letterbox), pad, colour (rgb, bgr), scale, mean[3], std[3]; input u8[bytes]. Checks that every pixel
// lies inside the input.
Result<kernels::Preprocess> preprocess_geometry(const Node& node, Tensors inputs);

// Rules that several operators share.
Result<Shape> broadcast(const Shape& a, const Shape& b);
Result<int> axis_of(const Node& node, std::string_view key, std::int64_t otherwise, int rank);
// The elements of a constant i64 or i32 input of rank 0 or 1; an error that names `what` when it is not constant.
Result<std::vector<std::int64_t>> integers_of(const kernels::Tensor& tensor, std::string_view what);

}  // namespace takt::ir
