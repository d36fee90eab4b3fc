// Operators on counted tensors (graph.h: Type::count). An operator is row-wise, count-consuming or count-creating
// (kernels/reference/counted.h); one that is none of these after a counted tensor is refused by name. A count-creating
// node has one more output, the count, an i32 scalar.
#pragma once

#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/ir/operators.h"
#include "kernels/reference/generic.h"

namespace takt::ir {

// Whether the node reads a counted tensor or makes one by the data; of takt's own operators (takt_operators.h) always.
bool is_counted(const Graph& graph, const Node& node);

// Types of the outputs, counts included. kInput, in words, when the operator cannot do with these counts.
Result<std::vector<Type>> infer_counted(const Graph& graph, const Node& node);

// What a node adds to a graph before it is typed: the output for a count that it makes, an axis where ONNX flattens.
// kInput as above.
Status prepare_counted(Graph& graph, Node& node);

// The runs of the counted kernel that make up a node, one for each output but the count. Not for nodes that keep the
// elements where they are (keeps_elements).
struct CountedStep {
  kernels::reference::GenericParams params;
  std::vector<ValueId> inputs;  // of the kernel, kNoValue where absent
  std::vector<ValueId> counts;  // the count operands
  ValueId output = kNoValue;
  ValueId made = kNoValue;  // the count that this step makes, in one step of the node at most
};
Result<std::vector<CountedStep>> counted_steps(const Graph& graph, const Node& node);

// Reshape and its kin, Identity: the result is the input's bytes, counted as they are.
bool keeps_elements(const Node& node);

// One node by the counted kernel, or a copy. `values` by id; results in the order of the node's outputs, at capacity,
// what lies behind a count is zero.
Result<std::vector<Constant>> evaluate_counted(const Graph& graph, const Node& node, std::span<const Constant> values);

// Who gets a counted tensor gets its count: counts of outputs become outputs too, where they are neither that nor
// inputs. They keep their names.
void add_counts_of_outputs(Graph& graph);

// The valid part of a counted tensor: its shape with the count in place of the capacity, and its bytes.
Constant cut(const Constant& whole, int axis, std::int64_t count);

}  // namespace takt::ir
