// Depthwise convolution over blocked tensors: one block of channels of a pixel is one vector, a tile is a run of pixels
// of one row. Bound by loads: one input vector a multiply-add.
#include "kernels/cpu/device.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/depthwise.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/window-inl.h"

#if TAKT_TARGET
HWY_BEFORE_NAMESPACE();
namespace takt::kernels::cpu::HWY_NAMESPACE {
namespace {

constexpr int kMostPixels = 8;

struct Geometry {
  std::ptrdiff_t x_row, x_column, x_pixel;  // floats from tap to tap, from one output pixel's input to the next one's
  std::ptrdiff_t kernel_w;
  // Of the tile: input column of tap 0 of the first pixel, step from pixel to pixel, from tap to tap.
  std::ptrdiff_t column, stride, dilation;
  std::ptrdiff_t w_in;
  Activate act;
};

// Pixels of a tile that padding touches (kGuarded) ask for every tap whether it exists.
template <int kPixels, bool kGuarded>
HWY_NOINLINE void run_tile(const Geometry& g, const float* x_tile, const float* w_block, const float* residual,
                           float* y, Range rows) {
  const D d;
  for (int half = 0; half < kVectors; ++half) {
    const float* const x = x_tile + half * kLanes;
    const float* const w = w_block + half * kLanes;
    V acc[kPixels];
    const V bias = hn::LoadU(d, w);
    TAKT_UNROLL
    for (int p = 0; p < kPixels; ++p) acc[p] = bias;
    for (std::ptrdiff_t kh = rows.first; kh < rows.last; ++kh) {
      for (std::ptrdiff_t kw = 0; kw < g.kernel_w; ++kw) {
        const V weight = hn::LoadU(d, w + (1 + kh * g.kernel_w + kw) * kBlock);
        const float* const tap = x + kh * g.x_row + kw * g.x_column;
        TAKT_UNROLL
        for (int p = 0; p < kPixels; ++p) {
          if constexpr (kGuarded) {
            const std::ptrdiff_t column = g.column + p * g.stride + kw * g.dilation;
            if (column < 0 || column >= g.w_in) continue;
          }
          acc[p] = hn::MulAdd(hn::LoadU(d, tap + p * g.x_pixel), weight, acc[p]);
        }
      }
    }
    if (residual != nullptr) {
      TAKT_UNROLL
      for (int p = 0; p < kPixels; ++p) {
        acc[p] = hn::Add(acc[p], hn::LoadU(d, residual + p * kBlock + half * kLanes));
      }
    }
    if (g.act.kind == Activation::kRelu) {
      TAKT_UNROLL
      for (int p = 0; p < kPixels; ++p) acc[p] = relu_of(d, acc[p]);
    }
    TAKT_UNROLL
    for (int p = 0; p < kPixels; ++p) hn::StoreU(acc[p], d, y + p * kBlock + half * kLanes);
  }
  if (g.act.kind > Activation::kRelu) activate_all(g.act, y, y, kPixels * kBlock);
}

using TileRun = void (*)(const Geometry&, const float*, const float*, const float*, float*, Range);
template <bool kGuarded, int... pixels>
TileRun tile_of(int count, std::integer_sequence<int, pixels...>) {
  static constexpr TileRun kRuns[] = {run_tile<pixels + 1, kGuarded>...};
  return kRuns[count - 1];
}

void conv_depthwise(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<ConvParams>(params);
  const auto* const x = reinterpret_cast<const float*>(operands[0].data);
  const auto* const w = reinterpret_cast<const float*>(operands[1].data);
  const auto* const residual = p.residual == 1 ? reinterpret_cast<const float*>(operands[2].data) : nullptr;
  auto* const y = reinterpret_cast<float*>(operands[3].data);
  const std::ptrdiff_t blocks = blocks_of(p.c_out);
  const std::ptrdiff_t x_plane = std::ptrdiff_t{p.h_in} * p.w_in * kBlock;
  const std::ptrdiff_t w_block = (std::ptrdiff_t{p.kernel_h} * p.kernel_w + 1) * kBlock;
  Geometry g{};
  g.x_row = std::ptrdiff_t{p.dilation_h} * p.w_in * kBlock;
  g.x_column = std::ptrdiff_t{p.dilation_w} * kBlock;
  g.x_pixel = std::ptrdiff_t{p.stride_w} * kBlock;
  g.kernel_w = p.kernel_w;
  g.stride = p.stride_w;
  g.dilation = p.dilation_w;
  g.w_in = p.w_in;
  g.act = {p.activation, p.alpha, p.beta};
  const std::ptrdiff_t interior_first = inside(0, p.stride_w, p.dilation_w, p.pad_left, p.w_in, p.w_out).first;
  const std::ptrdiff_t interior_last =
      inside(p.kernel_w - 1, p.stride_w, p.dilation_w, p.pad_left, p.w_in, p.w_out).last;
  const std::ptrdiff_t tiles = (p.w_out + kMostPixels - 1) / kMostPixels;
  const Range units = share_of(std::ptrdiff_t{p.n} * blocks * p.h_out, part, parts);
  for (std::ptrdiff_t u = units.first; u < units.last; ++u) {
    const std::ptrdiff_t plane = u / p.h_out, row = u % p.h_out;
    const std::ptrdiff_t b = plane % blocks;
    const Range rows = taps_inside(row, p.kernel_h, p.stride_h, p.dilation_h, p.pad_top, p.h_in);
    for (std::ptrdiff_t i = 0; i < tiles; ++i) {
      const std::ptrdiff_t first = p.w_out * i / tiles, last = p.w_out * (i + 1) / tiles;
      g.column = first * p.stride_w - p.pad_left;
      const float* const tile = x + plane * x_plane + ((row * p.stride_h - p.pad_top) * p.w_in + g.column) * kBlock;
      const std::ptrdiff_t at = (u * p.w_out + first) * kBlock;
      const bool guarded = first < interior_first || last > interior_last;
      const int count = static_cast<int>(last - first);
      const auto all = std::make_integer_sequence<int, kMostPixels>();
      const TileRun run = guarded ? tile_of<true>(count, all) : tile_of<false>(count, all);
      run(g, tile, w + b * w_block, residual == nullptr ? nullptr : residual + at, y + at, rows);
      clear_holes(y + at, count, valid_in(p.c_out, b));
    }
  }
}

}  // namespace

std::span<const DeviceHalf> depthwise_table() {
  static constexpr DeviceHalf kHalves[] = {{KernelId::kConvDepthwise, conv_depthwise}};
  return kHalves;
}

}  // namespace takt::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // TAKT_TARGET

#if HWY_ONCE
namespace takt::kernels::cpu {
TAKT_TABLE(depthwise_kernels, depthwise_table)
}  // namespace takt::kernels::cpu
#endif
