#include "compiler/onnx/operators.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "compiler/ir/geometry.h"
#include "compiler/ir/operators.h"
#include "compiler/onnx/tensor_proto.h"
#include "kernels/reference/elementwise.h"

namespace takt::compiler {
namespace {

using ir::Constant;
using ir::DType;
using ir::kNoValue;
using ir::Node;
using ir::to_string;
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
};

Status as_it_is(Call& call) { return call.emit(); }

// Before operator set 7 these trained unless told otherwise.
Status for_inference(Call& call) {
  const bool test = call.node.integer("is_test", 0) != 0;
  call.take("is_test");
  if (call.opset >= 7 || test) return {};
  return fail(Code::kInput, "is_test is not set; export the model for inference");
}

Status batch_normalization(Call& call) {
  TAKT_RETURN_IF_ERROR(for_inference(call));
  if (call.node.integer("training_mode", 0) != 0) {
    return fail(Code::kInput, "training_mode is set; export the model for inference");
  }
  if (call.node.integer("spatial", 1) == 0) return fail(Code::kInput, "spatial = 0 is not supported");
  for (const char* key : {"momentum", "training_mode", "spatial"}) call.take(key);
  return call.emit();
}

Status dropout(Call& call) {
  TAKT_RETURN_IF_ERROR(for_inference(call));
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

// The whole numbers of a constant input, as an attribute in newer or older operator sets.
Result<std::vector<std::int64_t>> constant_integers(const Call& call, std::size_t i, std::string_view what) {
  const ir::Type& type = call.type(i);
  const Constant* value = call.graph[call.node.inputs[i]].constant.get();
  return ir::integers_of({type.dtype, type.shape, value != nullptr ? value->tensor().data : nullptr}, what);
}
Result<std::int64_t> constant_integer(const Call& call, std::size_t i, std::string_view what) {
  TAKT_ASSIGN(const std::vector<std::int64_t> values, constant_integers(call, i, what));
  if (values.size() == 1) return values[0];
  return fail(Code::kInput, "expects one number as " + std::string(what));
}

// Axes as an attribute; without any and told so, the operator does nothing.
Status settle_axes(Call& call) {
  if (call.has(1)) {
    TAKT_ASSIGN(std::vector<std::int64_t> axes, constant_integers(call, 1, "axes"));
    call.node.attributes["axes"] = std::move(axes);
  }
  call.node.inputs.resize(1);
  if (call.node.integers("axes").empty() && call.node.integer("noop_with_empty_axes", 0) != 0) {
    call.node.op = "Identity";
    call.node.attributes.clear();
  }
  call.take("noop_with_empty_axes");
  return {};
}

Status reduce(Call& call) {
  TAKT_RETURN_IF_ERROR(settle_axes(call));
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

// --- operators that are a few others

// Adds the calls that an operator stands for, one after the other; the last one writes the operator's own output.
class Steps {
 public:
  explicit Steps(Call& call) : call_(call) {}

  ValueId operator()(std::string op, std::vector<ValueId> inputs,
                     std::map<std::string, ir::Attribute> attributes = {}) {
    const ValueId result = call_.graph.add_value(call_.node.name + "." + std::to_string(++count_));
    add(std::move(op), std::move(inputs), result, std::move(attributes));
    return result;
  }
  Status last(std::string op, std::vector<ValueId> inputs, std::map<std::string, ir::Attribute> attributes = {}) {
    return output(0, std::move(op), std::move(inputs), std::move(attributes));
  }
  // Writes output i, where the model has it.
  Status output(std::size_t i, std::string op, std::vector<ValueId> inputs,
                std::map<std::string, ir::Attribute> attributes = {}) {
    if (i < call_.node.outputs.size())
      add(std::move(op), std::move(inputs), call_.node.outputs[i], std::move(attributes));
    return status_;
  }
  ValueId number(float value) { return call_.constant("number" + std::to_string(++count_), Constant::scalar(value)); }
  ValueId list(std::span<const std::int64_t> values) {
    return call_.constant("list" + std::to_string(++count_), Constant::of(values));
  }
  ValueId reshape(ValueId x, std::span<const std::int64_t> extents) {
    return (*this)("Reshape", {x, list(extents)}, {{"allowzero", std::int64_t{1}}});
  }
  ValueId transpose(ValueId x, std::vector<std::int64_t> perm) {
    return (*this)("Transpose", {x}, {{"perm", std::move(perm)}});
  }
  Status last_reshape(ValueId x, std::span<const std::int64_t> extents) {
    return last("Reshape", {x, list(extents)}, {{"allowzero", std::int64_t{1}}});
  }

 private:
  // After a failure nothing more is added; its message is what counts.
  void add(std::string op, std::vector<ValueId> inputs, ValueId output,
           std::map<std::string, ir::Attribute> attributes) {
    if (!status_) return;
    Node node;
    node.name = call_.node.name + (call_.node.outputs[0] == output ? "" : "." + std::to_string(++count_));
    node.op = std::move(op);
    node.inputs = std::move(inputs);
    node.outputs = {output};
    node.attributes = std::move(attributes);
    status_ = ir::append(call_.graph, std::move(node));
  }

  Call& call_;
  Status status_;
  int count_ = 0;
};

using Integers = std::vector<std::int64_t>;

std::map<std::string, ir::Attribute> reduction(const Call& call) {
  std::map<std::string, ir::Attribute> attributes = {{"keepdims", call.node.integer("keepdims", 1)}};
  if (!call.node.integers("axes").empty()) attributes["axes"] = call.node.integers("axes");
  return attributes;
}
// What follows the sum of an elementwise operator `first` of x (with x itself when `square`).
Status reduce_of(Call& call, const char* first, bool square, const char* last) {
  TAKT_RETURN_IF_ERROR(settle_axes(call));
  Steps steps(call);
  const ValueId x = call.node.inputs[0];
  const ValueId term =
      first == nullptr ? x : steps(first, square ? std::vector<ValueId>{x, x} : std::vector<ValueId>{x});
  if (call.node.op == "Identity") return last == nullptr ? steps.last("Identity", {term}) : steps.last(last, {term});
  if (last == nullptr) return steps.last("ReduceSum", {term}, reduction(call));
  return steps.last(last, {steps("ReduceSum", {term}, reduction(call))});
}
Status reduce_l1(Call& call) { return reduce_of(call, "Abs", false, nullptr); }
Status reduce_l2(Call& call) { return reduce_of(call, "Mul", true, "Sqrt"); }
Status reduce_log_sum(Call& call) { return reduce_of(call, nullptr, false, "Log"); }
Status reduce_sum_square(Call& call) { return reduce_of(call, "Mul", true, nullptr); }

// m + log(sum of exp(x - m)): the maximum keeps exp in range.
Status reduce_log_sum_exp(Call& call) {
  TAKT_RETURN_IF_ERROR(settle_axes(call));
  if (call.node.op == "Identity") return call.emit();
  Steps steps(call);
  const ValueId x = call.node.inputs[0];
  auto kept = reduction(call);
  kept["keepdims"] = std::int64_t{1};
  const ValueId shifted = steps("Exp", {steps("Sub", {x, steps("ReduceMax", {x}, kept)})});
  const ValueId logarithm = steps("Log", {steps("ReduceSum", {shifted}, reduction(call))});
  return steps.last("Add", {logarithm, steps("ReduceMax", {x}, reduction(call))});
}

Status reciprocal(Call& call) {
  Steps steps(call);
  return steps.last("Div", {steps.number(1), call.node.inputs[0]});
}

Status softsign(Call& call) {
  Steps steps(call);
  const ValueId x = call.node.inputs[0];
  return steps.last("Div", {x, steps("Add", {steps.number(1), steps("Abs", {x})})});
}

Status mean(Call& call) {
  if (call.node.inputs.empty()) return fail(Code::kInput, "has no inputs");
  Steps steps(call);
  ValueId sum = call.node.inputs[0];
  for (std::size_t i = 1; i < call.node.inputs.size(); ++i) sum = steps("Add", {sum, call.node.inputs[i]});
  return steps.last("Div", {sum, steps.number(static_cast<float>(call.node.inputs.size()))});
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

Status cast_like(Call& call) {
  if (!call.has(1)) return fail(Code::kInput, "expects two inputs");
  call.node.op = "Cast";
  call.node.attributes = {{"to", std::string(kernels::name_of(call.type(1).dtype))}};
  call.node.inputs.resize(1);
  return call.emit();
}

// A maximum over windows as large as the image.
Status global_max_pool(Call& call) {
  const ir::Shape shape = call.type(0).shape;
  if (shape.rank != 4) return fail(Code::kInput, "expects an input [N,C,H,W], found " + to_string(shape));
  call.node.op = "MaxPool";
  call.node.attributes = {{"kernel_shape", Integers{shape.dims[2], shape.dims[3]}}};
  return call.emit();
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

// (x - mean) * (1 / sqrt(variance + epsilon)) over some axes; the mean and the factor are results of
// LayerNormalization.
struct Normalised {
  ValueId value, mean, factor;
};
Normalised normalise(Steps& steps, ValueId x, const Integers& axes, float epsilon) {
  const std::map<std::string, ir::Attribute> over = {{"axes", axes}, {"keepdims", std::int64_t{1}}};
  const ValueId average = steps("ReduceMean", {x}, over);
  const ValueId centred = steps("Sub", {x, average});
  const ValueId variance = steps("ReduceMean", {steps("Mul", {centred, centred})}, over);
  const ValueId deviation = steps("Sqrt", {steps("Add", {variance, steps.number(epsilon)})});
  const ValueId factor = steps("Div", {steps.number(1), deviation});
  return {steps("Mul", {centred, factor}), average, factor};
}

Integers axes_from(std::int64_t first, int rank) {
  Integers axes;
  for (std::int64_t d = first; d < rank; ++d) axes.push_back(d);
  return axes;
}

Status layer_normalization(Call& call) {
  const int rank = call.type(0).shape.rank;
  TAKT_ASSIGN(const int axis, ir::axis_of(call.node, "axis", -1, rank));
  if (call.node.integer("stash_type", 1) != 1) return fail(Code::kInput, "stash_type is not f32");
  if (!call.has(1)) return fail(Code::kInput, "expects X, scale, and bias or none");
  Steps steps(call);
  const Normalised n = normalise(steps, call.node.inputs[0], axes_from(axis, rank), call.node.number("epsilon", 1e-5F));
  if (call.has(2)) {
    TAKT_RETURN_IF_ERROR(steps.last("Add", {steps("Mul", {n.value, call.node.inputs[1]}), call.node.inputs[2]}));
  } else {
    TAKT_RETURN_IF_ERROR(steps.last("Mul", {n.value, call.node.inputs[1]}));
  }
  TAKT_RETURN_IF_ERROR(steps.output(1, "Identity", {n.mean}));
  return steps.output(2, "Identity", {n.factor});
}

// scale and bias, one for each channel, laid along dimension 1.
Status scaled_by_channel(Call& call, Steps& steps, ValueId value) {
  const ir::Shape x = call.type(0).shape;
  Integers along(static_cast<std::size_t>(x.rank), 1);
  along[1] = x.dims[1];
  const ValueId scale = steps.reshape(call.node.inputs[1], along);
  const ValueId bias = steps.reshape(call.node.inputs[2], along);
  return steps.last("Add", {steps("Mul", {value, scale}), bias});
}

Status instance_normalization(Call& call) {
  const int rank = call.type(0).shape.rank;
  if (rank < 3 || !call.has(1) || !call.has(2)) return fail(Code::kInput, "expects [N,C,...], scale and bias");
  Steps steps(call);
  const Normalised n = normalise(steps, call.node.inputs[0], axes_from(2, rank), call.node.number("epsilon", 1e-5F));
  return scaled_by_channel(call, steps, n.value);
}

// Before operator set 21 scale and bias belonged to groups, since then to channels.
Status group_normalization(Call& call) {
  const ir::Shape x = call.type(0).shape;
  const std::int64_t groups = call.node.integer("num_groups", 0);
  if (x.rank < 3 || !call.has(1) || !call.has(2) || groups < 1 || x.dims[1] % groups != 0) {
    return fail(Code::kInput, "num_groups " + std::to_string(groups) + " does not fit " + to_string(x));
  }
  if (call.node.integer("stash_type", 1) != 1) return fail(Code::kInput, "stash_type is not f32");
  Steps steps(call);
  const Integers extents(x.dims, x.dims + x.rank);
  const ValueId split = steps.reshape(call.node.inputs[0], Integers{x.dims[0], groups, -1});
  const Normalised n = normalise(steps, split, {2}, call.node.number("epsilon", 1e-5F));
  if (call.opset >= 21) return scaled_by_channel(call, steps, steps.reshape(n.value, extents));
  const ValueId scale = steps.reshape(call.node.inputs[1], Integers{groups, 1});
  const ValueId bias = steps.reshape(call.node.inputs[2], Integers{groups, 1});
  return steps.last_reshape(steps("Add", {steps("Mul", {n.value, scale}), bias}), extents);
}

Status mean_variance_normalization(Call& call) {
  Integers axes = call.node.integers("axes");
  if (axes.empty()) axes = {0, 2, 3};
  Steps steps(call);
  const ValueId x = call.node.inputs[0];
  const std::map<std::string, ir::Attribute> over = {{"axes", axes}, {"keepdims", std::int64_t{1}}};
  const ValueId average = steps("ReduceMean", {x}, over);
  const ValueId squares = steps("ReduceMean", {steps("Mul", {x, x})}, over);
  const ValueId deviation = steps("Sqrt", {steps("Sub", {squares, steps("Mul", {average, average})})});
  // The specification's guard against a deviation of 0.
  return steps.last("Div", {steps("Sub", {x, average}), steps("Add", {deviation, steps.number(1e-9F)})});
}

// --- operands that are attributes in takt

Status cum_sum(Call& call) {
  if (!call.has(1)) return fail(Code::kInput, "expects two inputs");
  TAKT_ASSIGN(const std::int64_t axis, constant_integer(call, 1, "axis"));
  call.node.attributes["axis"] = axis;
  call.node.inputs.resize(1);
  return call.emit();
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

Status top_k(Call& call) {
  if (call.opset >= 10) {
    if (!call.has(1)) return fail(Code::kInput, "expects two inputs");
    TAKT_ASSIGN(const std::int64_t k, constant_integer(call, 1, "k"));
    call.node.attributes["k"] = k;
  }
  call.node.inputs.resize(1);
  call.take("sorted");  // always
  if (call.node.outputs.size() == 1) call.node.outputs.push_back(call.graph.add_value(call.node.name + ".indices"));
  return call.emit();
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

Status scatter(Call& call) {
  call.node.op = "ScatterElements";
  return call.emit();
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
constexpr std::string_view kReduce = "axes:I keepdims:i noop_with_empty_axes:i";
constexpr Form kForms[] = {
    {"Abs", "", as_it_is},
    {"Add", kLegacyBroadcast, binary},
    {"And", kLegacyBroadcast, binary},
    {"AveragePool", "auto_pad:s ceil_mode:i count_include_pad:i dilations:I kernel_shape:I pads:I strides:I", as_it_is},
    {"BatchNormalization", "epsilon:f is_test:i momentum:f spatial:i training_mode:i", batch_normalization},
    {"Cast", "to:i saturate:i", cast},
    {"CastLike", "saturate:i", cast_like},
    {"Ceil", "", as_it_is},
    {"Clip", "min:f max:f", clip},
    {"Concat", "axis:i", concat},
    {"Constant", "value:t value_float:f value_floats:F value_int:i value_ints:I", constant},
    {"ConstantOfShape", "value:t", as_it_is},
    {"Conv", kWindow, as_it_is},
    {"ConvTranspose", "auto_pad:s dilations:I group:i kernel_shape:I output_padding:I output_shape:I pads:I strides:I",
     as_it_is},
    {"CumSum", "exclusive:i reverse:i", cum_sum},
    {"DepthToSpace", "blocksize:i mode:s", depth_to_space},
    {"Div", kLegacyBroadcast, binary},
    {"Dropout", "is_test:i ratio:f seed:i", dropout},
    {"Equal", kLegacyBroadcast, binary},
    {"Exp", "", as_it_is},
    {"Expand", "", as_it_is},
    {"EyeLike", "dtype:i k:i", eye_like},
    {"Flatten", "axis:i", as_it_is},
    {"Floor", "", as_it_is},
    {"Gather", "axis:i", as_it_is},
    {"Gemm", "alpha:f beta:f broadcast:i transA:i transB:i", gemm},
    {"GlobalAveragePool", "", as_it_is},
    {"GlobalMaxPool", "", global_max_pool},
    {"Greater", kLegacyBroadcast, binary},
    {"GroupNormalization", "epsilon:f num_groups:i stash_type:i", group_normalization},
    {"HardSigmoid", "alpha:f beta:f", as_it_is},
    {"HardSwish", "", as_it_is},
    {"Hardmax", "axis:i", softmax},
    {"Identity", "", as_it_is},
    {"InstanceNormalization", "epsilon:f", instance_normalization},
    {"LayerNormalization", "axis:i epsilon:f stash_type:i", layer_normalization},
    {"LeakyRelu", "alpha:f", as_it_is},
    {"Less", kLegacyBroadcast, binary},
    {"LogSoftmax", "axis:i", softmax},
    {"MatMul", "", as_it_is},
    {"Max", "", variadic},
    {"MaxPool", "auto_pad:s ceil_mode:i dilations:I kernel_shape:I pads:I storage_order:i strides:I", as_it_is},
    {"Mean", "", mean},
    {"MeanVarianceNormalization", "axes:I", mean_variance_normalization},
    {"Min", "", variadic},
    {"Mul", kLegacyBroadcast, binary},
    {"Neg", "", as_it_is},
    {"Not", "", as_it_is},
    {"OneHot", "axis:i", one_hot},
    {"Or", kLegacyBroadcast, binary},
    {"PRelu", "", prelu},
    {"Pad", "mode:s pads:I value:f", pad},
    {"Pow", "", power},
    {"Range", "", as_it_is},
    {"Reciprocal", "", reciprocal},
    {"ReduceL1", kReduce, reduce_l1},
    {"ReduceL2", kReduce, reduce_l2},
    {"ReduceLogSum", kReduce, reduce_log_sum},
    {"ReduceLogSumExp", kReduce, reduce_log_sum_exp},
    {"ReduceMax", kReduce, reduce},
    {"ReduceMean", kReduce, reduce},
    {"ReduceMin", kReduce, reduce},
    {"ReduceProd", kReduce, reduce},
    {"ReduceSum", kReduce, reduce},
    {"ReduceSumSquare", kReduce, reduce_sum_square},
    {"Relu", "", as_it_is},
    {"Reshape", "allowzero:i", as_it_is},
    {"Resize",
     "antialias:i axes:I coordinate_transformation_mode:s cubic_coeff_a:f exclude_outside:i extrapolation_value:f "
     "keep_aspect_ratio_policy:s mode:s nearest_mode:s",
     resize},
    {"Scatter", "axis:i", scatter},
    {"Shape", "start:i end:i", as_it_is},
    {"Sigmoid", "", as_it_is},
    {"Size", "", size},
    {"Slice", "axes:I ends:I starts:I", slice},
    {"Softmax", "axis:i", softmax},
    {"Softsign", "", softsign},
    {"SpaceToDepth", "blocksize:i", space_to_depth},
    {"Split", "axis:i num_outputs:i split:I", split},
    {"Sqrt", "", as_it_is},
    {"Squeeze", "axes:I", squeeze},
    {"Sub", kLegacyBroadcast, binary},
    {"Sum", "", variadic},
    {"Tanh", "", as_it_is},
    {"Tile", "", tile},
    {"TopK", "axis:i k:i largest:i sorted:i", top_k},
    {"Transpose", "perm:I", as_it_is},
    {"Trilu", "upper:i", trilu},
    {"Unsqueeze", "axes:I", squeeze},
    {"Upsample", "mode:s scales:F", upsample},
    {"Where", "", as_it_is},
    {"Xor", kLegacyBroadcast, binary},
};

// Of an operator of the IR that has its ONNX attributes: taken as it is.
std::optional<Form> find_form(std::string_view name) {
  const auto* found = std::find_if(std::begin(kForms), std::end(kForms), [&](const Form& f) { return f.name == name; });
  if (found != std::end(kForms)) return *found;
  const ir::Operator* op = ir::find_operator(name);
  if (op == nullptr || op->attributes == ir::kNotImported) return std::nullopt;
  return Form{op->name, op->attributes, as_it_is};
}

// So many outputs of an operator are computed. What reads another would read a value that nothing has written.
std::size_t most_outputs(std::string_view op) {
  if (op == "Split") return std::numeric_limits<std::size_t>::max();
  if (op == "LayerNormalization") return 3;
  return op == "TopK" ? 2 : 1;
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
  return (domain.empty() || domain == "ai.onnx") && find_form(name).has_value();
}

Status import_node(ir::Graph& graph, const ::onnx::NodeProto& proto, std::int64_t opset, std::string name,
                   std::vector<ir::ValueId> inputs, std::vector<ir::ValueId> outputs) {
  const std::string place = "node " + ir::printable(name) + " (" + ir::printable(proto.op_type()) + ")";
  const std::optional<Form> form = find_form(proto.op_type());
  if (!form) return fail(Code::kInternal, place + ": unknown operator");
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
  if (call.node.outputs.empty()) return fail(Code::kInput, place + ": has no outputs");
  const std::size_t most = most_outputs(call.node.op);
  if (call.node.outputs.size() > most) {
    return fail(Code::kInput, place + (most == 1 ? ": its second output is used; only the first is supported"
                                                 : ": has " + std::to_string(call.node.outputs.size()) +
                                                       " outputs, expected at most " + std::to_string(most)));
  }
  const std::vector<ValueId> results = call.node.outputs;
  if (!call.has(0) && call.node.op != "Constant") return fail(Code::kInput, place + ": its first input is missing");
  Status done = form->convert(call);
  // Readers of a result rely on its type.
  const auto untyped = [&](ValueId id) { return !graph[id].type; };
  if (done && std::any_of(results.begin(), results.end(), untyped)) {
    return fail(Code::kInternal, place + ": an output has no type");
  }
  if (done || done.error().message.compare(0, 5, "node ") == 0) return done;  // the IR has named the node already
  return fail(std::move(done).error().with_context(place));
}

}  // namespace takt::compiler
