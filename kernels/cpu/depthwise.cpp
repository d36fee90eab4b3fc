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

struct Geometry {
  std::ptrdiff_t x_row, x_column, x_pixel;  // floats from tap to tap, from one output pixel's input to the next one's
  std::ptrdiff_t kernel_w;
  Activate act;
};

// One row of one block of channels; pointers at output pixel 0 and its tap (0, 0).
struct Row {
  const float* x;
  const float* w;  // bias, taps
  const float* residual;
  float* y;
  Range rows;  // taps inside the input
};

template <int kPixels>
HWY_INLINE void finish(const Geometry& g, const Row& row, V (&acc)[kPixels], std::ptrdiff_t to) {
  const D d;
  if (row.residual != nullptr) {
    TAKT_UNROLL
    for (int p = 0; p < kPixels; ++p) acc[p] = hn::Add(acc[p], hn::LoadU(d, row.residual + to + p * kBlock));
  }
  if (g.act.kind == Activation::kRelu) {
    TAKT_UNROLL
    for (int p = 0; p < kPixels; ++p) acc[p] = relu_of(d, acc[p]);
  }
  TAKT_UNROLL
  for (int p = 0; p < kPixels; ++p) hn::StoreU(acc[p], d, row.y + to + p * kBlock);
}

// kPixels pixels from `first` on, which all have the taps `columns`.
template <int kPixels>
HWY_INLINE void run_pixels(const Geometry& g, const Row& row, std::ptrdiff_t first, Range columns) {
  const D d;
  for (int half = 0; half < kVectors; ++half) {
    const float* const x = row.x + first * g.x_pixel + half * kLanes;
    const float* const w = row.w + half * kLanes;
    V acc[kPixels];
    const V bias = hn::LoadU(d, w);
    TAKT_UNROLL
    for (int p = 0; p < kPixels; ++p) acc[p] = bias;
    for (std::ptrdiff_t kh = row.rows.first; kh < row.rows.last; ++kh) {
      for (std::ptrdiff_t kw = columns.first; kw < columns.last; ++kw) {
        const V weight = hn::LoadU(d, w + (1 + kh * g.kernel_w + kw) * kBlock);
        const float* const tap = x + kh * g.x_row + kw * g.x_column;
        TAKT_UNROLL
        for (int p = 0; p < kPixels; ++p) acc[p] = hn::MulAdd(hn::LoadU(d, tap + p * g.x_pixel), weight, acc[p]);
      }
    }
    finish<kPixels>(g, row, acc, first * kBlock + half * kLanes);
  }
}

// The same for stride and dilation 1 and a known kernel width: each input is loaded once for all the outputs that it
// reaches; the taps of an output still come in ascending order. Columns of the input outside [low, high) of the tile
// (padding, on a border) are left out: known constants, so that nothing is asked at run time.
template <int kPixels, int kKernel, int kLow, int kHigh>
HWY_INLINE void slide_pixels(const Geometry& g, const Row& row, std::ptrdiff_t first) {
  const D d;
  for (int half = 0; half < kVectors; ++half) {
    const float* const x = row.x + first * kBlock + half * kLanes;
    const float* const w = row.w + half * kLanes;
    V acc[kPixels];
    const V bias = hn::LoadU(d, w);
    TAKT_UNROLL
    for (int p = 0; p < kPixels; ++p) acc[p] = bias;
    for (std::ptrdiff_t kh = row.rows.first; kh < row.rows.last; ++kh) {
      const float* const line = x + kh * g.x_row;
      V weight[kKernel];
      TAKT_UNROLL
      for (int kw = 0; kw < kKernel; ++kw) weight[kw] = hn::LoadU(d, w + (1 + kh * kKernel + kw) * kBlock);
      TAKT_UNROLL
      for (int column = kLow; column < kHigh; ++column) {
        const V value = hn::LoadU(d, line + column * kBlock);
        TAKT_UNROLL
        for (int kw = 0; kw < kKernel; ++kw) {
          const int p = column - kw;
          if (p >= 0 && p < kPixels) acc[p] = hn::MulAdd(value, weight[kw], acc[p]);
        }
      }
    }
    finish<kPixels>(g, row, acc, first * kBlock + half * kLanes);
  }
}

constexpr int kMostPixels = 8;

using PixelRun = void (*)(const Geometry&, const Row&, std::ptrdiff_t);
template <int kPixels>
HWY_NOINLINE void run_whole(const Geometry& g, const Row& row, std::ptrdiff_t first) {
  run_pixels<kPixels>(g, row, first, {0, g.kernel_w});
}
template <int kPixels, int kKernel>
HWY_NOINLINE void slide_whole(const Geometry& g, const Row& row, std::ptrdiff_t first) {
  slide_pixels<kPixels, kKernel, 0, kPixels + kKernel - 1>(g, row, first);
}
template <int... pixels>
PixelRun run_of(int count, std::integer_sequence<int, pixels...>) {
  static constexpr PixelRun kRuns[] = {run_whole<pixels + 1>...};
  return kRuns[count - 1];
}
template <int kKernel, int... pixels>
PixelRun slide_of(int count, std::integer_sequence<int, pixels...>) {
  static constexpr PixelRun kRuns[] = {slide_whole<pixels + 1, kKernel>...};
  return kRuns[count - 1];
}

// Output pixels [first, last), none of which padding touches, in tiles of about the same width.
template <int kKernel>
void run_interior(const Geometry& g, const Row& row, std::ptrdiff_t first, std::ptrdiff_t last) {
  const std::ptrdiff_t width = last - first, tiles = (width + kMostPixels - 1) / kMostPixels;
  for (std::ptrdiff_t i = 0; i < tiles; ++i) {
    const std::ptrdiff_t from = first + width * i / tiles, to = first + width * (i + 1) / tiles;
    const auto all = std::make_integer_sequence<int, kMostPixels>();
    const auto count = static_cast<int>(to - from);
    if constexpr (kKernel > 0) {
      slide_of<kKernel>(count, all)(g, row, from);
    } else {
      run_of(count, all)(g, row, from);
    }
  }
}

// A row of a kernel of odd width, stride and dilation 1, padding of half the kernel: half a kernel's pixels at each end
// miss taps.
template <int kKernel>
HWY_NOINLINE void run_same(const Geometry& g, const Row& row, std::ptrdiff_t width) {
  constexpr int kHalf = kKernel / 2;
  slide_pixels<kHalf, kKernel, kHalf, kHalf + kKernel - 1>(g, row, 0);
  run_interior<kKernel>(g, row, kHalf, width - kHalf);
  slide_pixels<kHalf, kKernel, 0, kKernel - 1>(g, row, width - kHalf);
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
  g.act = {p.activation, p.alpha, p.beta};
  // Output columns that have every tap; padding touches the others.
  const std::ptrdiff_t interior_first = inside(0, p.stride_w, p.dilation_w, p.pad_left, p.w_in, p.w_out).first;
  const std::ptrdiff_t interior_last =
      std::max(inside(p.kernel_w - 1, p.stride_w, p.dilation_w, p.pad_left, p.w_in, p.w_out).last, interior_first);
  const bool same = p.stride_w == 1 && p.dilation_w == 1 && p.pad_left * 2 + 1 == p.kernel_w && p.w_out == p.w_in &&
                    p.w_in >= p.kernel_w;
  const Range units = share_of(std::ptrdiff_t{p.n} * blocks * p.h_out, part, parts);
  for (std::ptrdiff_t u = units.first; u < units.last; ++u) {
    const std::ptrdiff_t plane = u / p.h_out, at = u % p.h_out, b = plane % blocks;
    Row row{};
    row.x = x + plane * x_plane + ((at * p.stride_h - p.pad_top) * p.w_in - p.pad_left) * kBlock;
    row.w = w + b * w_block;
    row.residual = residual == nullptr ? nullptr : residual + u * p.w_out * kBlock;
    row.y = y + u * p.w_out * kBlock;
    row.rows = taps_inside(at, p.kernel_h, p.stride_h, p.dilation_h, p.pad_top, p.h_in);
    if (same && p.kernel_w == 3) {
      run_same<3>(g, row, p.w_out);
    } else if (same && p.kernel_w == 5) {
      run_same<5>(g, row, p.w_out);
    } else {
      for (std::ptrdiff_t i = 0; i < interior_first; ++i) {
        run_pixels<1>(g, row, i, taps_inside(i, p.kernel_w, p.stride_w, p.dilation_w, p.pad_left, p.w_in));
      }
      run_interior<0>(g, row, interior_first, interior_last);
      for (std::ptrdiff_t i = interior_last; i < p.w_out; ++i) {
        run_pixels<1>(g, row, i, taps_inside(i, p.kernel_w, p.stride_w, p.dilation_w, p.pad_left, p.w_in));
      }
    }
    if (g.act.kind > Activation::kRelu) activate_all(g.act, row.y, row.y, p.w_out * kBlock);
    clear_holes(row.y, p.w_out, valid_in(p.c_out, b));
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
