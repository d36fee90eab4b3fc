// Movement between layouts and among the channels of blocked tensors, and softmax over channels.
#include <limits>

#include "kernels/cpu/device.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/channels.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd-inl.h"

#if TAKT_TARGET
HWY_BEFORE_NAMESPACE();
namespace takt::kernels::cpu::HWY_NAMESPACE {
namespace {

const float* input(const Operand* operands, int i) { return reinterpret_cast<const float*>(operands[i].data); }
float* output(const Operand* operands, int i) { return reinterpret_cast<float*>(operands[i].data); }

// A transpose of 4x4 floats inside each 128-bit part: row i of the result holds element i of the four parts' rows.
HWY_INLINE void transpose_parts(V& a, V& b, V& c, V& d4) {
  const hn::RepartitionToWide<D> wide;
  const D d;
  const auto ab_low = hn::BitCast(wide, hn::InterleaveLower(d, a, b));
  const auto ab_high = hn::BitCast(wide, hn::InterleaveUpper(d, a, b));
  const auto cd_low = hn::BitCast(wide, hn::InterleaveLower(d, c, d4));
  const auto cd_high = hn::BitCast(wide, hn::InterleaveUpper(d, c, d4));
  a = hn::BitCast(d, hn::InterleaveLower(wide, ab_low, cd_low));
  b = hn::BitCast(d, hn::InterleaveUpper(wide, ab_low, cd_low));
  c = hn::BitCast(d, hn::InterleaveLower(wide, ab_high, cd_high));
  d4 = hn::BitCast(d, hn::InterleaveUpper(wide, ab_high, cd_high));
}

// Four channels of every fourth pixel, from `x` on: part k is pixel 4 k.
HWY_INLINE V load_parts(const float* x) {
  const D d;
  const hn::CappedTag<float, 4> part;
#if HWY_TARGET == HWY_NEON
  return hn::LoadU(part, x);
#else
  const hn::CappedTag<float, 8> two;
  const auto low = hn::Combine(two, hn::LoadU(part, x + 4 * kBlock), hn::LoadU(part, x));
#if HWY_TARGET == HWY_AVX2
  return low;
#else
  return hn::Combine(d, hn::Combine(two, hn::LoadU(part, x + 12 * kBlock), hn::LoadU(part, x + 8 * kBlock)), low);
#endif
#endif
}

// One block of channels of one image in pieces of pixels: kQuads * 4 channels at a time would need a full transpose;
// four channels at a time need only 128-bit parts, which every target has.
constexpr int kParts = kLanes / 4;  // 128-bit parts of a vector
constexpr int kPiece = 256;         // pixels

struct Piece {
  std::ptrdiff_t plane = 0, first = 0, last = 0;  // plane = image * blocks + block; pixels
};
// Piece `u` of n * blocks planes.
HWY_INLINE Piece piece_of(std::ptrdiff_t u, std::ptrdiff_t pixels) {
  const std::ptrdiff_t each = (pixels + kPiece - 1) / kPiece;
  const std::ptrdiff_t first = u % each * kPiece;
  return {u / each, first, std::min(first + kPiece, pixels)};
}
HWY_INLINE std::ptrdiff_t pieces_of(const ReorderParams& p) {
  return p.n * blocks_of(p.c) * ((p.pixels + kPiece - 1) / kPiece);
}

void reorder_to_blocked(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<ReorderParams>(params);
  const std::ptrdiff_t blocks = blocks_of(p.c);
  const Range share = share_of(pieces_of(p), part, parts);
  const D d;
  const hn::CappedTag<float, 4> d4;
  for (std::ptrdiff_t u = share.first; u < share.last; ++u) {
    const Piece piece = piece_of(u, p.pixels);
    const std::ptrdiff_t image = piece.plane / blocks, block = piece.plane % blocks;
    const int valid = valid_in(p.c, block);
    const float* const x = input(operands, 0) + (image * p.c + block * kBlock) * p.pixels;
    float* const y = output(operands, 1) + piece.plane * p.pixels * kBlock;
    for (int c = 0; c < kBlock; c += 4) {
      std::ptrdiff_t i = piece.first;
      if (c + 4 <= valid) {
        const float* const row = x + c * p.pixels;
        for (; i + kLanes <= piece.last; i += kLanes) {
          V v[4];
          for (int j = 0; j < 4; ++j) v[j] = hn::LoadU(d, row + j * p.pixels + i);
          transpose_parts(v[0], v[1], v[2], v[3]);
          HWY_ALIGN float buffer[4][kLanes];
          for (int j = 0; j < 4; ++j) hn::Store(v[j], d, buffer[j]);
          // Part k of vector j: the four channels of pixel 4 k + j.
          for (int k = 0; k < kParts; ++k) {
            for (int j = 0; j < 4; ++j) {
              hn::StoreU(hn::Load(d4, buffer[j] + 4 * k), d4, y + (i + 4 * k + j) * kBlock + c);
            }
          }
        }
      }
      for (; i < piece.last; ++i) {
        for (int j = c; j < c + 4; ++j) y[i * kBlock + j] = j < valid ? x[j * p.pixels + i] : 0.0F;
      }
    }
  }
}

void reorder_to_linear(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<ReorderParams>(params);
  const std::ptrdiff_t blocks = blocks_of(p.c);
  const Range share = share_of(pieces_of(p), part, parts);
  const D d;
  const hn::CappedTag<float, 4> d4;
  for (std::ptrdiff_t u = share.first; u < share.last; ++u) {
    const Piece piece = piece_of(u, p.pixels);
    const std::ptrdiff_t image = piece.plane / blocks, block = piece.plane % blocks;
    const int valid = valid_in(p.c, block);
    const float* const x = input(operands, 0) + piece.plane * p.pixels * kBlock;
    float* const y = output(operands, 1) + (image * p.c + block * kBlock) * p.pixels;
    for (int c = 0; c < valid; c += 4) {
      std::ptrdiff_t i = piece.first;
      if (c + 4 <= valid) {
        float* const row = y + c * p.pixels;
        for (; i + kLanes <= piece.last; i += kLanes) {
          V v[4];
          for (int j = 0; j < 4; ++j) v[j] = load_parts(x + (i + j) * kBlock + c);
          transpose_parts(v[0], v[1], v[2], v[3]);
          for (int j = 0; j < 4; ++j) hn::StoreU(v[j], d, row + j * p.pixels + i);
        }
      }
      for (; i < piece.last; ++i) {
        for (int j = c; j < std::min(c + 4, valid); ++j) y[j * p.pixels + i] = x[i * kBlock + j];
      }
    }
  }
}

// A pixel's channels lie side by side in both: what is left is to bring the blocks together.
void reorder_to_last(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<ReorderParams>(params);
  const std::ptrdiff_t blocks = blocks_of(p.c);
  const Range share = share_of(p.n * p.pixels, part, parts);
  for (std::ptrdiff_t u = share.first; u < share.last; ++u) {
    const std::ptrdiff_t image = u / p.pixels, pixel = u % p.pixels;
    const float* const x = input(operands, 0) + (image * blocks * p.pixels + pixel) * kBlock;
    float* const y = output(operands, 1) + u * p.c;
    for (std::ptrdiff_t b = 0; b < blocks; ++b) copy_run(x + b * p.pixels * kBlock, y + b * kBlock, valid_in(p.c, b));
  }
}

// A block of the output of channel_gather takes lanes from few blocks of the inputs: each is loaded once for a pixel,
// permuted, and merged by mask.
struct Source {
  const float* x = nullptr;      // block of an image, pixel 0
  std::int32_t lane[kBlock];     // of the source, by lane of the output
  HWY_ALIGN float mask[kBlock];  // all bits set where the lane comes from here

  void reset(const float* from) {
    x = from;
    for (int i = 0; i < kBlock; ++i) {
      lane[i] = 0;
      mask[i] = 0;
    }
  }
  void take(int to, std::int32_t from) {
    lane[to] = from;
    const std::uint32_t all = 0xffffffffU;  // a NaN, which is never computed with
    std::memcpy(&mask[to], &all, sizeof(all));
  }
};

// lane[] as indices of TableLookupLanes. Blocks of two vectors (NEON) go lane by lane instead.
void gather_pixels(const Source* sources, int count, float* y, std::ptrdiff_t first, std::ptrdiff_t last) {
  if constexpr (kVectors == 1) {
    const D d;
    // Two sources are what a shuffle of two groups and a concat of two tensors have.
    if (count == 1 || count == 2) {
      const Source& a = sources[0];
      const Source& b = sources[count - 1];
      const auto ia = hn::SetTableIndices(d, a.lane), ib = hn::SetTableIndices(d, b.lane);
      const V ma = hn::Load(d, a.mask), mb = hn::Load(d, b.mask);
      for (std::ptrdiff_t i = first; i < last; ++i) {
        const V va = hn::And(ma, hn::TableLookupLanes(hn::LoadU(d, a.x + i * kBlock), ia));
        const V vb = hn::And(mb, hn::TableLookupLanes(hn::LoadU(d, b.x + i * kBlock), ib));
        hn::StoreU(hn::Or(va, vb), d, y + i * kBlock);
      }
      return;
    }
    for (std::ptrdiff_t i = first; i < last; ++i) {
      V out = hn::Zero(d);
      for (int s = 0; s < count; ++s) {
        const auto at = hn::SetTableIndices(d, sources[s].lane);
        const V v = hn::TableLookupLanes(hn::LoadU(d, sources[s].x + i * kBlock), at);
        out = hn::Or(out, hn::And(hn::Load(d, sources[s].mask), v));
      }
      hn::StoreU(out, d, y + i * kBlock);
    }
  } else {
    std::int32_t from[kBlock];
    for (int lane = 0; lane < kBlock; ++lane) {
      from[lane] = -1;
      for (int s = 0; s < count; ++s) {
        if (sources[s].mask[lane] != 0) from[lane] = s;
      }
    }
    for (std::ptrdiff_t i = first; i < last; ++i) {
      for (int lane = 0; lane < kBlock; ++lane) {
        const int s = from[lane];
        y[i * kBlock + lane] = s < 0 ? 0.0F : sources[s].x[i * kBlock + sources[s].lane[lane]];
      }
    }
  }
}

void channel_gather(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<ChannelGatherParams>(params);
  const std::ptrdiff_t out_blocks = blocks_of(p.c_out), a_blocks = blocks_of(p.c_a), b_blocks = blocks_of(p.c_b);
  const std::ptrdiff_t plane = p.pixels * kBlock;
  const std::ptrdiff_t each = (p.pixels + kPiece - 1) / kPiece;
  const Range share = share_of(p.n * out_blocks * each, part, parts);
  Source sources[kBlock];
  int count = 0;
  std::ptrdiff_t prepared = -1;
  for (std::ptrdiff_t u = share.first; u < share.last; ++u) {
    const std::ptrdiff_t at = u / each, image = at / out_blocks, block = at % out_blocks;
    if (at != prepared) {
      prepared = at;
      count = 0;
      for (int lane = 0; lane < valid_in(p.c_out, block); ++lane) {
        std::int32_t channel = 0;
        std::memcpy(&channel, operands[2].data + (block * kBlock + lane) * 4, sizeof(channel));
        if (channel < 0 || channel >= p.c_a + p.c_b) continue;
        const bool in_a = channel < p.c_a;
        const std::ptrdiff_t c = in_a ? channel : channel - p.c_a;
        const float* const x = in_a ? input(operands, 0) + (image * a_blocks + c / kBlock) * plane
                                    : input(operands, 1) + (image * b_blocks + c / kBlock) * plane;
        int s = 0;
        while (s < count && sources[s].x != x) ++s;
        if (s == count) sources[count++].reset(x);
        sources[s].take(lane, static_cast<std::int32_t>(c % kBlock));
      }
      if (count == 0) {  // zeros: any block under an empty mask
        count = 1;
        sources[0].reset(input(operands, 0));
      }
    }
    const std::ptrdiff_t first = u % each * kPiece;
    gather_pixels(sources, count, output(operands, 3) + at * plane, first, std::min(first + kPiece, p.pixels));
  }
}

void channel_copy(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<ChannelCopyParams>(params);
  const std::ptrdiff_t in_blocks = blocks_of(p.c_in), out_blocks = blocks_of(p.c_out);
  const std::ptrdiff_t plane = p.pixels * kBlock;
  const std::ptrdiff_t last_channel = std::ptrdiff_t{p.to} + p.count;
  const std::ptrdiff_t first_block = p.to / kBlock, touched = blocks_of(last_channel) - first_block;
  const Range share = share_of(p.n * touched * p.pixels, part, parts);
  const bool aligned = (p.to - p.from) % kBlock == 0;
  for (std::ptrdiff_t u = share.first; u < share.last;) {
    const std::ptrdiff_t at = u / p.pixels, first = u % p.pixels;
    const std::ptrdiff_t count = std::min(p.pixels - first, share.last - u);
    const std::ptrdiff_t image = at / touched, block = first_block + at % touched;
    const int begin = static_cast<int>(std::max<std::ptrdiff_t>(p.to - block * kBlock, 0));
    const int end = static_cast<int>(std::min<std::ptrdiff_t>(last_channel - block * kBlock, kBlock));
    float* const y = output(operands, 1) + (image * out_blocks + block) * plane + first * kBlock;
    const float* const x = input(operands, 0) + image * in_blocks * plane + first * kBlock;
    if (aligned && begin == 0 && end == kBlock) {
      copy_run(x + (block * kBlock - p.to + p.from) / kBlock * plane, y, count * kBlock);
    } else {
      // Lanes [begin, end) come from one or two neighbouring blocks of X; those before are Y's own.
      Source sources[3];
      int used = 0;
      const auto lane_from = [&](const float* from, int lane, std::ptrdiff_t source_lane) {
        if (used == 0 || sources[used - 1].x != from) sources[used++].reset(from);
        sources[used - 1].take(lane, static_cast<std::int32_t>(source_lane));
      };
      for (int lane = 0; lane < begin; ++lane) lane_from(y, lane, lane);
      for (int lane = begin; lane < end; ++lane) {
        const std::ptrdiff_t c = block * kBlock + lane - p.to + p.from;
        lane_from(x + c / kBlock * plane, lane, c % kBlock);
      }
      gather_pixels(sources, used, y, 0, count);
    }
    u += count;
  }
}

// Channels of one pixel: largest value, exponentials of the distances to it, their sum in ascending order, quotients.
// Eight pixels side by side: each sum is one chain of additions.
constexpr int kSide = 8;

template <int kPixels>
HWY_NOINLINE void softmax_pixels(const ReorderParams& p, const float* x, float* y) {
  const D d;
  const std::ptrdiff_t plane = p.pixels * kBlock;
  const std::ptrdiff_t blocks = blocks_of(p.c);
  const V lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  for (int i = 0; i < kPixels; ++i) {
    // Which of equal values is kept, and when, does not matter: only the distances to it are used.
    V most = lowest;
    for (std::ptrdiff_t b = 0; b < blocks; ++b) {
      for (int v = 0; v < kVectors; ++v) {
        V value = hn::LoadU(d, x + b * plane + i * kBlock + v * kLanes);
        const int valid = valid_in(p.c, b) - v * kLanes;
        if (valid < kLanes) {
          value = hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(std::max(valid, 0))), value, lowest);
        }
        most = hn::IfThenElse(hn::Gt(value, most), value, most);
      }
    }
    most = hn::MaxOfLanes(d, most);
    for (std::ptrdiff_t b = 0; b < blocks; ++b) {
      for (int v = 0; v < kVectors; ++v) {
        const std::ptrdiff_t at = b * plane + i * kBlock + v * kLanes;
        hn::StoreU(exp_of(d, hn::Sub(hn::LoadU(d, x + at), most)), d, y + at);
      }
    }
  }
  float sum[kPixels] = {};
  for (std::ptrdiff_t b = 0; b < blocks; ++b) {
    const int valid = valid_in(p.c, b);
    for (int c = 0; c < valid; ++c) {
      TAKT_UNROLL
      for (int i = 0; i < kPixels; ++i) sum[i] += y[b * plane + i * kBlock + c];
    }
  }
  for (std::ptrdiff_t b = 0; b < blocks; ++b) {
    for (int i = 0; i < kPixels; ++i) {
      const V s = hn::Set(d, sum[i]);
      for (int v = 0; v < kVectors; ++v) {
        const std::ptrdiff_t at = b * plane + i * kBlock + v * kLanes;
        hn::StoreU(hn::Div(hn::LoadU(d, y + at), s), d, y + at);
      }
    }
  }
  clear_holes(y + (blocks - 1) * plane, kPixels, valid_in(p.c, blocks - 1));
}

void softmax_channels(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<ReorderParams>(params);
  const std::ptrdiff_t image = blocks_of(p.c) * p.pixels * kBlock;
  const Range share = share_of(p.n * p.pixels, part, parts);
  for (std::ptrdiff_t u = share.first; u < share.last;) {
    const std::ptrdiff_t at = u / p.pixels * image + u % p.pixels * kBlock;
    const std::ptrdiff_t left = std::min(p.pixels - u % p.pixels, share.last - u);
    if (left >= kSide) {
      softmax_pixels<kSide>(p, input(operands, 0) + at, output(operands, 1) + at);
      u += kSide;
    } else {
      softmax_pixels<1>(p, input(operands, 0) + at, output(operands, 1) + at);
      ++u;
    }
  }
}

}  // namespace

std::span<const DeviceHalf> channel_table() {
  static constexpr DeviceHalf kHalves[] = {{KernelId::kReorderToBlocked, reorder_to_blocked},
                                           {KernelId::kReorderToLinear, reorder_to_linear},
                                           {KernelId::kReorderToLast, reorder_to_last},
                                           {KernelId::kChannelGather, channel_gather},
                                           {KernelId::kChannelCopy, channel_copy},
                                           {KernelId::kSoftmaxChannels, softmax_channels}};
  return kHalves;
}

}  // namespace takt::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // TAKT_TARGET

#if HWY_ONCE
namespace takt::kernels::cpu {
TAKT_TABLE(channel_kernels, channel_table)
}  // namespace takt::kernels::cpu
#endif
