#include "kernels/reference/conv.h"

#include <cmath>

namespace takt::kernels::reference {

void conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& residual, const Window& window,
            std::int64_t group, const ConvEpilogue& epilogue, const Tensor& y) {
  const std::int64_t channels = x.shape.dims[1];
  const std::int64_t height = x.shape.dims[2];
  const std::int64_t width = x.shape.dims[3];
  const std::int64_t filters = y.shape.dims[1];
  const std::int64_t per_group = channels / group;
  const std::int64_t taps = window.kernel[0] * window.kernel[1];
  float* out = y.as<float>();
  const float* add = residual.as<float>();
  for (std::int64_t n = 0; n < y.shape.dims[0]; ++n) {
    for (std::int64_t m = 0; m < filters; ++m) {
      const std::int64_t first = m / (filters / group) * per_group;
      const float* image = x.as<float>() + (n * channels + first) * height * width;
      const float* filter = w.as<float>() + m * per_group * taps;
      for (std::int64_t oy = 0; oy < y.shape.dims[2]; ++oy) {
        for (std::int64_t ox = 0; ox < y.shape.dims[3]; ++ox) {
          float acc = bias.data != nullptr ? bias.as<float>()[m] : 0.0F;
          for (std::int64_t ky = 0; ky < window.kernel[0]; ++ky) {
            const std::int64_t iy = oy * window.stride[0] - window.pad[0] + ky * window.dilation[0];
            if (iy < 0 || iy >= height) continue;
            for (std::int64_t kx = 0; kx < window.kernel[1]; ++kx) {
              const std::int64_t ix = ox * window.stride[1] - window.pad[1] + kx * window.dilation[1];
              if (ix < 0 || ix >= width) continue;
              for (std::int64_t c = 0; c < per_group; ++c) {
                acc =
                    std::fma(image[(c * height + iy) * width + ix], filter[c * taps + ky * window.kernel[1] + kx], acc);
              }
            }
          }
          if (add != nullptr) acc += *add++;
          *out++ = activate_f32(epilogue.activation, acc, epilogue.alpha, epilogue.beta);
        }
      }
    }
  }
}

void conv_transpose2d(const Tensor& x, const Tensor& w, const Tensor& bias, const Window& window, std::int64_t group,
                      const ConvEpilogue& epilogue, const Tensor& y) {
  const std::int64_t channels = x.shape.dims[1];
  const std::int64_t height = x.shape.dims[2];
  const std::int64_t width = x.shape.dims[3];
  const std::int64_t filters = y.shape.dims[1];
  const std::int64_t per_group = channels / group;
  const std::int64_t filters_per_group = filters / group;
  float* out = y.as<float>();
  for (std::int64_t n = 0; n < y.shape.dims[0]; ++n) {
    for (std::int64_t m = 0; m < filters; ++m) {
      const std::int64_t first = m / filters_per_group * per_group;
      for (std::int64_t oy = 0; oy < y.shape.dims[2]; ++oy) {
        for (std::int64_t ox = 0; ox < y.shape.dims[3]; ++ox) {
          float acc = bias.data != nullptr ? bias.as<float>()[m] : 0.0F;
          for (std::int64_t ky = 0; ky < window.kernel[0]; ++ky) {
            const std::int64_t sy = oy + window.pad[0] - ky * window.dilation[0];
            if (sy < 0 || sy % window.stride[0] != 0 || sy / window.stride[0] >= height) continue;
            for (std::int64_t kx = 0; kx < window.kernel[1]; ++kx) {
              const std::int64_t sx = ox + window.pad[1] - kx * window.dilation[1];
              if (sx < 0 || sx % window.stride[1] != 0 || sx / window.stride[1] >= width) continue;
              for (std::int64_t c = 0; c < per_group; ++c) {
                const std::int64_t channel = first + c;
                const float value = x.as<float>()[((n * channels + channel) * height + sy / window.stride[0]) * width +
                                                  sx / window.stride[1]];
                const std::int64_t tap =
                    ((channel * filters_per_group + m % filters_per_group) * window.kernel[0] + ky) * window.kernel[1] +
                    kx;
                acc = std::fma(value, w.as<float>()[tap], acc);
              }
            }
          }
          *out++ = activate_f32(epilogue.activation, acc, epilogue.alpha, epilogue.beta);
        }
      }
    }
  }
}

}  // namespace takt::kernels::reference
