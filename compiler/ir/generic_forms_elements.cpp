// Elementwise operators, reductions, and elements by index: ONNX attributes to the parameters of the generic kernel.
#include <algorithm>

#include "compiler/ir/generic.h"
#include "compiler/ir/geometry.h"
#include "compiler/ir/operator_tables.h"
#include "kernels/reference/elementwise.h"

namespace takt::ir {
namespace {

using kernels::reference::Binary;
using kernels::reference::Function;
using kernels::reference::Generic;
using kernels::reference::GenericParams;
using kernels::reference::Reduce;
using kernels::reference::Scatter;

template <Function function>
Status encode_function(const Node& /*node*/, int /*rank*/, GenericParams* p) {
  p->op = Generic::kFunction;
  p->integers[0] = static_cast<std::int64_t>(function);
  return {};
}

// A function with up to two constants, by the defaults of ONNX.
struct Constants {
  Function function;
  const char* names[2];
  float defaults[2];
};
constexpr Constants kElu{Function::kElu, {"alpha", nullptr}, {1, 0}};
constexpr Constants kSelu{
    Function::kSelu, {"alpha", "gamma"}, {1.67326319217681884765625F, 1.05070102214813232421875F}};
constexpr Constants kCelu{Function::kCelu, {"alpha", nullptr}, {1, 0}};
constexpr Constants kLeaky{Function::kLeaky, {"alpha", nullptr}, {0.01F, 0}};
constexpr Constants kThresholded{Function::kThresholdedRelu, {"alpha", nullptr}, {1, 0}};
constexpr Constants kShrink{Function::kShrink, {"bias", "lambd"}, {0, 0.5F}};

template <const Constants& constants>
Status encode_constants(const Node& node, int /*rank*/, GenericParams* p) {
  p->op = Generic::kFunction;
  p->integers[0] = static_cast<std::int64_t>(constants.function);
  for (std::size_t i = 0; i < 2 && constants.names[i] != nullptr; ++i) {
    p->numbers[i] = node.number(constants.names[i], constants.defaults[i]);
  }
  return {};
}

Status encode_is_inf(const Node& node, int /*rank*/, GenericParams* p) {
  p->op = Generic::kFunction;
  p->integers[0] = static_cast<std::int64_t>(Function::kIsInf);
  p->numbers[0] = node.integer("detect_negative", 1) != 0 ? 1.0F : 0.0F;
  p->numbers[1] = node.integer("detect_positive", 1) != 0 ? 1.0F : 0.0F;
  return {};
}

Status encode_gelu(const Node& node, int /*rank*/, GenericParams* p) {
  const std::string form = node.text("approximate", "none");
  if (form != "none" && form != "tanh")
    return fail(Code::kInput, "attribute approximate is \"" + printable(form) + "\"");
  p->op = Generic::kFunction;
  p->integers[0] = static_cast<std::int64_t>(form == "tanh" ? Function::kGeluTanh : Function::kGelu);
  return {};
}

template <Binary op>
Status encode_binary(const Node& /*node*/, int /*rank*/, GenericParams* p) {
  p->op = Generic::kBinary;
  p->integers[0] = static_cast<std::int64_t>(op);
  return {};
}

Status encode_mod(const Node& node, int rank, GenericParams* p) {
  return node.integer("fmod", 0) != 0 ? encode_binary<Binary::kFmod>(node, rank, p)
                                      : encode_binary<Binary::kMod>(node, rank, p);
}

template <Function function>
Status encode_hard(const Node& node, int /*rank*/, GenericParams* p) {
  p->op = Generic::kFunction;
  p->integers[0] = static_cast<std::int64_t>(function);
  p->numbers[0] = node.number("alpha", 0.2F);
  p->numbers[1] = node.number("beta", 0.5F);
  return {};
}

Status encode_shift(const Node& node, int rank, GenericParams* p) {
  const std::string direction = node.text("direction", "");
  if (direction == "LEFT") return encode_binary<Binary::kShiftLeft>(node, rank, p);
  if (direction == "RIGHT") return encode_binary<Binary::kShiftRight>(node, rank, p);
  return fail(Code::kInput, "attribute direction is \"" + printable(direction) + "\"");
}

Status encode_where(const Node& /*node*/, int /*rank*/, GenericParams* p) {
  p->op = Generic::kWhere;
  return {};
}

// "to" is takt's name of an element type (IR), input 0 what is cast.
Status encode_cast(const Node& node, int /*rank*/, GenericParams* p) {
  p->op = Generic::kCast;
  TAKT_ASSIGN(const DType to, element_type_of(node, "to"));
  p->integers[0] = static_cast<std::int64_t>(to);
  return {};
}

Status encode_matmul(const Node& /*node*/, int /*rank*/, GenericParams* p) {
  p->op = Generic::kMatMul;
  return {};
}

// No axes: all of them.
template <Reduce kind>
Status encode_reduce(const Node& node, int rank, GenericParams* p) {
  p->op = Generic::kReduce;
  p->integers[0] = static_cast<std::int64_t>(kind);
  const std::vector<std::int64_t> axes = node.integers("axes");
  if (axes.empty()) p->integers[1] = (1 << rank) - 1;
  for (const std::int64_t axis : axes) {
    if (axis < -rank || axis >= rank) {
      return fail(Code::kInput, "axis " + std::to_string(axis) + " is outside rank " + std::to_string(rank));
    }
    p->integers[1] |= std::int64_t{1} << (axis < 0 ? axis + rank : axis);
  }
  p->integers[2] = node.integer("keepdims", 1) != 0 ? 1 : 0;
  return {};
}

template <bool smallest>
Status encode_arg(const Node& node, int rank, GenericParams* p) {
  p->op = Generic::kArg;
  TAKT_ASSIGN(p->integers[0], axis_of(node, "axis", 0, rank));
  p->integers[1] = node.integer("keepdims", 1) != 0 ? 1 : 0;
  p->integers[2] = smallest ? 1 : 0;
  p->integers[3] = node.integer("select_last_index", 0) != 0 ? 1 : 0;
  return {};
}

Status encode_cumsum(const Node& node, int rank, GenericParams* p) {
  p->op = Generic::kCumSum;
  TAKT_ASSIGN(p->integers[0], axis_of(node, "axis", 0, rank));
  p->integers[1] = node.integer("exclusive", 0) != 0 ? 1 : 0;
  p->integers[2] = node.integer("reverse", 0) != 0 ? 1 : 0;
  return {};
}

Status encode_gather_elements(const Node& node, int rank, GenericParams* p) {
  p->op = Generic::kGatherElements;
  TAKT_ASSIGN(p->integers[0], axis_of(node, "axis", 0, rank));
  return {};
}

Result<std::int64_t> scatter_kind(const Node& node) {
  static constexpr std::pair<std::string_view, Scatter> kKinds[] = {{"none", Scatter::kReplace},
                                                                    {"add", Scatter::kAdd},
                                                                    {"mul", Scatter::kMul},
                                                                    {"min", Scatter::kMin},
                                                                    {"max", Scatter::kMax}};
  const std::string wanted = node.text("reduction", "none");
  for (const auto& [name, kind] : kKinds) {
    if (name == wanted) return static_cast<std::int64_t>(kind);
  }
  return fail(Code::kInput, "attribute reduction is \"" + printable(wanted) + "\"");
}

Status encode_scatter_elements(const Node& node, int rank, GenericParams* p) {
  p->op = Generic::kScatterElements;
  TAKT_ASSIGN(p->integers[0], axis_of(node, "axis", 0, rank));
  TAKT_ASSIGN(p->integers[1], scatter_kind(node));
  return {};
}

Status encode_gather_nd(const Node& node, int /*rank*/, GenericParams* p) {
  p->op = Generic::kGatherNd;
  p->integers[0] = node.integer("batch_dims", 0);
  return {};
}

Status encode_scatter_nd(const Node& node, int /*rank*/, GenericParams* p) {
  p->op = Generic::kScatterNd;
  TAKT_ASSIGN(p->integers[0], scatter_kind(node));
  return {};
}

Status encode_trilu(const Node& node, int /*rank*/, GenericParams* p) {
  p->op = Generic::kTrilu;
  p->integers[0] = std::clamp(node.integer("k", 0), -kMaxElements, kMaxElements);
  p->integers[1] = node.integer("upper", 1) != 0 ? 1 : 0;
  return {};
}

template <Generic op>
Status encode_along(const Node& node, int rank, GenericParams* p) {
  p->op = op;
  TAKT_ASSIGN(p->integers[0], axis_of(node, "axis", -1, rank));
  return {};
}

Status encode_one_hot(const Node& node, int rank, GenericParams* p) {
  p->op = Generic::kOneHot;
  TAKT_ASSIGN(p->integers[0], axis_of(node, "axis", -1, rank + 1));
  p->integers[1] = node.integer("depth", 0);
  return {};
}

Status encode_top_k(const Node& node, int rank, GenericParams* p) {
  p->op = Generic::kTopK;
  TAKT_ASSIGN(p->integers[0], axis_of(node, "axis", -1, rank));
  p->integers[1] = node.integer("k", 0);
  p->integers[2] = node.integer("largest", 1) != 0 ? 1 : 0;
  return {};
}

Status encode_reverse(const Node& node, int rank, GenericParams* p) {
  p->op = Generic::kReverse;
  TAKT_ASSIGN(p->integers[0], axis_of(node, "time_axis", 0, rank));
  TAKT_ASSIGN(p->integers[1], axis_of(node, "batch_axis", 1, rank));
  return {};
}

std::uint64_t no_flops(const OperatorInputs& /*in*/, std::span<const Type> /*out*/) { return 0; }
std::uint64_t input_flops(const OperatorInputs& in, std::span<const Type> /*out*/) { return elements_of(in.type(0)); }
std::uint64_t function_flops(const OperatorInputs& in, std::span<const Type> /*out*/) {
  return 20 * elements_of(in.type(0));
}

constexpr GenericForm kForms[] = {
    {"Abs", kNotImported, 1, 1, encode_function<Function::kAbs>, nullptr},
    {"Acos", "", 1, 1, encode_function<Function::kAcos>, function_flops},
    {"Acosh", "", 1, 1, encode_function<Function::kAcosh>, function_flops},
    {"Add", kNotImported, 2, 2, encode_binary<Binary::kAdd>, nullptr},
    {"And", kNotImported, 2, 2, encode_binary<Binary::kAnd>, nullptr},
    {"ArgMax", "axis:i keepdims:i select_last_index:i", 1, 1, encode_arg<false>, input_flops},
    {"ArgMin", "axis:i keepdims:i select_last_index:i", 1, 1, encode_arg<true>, input_flops},
    {"Asin", "", 1, 1, encode_function<Function::kAsin>, function_flops},
    {"Asinh", "", 1, 1, encode_function<Function::kAsinh>, function_flops},
    {"Atan", "", 1, 1, encode_function<Function::kAtan>, function_flops},
    {"Atanh", "", 1, 1, encode_function<Function::kAtanh>, function_flops},
    {"BitShift", "direction:s", 2, 2, encode_shift, input_flops},
    {"BitwiseAnd", "", 2, 2, encode_binary<Binary::kBitAnd>, input_flops},
    {"BitwiseNot", "", 1, 1, encode_function<Function::kBitNot>, input_flops},
    {"BitwiseOr", "", 2, 2, encode_binary<Binary::kBitOr>, input_flops},
    {"BitwiseXor", "", 2, 2, encode_binary<Binary::kBitXor>, input_flops},
    {"Cast", kNotImported, 1, 1, encode_cast, nullptr},
    {"Ceil", kNotImported, 1, 1, encode_function<Function::kCeil>, nullptr},
    {"Celu", "alpha:f", 1, 1, encode_constants<kCelu>, function_flops},
    {"Cos", "", 1, 1, encode_function<Function::kCos>, function_flops},
    {"Cosh", "", 1, 1, encode_function<Function::kCosh>, function_flops},
    {"CumSum", kNotImported, 1, 1, encode_cumsum, input_flops},
    {"Div", kNotImported, 2, 2, encode_binary<Binary::kDiv>, nullptr},
    {"Elu", "alpha:f", 1, 1, encode_constants<kElu>, function_flops},
    {"Equal", kNotImported, 2, 2, encode_binary<Binary::kEqual>, nullptr},
    {"Erf", "", 1, 1, encode_function<Function::kErf>, function_flops},
    {"Exp", kNotImported, 1, 1, encode_function<Function::kExp>, nullptr},
    {"Floor", kNotImported, 1, 1, encode_function<Function::kFloor>, nullptr},
    {"GatherElements", "axis:i", 2, 2, encode_gather_elements, no_flops},
    {"GatherND", "batch_dims:i", 2, 2, encode_gather_nd, no_flops},
    {"Gelu", "approximate:s", 1, 1, encode_gelu, function_flops},
    {"Greater", kNotImported, 2, 2, encode_binary<Binary::kGreater>, nullptr},
    {"GreaterOrEqual", "", 2, 2, encode_binary<Binary::kGreaterOrEqual>, input_flops},
    {"HardSigmoid", kNotImported, 1, 1, encode_hard<Function::kHardSigmoid>, nullptr},
    {"HardSwish", kNotImported, 1, 1, encode_function<Function::kHardSwish>, nullptr},
    {"Hardmax", kNotImported, 1, 1, encode_along<Generic::kHardmax>, input_flops},
    {"IsInf", "detect_negative:i detect_positive:i", 1, 1, encode_is_inf, input_flops},
    {"IsNaN", "", 1, 1, encode_function<Function::kIsNan>, input_flops},
    {"LeakyRelu", kNotImported, 1, 1, encode_constants<kLeaky>, nullptr},
    {"Less", kNotImported, 2, 2, encode_binary<Binary::kLess>, nullptr},
    {"LessOrEqual", "", 2, 2, encode_binary<Binary::kLessOrEqual>, input_flops},
    {"Log", "", 1, 1, encode_function<Function::kLog>, function_flops},
    {"LogSoftmax", kNotImported, 1, 1, encode_along<Generic::kLogSoftmax>, function_flops},
    {"MatMul", kNotImported, 2, 2, encode_matmul, nullptr},
    {"Max", kNotImported, 2, 2, encode_binary<Binary::kMax>, nullptr},
    {"Min", kNotImported, 2, 2, encode_binary<Binary::kMin>, nullptr},
    {"Mish", "", 1, 1, encode_function<Function::kMish>, function_flops},
    {"Mod", "fmod:i", 2, 2, encode_mod, input_flops},
    {"Mul", kNotImported, 2, 2, encode_binary<Binary::kMul>, nullptr},
    {"Neg", kNotImported, 1, 1, encode_function<Function::kNeg>, nullptr},
    {"Not", kNotImported, 1, 1, encode_function<Function::kNot>, nullptr},
    {"OneHot", kNotImported, 2, 2, encode_one_hot, no_flops},
    {"Or", kNotImported, 2, 2, encode_binary<Binary::kOr>, nullptr},
    {"PRelu", kNotImported, 2, 2, encode_binary<Binary::kPrelu>, input_flops},
    {"Pow", kNotImported, 2, 2, encode_binary<Binary::kPow>, nullptr},
    {"ReduceMax", kNotImported, 1, 1, encode_reduce<Reduce::kMax>, input_flops},
    {"ReduceMean", kNotImported, 1, 1, encode_reduce<Reduce::kMean>, nullptr},
    {"ReduceMin", kNotImported, 1, 1, encode_reduce<Reduce::kMin>, input_flops},
    {"ReduceProd", kNotImported, 1, 1, encode_reduce<Reduce::kProduct>, input_flops},
    {"ReduceSum", kNotImported, 1, 1, encode_reduce<Reduce::kSum>, input_flops},
    {"Relu", kNotImported, 1, 1, encode_function<Function::kRelu>, nullptr},
    {"Round", "", 1, 1, encode_function<Function::kRound>, input_flops},
    {"ScatterElements", "axis:i reduction:s", 3, 3, encode_scatter_elements, no_flops},
    {"ScatterND", "reduction:s", 3, 3, encode_scatter_nd, no_flops},
    {"Selu", "alpha:f gamma:f", 1, 1, encode_constants<kSelu>, function_flops},
    {"Shrink", "bias:f lambd:f", 1, 1, encode_constants<kShrink>, input_flops},
    {"Sigmoid", kNotImported, 1, 1, encode_function<Function::kSigmoid>, nullptr},
    {"Sign", "", 1, 1, encode_function<Function::kSign>, input_flops},
    {"Sin", "", 1, 1, encode_function<Function::kSin>, function_flops},
    {"Sinh", "", 1, 1, encode_function<Function::kSinh>, function_flops},
    {"Softplus", "", 1, 1, encode_function<Function::kSoftplus>, function_flops},
    {"Sqrt", kNotImported, 1, 1, encode_function<Function::kSqrt>, nullptr},
    {"Sub", kNotImported, 2, 2, encode_binary<Binary::kSub>, nullptr},
    {"Tan", "", 1, 1, encode_function<Function::kTan>, function_flops},
    {"Tanh", kNotImported, 1, 1, encode_function<Function::kTanh>, nullptr},
    {"ThresholdedRelu", "alpha:f", 1, 1, encode_constants<kThresholded>, input_flops},
    {"TopK", kNotImported, 1, 1, encode_top_k, input_flops},
    {"Trilu", kNotImported, 1, 1, encode_trilu, no_flops},
    {"Where", kNotImported, 3, 3, encode_where, nullptr},
    {"Xor", kNotImported, 2, 2, encode_binary<Binary::kXor>, input_flops},
    {"takt.Silu", kNotImported, 1, 1, encode_function<Function::kSilu>, nullptr},
    {"ReverseSequence", "batch_axis:i time_axis:i", 2, 2, encode_reverse, no_flops},
};

}  // namespace

std::span<const GenericForm> element_forms() { return kForms; }

}  // namespace takt::ir
