#include "compiler/onnx/operators.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "compiler/ir/operators.h"
#include "compiler/onnx/tensor_proto.h"

namespace takt::compiler {
namespace {

using ir::Constant;
using ir::DType;
using ir::kNoValue;
using ir::Node;
using ir::ValueId;

// A node on its way into the graph.
struct Call {
  ir::Graph& graph;
  std::int64_t opset;
  Node node;

  [[nodiscard]] bool has(std::size_t i) const { return i < node.inputs.size() && node.inputs[i] != kNoValue; }
  [[nodiscard]] const ir::Type& type(std::size_t i) const { return *graph[node.inputs[i]].type; }
  [[nodiscard]] ValueId constant(std::string_view what, Constant value) {
    return graph.add_constant(node.name + "." + std::string(what), std::move(value));
  }
  void take(std::string_view key) { node.attributes.erase(std::string(key)); }
  // Moves an attribute of whole numbers to input i, where newer operator sets have it.
  void to_input(std::string_view key, std::size_t i) {
    if (node.attributes.count(std::string(key)) == 0) return;
    if (node.inputs.size() <= i) node.inputs.resize(i + 1, kNoValue);
    node.inputs[i] = constant(key, Constant::of(node.integers(key)));
    take(key);
  }
  Status emit() { return ir::append(graph, std::move(node)); }
  // Only the first of several outputs is computed.
  Status first_output_only() {
    if (node.outputs.size() > 1) return fail(Code::kInput, "its second output is used; only the first is supported");
    return {};
  }
};

Status as_it_is(Call& call) { return call.emit(); }

Status max_pool(Call& call) {
  TAKT_RETURN_IF_ERROR(call.first_output_only());
  return call.emit();
}

// Before operator set 7 these trained unless told otherwise.
Status for_inference(Call& call) {
  const bool test = call.node.integer("is_test", 0) != 0;
  call.take("is_test");
  if (call.opset >= 7 || test) return {};
  return fail(Code::kInput, "is_test is not set; export the model for inference");
}

Status batch_normalization(Call& call) {
  TAKT_RETURN_IF_ERROR(for_inference(call));
  TAKT_RETURN_IF_ERROR(call.first_output_only());
  if (call.node.integer("training_mode", 0) != 0) {
    return fail(Code::kInput, "training_mode is set; export the model for inference");
  }
  if (call.node.integer("spatial", 1) == 0) return fail(Code::kInput, "spatial = 0 is not supported");
  for (const char* key : {"momentum", "training_mode", "spatial"}) call.take(key);
  return call.emit();
}

Status dropout(Call& call) {
  TAKT_RETURN_IF_ERROR(for_inference(call));
  TAKT_RETURN_IF_ERROR(call.first_output_only());
  if (call.has(2)) {
    const Constant* training = call.graph[call.node.inputs[2]].constant.get();
    if (training == nullptr || training->bytes != std::vector<std::byte>{std::byte{0}}) {
      return fail(Code::kInput, "training_mode may be set; export the model for inference");
    }
  }
  call.node.op = "Identity";
  call.node.inputs.resize(1);
  call.node.attributes.clear();
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
  return call.emit();
}

Status emit_reshape(Call& call, ValueId from, ValueId to, const ir::Shape& shape, std::string_view what) {
  Node node;
  node.op = "Reshape";
  node.name = call.node.name + "." + std::string(what);
  const auto extents = std::span(shape.dims, static_cast<std::size_t>(shape.rank));
  node.inputs = {from, call.constant(std::string(what) + ".shape", Constant::of(extents))};
  node.outputs = {to};
  node.attributes["allowzero"] = std::int64_t{1};
  return ir::append(call.graph, std::move(node));
}

// Before operator set 13 all dimensions from `axis` on were one.
Status softmax(Call& call) {
  if (call.opset >= 13 || call.node.inputs.size() != 1) return call.emit();
  const ir::Shape shape = call.type(0).shape;
  std::int64_t axis = call.node.integer("axis", 1);
  if (axis < 0) axis += shape.rank;
  if (axis < 0 || axis > shape.rank) return fail(Code::kInput, "attribute axis is outside the rank");
  const bool only_one = axis + 1 >= shape.rank;
  call.node.attributes["axis"] = axis;
  if (only_one && axis < shape.rank) return call.emit();
  ir::Shape flat{2, {1, 1}};
  for (int d = 0; d < shape.rank; ++d) flat.dims[d < axis ? 0 : 1] *= shape.dims[d];
  const ValueId rows = call.graph.add_value(call.node.name + ".rows");
  const ValueId result = call.graph.add_value(call.node.name + ".flat");
  const ValueId output = call.node.outputs[0];
  TAKT_RETURN_IF_ERROR(emit_reshape(call, call.node.inputs[0], rows, flat, "flatten"));
  Node node = call.node;
  node.inputs = {rows};
  node.outputs[0] = result;
  node.attributes["axis"] = std::int64_t{1};
  TAKT_RETURN_IF_ERROR(ir::append(call.graph, std::move(node)));
  return emit_reshape(call, result, output, shape, "unflatten");
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
  return call.emit();
}

Status resize(Call& call) {
  if (call.opset < 11) return upsample(call);
  for (const char* key : {"cubic_coeff_a", "exclude_outside"}) call.take(key);  // of mode cubic alone
  return call.emit();
}

Status pad(Call& call) {
  if (call.opset < 11) {
    const float value = call.node.number("value", 0);
    call.node.inputs.resize(1);
    call.to_input("pads", 1);
    if (call.node.inputs.size() != 2) return fail(Code::kInput, "attribute pads is missing");
    call.node.inputs.push_back(call.constant("value", Constant::scalar(value)));
    call.take("value");
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
    if (axis < 0 || axis + shape.rank > rank) return fail(Code::kInput, "attribute axis is outside the rank");
    while (axis + shape.rank < rank) shape.dims[shape.rank++] = 1;
    const ValueId aligned = call.graph.add_value(call.node.name + ".aligned");
    TAKT_RETURN_IF_ERROR(emit_reshape(call, call.node.inputs[1], aligned, shape, "align"));
    call.node.inputs[1] = aligned;
  }
  call.node.attributes.clear();
  return call.emit();
}

Status gemm(Call& call) {
  call.take("broadcast");  // C always may be smaller; before operator set 7 this had to be said
  return call.emit();
}

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

Status reduce_mean(Call& call) {
  if (call.has(1)) {
    const Constant* axes = call.graph[call.node.inputs[1]].constant.get();
    if (axes == nullptr || axes->dtype != DType::kI64 || axes->shape.rank != 1) {
      return fail(Code::kInput, "axes have to be constant numbers");
    }
    std::vector<std::int64_t> numbers(axes->bytes.size() / sizeof(std::int64_t));
    if (!numbers.empty()) std::memcpy(numbers.data(), axes->bytes.data(), axes->bytes.size());
    call.node.attributes["axes"] = numbers;
  }
  if (call.node.inputs.size() > 1) call.node.inputs.resize(1);
  if (call.node.integers("axes").empty() && call.node.integer("noop_with_empty_axes", 0) != 0) {
    call.node.op = "Identity";
    call.node.attributes.clear();
  }
  call.take("noop_with_empty_axes");
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

Status cast(Call& call) {
  TAKT_ASSIGN(const DType to, element_type(static_cast<std::int32_t>(call.node.integer("to", 0))));
  call.node.attributes = {{"to", std::string(kernels::name_of(to))}};
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

// Attributes by name and type: i, f, s, t (tensor); I, F lists. Whatever is not named here is refused, since it may
// change the meaning.
struct Form {
  std::string_view name;
  std::string_view attributes;
  Status (*convert)(Call&);
};
constexpr std::string_view kWindow = "auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I";
constexpr std::string_view kLegacyBroadcast = "axis:i broadcast:i";
constexpr Form kForms[] = {
    {"Abs", "", as_it_is},
    {"Add", kLegacyBroadcast, binary},
    {"And", kLegacyBroadcast, binary},
    {"AveragePool", "auto_pad:s ceil_mode:i count_include_pad:i dilations:I kernel_shape:I pads:I strides:I", as_it_is},
    {"BatchNormalization", "epsilon:f is_test:i momentum:f spatial:i training_mode:i", batch_normalization},
    {"Cast", "to:i saturate:i", cast},
    {"Ceil", "", as_it_is},
    {"Clip", "min:f max:f", clip},
    {"Concat", "axis:i", concat},
    {"Constant", "value:t value_float:f value_floats:F value_int:i value_ints:I", constant},
    {"ConstantOfShape", "value:t", as_it_is},
    {"Conv", kWindow, as_it_is},
    {"ConvTranspose", "auto_pad:s dilations:I group:i kernel_shape:I output_padding:I output_shape:I pads:I strides:I",
     as_it_is},
    {"Div", kLegacyBroadcast, binary},
    {"Dropout", "is_test:i ratio:f seed:i", dropout},
    {"Equal", kLegacyBroadcast, binary},
    {"Exp", "", as_it_is},
    {"Expand", "", as_it_is},
    {"Flatten", "axis:i", as_it_is},
    {"Floor", "", as_it_is},
    {"Gather", "axis:i", as_it_is},
    {"Gemm", "alpha:f beta:f broadcast:i transA:i transB:i", gemm},
    {"GlobalAveragePool", "", as_it_is},
    {"Greater", kLegacyBroadcast, binary},
    {"HardSigmoid", "alpha:f beta:f", as_it_is},
    {"HardSwish", "", as_it_is},
    {"Identity", "", as_it_is},
    {"LeakyRelu", "alpha:f", as_it_is},
    {"Less", kLegacyBroadcast, binary},
    {"MatMul", "", as_it_is},
    {"Max", "", variadic},
    {"MaxPool", "auto_pad:s ceil_mode:i dilations:I kernel_shape:I pads:I storage_order:i strides:I", max_pool},
    {"Min", "", variadic},
    {"Mul", kLegacyBroadcast, binary},
    {"Neg", "", as_it_is},
    {"Not", "", as_it_is},
    {"Or", kLegacyBroadcast, binary},
    {"Pad", "mode:s pads:I value:f", pad},
    {"Pow", "", power},
    {"Range", "", as_it_is},
    {"ReduceMean", "axes:I keepdims:i noop_with_empty_axes:i", reduce_mean},
    {"Relu", "", as_it_is},
    {"Reshape", "allowzero:i", as_it_is},
    {"Resize",
     "antialias:i axes:I coordinate_transformation_mode:s cubic_coeff_a:f exclude_outside:i extrapolation_value:f "
     "keep_aspect_ratio_policy:s mode:s nearest_mode:s",
     resize},
    {"Shape", "start:i end:i", as_it_is},
    {"Sigmoid", "", as_it_is},
    {"Slice", "axes:I ends:I starts:I", slice},
    {"Softmax", "axis:i", softmax},
    {"Split", "axis:i num_outputs:i split:I", split},
    {"Sqrt", "", as_it_is},
    {"Squeeze", "axes:I", squeeze},
    {"Sub", kLegacyBroadcast, binary},
    {"Sum", "", variadic},
    {"Tanh", "", as_it_is},
    {"Transpose", "perm:I", as_it_is},
    {"Unsqueeze", "axes:I", squeeze},
    {"Upsample", "mode:s scales:F", upsample},
    {"Where", "", as_it_is},
};

const Form* find_form(std::string_view name) {
  const auto* found = std::find_if(std::begin(kForms), std::end(kForms), [&](const Form& f) { return f.name == name; });
  return found != std::end(kForms) ? found : nullptr;
}

// The type letter of an attribute in a form; 0 when the form has none of that name.
char expected_type(const Form& form, const std::string& name) {
  const std::string padded = " " + std::string(form.attributes) + " ";
  const std::size_t at = padded.find(" " + name + ":");
  return name.empty() || name.find(' ') != std::string::npos || at == std::string::npos ? '\0'
                                                                                        : padded[at + name.size() + 2];
}

Result<ir::Attribute> read_attribute(const ::onnx::AttributeProto& proto, char expected) {
  using Proto = ::onnx::AttributeProto;
  if (proto.has_ref_attr_name()) return fail(Code::kInput, "refers to an attribute of a function");
  // Very old writers leave the type out; the expected one then says which field counts.
  const bool untyped = !proto.has_type() || proto.type() == Proto::UNDEFINED;
  const auto is = [&](char letter, Proto::AttributeType type) {
    return letter == expected && (untyped || proto.type() == type);
  };
  if (is('i', Proto::INT)) return ir::Attribute{std::int64_t{proto.i()}};
  if (is('f', Proto::FLOAT)) return ir::Attribute{proto.f()};
  if (is('s', Proto::STRING)) return ir::Attribute{proto.s()};
  if (is('I', Proto::INTS)) return ir::Attribute{std::vector<std::int64_t>(proto.ints().begin(), proto.ints().end())};
  if (is('F', Proto::FLOATS)) return ir::Attribute{std::vector<float>(proto.floats().begin(), proto.floats().end())};
  if (is('t', Proto::TENSOR)) {
    TAKT_ASSIGN(Constant tensor, read_tensor(proto.t()));
    return ir::Attribute{std::make_shared<const Constant>(std::move(tensor))};
  }
  return fail(Code::kInput, "is of another type than the operator has it");
}

}  // namespace

bool imports_operator(std::string_view domain, std::string_view name) {
  return (domain.empty() || domain == "ai.onnx") && find_form(name) != nullptr;
}

Status import_node(ir::Graph& graph, const ::onnx::NodeProto& proto, std::int64_t opset, std::string name,
                   std::vector<ir::ValueId> inputs, std::vector<ir::ValueId> outputs) {
  const std::string place = "node " + ir::printable(name) + " (" + ir::printable(proto.op_type()) + ")";
  const Form* form = find_form(proto.op_type());
  if (form == nullptr) return fail(Code::kInternal, place + ": unknown operator");
  Call call{graph, opset, {}};
  call.node.op = proto.op_type();
  call.node.name = std::move(name);
  call.node.inputs = std::move(inputs);
  call.node.outputs = std::move(outputs);
  for (const ::onnx::AttributeProto& attribute : proto.attribute()) {
    const std::string where = place + ": attribute " + ir::printable(attribute.name());
    const char expected = expected_type(*form, attribute.name());
    if (expected == '\0') return fail(Code::kInput, where + " is unknown to takt");
    auto value = read_attribute(attribute, expected);
    if (!value) return fail(std::move(value).error().with_context(where));
    if (!call.node.attributes.emplace(attribute.name(), *std::move(value)).second) {
      return fail(Code::kInput, where + " is given twice");
    }
  }
  Status done = form->convert(call);
  if (done || done.error().message.compare(0, 5, "node ") == 0) return done;  // the IR has named the node already
  return fail(std::move(done).error().with_context(place));
}

}  // namespace takt::compiler
