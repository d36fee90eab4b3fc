#include "kernels/reference/pool.h"

#include <limits>

namespace takt::kernels::reference {
namespace {

// Calls tap(value) for every tap of an output that lies inside the plane.
template <class Tap>
void each_tap(const float* plane, std::int64_t height, std::int64_t width, const Window& window, std::int64_t oy,
              std::int64_t ox, Tap tap) {
  for (std::int64_t ky = 0; ky < window.kernel[0]; ++ky) {
    const std::int64_t iy = oy * window.stride[0] - window.pad[0] + ky * window.dilation[0];
    if (iy < 0 || iy >= height) continue;
    for (std::int64_t kx = 0; kx < window.kernel[1]; ++kx) {
      const std::int64_t ix = ox * window.stride[1] - window.pad[1] + kx * window.dilation[1];
      if (ix >= 0 && ix < width) tap(plane[iy * width + ix]);
    }
  }
}

// Taps of output `o` along one axis that lie in the input or its declared padding.
std::int64_t padded_taps(const Window& window, const std::int64_t pad_end[2], int axis, std::int64_t extent,
                         std::int64_t o) {
  std::int64_t taps = 0;
  for (std::int64_t k = 0; k < window.kernel[axis]; ++k) {
    const std::int64_t i = o * window.stride[axis] - window.pad[axis] + k * window.dilation[axis];
    if (i < extent + pad_end[axis]) ++taps;
  }
  return taps;
}

}  // namespace

void max_pool2d(const Tensor& x, const Window& window, const Tensor& y) {
  const std::int64_t height = x.shape.dims[2];
  const std::int64_t width = x.shape.dims[3];
  float* out = y.as<float>();
  for (std::int64_t p = 0; p < x.shape.dims[0] * x.shape.dims[1]; ++p) {
    const float* plane = x.as<float>() + p * height * width;
    for (std::int64_t oy = 0; oy < y.shape.dims[2]; ++oy) {
      for (std::int64_t ox = 0; ox < y.shape.dims[3]; ++ox) {
        float acc = -std::numeric_limits<float>::infinity();
        each_tap(plane, height, width, window, oy, ox, [&](float v) { acc = v > acc ? v : acc; });
        *out++ = acc;
      }
    }
  }
}

void average_pool2d(const Tensor& x, const Window& window, const std::int64_t pad_end[2], bool count_padding,
                    const Tensor& y) {
  const std::int64_t height = x.shape.dims[2];
  const std::int64_t width = x.shape.dims[3];
  float* out = y.as<float>();
  for (std::int64_t p = 0; p < x.shape.dims[0] * x.shape.dims[1]; ++p) {
    const float* plane = x.as<float>() + p * height * width;
    for (std::int64_t oy = 0; oy < y.shape.dims[2]; ++oy) {
      for (std::int64_t ox = 0; ox < y.shape.dims[3]; ++ox) {
        float acc = 0;
        std::int64_t count = 0;
        each_tap(plane, height, width, window, oy, ox, [&](float v) {
          acc += v;
          ++count;
        });
        if (count_padding) {
          count = padded_taps(window, pad_end, 0, height, oy) * padded_taps(window, pad_end, 1, width, ox);
        }
        *out++ = acc / static_cast<float>(count);
      }
    }
  }
}

void global_average_pool(const Tensor& x, const Tensor& y) {
  const std::int64_t plane = x.shape.dims[2] * x.shape.dims[3];
  const float* in = x.as<float>();
  for (std::int64_t p = 0; p < x.shape.dims[0] * x.shape.dims[1]; ++p) {
    float acc = 0;
    for (std::int64_t i = 0; i < plane; ++i) acc += *in++;
    y.as<float>()[p] = acc / static_cast<float>(plane);
  }
}

}  // namespace takt::kernels::reference
