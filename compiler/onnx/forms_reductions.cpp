// Reductions, running sums, orders, softmax.
#include "compiler/onnx/call.h"

namespace takt::compiler {
namespace {

Status reduce(Call& call) {
  TAKT_RETURN_IF_ERROR(settle_axes(call));
  return call.emit();
}

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

Status cum_sum(Call& call) {
  if (!call.has(1)) return fail(Code::kInput, "expects two inputs");
  TAKT_ASSIGN(const std::int64_t axis, constant_integer(call, 1, "axis"));
  call.node.attributes["axis"] = axis;
  call.node.inputs.resize(1);
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

// f64 has no kernel of its own: x - m, exp, the sum. Operator sets before 13 flatten, which changes nothing at the last
// axis.
Status softmax_of_steps(Call& call) {
  const int rank = call.type(0).shape.rank;
  TAKT_ASSIGN(const int axis, ir::axis_of(call.node, "axis", call.opset < 13 ? 1 : -1, rank));
  if (call.opset < 13 && axis + 1 != rank) return fail(Code::kInput, "f64 over several dimensions");
  const std::map<std::string, ir::Attribute> over = {{"axes", Integers{axis}}, {"keepdims", std::int64_t{1}}};
  Steps steps(call);
  const ValueId shifted = steps("Sub", {call.node.inputs[0], steps("ReduceMax", {call.node.inputs[0]}, over)});
  const ValueId powers = steps("Exp", {shifted});
  const ValueId sum = steps("ReduceSum", {powers}, over);
  if (call.node.op == "Softmax") return steps.last("Div", {powers, sum});
  if (call.node.op == "LogSoftmax") return steps.last("Sub", {shifted, steps("Log", {sum})});
  return fail(Code::kInput, "f64");
}

// Before operator set 13 all dimensions from `axis` on were one.
Status softmax(Call& call) {
  if (call.type(0).dtype == DType::kF64) return softmax_of_steps(call);
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

constexpr Form kForms[] = {
    {"CumSum", "exclusive:i reverse:i", cum_sum},
    {"Hardmax", "axis:i", softmax},
    {"LogSoftmax", "axis:i", softmax},
    {"ReduceL1", "axes:I keepdims:i noop_with_empty_axes:i", reduce_l1},
    {"ReduceL2", "axes:I keepdims:i noop_with_empty_axes:i", reduce_l2},
    {"ReduceLogSum", "axes:I keepdims:i noop_with_empty_axes:i", reduce_log_sum},
    {"ReduceLogSumExp", "axes:I keepdims:i noop_with_empty_axes:i", reduce_log_sum_exp},
    {"ReduceMax", "axes:I keepdims:i noop_with_empty_axes:i", reduce},
    {"ReduceMean", "axes:I keepdims:i noop_with_empty_axes:i", reduce},
    {"ReduceMin", "axes:I keepdims:i noop_with_empty_axes:i", reduce},
    {"ReduceProd", "axes:I keepdims:i noop_with_empty_axes:i", reduce},
    {"ReduceSum", "axes:I keepdims:i noop_with_empty_axes:i", reduce},
    {"ReduceSumSquare", "axes:I keepdims:i noop_with_empty_axes:i", reduce_sum_square},
    {"Softmax", "axis:i", softmax},
    {"TopK", "axis:i k:i largest:i sorted:i", top_k, 2},
};

}  // namespace

std::span<const Form> reduction_forms() { return kForms; }

}  // namespace takt::compiler
