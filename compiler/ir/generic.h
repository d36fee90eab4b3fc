// Operators without a kernel of their own run by the generic reference kernel (kernels/reference/generic.h): here is
// how a call becomes its parameters. Also the way out where a fast kernel exists for f32 only.
#pragma once

#include "compiler/ir/geometry.h"
#include "kernels/reference/generic.h"

namespace takt::ir {

bool has_generic(std::string_view op);

// kInput when the types do not fit the operator; kInternal when it has no generic form (has_generic is false).
Result<kernels::reference::GenericParams> generic_params(const Node& node, Tensors inputs);

}  // namespace takt::ir
