// Positions of a sliding window, per target.
#include "kernels/cpu/simd-inl.h"

#if defined(TAKT_KERNELS_CPU_WINDOW_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TAKT_KERNELS_CPU_WINDOW_INL_H
#undef TAKT_KERNELS_CPU_WINDOW_INL_H
#else
#define TAKT_KERNELS_CPU_WINDOW_INL_H
#endif

#if TAKT_TARGET
HWY_BEFORE_NAMESPACE();
namespace takt::kernels::cpu::HWY_NAMESPACE {

// Output positions of one extent whose tap `k` lies inside the input.
HWY_INLINE Range inside(std::ptrdiff_t k, std::ptrdiff_t stride, std::ptrdiff_t dilation, std::ptrdiff_t pad,
                        std::ptrdiff_t in, std::ptrdiff_t out) {
  const std::ptrdiff_t low = pad - k * dilation;  // low <= position * stride <= high
  const std::ptrdiff_t high = in - 1 + low;
  const std::ptrdiff_t first = std::min(low <= 0 ? 0 : (low + stride - 1) / stride, out);
  const std::ptrdiff_t last = std::min(high < 0 ? 0 : high / stride + 1, out);
  return {first, std::max(first, last)};
}

// Taps of one extent that lie inside the input, seen from output position `o`.
HWY_INLINE Range taps_inside(std::ptrdiff_t o, std::ptrdiff_t kernel, std::ptrdiff_t stride, std::ptrdiff_t dilation,
                             std::ptrdiff_t pad, std::ptrdiff_t in) {
  const std::ptrdiff_t start = o * stride - pad;  // of tap 0
  const std::ptrdiff_t first = std::min(start >= 0 ? 0 : (dilation - 1 - start) / dilation, kernel);
  const std::ptrdiff_t last = std::min(start >= in ? 0 : (in - 1 - start) / dilation + 1, kernel);
  return {first, std::max(first, last)};
}

}  // namespace takt::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // TAKT_TARGET
#endif  // include guard
