#include <algorithm>
#include <cstring>
#include <optional>

#include "compiler/ir/counted.h"
#include "compiler/ir/generic.h"
#include "compiler/ir/geometry.h"
#include "compiler/ir/operator_tables.h"
#include "compiler/ir/takt_operators.h"
#include "kernels/reference/counted.h"

namespace takt::ir {
namespace {

using kernels::Tensor;
using kernels::reference::Generic;
using kernels::reference::GenericParams;
using kernels::reference::GenericType;
using kernels::reference::kGenericInputs;
using kernels::reference::kMade;
using kernels::reference::kMostCounts;

constexpr std::int64_t kUniqueResults = 4;

bool creates(std::string_view op) {
  return op == "NonZero" || op == "Compress" || op == "Unique" || op == "NonMaxSuppression";
}

// The capacity of a count-creating operator: declared, or as many as there can be.
std::int64_t capacity(const Node& node, std::int64_t most) {
  return std::clamp<std::int64_t>(node.integer("capacity", most), 1, std::max<std::int64_t>(most, 1));
}

Status encode_transpose(const OperatorInputs& in, GenericParams* p) {
  p->op = Generic::kTranspose;
  std::vector<std::int64_t> perm = in.node.integers("perm");
  const int rank = in.shape(0).rank;
  for (int d = rank - 1; d >= 0 && perm.size() < static_cast<std::size_t>(rank); --d) perm.push_back(d);
  if (perm.size() > static_cast<std::size_t>(rank)) return fail(Code::kInput, "perm has another length than its input");
  std::copy(perm.begin(), perm.end(), p->integers);
  return {};
}

Status encode_slice(const OperatorInputs& in, GenericParams* p) {
  p->op = Generic::kSlice;
  const std::vector<Tensor> operands = in.tensors();
  TAKT_ASSIGN(const std::vector<std::int64_t> starts, integers_of(operands[1], "starts"));
  TAKT_ASSIGN(const std::vector<std::int64_t> ends, integers_of(operands[2], "ends"));
  std::vector<std::int64_t> axes, steps(starts.size(), 1);
  for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (in.has(3)) {
    TAKT_ASSIGN(axes, integers_of(operands[3], "axes"));
  }
  if (in.has(4)) {
    TAKT_ASSIGN(steps, integers_of(operands[4], "steps"));
  }
  if (starts.size() > 4 || ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    return fail(Code::kInput, "its starts, ends, axes and steps do not fit each other, or are more than four");
  }
  p->integers[0] = static_cast<std::int64_t>(starts.size());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    std::int64_t* const slice = p->integers + 1 + 4 * i;
    slice[0] = axes[i] < 0 ? axes[i] + in.shape(0).rank : axes[i];
    slice[1] = std::clamp(starts[i], -kMaxElements, kMaxElements);
    slice[2] = std::clamp(ends[i], -kMaxElements, kMaxElements);
    slice[3] = std::clamp(steps[i], -kMaxElements, kMaxElements);
  }
  return {};
}

template <Generic op>
Status encode_axis(const OperatorInputs& in, GenericParams* p) {
  p->op = op;
  TAKT_ASSIGN(p->integers[0], axis_of(in.node, "axis", op == Generic::kSoftmax ? -1 : 0, in.shape(0).rank));
  return {};
}

Status encode_clip(const OperatorInputs& /*in*/, GenericParams* p) {
  p->op = Generic::kClip;
  return {};
}

Status encode_gemm(const OperatorInputs& in, GenericParams* p) {
  p->op = Generic::kGemm;
  p->integers[0] = in.node.integer("transA", 0) != 0 ? 1 : 0;
  p->integers[1] = in.node.integer("transB", 0) != 0 ? 1 : 0;
  p->numbers[0] = in.node.number("alpha", 1);
  p->numbers[1] = in.node.number("beta", 1);
  return {};
}

Status encode_non_zero(const OperatorInputs& in, GenericParams* p) {
  p->op = Generic::kNonZero;
  p->integers[3] = capacity(in.node, in.shape(0).elements());
  return {};
}

Status encode_compress(const OperatorInputs& in, GenericParams* p) {
  p->op = Generic::kCompress;
  TAKT_ASSIGN(p->integers[0], axis_of(in.node, "axis", 0, in.shape(0).rank));
  p->integers[3] = capacity(in.node, std::min(in.shape(0).dims[p->integers[0]], in.shape(1).elements()));
  return {};
}

Status encode_unique(const OperatorInputs& in, GenericParams* p) {
  p->op = Generic::kUnique;
  TAKT_ASSIGN(p->integers[0], axis_of(in.node, "axis", 0, in.shape(0).rank));
  p->integers[1] = in.node.integer("sorted", 1) != 0 ? 1 : 0;
  p->integers[3] = capacity(in.node, in.shape(0).dims[p->integers[0]]);
  return {};
}

Status encode_nms(const OperatorInputs& in, GenericParams* p) {
  p->op = Generic::kNms;
  p->integers[0] = in.node.integer("center_point_box", 0) != 0 ? 1 : 0;
  const Shape& scores = in.shape(1);
  if (scores.rank != 3) return fail(Code::kInput, "expects scores [batch,classes,boxes], found " + to_string(scores));
  std::int64_t each = scores.dims[2];
  if (const Constant* most = in.constant(2);
      most != nullptr && most->dtype == DType::kI64 && most->shape.elements() == 1) {
    each = std::clamp<std::int64_t>(*most->tensor().as<std::int64_t>(), 0, each);
  }
  p->integers[3] = capacity(in.node, scores.dims[0] * scores.dims[1] * each);
  return {};
}

// Operators whose uncounted form has a kernel of its own, or none. `operands`: inputs that the kernel reads.
struct CountedForm {
  std::string_view name;
  std::size_t operands;
  Status (*encode)(const OperatorInputs& in, GenericParams* p);
};
constexpr CountedForm kForms[] = {
    {"Clip", 3, encode_clip},
    {"Compress", 2, encode_compress},
    {"Concat", kGenericInputs, encode_axis<Generic::kConcat>},
    {"Gather", 2, encode_axis<Generic::kGather>},
    {"Gemm", 3, encode_gemm},
    {"NonMaxSuppression", 5, encode_nms},
    {"NonZero", 1, encode_non_zero},
    {"Slice", 1, encode_slice},
    {"Softmax", 1, encode_axis<Generic::kSoftmax>},
    {"Transpose", 1, encode_transpose},
    {"Unique", 1, encode_unique},
};

// The call of the counted kernel that a node is; outputs typed. Counts are in the order in which its inputs have them.
struct Call {
  GenericParams params;
  std::vector<ValueId> inputs;
  std::vector<ValueId> counts;
};

Status set_operands(const Graph& graph, const Node& node, std::size_t operands, Call* call) {
  for (std::size_t i = 0; i < std::min(node.inputs.size(), operands); ++i) {
    const ValueId id = node.inputs[i];
    call->inputs.push_back(id);
    if (id == kNoValue) continue;
    const Type& type = *graph[id].type;
    GenericType& to = call->params.operands[i];
    to = kernels::reference::generic_type(type.dtype, type.shape);
    if (type.count == kNoValue) continue;
    const auto known = std::find(call->counts.begin(), call->counts.end(), type.count);
    to.count = static_cast<std::uint8_t>(known - call->counts.begin() + 1);
    to.axis = static_cast<std::uint8_t>(type.axis);
    if (known == call->counts.end()) call->counts.push_back(type.count);
  }
  if (call->counts.size() < kMostCounts) return {};  // one more may be the count that the node makes
  return fail(Code::kInput, "has inputs of more than " + std::to_string(kMostCounts - 1) + " counts");
}

std::string types_of(const Graph& graph, const Node& node) {
  std::string text;
  for (const ValueId id : node.inputs) {
    if (id != kNoValue) text += (text.empty() ? "" : ", ") + to_string(*graph[id].type);
  }
  return text;
}

Result<Call> call_of(const Graph& graph, const Node& node, std::int64_t result = 0) {
  Call call;
  const OperatorInputs in{graph, node};
  const auto* form =
      std::find_if(std::begin(kForms), std::end(kForms), [&](const CountedForm& f) { return f.name == node.op; });
  if (form != std::end(kForms)) {
    if (node.inputs.size() > kGenericInputs) {
      return fail(Code::kInput, "has more than " + std::to_string(kGenericInputs) + " inputs of counted tensors");
    }
    TAKT_RETURN_IF_ERROR(set_operands(graph, node, form->operands, &call));
    TAKT_RETURN_IF_ERROR(form->encode(in, &call.params));
  } else if (const GenericForm* generic = find_generic_form(node.op); generic != nullptr) {
    TAKT_RETURN_IF_ERROR(set_operands(graph, node, kGenericInputs, &call));
    TAKT_RETURN_IF_ERROR(generic->encode(node, in.shape(0).rank, &call.params));
  } else {
    return fail(Code::kInput, "takes no counted tensors: " + types_of(graph, node));
  }
  if (call.params.op == Generic::kUnique) call.params.integers[2] = result;
  if (const char* const error = kernels::reference::counted_infer(&call.params)) {
    return fail(Code::kInput, std::string(error) + ": " + types_of(graph, node));
  }
  return call;
}

std::int64_t results_of(const Call& call) {
  if (call.params.op == Generic::kUnique) return kUniqueResults;
  return call.params.operands[kGenericInputs + 1].dtype != 0 ? 2 : 1;
}

Type type_of(const GenericType& from, const Call& call, const Node& node) {
  Type type;
  type.dtype = static_cast<DType>(from.dtype);
  type.shape.rank = from.rank;
  std::copy_n(from.dims, from.rank, type.shape.dims);
  if (from.count == 0) return type;
  type.count = from.count == kMade ? node.outputs.back() : call.counts[from.count - 1U];
  type.axis = from.axis;
  return type;
}

// Reshapes: the extent that grows with the counted one is the counted one.
Result<Types> infer_kept(const Graph& graph, const Node& node) {
  const Type& x = *graph[node.inputs[0]].type;
  if (node.op == "Identity") return Types{x};
  const Operator* op = find_operator(node.op);
  const auto shape_with = [&](std::int64_t more) {
    Graph scratch;
    Node same = node;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue) continue;
      scratch.values.push_back(graph[node.inputs[i]]);
      same.inputs[i] = static_cast<ValueId>(scratch.values.size()) - 1;
      scratch.values.back().type->count = kNoValue;
    }
    scratch.values[0].type->shape.dims[x.axis] += more;
    scratch.values[0].type->axis = 0;
    return op->infer(OperatorInputs{scratch, same});
  };
  TAKT_ASSIGN(Types types, shape_with(0));
  const auto grown = shape_with(1);
  int axis = -1;
  bool same = grown && (*grown)[0].shape.rank == types[0].shape.rank;
  for (int d = 0; same && d < types[0].shape.rank; ++d) {
    const std::int64_t change = (*grown)[0].shape.dims[d] - types[0].shape.dims[d];
    if (change == 0) continue;
    same = change == 1 && axis < 0;
    axis = d;
  }
  if (!same || axis < 0) {
    return fail(Code::kInput, "does not keep the counted dimension of " + to_string(x) +
                                  " as it is (a shape that says -1 there does)");
  }
  types[0].count = x.count;
  types[0].axis = axis;
  return types;
}

Result<Types> no_uncounted_form(const OperatorInputs& in) { return infer_counted(in.graph, in.node); }

std::uint64_t pairs(const OperatorInputs& in, std::span<const Type> /*out*/) {
  const std::uint64_t n = elements_of(in.type(0));
  return n * n;
}
std::uint64_t once(const OperatorInputs& in, std::span<const Type> /*out*/) { return elements_of(in.type(0)); }

constexpr Operator kOperators[] = {
    {"Compress", 2, 2, no_uncounted_form, nullptr, once, nullptr, "axis:i"},
    {"NonMaxSuppression", 2, 5, no_uncounted_form, nullptr, pairs, nullptr, "center_point_box:i"},
    {"NonZero", 1, 1, no_uncounted_form, nullptr, once, nullptr, ""},
    {"Unique", 1, 1, no_uncounted_form, nullptr, pairs, nullptr, "axis:i sorted:i"},
};

}  // namespace

std::span<const Operator> counted_operators() { return kOperators; }

bool keeps_elements(const Node& node) {
  return node.op == "Reshape" || node.op == "Squeeze" || node.op == "Unsqueeze" || node.op == "Flatten" ||
         node.op == "Identity";
}

bool is_counted(const Graph& graph, const Node& node) {
  return creates(node.op) || find_takt_operator(node.op) != nullptr ||
         std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId id) { return id != kNoValue && graph[id].type && graph[id].type->count != kNoValue; });
}

Result<std::vector<Type>> infer_counted(const Graph& graph, const Node& node) {
  if (find_takt_operator(node.op) != nullptr) return infer_takt(graph, node);
  if (keeps_elements(node)) return infer_kept(graph, node);
  if (node.op == "takt.Select") return fail(Code::kInput, "branches give counted tensors: " + types_of(graph, node));
  Types types;
  TAKT_ASSIGN(const Call call, call_of(graph, node));
  for (std::int64_t r = 0; r < results_of(call); ++r) {
    if (call.params.op == Generic::kUnique) {
      TAKT_ASSIGN(const Call other, call_of(graph, node, r));
      types.push_back(type_of(other.params.operands[kGenericInputs], other, node));
    } else {
      types.push_back(type_of(call.params.operands[kGenericInputs + r], call, node));
    }
  }
  if (kernels::reference::makes_count(call.params)) types.push_back({DType::kI32, {}});
  return types;
}

void add_counts_of_outputs(Graph& graph) {
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const ValueId count = graph[graph.outputs[i]].type->count;
    if (count == kNoValue) continue;
    const auto is = [&](const std::vector<ValueId>& list) {
      return std::find(list.begin(), list.end(), count) != list.end();
    };
    if (!is(graph.outputs) && !is(graph.inputs)) graph.outputs.push_back(count);
  }
}

Status prepare_counted(Graph& graph, Node& node) {
  if (keeps_elements(node) || node.op == "takt.Select") return {};
  if (find_takt_operator(node.op) != nullptr) {
    complete_outputs(graph, node);
    return {};
  }
  if ((node.op == "Compress" || node.op == "Unique") && node.attributes.count("axis") == 0) {
    Node flat;
    flat.op = "Reshape";
    flat.name = node.name + ".flat";
    const std::int64_t all = -1;
    flat.inputs = {node.inputs[0], graph.add_constant(flat.name + ".shape", Constant::of(std::span(&all, 1)))};
    flat.outputs = {graph.add_value(flat.name)};
    flat.guard = node.guard;
    node.inputs[0] = flat.outputs[0];
    node.attributes["axis"] = std::int64_t{0};
    TAKT_RETURN_IF_ERROR(append(graph, std::move(flat)));
  }
  auto call = call_of(graph, node);
  if (!call) return fail(std::move(call).error().with_context("node " + printable(node.name) + " (" + node.op + ")"));
  for (auto r = static_cast<std::int64_t>(node.outputs.size()); r < results_of(*call); ++r) {
    node.outputs.push_back(graph.add_value(node.name + ".result" + std::to_string(r)));
  }
  if (kernels::reference::makes_count(call->params)) {
    node.outputs.push_back(graph.add_value(graph[node.outputs[0]].name + ":count"));
  }
  return {};
}

Result<std::vector<CountedStep>> counted_steps(const Graph& graph, const Node& node) {
  std::vector<CountedStep> steps;
  TAKT_ASSIGN(const Call first, call_of(graph, node));
  for (std::int64_t r = 0; r < results_of(first); ++r) {
    Call call = first;
    if (call.params.op == Generic::kUnique) {
      TAKT_ASSIGN(call, call_of(graph, node, r));
    } else {
      call.params.operands[kGenericInputs + 1 - r] = {};
    }
    CountedStep& step = steps.emplace_back();
    step.output = node.outputs[static_cast<std::size_t>(r)];
    GenericType& y = call.params.operands[kGenericInputs + (call.params.op == Generic::kUnique ? 0 : r)];
    if (y.count == kMade && r == 0) {
      step.made = node.outputs.back();
    } else if (y.count == kMade) {
      // The first step has made it.
      call.counts.push_back(node.outputs.back());
      y.count = static_cast<std::uint8_t>(call.counts.size());
    }
    step.params = call.params;
    step.inputs = call.inputs;
    step.counts = call.counts;
  }
  return steps;
}

Result<std::vector<Constant>> evaluate_counted(const Graph& graph, const Node& node, std::span<const Constant> values) {
  if (find_takt_operator(node.op) != nullptr) return evaluate_takt(graph, node, values);
  std::vector<Constant> results;
  for (const ValueId id : node.outputs) {
    const Type& type = *graph[id].type;
    results.push_back(Constant::allocate(type.dtype, type.shape));
  }
  const auto value = [&](ValueId id) -> const Constant& { return values[static_cast<std::size_t>(id)]; };
  if (keeps_elements(node)) {
    results[0].bytes = value(node.inputs[0]).bytes;
    return results;
  }
  TAKT_ASSIGN(const std::vector<CountedStep> steps, counted_steps(graph, node));
  const auto result = [&](ValueId id) -> Constant& {
    return results[static_cast<std::size_t>(std::find(node.outputs.begin(), node.outputs.end(), id) -
                                            node.outputs.begin())];
  };
  for (const CountedStep& step : steps) {
    std::byte* operands[kernels::reference::kGenericOperands] = {};
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      if (step.inputs[i] != kNoValue) operands[i] = value(step.inputs[i]).tensor().as<std::byte>();
    }
    const bool second = step.params.operands[kGenericInputs].dtype == 0;
    operands[kGenericInputs + (second ? 1 : 0)] = result(step.output).tensor().as<std::byte>();
    const std::int32_t* counts[kMostCounts] = {};
    for (std::size_t c = 0; c < step.counts.size(); ++c) {
      const bool own = step.counts[c] == node.outputs.back();
      counts[c] = (own ? result(step.counts[c]) : value(step.counts[c])).tensor().as<const std::int32_t>();
    }
    std::int32_t* const made = step.made != kNoValue ? result(step.made).tensor().as<std::int32_t>() : nullptr;
    kernels::reference::counted_run(step.params, operands, counts, made);
  }
  return results;
}

Constant cut(const Constant& whole, int axis, std::int64_t count) {
  Constant out{whole.dtype, whole.shape, {}};
  out.shape.dims[axis] = std::clamp<std::int64_t>(count, 0, whole.shape.dims[axis]);
  const std::size_t bytes = static_cast<std::size_t>(out.shape.elements()) * kernels::size_of(whole.dtype);
  out.bytes.assign(whole.bytes.begin(), whole.bytes.begin() + static_cast<std::ptrdiff_t>(bytes));
  return out;
}

}  // namespace takt::ir
