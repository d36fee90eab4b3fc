// takt's own operators (domain "takt" in ONNX files): one row each, in operators_voxels.cpp, operators_points.cpp,
// operators_tracking.cpp. Import, shape inference, counts, the interpreter and lowering follow from the row and from
// that of its kernel (kernels/cpu/operators.h); docs/operators.md says what each does.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/ir/operators.h"
#include "kernels/cpu/operators.h"

namespace takt::ir {

// A node as a call of its kernel.
struct OperatorCall {
  std::vector<std::byte> params;
  std::vector<Type> outputs;           // element types and capacities; their counts are the row's matter
  std::vector<std::uint64_t> scratch;  // bytes
};

struct TaktOperator {
  std::string_view name;        // "takt.Voxelise"
  std::string_view attributes;  // as in Operator
  kernels::cpu::KernelId kernel{};
  std::size_t required = 1;  // inputs that may not be absent: the first ones
  // Shape rule and parameters in one. kInput, in words, when inputs or attributes do not fit; the caller has checked
  // how many inputs there are and adds the node's name.
  Result<OperatorCall> (*describe)(const OperatorInputs& inputs) = nullptr;
  // The reference kernel on the operands of the kernel, {nullptr, 0} where absent.
  void (*evaluate)(const void* params, const kernels::Operand* operands) = nullptr;
  // Makes the call write its first result blocked; lowering asks where a reader wants it so. nullptr: row-major alone.
  void (*set_block)(std::byte* params, std::uint8_t block) = nullptr;
};

std::span<const TaktOperator> voxel_operators();
std::span<const TaktOperator> point_operators();
std::span<const TaktOperator> tracking_operators();
const TaktOperator* find_takt_operator(std::string_view name);  // nullptr: none

// The inputs and counts that the kernel takes, kNoValue where absent. kInput when a counted tensor meets an operator
// that takes none there, or two that must be counted alike are not.
Result<std::vector<ValueId>> kernel_operands(const Graph& graph, const Node& node);

// The node's part in infer(), append() and interpret(): types with counts; outputs that the model does not name; one
// node by its reference kernel, rows behind a count zero.
Result<std::vector<Type>> infer_takt(const Graph& graph, const Node& node);
void complete_outputs(Graph& graph, Node& node);
Result<std::vector<Constant>> evaluate_takt(const Graph& graph, const Node& node, std::span<const Constant> values);

// For rows: the parameter block as bytes.
template <class Params>
std::vector<std::byte> block_of(const Params& params) {
  static_assert(kernels::cpu::kIsBlock<Params>);
  const auto bytes = std::as_bytes(std::span(&params, 1));
  return {bytes.begin(), bytes.end()};
}

}  // namespace takt::ir
