#include "compiler/ir/geometry.h"
#include "compiler/ir/operator_tables.h"
#include "kernels/reference/conv.h"
#include "kernels/reference/pool.h"

namespace takt::ir {
namespace {

using kernels::Tensor;

Type image(const Shape& x, std::int64_t channels, const std::int64_t out[2]) {
  return {DType::kF32, Shape{4, {x.dims[0], channels, out[0], out[1]}}};
}

Status all_f32(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in.has(i)) TAKT_RETURN_IF_ERROR(expect_type(in, i, {DType::kF32}));
  }
  return {};
}

Result<Types> infer_conv(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(all_f32(in));
  TAKT_ASSIGN(const WindowGeometry g, conv_geometry(in.node, in.tensors()));
  TAKT_RETURN_IF_ERROR(epilogue(in.node));
  const Type out = image(in.shape(0), in.shape(1).dims[0], g.out);
  if (in.has(3) && !(in.shape(3) == out.shape)) {
    return fail(Code::kInput, "the residual is " + to_string(in.type(3)) + ", the result " + to_string(out));
  }
  return Types{out};
}

Status evaluate_conv(const Node& node, std::span<const Tensor> in, std::span<const Tensor> out) {
  TAKT_ASSIGN(const WindowGeometry g, conv_geometry(node, in));
  TAKT_ASSIGN(const kernels::reference::ConvEpilogue activation, epilogue(node));
  kernels::reference::conv2d(in[0], in[1], in.size() > 2 ? in[2] : Tensor{}, in.size() > 3 ? in[3] : Tensor{}, g.window,
                             g.group, activation, out[0]);
  return {};
}

std::uint64_t conv_flops(const OperatorInputs& in, std::span<const Type> out) {
  const Shape& w = in.shape(1);
  return 2 * elements_of(out[0]) * static_cast<std::uint64_t>(w.dims[1] * w.dims[2] * w.dims[3]);
}

Result<Types> infer_conv_transpose(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(all_f32(in));
  TAKT_ASSIGN(const WindowGeometry g, conv_transpose_geometry(in.node, in.tensors()));
  TAKT_RETURN_IF_ERROR(epilogue(in.node));
  return Types{image(in.shape(0), in.shape(1).dims[1] * g.group, g.out)};
}

Status evaluate_conv_transpose(const Node& node, std::span<const Tensor> in, std::span<const Tensor> out) {
  TAKT_ASSIGN(const WindowGeometry g, conv_transpose_geometry(node, in));
  TAKT_ASSIGN(const kernels::reference::ConvEpilogue activation, epilogue(node));
  kernels::reference::conv_transpose2d(in[0], in[1], in.size() > 2 ? in[2] : Tensor{}, g.window, g.group, activation,
                                       out[0]);
  return {};
}

std::uint64_t conv_transpose_flops(const OperatorInputs& in, std::span<const Type> /*out*/) {
  const Shape& w = in.shape(1);
  return 2 * elements_of(in.type(0)) * static_cast<std::uint64_t>(w.dims[1] * w.dims[2] * w.dims[3]);
}

Result<Types> infer_pool(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(all_f32(in));
  TAKT_ASSIGN(const WindowGeometry g, pool_geometry(in.node, in.tensors()));
  return Types{image(in.shape(0), in.shape(0).dims[1], g.out)};
}

Status evaluate_max_pool(const Node& node, std::span<const Tensor> in, std::span<const Tensor> out) {
  TAKT_ASSIGN(const WindowGeometry g, pool_geometry(node, in));
  kernels::reference::max_pool2d(in[0], g.window, out[0]);
  return {};
}

Status evaluate_average_pool(const Node& node, std::span<const Tensor> in, std::span<const Tensor> out) {
  TAKT_ASSIGN(const WindowGeometry g, pool_geometry(node, in));
  kernels::reference::average_pool2d(in[0], g.window, g.pad_end, node.integer("count_include_pad", 0) != 0, out[0]);
  return {};
}

std::uint64_t pool_flops(const OperatorInputs& in, std::span<const Type> out) {
  std::uint64_t taps = 1;
  for (const std::int64_t extent : in.node.integers("kernel_shape")) taps *= static_cast<std::uint64_t>(extent);
  return elements_of(out[0]) * taps;
}

Result<Types> infer_global_pool(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(all_f32(in));
  TAKT_RETURN_IF_ERROR(expect_rank(in, 0, 4));
  constexpr std::int64_t kOne[2] = {1, 1};
  return Types{image(in.shape(0), in.shape(0).dims[1], kOne)};
}

Status evaluate_global_average_pool(const Node& /*node*/, std::span<const Tensor> in, std::span<const Tensor> out) {
  kernels::reference::global_average_pool(in[0], out[0]);
  return {};
}

std::uint64_t input_flops(const OperatorInputs& in, std::span<const Type> /*out*/) { return elements_of(in.type(0)); }

void write_window(Node& node, const WindowGeometry& g) {
  const auto list = [](const std::int64_t v[2]) { return std::vector<std::int64_t>{v[0], v[1]}; };
  node.attributes.erase("auto_pad");
  node.attributes["strides"] = list(g.window.stride);
  node.attributes["dilations"] = list(g.window.dilation);
  node.attributes["pads"] = std::vector<std::int64_t>{g.window.pad[0], g.window.pad[1], g.pad_end[0], g.pad_end[1]};
}

void settle_conv(Graph& graph, Node& node) {
  const auto g = conv_geometry(node, OperatorInputs{graph, node}.tensors());
  write_window(node, *g);
  node.attributes.erase("kernel_shape");  // the weights say it
  node.attributes["group"] = g->group;
}

void settle_conv_transpose(Graph& graph, Node& node) {
  const auto g = conv_transpose_geometry(node, OperatorInputs{graph, node}.tensors());
  write_window(node, *g);
  // What the pads leave over is the output padding: with it the other forms of stating the extents are the same.
  std::vector<std::int64_t> extra;
  for (int i = 0; i < 2; ++i) {
    const std::int64_t reach = (g->window.kernel[i] - 1) * g->window.dilation[i] + 1;
    const std::int64_t in = graph[node.inputs[0]].type->shape.dims[2 + i];
    extra.push_back(g->out[i] + g->window.pad[i] + g->pad_end[i] - (in - 1) * g->window.stride[i] - reach);
  }
  node.attributes["output_padding"] = extra;
  node.attributes.erase("output_shape");
  node.attributes.erase("kernel_shape");
  node.attributes["group"] = g->group;
}

void settle_pool(Graph& graph, Node& node) {
  const auto g = pool_geometry(node, OperatorInputs{graph, node}.tensors());
  write_window(node, *g);
  node.attributes["ceil_mode"] = node.integer("ceil_mode", 0);
  node.attributes.erase("storage_order");  // of the indices, which are not there
  if (node.op == "AveragePool") node.attributes["count_include_pad"] = node.integer("count_include_pad", 0);
}

constexpr Operator kOperators[] = {
    {"Conv", 2, 4, infer_conv, evaluate_conv, conv_flops, settle_conv},
    {"ConvTranspose", 2, 3, infer_conv_transpose, evaluate_conv_transpose, conv_transpose_flops, settle_conv_transpose},
    {"MaxPool", 1, 1, infer_pool, evaluate_max_pool, pool_flops, settle_pool},
    {"AveragePool", 1, 1, infer_pool, evaluate_average_pool, pool_flops, settle_pool},
    {"GlobalAveragePool", 1, 1, infer_global_pool, evaluate_global_average_pool, input_flops, nullptr},
};

}  // namespace

std::span<const Operator> window_operators() { return kOperators; }

}  // namespace takt::ir
