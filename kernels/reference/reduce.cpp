#include "kernels/reference/reduce.h"

#include <algorithm>

namespace takt::kernels::reference {

void reduce_mean(const Tensor& x, const bool reduced[kMaxRank], const Tensor& y) {
  std::int64_t strides[kMaxRank] = {};  // in y; 0 for a reduced axis
  std::int64_t stride = 1;
  std::int64_t count = 1;
  for (int d = x.shape.rank - 1; d >= 0; --d) {
    if (reduced[d]) {
      count *= x.shape.dims[d];
    } else {
      strides[d] = stride;
      stride *= x.shape.dims[d];
    }
  }
  float* out = y.as<float>();
  std::fill_n(out, y.shape.elements(), 0.0F);
  // Row-major over x: every output meets its elements in row-major order too.
  for (std::int64_t i = 0; i < x.shape.elements(); ++i) {
    std::int64_t rest = i;
    std::int64_t offset = 0;
    for (int d = x.shape.rank - 1; d >= 0; --d) {
      offset += rest % x.shape.dims[d] * strides[d];
      rest /= x.shape.dims[d];
    }
    out[offset] += x.as<float>()[i];
  }
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) out[i] /= static_cast<float>(count);
}

}  // namespace takt::kernels::reference
