#include <algorithm>

#include "compiler/ir/generic.h"
#include "compiler/ir/operator_tables.h"
#include "kernels/reference/elementwise.h"

namespace takt::ir {
namespace {

using kernels::Tensor;
using kernels::reference::Binary;
using kernels::reference::Function;
using kernels::reference::Generic;
using kernels::reference::GenericParams;
using kernels::reference::kGenericInputs;
using kernels::reference::kGenericOutputs;
using kernels::reference::Reduce;
using kernels::reference::Scatter;

// Writes what the attributes say; `rank` is that of the first input.
using Encode = Status (*)(const Node& node, int rank, GenericParams* p);

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

struct Form {
  std::string_view name;
  Encode encode;
};
constexpr Form kForms[] = {
    {"Abs", encode_function<Function::kAbs>},
    {"Acos", encode_function<Function::kAcos>},
    {"Acosh", encode_function<Function::kAcosh>},
    {"Add", encode_binary<Binary::kAdd>},
    {"And", encode_binary<Binary::kAnd>},
    {"ArgMax", encode_arg<false>},
    {"ArgMin", encode_arg<true>},
    {"Asin", encode_function<Function::kAsin>},
    {"Asinh", encode_function<Function::kAsinh>},
    {"Atan", encode_function<Function::kAtan>},
    {"Atanh", encode_function<Function::kAtanh>},
    {"BitShift", encode_shift},
    {"Ceil", encode_function<Function::kCeil>},
    {"Celu", encode_constants<kCelu>},
    {"Cos", encode_function<Function::kCos>},
    {"Cosh", encode_function<Function::kCosh>},
    {"CumSum", encode_cumsum},
    {"Div", encode_binary<Binary::kDiv>},
    {"Elu", encode_constants<kElu>},
    {"Equal", encode_binary<Binary::kEqual>},
    {"Erf", encode_function<Function::kErf>},
    {"Floor", encode_function<Function::kFloor>},
    {"GatherElements", encode_gather_elements},
    {"GatherND", encode_gather_nd},
    {"Gelu", encode_gelu},
    {"Greater", encode_binary<Binary::kGreater>},
    {"GreaterOrEqual", encode_binary<Binary::kGreaterOrEqual>},
    {"Hardmax", encode_along<Generic::kHardmax>},
    {"IsInf", encode_is_inf},
    {"IsNaN", encode_function<Function::kIsNan>},
    {"Less", encode_binary<Binary::kLess>},
    {"LessOrEqual", encode_binary<Binary::kLessOrEqual>},
    {"Log", encode_function<Function::kLog>},
    {"LogSoftmax", encode_along<Generic::kLogSoftmax>},
    {"Max", encode_binary<Binary::kMax>},
    {"Min", encode_binary<Binary::kMin>},
    {"Mish", encode_function<Function::kMish>},
    {"Mod", encode_mod},
    {"Mul", encode_binary<Binary::kMul>},
    {"Neg", encode_function<Function::kNeg>},
    {"Not", encode_function<Function::kNot>},
    {"OneHot", encode_one_hot},
    {"Or", encode_binary<Binary::kOr>},
    {"PRelu", encode_binary<Binary::kPrelu>},
    {"Pow", encode_binary<Binary::kPow>},
    {"ReduceMax", encode_reduce<Reduce::kMax>},
    {"ReduceMean", encode_reduce<Reduce::kMean>},
    {"ReduceMin", encode_reduce<Reduce::kMin>},
    {"ReduceProd", encode_reduce<Reduce::kProduct>},
    {"ReduceSum", encode_reduce<Reduce::kSum>},
    {"Round", encode_function<Function::kRound>},
    {"ScatterElements", encode_scatter_elements},
    {"ScatterND", encode_scatter_nd},
    {"Selu", encode_constants<kSelu>},
    {"Shrink", encode_constants<kShrink>},
    {"Sign", encode_function<Function::kSign>},
    {"Sin", encode_function<Function::kSin>},
    {"Sinh", encode_function<Function::kSinh>},
    {"Softplus", encode_function<Function::kSoftplus>},
    {"Sub", encode_binary<Binary::kSub>},
    {"Tan", encode_function<Function::kTan>},
    {"ThresholdedRelu", encode_constants<kThresholded>},
    {"TopK", encode_top_k},
    {"Trilu", encode_trilu},
    {"Where", encode_where},
    {"Xor", encode_binary<Binary::kXor>},
};

const Form* find_form(std::string_view op) {
  const auto* found = std::find_if(std::begin(kForms), std::end(kForms), [&](const Form& f) { return f.name == op; });
  return found != std::end(kForms) ? found : nullptr;
}

std::string types_of(Tensors inputs) {
  std::string text;
  for (const Tensor& t : inputs) text += (text.empty() ? "" : ", ") + to_string(Type{t.dtype, t.shape});
  return text;
}

Result<Types> infer_generic(const OperatorInputs& in) {
  TAKT_ASSIGN(const GenericParams p, generic_params(in.node, in.tensors()));
  Types types;
  for (int i = kGenericInputs; i < kGenericInputs + kGenericOutputs; ++i) {
    const auto& t = p.operands[i];
    if (t.dtype == 0) continue;
    Type type{static_cast<DType>(t.dtype), {}};
    type.shape.rank = t.rank;
    std::copy_n(t.dims, t.rank, type.shape.dims);
    types.push_back(type);
  }
  return types;
}

Status evaluate_generic(const Node& node, std::span<const Tensor> in, std::span<const Tensor> out) {
  TAKT_ASSIGN(const GenericParams p, generic_params(node, in));
  std::byte* operands[kernels::reference::kGenericOperands] = {};
  for (std::size_t i = 0; i < in.size(); ++i) operands[i] = in[i].as<std::byte>();
  for (std::size_t i = 0; i < out.size(); ++i) operands[kGenericInputs + i] = out[i].as<std::byte>();
  kernels::reference::generic_run(p, operands);
  return {};
}

std::uint64_t input_flops(const OperatorInputs& in, std::span<const Type> /*out*/) { return elements_of(in.type(0)); }
std::uint64_t function_flops(const OperatorInputs& in, std::span<const Type> /*out*/) {
  return 20 * elements_of(in.type(0));
}

constexpr Operator generic(std::string_view name, std::size_t inputs,
                           std::uint64_t (*flops)(const OperatorInputs&, std::span<const Type>) = nullptr) {
  return {name, inputs, inputs, infer_generic, evaluate_generic, flops, nullptr};
}

// Those of the forms that have no entry of their own.
constexpr Operator kOperators[] = {
    generic("Acos", 1, function_flops),
    generic("Acosh", 1, function_flops),
    generic("ArgMax", 1, input_flops),
    generic("ArgMin", 1, input_flops),
    generic("Asin", 1, function_flops),
    generic("Asinh", 1, function_flops),
    generic("Atan", 1, function_flops),
    generic("Atanh", 1, function_flops),
    generic("BitShift", 2, input_flops),
    generic("Celu", 1, function_flops),
    generic("Cos", 1, function_flops),
    generic("Cosh", 1, function_flops),
    generic("CumSum", 1, input_flops),
    generic("Elu", 1, function_flops),
    generic("Erf", 1, function_flops),
    generic("GatherElements", 2),
    generic("GatherND", 2),
    generic("Gelu", 1, function_flops),
    generic("GreaterOrEqual", 2, input_flops),
    generic("Hardmax", 1, input_flops),
    generic("IsInf", 1, input_flops),
    generic("IsNaN", 1, input_flops),
    generic("LessOrEqual", 2, input_flops),
    generic("Log", 1, function_flops),
    generic("LogSoftmax", 1, function_flops),
    generic("Mish", 1, function_flops),
    generic("Mod", 2, input_flops),
    generic("OneHot", 2),
    generic("PRelu", 2, input_flops),
    generic("ReduceMax", 1, input_flops),
    generic("ReduceMin", 1, input_flops),
    generic("ReduceProd", 1, input_flops),
    generic("ReduceSum", 1, input_flops),
    generic("Round", 1, input_flops),
    generic("ScatterElements", 3),
    generic("ScatterND", 3),
    generic("Selu", 1, function_flops),
    generic("Shrink", 1, input_flops),
    generic("Sign", 1, input_flops),
    generic("Sin", 1, function_flops),
    generic("Sinh", 1, function_flops),
    generic("Softplus", 1, function_flops),
    generic("Tan", 1, function_flops),
    generic("ThresholdedRelu", 1, input_flops),
    generic("TopK", 1, input_flops),
    generic("Trilu", 1),
    generic("Xor", 2, input_flops),
};

}  // namespace

bool has_generic(std::string_view op) { return find_form(op) != nullptr; }

Result<GenericParams> generic_params(const Node& node, Tensors inputs) {
  const Form* form = find_form(node.op);
  if (form == nullptr) return fail(Code::kInternal, node.op + " has no generic form");
  if (inputs.empty() || inputs.size() > kGenericInputs) return fail(Code::kInput, "the number of inputs is wrong");
  GenericParams p;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) return fail(Code::kInput, "input " + std::to_string(i) + " is missing");
    p.operands[i] = kernels::reference::generic_type(inputs[i].dtype, inputs[i].shape);
  }
  TAKT_RETURN_IF_ERROR(form->encode(node, inputs[0].shape.rank, &p));
  if (const char* const error = kernels::reference::generic_infer(&p)) {
    return fail(Code::kInput, std::string(error) + ": " + types_of(inputs));
  }
  return p;
}

std::span<const Operator> generic_operators() { return kOperators; }

}  // namespace takt::ir
