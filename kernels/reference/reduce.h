#pragma once

#include "kernels/tensor.h"

namespace takt::kernels::reference {

// Mean over the axes marked in `reduced`, f32; y holds the remaining elements in their order. acc = 0; acc += x in
// row-major order of the reduced elements; y = acc / count.
void reduce_mean(const Tensor& x, const bool reduced[kMaxRank], const Tensor& y);

// Over the last dimension: sums in row-major order; (x - mean) * (1 / sqrt(variance + epsilon)), then * scale, then
// + bias, each rounded. scale, bias: f32 of that extent, or data == nullptr.
void layer_norm(const Tensor& x, const Tensor& scale, const Tensor& bias, float epsilon, const Tensor& y);

}  // namespace takt::kernels::reference
