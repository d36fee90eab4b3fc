#include "kernels/reference/preprocess.h"

#include <cmath>

#include "kernels/reference/preprocess_pixel.h"

namespace takt::kernels::reference {
void preprocess(const Tensor& image, const Preprocess& p, const Tensor& y) {
  const auto* data = image.as<const std::uint8_t>();
  const Placement inside = placement(p.fit, p.source_width, p.source_height, p.width, p.height);
  for (std::uint32_t row = 0; row < p.height; ++row) {
    for (std::uint32_t column = 0; column < p.width; ++column) {
      float values[3] = {static_cast<float>(p.pad), static_cast<float>(p.pad), static_cast<float>(p.pad)};
      if (row >= inside.top && row - inside.top < inside.height && column >= inside.left &&
          column - inside.left < inside.width) {
        const Tap ty = tap(row - inside.top, inside.height, p.source_height);
        const Tap tx = tap(column - inside.left, inside.width, p.source_width);
        const Pixel p00 = pixel(data, p, tx.first, ty.first);
        const Pixel p01 = pixel(data, p, tx.second, ty.first);
        const Pixel p10 = pixel(data, p, tx.first, ty.second);
        const Pixel p11 = pixel(data, p, tx.second, ty.second);
        for (std::size_t c = 0; c < 3; ++c) {
          const float upper = std::fma(tx.weight, static_cast<float>(p01.rgb[c] - p00.rgb[c]), static_cast<float>(p00.rgb[c]));
          const float lower = std::fma(tx.weight, static_cast<float>(p11.rgb[c] - p10.rgb[c]), static_cast<float>(p10.rgb[c]));
          values[c] = std::fma(ty.weight, lower - upper, upper);
        }
      }
      for (std::uint32_t c = 0; c < 3; ++c) {
        const float v = values[p.colour == ColourOrder::kRgb ? c : 2 - c];
        y.as<float>()[(std::uint64_t{c} * p.height + row) * p.width + column] = std::fma(v, p.multiply[c], p.add[c]);
      }
    }
  }
}

}  // namespace takt::kernels::reference
