// Quantised operators: whole numbers with a scale and a zero point. Sums are exact in i32.
#include <algorithm>

#include "compiler/onnx/call.h"
#include "compiler/onnx/tensor_proto.h"

namespace takt::compiler {
namespace {

// Scales for each element of an axis; a single one has no axis.
void settle_quantisation_axis(Call& call) {
  const ir::Shape& scale = call.type(1).shape;
  call.node.attributes["axis"] = scale.elements() == 1 ? std::int64_t{0} : call.node.integer("axis", 1);
  for (const char* key : {"saturate", "output_dtype", "block_size", "precision"}) call.take(key);
}

Status plain(const Call& call) {
  if (!call.has(1)) return fail(Code::kInput, "expects x and its scale");
  if (call.node.integer("block_size", 0) != 0) return fail(Code::kInput, "blocks of scales are not supported");
  return {};
}

Status quantize_linear(Call& call) {
  TAKT_RETURN_IF_ERROR(plain(call));
  DType to = call.has(2) ? call.type(2).dtype : DType::kU8;
  if (!call.has(2) && call.node.integer("output_dtype", 0) != 0) {
    TAKT_ASSIGN(to, element_type(static_cast<std::int32_t>(call.node.integer("output_dtype", 0))));
  }
  settle_quantisation_axis(call);
  call.node.attributes["to"] = std::string(kernels::name_of(to));
  return call.emit();
}

Status dequantize_linear(Call& call) {
  TAKT_RETURN_IF_ERROR(plain(call));
  settle_quantisation_axis(call);
  return call.emit();
}

// The range of x with 0 in it on 0 to 255.
Status dynamic_quantize_linear(Call& call) {
  Steps steps(call);
  const ValueId x = call.node.inputs[0];
  const std::map<std::string, ir::Attribute> all = {{"keepdims", std::int64_t{0}}};
  const ValueId highest = steps("Max", {steps("ReduceMax", {x}, all), steps.number(0)});
  const ValueId lowest = steps("Min", {steps("ReduceMin", {x}, all), steps.number(0)});
  const ValueId scale = steps("Div", {steps("Sub", {highest, lowest}), steps.number(255)});
  const ValueId level = steps("Round", {steps("Div", {steps("Neg", {lowest}), scale})});
  const ValueId zero =
      steps.cast(steps("Min", {steps("Max", {level, steps.number(0)}), steps.number(255)}), DType::kU8);
  TAKT_RETURN_IF_ERROR(
      steps.last("QuantizeLinear", {x, scale, zero}, {{"axis", std::int64_t{0}}, {"to", std::string("u8")}}));
  TAKT_RETURN_IF_ERROR(steps.output(1, "Identity", {scale}));
  return steps.output(2, "Identity", {zero});
}

// x - zero in i32, exact. `along`: the zero point's extents where it has more than one element.
ValueId centred(Steps& steps, ValueId x, ValueId zero, const Integers& along) {
  const ValueId wide = steps.cast(x, DType::kI32);
  if (zero == kNoValue) return wide;
  ValueId level = steps.cast(zero, DType::kI32);
  if (steps.shape(zero).elements() != 1) {
    level = steps.reshape(level, along);
  } else {
    level = steps.reshape(level, Integers{});
  }
  return steps("Sub", {wide, level});
}

ValueId optional(const Call& call, std::size_t i) { return call.has(i) ? call.node.inputs[i] : kNoValue; }

// Zero points of A belong to its rows, of B to its columns.
ValueId integer_matmul(Steps& steps, ValueId a, ValueId a_zero, ValueId b, ValueId b_zero) {
  const auto each = [&](ValueId zero, bool rows) {
    const std::int64_t n = zero != kNoValue ? steps.shape(zero).elements() : 1;
    return rows ? Integers{n, 1} : Integers{n};
  };
  const ValueId left = centred(steps, a, a_zero, each(a_zero, true));
  const ValueId right = centred(steps, b, b_zero, each(b_zero, false));
  return steps("MatMul", {left, right});
}

Status expect_matrices(const Call& call, std::size_t b) {
  if (call.has(b) && call.type(0).shape.rank >= 2 && call.type(b).shape.rank >= 2) return {};
  return fail(Code::kInput, "expects two matrices or stacks of them");
}

Status matmul_integer(Call& call) {
  TAKT_RETURN_IF_ERROR(expect_matrices(call, 1));
  Steps steps(call);
  const ValueId sum =
      integer_matmul(steps, call.node.inputs[0], optional(call, 2), call.node.inputs[1], optional(call, 3));
  return steps.last("Identity", {sum});
}

// The sum times the scales of its factors, in the levels of the result.
Status requantize(Steps& steps, ValueId sum, ValueId scale, ValueId y_scale, ValueId y_zero, const Call& call) {
  const std::string to(kernels::name_of(call.graph[y_zero].type->dtype));
  const ValueId real = steps("Mul", {steps.cast(sum, DType::kF32), scale});
  return steps.last("QuantizeLinear", {real, y_scale, y_zero}, {{"axis", std::int64_t{0}}, {"to", to}});
}

Status qlinear_matmul(Call& call) {
  TAKT_RETURN_IF_ERROR(expect_matrices(call, 3));
  for (std::size_t i = 0; i < 8; ++i) {
    if (!call.has(i)) return fail(Code::kInput, "expects eight inputs");
  }
  const std::vector<ValueId>& in = call.node.inputs;
  if (call.type(1).shape.elements() != 1 || call.type(6).shape.elements() != 1) {
    return fail(Code::kInput, "scales for each row are not supported");
  }
  Steps steps(call);
  const ValueId sum = integer_matmul(steps, in[0], in[2], in[3], in[5]);
  return requantize(steps, sum, steps("Mul", {in[1], in[4]}), in[6], in[7], call);
}

// As takt.ConvNd over whole numbers; padding is the zero point, hence 0.
Status integer_conv(Call& call, Steps& steps, ValueId x, ValueId x_zero, ValueId w, ValueId w_zero, ValueId* sum) {
  const ir::Shape& filters = steps.shape(w);
  Integers along(static_cast<std::size_t>(std::max(filters.rank, 1)), 1);
  along[0] = filters.dims[0];
  if (x_zero != kNoValue && steps.shape(x_zero).elements() != 1) return fail(Code::kInput, "x has several zero points");
  TAKT_ASSIGN(auto window, settled_window(call, steps.shape(x), filters));
  const ValueId image = centred(steps, x, x_zero, {});
  const ValueId weights = centred(steps, w, w_zero, along);
  *sum = steps("takt.ConvNd", {image, weights}, std::move(window));
  return steps.status();
}

Status conv_integer(Call& call) {
  if (!call.has(1)) return fail(Code::kInput, "expects x and w");
  Steps steps(call);
  ValueId sum = kNoValue;
  TAKT_RETURN_IF_ERROR(
      integer_conv(call, steps, call.node.inputs[0], optional(call, 2), call.node.inputs[1], optional(call, 3), &sum));
  return steps.last("Identity", {sum});
}

Status qlinear_conv(Call& call) {
  for (std::size_t i = 0; i < 8; ++i) {
    if (!call.has(i)) return fail(Code::kInput, "expects eight inputs");
  }
  const std::vector<ValueId> in = call.node.inputs;
  Steps steps(call);
  ValueId sum = kNoValue;
  TAKT_RETURN_IF_ERROR(integer_conv(call, steps, in[0], in[2], in[3], in[5], &sum));
  Integers along(static_cast<std::size_t>(steps.shape(sum).rank) - 1, 1);
  along[0] = steps.shape(sum).dims[1];
  if (call.has(8)) sum = steps("Add", {sum, steps.reshape(in[8], along)});
  const bool each = call.type(4).shape.elements() != 1;
  const ValueId scale = steps("Mul", {in[1], each ? steps.reshape(in[4], along) : in[4]});
  return requantize(steps, sum, scale, in[6], in[7], call);
}

constexpr Form kForms[] = {
    {"ConvInteger", "auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I", conv_integer},
    {"DequantizeLinear", "axis:i block_size:i output_dtype:i", dequantize_linear},
    {"DynamicQuantizeLinear", "", dynamic_quantize_linear, 3},
    {"MatMulInteger", "", matmul_integer},
    {"QLinearConv", "auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I", qlinear_conv},
    {"QLinearMatMul", "", qlinear_matmul},
    {"QuantizeLinear", "axis:i block_size:i output_dtype:i precision:i saturate:i", quantize_linear},
};

}  // namespace

std::span<const Form> quantisation_forms() { return kForms; }

}  // namespace takt::compiler
