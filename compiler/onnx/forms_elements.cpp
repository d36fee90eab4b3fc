// Elementwise operators.
#include <algorithm>
#include <limits>

#include "compiler/onnx/call.h"
#include "compiler/onnx/tensor_proto.h"

namespace takt::compiler {
namespace {

// The exponent may have a type of its own.
Status power(Call& call) {
  if (call.has(0) && call.has(1) && call.type(0).dtype != call.type(1).dtype) {
    Node cast;
    cast.op = "Cast";
    cast.name = call.node.name + ".exponent";
    cast.inputs = {call.node.inputs[1]};
    cast.outputs = {call.graph.add_value(cast.name)};
    cast.attributes["to"] = std::string(kernels::name_of(call.type(0).dtype));
    call.node.inputs[1] = cast.outputs[0];
    TAKT_RETURN_IF_ERROR(ir::append(call.graph, std::move(cast)));
  }
  return call.emit();
}

// Before operator set 7 the second operand was laid against the first from dimension `axis` on.
Status binary(Call& call) {
  const bool has_axis = call.node.attributes.count("axis") != 0;
  if (call.opset >= 7 && !call.node.attributes.empty()) {
    return fail(Code::kInput, "attributes axis and broadcast belong to operator sets before 7");
  }
  if (has_axis && call.node.integer("broadcast", 0) != 0 && call.has(0) && call.has(1)) {
    const int rank = call.type(0).shape.rank;
    ir::Shape shape = call.type(1).shape;
    const std::int64_t axis = call.node.integer("axis", 0);
    // Not axis + shape.rank: the file may name any number.
    if (axis < 0 || axis > rank - shape.rank) return fail(Code::kInput, "attribute axis is outside the rank");
    while (axis + shape.rank < rank) shape.dims[shape.rank++] = 1;
    const ValueId aligned = call.graph.add_value(call.node.name + ".aligned");
    TAKT_RETURN_IF_ERROR(emit_reshape(call, call.node.inputs[1], aligned, shape, "align"));
    call.node.inputs[1] = aligned;
  }
  call.node.attributes.clear();
  return call.emit();
}

// Max, Min and Sum take any number of inputs; here they are a chain of two-operand calls from the left.
Status variadic(Call& call) {
  const std::string op = call.node.op == "Sum" ? "Add" : call.node.op;
  std::vector<ValueId> inputs = call.node.inputs;
  if (inputs.empty()) return fail(Code::kInput, "has no inputs");
  ValueId left = inputs[0];
  for (std::size_t i = 1; i + 1 < inputs.size(); ++i) {
    Node node = call.node;
    node.op = op;
    node.name += "." + std::to_string(i);
    node.inputs = {left, inputs[i]};
    left = call.graph.add_value(node.name);
    node.outputs = {left};
    TAKT_RETURN_IF_ERROR(ir::append(call.graph, std::move(node)));
  }
  call.node.op = inputs.size() == 1 ? "Identity" : op;
  call.node.inputs = inputs.size() == 1 ? inputs : std::vector<ValueId>{left, inputs.back()};
  return call.emit();
}

Status cast(Call& call) {
  TAKT_ASSIGN(const DType to, element_type(static_cast<std::int32_t>(call.node.integer("to", 0))));
  call.node.attributes = {{"to", std::string(kernels::name_of(to))}};
  return call.emit();
}

Status cast_like(Call& call) {
  if (!call.has(1)) return fail(Code::kInput, "expects two inputs");
  call.node.op = "Cast";
  call.node.attributes = {{"to", std::string(kernels::name_of(call.type(1).dtype))}};
  call.node.inputs.resize(1);
  return call.emit();
}

Status clip(Call& call) {
  if (call.opset < 11) {
    // The limits' defaults are the largest finite values.
    const float most = std::numeric_limits<float>::max();
    const float lowest = call.node.number("min", -most);
    const float highest = call.node.number("max", most);
    call.node.inputs.resize(1);
    call.node.inputs.push_back(call.constant("min", Constant::scalar(lowest)));
    call.node.inputs.push_back(call.constant("max", Constant::scalar(highest)));
    call.node.attributes.clear();
  }
  const auto constant = [&](std::size_t i) { return !call.has(i) || call.graph[call.node.inputs[i]].constant; };
  if (call.type(0).dtype == DType::kF32 && constant(1) && constant(2)) return call.emit();
  // Limits of run time, and any other number.
  Steps steps(call);
  const ValueId x = call.node.inputs[0];
  if (!call.has(1) && !call.has(2)) return steps.last("Identity", {x});
  if (!call.has(2)) return steps.last("Max", {x, call.node.inputs[1]});
  const ValueId raised = call.has(1) ? steps("Max", {x, call.node.inputs[1]}) : x;
  return steps.last("Min", {raised, call.node.inputs[2]});
}

// A dropout that changes nothing: told not to train, or with a ratio of 0. Its mask is true everywhere.
Status dropout(Call& call) {
  TAKT_RETURN_IF_ERROR(for_inference(call));
  const auto constant = [&](std::size_t i) {
    return call.has(i) ? call.graph[call.node.inputs[i]].constant : std::shared_ptr<const Constant>{};
  };
  if (call.has(2)) {
    const auto training = constant(2);
    const bool off = training && training->bytes == std::vector<std::byte>{std::byte{0}};
    const auto ratio = constant(1);
    const bool none =
        ratio && std::all_of(ratio->bytes.begin(), ratio->bytes.end(), [](std::byte b) { return b == std::byte{0}; });
    if (!off && !none) return fail(Code::kInput, "training_mode may be set; export the model for inference");
  }
  const ir::Shape shape = call.type(0).shape;
  Steps steps(call);
  TAKT_RETURN_IF_ERROR(steps.last("Identity", {call.node.inputs[0]}));
  if (call.node.outputs.size() == 1) return {};
  const DType type = call.opset >= 10 ? DType::kBool : call.type(0).dtype;
  const Integers extents(shape.dims, shape.dims + shape.rank);
  return steps.output(1, "Expand", {steps.number(1, type), steps.list(extents)});
}

Status reciprocal(Call& call) {
  Steps steps(call);
  return steps.last("Div", {steps.number_like(1, call.node.inputs[0]), call.node.inputs[0]});
}

Status softsign(Call& call) {
  Steps steps(call);
  const ValueId x = call.node.inputs[0];
  return steps.last("Div", {x, steps("Add", {steps.number_like(1, x), steps("Abs", {x})})});
}

Status mean(Call& call) {
  if (call.node.inputs.empty()) return fail(Code::kInput, "has no inputs");
  Steps steps(call);
  ValueId sum = call.node.inputs[0];
  for (std::size_t i = 1; i < call.node.inputs.size(); ++i) sum = steps("Add", {sum, call.node.inputs[i]});
  return steps.last("Div", {sum, steps.number_like(static_cast<float>(call.node.inputs.size()), sum)});
}

// Before operator set 7 the slopes lay along dimension 1.
Status prelu(Call& call) {
  if (call.opset >= 7 || !call.has(1) || call.type(1).shape.rank != 1 || call.type(0).shape.rank < 2)
    return call.emit();
  const ir::Shape slopes = call.type(1).shape;
  Integers along(static_cast<std::size_t>(call.type(0).shape.rank), 1);
  along[1] = slopes.dims[0];
  Steps steps(call);
  const ValueId laid = steps.reshape(call.node.inputs[1], along);
  return steps.last("PRelu", {call.node.inputs[0], laid});
}

constexpr Form kForms[] = {
    {"Abs", "", as_it_is},
    {"Add", "axis:i broadcast:i", binary},
    {"And", "axis:i broadcast:i", binary},
    {"Cast", "to:i saturate:i", cast},
    {"CastLike", "saturate:i", cast_like},
    {"Ceil", "", as_it_is},
    {"Clip", "min:f max:f", clip},
    {"Div", "axis:i broadcast:i", binary},
    {"Dropout", "is_test:i ratio:f seed:i", dropout, 2},
    {"Equal", "axis:i broadcast:i", binary},
    {"Exp", "", as_it_is},
    {"Floor", "", as_it_is},
    {"Greater", "axis:i broadcast:i", binary},
    {"HardSigmoid", "alpha:f beta:f", as_it_is},
    {"HardSwish", "", as_it_is},
    {"LeakyRelu", "alpha:f", as_it_is},
    {"Less", "axis:i broadcast:i", binary},
    {"Max", "", variadic},
    {"Mean", "", mean},
    {"Min", "", variadic},
    {"Mul", "axis:i broadcast:i", binary},
    {"Neg", "", as_it_is},
    {"Not", "", as_it_is},
    {"Or", "axis:i broadcast:i", binary},
    {"PRelu", "", prelu},
    {"Pow", "", power},
    {"Reciprocal", "", reciprocal},
    {"Relu", "", as_it_is},
    {"Sigmoid", "", as_it_is},
    {"Softsign", "", softsign},
    {"Sqrt", "", as_it_is},
    {"Sub", "axis:i broadcast:i", binary},
    {"Sum", "", variadic},
    {"Tanh", "", as_it_is},
    {"Where", "", as_it_is},
    {"Xor", "axis:i broadcast:i", binary},
};

}  // namespace

std::span<const Form> element_forms() { return kForms; }

}  // namespace takt::compiler
