// Convolution over NCHW. Each output is one chain of fused multiply-adds in a stated order, so that a vectorised kernel
// can give the same bytes (DESIGN section 6, "Numbers").
#pragma once

#include "kernels/reference/activation.h"
#include "kernels/tensor.h"

namespace takt::kernels::reference {

// Index 0 is vertical, 1 horizontal. Padding at the end follows from the output's extents.
struct Window {
  std::int64_t kernel[2] = {1, 1};
  std::int64_t stride[2] = {1, 1};
  std::int64_t dilation[2] = {1, 1};
  std::int64_t pad[2] = {0, 0};  // before the first row, column
};

struct ConvEpilogue {
  Activation activation = Activation::kNone;
  float alpha = 0;
  float beta = 0;
};

// x f32[N,C,H,W], w f32[M,C/group,kh,kw], bias f32[M] or data == nullptr, residual as y or data == nullptr,
// y f32[N,M,OH,OW]. acc = bias; for kh, kw, ci: acc = fma(x, w, acc), only taps inside x; then + residual; then the
// activation.
void conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& residual, const Window& window,
            std::int64_t group, const ConvEpilogue& epilogue, const Tensor& y);

// w f32[C,M/group,kh,kw]. acc = bias; for kh, kw, ci: acc = fma(x, w, acc) over the inputs that reach the output; then
// the activation.
void conv_transpose2d(const Tensor& x, const Tensor& w, const Tensor& bias, const Window& window, std::int64_t group,
                      const ConvEpilogue& epilogue, const Tensor& y);

}  // namespace takt::kernels::reference
