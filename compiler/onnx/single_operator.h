// One operator by hand, in ONNX's newest form: for compositions, which link operators between networks.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace takt::compiler {

// Adds operator `op` of ONNX's own domain, as import adds it. `inputs` have types; `outputs` are values without. kInput
// when the operator is none of takt's, an attribute is unknown to it or of another type, or the form is not supported.
Status append_onnx_operator(ir::Graph& graph, const std::string& op, const std::string& name,
                            const std::map<std::string, ir::Attribute>& attributes, std::vector<ir::ValueId> inputs,
                            std::vector<ir::ValueId> outputs);

}  // namespace takt::compiler
