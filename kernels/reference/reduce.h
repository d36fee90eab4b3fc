#pragma once

#include "kernels/tensor.h"

namespace takt::kernels::reference {

// Mean over the axes marked in `reduced`, f32; y holds the remaining elements in their order. acc = 0; acc += x in
// row-major order of the reduced elements; y = acc / count.
void reduce_mean(const Tensor& x, const bool reduced[kMaxRank], const Tensor& y);

}  // namespace takt::kernels::reference
