// Operators of domain takt on points: rows as in takt_operators.h, parameters in kernels/points.h.
#include "compiler/ir/takt_operators.h"

namespace takt::ir {

std::span<const TaktOperator> point_operators() { return {}; }

}  // namespace takt::ir
