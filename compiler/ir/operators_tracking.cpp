// Operators of domain takt on tracking: rows as in takt_operators.h, parameters in kernels/tracking.h.
#include "compiler/ir/takt_operators.h"

namespace takt::ir {

std::span<const TaktOperator> tracking_operators() { return {}; }

}  // namespace takt::ir
