// One entry per operator: shape rule, reference kernel, cost. A new operator is one entry (file operators_*.cpp) plus,
// for speed, a lowering; without a lowering the compiler refuses it by name.
#pragma once

#include <functional>
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
  [[nodiscard]] const Type& type(std::size_t i) const;
  [[nodiscard]] const Constant* constant(std::size_t i) const;  // nullptr when the value is not constant
};

struct Operator {
  std::string_view name;
  std::size_t min_inputs = 1;
  std::size_t max_inputs = 1;
  // Types of the outputs. Errors name the expected and the found shape; the caller adds the node.
  Result<std::vector<Type>> (*infer)(const OperatorInputs& inputs) = nullptr;
  // By reference kernels. Inputs absent in the node have data == nullptr; outputs are allocated as infer says.
  Status (*evaluate)(const Node& node, std::span<const kernels::Tensor> inputs,
                     std::span<const kernels::Tensor> outputs) = nullptr;
  // Floating-point operations (a multiply-add counts as 2) at capacity.
  std::uint64_t (*flops)(const OperatorInputs& inputs, std::span<const Type> outputs) = nullptr;
};

const Operator* find_operator(std::string_view name);
std::vector<std::string_view> operator_names();

// Runs a whole graph by reference kernels: the oracle of every pass and plan. Inputs in the order of graph.inputs;
// returns all values by id (constants included).
Result<std::vector<Constant>> interpret(const Graph& graph, std::span<const Constant> inputs);

}  // namespace takt::ir
