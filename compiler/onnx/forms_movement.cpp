// Operators that move elements, and constants.
#include <algorithm>

#include "compiler/onnx/call.h"
#include "compiler/onnx/tensor_proto.h"

namespace takt::compiler {
namespace {

Status concat(Call& call) {
  if (call.opset < 4 && call.node.attributes.count("axis") == 0) call.node.attributes["axis"] = std::int64_t{1};
  return call.emit();
}

Status split(Call& call) {
  if (call.opset < 13) call.to_input("split", 1);
  return call.emit();
}

Status squeeze(Call& call) {
  if (call.opset < 13) call.to_input("axes", 1);
  return call.emit();
}

Status slice(Call& call) {
  if (call.opset < 10) {
    call.node.inputs.resize(1);
    call.to_input("starts", 1);
    call.to_input("ends", 2);
    call.to_input("axes", 3);
  }
  return call.emit();
}

Status constant(Call& call) {
  if (call.node.attributes.size() != 1 || call.node.outputs.size() != 1) {
    return fail(Code::kInput, "expects one attribute and one output");
  }
  const ir::Attribute& value = call.node.attributes.begin()->second;
  Constant result;
  if (const auto* tensor = std::get_if<std::shared_ptr<const Constant>>(&value)) {
    result = **tensor;
  } else if (const auto* number = std::get_if<float>(&value)) {
    result = Constant::scalar(*number);
  } else if (const auto* numbers = std::get_if<std::vector<float>>(&value)) {
    result = Constant::of(*numbers, ir::Shape{1, {static_cast<std::int64_t>(numbers->size())}});
  } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    result = Constant::of(std::span(integer, 1));
    result.shape = ir::Shape{};
  } else if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value)) {
    result = Constant::of(*integers);
  } else {
    return fail(Code::kInput, "constants of text are not supported");
  }
  ir::Value& output = call.graph[call.node.outputs[0]];
  output.type = ir::Type{result.dtype, result.shape};
  output.constant = std::make_shared<const Constant>(std::move(result));
  return {};
}

Status size(Call& call) {
  const std::int64_t elements = call.type(0).shape.elements();
  Constant value = Constant::of(std::span(&elements, 1));
  value.shape = ir::Shape{};
  ir::Value& output = call.graph[call.node.outputs[0]];
  output.type = ir::Type{value.dtype, value.shape};
  output.constant = std::make_shared<const Constant>(std::move(value));
  return {};
}

Status eye_like(Call& call) {
  const ir::Shape shape = call.type(0).shape;
  if (shape.rank != 2) return fail(Code::kInput, "expects a matrix, found " + to_string(shape));
  if (shape.elements() > (1 << 24)) return fail(Code::kInput, "is too large: " + to_string(shape));
  DType dtype = call.type(0).dtype;
  if (call.node.attributes.count("dtype") != 0) {
    TAKT_ASSIGN(dtype, element_type(static_cast<std::int32_t>(call.node.integer("dtype", 0))));
  }
  Constant ones = Constant::allocate(DType::kF32, shape);
  for (std::int64_t row = 0; row < shape.dims[0]; ++row) {
    const std::int64_t k = call.node.integer("k", 0);
    const bool inside = k >= -row && k < shape.dims[1] - row;
    if (inside) ones.tensor().as<float>()[row * shape.dims[1] + row + k] = 1;
  }
  Steps steps(call);
  return steps.last("Cast", {call.constant("ones", std::move(ones))}, {{"to", std::string(kernels::name_of(dtype))}});
}

// blocksize x blocksize pixels of the result come from so many channels.
Status depth_to_space(Call& call) {
  const ir::Shape x = call.type(0).shape;
  const std::int64_t b = call.node.integer("blocksize", 0);
  const std::string mode = call.node.text("mode", "DCR");
  if (x.rank != 4 || b < 1 || b > (1 << 15) || x.dims[1] % (b * b) != 0 || (mode != "DCR" && mode != "CRD")) {
    return fail(Code::kInput, "blocksize " + std::to_string(b) + " does not fit " + to_string(x));
  }
  const std::int64_t c = x.dims[1] / (b * b);
  const std::int64_t n = x.dims[0], h = x.dims[2], w = x.dims[3];
  Steps steps(call);
  const ValueId split = mode == "DCR" ? steps.reshape(call.node.inputs[0], Integers{n, b, b, c, h, w})
                                      : steps.reshape(call.node.inputs[0], Integers{n, c, b, b, h, w});
  const ValueId moved = steps.transpose(split, mode == "DCR" ? Integers{0, 3, 4, 1, 5, 2} : Integers{0, 1, 4, 2, 5, 3});
  return steps.last_reshape(moved, Integers{n, c, h * b, w * b});
}

Status space_to_depth(Call& call) {
  const ir::Shape x = call.type(0).shape;
  const std::int64_t b = call.node.integer("blocksize", 0);
  if (x.rank != 4 || b < 1 || b > (1 << 15) || x.dims[2] % b != 0 || x.dims[3] % b != 0) {
    return fail(Code::kInput, "blocksize " + std::to_string(b) + " does not fit " + to_string(x));
  }
  const std::int64_t n = x.dims[0], c = x.dims[1], h = x.dims[2] / b, w = x.dims[3] / b;
  Steps steps(call);
  const ValueId split = steps.reshape(call.node.inputs[0], Integers{n, c, h, b, w, b});
  return steps.last_reshape(steps.transpose(split, {0, 3, 5, 1, 2, 4}), Integers{n, c * b * b, h, w});
}

// Every extent repeated: [a, b] becomes [1, a, 1, b], then [r, a, s, b], then [r a, s b].
Status tile(Call& call) {
  if (!call.has(1)) return fail(Code::kInput, "expects two inputs");
  const ir::Shape x = call.type(0).shape;
  TAKT_ASSIGN(const Integers repeats, constant_integers(call, 1, "repeats"));
  if (static_cast<int>(repeats.size()) != x.rank || x.rank > 4) {
    return fail(Code::kInput, "expects one repeat for each dimension of " + to_string(x) + ", and at most 4");
  }
  Integers apart, repeated, joined;
  for (int d = 0; d < x.rank; ++d) {
    const std::int64_t r = repeats[static_cast<std::size_t>(d)];
    if (r < 0 || r > ir::kMaxElements) return fail(Code::kInput, "a repeat is " + std::to_string(r));
    apart.insert(apart.end(), {1, x.dims[d]});
    repeated.insert(repeated.end(), {r, x.dims[d]});
    joined.push_back(r * x.dims[d]);
  }
  Steps steps(call);
  const ValueId spread = steps.reshape(call.node.inputs[0], apart);
  return steps.last_reshape(steps("Expand", {spread, steps.list(repeated)}), joined);
}

Status trilu(Call& call) {
  if (call.has(1)) {
    TAKT_ASSIGN(const std::int64_t k, constant_integer(call, 1, "k"));
    call.node.attributes["k"] = k;
  }
  call.node.inputs.resize(1);
  return call.emit();
}

Status one_hot(Call& call) {
  if (!call.has(1) || !call.has(2)) return fail(Code::kInput, "expects three inputs");
  const Constant* given = call.graph[call.node.inputs[1]].constant.get();
  if (given == nullptr || given->shape.elements() != 1) return fail(Code::kInput, "depth is no constant number");
  // Numbers of any type are taken; i64 is what counts.
  Constant depth = Constant::allocate(DType::kI64, ir::Shape{});
  kernels::reference::cast(given->tensor(), depth.tensor());
  call.node.attributes["depth"] = *depth.tensor().as<std::int64_t>();
  ValueId indices = call.node.inputs[0];
  const ValueId values = call.node.inputs[2];
  if (call.type(0).dtype != DType::kI64 && call.type(0).dtype != DType::kI32) {
    Node cast;
    cast.op = "Cast";
    cast.name = call.node.name + ".indices";
    cast.inputs = {indices};
    indices = call.graph.add_value(cast.name);
    cast.outputs = {indices};
    cast.attributes["to"] = std::string(kernels::name_of(DType::kI64));
    TAKT_RETURN_IF_ERROR(ir::append(call.graph, std::move(cast)));
  }
  call.node.inputs = {indices, values};
  return call.emit();
}

Status scatter(Call& call) {
  call.node.op = "ScatterElements";
  return call.emit();
}

constexpr std::int64_t kMostIndices = 1 << 24;

// Indices of an axis padded in a mode that repeats elements of the input.
Result<Integers> padded_indices(const std::string& mode, std::int64_t extent, std::int64_t before, std::int64_t after) {
  Integers indices;
  if (extent < 1 || before < -extent || after < -extent || extent + before + after < 0) {
    return fail(Code::kInput, "pads " + std::to_string(before) + " and " + std::to_string(after) +
                                  " do not fit an extent of " + std::to_string(extent));
  }
  if (extent + before + after > kMostIndices) return fail(Code::kInput, "a pad is too large");
  for (std::int64_t o = 0; o < extent + before + after; ++o) {
    std::int64_t i = o - before;
    if (mode == "edge") {
      i = std::clamp<std::int64_t>(i, 0, extent - 1);
    } else if (mode == "wrap") {
      i = (i % extent + extent) % extent;
    } else {
      const std::int64_t period = std::max<std::int64_t>(2 * (extent - 1), 1);
      i = (i % period + period) % period;
      i = i < extent ? i : period - i;
    }
    indices.push_back(i);
  }
  return indices;
}

// Rows and columns of f32 images are padded in one step. Elsewhere every mode but constant picks elements along an
// axis.
Status pad(Call& call) {
  if (call.opset < 11) {
    const float value = call.node.number("value", 0);
    call.node.inputs.resize(1);
    call.to_input("pads", 1);
    if (call.node.inputs.size() != 2) return fail(Code::kInput, "attribute pads is missing");
    Constant constant = Constant::allocate(call.type(0).dtype, ir::Shape{});
    kernels::reference::cast(Constant::scalar(value).tensor(), constant.tensor());
    call.node.inputs.push_back(call.constant("value", std::move(constant)));
    call.take("value");
  }
  const std::string mode = call.node.text("mode", "constant");
  if (mode != "edge" && mode != "reflect" && mode != "wrap") return call.emit();
  if (!call.has(1)) return fail(Code::kInput, "expects pads");
  const ir::Shape x = call.type(0).shape;
  TAKT_ASSIGN(const Integers pads, constant_integers(call, 1, "pads"));
  Integers axes = axes_between(0, x.rank);
  if (call.has(3)) {
    TAKT_ASSIGN(axes, constant_integers(call, 3, "axes"));
  }
  if (pads.size() != 2 * axes.size()) return fail(Code::kInput, "pads and axes do not fit " + to_string(x));
  const bool rows_and_columns = std::all_of(axes.begin(), axes.end(), [&](std::int64_t& axis) {
    const auto i = static_cast<std::size_t>(&axis - axes.data());
    const bool none = pads[i] == 0 && pads[i + axes.size()] == 0;
    return none || axis == 2 || axis == 3 || axis == -1 || axis == -2;
  });
  const bool cuts = std::any_of(pads.begin(), pads.end(), [](std::int64_t p) { return p < 0; });
  if (x.rank == 4 && call.type(0).dtype == DType::kF32 && mode != "wrap" && rows_and_columns && !cuts) {
    return call.emit();
  }
  Steps steps(call);
  ValueId value = call.node.inputs[0];
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t axis = axes[i] < 0 ? axes[i] + x.rank : axes[i];
    if (axis < 0 || axis >= x.rank) return fail(Code::kInput, "an axis is outside the rank");
    if (pads[i] == 0 && pads[i + axes.size()] == 0) continue;
    TAKT_ASSIGN(const Integers indices, padded_indices(mode, x.dims[axis], pads[i], pads[i + axes.size()]));
    value = steps("Gather", {value, steps.list(indices)}, {{"axis", axis}});
  }
  return steps.last("Identity", {value});
}

// Cut or padded with zeros around the centre, to given extents.
Status center_crop_pad(Call& call) {
  if (!call.has(1)) return fail(Code::kInput, "expects two inputs");
  const ir::Shape x = call.type(0).shape;
  TAKT_ASSIGN(const Integers wanted, constant_integers(call, 1, "shape"));
  Integers axes = call.node.integers("axes");
  if (axes.empty()) axes = axes_between(0, x.rank);
  if (axes.size() != wanted.size()) return fail(Code::kInput, "shape and axes do not fit " + to_string(x));
  Integers pads(2 * axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t axis = axes[i] < 0 ? axes[i] + x.rank : axes[i];
    if (axis < 0 || axis >= x.rank || wanted[i] < 0 || wanted[i] > ir::kMaxElements) {
      return fail(Code::kInput, "shape or axes do not fit " + to_string(x));
    }
    const std::int64_t more = wanted[i] - x.dims[axis];
    // An odd element more or less is at the end.
    pads[i] = more >= 0 ? more / 2 : -(-more / 2);
    pads[i + axes.size()] = more - pads[i];
  }
  Steps steps(call);
  return steps.last("Pad", {call.node.inputs[0], steps.list(pads), kNoValue, steps.list(axes)});
}

constexpr Form kForms[] = {
    {"CenterCropPad", "axes:I", center_crop_pad},
    {"Concat", "axis:i", concat},
    {"Constant", "value:t value_float:f value_floats:F value_int:i value_ints:I", constant},
    {"ConstantOfShape", "value:t", as_it_is},
    {"DepthToSpace", "blocksize:i mode:s", depth_to_space},
    {"Expand", "", as_it_is},
    {"EyeLike", "dtype:i k:i", eye_like},
    {"Flatten", "axis:i", as_it_is},
    {"Gather", "axis:i", as_it_is},
    {"Identity", "", as_it_is},
    {"OneHot", "axis:i", one_hot},
    {"Pad", "mode:s pads:I value:f", pad},
    {"Range", "", as_it_is},
    {"Reshape", "allowzero:i", as_it_is},
    {"Scatter", "axis:i", scatter},
    {"Shape", "start:i end:i", as_it_is},
    {"Size", "", size},
    {"Slice", "axes:I ends:I starts:I", slice},
    {"SpaceToDepth", "blocksize:i", space_to_depth},
    {"Split", "axis:i num_outputs:i split:I", split, kAnyNumber},
    {"Squeeze", "axes:I", squeeze},
    {"Tile", "", tile},
    {"Transpose", "perm:I", as_it_is},
    {"Trilu", "upper:i", trilu},
    {"Unsqueeze", "axes:I", squeeze},
};

}  // namespace

std::span<const Form> movement_forms() { return kForms; }

}  // namespace takt::compiler
