// From ONNX's forms of an operator, in any operator set, to takt's one form: docs/operators_how_to.md.
#pragma once

#include <onnx/onnx_pb.h>

#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"

namespace takt::compiler {

inline constexpr std::int64_t kOldestOpset = 1;  // before 7 only forms that are still the same
inline constexpr std::int64_t kNewestOpset = 23;
// takt's own operators (docs/operators.md).
inline constexpr std::string_view kTaktDomain = "takt";
inline constexpr std::int64_t kTaktOpset = 1;

bool imports_operator(std::string_view domain, std::string_view name);
// The names of all operators of ONNX's own domain that are read, control flow apart; ascending.
std::vector<std::string_view> imported_operators();

// Adds what `proto` means to the graph. `inputs` and `outputs` are the values of its names; inputs have types,
// kNoValue where a name is empty. kInput when an attribute is unknown or of another type, or a form is not supported.
Status import_node(ir::Graph& graph, const ::onnx::NodeProto& proto, std::int64_t opset, std::string name,
                   std::vector<ir::ValueId> inputs, std::vector<ir::ValueId> outputs);

}  // namespace takt::compiler
