// takt.Preprocess: a thread is a pixel of the network's input.
#include "kernels/preprocess.h"

#include "kernels/cuda/each.h"
#include "kernels/reference/preprocess_pixel.h"

namespace takt::kernels::cuda::TAKT_BODY {
namespace {

using cpu::f16_form;

template <class T>
struct PreprocessPixel {
  Preprocess p;
  Placement inside;
  Address image, y;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const auto row = static_cast<std::uint32_t>(i / p.width), column = static_cast<std::uint32_t>(i % p.width);
    const auto* const data = at<const std::uint8_t>(image);
    const auto grey = static_cast<float>(p.pad);
    float values[3] = {grey, grey, grey};
    if (row >= inside.top && row - inside.top < inside.height && column >= inside.left &&
        column - inside.left < inside.width) {
      const Tap ty = tap(row - inside.top, inside.height, p.source_height);
      const Tap tx = tap(column - inside.left, inside.width, p.source_width);
      const reference::Pixel p00 = reference::pixel(data, p, tx.first, ty.first);
      const reference::Pixel p01 = reference::pixel(data, p, tx.second, ty.first);
      const reference::Pixel p10 = reference::pixel(data, p, tx.first, ty.second);
      const reference::Pixel p11 = reference::pixel(data, p, tx.second, ty.second);
      for (int c = 0; c < 3; ++c) {
        const float upper = fma(tx.weight, static_cast<float>(p01.rgb[c] - p00.rgb[c]), static_cast<float>(p00.rgb[c]));
        const float lower = fma(tx.weight, static_cast<float>(p11.rgb[c] - p10.rgb[c]), static_cast<float>(p10.rgb[c]));
        values[c] = fma(ty.weight, lower - upper, upper);
      }
    }
    const std::int64_t plane = static_cast<std::int64_t>(p.height) * p.width;
    for (int c = 0; c < 3; ++c) {
      const float v = values[p.colour == ColourOrder::kRgb ? c : 2 - c];
      write<T>(y, c * plane + i, fma(v, p.multiply[c], p.add[c]));
    }
  }
};

template <class T>
int preprocess(const Call& call) {
  const auto p = load_params<Preprocess>(call.params);
  const Placement inside = placement(p.fit, p.source_width, p.source_height, p.width, p.height);
  return each(form<T>("preprocess", "preprocess_f16"),
              PreprocessPixel<T>{p, inside, call.operands[0], call.operands[1]},
              static_cast<std::int64_t>(p.height) * p.width, call);
}

}  // namespace

std::span<const DeviceHalf> preprocess_kernels() {
  static constexpr DeviceHalf kHalves[] = {{cpu::KernelId::kPreprocess, preprocess<float>},
                                           {f16_form(cpu::KernelId::kPreprocess), preprocess<Half>}};
  return kHalves;
}

}  // namespace takt::kernels::cuda::TAKT_BODY
