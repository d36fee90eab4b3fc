// Movement between layouts and among the channels of blocked tensors, and softmax over channels.
#include <limits>

#include "kernels/cuda/each.h"

namespace takt::kernels::cuda::TAKT_BODY {
namespace {

using cpu::ChannelCopyParams;
using cpu::ChannelGatherParams;
using cpu::f16_form;
using cpu::KernelId;
using cpu::ReorderParams;

template <class T>
struct ReorderToBlocked {
  ReorderParams p;
  Address x, y;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const Place to = place_of(i, p.c, p.pixels);
    write<T>(y, i, to.hole ? 0.0F : at<const float>(x)[(to.image * p.c + to.channel) * p.pixels + to.pixel]);
  }
};
template <class T>
int reorder_to_blocked(const Call& call) {
  const auto p = load_params<ReorderParams>(call.params);
  return each(form<T>("reorder_to_blocked", "reorder_to_blocked_f16"),
              ReorderToBlocked<T>{p, call.operands[0], call.operands[1]}, p.n * blocks_on_host(p.c) * kBlock * p.pixels,
              call);
}

// kLast: Y is [n][pixels][c], otherwise [n][c][pixels].
template <bool kLast, class T>
struct ReorderToLinear {
  ReorderParams p;
  Address x, y;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t channel = kLast ? i % p.c : i / p.pixels % p.c;
    const std::int64_t pixel = kLast ? i / p.c % p.pixels : i % p.pixels;
    at<float>(y)[i] = read<T>(x, blocked(i / p.c / p.pixels, channel, pixel, p.c, p.pixels));
  }
};
template <bool kLast, class T>
int reorder_to_linear(const Call& call) {
  const auto p = load_params<ReorderParams>(call.params);
  return each(
      kLast ? form<T>("reorder_to_last", "reorder_to_last_f16") : form<T>("reorder_to_linear", "reorder_to_linear_f16"),
      ReorderToLinear<kLast, T>{p, call.operands[0], call.operands[1]}, p.n * static_cast<std::int64_t>(p.c) * p.pixels,
      call);
}

template <class T>
struct ChannelGather {
  ChannelGatherParams p;
  Address a, b, channels, y;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const Place to = place_of(i, p.c_out, p.pixels);
    float value = 0;
    if (!to.hole) {
      const std::int64_t channel = at<const std::int32_t>(channels)[to.channel];
      if (channel >= 0 && channel < p.c_a) {
        value = read<T>(a, blocked(to.image, channel, to.pixel, p.c_a, p.pixels));
      } else if (channel >= p.c_a && channel < static_cast<std::int64_t>(p.c_a) + p.c_b) {
        value = read<T>(b, blocked(to.image, channel - p.c_a, to.pixel, p.c_b, p.pixels));
      }
    }
    write<T>(y, i, value);
  }
};
template <class T>
int channel_gather(const Call& call) {
  const auto p = load_params<ChannelGatherParams>(call.params);
  return each(form<T>("channel_gather", "channel_gather_f16"),
              ChannelGather<T>{p, call.operands[0], call.operands[1], call.operands[2], call.operands[3]},
              p.n * blocks_on_host(p.c_out) * kBlock * p.pixels, call);
}

template <class T>
struct ChannelCopy {
  ChannelCopyParams p;
  Address x, y;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    // Of the blocks that are touched.
    const std::int64_t first = p.to / kBlock, touched = blocks_of(static_cast<std::int64_t>(p.to) + p.count) - first;
    const std::int64_t lane = i % kBlock, pixel = i / kBlock % p.pixels, block = i / kBlock / p.pixels;
    const std::int64_t image = block / touched, channel = (first + block % touched) * kBlock + lane;
    if (channel < p.to) return;
    const bool copied = channel < static_cast<std::int64_t>(p.to) + p.count;
    write<T>(y, blocked(image, channel, pixel, p.c_out, p.pixels),
             copied ? read<T>(x, blocked(image, channel - p.to + p.from, pixel, p.c_in, p.pixels)) : 0.0F);
  }
};
template <class T>
int channel_copy(const Call& call) {
  const auto p = load_params<ChannelCopyParams>(call.params);
  const std::int64_t touched = blocks_on_host(static_cast<std::int64_t>(p.to) + p.count) - p.to / kBlock;
  return each(form<T>("channel_copy", "channel_copy_f16"), ChannelCopy<T>{p, call.operands[0], call.operands[1]},
              p.n * touched * p.pixels * kBlock, call);
}

// A pixel: the largest value, exponentials of the distances to it, their sum in ascending order, quotients. X may be Y:
// the exponentials are computed once more rather than kept there, where f16 would round them.
template <class T>
struct SoftmaxChannels {
  ReorderParams p;
  Address x, y;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t image = i / p.pixels, pixel = i % p.pixels;
    const auto place = [&](std::int64_t c) { return blocked(image, c, pixel, p.c, p.pixels); };
    float highest = -std::numeric_limits<float>::infinity();
    for (std::int64_t c = 0; c < p.c; ++c) {
      const float value = read<T>(x, place(c));
      highest = value > highest ? value : highest;
    }
    const auto exponential = [&](std::int64_t c) { return exp_f32(read<T>(x, place(c)) - highest); };
    float sum = 0;
    for (std::int64_t c = 0; c < p.c; ++c) sum += exponential(c);
    for (std::int64_t c = 0; c < p.c; ++c) write<T>(y, place(c), exponential(c) / sum);
    for (std::int64_t c = p.c; c < blocks_of(p.c) * kBlock; ++c) write<T>(y, place(c), 0);
  }
};
template <class T>
int softmax_channels(const Call& call) {
  const auto p = load_params<ReorderParams>(call.params);
  return each(form<T>("softmax_channels", "softmax_channels_f16"),
              SoftmaxChannels<T>{p, call.operands[0], call.operands[1]}, p.n * p.pixels, call);
}

}  // namespace

std::span<const DeviceHalf> channel_kernels() {
  static constexpr DeviceHalf kHalves[] = {{KernelId::kReorderToBlocked, reorder_to_blocked<float>},
                                           {KernelId::kReorderToLinear, reorder_to_linear<false, float>},
                                           {KernelId::kReorderToLast, reorder_to_linear<true, float>},
                                           {KernelId::kChannelGather, channel_gather<float>},
                                           {KernelId::kChannelCopy, channel_copy<float>},
                                           {KernelId::kSoftmaxChannels, softmax_channels<float>},
                                           {f16_form(KernelId::kReorderToBlocked), reorder_to_blocked<Half>},
                                           {f16_form(KernelId::kReorderToLinear), reorder_to_linear<false, Half>},
                                           {f16_form(KernelId::kReorderToLast), reorder_to_linear<true, Half>},
                                           {f16_form(KernelId::kChannelGather), channel_gather<Half>},
                                           {f16_form(KernelId::kChannelCopy), channel_copy<Half>},
                                           {f16_form(KernelId::kSoftmaxChannels), softmax_channels<Half>}};
  return kHalves;
}

}  // namespace takt::kernels::cuda::TAKT_BODY
