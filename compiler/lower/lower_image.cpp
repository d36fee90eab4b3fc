// Operators over images [N,C,H,W], on blocked tensors.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "compiler/ir/geometry.h"
#include "compiler/ir/operators.h"
#include "compiler/lower/builder.h"

namespace takt::lower {
namespace {

using kernels::cpu::Call;
using kernels::cpu::KernelId;
using kernels::cpu::make_call;

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

std::vector<float> floats(const ir::Constant& constant) {
  std::vector<float> out(constant.bytes.size() / sizeof(float));
  std::memcpy(out.data(), constant.bytes.data(), constant.bytes.size());
  return out;
}

template <class Params>
void fill_extents(Params& p, const Shape& x, const Shape& y) {
  p.n = narrow(x.dims[0]);
  p.h_in = narrow(x.dims[2]);
  p.w_in = narrow(x.dims[3]);
  p.h_out = narrow(y.dims[2]);
  p.w_out = narrow(y.dims[3]);
}

template <class Params>
void fill_window(Params& p, const kernels::reference::Window& window) {
  p.kernel_h = narrow(window.kernel[0]);
  p.kernel_w = narrow(window.kernel[1]);
  p.stride_h = narrow(window.stride[0]);
  p.stride_w = narrow(window.stride[1]);
  p.dilation_h = narrow(window.dilation[0]);
  p.dilation_w = narrow(window.dilation[1]);
  p.pad_top = narrow(window.pad[0]);
  p.pad_left = narrow(window.pad[1]);
}

kernels::cpu::Activation activation_of(kernels::reference::Activation activation) {
  using From = kernels::reference::Activation;
  using To = kernels::cpu::Activation;
  switch (activation) {
    case From::kNone: return To::kNone;
    case From::kRelu: return To::kRelu;
    case From::kClip: return To::kClip;
    case From::kLeaky: return To::kLeaky;
    case From::kSigmoid: return To::kSigmoid;
    case From::kHardSwish: return To::kHardSwish;
    case From::kSilu: return To::kSilu;
    case From::kTanh: return To::kTanh;
    case From::kHardSigmoid: return To::kHardSigmoid;
  }
  return To::kNone;
}

void fill_activation(kernels::cpu::ConvParams& p, const kernels::reference::ConvEpilogue& epilogue) {
  p.activation = activation_of(epilogue.activation);
  p.alpha = epilogue.alpha;
  p.beta = epilogue.beta;
}

// Whether there is a kernel that reads the input through a list of channels.
bool reads_list(const kernels::cpu::ConvParams& p) {
  return kernels::cpu::is_pointwise(p) && p.c_in <= kernels::cpu::kMostMappedChannels;
}

// Of a convolution whose input channels and output channels are the same ones.
bool depthwise(const kernels::cpu::ConvParams& p) { return p.group == p.c_in && p.group == p.c_out; }

// What is zero stays zero, so that holes may be computed with.
bool keeps_zero(const kernels::cpu::ConvParams& p) {
  using kernels::cpu::Activation;
  return p.activation != Activation::kSigmoid && p.activation != Activation::kHardSigmoid &&
         (p.activation != Activation::kClip || (p.alpha <= 0 && p.beta >= 0));
}

// Rows of `width` numbers a channel, put where the channels lie in the whole; zeros elsewhere.
std::vector<float> spread(const std::vector<float>& rows, const Builder::Mapped& x, std::int64_t channels) {
  const std::size_t width = rows.size() / x.channels.size();
  std::vector<float> out(static_cast<std::size_t>(channels) * width, 0.0F);
  for (std::size_t c = 0; c < x.channels.size(); ++c) {
    std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(c * width), width,
                out.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(x.channels[c]) * width));
  }
  return out;
}

// What an operator that treats channels alike reads of each of its input's: taps for one number of its result.
std::int64_t taps_of(const ir::Node& node) {
  if (node.op == "Resize") return node.text("mode", "nearest") == "nearest" ? 1 : 4;
  std::int64_t taps = 1;
  for (const std::int64_t extent : node.integers("kernel_shape")) taps *= extent;
  return taps;
}

// What x is mapped into, when an operator that treats channels alike had better run on all of it.
const Builder::Mapped* whole_alike(const Builder& out, ir::ValueId x, ir::ValueId y, std::int64_t taps) {
  const Builder::Mapped* mapped = out.mapped(x);
  return mapped != nullptr && out.better_whole(out.blocks_alike(*mapped), x, y, taps) ? mapped : nullptr;
}

// Operand and result of an operator that treats channels alike, and how many channels there are.
struct Alike {
  TensorId x = kAbsent, y = kAbsent;
  std::int32_t channels = 0;
};
Alike channels_alike(Builder& out, ir::ValueId x, ir::ValueId y, std::int64_t taps) {
  if (const Builder::Mapped* mapped = whole_alike(out, x, y, taps)) {
    const Builder::Mapped from = *mapped;
    const std::int64_t channels = out.tensor(from.whole).shape.dims[1];
    const TensorId to = out.whole(y, channels);
    out.define_mapped(y, {to, from.channels});
    return {from.whole, to, narrow(channels)};
  }
  const TensorId from = out.blocked(x);
  return {from, out.define(y, true), narrow(out.shape(x).dims[1])};
}

Status lower_conv(Builder& out, const ir::Node& node) {
  const ir::OperatorInputs in{out.graph(), node};
  TAKT_ASSIGN(const ir::WindowGeometry g, ir::conv_geometry(node, in.tensors()));
  TAKT_ASSIGN(const kernels::reference::ConvEpilogue epilogue, ir::epilogue(node));
  const ir::Constant* w = in.constant(1);
  const ir::Constant* b = in.constant(2);
  if (w == nullptr || (in.has(2) && b == nullptr)) return fail(Code::kInput, "weights that are not constant");
  kernels::cpu::ConvParams p;
  fill_extents(p, in.shape(0), out.shape(node.outputs[0]));
  fill_window(p, g.window);
  p.c_in = narrow(in.shape(0).dims[1]);
  p.c_out = narrow(w->shape.dims[0]);
  p.group = narrow(g.group);
  p.residual = in.has(3) ? 1 : 0;
  fill_activation(p, epilogue);
  const bool linear = kernels::cpu::takes_linear_input(p) && !out.has_blocked(node.inputs[0]);
  const std::vector<float> weights = floats(*w);
  const std::vector<float> bias = b != nullptr ? floats(*b) : std::vector<float>();
  out.expect_stored(weights);
  if (const Builder::Mapped* mapped = out.mapped(node.inputs[0]); mapped != nullptr && reads_list(p)) {
    const Builder::Mapped x = *mapped;
    Call call = kernels::cpu::make_mapped_conv(p, narrow(out.tensor(x.whole).shape.dims[1]), x.channels, weights.data(),
                                               b != nullptr ? bias.data() : nullptr, out.target(), out.blocked_type());
    const TensorId residual = in.has(3) ? out.blocked(node.inputs[3]) : kAbsent;
    out.step(std::move(call), {x.whole, kAbsent, residual, out.define(node.outputs[0], true)}, &node);
    return {};
  }
  const std::int64_t taps = std::int64_t{p.kernel_h} * p.kernel_w;
  if (const Builder::Mapped* x = whole_alike(out, node.inputs[0], node.outputs[0], taps);
      x != nullptr && depthwise(p) && !in.has(3) && keeps_zero(p)) {
    const std::int64_t channels = out.tensor(x->whole).shape.dims[1];
    const std::vector<float> spread_weights = spread(weights, *x, channels);
    const std::vector<float> spread_bias = b != nullptr ? spread(bias, *x, channels) : std::vector<float>();
    p.c_in = p.c_out = p.group = narrow(channels);
    Call call = kernels::cpu::make_conv(p, spread_weights.data(), b != nullptr ? spread_bias.data() : nullptr, false,
                                        out.target(), out.blocked_type());
    const Alike alike = channels_alike(out, node.inputs[0], node.outputs[0], taps);
    out.step(std::move(call), {alike.x, kAbsent, kAbsent, alike.y}, &node);
    return {};
  }
  Call call = kernels::cpu::make_conv(p, weights.data(), b != nullptr ? bias.data() : nullptr, linear, out.target(),
                                      out.blocked_type());
  const TensorId x = linear ? out.image(node.inputs[0]) : out.blocked(node.inputs[0]);
  const TensorId residual = in.has(3) ? out.blocked(node.inputs[3]) : kAbsent;
  out.step(std::move(call), {x, kAbsent, residual, out.define(node.outputs[0], true)}, &node);
  return {};
}

Status lower_conv_transpose(Builder& out, const ir::Node& node) {
  const ir::OperatorInputs in{out.graph(), node};
  TAKT_ASSIGN(const ir::WindowGeometry g, ir::conv_transpose_geometry(node, in.tensors()));
  TAKT_ASSIGN(const kernels::reference::ConvEpilogue epilogue, ir::epilogue(node));
  const ir::Constant* w = in.constant(1);
  const ir::Constant* b = in.constant(2);
  if (w == nullptr || (in.has(2) && b == nullptr)) return fail(Code::kInput, "weights that are not constant");
  kernels::cpu::ConvParams p;
  fill_extents(p, in.shape(0), out.shape(node.outputs[0]));
  fill_window(p, g.window);
  p.c_in = narrow(in.shape(0).dims[1]);
  p.c_out = narrow(out.shape(node.outputs[0]).dims[1]);
  p.group = narrow(g.group);
  fill_activation(p, epilogue);
  const std::vector<float> weights = floats(*w);
  const std::vector<float> bias = b != nullptr ? floats(*b) : std::vector<float>();
  out.expect_stored(weights);
  Call call = kernels::cpu::make_conv_transpose(p, weights.data(), b != nullptr ? bias.data() : nullptr, out.target(),
                                                out.blocked_type());
  const TensorId x = out.blocked(node.inputs[0]), y = out.define(node.outputs[0], true);
  std::vector<TensorId> operands = {x, kAbsent, y};
  if (kernels::cpu::f32_form(call.id) == KernelId::kConvPointwise) operands = {x, kAbsent, kAbsent, y};
  out.step(std::move(call), std::move(operands), &node);
  return {};
}

// y = fma(x, a, b) per channel: a depthwise convolution of one tap gives the same bits.
Status lower_batch_normalization(Builder& out, const ir::Node& node) {
  const ir::OperatorInputs in{out.graph(), node};
  if (in.shape(0).rank != 4) return fail(Code::kInput, "an input of rank " + std::to_string(in.shape(0).rank));
  std::vector<float> parameters[4];  // scale, B, mean, variance
  for (std::size_t i = 0; i < 4; ++i) {
    const ir::Constant* constant = in.constant(i + 1);
    if (constant == nullptr) return fail(Code::kInput, "parameters that are not constant");
    parameters[i] = floats(*constant);
  }
  const auto& [scale_of, shift, mean, variance] = parameters;
  std::vector<float> scale, bias;
  for (std::size_t c = 0; c < mean.size(); ++c) {
    scale.push_back(scale_of[c] / std::sqrt(variance[c] + node.number("epsilon", 1e-5F)));
    bias.push_back(std::fma(-mean[c], scale[c], shift[c]));
  }
  kernels::cpu::ConvParams p;
  fill_extents(p, in.shape(0), in.shape(0));
  p.c_in = p.c_out = p.group = narrow(in.shape(0).dims[1]);
  out.expect_stored(scale);
  Call call = kernels::cpu::make_conv(p, scale.data(), bias.data(), false, out.target(), out.blocked_type());
  const TensorId x = out.blocked(node.inputs[0]);
  out.step(std::move(call), {x, kAbsent, kAbsent, out.define(node.outputs[0], true)}, &node);
  return {};
}

Status lower_pool(Builder& out, const ir::Node& node) {
  const ir::OperatorInputs in{out.graph(), node};
  TAKT_ASSIGN(const ir::WindowGeometry g, ir::pool_geometry(node, in.tensors()));
  kernels::cpu::PoolParams p;
  fill_extents(p, in.shape(0), out.shape(node.outputs[0]));
  fill_window(p, g.window);
  const Alike alike = channels_alike(out, node.inputs[0], node.outputs[0], taps_of(node));
  p.c = alike.channels;
  p.pad_bottom = narrow(g.pad_end[0]);
  p.pad_right = narrow(g.pad_end[1]);
  p.count_padding = node.integer("count_include_pad", 0) != 0 ? 1 : 0;
  const KernelId id = node.op == "MaxPool" ? KernelId::kMaxPool : KernelId::kAveragePool;
  out.step(make_call(id, p), {alike.x, alike.y}, &node);
  return {};
}

Status lower_resize(Builder& out, const ir::Node& node) {
  const ir::OperatorInputs in{out.graph(), node};
  TAKT_ASSIGN(const ir::ResizeGeometry g, ir::resize_geometry(node, in.tensors()));
  const Shape& x = in.shape(0);
  if (!Builder::can_be_blocked(in.type(0)) || g.out.dims[0] != x.dims[0] || g.out.dims[1] != x.dims[1]) {
    return fail(Code::kInput, ir::to_string(in.type(0)) + " to " + ir::to_string(g.out) +
                                  "; only rows and columns of f32 images are resized");
  }
  std::vector<kernels::Tap> taps[2];
  for (int d = 0; d < 2; ++d) {
    const kernels::reference::ResizeAxis& axis = g.axes[static_cast<std::size_t>(d) + 2];
    if (g.linear) {
      const kernels::reference::LinearTable table = kernels::reference::linear_table(axis);
      for (std::size_t i = 0; i < table.low.size(); ++i) {
        if (table.low[i] < 0) return fail(Code::kInput, "extrapolation outside the input");
        taps[d].push_back(
            {static_cast<std::uint32_t>(table.low[i]), static_cast<std::uint32_t>(table.high[i]), table.weight[i]});
      }
    } else {
      for (const std::int64_t index : kernels::reference::nearest_table(axis, g.nearest)) {
        if (index < 0) return fail(Code::kInput, "extrapolation outside the input");
        taps[d].push_back({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index), 0});
      }
    }
  }
  kernels::cpu::ResizeParams p;
  fill_extents(p, x, g.out);
  const Alike alike = channels_alike(out, node.inputs[0], node.outputs[0], taps_of(node));
  p.c = alike.channels;
  // Linear with every weight 0 is nearest by the same taps.
  Call call = kernels::cpu::make_resize(p, taps[0], taps[1]);
  out.step(std::move(call), {alike.x, kAbsent, alike.y}, &node);
  return {};
}

// Rows and columns of a blocked image; *known = false: the general form in lower_movement.cpp.
Status lower_pad(Builder& out, const ir::Node& node, bool* known) {
  const ir::OperatorInputs in{out.graph(), node};
  TAKT_ASSIGN(const ir::PadGeometry g, ir::pad_geometry(node, in.tensors()));
  *known = Builder::can_be_blocked(in.type(0)) && g.before[0] == 0 && g.after[0] == 0 && g.before[1] == 0 &&
           g.after[1] == 0 && g.before[2] >= 0 && g.after[2] >= 0 && g.before[3] >= 0 && g.after[3] >= 0 &&
           (out.has_blocked(node.inputs[0]) || g.mode != "constant");
  if (!*known) return {};
  if (g.mode == "constant" && in.has(2) && in.constant(2) == nullptr) {
    return fail(Code::kInput, "a value that is not constant");
  }
  kernels::cpu::PadParams p;
  fill_extents(p, in.shape(0), g.out);
  p.c = narrow(in.shape(0).dims[1]);
  p.top = narrow(g.before[2]);
  p.left = narrow(g.before[3]);
  p.mode = g.mode == "edge"      ? kernels::cpu::PadMode::kEdge
           : g.mode == "reflect" ? kernels::cpu::PadMode::kReflect
                                 : kernels::cpu::PadMode::kConstant;
  p.value = ir::pad_value(in.tensors());
  const TensorId x = out.blocked(node.inputs[0]);
  out.step(make_call(KernelId::kPad, p), {x, out.define(node.outputs[0], true)}, &node);
  return {};
}

Status lower_global_average_pool(Builder& out, const ir::Node& node) {
  const Shape& x = out.shape(node.inputs[0]);
  const kernels::cpu::ReorderParams p{narrow(x.dims[0]), narrow(x.dims[1]), x.dims[2] * x.dims[3]};
  const TensorId from = out.blocked(node.inputs[0]);
  out.step(make_call(KernelId::kGlobalAveragePool, p), {from, out.define(node.outputs[0], true)}, &node);
  return {};
}

Status lower_channel_gather(Builder& out, const ir::Node& node) {
  const ir::ValueId y = node.outputs[0];
  Builder::Mapped x = out.channels_of(node.inputs[0]);
  std::vector<std::int32_t> channels;
  std::set<std::int32_t> touched;  // blocks
  for (const std::int64_t c : node.integers("channels")) {
    channels.push_back(x.channels[static_cast<std::size_t>(c)]);
    touched.insert(channels.back() / out.block());
  }
  const std::int64_t filled = out.blocks_of(static_cast<std::int64_t>(channels.size()));
  x.channels = std::move(channels);
  if (static_cast<std::int64_t>(touched.size()) <= out.most_spread() * filled &&
      out.only_read_by_list(y, out.blocks_alike(x))) {
    out.define_mapped(y, std::move(x));
    ++out.statistics().views;
    return {};
  }
  const Shape& shape = out.shape(y);
  kernels::cpu::ChannelGatherParams p;
  p.n = narrow(shape.dims[0]);
  p.c_a = narrow(out.tensor(x.whole).shape.dims[1]);
  p.c_out = narrow(shape.dims[1]);
  p.pixels = shape.dims[2] * shape.dims[3];
  out.step(kernels::cpu::make_channel_gather(p, x.channels), {x.whole, kAbsent, kAbsent, out.define(y, true)}, &node);
  return {};
}

Status lower_preprocess(Builder& out, const ir::Node& node) {
  TAKT_ASSIGN(const kernels::Preprocess p,
              ir::preprocess_geometry(node, ir::OperatorInputs{out.graph(), node}.tensors()));
  const ir::ValueId y = node.outputs[0];
  const TensorId from = out.linear(node.inputs[0]);
  const TensorId to = out.only_read_as_image(y) ? out.define_image(y) : out.define(y, false);
  out.step(make_call(KernelId::kPreprocess, p), {from, to}, &node);
  return {};
}

}  // namespace

bool reads_by_list(const Builder& out, const ir::Node& node, ir::ValueId value, std::int64_t blocks) {
  // A concat takes what the value is mapped into, or gathers it.
  if (node.op == "Concat") return node.integer("axis", 0) == 1 && out.wants_blocked(node.outputs[0]);
  if (std::count(node.inputs.begin(), node.inputs.end(), value) != 1 || node.inputs[0] != value) return false;
  if (node.op == "takt.ChannelGather") return true;
  if (node.op == "MaxPool" || node.op == "AveragePool" || node.op == "Resize") {
    return out.better_whole(blocks, value, node.outputs[0], taps_of(node));
  }
  if (node.op != "Conv") return false;
  const ir::OperatorInputs in{out.graph(), node};
  const Result<ir::WindowGeometry> g = ir::conv_geometry(node, in.tensors());
  const Result<kernels::reference::ConvEpilogue> epilogue = ir::epilogue(node);
  if (!g || !epilogue || in.constant(1) == nullptr) return false;
  kernels::cpu::ConvParams p;
  fill_extents(p, in.shape(0), out.shape(node.outputs[0]));
  fill_window(p, g->window);
  p.c_in = narrow(in.shape(0).dims[1]);
  p.c_out = narrow(in.shape(1).dims[0]);
  p.group = narrow(g->group);
  p.activation = activation_of(epilogue->activation);
  p.alpha = epilogue->alpha;
  p.beta = epilogue->beta;
  return reads_list(p) || (depthwise(p) && !in.has(3) && keeps_zero(p) &&
                           out.better_whole(blocks, value, node.outputs[0], std::int64_t{p.kernel_h} * p.kernel_w));
}

Status lower_image_node(Builder& out, const ir::Node& node, bool* known) {
  *known = true;
  if (node.op == "Conv") return lower_conv(out, node);
  if (node.op == "ConvTranspose") return lower_conv_transpose(out, node);
  if (node.op == "BatchNormalization") return lower_batch_normalization(out, node);
  if (node.op == "MaxPool" || node.op == "AveragePool") return lower_pool(out, node);
  if (node.op == "GlobalAveragePool") return lower_global_average_pool(out, node);
  if (node.op == "Resize") return lower_resize(out, node);
  if (node.op == "Pad") return lower_pad(out, node, known);
  if (node.op == "takt.ChannelGather") return lower_channel_gather(out, node);
  if (node.op == "takt.Preprocess") return lower_preprocess(out, node);
  *known = false;
  return {};
}

}  // namespace takt::lower
