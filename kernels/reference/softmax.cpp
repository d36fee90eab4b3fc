#include "kernels/reference/softmax.h"

#include <limits>

#include "kernels/reference/elementary_f32.h"

namespace takt::kernels::reference {

void softmax(const Tensor& x, int axis, const Tensor& y) {
  const std::int64_t length = x.shape.dims[axis];
  std::int64_t outer = 1;
  std::int64_t inner = 1;
  for (int d = 0; d < axis; ++d) outer *= x.shape.dims[d];
  for (int d = axis + 1; d < x.shape.rank; ++d) inner *= x.shape.dims[d];
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) {
      const float* in = x.as<float>() + o * length * inner + i;
      float* out = y.as<float>() + o * length * inner + i;
      float highest = -std::numeric_limits<float>::infinity();
      for (std::int64_t k = 0; k < length; ++k) highest = in[k * inner] > highest ? in[k * inner] : highest;
      float sum = 0;
      for (std::int64_t k = 0; k < length; ++k) {
        out[k * inner] = exp_f32(in[k * inner] - highest);
        sum += out[k * inner];
      }
      for (std::int64_t k = 0; k < length; ++k) out[k * inner] /= sum;
    }
  }
}

}  // namespace takt::kernels::reference
