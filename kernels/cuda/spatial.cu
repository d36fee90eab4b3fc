// Pools, resize and padding over blocked tensors.
#include <limits>

#include "kernels/cuda/each.h"

namespace takt::kernels::cuda::TAKT_BODY {
namespace {

using cpu::f16_form;
using cpu::KernelId;
using cpu::PadMode;
using cpu::PadParams;
using cpu::PoolParams;
using cpu::ReorderParams;
using cpu::ResizeParams;

// Taps of one extent that lie in [0, extent), seen from a window's start.
struct Taps {
  std::int64_t first, last;
};
TAKT_DEVICE Taps taps_inside(std::int64_t start, std::int64_t kernel, std::int64_t dilation, std::int64_t extent) {
  std::int64_t first = start >= 0 ? 0 : (dilation - 1 - start) / dilation;
  std::int64_t last = start >= extent ? 0 : (extent - 1 - start) / dilation + 1;
  first = first < kernel ? first : kernel;
  last = last < kernel ? last : kernel;
  return {first, last > first ? last : first};
}

template <bool kMax, class T>
struct Pool {
  PoolParams p;
  Address x, y;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t pixels_in = static_cast<std::int64_t>(p.h_in) * p.w_in;
    const Place to = place_of(i, p.c, static_cast<std::int64_t>(p.h_out) * p.w_out);
    if (to.hole) {
      write<T>(y, i, 0);
      return;
    }
    const std::int64_t down = to.pixel / p.w_out * p.stride_h, right = to.pixel % p.w_out * p.stride_w;
    const Taps rows = taps_inside(down - p.pad_top, p.kernel_h, p.dilation_h, p.h_in);
    const Taps columns = taps_inside(right - p.pad_left, p.kernel_w, p.dilation_w, p.w_in);
    float sum = kMax ? -std::numeric_limits<float>::infinity() : 0.0F;
    for (std::int64_t ky = rows.first; ky < rows.last; ++ky) {
      for (std::int64_t kx = columns.first; kx < columns.last; ++kx) {
        const std::int64_t row = down - p.pad_top + ky * p.dilation_h, column = right - p.pad_left + kx * p.dilation_w;
        const float value = read<T>(x, blocked(to.image, to.channel, row * p.w_in + column, p.c, pixels_in));
        sum = kMax ? (value > sum ? value : sum) : sum + value;
      }
    }
    if (!kMax) {
      Taps counted_rows = rows, counted_columns = columns;
      if (p.count_padding == 1) {
        counted_rows =
            taps_inside(down, p.kernel_h, p.dilation_h, static_cast<std::int64_t>(p.h_in) + p.pad_top + p.pad_bottom);
        counted_columns =
            taps_inside(right, p.kernel_w, p.dilation_w, static_cast<std::int64_t>(p.w_in) + p.pad_left + p.pad_right);
      }
      sum /=
          static_cast<float>((counted_rows.last - counted_rows.first) * (counted_columns.last - counted_columns.first));
    }
    write<T>(y, i, sum);
  }
};

template <bool kMax, class T>
int pool(const Call& call) {
  const auto p = load_params<PoolParams>(call.params);
  return each(kMax ? form<T>("max_pool", "max_pool_f16") : form<T>("average_pool", "average_pool_f16"),
              Pool<kMax, T>{p, call.operands[0], call.operands[1]},
              p.n * blocks_on_host(p.c) * p.h_out * p.w_out * kBlock, call);
}

template <class T>
struct GlobalAveragePool {
  ReorderParams p;
  Address x, y;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const Place to = place_of(i, p.c, 1);
    float sum = 0;
    for (std::int64_t pixel = 0; !to.hole && pixel < p.pixels; ++pixel) {
      sum += read<T>(x, blocked(to.image, to.channel, pixel, p.c, p.pixels));
    }
    write<T>(y, i, to.hole ? 0.0F : sum / static_cast<float>(p.pixels));
  }
};
template <class T>
int global_average_pool(const Call& call) {
  const auto p = load_params<ReorderParams>(call.params);
  return each(form<T>("global_average_pool", "global_average_pool_f16"),
              GlobalAveragePool<T>{p, call.operands[0], call.operands[1]}, p.n * blocks_on_host(p.c) * kBlock, call);
}

template <bool kLinear, class T>
struct Resize {
  ResizeParams p;
  Address x, taps, y;
  TAKT_DEVICE Tap tap_at(std::int64_t i, std::int32_t extent) const {
    Tap tap = at<const Tap>(taps)[i];
    const auto last = static_cast<std::uint32_t>(extent - 1);
    tap.first = tap.first < last ? tap.first : last;
    tap.second = tap.second < last ? tap.second : last;
    return tap;
  }
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t pixels_in = static_cast<std::int64_t>(p.h_in) * p.w_in;
    const Place to = place_of(i, p.c, static_cast<std::int64_t>(p.h_out) * p.w_out);
    if (to.hole) {
      write<T>(y, i, 0);
      return;
    }
    const Tap ty = tap_at(to.pixel / p.w_out, p.h_in), tx = tap_at(p.h_out + to.pixel % p.w_out, p.w_in);
    const auto value = [&](std::int64_t row, std::int64_t column) {
      return read<T>(x, blocked(to.image, to.channel, row * p.w_in + column, p.c, pixels_in));
    };
    float result = value(ty.first, tx.first);
    if constexpr (kLinear) {
      const float top = fma(tx.weight, value(ty.first, tx.second) - result, result);
      const float left = value(ty.second, tx.first);
      const float bottom = fma(tx.weight, value(ty.second, tx.second) - left, left);
      result = fma(ty.weight, bottom - top, top);
    }
    write<T>(y, i, result);
  }
};

template <bool kLinear, class T>
int resize(const Call& call) {
  const auto p = load_params<ResizeParams>(call.params);
  return each(kLinear ? form<T>("resize_linear", "resize_linear_f16") : form<T>("resize_nearest", "resize_nearest_f16"),
              Resize<kLinear, T>{p, call.operands[0], call.operands[1], call.operands[2]},
              p.n * blocks_on_host(p.c) * p.h_out * p.w_out * kBlock, call);
}

// Input position behind an output position; -1: padding.
TAKT_DEVICE std::int64_t source_of(std::int64_t i, std::int64_t extent, PadMode mode) {
  if (i >= 0 && i < extent) return i;
  if (mode == PadMode::kEdge) return i < 0 ? 0 : extent - 1;
  if (mode == PadMode::kReflect) return i < 0 ? -i : 2 * (extent - 1) - i;
  return -1;
}

template <class T>
struct Pad {
  PadParams p;
  Address x, y;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const Place to = place_of(i, p.c, static_cast<std::int64_t>(p.h_out) * p.w_out);
    const std::int64_t row = source_of(to.pixel / p.w_out - p.top, p.h_in, p.mode);
    const std::int64_t column = source_of(to.pixel % p.w_out - p.left, p.w_in, p.mode);
    float value = p.value;
    if (to.hole) {
      value = 0;
    } else if (row >= 0 && column >= 0) {
      const std::int64_t pixels_in = static_cast<std::int64_t>(p.h_in) * p.w_in;
      value = read<T>(x, blocked(to.image, to.channel, row * p.w_in + column, p.c, pixels_in));
    }
    write<T>(y, i, value);
  }
};
template <class T>
int pad(const Call& call) {
  const auto p = load_params<PadParams>(call.params);
  return each(form<T>("pad", "pad_f16"), Pad<T>{p, call.operands[0], call.operands[1]},
              p.n * blocks_on_host(p.c) * p.h_out * p.w_out * kBlock, call);
}

}  // namespace

std::span<const DeviceHalf> spatial_kernels() {
  static constexpr DeviceHalf kHalves[] = {{KernelId::kMaxPool, pool<true, float>},
                                           {KernelId::kAveragePool, pool<false, float>},
                                           {KernelId::kGlobalAveragePool, global_average_pool<float>},
                                           {KernelId::kResizeNearest, resize<false, float>},
                                           {KernelId::kResizeLinear, resize<true, float>},
                                           {KernelId::kPad, pad<float>},
                                           {f16_form(KernelId::kMaxPool), pool<true, Half>},
                                           {f16_form(KernelId::kAveragePool), pool<false, Half>},
                                           {f16_form(KernelId::kGlobalAveragePool), global_average_pool<Half>},
                                           {f16_form(KernelId::kResizeNearest), resize<false, Half>},
                                           {f16_form(KernelId::kResizeLinear), resize<true, Half>},
                                           {f16_form(KernelId::kPad), pad<Half>}};
  return kHalves;
}

}  // namespace takt::kernels::cuda::TAKT_BODY
