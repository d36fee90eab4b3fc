#pragma once

#include "kernels/tensor.h"

namespace takt::kernels::reference {

// y[batch..., m, n] = alpha * a x b + beta * c, f32. a and b have at least rank 2 and are stacks of matrices whose
// leading dimensions broadcast to those of y; transposed where said. c (or data == nullptr) has the full shape of y's
// matrices or broadcasts to [m, n] from rank <= 2.
// acc = beta * c; over k ascending: acc = fma(a, alpha * b, acc). alpha * b and beta * c are rounded once.
struct Gemm {
  bool transpose_a = false;
  bool transpose_b = false;
  float alpha = 1;
  float beta = 1;
};
void gemm(const Tensor& a, const Tensor& b, const Tensor& c, const Gemm& gemm, const Tensor& y);

}  // namespace takt::kernels::reference
