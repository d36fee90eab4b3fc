// Convolutions. Each output is one chain of fused multiply-adds over kernel rows, kernel columns and input channels, by
// one thread, as kernels/reference/conv.h says: the same bytes as on a CPU.
#include "kernels/cuda/each.h"

namespace takt::kernels::cuda::TAKT_BODY {
namespace {

using cpu::ConvParams;
using cpu::f16_form;
using cpu::KernelId;
using cpu::MappedConvParams;

// Sum, residual, activation, into an element of Y.
template <class T>
TAKT_DEVICE void finish(const ConvParams& p, float sum, const Address& residual, const Address& y,
                        std::int64_t element) {
  if (p.residual == 1) sum += read<T>(residual, element);
  write<T>(y, element, activate(p.activation, sum, p.alpha, p.beta));
}

// Packed weights behind so many rows of biases and of taps: a row of biases, then rows of taps (cpu/params.h).
template <class T>
struct Packed {
  const float* biases;
  const T* taps;
};
template <class T>
TAKT_DEVICE Packed<T> packed_behind(const Address& weights, std::int64_t biases, std::int64_t taps) {
  const std::byte* const start =
      at<const std::byte>(weights) +
      (biases * static_cast<std::int64_t>(sizeof(float)) + taps * static_cast<std::int64_t>(sizeof(T))) * kBlock;
  return {reinterpret_cast<const float*>(start), reinterpret_cast<const T*>(start + kBlock * sizeof(float))};
}

// Implicit product of matrices: a block computes kPixels pixels of kWarps blocks of channels; a lane is an output
// channel, and the pixels' inputs of one tap and one block of channels lie in shared memory, from where each is read by
// all lanes at once.
constexpr std::uint32_t kWarps = 4;
constexpr std::uint32_t kPixels = 16;
constexpr std::uint32_t kTileBytes = kPixels * (kWarp + 2) * 4;  // inputs, then the first row and column of each pixel

template <bool kMapped, class T>
TAKT_KERNEL void conv_tiled_kernel(MappedConvParams m, Address x, Address weights, Address residual, Address y,
                                   Conditions conditions) {
  if (!hold(conditions)) return;
  const ConvParams& p = m.conv;
  auto* const tile = shared_memory<float>();
  auto* const rows = reinterpret_cast<std::int32_t*>(tile + kPixels * kWarp);
  std::int32_t* const columns = rows + kPixels;
  const std::uint32_t t = thread_x(), lane = t % kWarp, warp = t / kWarp;
  const std::int64_t pixels_out = static_cast<std::int64_t>(p.h_out) * p.w_out;
  const std::int64_t pixels_in = static_cast<std::int64_t>(p.h_in) * p.w_in;
  const std::int64_t first = static_cast<std::int64_t>(block_x()) * kPixels;
  const std::int64_t block = static_cast<std::int64_t>(block_y()) * kWarps + warp;
  const std::int64_t image = block_z();
  const std::int64_t blocks_out = blocks_of(p.c_out);
  const bool computes = block < blocks_out;
  if (t < kPixels) {
    const std::int64_t pixel = first + t;
    // Behind the last pixel: far outside of the input.
    const bool there = pixel < pixels_out;
    rows[t] = there ? static_cast<std::int32_t>(pixel / p.w_out * p.stride_h - p.pad_top) : -0x40000000;
    columns[t] = there ? static_cast<std::int32_t>(pixel % p.w_out * p.stride_w - p.pad_left) : -0x40000000;
  }
  sync_block();
  const T* const in = at<const T>(x);
  const std::int32_t* channels = nullptr;
  const std::int64_t taps = static_cast<std::int64_t>(p.kernel_h) * p.kernel_w * p.c_in;
  if constexpr (kMapped) {
    channels = reinterpret_cast<const std::int32_t*>(packed_behind<T>(weights, blocks_out, blocks_out * taps).biases);
  }
  const Packed<T> packed = packed_behind<T>(weights, computes ? block : 0, computes ? block * taps : 0);
  const float bias = computes ? packed.biases[lane] : 0.0F;
  const T* w = packed.taps + lane;
  float sum[kPixels];
  for (std::uint32_t i = 0; i < kPixels; ++i) sum[i] = bias;
  for (std::int32_t ky = 0; ky < p.kernel_h; ++ky) {
    for (std::int32_t kx = 0; kx < p.kernel_w; ++kx) {
      // Bit i: pixel i has this tap inside the input.
      std::uint32_t inside = 0;
      for (std::uint32_t i = 0; i < kPixels; ++i) {
        const std::int64_t row = static_cast<std::int64_t>(rows[i]) + static_cast<std::int64_t>(ky) * p.dilation_h;
        const std::int64_t column =
            static_cast<std::int64_t>(columns[i]) + static_cast<std::int64_t>(kx) * p.dilation_w;
        if (row >= 0 && row < p.h_in && column >= 0 && column < p.w_in) inside |= 1U << i;
      }
      for (std::int64_t c0 = 0; c0 < p.c_in; c0 += kBlock) {
        const auto valid = static_cast<std::uint32_t>(p.c_in - c0 < kBlock ? p.c_in - c0 : kBlock);
        std::int64_t channel = c0 + lane;
        if constexpr (kMapped) {
          channel = lane < valid ? channels[channel] : 0;
          if (channel < 0 || channel >= m.c_x) channel = 0;
        }
        for (std::uint32_t i = warp; i < kPixels; i += kWarps) {
          float value = 0;
          if ((inside >> i & 1U) != 0 && lane < valid) {
            const std::int64_t row = rows[i] + static_cast<std::int64_t>(ky) * p.dilation_h;
            const std::int64_t column = columns[i] + static_cast<std::int64_t>(kx) * p.dilation_w;
            value = widened(in[blocked(image, channel, row * p.w_in + column, m.c_x, pixels_in)]);
          }
          tile[i * kWarp + lane] = value;
        }
        sync_block();
        if (computes) {
          for (std::uint32_t c = 0; c < valid; ++c) {
            const float weight = widened(w[c * kBlock]);
            for (std::uint32_t i = 0; i < kPixels; ++i) {
              if ((inside >> i & 1U) != 0) sum[i] = fma(tile[i * kWarp + c], weight, sum[i]);
            }
          }
          w += valid * kBlock;
        }
        sync_block();
      }
    }
  }
  if (!computes) return;
  const bool hole = block * kBlock + lane >= p.c_out;
  for (std::uint32_t i = 0; i < kPixels && first + i < pixels_out; ++i) {
    const std::int64_t element = ((image * blocks_out + block) * pixels_out + first + i) * kBlock + lane;
    if (hole) {
      write<T>(y, element, 0);
    } else {
      finish<T>(p, sum[i], residual, y, element);
    }
  }
}

template <bool kMapped, class T>
int conv_tiled(const MappedConvParams& m, const Call& call) {
  const ConvParams& p = m.conv;
  const std::int64_t pixels = static_cast<std::int64_t>(p.h_out) * p.w_out;
  Grid grid;
  grid.blocks_x = static_cast<std::uint32_t>((pixels + kPixels - 1) / kPixels);
  grid.blocks_y = static_cast<std::uint32_t>((blocks_on_host(p.c_out) + kWarps - 1) / kWarps);
  grid.blocks_z = static_cast<std::uint32_t>(p.n);
  grid.threads_x = kWarps * kWarp;
  grid.shared_bytes = kTileBytes;
  const char* const name =
      kMapped ? form<T>("conv_mapped", "conv_mapped_f16") : form<T>("conv_tiled", "conv_tiled_f16");
  return launch(name, conv_tiled_kernel<kMapped, T>, grid, call.stream, m, call.operands[0], call.operands[1],
                call.operands[2], call.operands[3], call.conditions);
}

template <class T>
int conv_direct(const Call& call) {
  const auto p = load_params<ConvParams>(call.params);
  return conv_tiled<false, T>({p, p.c_in, 0}, call);
}
template <class T>
int conv_mapped(const Call& call) {
  return conv_tiled<true, T>(load_params<MappedConvParams>(call.params), call);
}

// A thread is an output channel of a pixel and reads its own inputs: depthwise and other groups, and the few channels
// of a linear input.
template <bool kLinear, class T>
struct PlainConv {
  ConvParams p;
  Address x, weights, residual, y;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t pixels_out = static_cast<std::int64_t>(p.h_out) * p.w_out;
    const std::int64_t pixels_in = static_cast<std::int64_t>(p.h_in) * p.w_in;
    const Place to = place_of(i, p.c_out, pixels_out);
    if (to.hole) {
      write<T>(y, i, 0);
      return;
    }
    const std::int32_t depth = p.c_in / p.group;
    const std::int64_t first = to.channel / (p.c_out / p.group) * depth;  // channel of X
    const std::int64_t taps = static_cast<std::int64_t>(p.kernel_h) * p.kernel_w * depth;
    const Packed<T> packed = packed_behind<T>(weights, to.block, to.block * taps);
    const T* w = packed.taps + to.lane;
    const T* const in = at<const T>(x);
    float sum = packed.biases[to.lane];
    const std::int64_t top = to.pixel / p.w_out * p.stride_h - p.pad_top;
    const std::int64_t left = to.pixel % p.w_out * p.stride_w - p.pad_left;
    for (std::int32_t ky = 0; ky < p.kernel_h; ++ky) {
      const std::int64_t row = top + static_cast<std::int64_t>(ky) * p.dilation_h;
      for (std::int32_t kx = 0; kx < p.kernel_w; ++kx, w += depth * kBlock) {
        const std::int64_t column = left + static_cast<std::int64_t>(kx) * p.dilation_w;
        if (row < 0 || row >= p.h_in || column < 0 || column >= p.w_in) continue;
        const std::int64_t pixel = row * p.w_in + column;
        for (std::int32_t c = 0; c < depth; ++c) {
          const std::int64_t from = kLinear ? (to.image * p.c_in + first + c) * pixels_in + pixel
                                            : blocked(to.image, first + c, pixel, p.c_in, pixels_in);
          sum = fma(widened(in[from]), widened(w[c * kBlock]), sum);
        }
      }
    }
    finish<T>(p, sum, residual, y, i);
  }
};

template <bool kLinear, class T>
int conv_plain(const Call& call) {
  const auto p = load_params<ConvParams>(call.params);
  return each(kLinear ? form<T>("conv_first", "conv_first_f16") : form<T>("conv_grouped", "conv_grouped_f16"),
              PlainConv<kLinear, T>{p, call.operands[0], call.operands[1], call.operands[2], call.operands[3]},
              p.n * blocks_on_host(p.c_out) * p.h_out * p.w_out * kBlock, call);
}

// Packed weights: for every phase of rows and of columns, every block: bias, then the taps of the phase (cpu/params.h).
template <class T>
struct ConvTranspose {
  ConvParams p;
  Address x, weights, y;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t pixels_out = static_cast<std::int64_t>(p.h_out) * p.w_out;
    const std::int64_t pixels_in = static_cast<std::int64_t>(p.h_in) * p.w_in;
    const Place to = place_of(i, p.c_out, pixels_out);
    if (to.hole) {
      write<T>(y, i, 0);
      return;
    }
    const std::int32_t depth = p.c_in / p.group;
    const std::int64_t first = to.channel / (p.c_out / p.group) * depth;
    const std::int64_t down = to.pixel / p.w_out + p.pad_top, right = to.pixel % p.w_out + p.pad_left;
    const std::int64_t phase_h = down % p.stride_h, phase_w = right % p.stride_w;
    // Taps in all phases before this one, in rows and in columns, and in this one.
    std::int64_t before_h = 0, own_h = 0, before_w = 0, own_w = 0;
    for (std::int64_t k = 0; k < p.kernel_h; ++k) {
      const std::int64_t phase = k * p.dilation_h % p.stride_h;
      before_h += phase < phase_h ? 1 : 0;
      own_h += phase == phase_h ? 1 : 0;
    }
    for (std::int64_t k = 0; k < p.kernel_w; ++k) {
      const std::int64_t phase = k * p.dilation_w % p.stride_w;
      before_w += phase < phase_w ? 1 : 0;
      own_w += phase == phase_w ? 1 : 0;
    }
    const std::int64_t blocks = blocks_of(p.c_out);
    const Packed<T> packed =
        packed_behind<T>(weights, blocks * (phase_h * p.stride_w + phase_w) + to.block,
                         depth * (blocks * (before_h * p.kernel_w + own_h * before_w) + to.block * own_h * own_w));
    const T* w = packed.taps + to.lane;
    const T* const in = at<const T>(x);
    float sum = packed.biases[to.lane];
    for (std::int64_t ky = 0; ky < p.kernel_h; ++ky) {
      if (ky * p.dilation_h % p.stride_h != phase_h) continue;
      const std::int64_t sy = down - ky * p.dilation_h;
      for (std::int64_t kx = 0; kx < p.kernel_w; ++kx) {
        if (kx * p.dilation_w % p.stride_w != phase_w) continue;
        const std::int64_t sx = right - kx * p.dilation_w;
        if (sy >= 0 && sy / p.stride_h < p.h_in && sx >= 0 && sx / p.stride_w < p.w_in) {
          const std::int64_t pixel = sy / p.stride_h * p.w_in + sx / p.stride_w;
          for (std::int32_t c = 0; c < depth; ++c) {
            sum = fma(widened(in[blocked(to.image, first + c, pixel, p.c_in, pixels_in)]), widened(w[c * kBlock]), sum);
          }
        }
        w += depth * kBlock;
      }
    }
    write<T>(y, i, activate(p.activation, sum, p.alpha, p.beta));
  }
};

template <class T>
int conv_transpose(const Call& call) {
  const auto p = load_params<ConvParams>(call.params);
  return each(form<T>("conv_transpose", "conv_transpose_f16"),
              ConvTranspose<T>{p, call.operands[0], call.operands[1], call.operands[2]},
              p.n * blocks_on_host(p.c_out) * p.h_out * p.w_out * kBlock, call);
}

}  // namespace

std::span<const DeviceHalf> conv_kernels() {
  static constexpr DeviceHalf kHalves[] = {{KernelId::kConvDirect, conv_direct<float>},
                                           {KernelId::kConvPointwise, conv_direct<float>},
                                           {KernelId::kConvDepthwise, conv_plain<false, float>},
                                           {KernelId::kConvFirst, conv_plain<true, float>},
                                           {KernelId::kConvGrouped, conv_plain<false, float>},
                                           {KernelId::kConvTranspose, conv_transpose<float>},
                                           {KernelId::kConvMapped, conv_mapped<float>},
                                           {f16_form(KernelId::kConvDirect), conv_direct<Half>},
                                           {f16_form(KernelId::kConvPointwise), conv_direct<Half>},
                                           {f16_form(KernelId::kConvDepthwise), conv_plain<false, Half>},
                                           {f16_form(KernelId::kConvFirst), conv_plain<true, Half>},
                                           {f16_form(KernelId::kConvGrouped), conv_plain<false, Half>},
                                           {f16_form(KernelId::kConvTranspose), conv_transpose<Half>},
                                           {f16_form(KernelId::kConvMapped), conv_mapped<Half>}};
  return kHalves;
}

}  // namespace takt::kernels::cuda::TAKT_BODY
