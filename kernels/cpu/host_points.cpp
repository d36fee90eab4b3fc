// Host halves of the operators on points: kernels/points.h has their parameters.
#include "kernels/cpu/operators.h"

namespace takt::kernels::cpu {

std::span<const OperatorKernel* const> point_operators() { return {}; }

}  // namespace takt::kernels::cpu
