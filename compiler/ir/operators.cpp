#include "compiler/ir/operators.h"

#include <algorithm>
#include <array>

#include "compiler/ir/counted.h"
#include "compiler/ir/geometry.h"
#include "compiler/ir/operator_tables.h"
#include "compiler/ir/takt_operators.h"

namespace takt::ir {
namespace {

std::uint64_t takt_flops(const OperatorInputs& in, std::span<const Type> /*outputs*/) {
  const TaktOperator& op = *find_takt_operator(in.node.op);
  const auto call = op.describe(in);
  return call ? kernels::cpu::flops_of(op.kernel, call->params.data()) : 0;
}

Result<Types> takt_types(const OperatorInputs& in) { return infer_takt(in.graph, in.node); }

// takt's own operators as entries; infer_counted and its kin do the rest.
const std::vector<Operator>& takt_entries() {
  static const std::vector<Operator> entries = [] {
    std::vector<Operator> all;
    for (const auto family : {voxel_operators(), point_operators(), tracking_operators()}) {
      for (const TaktOperator& op : family) {
        const std::size_t most = kernels::cpu::find_operator_kernel(op.kernel)->inputs;
        all.push_back({op.name, op.required, most, takt_types, nullptr, takt_flops, nullptr, op.attributes});
      }
    }
    return all;
  }();
  return entries;
}

const std::vector<const Operator*>& table() {
  static const std::vector<const Operator*> operators = [] {
    std::vector<const Operator*> all;
    for (const auto family : {window_operators(), elementwise_operators(), movement_operators(), matrix_operators(),
                              image_operators(), control_operators(), counted_operators(), generic_operators()}) {
      for (const Operator& op : family) all.push_back(&op);
    }
    for (const Operator& op : takt_entries()) all.push_back(&op);
    std::sort(all.begin(), all.end(), [](const Operator* a, const Operator* b) { return a->name < b->name; });
    return all;
  }();
  return operators;
}

std::string place(const Node& node) { return "node " + printable(node.name) + " (" + printable(node.op) + ")"; }

}  // namespace

const Constant* OperatorInputs::constant(std::size_t i) const {
  return has(i) ? graph[node.inputs[i]].constant.get() : nullptr;
}

std::vector<kernels::Tensor> OperatorInputs::tensors() const {
  std::vector<kernels::Tensor> out(node.inputs.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!has(i)) continue;
    const Constant* value = constant(i);
    out[i] = value != nullptr ? value->tensor() : kernels::Tensor{type(i).dtype, type(i).shape, nullptr};
  }
  return out;
}

const Operator* find_operator(std::string_view name) {
  const auto found = std::lower_bound(table().begin(), table().end(), name,
                                      [](const Operator* op, std::string_view wanted) { return op->name < wanted; });
  return found != table().end() && (*found)->name == name ? *found : nullptr;
}

std::vector<std::string_view> operator_names() {
  std::vector<std::string_view> names;
  for (const Operator* op : table()) names.push_back(op->name);
  return names;
}

Status expect_type(const OperatorInputs& inputs, std::size_t i, std::initializer_list<DType> types) {
  if (std::find(types.begin(), types.end(), inputs.type(i).dtype) != types.end()) return {};
  std::string expected;
  for (const DType type : types) expected += (expected.empty() ? "" : ", ") + std::string(kernels::name_of(type));
  return fail(Code::kInput, "input " + std::to_string(i) + " is " + to_string(inputs.type(i)) +
                                "; expected an element type of " + expected);
}

Status expect_rank(const OperatorInputs& inputs, std::size_t i, int rank) {
  if (inputs.shape(i).rank == rank) return {};
  return fail(Code::kInput, "input " + std::to_string(i) + " is " + to_string(inputs.type(i)) + "; expected rank " +
                                std::to_string(rank));
}

Status one_output(const OperatorInputs& inputs) {
  if (inputs.node.outputs.size() == 1) return {};
  return fail(Code::kInput,
              "has " + std::to_string(inputs.node.outputs.size()) + " outputs; only the first is supported");
}

void settle_axis(const Graph& graph, Node& node, std::int64_t otherwise) {
  const int rank = graph[node.inputs[0]].type->shape.rank;
  const std::int64_t axis = node.integer("axis", otherwise);
  node.attributes["axis"] = axis < 0 ? axis + rank : axis;
}

Result<std::vector<Type>> infer(const Graph& graph, const Node& node) {
  const Operator* op = find_operator(node.op);
  if (op == nullptr) return fail(Code::kInput, place(node) + ": unknown operator");
  if (node.inputs.size() < op->min_inputs || node.inputs.size() > op->max_inputs) {
    return fail(Code::kInput, place(node) + ": " + std::to_string(node.inputs.size()) + " inputs, expected " +
                                  std::to_string(op->min_inputs) + " to " + std::to_string(op->max_inputs));
  }
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId id = node.inputs[i];
    if (id == kNoValue) {
      if (i < op->min_inputs) return fail(Code::kInput, place(node) + ": input " + std::to_string(i) + " is missing");
      continue;
    }
    if (!graph[id].type) {
      return fail(Code::kInput, place(node) + ": input " + printable(graph[id].name) + " has no type");
    }
  }
  if (node.outputs.empty()) return fail(Code::kInput, place(node) + ": no outputs");
  auto types = is_counted(graph, node) ? infer_counted(graph, node) : op->infer(OperatorInputs{graph, node});
  if (!types) return fail(std::move(types).error().with_context(place(node)));
  if (types->size() != node.outputs.size()) {
    return fail(Code::kInput, place(node) + ": " + std::to_string(node.outputs.size()) + " outputs, expected " +
                                  std::to_string(types->size()));
  }
  for (const Type& type : *types) {
    if (!within_limits(type.shape)) {
      return fail(Code::kInput, place(node) + ": a result of " + to_string(type) + " is larger than " +
                                    std::to_string(kMaxElements) + " elements");
    }
  }
  return types;
}

}  // namespace takt::ir
