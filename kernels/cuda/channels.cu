// Movement between layouts and among the channels of blocked tensors, and softmax over channels.
#include <limits>

#include "kernels/cuda/each.h"

namespace takt::kernels::cuda::TAKT_BODY {
namespace {

using cpu::ChannelCopyParams;
using cpu::ChannelGatherParams;
using cpu::KernelId;
using cpu::ReorderParams;

struct ReorderToBlocked {
  ReorderParams p;
  Address x, y;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const Place to = place_of(i, p.c, p.pixels);
    at<float>(y)[i] = to.hole ? 0.0F : at<const float>(x)[(to.image * p.c + to.channel) * p.pixels + to.pixel];
  }
};
int reorder_to_blocked(const Call& call) {
  const auto p = load_params<ReorderParams>(call.params);
  return each("reorder_to_blocked", ReorderToBlocked{p, call.operands[0], call.operands[1]},
              p.n * blocks_on_host(p.c) * kBlock * p.pixels, call);
}

// kLast: Y is [n][pixels][c], otherwise [n][c][pixels].
template <bool kLast>
struct ReorderToLinear {
  ReorderParams p;
  Address x, y;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t channel = kLast ? i % p.c : i / p.pixels % p.c;
    const std::int64_t pixel = kLast ? i / p.c % p.pixels : i % p.pixels;
    at<float>(y)[i] = at<const float>(x)[blocked(i / p.c / p.pixels, channel, pixel, p.c, p.pixels)];
  }
};
template <bool kLast>
int reorder_to_linear(const Call& call) {
  const auto p = load_params<ReorderParams>(call.params);
  return each(kLast ? "reorder_to_last" : "reorder_to_linear",
              ReorderToLinear<kLast>{p, call.operands[0], call.operands[1]},
              p.n * static_cast<std::int64_t>(p.c) * p.pixels, call);
}

struct ChannelGather {
  ChannelGatherParams p;
  Address a, b, channels, y;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const Place to = place_of(i, p.c_out, p.pixels);
    float value = 0;
    if (!to.hole) {
      const std::int64_t channel = at<const std::int32_t>(channels)[to.channel];
      if (channel >= 0 && channel < p.c_a) {
        value = at<const float>(a)[blocked(to.image, channel, to.pixel, p.c_a, p.pixels)];
      } else if (channel >= p.c_a && channel < static_cast<std::int64_t>(p.c_a) + p.c_b) {
        value = at<const float>(b)[blocked(to.image, channel - p.c_a, to.pixel, p.c_b, p.pixels)];
      }
    }
    at<float>(y)[i] = value;
  }
};
int channel_gather(const Call& call) {
  const auto p = load_params<ChannelGatherParams>(call.params);
  return each("channel_gather",
              ChannelGather{p, call.operands[0], call.operands[1], call.operands[2], call.operands[3]},
              p.n * blocks_on_host(p.c_out) * kBlock * p.pixels, call);
}

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
    at<float>(y)[blocked(image, channel, pixel, p.c_out, p.pixels)] =
        copied ? at<const float>(x)[blocked(image, channel - p.to + p.from, pixel, p.c_in, p.pixels)] : 0.0F;
  }
};
int channel_copy(const Call& call) {
  const auto p = load_params<ChannelCopyParams>(call.params);
  const std::int64_t touched = blocks_on_host(static_cast<std::int64_t>(p.to) + p.count) - p.to / kBlock;
  return each("channel_copy", ChannelCopy{p, call.operands[0], call.operands[1]}, p.n * touched * p.pixels * kBlock,
              call);
}

// A pixel: the largest value, exponentials of the distances to it, their sum in ascending order, quotients.
struct SoftmaxChannels {
  ReorderParams p;
  Address x, y;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t image = i / p.pixels, pixel = i % p.pixels;
    const auto place = [&](std::int64_t c) { return blocked(image, c, pixel, p.c, p.pixels); };
    const auto* const in = at<const float>(x);
    auto* const out = at<float>(y);
    float highest = -std::numeric_limits<float>::infinity();
    for (std::int64_t c = 0; c < p.c; ++c) highest = in[place(c)] > highest ? in[place(c)] : highest;
    float sum = 0;
    for (std::int64_t c = 0; c < p.c; ++c) {
      const float value = exp_f32(in[place(c)] - highest);
      out[place(c)] = value;
      sum += value;
    }
    for (std::int64_t c = 0; c < p.c; ++c) out[place(c)] /= sum;
    for (std::int64_t c = p.c; c < blocks_of(p.c) * kBlock; ++c) out[place(c)] = 0;
  }
};
int softmax_channels(const Call& call) {
  const auto p = load_params<ReorderParams>(call.params);
  return each("softmax_channels", SoftmaxChannels{p, call.operands[0], call.operands[1]}, p.n * p.pixels, call);
}

}  // namespace

std::span<const DeviceHalf> channel_kernels() {
  static constexpr DeviceHalf kHalves[] = {{KernelId::kReorderToBlocked, reorder_to_blocked},
                                           {KernelId::kReorderToLinear, reorder_to_linear<false>},
                                           {KernelId::kReorderToLast, reorder_to_linear<true>},
                                           {KernelId::kChannelGather, channel_gather},
                                           {KernelId::kChannelCopy, channel_copy},
                                           {KernelId::kSoftmaxChannels, softmax_channels}};
  return kHalves;
}

}  // namespace takt::kernels::cuda::TAKT_BODY
