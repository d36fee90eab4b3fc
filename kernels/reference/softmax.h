#pragma once

#include "kernels/tensor.h"

namespace takt::kernels::reference {

// Along one axis of f32: m = maximum from -inf upwards, e_i = exp(x_i - m), s = 0 + e_0 + e_1 ..., y_i = e_i / s.
void softmax(const Tensor& x, int axis, const Tensor& y);

}  // namespace takt::kernels::reference
