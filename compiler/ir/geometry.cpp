#include "compiler/ir/geometry.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace takt::ir {
namespace {

using kernels::Tensor;
using kernels::reference::Coordinates;
using kernels::reference::Nearest;

constexpr std::int64_t kMaxWindow = 1 << 16;  // strides, dilations, pads, kernel extents

tl::unexpected<Error> refuse(std::string message) { return fail(Code::kInput, std::move(message)); }

bool has(const Node& node, std::size_t i) { return i < node.inputs.size() && node.inputs[i] != kNoValue; }

Status images(const Node& node, const Tensor& x) {
  if (x.shape.rank == 4) return {};
  if (x.shape.rank == 3) {
    return refuse("1-d " + node.op + " over " + to_string(x.shape) + " is not supported; expected [N,C,H,W]");
  }
  return refuse("expects an input [N,C,H,W], found " + to_string(x.shape));
}

// Two values of an attribute, or `otherwise` twice.
Status pair(const Node& node, std::string_view key, std::int64_t otherwise, std::int64_t least, std::int64_t out[2]) {
  const std::vector<std::int64_t> values = node.integers(key);
  out[0] = out[1] = otherwise;
  if (values.empty()) return {};
  if (values.size() != 2) {
    return refuse("attribute " + std::string(key) + " has " + std::to_string(values.size()) + " values, expected 2");
  }
  for (std::size_t i = 0; i < 2; ++i) {
    if (values[i] < least || values[i] > kMaxWindow) {
      return refuse("attribute " + std::string(key) + " is " + std::to_string(values[i]) + ", expected " +
                    std::to_string(least) + " to " + std::to_string(kMaxWindow));
    }
    out[i] = values[i];
  }
  return {};
}

std::int64_t reach(const kernels::reference::Window& window, int axis) {
  return (window.kernel[axis] - 1) * window.dilation[axis] + 1;
}

// Strides, dilations, group, and the explicit pads; `same` is set where auto_pad asks for equal extents.
enum class AutoPad : std::uint8_t { kNone, kSameUpper, kSameLower };
Result<AutoPad> window_attributes(const Node& node, WindowGeometry* g) {
  TAKT_RETURN_IF_ERROR(pair(node, "strides", 1, 1, g->window.stride));
  TAKT_RETURN_IF_ERROR(pair(node, "dilations", 1, 1, g->window.dilation));
  const std::vector<std::int64_t> pads = node.integers("pads");
  if (!pads.empty()) {
    if (pads.size() != 4) {
      return refuse("attribute pads has " + std::to_string(pads.size()) + " values, expected 4");
    }
    for (const std::int64_t pad : pads) {
      if (pad < 0 || pad > kMaxWindow) {
        return refuse("attribute pads holds " + std::to_string(pad) + ", expected 0 to " + std::to_string(kMaxWindow));
      }
    }
    for (std::size_t i = 0; i < 2; ++i) {
      g->window.pad[i] = pads[i];
      g->pad_end[i] = pads[i + 2];
    }
  }
  const std::string mode = node.text("auto_pad", "NOTSET");
  if (mode == "SAME_UPPER") return AutoPad::kSameUpper;
  if (mode == "SAME_LOWER") return AutoPad::kSameLower;
  if (mode != "NOTSET" && mode != "VALID") return refuse("attribute auto_pad is \"" + printable(mode) + "\"");
  return AutoPad::kNone;
}

// The larger half of an odd padding lies behind (upper) or in front (lower).
void pad_same(AutoPad same, int axis, std::int64_t total, WindowGeometry* g) {
  total = std::max<std::int64_t>(total, 0);
  const std::int64_t less = total / 2;
  g->window.pad[axis] = same == AutoPad::kSameUpper ? less : total - less;
  g->pad_end[axis] = total - g->window.pad[axis];
}

Status extents(const Node& node, AutoPad same, const Shape& x, bool round_up, WindowGeometry* g) {
  for (int i = 0; i < 2; ++i) {
    const std::int64_t in = x.dims[2 + i];
    const std::int64_t stride = g->window.stride[i];
    if (same != AutoPad::kNone) {
      g->out[i] = (in + stride - 1) / stride;
      pad_same(same, i, (g->out[i] - 1) * stride + reach(g->window, i) - in, g);
      continue;
    }
    const std::int64_t free = in + g->window.pad[i] + g->pad_end[i] - reach(g->window, i);
    if (free < 0 || in == 0) {
      return refuse("a window of " + std::to_string(reach(g->window, i)) + " does not fit an extent of " +
                    std::to_string(in) + " with padding " + std::to_string(g->window.pad[i] + g->pad_end[i]));
    }
    g->out[i] = (free + (round_up ? stride - 1 : 0)) / stride + 1;
    // The last window has to begin inside the input or the padding in front of it.
    if (round_up && (g->out[i] - 1) * stride >= in + g->window.pad[i]) --g->out[i];
  }
  (void)node;
  return {};
}

Status filter(const Node& node, const Tensor& x, const Tensor& w, WindowGeometry* g) {
  TAKT_RETURN_IF_ERROR(images(node, x));
  if (w.shape.rank != 4) return refuse("expects weights of rank 4, found " + to_string(w.shape));
  g->group = node.integer("group", 1);
  for (int i = 0; i < 2; ++i) {
    g->window.kernel[i] = w.shape.dims[2 + i];
    if (g->window.kernel[i] < 1 || g->window.kernel[i] > kMaxWindow) {
      return refuse("weights " + to_string(w.shape) + " have an impossible window");
    }
  }
  const std::vector<std::int64_t> kernel = node.integers("kernel_shape");
  if (!kernel.empty() && (kernel.size() != 2 || kernel[0] != g->window.kernel[0] || kernel[1] != g->window.kernel[1])) {
    return refuse("attribute kernel_shape differs from the weights " + to_string(w.shape));
  }
  const std::int64_t channels = x.shape.dims[1];
  if (g->group < 1 || g->group > std::max(channels, w.shape.dims[0]) || channels % g->group != 0) {
    return refuse("attribute group is " + std::to_string(g->group) + " with " + std::to_string(channels) +
                  " input channels");
  }
  return {};
}

Status bias_fits(const Node& node, Tensors inputs, std::int64_t filters) {
  if (!has(node, 2)) return {};
  const Shape& shape = inputs[2].shape;
  if (shape.rank == 1 && shape.dims[0] == filters) return {};
  return refuse("expects a bias [" + std::to_string(filters) + "], found " + to_string(shape));
}

template <class T>
T element(const Tensor& t, std::size_t i) {
  T value{};
  std::memcpy(&value, static_cast<const std::byte*>(t.data) + i * sizeof(T), sizeof(T));
  return value;
}

// The constant f32 elements of an input of rank <= 1; empty where the input is absent or has none.
Result<std::vector<float>> floats_of(const Node& node, Tensors inputs, std::size_t i, std::string_view what) {
  std::vector<float> values;
  if (!has(node, i)) return values;
  const Tensor& t = inputs[i];
  if (t.dtype != DType::kF32 || t.shape.rank > 1) {
    return refuse("expects " + std::string(what) + " as f32 of rank 1, found " + to_string(Type{t.dtype, t.shape}));
  }
  if (t.shape.elements() == 0) return values;
  if (t.data == nullptr) return refuse(std::string(what) + " is known only at run time; it has to be a constant");
  for (std::size_t k = 0; k < static_cast<std::size_t>(t.shape.elements()); ++k) values.push_back(element<float>(t, k));
  return values;
}

Result<std::vector<std::int64_t>> optional_integers(const Node& node, Tensors inputs, std::size_t i,
                                                    std::string_view what) {
  if (!has(node, i)) return std::vector<std::int64_t>{};
  return integers_of(inputs[i], what);
}

// Axes given as a list, or all from 0 when the list is empty; each at most once.
Result<std::vector<int>> axes_of(const std::vector<std::int64_t>& given, std::size_t count, int rank) {
  std::vector<int> axes;
  std::vector<bool> seen(static_cast<std::size_t>(rank), false);
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t axis = given.empty() ? static_cast<std::int64_t>(i) : given[i];
    if (axis < -rank || axis >= rank) {
      return refuse("axis " + std::to_string(axis) + " is outside rank " + std::to_string(rank));
    }
    if (axis < 0) axis += rank;
    if (seen[static_cast<std::size_t>(axis)]) return refuse("axis " + std::to_string(axis) + " is named twice");
    seen[static_cast<std::size_t>(axis)] = true;
    axes.push_back(static_cast<int>(axis));
  }
  return axes;
}

}  // namespace

Result<Shape> broadcast(const Shape& a, const Shape& b) {
  Shape out;
  out.rank = std::max(a.rank, b.rank);
  for (int d = 0; d < out.rank; ++d) {
    const int in_a = d - (out.rank - a.rank);
    const int in_b = d - (out.rank - b.rank);
    const std::int64_t from_a = in_a < 0 ? 1 : a.dims[in_a];
    const std::int64_t from_b = in_b < 0 ? 1 : b.dims[in_b];
    if (from_a != from_b && from_a != 1 && from_b != 1) {
      return refuse("shapes " + to_string(a) + " and " + to_string(b) + " do not broadcast");
    }
    out.dims[d] = from_a == 1 ? from_b : from_a;
  }
  return out;
}

Result<int> axis_of(const Node& node, std::string_view key, std::int64_t otherwise, int rank) {
  const std::int64_t axis = node.integer(key, otherwise);
  if (axis < -rank || axis >= rank) {
    return refuse("attribute " + std::string(key) + " is " + std::to_string(axis) + " at rank " + std::to_string(rank));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Result<std::vector<std::int64_t>> integers_of(const Tensor& tensor, std::string_view what) {
  if ((tensor.dtype != DType::kI64 && tensor.dtype != DType::kI32) || tensor.shape.rank > 1) {
    return refuse("expects " + std::string(what) + " as i64 of rank 1, found " +
                  to_string(Type{tensor.dtype, tensor.shape}));
  }
  std::vector<std::int64_t> values;
  const auto elements = static_cast<std::size_t>(tensor.shape.elements());
  if (elements > 0 && tensor.data == nullptr) {
    return refuse(std::string(what) + " is known only at run time; it has to be a constant");
  }
  for (std::size_t i = 0; i < elements; ++i) {
    values.push_back(tensor.dtype == DType::kI64 ? element<std::int64_t>(tensor, i) : element<std::int32_t>(tensor, i));
  }
  return values;
}

Result<WindowGeometry> conv_geometry(const Node& node, Tensors inputs) {
  WindowGeometry g;
  TAKT_RETURN_IF_ERROR(filter(node, inputs[0], inputs[1], &g));
  TAKT_ASSIGN(const AutoPad same, window_attributes(node, &g));
  const Shape& x = inputs[0].shape;
  const Shape& w = inputs[1].shape;
  if (w.dims[1] * g.group != x.dims[1] || w.dims[0] < 1 || w.dims[0] % g.group != 0) {
    return refuse("weights " + to_string(w) + " do not fit the input " + to_string(x) + " with group " +
                  std::to_string(g.group));
  }
  TAKT_RETURN_IF_ERROR(bias_fits(node, inputs, w.dims[0]));
  TAKT_RETURN_IF_ERROR(extents(node, same, x, false, &g));
  return g;
}

Result<WindowGeometry> conv_transpose_geometry(const Node& node, Tensors inputs) {
  WindowGeometry g;
  TAKT_RETURN_IF_ERROR(filter(node, inputs[0], inputs[1], &g));
  TAKT_ASSIGN(const AutoPad same, window_attributes(node, &g));
  const Shape& x = inputs[0].shape;
  const Shape& w = inputs[1].shape;
  if (w.dims[0] != x.dims[1] || w.dims[1] < 1) {
    return refuse("weights " + to_string(w) + " do not fit the input " + to_string(x));
  }
  TAKT_RETURN_IF_ERROR(bias_fits(node, inputs, w.dims[1] * g.group));
  std::int64_t extra[2];
  TAKT_RETURN_IF_ERROR(pair(node, "output_padding", 0, 0, extra));
  const std::vector<std::int64_t> wanted = node.integers("output_shape");
  if (!wanted.empty() && wanted.size() != 2 && wanted.size() != 4) {
    return refuse("attribute output_shape has " + std::to_string(wanted.size()) + " values, expected 2");
  }
  for (int i = 0; i < 2; ++i) {
    const std::int64_t full =
        (x.dims[2 + i] - 1) * g.window.stride[i] + extra[i] + reach(g.window, i);  // without any padding
    if (!wanted.empty() || same != AutoPad::kNone) {
      g.out[i] =
          wanted.empty() ? x.dims[2 + i] * g.window.stride[i] : wanted[wanted.size() - 2 + static_cast<std::size_t>(i)];
      // Beyond the full extent lie rows that no input reaches, as with output_padding.
      const std::int64_t most = full + g.window.stride[i] - 1;
      if (g.out[i] < 1 || g.out[i] > most) {
        return refuse("an output extent of " + std::to_string(g.out[i]) + " is outside 1 to " + std::to_string(most));
      }
      pad_same(same == AutoPad::kSameUpper ? AutoPad::kSameUpper : AutoPad::kSameLower, i, full - g.out[i], &g);
    } else {
      g.out[i] = full - g.window.pad[i] - g.pad_end[i];
      if (g.out[i] < 1) return refuse("the padding leaves nothing of an extent of " + std::to_string(full));
    }
  }
  return g;
}

Result<WindowGeometry> pool_geometry(const Node& node, Tensors inputs) {
  WindowGeometry g;
  TAKT_RETURN_IF_ERROR(images(node, inputs[0]));
  TAKT_RETURN_IF_ERROR(pair(node, "kernel_shape", 0, 1, g.window.kernel));
  if (g.window.kernel[0] == 0) return refuse("attribute kernel_shape is missing");
  TAKT_ASSIGN(const AutoPad same, window_attributes(node, &g));
  const bool round_up = node.integer("ceil_mode", 0) != 0;
  TAKT_RETURN_IF_ERROR(extents(node, same, inputs[0].shape, round_up, &g));
  for (int i = 0; i < 2; ++i) {
    if (g.window.pad[i] >= reach(g.window, i) || g.pad_end[i] >= reach(g.window, i)) {
      return refuse("padding of " + std::to_string(std::max(g.window.pad[i], g.pad_end[i])) +
                    " reaches the window of " + std::to_string(reach(g.window, i)));
    }
  }
  return g;
}

Result<kernels::reference::ConvEpilogue> epilogue(const Node& node) {
  using kernels::reference::Activation;
  static constexpr std::pair<std::string_view, Activation> kNames[] = {
      {"none", Activation::kNone},          {"relu", Activation::kRelu}, {"clip", Activation::kClip},
      {"leaky", Activation::kLeaky},        {"silu", Activation::kSilu}, {"sigmoid", Activation::kSigmoid},
      {"hardswish", Activation::kHardSwish}};
  const std::string wanted = node.text("activation", "none");
  for (const auto& [name, activation] : kNames) {
    if (name == wanted) {
      return kernels::reference::ConvEpilogue{activation, node.number("alpha", 0), node.number("beta", 0)};
    }
  }
  return refuse("attribute activation is \"" + printable(wanted) + "\"");
}

Result<SliceGeometry> slice_geometry(const Node& node, Tensors inputs) {
  const Shape& x = inputs[0].shape;
  TAKT_ASSIGN(const std::vector<std::int64_t> starts, integers_of(inputs[1], "starts"));
  TAKT_ASSIGN(const std::vector<std::int64_t> ends, integers_of(inputs[2], "ends"));
  TAKT_ASSIGN(const std::vector<std::int64_t> given, optional_integers(node, inputs, 3, "axes"));
  TAKT_ASSIGN(const std::vector<std::int64_t> steps, optional_integers(node, inputs, 4, "steps"));
  if (ends.size() != starts.size() || (has(node, 3) && given.size() != starts.size()) ||
      (has(node, 4) && steps.size() != starts.size()) || starts.size() > static_cast<std::size_t>(x.rank)) {
    return refuse("starts, ends, axes and steps do not fit " + to_string(x));
  }
  TAKT_ASSIGN(const std::vector<int> axes, axes_of(given, starts.size(), x.rank));
  SliceGeometry g{x, std::vector<std::int64_t>(static_cast<std::size_t>(x.rank), 0),
                  std::vector<std::int64_t>(static_cast<std::size_t>(x.rank), 1)};
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const auto axis = static_cast<std::size_t>(axes[i]);
    const std::int64_t extent = x.dims[axis];
    const std::int64_t step =
        std::clamp(steps.empty() ? std::int64_t{1} : steps[i], -(kMaxElements + 1), kMaxElements + 1);
    if (step == 0) return refuse("a step is 0");
    std::int64_t start = starts[i] < 0 ? starts[i] + extent : starts[i];
    std::int64_t end = ends[i] < 0 ? ends[i] + extent : ends[i];
    std::int64_t length = 0;
    if (step > 0) {
      start = std::clamp<std::int64_t>(start, 0, extent);
      end = std::clamp<std::int64_t>(end, 0, extent);
      if (end > start) length = (end - start + step - 1) / step;
    } else if (extent > 0) {
      start = std::clamp<std::int64_t>(start, 0, extent - 1);
      end = std::clamp<std::int64_t>(end, -1, extent - 1);
      if (start > end) length = (start - end - step - 1) / -step;
    }
    g.out.dims[axis] = length;
    g.start[axis] = length > 0 ? start : 0;
    g.step[axis] = step;
  }
  return g;
}

Result<PadGeometry> pad_geometry(const Node& node, Tensors inputs) {
  const Shape& x = inputs[0].shape;
  TAKT_ASSIGN(const std::vector<std::int64_t> pads, integers_of(inputs[1], "pads"));
  TAKT_ASSIGN(const std::vector<std::int64_t> given, optional_integers(node, inputs, 3, "axes"));
  const std::size_t count = has(node, 3) ? given.size() : static_cast<std::size_t>(x.rank);
  if (pads.size() != 2 * count || count > static_cast<std::size_t>(x.rank)) {
    return refuse("expects " + std::to_string(2 * count) + " pads for " + to_string(x) + ", found " +
                  std::to_string(pads.size()));
  }
  TAKT_ASSIGN(const std::vector<int> axes, axes_of(given, count, x.rank));
  PadGeometry g{x, std::vector<std::int64_t>(static_cast<std::size_t>(x.rank), 0),
                std::vector<std::int64_t>(static_cast<std::size_t>(x.rank), 0), node.text("mode", "constant")};
  if (g.mode != "constant" && g.mode != "edge" && g.mode != "reflect") {
    return refuse("mode \"" + printable(g.mode) + "\" is not supported; expected constant, edge or reflect");
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto axis = static_cast<std::size_t>(axes[i]);
    const std::int64_t extent = x.dims[axis];
    const std::int64_t before = pads[i];
    const std::int64_t after = pads[i + count];
    for (const std::int64_t pad : {before, after}) {
      const bool reachable = g.mode == "constant" || (g.mode == "edge" ? pad == 0 || extent > 0 : pad < extent);
      if (pad < -extent || pad > kMaxElements || (pad != 0 && !reachable)) {
        return refuse("a pad of " + std::to_string(pad) + " does not fit an extent of " + std::to_string(extent) +
                      " in mode " + g.mode);
      }
    }
    if (extent + before + after < 0) {
      return refuse("pads " + std::to_string(before) + " and " + std::to_string(after) +
                    " cut more than an extent of " + std::to_string(extent));
    }
    g.before[axis] = before;
    g.after[axis] = after;
    g.out.dims[axis] = extent + before + after;
  }
  return g;
}

std::vector<std::int64_t> PadGeometry::indices(int dimension, std::int64_t extent) const {
  const auto d = static_cast<std::size_t>(dimension);
  std::vector<std::int64_t> table;
  for (std::int64_t o = 0; o < out.dims[d]; ++o) {
    std::int64_t i = o - before[d];
    if (mode == "edge") {
      i = std::clamp<std::int64_t>(i, 0, extent - 1);
    } else if (mode == "reflect") {
      i = i < 0 ? -i : i >= extent ? 2 * (extent - 1) - i : i;
    } else if (i < 0 || i >= extent) {
      i = -1;
    }
    table.push_back(i);
  }
  return table;
}

float pad_value(Tensors inputs) {
  if (inputs.size() < 3 || inputs[2].data == nullptr || inputs[2].dtype != DType::kF32 ||
      inputs[2].shape.elements() != 1) {
    return 0;
  }
  return element<float>(inputs[2], 0);
}

Result<ResizeGeometry> resize_geometry(const Node& node, Tensors inputs) {
  const Shape& x = inputs[0].shape;
  ResizeGeometry g;
  g.out = x;
  const std::string mode = node.text("mode", "nearest");
  if (mode != "nearest" && mode != "linear" && mode != "cubic") {
    return refuse("mode \"" + printable(mode) + "\" is not supported; expected nearest, linear or cubic");
  }
  g.linear = mode == "linear";
  g.cubic = mode == "cubic";
  const std::string policy = node.text("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller") {
    return refuse("keep_aspect_ratio_policy \"" + printable(policy) + "\" is not supported");
  }
  static constexpr std::pair<std::string_view, Coordinates> kCoordinates[] = {
      {"half_pixel", Coordinates::kHalfPixel},
      {"pytorch_half_pixel", Coordinates::kPytorchHalfPixel},
      {"align_corners", Coordinates::kAlignCorners},
      {"asymmetric", Coordinates::kAsymmetric},
      {"tf_half_pixel_for_nn", Coordinates::kTfHalfPixelForNn},
      {"tf_crop_and_resize", Coordinates::kTfCropAndResize},
      {"half_pixel_symmetric", Coordinates::kHalfPixelSymmetric}};
  static constexpr std::pair<std::string_view, Nearest> kNearest[] = {
      {"round_prefer_floor", Nearest::kRoundPreferFloor},
      {"round_prefer_ceil", Nearest::kRoundPreferCeil},
      {"floor", Nearest::kFloor},
      {"ceil", Nearest::kCeil}};
  const std::string coordinates = node.text("coordinate_transformation_mode", "half_pixel");
  const std::string nearest = node.text("nearest_mode", "round_prefer_floor");
  kernels::reference::ResizeAxis axis;
  const auto* c = std::find_if(std::begin(kCoordinates), std::end(kCoordinates),
                               [&](const auto& entry) { return entry.first == coordinates; });
  const auto* n =
      std::find_if(std::begin(kNearest), std::end(kNearest), [&](const auto& entry) { return entry.first == nearest; });
  if (c == std::end(kCoordinates)) return refuse("coordinate mode \"" + printable(coordinates) + "\" is not supported");
  if (n == std::end(kNearest)) return refuse("nearest mode \"" + printable(nearest) + "\" is not supported");
  axis.coordinates = c->second;
  g.nearest = n->second;
  g.extrapolation = node.number("extrapolation_value", 0);

  TAKT_ASSIGN(const std::vector<float> scales, floats_of(node, inputs, 2, "scales"));
  TAKT_ASSIGN(const std::vector<std::int64_t> sizes, optional_integers(node, inputs, 3, "sizes"));
  const std::vector<std::int64_t> given = node.integers("axes");
  const std::size_t count = given.empty() ? static_cast<std::size_t>(x.rank) : given.size();
  if (count > static_cast<std::size_t>(x.rank) || scales.size() + sizes.size() != count ||
      (!scales.empty() && !sizes.empty())) {
    return refuse("expects " + std::to_string(count) + " scales or sizes for " + to_string(x) + ", found " +
                  std::to_string(scales.size()) + " and " + std::to_string(sizes.size()));
  }
  TAKT_ASSIGN(const std::vector<int> axes, axes_of(given, count, x.rank));
  std::vector<float> roi;
  if (axis.coordinates == Coordinates::kTfCropAndResize) {
    TAKT_ASSIGN(roi, floats_of(node, inputs, 1, "roi"));
    if (roi.size() != 2 * count) return refuse("roi has " + std::to_string(roi.size()) + " values");
  }
  for (int d = 0; d < x.rank; ++d) {
    axis.in = axis.out = x.dims[d];
    axis.scale = 1;
    axis.length = static_cast<double>(axis.out);
    axis.roi_begin = 0;
    axis.roi_end = 1;
    g.axes.push_back(axis);
  }
  // One scale for all, the smallest or the largest that the sizes ask for.
  double common = 0;
  for (std::size_t i = 0; i < sizes.size() && policy != "stretch"; ++i) {
    const std::int64_t in = x.dims[axes[i]];
    const double scale = in > 0 ? static_cast<double>(sizes[i]) / static_cast<double>(in) : 1;
    common = i == 0 ? scale : policy == "not_larger" ? std::min(common, scale) : std::max(common, scale);
  }
  for (std::size_t i = 0; i < count; ++i) {
    kernels::reference::ResizeAxis& a = g.axes[static_cast<std::size_t>(axes[i])];
    if (scales.empty() && policy != "stretch") {
      if (!(common > 0) || !(common * static_cast<double>(a.in) < 0x1p31)) return refuse("a size is not usable");
      a.scale = common;
      a.out = static_cast<std::int64_t>(std::floor(common * static_cast<double>(a.in) + 0.5));
      a.length = static_cast<double>(a.out);
    } else if (!scales.empty()) {
      if (!(scales[i] > 0) || !(scales[i] * static_cast<float>(a.in) < 0x1p31F)) return refuse("a scale is not usable");
      a.scale = static_cast<double>(scales[i]);
      a.out = static_cast<std::int64_t>(std::floor(scales[i] * static_cast<float>(a.in)));
      a.length = a.scale * static_cast<double>(a.in);
    } else {
      if (sizes[i] < 0 || sizes[i] > kMaxElements) return refuse("a size is " + std::to_string(sizes[i]));
      a.out = sizes[i];
      a.scale = a.in > 0 ? static_cast<double>(a.out) / static_cast<double>(a.in) : 1;
      a.length = static_cast<double>(a.out);
    }
    if (!roi.empty()) {
      a.roi_begin = static_cast<double>(roi[i]);
      a.roi_end = static_cast<double>(roi[i + count]);
      if (!std::isfinite(a.roi_begin) || !std::isfinite(a.roi_end)) return refuse("roi is not finite");
    }
    if (a.in == 0 && a.out > 0) return refuse("nothing can be resized to " + std::to_string(a.out));
    g.out.dims[axes[i]] = a.out;
  }
  return g;
}

Result<std::vector<std::int64_t>> split_sizes(const Node& node, Tensors inputs) {
  const Shape& x = inputs[0].shape;
  TAKT_ASSIGN(const int axis, axis_of(node, "axis", 0, x.rank));
  const std::int64_t extent = x.dims[axis];
  const auto parts = static_cast<std::int64_t>(node.outputs.size());
  std::vector<std::int64_t> sizes;
  if (has(node, 1)) {
    TAKT_ASSIGN(sizes, integers_of(inputs[1], "split"));
  } else {
    const std::int64_t each = (extent + parts - 1) / parts;
    for (std::int64_t i = 0; i < parts; ++i) {
      sizes.push_back(std::clamp<std::int64_t>(extent - i * each, 0, each));
    }
  }
  std::int64_t sum = 0;
  for (const std::int64_t size : sizes) {
    if (size < 0 || size > extent - sum) return refuse("sizes do not add up to " + std::to_string(extent));
    sum += size;
  }
  if (sizes.size() != node.outputs.size() || sum != extent) {
    return refuse(std::to_string(sizes.size()) + " sizes for " + std::to_string(parts) +
                  " outputs do not add up to an extent of " + std::to_string(extent));
  }
  return sizes;
}

Result<kernels::Preprocess> preprocess_geometry(const Node& node, Tensors inputs) {
  static constexpr std::pair<std::string_view, kernels::PixelSource> kFormats[] = {
      {"rgb8", kernels::PixelSource::kRgb8},
      {"bgr8", kernels::PixelSource::kBgr8},
      {"mono8", kernels::PixelSource::kMono8},
      {"nv12", kernels::PixelSource::kNv12},
      {"bayer_rggb8", kernels::PixelSource::kBayerRggb8}};
  const Tensor& image = inputs[0];
  if (image.dtype != DType::kU8 || image.shape.rank != 1) {
    return refuse("expects an image payload u8[bytes], found " + to_string(Type{image.dtype, image.shape}));
  }
  kernels::Preprocess p;
  const std::string format = node.text("format", "");
  const auto* found =
      std::find_if(std::begin(kFormats), std::end(kFormats), [&](const auto& entry) { return entry.first == format; });
  if (found == std::end(kFormats)) return refuse("image format \"" + printable(format) + "\" is not supported");
  p.source = found->second;
  const auto extent = [&](std::string_view key, std::int64_t most, std::uint32_t* out) -> Status {
    const std::int64_t value = node.integer(key, 0);
    if (value < 1 || value > most) {
      return refuse("attribute " + std::string(key) + " is " + std::to_string(value) + ", expected 1 to " +
                    std::to_string(most));
    }
    *out = static_cast<std::uint32_t>(value);
    return {};
  };
  TAKT_RETURN_IF_ERROR(extent("width", kernels::kMaxPixels, &p.source_width));
  TAKT_RETURN_IF_ERROR(extent("height", kernels::kMaxPixels, &p.source_height));
  TAKT_RETURN_IF_ERROR(extent("out_width", kernels::kMaxPixels, &p.width));
  TAKT_RETURN_IF_ERROR(extent("out_height", kernels::kMaxPixels, &p.height));
  TAKT_RETURN_IF_ERROR(extent("pitch", kMaxElements, &p.pitch));
  const std::int64_t bytes = image.shape.dims[0];
  // Whether `rows` rows of `row_bytes` lie inside the payload.
  const auto plane_fits = [&](std::int64_t offset, std::int64_t pitch, std::int64_t rows, std::int64_t row_bytes) {
    return offset >= 0 && offset <= bytes && pitch >= row_bytes && (rows - 1) * pitch + row_bytes <= bytes - offset;
  };
  const std::int64_t offset = node.integer("offset", 0);
  const std::int64_t channels =
      p.source == kernels::PixelSource::kRgb8 || p.source == kernels::PixelSource::kBgr8 ? 3 : 1;
  bool fits = plane_fits(offset, p.pitch, p.source_height, channels * p.source_width);
  p.offset = static_cast<std::uint64_t>(offset);
  if (p.source == kernels::PixelSource::kNv12) {
    TAKT_RETURN_IF_ERROR(extent("chroma_pitch", kMaxElements, &p.chroma_pitch));
    const std::int64_t chroma = node.integer("chroma_offset", -1);
    if (p.source_width % 2 != 0 || p.source_height % 2 != 0) return refuse("an nv12 image has even extents");
    fits = fits && plane_fits(chroma, p.chroma_pitch, p.source_height / 2, p.source_width);
    p.chroma_offset = static_cast<std::uint64_t>(chroma);
  }
  if (p.source == kernels::PixelSource::kBayerRggb8 && (p.source_width < 2 || p.source_height < 2)) {
    return refuse("a bayer image has at least 2x2 pixels");
  }
  if (!fits) {
    return refuse("an image of " + std::to_string(p.source_width) + "x" + std::to_string(p.source_height) +
                  " with pitch " + std::to_string(p.pitch) + " does not fit a payload of " + std::to_string(bytes) +
                  " bytes");
  }
  const std::string fit = node.text("mode", "plain");
  const std::string colour = node.text("colour", "rgb");
  if (fit != "plain" && fit != "letterbox") return refuse("attribute mode is \"" + printable(fit) + "\"");
  if (colour != "rgb" && colour != "bgr") return refuse("attribute colour is \"" + printable(colour) + "\"");
  p.fit = fit == "letterbox" ? kernels::Fit::kLetterbox : kernels::Fit::kPlain;
  p.colour = colour == "bgr" ? kernels::ColourOrder::kBgr : kernels::ColourOrder::kRgb;
  const float pad = node.number("pad", 0);
  if (!(pad >= 0 && pad <= 255) || std::floor(pad) != pad) return refuse("attribute pad is no grey level 0 to 255");
  p.pad = static_cast<std::uint32_t>(pad);
  std::vector<float> mean = node.numbers("mean");
  std::vector<float> deviation = node.numbers("std");
  if (mean.empty()) mean = {0, 0, 0};
  if (deviation.empty()) deviation = {1, 1, 1};
  if (mean.size() != 3 || deviation.size() != 3) return refuse("attributes mean and std have three values each");
  const auto scale = static_cast<double>(node.number("scale", 1));
  for (std::size_t c = 0; c < 3; ++c) {
    if (!(deviation[c] > 0) || !std::isfinite(deviation[c]) || !std::isfinite(mean[c]) || !std::isfinite(scale)) {
      return refuse("scale, mean or std is not usable");
    }
    p.multiply[c] = static_cast<float>(scale / static_cast<double>(deviation[c]));
    p.add[c] = static_cast<float>(-static_cast<double>(mean[c]) / static_cast<double>(deviation[c]));
  }
  return p;
}

}  // namespace takt::ir
