// The operators, one table for each family. Only operators.cpp puts them together.
#pragma once

#include <span>

#include "compiler/ir/operators.h"

namespace takt::ir {

std::span<const Operator> window_operators();       // Conv, pools
std::span<const Operator> elementwise_operators();  // unary, binary, activations, Cast, Where, BatchNormalization
std::span<const Operator> movement_operators();     // Reshape, Transpose, Concat, Slice, Gather, Pad, ...
std::span<const Operator> matrix_operators();       // Gemm, MatMul, ReduceMean, Softmax
std::span<const Operator> image_operators();        // Resize, takt.Preprocess
std::span<const Operator> control_operators();      // takt.Select
std::span<const Operator> counted_operators();      // what makes a count (counted.h)
std::span<const Operator> generic_operators();      // what the generic kernel runs (generic.h)

// For the rules in these tables.
using Types = std::vector<Type>;
inline std::uint64_t elements_of(const Type& type) { return static_cast<std::uint64_t>(type.shape.elements()); }
// kInput unless input i has one of the element types.
Status expect_type(const OperatorInputs& inputs, std::size_t i, std::initializer_list<DType> types);
Status expect_rank(const OperatorInputs& inputs, std::size_t i, int rank);
// kInput unless the node has exactly one output.
Status one_output(const OperatorInputs& inputs);
// Makes an axis attribute explicit and counted from 0.
void settle_axis(const Graph& graph, Node& node, std::int64_t otherwise);

}  // namespace takt::ir
