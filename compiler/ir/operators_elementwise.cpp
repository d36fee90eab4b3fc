#include <cstring>

#include "compiler/ir/generic.h"
#include "compiler/ir/geometry.h"
#include "compiler/ir/operator_tables.h"
#include "kernels/reference/activation.h"
#include "kernels/reference/elementwise.h"

namespace takt::ir {
namespace {

using kernels::Tensor;
using kernels::reference::Activation;
using kernels::reference::Binary;
using kernels::reference::Unary;

std::uint64_t one_each(const OperatorInputs& /*in*/, std::span<const Type> out) { return elements_of(out[0]); }
// exp and the division behind sigmoid and tanh, counted as operations.
std::uint64_t twenty_each(const OperatorInputs& /*in*/, std::span<const Type> out) { return 20 * elements_of(out[0]); }

constexpr auto kNumbers = {DType::kF32, DType::kF64, DType::kI64, DType::kI32, DType::kI16,
                           DType::kI8,  DType::kU64, DType::kU32, DType::kU16, DType::kU8};

// f64 has no kernel of its own; the generic one runs it.
Result<Types> infer_float(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  TAKT_RETURN_IF_ERROR(expect_type(in, 0, {DType::kF32, DType::kF64}));
  return Types{in.type(0)};
}

Result<Types> infer_number(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  TAKT_RETURN_IF_ERROR(expect_type(in, 0, kNumbers));
  return Types{in.type(0)};
}

Result<Types> infer_not(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  TAKT_RETURN_IF_ERROR(expect_type(in, 0, {DType::kBool}));
  return Types{in.type(0)};
}

template <Unary op>
Status evaluate_unary(const Node& /*node*/, std::span<const Tensor> in, std::span<const Tensor> out) {
  kernels::reference::unary(op, in[0], out[0]);
  return {};
}

void activate(Activation activation, float alpha, float beta, const Tensor& x, const Tensor& y) {
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
    y.as<float>()[i] = kernels::reference::activate_f32(activation, x.as<float>()[i], alpha, beta);
  }
}

template <Activation activation>
Status evaluate_activation(const Node& node, std::span<const Tensor> in, std::span<const Tensor> out) {
  if (in[0].dtype != DType::kF32) return evaluate_generic(node, in, out);
  activate(activation, 0, 0, in[0], out[0]);
  return {};
}

// ONNX's own default slopes.
constexpr float kLeakySlope = 0.01F;
constexpr float kHardSlope = 0.2F;
constexpr float kHardOffset = 0.5F;

Status evaluate_leaky(const Node& node, std::span<const Tensor> in, std::span<const Tensor> out) {
  if (in[0].dtype != DType::kF32) return evaluate_generic(node, in, out);
  activate(Activation::kLeaky, node.number("alpha", kLeakySlope), 0, in[0], out[0]);
  return {};
}
void settle_leaky(Graph& /*graph*/, Node& node) { node.attributes["alpha"] = node.number("alpha", kLeakySlope); }

Status evaluate_hard_sigmoid(const Node& node, std::span<const Tensor> in, std::span<const Tensor> out) {
  if (in[0].dtype != DType::kF32) return evaluate_generic(node, in, out);
  activate(Activation::kHardSigmoid, node.number("alpha", kHardSlope), node.number("beta", kHardOffset), in[0], out[0]);
  return {};
}
void settle_hard_sigmoid(Graph& /*graph*/, Node& node) {
  node.attributes["alpha"] = node.number("alpha", kHardSlope);
  node.attributes["beta"] = node.number("beta", kHardOffset);
}

Result<Types> infer_clip(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!in.has(i)) continue;
    TAKT_RETURN_IF_ERROR(expect_type(in, i, {DType::kF32}));
    if (i > 0 && in.shape(i).elements() != 1) {
      return fail(Code::kInput, "a limit is " + to_string(in.type(i)) + ", expected a scalar");
    }
  }
  return Types{in.type(0)};
}

Status evaluate_clip(const Node& /*node*/, std::span<const Tensor> in, std::span<const Tensor> out) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float lowest = in.size() > 1 && in[1].data != nullptr ? *in[1].as<float>() : -infinity;
  const float highest = in.size() > 2 && in[2].data != nullptr ? *in[2].as<float>() : infinity;
  activate(Activation::kClip, lowest, highest, in[0], out[0]);
  return {};
}

template <bool comparison, bool numbers, bool truth>
Result<Types> infer_binary(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  const bool is_truth = in.type(0).dtype == DType::kBool;
  if (!(is_truth && truth))
    TAKT_RETURN_IF_ERROR(numbers ? expect_type(in, 0, kNumbers) : expect_type(in, 0, {DType::kBool}));
  TAKT_RETURN_IF_ERROR(expect_type(in, 1, {in.type(0).dtype}));
  TAKT_ASSIGN(const Shape out, broadcast(in.shape(0), in.shape(1)));
  return Types{{comparison ? DType::kBool : in.type(0).dtype, out}};
}
constexpr auto kArithmetic = infer_binary<false, true, false>;
constexpr auto kCompare = infer_binary<true, true, true>;
constexpr auto kLogical = infer_binary<true, false, true>;

template <Binary op>
Status evaluate_binary(const Node& /*node*/, std::span<const Tensor> in, std::span<const Tensor> out) {
  if (kernels::reference::binary(op, in[0], in[1], out[0])) return {};
  return fail(Code::kInput, "an integer is divided by zero");
}

Result<Types> infer_where(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  TAKT_RETURN_IF_ERROR(expect_type(in, 0, {DType::kBool}));
  TAKT_RETURN_IF_ERROR(expect_type(in, 2, {in.type(1).dtype}));
  TAKT_ASSIGN(const Shape values, broadcast(in.shape(1), in.shape(2)));
  TAKT_ASSIGN(const Shape out, broadcast(in.shape(0), values));
  return Types{{in.type(1).dtype, out}};
}

Status evaluate_where(const Node& /*node*/, std::span<const Tensor> in, std::span<const Tensor> out) {
  kernels::reference::where(in[0], in[1], in[2], out[0]);
  return {};
}

Result<Types> infer_cast(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  TAKT_ASSIGN(const DType to, element_type_of(in.node, "to"));
  return Types{{to, in.shape(0)}};
}

Status evaluate_cast(const Node& /*node*/, std::span<const Tensor> in, std::span<const Tensor> out) {
  kernels::reference::cast(in[0], out[0]);
  return {};
}

constexpr float kEpsilon = 1e-5F;

Result<Types> infer_batch_normalization(const OperatorInputs& in) {
  TAKT_RETURN_IF_ERROR(one_output(in));
  const std::int64_t channels = in.shape(0).rank > 1 ? in.shape(0).dims[1] : 1;
  for (std::size_t i = 0; i < 5; ++i) {
    TAKT_RETURN_IF_ERROR(expect_type(in, i, {DType::kF32}));
    if (i > 0 && (in.shape(i).rank != 1 || in.shape(i).dims[0] != channels)) {
      return fail(Code::kInput, "input " + std::to_string(i) + " is " + to_string(in.type(i)) + ", expected [" +
                                    std::to_string(channels) + "]");
    }
  }
  return Types{in.type(0)};
}

Status evaluate_batch_normalization(const Node& node, std::span<const Tensor> in, std::span<const Tensor> out) {
  kernels::reference::batch_normalization(in[0], in[1], in[2], in[3], in[4], node.number("epsilon", kEpsilon), out[0]);
  return {};
}

void settle_batch_normalization(Graph& /*graph*/, Node& node) {
  node.attributes = {{"epsilon", node.number("epsilon", kEpsilon)}};
}

std::uint64_t two_each(const OperatorInputs& /*in*/, std::span<const Type> out) { return 2 * elements_of(out[0]); }

constexpr Operator kOperators[] = {
    {"Abs", 1, 1, infer_number, evaluate_unary<Unary::kAbs>, one_each, nullptr},
    {"Add", 2, 2, kArithmetic, evaluate_binary<Binary::kAdd>, one_each, nullptr},
    {"And", 2, 2, kLogical, evaluate_binary<Binary::kAnd>, nullptr, nullptr},
    {"BatchNormalization", 5, 5, infer_batch_normalization, evaluate_batch_normalization, two_each,
     settle_batch_normalization},
    {"Cast", 1, 1, infer_cast, evaluate_cast, nullptr, nullptr},
    {"Ceil", 1, 1, infer_float, evaluate_unary<Unary::kCeil>, one_each, nullptr},
    {"Clip", 1, 3, infer_clip, evaluate_clip, two_each, nullptr},
    {"Div", 2, 2, kArithmetic, evaluate_binary<Binary::kDiv>, one_each, nullptr},
    {"Equal", 2, 2, kCompare, evaluate_binary<Binary::kEqual>, one_each, nullptr},
    {"Exp", 1, 1, infer_float, evaluate_unary<Unary::kExp>, twenty_each, nullptr},
    {"Floor", 1, 1, infer_float, evaluate_unary<Unary::kFloor>, one_each, nullptr},
    {"Greater", 2, 2, kCompare, evaluate_binary<Binary::kGreater>, one_each, nullptr},
    {"HardSigmoid", 1, 1, infer_float, evaluate_hard_sigmoid, two_each, settle_hard_sigmoid},
    {"HardSwish", 1, 1, infer_float, evaluate_activation<Activation::kHardSwish>, two_each, nullptr},
    {"LeakyRelu", 1, 1, infer_float, evaluate_leaky, one_each, settle_leaky},
    {"Less", 2, 2, kCompare, evaluate_binary<Binary::kLess>, one_each, nullptr},
    {"Max", 2, 2, kArithmetic, evaluate_binary<Binary::kMax>, one_each, nullptr},
    {"Min", 2, 2, kArithmetic, evaluate_binary<Binary::kMin>, one_each, nullptr},
    {"Mul", 2, 2, kArithmetic, evaluate_binary<Binary::kMul>, one_each, nullptr},
    {"Neg", 1, 1, infer_number, evaluate_unary<Unary::kNeg>, one_each, nullptr},
    {"Not", 1, 1, infer_not, evaluate_unary<Unary::kNot>, nullptr, nullptr},
    {"Or", 2, 2, kLogical, evaluate_binary<Binary::kOr>, nullptr, nullptr},
    {"Pow", 2, 2, kArithmetic, evaluate_binary<Binary::kPow>, twenty_each, nullptr},
    {"Relu", 1, 1, infer_number, evaluate_activation<Activation::kRelu>, one_each, nullptr},
    {"Sigmoid", 1, 1, infer_float, evaluate_activation<Activation::kSigmoid>, twenty_each, nullptr},
    {"Sqrt", 1, 1, infer_float, evaluate_unary<Unary::kSqrt>, one_each, nullptr},
    {"Sub", 2, 2, kArithmetic, evaluate_binary<Binary::kSub>, one_each, nullptr},
    {"Tanh", 1, 1, infer_float, evaluate_activation<Activation::kTanh>, twenty_each, nullptr},
    {"Where", 3, 3, infer_where, evaluate_where, nullptr, nullptr},
    {"takt.Silu", 1, 1, infer_float, evaluate_activation<Activation::kSilu>, twenty_each, nullptr},
};

}  // namespace

std::span<const Operator> elementwise_operators() { return kOperators; }

}  // namespace takt::ir
