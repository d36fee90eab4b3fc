// One entry per operator: shape rule, reference kernel, cost, attributes. A new operator that the generic kernel runs
// is one entry (generic_forms_*.cpp), lowering included; docs/operators_how_to.md goes through one. A kernel of its
// own, for speed, is an entry in operators_*.cpp and a lowering in compiler/lower.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"

namespace takt::ir {

// What shape rules see: types of all inputs, and the constant behind an input where there is one (shape operands).
struct OperatorInputs {
  const Graph& graph;
  const Node& node;
  [[nodiscard]] std::size_t size() const { return node.inputs.size(); }
  [[nodiscard]] bool has(std::size_t i) const { return i < size() && node.inputs[i] != kNoValue; }
  [[nodiscard]] const Type& type(std::size_t i) const { return *graph[node.inputs[i]].type; }
  [[nodiscard]] const Shape& shape(std::size_t i) const { return type(i).shape; }
  [[nodiscard]] const Constant* constant(std::size_t i) const;  // nullptr when absent or not constant
  // As tensors for the rules that evaluation shares (compiler/ir/geometry.h): data == nullptr where not constant.
  [[nodiscard]] std::vector<kernels::Tensor> tensors() const;
};

// Operator::attributes of what import makes only by a form of its own, or ONNX does not have.
inline constexpr std::string_view kNotImported = "-";

struct Operator {
  std::string_view name;
  std::size_t min_inputs = 1;
  std::size_t max_inputs = 1;
  // Types of the outputs, one for each output of the node. Errors name the expected and the found shape; the caller
  // adds the node and checks ranks and element counts.
  Result<std::vector<Type>> (*infer)(const OperatorInputs& inputs) = nullptr;
  // By reference kernels. Inputs absent in the node have data == nullptr; outputs are allocated as infer says.
  Status (*evaluate)(const Node& node, std::span<const kernels::Tensor> inputs,
                     std::span<const kernels::Tensor> outputs) = nullptr;
  // Floating-point operations (a multiply-add counts as 2) at capacity; nullptr: none, elements are only moved.
  std::uint64_t (*flops)(const OperatorInputs& inputs, std::span<const Type> outputs) = nullptr;
  // Brings a node whose types are known into canonical form: every attribute explicit, axes counted from 0, shapes as
  // numbers. May replace the operator and add constants. nullptr: every form is canonical.
  void (*settle)(Graph& graph, Node& node) = nullptr;
  // ONNX's attributes, when a node of the model is taken as it is, in every operator set: "name:type ..." with the
  // types i, f, s, t (tensor) and I, F, S (lists).
  std::string_view attributes = kNotImported;
};

const Operator* find_operator(std::string_view name);
std::vector<std::string_view> operator_names();  // ascending

// The types of a node's outputs by the rule of its operator, after the checks common to all: known operator, number of
// inputs, ranks, element counts. kInput with the node's name and operator in front.
Result<std::vector<Type>> infer(const Graph& graph, const Node& node);

// Adds a node whose inputs have types, behind the nodes that are there: gives its outputs their types and settles it.
// What can be computed now (Shape, and small results of constants: shape arithmetic) becomes a constant instead of a
// node.
Status append(Graph& graph, Node node);

// One node by reference kernels; inputs[i].data == nullptr where absent.
Result<std::vector<Constant>> evaluate(const Graph& graph, const Node& node, std::span<const kernels::Tensor> inputs);

// Runs a whole graph by reference kernels: the oracle of every pass and plan. Inputs in the order of graph.inputs;
// returns all values by id (constants included).
Result<std::vector<Constant>> interpret(const Graph& graph, std::span<const Constant> inputs);

}  // namespace takt::ir
