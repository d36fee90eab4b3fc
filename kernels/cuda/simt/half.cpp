#include <bit>

#include "kernels/cuda/simt/simt.h"
#include "kernels/reference/narrow_float.h"

namespace takt::simt {

float half_to_float(std::uint16_t bits) { return kernels::from_narrow(bits, kernels::kHalf); }
std::uint16_t float_to_half(float value) { return kernels::to_narrow(static_cast<double>(value), kernels::kHalf); }

}  // namespace takt::simt
