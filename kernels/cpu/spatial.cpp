// Pools, resize and padding over blocked tensors: a pixel's block of channels moves as one vector.
#include <limits>

#include "kernels/cpu/device.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/spatial.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/window-inl.h"

#if TAKT_TARGET
HWY_BEFORE_NAMESPACE();
namespace takt::kernels::cpu::HWY_NAMESPACE {
namespace {

const float* input(const Operand* operands, int i) { return reinterpret_cast<const float*>(operands[i].data); }
float* output(const Operand* operands, int i) { return reinterpret_cast<float*>(operands[i].data); }

// One row of one block of channels of a pool; `x` at output pixel 0 and its tap (0, 0).
struct PoolRow {
  const float* x;
  float* y;
  Range rows;                               // taps inside the input
  std::ptrdiff_t x_row, x_column, x_pixel;  // floats from tap to tap, from one output pixel's input to the next one's
};

// kPixels pixels from `first` on, which all have the taps `columns`; a mean is over `count` numbers.
template <bool kMax, int kPixels>
HWY_INLINE void pool_pixels(const PoolRow& row, std::ptrdiff_t first, Range columns, std::ptrdiff_t count) {
  const D d;
  for (int half = 0; half < kVectors; ++half) {
    const float* const x = row.x + first * row.x_pixel + half * kLanes;
    V acc[kPixels];
    TAKT_UNROLL
    for (int p = 0; p < kPixels; ++p) {
      acc[p] = kMax ? hn::Set(d, -std::numeric_limits<float>::infinity()) : hn::Zero(d);
    }
    for (std::ptrdiff_t kh = row.rows.first; kh < row.rows.last; ++kh) {
      for (std::ptrdiff_t kw = columns.first; kw < columns.last; ++kw) {
        const float* const tap = x + kh * row.x_row + kw * row.x_column;
        TAKT_UNROLL
        for (int p = 0; p < kPixels; ++p) {
          const V value = hn::LoadU(d, tap + p * row.x_pixel);
          acc[p] = kMax ? hn::IfThenElse(hn::Gt(value, acc[p]), value, acc[p]) : hn::Add(acc[p], value);
        }
      }
    }
    if constexpr (!kMax) {
      const V divisor = hn::Set(d, static_cast<float>(count));
      TAKT_UNROLL
      for (int p = 0; p < kPixels; ++p) acc[p] = hn::Div(acc[p], divisor);
    }
    TAKT_UNROLL
    for (int p = 0; p < kPixels; ++p) hn::StoreU(acc[p], d, row.y + (first + p) * kBlock + half * kLanes);
  }
}

constexpr int kPixelsOfPool = 4;

template <bool kMax>
void pool(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<PoolParams>(params);
  const std::ptrdiff_t blocks = blocks_of(p.c);
  const std::ptrdiff_t x_plane = std::ptrdiff_t{p.h_in} * p.w_in * kBlock;
  const Range units = share_of(std::ptrdiff_t{p.n} * blocks * p.h_out, part, parts);
  PoolRow line{};
  line.x_row = std::ptrdiff_t{p.dilation_h} * p.w_in * kBlock;
  line.x_column = std::ptrdiff_t{p.dilation_w} * kBlock;
  line.x_pixel = std::ptrdiff_t{p.stride_w} * kBlock;
  // Output columns that have every tap; padding touches the others.
  const std::ptrdiff_t interior_first = inside(0, p.stride_w, p.dilation_w, p.pad_left, p.w_in, p.w_out).first;
  const std::ptrdiff_t interior_last =
      std::max(inside(p.kernel_w - 1, p.stride_w, p.dilation_w, p.pad_left, p.w_in, p.w_out).last, interior_first);
  for (std::ptrdiff_t u = units.first; u < units.last; ++u) {
    const std::ptrdiff_t plane = u / p.h_out, row = u % p.h_out;
    line.rows = taps_inside(row, p.kernel_h, p.stride_h, p.dilation_h, p.pad_top, p.h_in);
    // With its margins the input reaches from -pad_top to h_in + pad_bottom; taps beyond are not even padding.
    const Range padded_rows =
        taps_inside(row, p.kernel_h, p.stride_h, p.dilation_h, 0, std::ptrdiff_t{p.h_in} + p.pad_top + p.pad_bottom);
    line.x = input(operands, 0) + plane * x_plane + ((row * p.stride_h - p.pad_top) * p.w_in - p.pad_left) * kBlock;
    line.y = output(operands, 1) + u * p.w_out * kBlock;
    const auto border = [&](std::ptrdiff_t column) {
      const Range columns = taps_inside(column, p.kernel_w, p.stride_w, p.dilation_w, p.pad_left, p.w_in);
      std::ptrdiff_t count = (line.rows.last - line.rows.first) * (columns.last - columns.first);
      if (p.count_padding == 1) {
        const Range padded_columns = taps_inside(column, p.kernel_w, p.stride_w, p.dilation_w, 0,
                                                 std::ptrdiff_t{p.w_in} + p.pad_left + p.pad_right);
        count = (padded_rows.last - padded_rows.first) * (padded_columns.last - padded_columns.first);
      }
      pool_pixels<kMax, 1>(line, column, columns, count);
    };
    const Range counted = p.count_padding == 1 ? padded_rows : line.rows;
    const std::ptrdiff_t whole = (counted.last - counted.first) * p.kernel_w;
    std::ptrdiff_t column = 0;
    for (; column < interior_first; ++column) border(column);
    for (; column + kPixelsOfPool <= interior_last; column += kPixelsOfPool) {
      pool_pixels<kMax, kPixelsOfPool>(line, column, {0, p.kernel_w}, whole);
    }
    for (; column < interior_last; ++column) pool_pixels<kMax, 1>(line, column, {0, p.kernel_w}, whole);
    for (; column < p.w_out; ++column) border(column);
    clear_holes(line.y, p.w_out, valid_in(p.c, plane % blocks));
  }
}

void global_average_pool(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<ReorderParams>(params);
  const D d;
  const std::ptrdiff_t blocks = blocks_of(p.c);
  const Range units = share_of(p.n * blocks, part, parts);
  const V divisor = hn::Set(d, static_cast<float>(p.pixels));
  // Blocks side by side: each is one chain of additions.
  constexpr int kSide = 4;
  for (std::ptrdiff_t u = units.first; u < units.last; u += kSide) {
    const int side = static_cast<int>(std::min<std::ptrdiff_t>(kSide, units.last - u));
    const float* const x = input(operands, 0) + u * p.pixels * kBlock;
    for (int v = 0; v < kVectors; ++v) {
      V sum[kSide] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
      for (std::ptrdiff_t i = 0; i < p.pixels; ++i) {
        const float* const at = x + i * kBlock + v * kLanes;
        if (side == kSide) {
          TAKT_UNROLL
          for (int s = 0; s < kSide; ++s) sum[s] = hn::Add(sum[s], hn::LoadU(d, at + s * p.pixels * kBlock));
        } else {
          for (int s = 0; s < side; ++s) sum[s] = hn::Add(sum[s], hn::LoadU(d, at + s * p.pixels * kBlock));
        }
      }
      for (int s = 0; s < side; ++s) {
        hn::StoreU(hn::Div(sum[s], divisor), d, output(operands, 1) + (u + s) * kBlock + v * kLanes);
      }
    }
    for (int s = 0; s < side; ++s) {
      clear_holes(output(operands, 1) + (u + s) * kBlock, 1, valid_in(p.c, (u + s) % blocks));
    }
  }
}

HWY_INLINE Tap tap_at(const Operand& taps, std::ptrdiff_t i, std::int32_t extent) {
  Tap tap;
  std::memcpy(&tap, taps.data + i * static_cast<std::ptrdiff_t>(sizeof(Tap)), sizeof(Tap));
  const auto last = static_cast<std::uint32_t>(extent - 1);
  tap.first = std::min(tap.first, last);
  tap.second = std::min(tap.second, last);
  return tap;
}

template <bool kLinear>
void resize(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<ResizeParams>(params);
  const D d;
  const std::ptrdiff_t x_plane = std::ptrdiff_t{p.h_in} * p.w_in * kBlock;
  const std::ptrdiff_t blocks = blocks_of(p.c);
  const Range units = share_of(std::ptrdiff_t{p.n} * blocks * p.h_out, part, parts);
  for (std::ptrdiff_t u = units.first; u < units.last; ++u) {
    const std::ptrdiff_t plane = u / p.h_out, row = u % p.h_out;
    const Tap ty = tap_at(operands[1], row, p.h_in);
    const float* const upper = input(operands, 0) + plane * x_plane + std::ptrdiff_t{ty.first} * p.w_in * kBlock;
    const float* const lower = input(operands, 0) + plane * x_plane + std::ptrdiff_t{ty.second} * p.w_in * kBlock;
    const V wy = hn::Set(d, ty.weight);
    float* const y = output(operands, 2) + u * p.w_out * kBlock;
    for (std::ptrdiff_t column = 0; column < p.w_out; ++column) {
      const Tap tx = tap_at(operands[1], p.h_out + column, p.w_in);
      const V wx = hn::Set(d, tx.weight);
      for (int v = 0; v < kVectors; ++v) {
        const std::ptrdiff_t first = std::ptrdiff_t{tx.first} * kBlock + v * kLanes;
        const std::ptrdiff_t second = std::ptrdiff_t{tx.second} * kBlock + v * kLanes;
        V value = hn::LoadU(d, upper + first);
        if constexpr (kLinear) {
          const V top = hn::MulAdd(wx, hn::Sub(hn::LoadU(d, upper + second), value), value);
          const V left = hn::LoadU(d, lower + first);
          const V bottom = hn::MulAdd(wx, hn::Sub(hn::LoadU(d, lower + second), left), left);
          value = hn::MulAdd(wy, hn::Sub(bottom, top), top);
        }
        hn::StoreU(value, d, y + column * kBlock + v * kLanes);
      }
    }
    clear_holes(y, p.w_out, valid_in(p.c, plane % blocks));
  }
}

// Input position behind output position `o`; -1: padding.
HWY_INLINE std::ptrdiff_t source_of(std::ptrdiff_t o, std::ptrdiff_t margin, std::ptrdiff_t extent, PadMode mode) {
  const std::ptrdiff_t i = o - margin;
  if (i >= 0 && i < extent) return i;
  switch (mode) {
    case PadMode::kEdge: return i < 0 ? 0 : extent - 1;
    case PadMode::kReflect: return i < 0 ? -i : 2 * (extent - 1) - i;
    default: return -1;
  }
}

void pad(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<PadParams>(params);
  const D d;
  const std::ptrdiff_t blocks = blocks_of(p.c);
  const std::ptrdiff_t x_plane = std::ptrdiff_t{p.h_in} * p.w_in * kBlock;
  const Range units = share_of(std::ptrdiff_t{p.n} * blocks * p.h_out, part, parts);
  const V value = hn::Set(d, p.value);
  for (std::ptrdiff_t u = units.first; u < units.last; ++u) {
    const std::ptrdiff_t plane = u / p.h_out;
    const std::ptrdiff_t row = source_of(u % p.h_out, p.top, p.h_in, p.mode);
    const float* const x = input(operands, 0) + plane * x_plane + row * p.w_in * kBlock;
    float* const y = output(operands, 1) + u * p.w_out * kBlock;
    for (std::ptrdiff_t column = 0; column < p.w_out; ++column) {
      const std::ptrdiff_t from = row < 0 ? -1 : source_of(column, p.left, p.w_in, p.mode);
      for (int v = 0; v < kVectors; ++v) {
        const V pixel = from < 0 ? value : hn::LoadU(d, x + from * kBlock + v * kLanes);
        hn::StoreU(pixel, d, y + column * kBlock + v * kLanes);
      }
    }
    clear_holes(y, p.w_out, valid_in(p.c, plane % blocks));
  }
}

}  // namespace

std::span<const DeviceHalf> spatial_table() {
  static constexpr DeviceHalf kHalves[] = {{KernelId::kMaxPool, pool<true>},
                                           {KernelId::kAveragePool, pool<false>},
                                           {KernelId::kGlobalAveragePool, global_average_pool},
                                           {KernelId::kResizeNearest, resize<false>},
                                           {KernelId::kResizeLinear, resize<true>},
                                           {KernelId::kPad, pad}};
  return kHalves;
}

}  // namespace takt::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // TAKT_TARGET

#if HWY_ONCE
namespace takt::kernels::cpu {
TAKT_TABLE(spatial_kernels, spatial_table)
}  // namespace takt::kernels::cpu
#endif
