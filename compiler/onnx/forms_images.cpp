// Windows over images, resizing, regions. Images of two dimensions in f32 have kernels of their own; those of one
// dimension become images of one row; everything else runs by the generic kernel.
#include <algorithm>
#include <cmath>

#include "compiler/onnx/call.h"
#include "kernels/reference/resize.h"

namespace takt::compiler {
namespace {

using Attributes = std::map<std::string, ir::Attribute>;
constexpr std::int64_t kMostWindow = 1 << 16;

// A list attribute with one value for each dimension; `otherwise` everywhere when it is absent.
Result<Integers> each(const Call& call, std::string_view key, std::size_t count, std::int64_t otherwise,
                      std::int64_t least) {
  Integers values = call.node.integers(key);
  if (values.empty()) return Integers(count, otherwise);
  const bool fits = values.size() == count && std::all_of(values.begin(), values.end(), [&](std::int64_t v) {
                      return v >= least && v <= kMostWindow;
                    });
  if (fits) return values;
  return fail(Code::kInput, "attribute " + std::string(key) + " does not fit: " + std::to_string(count) +
                                " values from " + std::to_string(least) + " to " + std::to_string(kMostWindow));
}

enum class Same : std::uint8_t { kNo, kUpper, kLower };
Result<Same> auto_pad(const Call& call) {
  const std::string mode = call.node.text("auto_pad", "NOTSET");
  if (mode == "SAME_UPPER") return Same::kUpper;
  if (mode == "SAME_LOWER") return Same::kLower;
  if (mode == "NOTSET" || mode == "VALID") return Same::kNo;
  return fail(Code::kInput, "attribute auto_pad is \"" + ir::printable(mode) + "\"");
}

// Everything that a window says, for every dimension.
struct Window {
  Integers kernel, strides, dilations, before, after;
  Same same = Same::kNo;
  [[nodiscard]] std::size_t size() const { return kernel.size(); }
  [[nodiscard]] std::int64_t reach(std::size_t d) const { return (kernel[d] - 1) * dilations[d] + 1; }
  // The larger half of an odd padding lies behind (upper) or in front (lower).
  void pad(std::size_t d, std::int64_t total) {
    total = std::max<std::int64_t>(total, 0);
    before[d] = same == Same::kUpper ? total / 2 : total - total / 2;
    after[d] = total - before[d];
  }
  [[nodiscard]] Attributes attributes() const {
    Integers pads = before;
    pads.insert(pads.end(), after.begin(), after.end());
    return {{"strides", strides}, {"dilations", dilations}, {"pads", pads}};
  }
};

Result<Window> window_of(const Call& call, const ir::Shape& x, Integers kernel) {
  if (x.rank < 3 || x.rank > 5 || kernel.size() != static_cast<std::size_t>(x.rank) - 2) {
    return fail(Code::kInput, "expects images [N,C,...] of one to three dimensions, found " + to_string(x));
  }
  Window w;
  w.kernel = std::move(kernel);
  for (const std::int64_t extent : w.kernel) {
    if (extent < 1 || extent > kMostWindow) return fail(Code::kInput, "a window of " + std::to_string(extent));
  }
  TAKT_ASSIGN(w.strides, each(call, "strides", w.size(), 1, 1));
  TAKT_ASSIGN(w.dilations, each(call, "dilations", w.size(), 1, 1));
  TAKT_ASSIGN(const Integers pads, each(call, "pads", 2 * w.size(), 0, 0));
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(w.size());
  w.before.assign(pads.begin(), middle);
  w.after.assign(middle, pads.end());
  TAKT_ASSIGN(w.same, auto_pad(call));
  return w;
}

void pad_to_same(Window* w, const ir::Shape& x) {
  for (std::size_t d = 0; d < w->size() && w->same != Same::kNo; ++d) {
    const std::int64_t in = x.dims[d + 2];
    const std::int64_t out = (in + w->strides[d] - 1) / w->strides[d];
    w->pad(d, (out - 1) * w->strides[d] + w->reach(d) - in);
  }
}

Integers kernel_of(const ir::Shape& weights) {
  return {weights.dims + std::min(weights.rank, 2), weights.dims + weights.rank};
}

Status kernel_agrees(const Call& call, const Integers& kernel) {
  const Integers given = call.node.integers("kernel_shape");
  if (given.empty() || given == kernel) return {};
  return fail(Code::kInput, "attribute kernel_shape differs from the weights");
}

// A list for images of one row.
Integers in_a_row(const Integers& values, std::int64_t first) {
  Integers out;
  const std::size_t half = values.size() == 2 ? 1 : values.size();
  for (std::size_t i = 0; i < values.size(); i += half) {
    out.push_back(first);
    out.insert(out.end(), values.begin() + static_cast<std::ptrdiff_t>(i),
               values.begin() + static_cast<std::ptrdiff_t>(i + half));
  }
  return out;
}

Attributes row_window(const Window& w) {
  const Integers pads = {0, w.before[0], 0, w.after[0]};
  return {{"strides", in_a_row(w.strides, 1)}, {"dilations", in_a_row(w.dilations, 1)}, {"pads", pads}};
}

// [N,C,L] as [N,C,1,L]; constants stay constants.
ValueId with_row(Call& call, Steps& steps, ValueId value) {
  const ir::Shape x = steps.shape(value);
  const ir::Shape image{4, {x.dims[0], x.dims[1], 1, x.dims[2]}};
  if (call.graph[value].constant) {
    Constant constant = *call.graph[value].constant;
    constant.shape = image;
    return call.constant("row" + std::to_string(value), std::move(constant));
  }
  return steps.reshape(value, Integers(image.dims, image.dims + 4));
}

Status without_row(Steps& steps, ValueId image) {
  TAKT_RETURN_IF_ERROR(steps.status());
  const ir::Shape y = steps.shape(image);
  return steps.last_reshape(image, Integers{y.dims[0], y.dims[1], y.dims[3]});
}

bool has_kernel(const Call& call) { return call.type(0).dtype == DType::kF32 && call.type(0).shape.rank <= 4; }

Status conv(Call& call) {
  if (!call.has(1)) return fail(Code::kInput, "expects x and weights");
  const ir::Shape x = call.type(0).shape;
  if (has_kernel(call) && x.rank == 4) return call.emit();
  const Integers kernel = kernel_of(call.type(1).shape);
  TAKT_RETURN_IF_ERROR(kernel_agrees(call, kernel));
  TAKT_ASSIGN(Window w, window_of(call, x, kernel));
  pad_to_same(&w, x);
  Steps steps(call);
  std::vector<ValueId> inputs = call.node.inputs;
  const bool row = has_kernel(call) && call.type(1).shape.rank == 3;
  Attributes attributes = row ? row_window(w) : w.attributes();
  attributes["group"] = call.node.integer("group", 1);
  if (!row) return steps.last("takt.ConvNd", inputs, std::move(attributes));
  for (std::size_t i = 0; i < 2; ++i) inputs[i] = with_row(call, steps, inputs[i]);
  return without_row(steps, steps("Conv", inputs, std::move(attributes)));
}

Status conv_transpose(Call& call) {
  if (!call.has(1)) return fail(Code::kInput, "expects x and weights");
  const ir::Shape x = call.type(0).shape;
  if (has_kernel(call) && x.rank == 4) return call.emit();
  const Integers kernel = kernel_of(call.type(1).shape);
  TAKT_RETURN_IF_ERROR(kernel_agrees(call, kernel));
  TAKT_ASSIGN(Window w, window_of(call, x, kernel));
  TAKT_ASSIGN(Integers extra, each(call, "output_padding", w.size(), 0, 0));
  Integers wanted = call.node.integers("output_shape");
  if (wanted.size() == w.size() + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (!wanted.empty() && wanted.size() != w.size())
    return fail(Code::kInput, "attribute output_shape has another length");
  for (std::size_t d = 0; d < w.size() && (w.same != Same::kNo || !wanted.empty()); ++d) {
    const std::int64_t in = x.dims[d + 2];
    const std::int64_t full = (in - 1) * w.strides[d] + extra[d] + w.reach(d);
    const std::int64_t out = wanted.empty() ? in * w.strides[d] : wanted[d];
    if (out < 1 || out > full + kMostWindow) return fail(Code::kInput, "an extent of " + std::to_string(out));
    w.pad(d, full - out);
    extra[d] += std::max<std::int64_t>(out - full, 0);
  }
  Steps steps(call);
  std::vector<ValueId> inputs = call.node.inputs;
  const bool row = has_kernel(call) && call.type(1).shape.rank == 3;
  Attributes attributes = row ? row_window(w) : w.attributes();
  attributes["group"] = call.node.integer("group", 1);
  attributes["output_padding"] = row ? in_a_row(extra, 0) : extra;
  if (!row) return steps.last("takt.ConvTransposeNd", inputs, std::move(attributes));
  for (std::size_t i = 0; i < 2; ++i) inputs[i] = with_row(call, steps, inputs[i]);
  return without_row(steps, steps("ConvTranspose", inputs, std::move(attributes)));
}

// The generic pool of a kind, with the window settled.
Result<Attributes> pool_attributes(const Call& call, std::string kind) {
  const ir::Shape x = call.type(0).shape;
  if (call.node.integers("kernel_shape").empty()) return fail(Code::kInput, "attribute kernel_shape is missing");
  TAKT_ASSIGN(Window w, window_of(call, x, call.node.integers("kernel_shape")));
  pad_to_same(&w, x);
  Attributes attributes = w.attributes();
  attributes["kernel_shape"] = w.kernel;
  attributes["kind"] = std::move(kind);
  attributes["ceil_mode"] = call.node.integer("ceil_mode", 0);
  attributes["storage_order"] = call.node.integer("storage_order", 0);
  attributes["p"] = call.node.integer("p", 2);
  return attributes;
}

Status pool(Call& call) {
  const bool average = call.node.op == "AveragePool";
  const bool padding = average && call.node.integer("count_include_pad", 0) != 0;
  const bool indices = call.node.outputs.size() == 2;
  const ir::Shape x = call.type(0).shape;
  if (has_kernel(call) && !indices && x.rank == 4) return call.emit();
  std::string kind = padding ? "average_with_padding" : average ? "average" : indices ? "max_indices" : "max";
  TAKT_ASSIGN(Attributes attributes, pool_attributes(call, std::move(kind)));
  if (has_kernel(call) && !indices && x.rank == 3) {
    TAKT_ASSIGN(Window w, window_of(call, x, call.node.integers("kernel_shape")));
    pad_to_same(&w, x);
    Attributes row = row_window(w);
    row["kernel_shape"] = in_a_row(w.kernel, 1);
    row["ceil_mode"] = call.node.integer("ceil_mode", 0);
    if (average) row["count_include_pad"] = std::int64_t{padding ? 1 : 0};
    Steps steps(call);
    return without_row(steps, steps(call.node.op, {with_row(call, steps, call.node.inputs[0])}, std::move(row)));
  }
  call.node.op = "takt.PoolNd";
  call.node.attributes = std::move(attributes);
  return call.emit();
}

Status lp_pool(Call& call) {
  TAKT_ASSIGN(call.node.attributes, pool_attributes(call, "lp"));
  call.node.op = "takt.PoolNd";
  return call.emit();
}

// Over everything but images and channels.
Status global_pool(Call& call) {
  const ir::Shape x = call.type(0).shape;
  if (x.rank < 3) return fail(Code::kInput, "expects images [N,C,...], found " + to_string(x));
  const bool average = call.node.op == "GlobalAveragePool";
  if (has_kernel(call) && x.rank == 4) {
    if (average) return call.emit();
    call.node.op = "MaxPool";
    call.node.attributes = {{"kernel_shape", Integers{x.dims[2], x.dims[3]}}};
    return call.emit();
  }
  call.node.op = average ? "ReduceMean" : "ReduceMax";
  call.node.attributes = {{"axes", axes_between(2, x.rank)}, {"keepdims", std::int64_t{1}}};
  return call.emit();
}

Status global_lp_pool(Call& call) {
  const ir::Shape x = call.type(0).shape;
  if (x.rank < 3 || x.rank > 5) return fail(Code::kInput, "expects images [N,C,...], found " + to_string(x));
  call.node.attributes["kernel_shape"] = Integers(x.dims + 2, x.dims + x.rank);
  return lp_pool(call);
}

// Elements back to where a MaxPool took them from. Indices count in the image that the window implies; a given shape is
// that image with more or fewer rows and columns at the end.
Status max_unpool(Call& call) {
  if (!call.has(1)) return fail(Code::kInput, "expects x and indices");
  const ir::Shape x = call.type(0).shape;
  TAKT_ASSIGN(const Window w, window_of(call, x, call.node.integers("kernel_shape")));
  Integers shape(x.dims, x.dims + x.rank);
  for (std::size_t d = 0; d < w.size(); ++d) {
    shape[d + 2] = (x.dims[d + 2] - 1) * w.strides[d] - w.before[d] - w.after[d] + w.kernel[d];
  }
  Steps steps(call);
  const std::vector<ValueId> inputs = {call.node.inputs[0], call.node.inputs[1]};
  if (!call.has(2)) return steps.last("takt.MaxUnpool", inputs, {{"shape", shape}});
  TAKT_ASSIGN(const Integers wanted, constant_integers(call, 2, "output_shape"));
  if (wanted.size() != shape.size()) return fail(Code::kInput, "output_shape has another rank than " + to_string(x));
  Integers pads(2 * shape.size(), 0);
  for (std::size_t d = 0; d < shape.size(); ++d) pads[shape.size() + d] = wanted[d] - shape[d];
  const ValueId image = steps("takt.MaxUnpool", inputs, {{"shape", shape}});
  return steps.last("Pad", {image, steps.list(pads)});
}

// Before operator set 16 regions were not shifted by half a pixel.
Status roi_align(Call& call) {
  if (call.opset < 16) call.node.attributes["coordinate_transformation_mode"] = std::string("output_half_pixel");
  return call.emit();
}

Status upsample(Call& call);

// --- resizing along one axis at a time, by weighted positions

// Keys' kernel (Cubic convolution interpolation for digital image processing, 1981).
double cubic(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

constexpr std::int64_t kMostTaps = 1 << 26;

struct Filter {
  bool cubic = false;
  double a = -0.75;
  bool antialias = false, exclude_outside = false;
};

// Neighbours of a coordinate and their weights, which add up to 1. Where an antialiased picture shrinks, the kernel is
// as much wider.
Status taps_of(const kernels::reference::ResizeAxis& axis, const Filter& filter, Integers* positions,
               std::vector<float>* weights, std::int64_t* count) {
  const double shrink = filter.antialias ? std::min(axis.scale, 1.0) : 1.0;
  const double reach = (filter.cubic ? 2.0 : 1.0) / shrink;
  if (!(reach < static_cast<double>(kMostWindow))) return fail(Code::kInput, "a scale is too small");
  *count = 2 * static_cast<std::int64_t>(std::ceil(reach));
  if (*count * axis.out > kMostTaps) return fail(Code::kInput, "a table of weights for so large a result");
  for (std::int64_t o = 0; o < axis.out; ++o) {
    const double x = kernels::reference::coordinate(axis, o);
    if (kernels::reference::outside(axis, x)) {
      positions->insert(positions->end(), static_cast<std::size_t>(*count), -1);
      weights->insert(weights->end(), static_cast<std::size_t>(*count), 0.0F);
      continue;
    }
    const auto first = static_cast<std::int64_t>(std::floor(x)) - *count / 2 + 1;
    std::vector<double> line;
    double sum = 0;
    for (std::int64_t k = 0; k < *count; ++k) {
      const double distance = (static_cast<double>(first + k) - x) * shrink;
      double weight = filter.cubic ? cubic(distance, filter.a) : std::max(1 - std::fabs(distance), 0.0);
      const bool inside = first + k >= 0 && first + k < axis.in;
      if (filter.exclude_outside && !inside) weight = 0;
      line.push_back(weight);
      sum += weight;
      positions->push_back(std::clamp<std::int64_t>(first + k, 0, axis.in - 1));
    }
    for (const double weight : line) weights->push_back(static_cast<float>(sum != 0 ? weight / sum : 0));
  }
  return {};
}

Status resize_by_axes(Call& call, const ir::ResizeGeometry& g) {
  const DType type = call.type(0).dtype;
  const Filter filter{g.cubic, static_cast<double>(call.node.number("cubic_coeff_a", -0.75F)),
                      call.node.integer("antialias", 0) != 0, call.node.integer("exclude_outside", 0) != 0};
  Steps steps(call);
  ValueId value = call.node.inputs[0];
  const bool nearest = !g.linear && !g.cubic;
  const bool real = type == DType::kF32 || type == DType::kF64;
  if (!nearest && !real) return fail(Code::kInput, "whole numbers are resized in mode nearest alone");
  for (std::size_t d = 0; d < g.axes.size(); ++d) {
    const kernels::reference::ResizeAxis& axis = g.axes[d];
    const bool same = axis.in == axis.out && axis.scale == 1 && axis.roi_begin == 0 && axis.roi_end == 1;
    if (same) continue;
    const auto at = static_cast<std::int64_t>(d);
    Integers positions;
    std::vector<float> weights;
    std::int64_t count = 1;
    if (nearest) {
      if (axis.out > kMostTaps) return fail(Code::kInput, "a result of " + to_string(g.out));
      positions = kernels::reference::nearest_table(axis, g.nearest);
      weights.assign(positions.size(), 1.0F);
    } else {
      TAKT_RETURN_IF_ERROR(taps_of(axis, filter, &positions, &weights, &count));
    }
    const bool leaves = std::any_of(positions.begin(), positions.end(), [](std::int64_t i) { return i < 0; });
    if (nearest && !leaves) {
      value = steps("Gather", {value, steps.list(positions)}, {{"axis", at}});
      continue;
    }
    if (!real) return fail(Code::kInput, "extrapolation of whole numbers");
    const ir::Shape table{2, {axis.out, count}};
    Constant indices = Constant::of(positions);
    indices.shape = table;
    const ValueId taps = call.constant("positions" + std::to_string(d), std::move(indices));
    const ValueId shares = call.constant("weights" + std::to_string(d), Constant::of(weights, table));
    value = steps("takt.Resample", {value, taps, shares}, {{"axis", at}, {"outside", g.extrapolation}});
  }
  return steps.last("Identity", {value});
}

Status resize(Call& call) {
  if (call.opset < 11) return upsample(call);
  TAKT_ASSIGN(const ir::ResizeGeometry g,
              ir::resize_geometry(call.node, ir::OperatorInputs{call.graph, call.node}.tensors()));
  const ir::Shape x = call.type(0).shape;
  if (!ir::within_limits(g.out)) return fail(Code::kInput, "a result of " + to_string(g.out));
  bool direct = x.rank == 4 && call.type(0).dtype == DType::kF32 && !g.cubic && x.dims[0] == g.out.dims[0] &&
                x.dims[1] == g.out.dims[1] && call.node.integer("antialias", 0) == 0 &&
                call.node.text("keep_aspect_ratio_policy", "stretch") == "stretch";
  for (const auto& axis : g.axes) {
    direct = direct && axis.coordinates != kernels::reference::Coordinates::kTfCropAndResize;
  }
  if (direct) {
    for (const char* key : {"cubic_coeff_a", "exclude_outside", "antialias"}) call.take(key);
  }
  return direct ? call.emit() : resize_by_axes(call, g);
}

Status upsample(Call& call) {
  if (call.opset < 9) {
    const std::vector<float> scales = call.node.numbers("scales");
    call.node.inputs.resize(1);
    call.node.inputs.push_back(
        call.constant("scales", Constant::of(scales, ir::Shape{1, {static_cast<std::int64_t>(scales.size())}})));
    call.take("scales");
  }
  if (call.node.inputs.size() != 2) return fail(Code::kInput, "expects the inputs X and scales");
  call.node.op = "Resize";
  call.node.inputs = {call.node.inputs[0], kNoValue, call.node.inputs[1]};
  call.node.attributes["mode"] = call.node.text("mode", "nearest");
  call.node.attributes["coordinate_transformation_mode"] = std::string("asymmetric");
  call.node.attributes["nearest_mode"] = std::string("floor");
  call.opset = 11;
  return resize(call);
}

constexpr Form kForms[] = {
    {"AveragePool", "auto_pad:s dilations:I kernel_shape:I pads:I strides:I ceil_mode:i count_include_pad:i", pool},
    {"Conv", "auto_pad:s dilations:I kernel_shape:I pads:I strides:I group:i", conv},
    {"ConvTranspose", "auto_pad:s dilations:I kernel_shape:I pads:I strides:I group:i output_padding:I output_shape:I",
     conv_transpose},
    {"GlobalAveragePool", "", global_pool},
    {"GlobalLpPool", "p:i", global_lp_pool},
    {"GlobalMaxPool", "", global_pool},
    {"LpPool", "auto_pad:s dilations:I kernel_shape:I pads:I strides:I ceil_mode:i p:i", lp_pool},
    {"MaxPool", "auto_pad:s dilations:I kernel_shape:I pads:I strides:I ceil_mode:i storage_order:i", pool, 2},
    {"MaxUnpool", "kernel_shape:I pads:I strides:I", max_unpool},
    {"Resize",
     "antialias:i axes:I coordinate_transformation_mode:s cubic_coeff_a:f exclude_outside:i extrapolation_value:f "
     "keep_aspect_ratio_policy:s mode:s nearest_mode:s",
     resize},
    {"RoiAlign",
     "coordinate_transformation_mode:s mode:s output_height:i output_width:i sampling_ratio:i spatial_scale:f",
     roi_align},
    {"Upsample", "mode:s scales:F", upsample},
};

}  // namespace

std::span<const Form> image_forms() { return kForms; }

Result<std::map<std::string, ir::Attribute>> settled_window(const Call& call, const ir::Shape& x,
                                                            const ir::Shape& weights) {
  const Integers kernel = kernel_of(weights);
  TAKT_RETURN_IF_ERROR(kernel_agrees(call, kernel));
  TAKT_ASSIGN(Window w, window_of(call, x, kernel));
  pad_to_same(&w, x);
  Attributes attributes = w.attributes();
  attributes["group"] = call.node.integer("group", 1);
  return attributes;
}

}  // namespace takt::compiler
