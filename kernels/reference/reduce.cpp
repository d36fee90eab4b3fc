#include "kernels/reference/reduce.h"

#include <algorithm>
#include <cmath>

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

void layer_norm(const Tensor& x, const Tensor& scale, const Tensor& bias, float epsilon, const Tensor& y) {
  const std::int64_t axis = x.shape.dims[x.shape.rank - 1];
  const float* in = x.as<float>();
  float* out = y.as<float>();
  for (std::int64_t row = 0; row < x.shape.elements() / axis; ++row, in += axis, out += axis) {
    float sum = 0;
    for (std::int64_t i = 0; i < axis; ++i) sum += in[i];
    const float mean = sum / static_cast<float>(axis);
    float squares = 0;
    for (std::int64_t i = 0; i < axis; ++i) {
      const float centred = in[i] - mean;
      squares += centred * centred;
    }
    const float factor = 1.0F / std::sqrt(squares / static_cast<float>(axis) + epsilon);
    for (std::int64_t i = 0; i < axis; ++i) {
      float value = (in[i] - mean) * factor;
      if (scale.data != nullptr) value *= scale.as<float>()[i];
      if (bias.data != nullptr) value += bias.as<float>()[i];
      out[i] = value;
    }
  }
}

}  // namespace takt::kernels::reference
