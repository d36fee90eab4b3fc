#include "kernels/reference/gemm.h"

#include <cmath>

namespace takt::kernels::reference {
namespace {

// Offset of the matrix of stack `t` that output matrix number `index` uses: leading dimensions aligned at the right,
// extent 1 repeats.
std::int64_t matrix_offset(const Tensor& t, const Shape& out, std::int64_t index) {
  std::int64_t offset = 0;
  std::int64_t stride = t.shape.dims[t.shape.rank - 2] * t.shape.dims[t.shape.rank - 1];
  for (int d = out.rank - 3; d >= 0; --d) {
    const std::int64_t i = index % out.dims[d];
    index /= out.dims[d];
    const int own = d - (out.rank - t.shape.rank);
    if (own < 0) continue;
    if (t.shape.dims[own] != 1) offset += i * stride;
    stride *= t.shape.dims[own];
  }
  return offset;
}

}  // namespace

void gemm(const Tensor& a, const Tensor& b, const Tensor& c, const Gemm& gemm, const Tensor& y) {
  const std::int64_t rows = y.shape.dims[y.shape.rank - 2];
  const std::int64_t columns = y.shape.dims[y.shape.rank - 1];
  const std::int64_t depth = a.shape.dims[gemm.transpose_a ? a.shape.rank - 2 : a.shape.rank - 1];
  const std::int64_t a_row = gemm.transpose_a ? 1 : depth;
  const std::int64_t a_k = gemm.transpose_a ? rows : 1;
  const std::int64_t b_k = gemm.transpose_b ? 1 : columns;
  const std::int64_t b_column = gemm.transpose_b ? depth : 1;
  std::int64_t c_row = 0;
  std::int64_t c_column = 0;
  if (c.data != nullptr && c.shape.rank > 0) {
    c_column = c.shape.dims[c.shape.rank - 1] == 1 ? 0 : 1;
    if (c.shape.rank > 1 && c.shape.dims[c.shape.rank - 2] != 1) c_row = c.shape.dims[c.shape.rank - 1];
  }
  std::int64_t matrices = 1;
  for (int d = 0; d < y.shape.rank - 2; ++d) matrices *= y.shape.dims[d];
  float* out = y.as<float>();
  for (std::int64_t s = 0; s < matrices; ++s) {
    const float* left = a.as<float>() + matrix_offset(a, y.shape, s);
    const float* right = b.as<float>() + matrix_offset(b, y.shape, s);
    for (std::int64_t m = 0; m < rows; ++m) {
      for (std::int64_t n = 0; n < columns; ++n) {
        float acc = c.data != nullptr ? gemm.beta * c.as<float>()[m * c_row + n * c_column] : 0.0F;
        for (std::int64_t k = 0; k < depth; ++k) {
          acc = std::fma(left[m * a_row + k * a_k], gemm.alpha * right[k * b_k + n * b_column], acc);
        }
        *out++ = acc;
      }
    }
  }
}

}  // namespace takt::kernels::reference
