#include "compiler/onnx/operators.h"

#include <algorithm>
#include <map>

#include "compiler/ir/takt_operators.h"
#include "compiler/onnx/call.h"
#include "compiler/onnx/tensor_proto.h"
#include "kernels/reference/elementwise.h"

namespace takt::compiler {

Status as_it_is(Call& call) { return call.emit(); }

Status for_inference(Call& call) {
  const bool test = call.node.integer("is_test", 0) != 0;
  call.take("is_test");
  if (call.opset >= 7 || test) return {};
  return fail(Code::kInput, "is_test is not set; export the model for inference");
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

Integers axes_between(std::int64_t first, std::int64_t last) {
  Integers axes;
  for (std::int64_t d = first; d < last; ++d) axes.push_back(d);
  return axes;
}

namespace {

const std::map<std::string_view, Form>& all_forms() {
  static const std::map<std::string_view, Form> forms = [] {
    std::map<std::string_view, Form> all;
    for (const auto family :
         {element_forms(), movement_forms(), reduction_forms(), image_forms(), normalisation_forms(), matrix_forms(),
          recurrent_forms(), quantisation_forms(), loss_forms()}) {
      for (const Form& form : family) all.emplace(form.name, form);
    }
    // What the IR takes as ONNX has it.
    for (const std::string_view name : ir::operator_names()) {
      const ir::Operator& op = *ir::find_operator(name);
      if (op.attributes == ir::kNotImported) continue;
      const ir::TaktOperator* own = ir::find_takt_operator(name);
      const std::size_t outputs = own != nullptr     ? kernels::cpu::find_operator_kernel(own->kernel)->outputs
                                  : name == "Unique" ? 4U
                                                     : 1U;
      all.emplace(name, Form{name, op.attributes, as_it_is, outputs});
    }
    return all;
  }();
  return forms;
}

const Form* find_form(std::string_view name) {
  const auto found = all_forms().find(name);
  return found != all_forms().end() ? &found->second : nullptr;
}

bool stored_only(DType type) { return type == DType::kF16 || type == DType::kBF16; }

// Operators that take f16 and bf16 as they are: elements are moved or named, not computed with.
bool moves(std::string_view op) {
  static constexpr std::string_view kOps[] = {
      "Cast",    "CastLike",  "Concat", "Constant",       "ConstantOfShape", "DepthToSpace", "Expand",
      "EyeLike", "Flatten",   "Gather", "GatherElements", "GatherND",        "Identity",     "OneHot",
      "Reshape", "Shape",     "Size",   "Slice",          "SpaceToDepth",    "Split",        "Squeeze",
      "Tile",    "Transpose", "Trilu",  "Unsqueeze",      "Where",           "CenterCropPad"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

Status cast_to(ir::Graph& graph, const std::string& name, ValueId from, ValueId to, DType type) {
  Node node;
  const bool same = graph[from].type->dtype == type;
  node.op = same ? "Identity" : "Cast";
  node.name = name;
  node.inputs = {from};
  node.outputs = {to};
  if (!same) node.attributes = {{"to", std::string(kernels::name_of(type))}};
  return ir::append(graph, std::move(node));
}

// takt computes in f32 where a model says f16 or bf16: inputs are widened, and results narrowed to what the first input
// (of DequantizeLinear: the scale) was. Every value of the model keeps the type that the model gives it.
Status convert_widened(const Form& form, Call& call) {
  const std::size_t decides = call.node.op == "DequantizeLinear" ? 1 : 0;
  DType narrow = DType::kF32;
  for (std::size_t i = 0; i < call.node.inputs.size(); ++i) {
    if (!call.has(i) || !stored_only(call.type(i).dtype)) continue;
    if (i == decides) narrow = call.type(i).dtype;
    const ValueId given = call.node.inputs[i];
    const std::string name = call.node.name + ".wide" + std::to_string(i);
    if (const auto known = call.graph[given].constant) {
      Constant wide = Constant::allocate(DType::kF32, known->shape);
      kernels::reference::cast(known->tensor(), wide.tensor());
      call.node.inputs[i] = call.graph.add_constant(name, std::move(wide));
      continue;
    }
    call.node.inputs[i] = call.graph.add_value(name);
    TAKT_RETURN_IF_ERROR(cast_to(call.graph, name, given, call.node.inputs[i], DType::kF32));
  }
  if (narrow == DType::kF32) return form.convert(call);
  // The mean and the deviation of a normalisation stay wide.
  const std::vector<ValueId> results = call.node.outputs;
  const std::size_t narrowed = call.node.op == "LayerNormalization" ? 1 : results.size();
  std::vector<ValueId> wide = results;
  for (std::size_t i = 0; i < narrowed; ++i) {
    wide[i] = call.graph.add_value(call.node.name + ".result" + std::to_string(i));
  }
  call.node.outputs = wide;
  const std::string name = call.node.name;
  TAKT_RETURN_IF_ERROR(form.convert(call));
  for (std::size_t i = 0; i < narrowed; ++i) {
    const auto type = call.graph[wide[i]].type;
    if (!type) return fail(Code::kInternal, "an output has no type");
    const DType to = type->dtype == DType::kF32 ? narrow : type->dtype;
    TAKT_RETURN_IF_ERROR(cast_to(call.graph, name + ".narrow" + std::to_string(i), wide[i], results[i], to));
  }
  return {};
}

bool widens(const Call& call) {
  if (moves(call.node.op)) return false;
  for (std::size_t i = 0; i < call.node.inputs.size(); ++i) {
    if (call.has(i) && stored_only(call.type(i).dtype)) return true;
  }
  return false;
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
  if (is('S', Proto::STRINGS)) {
    return ir::Attribute{std::vector<std::string>(proto.strings().begin(), proto.strings().end())};
  }
  if (is('t', Proto::TENSOR)) {
    TAKT_ASSIGN(Constant tensor, read_tensor(proto.t()));
    return ir::Attribute{std::make_shared<const Constant>(std::move(tensor))};
  }
  return fail(Code::kInput, "is of another type than the operator has it");
}

// Operator X of takt's domain is takt.X in a graph.
std::string takt_name(std::string_view name) { return std::string(kTaktDomain) + "." + std::string(name); }

}  // namespace

bool imports_operator(std::string_view domain, std::string_view name) {
  if (domain == kTaktDomain) return ir::find_takt_operator(takt_name(name)) != nullptr;
  return (domain.empty() || domain == "ai.onnx") && ir::find_takt_operator(name) == nullptr &&
         find_form(name) != nullptr;
}

std::vector<std::string_view> imported_operators() {
  std::vector<std::string_view> names;
  for (const auto& [name, form] : all_forms()) {
    if (ir::find_takt_operator(name) == nullptr) names.push_back(name);
  }
  return names;
}

Status import_node(ir::Graph& graph, const ::onnx::NodeProto& proto, std::int64_t opset, std::string name,
                   std::vector<ir::ValueId> inputs, std::vector<ir::ValueId> outputs) {
  const std::string place = "node " + ir::printable(name) + " (" + ir::printable(proto.op_type()) + ")";
  const std::string op = proto.domain() == kTaktDomain ? takt_name(proto.op_type()) : proto.op_type();
  const Form* form = find_form(op);
  if (form == nullptr) return fail(Code::kInternal, place + ": unknown operator");
  Call call{graph, opset, {}};
  call.node.op = op;
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
  const std::size_t most = form->outputs;
  if (call.node.outputs.size() > most) {
    return fail(Code::kInput, place + (most == 1 ? ": its second output is used; only the first is supported"
                                                 : ": has " + std::to_string(call.node.outputs.size()) +
                                                       " outputs, expected at most " + std::to_string(most)));
  }
  const std::vector<ValueId> results = call.node.outputs;
  if (!call.has(0) && call.node.op != "Constant") return fail(Code::kInput, place + ": its first input is missing");
  Status done = widens(call) ? convert_widened(*form, call) : form->convert(call);
  // Readers of a result rely on its type.
  const auto untyped = [&](ValueId id) { return !graph[id].type; };
  if (done && std::any_of(results.begin(), results.end(), untyped)) {
    return fail(Code::kInternal, place + ": an output has no type");
  }
  if (done || done.error().message.compare(0, 5, "node ") == 0) return done;  // the IR has named the node already
  return fail(std::move(done).error().with_context(place));
}

}  // namespace takt::compiler
