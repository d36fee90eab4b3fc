// Dense convolutions over blocked tensors: direct, pointwise, and the first layer over a linear picture.
//
// One output pixel of one block of channels is one vector (kVectors vectors), one input value is broadcast. A register
// tile holds one or two blocks times kPixels pixels, from the bias to the activation, so that every output is one chain
// of multiply-adds over kernel rows, kernel columns and input channels: the numeric contract. Tiles that padding
// touches take one tap at a time for the pixels that have it; their accumulators rest in a buffer in between, which
// does not change a bit.
#include "kernels/cpu/device.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/window-inl.h"

#if TAKT_TARGET
HWY_BEFORE_NAMESPACE();
namespace takt::kernels::cpu::HWY_NAMESPACE {
namespace {

// Registers: 32 with AVX-512 and NEON, 16 with AVX2. A tile needs blocks x pixels accumulators, one weight per block
// and one input; at least eight accumulators hide the latency of two multiply-adds a cycle.
constexpr int kRegisters = HWY_TARGET == HWY_AVX2 ? 16 : 32;
constexpr int most_pixels(int blocks) {
  const int n = (kRegisters - 2 - blocks * kVectors) / (blocks * kVectors);  // one more for the compiler
  return n > 14 ? 14 : n;
}
constexpr int kMostPixels = most_pixels(1);

// What all tiles of a call share. Strides in floats.
struct Geometry {
  std::ptrdiff_t c_in;
  std::ptrdiff_t x_pixel;          // from one output pixel's input to the next one's
  std::ptrdiff_t x_channel;        // linear input: from channel to channel; blocked: from block to block
  std::ptrdiff_t x_row, x_column;  // from tap to tap
  std::ptrdiff_t w_block;          // packed weights from block to block
  std::ptrdiff_t y_block;          // output (and residual) from block to block
  std::ptrdiff_t kernel_w;
  Activate act;
  // Of a pointwise convolution whose input channels do not lie in order: where each of them does.
  const std::ptrdiff_t* channels;
};

struct Tile {
  const float* x;  // input channel 0 of tap (0, 0) of the first pixel; taps outside the tensor are never touched
  const float* w;  // the first block's bias, its taps behind
  // Accumulators that rest between taps, [block][kMostPixels][kBlock]; nullptr: start at the bias, finish into y.
  float* rest;
  float* y;
  const float* residual;  // nullptr: none
  int valid;              // channels of the last block that are no holes
};

template <int kBlocks, int kPixels, int kStride, bool kLinear>
HWY_INLINE void multiply_add(V (&acc)[kBlocks * kVectors][kPixels], const float* HWY_RESTRICT x,
                             const float* HWY_RESTRICT w, const Geometry& g) {
  const D d;
  const std::ptrdiff_t pixel = kStride == 0 ? g.x_pixel : kLinear ? kStride : kStride * kBlock;
  V weight[kBlocks * kVectors];
  TAKT_UNROLL
  for (int v = 0; v < kBlocks * kVectors; ++v) {
    weight[v] = hn::LoadU(d, w + (v / kVectors) * g.w_block + (v % kVectors) * kLanes);
  }
  TAKT_UNROLL
  for (int p = 0; p < kPixels; ++p) {
    const V value = hn::Set(d, x[p * pixel]);
    TAKT_UNROLL
    for (int v = 0; v < kBlocks * kVectors; ++v) acc[v][p] = hn::MulAdd(value, weight[v], acc[v][p]);
  }
}

template <int kBlocks, int kPixels, int kStride, bool kLinear>
HWY_NOINLINE void run_tile(const Geometry& g, const Tile& t, Range rows, Range columns) {
  const D d;
  constexpr int kAll = kBlocks * kVectors;
  V acc[kAll][kPixels];
  TAKT_UNROLL
  for (int v = 0; v < kAll; ++v) {
    const int b = v / kVectors, lane = (v % kVectors) * kLanes;
    if (t.rest == nullptr) {
      const V bias = hn::LoadU(d, t.w + b * g.w_block + lane);
      TAKT_UNROLL
      for (int p = 0; p < kPixels; ++p) acc[v][p] = bias;
    } else {
      TAKT_UNROLL
      for (int p = 0; p < kPixels; ++p) acc[v][p] = hn::LoadU(d, t.rest + (b * kMostPixels + p) * kBlock + lane);
    }
  }
  for (std::ptrdiff_t kh = rows.first; kh < rows.last; ++kh) {
    for (std::ptrdiff_t kw = columns.first; kw < columns.last; ++kw) {
      const float* x = t.x + kh * g.x_row + kw * g.x_column;
      const float* w = t.w + kBlock + (kh * g.kernel_w + kw) * g.c_in * kBlock;
      if constexpr (kLinear) {
        if (g.c_in == 3) {  // a picture: no loop over channels
          TAKT_UNROLL
          for (int c = 0; c < 3; ++c) {
            multiply_add<kBlocks, kPixels, kStride, true>(acc, x + c * g.x_channel, w + c * kBlock, g);
          }
        } else {
          for (std::ptrdiff_t c = 0; c < g.c_in; ++c, x += g.x_channel, w += kBlock) {
            multiply_add<kBlocks, kPixels, kStride, true>(acc, x, w, g);
          }
        }
      } else if (kStride == 1 && g.channels != nullptr) {
        for (std::ptrdiff_t c = 0; c < g.c_in; ++c, w += kBlock) {
          multiply_add<kBlocks, kPixels, kStride, false>(acc, x + g.channels[c], w, g);
        }
      } else {
        std::ptrdiff_t left = g.c_in;
        for (; left >= kBlock; left -= kBlock, x += g.x_channel) {
          for (int c = 0; c < kBlock; ++c, w += kBlock) {
            multiply_add<kBlocks, kPixels, kStride, false>(acc, x + c, w, g);
          }
        }
        for (std::ptrdiff_t c = 0; c < left; ++c, w += kBlock) {
          multiply_add<kBlocks, kPixels, kStride, false>(acc, x + c, w, g);
        }
      }
    }
  }
  if (t.rest != nullptr) {
    TAKT_UNROLL
    for (int v = 0; v < kAll; ++v) {
      const int b = v / kVectors, lane = (v % kVectors) * kLanes;
      TAKT_UNROLL
      for (int p = 0; p < kPixels; ++p) hn::StoreU(acc[v][p], d, t.rest + (b * kMostPixels + p) * kBlock + lane);
    }
    return;
  }
  if (t.residual != nullptr) {
    TAKT_UNROLL
    for (int v = 0; v < kAll; ++v) {
      const float* const r = t.residual + (v / kVectors) * g.y_block + (v % kVectors) * kLanes;
      TAKT_UNROLL
      for (int p = 0; p < kPixels; ++p) acc[v][p] = hn::Add(acc[v][p], hn::LoadU(d, r + p * kBlock));
    }
  }
  // The cheap activations in registers; the others in a second pass over what was just written.
  if (g.act.kind == Activation::kRelu) {
    TAKT_UNROLL
    for (int v = 0; v < kAll; ++v) {
      TAKT_UNROLL
      for (int p = 0; p < kPixels; ++p) acc[v][p] = relu_of(d, acc[v][p]);
    }
  } else if (g.act.kind == Activation::kClip) {
    const V lowest = hn::Set(d, g.act.alpha), highest = hn::Set(d, g.act.beta);
    TAKT_UNROLL
    for (int v = 0; v < kAll; ++v) {
      TAKT_UNROLL
      for (int p = 0; p < kPixels; ++p) acc[v][p] = clip_of(acc[v][p], lowest, highest);
    }
  }
  TAKT_UNROLL
  for (int v = 0; v < kAll; ++v) {
    float* const y = t.y + (v / kVectors) * g.y_block + (v % kVectors) * kLanes;
    TAKT_UNROLL
    for (int p = 0; p < kPixels; ++p) hn::StoreU(acc[v][p], d, y + p * kBlock);
  }
  if (g.act.kind > Activation::kClip) {
    for (int b = 0; b < kBlocks; ++b) activate_all(g.act, t.y + b * g.y_block, t.y + b * g.y_block, kPixels * kBlock);
  }
  clear_holes(t.y + (kBlocks - 1) * g.y_block, kPixels, t.valid);
}

using TileRun = void (*)(const Geometry&, const Tile&, Range, Range);

template <int kBlocks, int kStride, bool kLinear, int... pixels>
TileRun tile_of(int count, std::integer_sequence<int, pixels...>) {
  static constexpr TileRun kRuns[] = {run_tile<kBlocks, pixels + 1, kStride, kLinear>...};
  return kRuns[count - 1];
}
template <int kStride, bool kLinear>
TileRun tile_of(int blocks, int pixels) {
  return blocks == 1 ? tile_of<1, kStride, kLinear>(pixels, std::make_integer_sequence<int, most_pixels(1)>())
                     : tile_of<2, kStride, kLinear>(pixels, std::make_integer_sequence<int, most_pixels(2)>());
}

// Tiles of an instance of strides, and the largest tile it has.
struct Tiles {
  TileRun (*tile)(int blocks, int pixels);
  int most[3];  // pixels, by blocks
};
constexpr int kFewPixels = 4;  // of tiles for strides beyond 2, which are rare
template <bool kLinear>
TileRun rare_tile_of(int blocks, int pixels) {
  return blocks == 1 ? tile_of<1, 0, kLinear>(pixels, std::make_integer_sequence<int, kFewPixels>())
                     : tile_of<2, 0, kLinear>(pixels, std::make_integer_sequence<int, kFewPixels>());
}
template <bool kLinear>
Tiles tiles_of(int stride) {
  switch (stride) {
    case 1: return {tile_of<1, kLinear>, {0, most_pixels(1), most_pixels(2)}};
    case 2: return {tile_of<2, kLinear>, {0, most_pixels(1), most_pixels(2)}};
    default: return {rare_tile_of<kLinear>, {0, kFewPixels, kFewPixels}};
  }
}

// Pixels [first, last) of one output row of `blocks` blocks, some of whose taps are padding.
HWY_NOINLINE void run_border(const ConvParams& p, const Geometry& g, const Tiles& tiles, Tile t, int blocks, Range rows,
                             std::ptrdiff_t first, std::ptrdiff_t last) {
  HWY_ALIGN float rest[2 * kMostPixels * kBlock];
  const std::ptrdiff_t pixels = last - first;
  for (int b = 0; b < blocks; ++b) {
    for (std::ptrdiff_t i = 0; i < pixels; ++i) {
      copy_run(t.w + b * g.w_block, rest + (b * kMostPixels + i) * kBlock, kBlock);
    }
  }
  Tile tap = t;
  for (std::ptrdiff_t kh = rows.first; kh < rows.last; ++kh) {
    for (std::ptrdiff_t kw = 0; kw < p.kernel_w; ++kw) {
      const Range has = inside(kw, p.stride_w, p.dilation_w, p.pad_left, p.w_in, p.w_out);
      const std::ptrdiff_t from = std::max(has.first, first), to = std::min(has.last, last);
      if (from >= to) continue;
      tap.x = t.x + (from - first) * g.x_pixel;
      tap.rest = rest + (from - first) * kBlock;
      tiles.tile(blocks, static_cast<int>(to - from))(g, tap, {kh, kh + 1}, {kw, kw + 1});
    }
  }
  for (int b = 0; b < blocks; ++b) {
    const float* const from = rest + b * kMostPixels * kBlock;
    float* const y = t.y + b * g.y_block;
    const std::ptrdiff_t count = pixels * kBlock;
    if (t.residual != nullptr) {
      const float* const residual = t.residual + b * g.y_block;
      for (std::ptrdiff_t i = 0; i < count; ++i) y[i] = from[i] + residual[i];
    }
    activate_all(g.act, t.residual != nullptr ? y : from, y, count);
  }
  clear_holes(t.y + (blocks - 1) * g.y_block, pixels, t.valid);
}

template <bool kLinear>
HWY_INLINE Geometry geometry_of(const ConvParams& p) {
  Geometry g{};
  g.c_in = p.c_in;
  const std::ptrdiff_t lanes = kLinear ? 1 : kBlock;
  const std::ptrdiff_t plane = std::ptrdiff_t{p.h_in} * p.w_in;
  g.x_pixel = p.stride_w * lanes;
  g.x_channel = plane * lanes;
  g.x_row = std::ptrdiff_t{p.dilation_h} * p.w_in * lanes;
  g.x_column = p.dilation_w * lanes;
  g.w_block = (std::ptrdiff_t{p.kernel_h} * p.kernel_w * p.c_in + 1) * kBlock;
  g.y_block = std::ptrdiff_t{p.h_out} * p.w_out * kBlock;
  g.kernel_w = p.kernel_w;
  g.act = {p.activation, p.alpha, p.beta};
  return g;
}

// Weights or inputs up to this many floats (three quarters of a megabyte) stay in the second-level cache while the
// other pass.
constexpr std::ptrdiff_t kResidentFloats = 192 * 1024;
// A pixel of its own waits for each of its multiply-adds; a tile of the border stores and loads its accumulators at
// each tap. Up to about this many input channels the former is shorter.
constexpr std::ptrdiff_t kFewChannels = 16;

// One image; x, y and residual at its start, w at the first block. A unit is one output row of a group of one or two
// blocks; the last group of an odd count has one.
template <bool kLinear>
void run_dense(const ConvParams& p, const float* x, const float* w, const float* residual, float* y, Range units) {
  const Geometry g = geometry_of<kLinear>(p);
  const Tiles tiles = tiles_of<kLinear>(p.stride_w);
  const std::ptrdiff_t out_blocks = blocks_of(p.c_out);
  const std::ptrdiff_t lanes = kLinear ? 1 : kBlock;
  // Whatever stays in the second-level cache is passed many times: small weights for each row, or a small input for
  // each group.
  const std::ptrdiff_t groups = (out_blocks + 1) / 2;
  const bool by_row = out_blocks * g.w_block <= kResidentFloats &&
                      std::ptrdiff_t{p.h_in} * p.w_in * blocks_of(p.c_in) * kBlock > kResidentFloats;
  // Output columns that have every tap.
  const std::ptrdiff_t interior_first = inside(0, p.stride_w, p.dilation_w, p.pad_left, p.w_in, p.w_out).first;
  const std::ptrdiff_t interior_last =
      std::max(inside(p.kernel_w - 1, p.stride_w, p.dilation_w, p.pad_left, p.w_in, p.w_out).last, interior_first);
  for (std::ptrdiff_t u = units.first; u < units.last; ++u) {
    const std::ptrdiff_t b = (by_row ? u % groups : u / p.h_out) * 2, row = by_row ? u / groups : u % p.h_out;
    const int blocks = b + 1 < out_blocks ? 2 : 1;
    const Range rows = taps_inside(row, p.kernel_h, p.stride_h, p.dilation_h, p.pad_top, p.h_in);
    const auto tile_at = [&](std::ptrdiff_t first) HWY_ATTR {
      const std::ptrdiff_t at = b * g.y_block + (row * p.w_out + first) * kBlock;
      Tile t{};
      t.x = x + ((row * p.stride_h - p.pad_top) * p.w_in + first * p.stride_w - p.pad_left) * lanes;
      t.w = w + b * g.w_block;
      t.y = y + at;
      t.residual = residual == nullptr ? nullptr : residual + at;
      t.valid = valid_in(p.c_out, b + blocks - 1);
      return t;
    };
    // Few channels: pixels of the border one by one, whole tiles in between.
    const bool singly = p.c_in <= kFewChannels;
    const std::ptrdiff_t tiled_first = singly ? interior_first : 0, tiled_last = singly ? interior_last : p.w_out;
    const auto alone = [&](std::ptrdiff_t first, std::ptrdiff_t last) HWY_ATTR {
      for (std::ptrdiff_t i = first; i < last; ++i) {
        tiles.tile(blocks, 1)(g, tile_at(i), rows,
                              taps_inside(i, p.kernel_w, p.stride_w, p.dilation_w, p.pad_left, p.w_in));
      }
    };
    alone(0, tiled_first);
    const std::ptrdiff_t width = tiled_last - tiled_first;
    const std::ptrdiff_t count = (width + tiles.most[blocks] - 1) / tiles.most[blocks];
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      const std::ptrdiff_t first = tiled_first + width * i / count, last = tiled_first + width * (i + 1) / count;
      if (first >= interior_first && last <= interior_last) {
        tiles.tile(blocks, static_cast<int>(last - first))(g, tile_at(first), rows, {0, p.kernel_w});
      } else {
        run_border(p, g, tiles, tile_at(first), blocks, rows, first, last);
      }
    }
    alone(tiled_last, p.w_out);
  }
}

template <bool kLinear>
void conv_rows(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<ConvParams>(params);
  const auto* const x = reinterpret_cast<const float*>(operands[0].data);
  const auto* const w = reinterpret_cast<const float*>(operands[1].data);
  const auto* const residual = p.residual == 1 ? reinterpret_cast<const float*>(operands[2].data) : nullptr;
  auto* const y = reinterpret_cast<float*>(operands[3].data);
  const std::ptrdiff_t groups = (blocks_of(p.c_out) + 1) / 2, each = groups * p.h_out;
  const std::ptrdiff_t x_image = std::ptrdiff_t{p.h_in} * p.w_in * (kLinear ? p.c_in : blocks_of(p.c_in) * kBlock);
  const std::ptrdiff_t y_image = std::ptrdiff_t{p.h_out} * p.w_out * blocks_of(p.c_out) * kBlock;
  const Range units = share_of(each * p.n, part, parts);
  for (std::ptrdiff_t n = units.first / each; n * each < units.last; ++n) {
    const Range own = {std::max(units.first - n * each, std::ptrdiff_t{0}), std::min(units.last - n * each, each)};
    run_dense<kLinear>(p, x + n * x_image, w, residual == nullptr ? nullptr : residual + n * y_image, y + n * y_image,
                       own);
  }
}

// Inputs of a run of tiles that all groups read before the next run: half of the first-level cache.
constexpr std::ptrdiff_t kRunBytes = 24 * 1024;

// All pixels of an image lie in a row. Small weights: every group of blocks over a run of pixels, then the next run, so
// that inputs are read from memory once. Large weights: all pixels for a group, then the next group.
void run_pointwise(const ConvParams& p, std::ptrdiff_t c_x, bool mapped, const Operand* operands, int part, int parts) {
  const auto* const x = reinterpret_cast<const float*>(operands[0].data);
  const auto* const w = reinterpret_cast<const float*>(operands[1].data);
  const auto* const residual = p.residual == 1 ? reinterpret_cast<const float*>(operands[2].data) : nullptr;
  auto* const y = reinterpret_cast<float*>(operands[3].data);
  Geometry g = geometry_of<false>(p);
  const std::ptrdiff_t pixels = std::ptrdiff_t{p.h_out} * p.w_out;
  const std::ptrdiff_t out_blocks = blocks_of(p.c_out), groups = (out_blocks + 1) / 2;
  std::ptrdiff_t channels[kMostMappedChannels];
  if (mapped) {
    const std::byte* const list = operands[1].data + out_blocks * g.w_block * std::ptrdiff_t{sizeof(float)};
    for (std::ptrdiff_t c = 0; c < p.c_in; ++c) {
      std::int32_t at = 0;
      std::memcpy(&at, list + c * 4, sizeof(at));
      if (at < 0 || at >= c_x) at = 0;
      channels[c] = at / kBlock * g.x_channel + at % kBlock;
    }
    g.channels = channels;
  }
  const std::ptrdiff_t x_image = pixels * blocks_of(c_x) * kBlock, y_image = pixels * out_blocks * kBlock;
  const int most = most_pixels(out_blocks > 1 ? 2 : 1);
  const bool resident = out_blocks * g.w_block <= kResidentFloats;
  const std::ptrdiff_t per_run =
      std::clamp<std::ptrdiff_t>(kRunBytes / (std::ptrdiff_t{p.c_in} * most * std::ptrdiff_t{sizeof(float)}), 1, 16);
  const std::ptrdiff_t tiles = (pixels + most - 1) / most, runs = (tiles + per_run - 1) / per_run;
  const std::ptrdiff_t each = runs * groups;
  const Range units = share_of(each * p.n, part, parts);
  for (std::ptrdiff_t u = units.first; u < units.last; ++u) {
    const std::ptrdiff_t n = u / each, at = u % each;
    const std::ptrdiff_t run = resident ? at / groups : at % runs;
    const std::ptrdiff_t b = (resident ? at % groups : at / runs) * 2;
    const int blocks = b + 1 < out_blocks ? 2 : 1;
    const std::ptrdiff_t last_tile = tiles * (run + 1) / runs;
    for (std::ptrdiff_t i = tiles * run / runs; i < last_tile; ++i) {
      const std::ptrdiff_t first = pixels * i / tiles, last = pixels * (i + 1) / tiles;
      Tile t;
      t.x = x + n * x_image + first * kBlock;
      t.w = w + b * g.w_block;
      t.rest = nullptr;
      const std::ptrdiff_t to = n * y_image + b * g.y_block + first * kBlock;
      t.y = y + to;
      t.residual = residual == nullptr ? nullptr : residual + to;
      t.valid = valid_in(p.c_out, b + blocks - 1);
      tile_of<1, false>(blocks, static_cast<int>(last - first))(g, t, {0, 1}, {0, 1});
    }
  }
}

void conv_pointwise(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<ConvParams>(params);
  run_pointwise(p, p.c_in, false, operands, part, parts);
}

void conv_pointwise_mapped(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<MappedConvParams>(params);
  run_pointwise(p.conv, p.c_x, true, operands, part, parts);
}

// Any group. Groups of whole blocks are dense convolutions side by side; the others go lane by lane: correct, and slow.
void conv_grouped(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<ConvParams>(params);
  const auto* const x = reinterpret_cast<const float*>(operands[0].data);
  const auto* const w = reinterpret_cast<const float*>(operands[1].data);
  const auto* const residual = p.residual == 1 ? reinterpret_cast<const float*>(operands[2].data) : nullptr;
  auto* const y = reinterpret_cast<float*>(operands[3].data);
  const std::ptrdiff_t depth = p.c_in / p.group, width = p.c_out / p.group;
  const std::ptrdiff_t in_plane = std::ptrdiff_t{p.h_in} * p.w_in, out_plane = std::ptrdiff_t{p.h_out} * p.w_out;
  const std::ptrdiff_t x_image = in_plane * blocks_of(p.c_in) * kBlock;
  const std::ptrdiff_t y_image = out_plane * blocks_of(p.c_out) * kBlock;
  const std::ptrdiff_t w_block = (std::ptrdiff_t{p.kernel_h} * p.kernel_w * depth + 1) * kBlock;
  if (depth % kBlock == 0 && width % kBlock == 0) {
    ConvParams one = p;
    one.group = 1;
    one.c_in = static_cast<std::int32_t>(depth);
    one.c_out = static_cast<std::int32_t>(width);
    const std::ptrdiff_t groups = (blocks_of(width) + 1) / 2, each = groups * p.h_out;
    const Range units = share_of(each * p.group * p.n, part, parts);
    for (std::ptrdiff_t i = units.first / each; i * each < units.last; ++i) {
      const std::ptrdiff_t n = i / p.group, group = i % p.group;
      const Range own = {std::max(units.first - i * each, std::ptrdiff_t{0}), std::min(units.last - i * each, each)};
      const std::ptrdiff_t to = n * y_image + group * width * out_plane;
      run_dense<false>(one, x + n * x_image + group * depth * in_plane, w + group * (width / kBlock) * w_block,
                       residual == nullptr ? nullptr : residual + to, y + to, own);
    }
    return;
  }
  const Activate act{p.activation, p.alpha, p.beta};
  const std::ptrdiff_t out_blocks = blocks_of(p.c_out);
  const Range units = share_of(out_blocks * p.h_out * p.n, part, parts);
  for (std::ptrdiff_t u = units.first; u < units.last; ++u) {
    const std::ptrdiff_t n = u / (out_blocks * p.h_out), b = u / p.h_out % out_blocks, row = u % p.h_out;
    const int valid = valid_in(p.c_out, b);
    const float* const block = w + b * w_block;
    const Range rows = taps_inside(row, p.kernel_h, p.stride_h, p.dilation_h, p.pad_top, p.h_in);
    for (std::ptrdiff_t column = 0; column < p.w_out; ++column) {
      const Range columns = taps_inside(column, p.kernel_w, p.stride_w, p.dilation_w, p.pad_left, p.w_in);
      const std::ptrdiff_t at = n * y_image + (b * out_plane + row * p.w_out + column) * kBlock;
      for (int lane = 0; lane < kBlock; ++lane) {
        if (lane >= valid) {
          y[at + lane] = 0;
          continue;
        }
        float sum = block[lane];
        const std::ptrdiff_t first = (b * kBlock + lane) / width * depth;
        for (std::ptrdiff_t kh = rows.first; kh < rows.last; ++kh) {
          for (std::ptrdiff_t kw = columns.first; kw < columns.last; ++kw) {
            const std::ptrdiff_t pixel = (row * p.stride_h - p.pad_top + kh * p.dilation_h) * p.w_in +
                                         column * p.stride_w - p.pad_left + kw * p.dilation_w;
            const float* const taps = block + (1 + (kh * p.kernel_w + kw) * depth) * kBlock + lane;
            for (std::ptrdiff_t c = first; c < first + depth; ++c) {
              const float value = x[n * x_image + (c / kBlock * in_plane + pixel) * kBlock + c % kBlock];
              sum = __builtin_fmaf(value, taps[(c - first) * kBlock], sum);
            }
          }
        }
        y[at + lane] = residual == nullptr ? sum : sum + residual[at + lane];
      }
      activate_all(act, y + at, y + at, valid);
    }
  }
}

// Taps of one extent of a transposed convolution that an output position sees: `count` from some first one on, in
// ascending order; tap j reads input position from - j * step.
struct Phase {
  std::ptrdiff_t count = 0;
  std::ptrdiff_t before = 0;  // taps of the phases before this one
  std::ptrdiff_t from = 0, step = 0;
  [[nodiscard]] Range inside(std::ptrdiff_t in) const {
    if (count == 0 || from < 0) return {};
    const std::ptrdiff_t first = from < in ? 0 : std::min((from - in) / step + 1, count);
    return {first, std::max(first, std::min(from / step + 1, count))};
  }
};
Phase phase_of(std::ptrdiff_t position, std::ptrdiff_t kernel, std::ptrdiff_t stride, std::ptrdiff_t dilation,
               std::ptrdiff_t pad) {
  Phase phase;
  const std::ptrdiff_t remainder = (position + pad) % stride;
  std::ptrdiff_t first = -1, second = -1;
  for (std::ptrdiff_t k = 0; k < kernel; ++k) {
    const std::ptrdiff_t own = k * dilation % stride;
    if (own < remainder) ++phase.before;
    if (own != remainder) continue;
    if (phase.count++ == 0) first = k;
    if (phase.count == 2) second = k;
  }
  if (phase.count > 0) phase.from = (position + pad - first * dilation) / stride;  // exact, so also below zero
  phase.step = second < 0 ? 1 : (second - first) * dilation / stride;
  return phase;
}

// Every phase of columns of an output row is a dense convolution over its taps with stride 1, walking the input
// backwards from tap to tap; its accumulators rest in a buffer, since its pixels do not lie side by side in Y.
void conv_transpose(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<ConvParams>(params);
  const auto* const all_x = reinterpret_cast<const float*>(operands[0].data);
  const auto* const all_w = reinterpret_cast<const float*>(operands[1].data);
  auto* const all_y = reinterpret_cast<float*>(operands[2].data);
  const std::ptrdiff_t depth = p.c_in / p.group, width = p.c_out / p.group, out_blocks = blocks_of(p.c_out);
  const std::ptrdiff_t in_plane = std::ptrdiff_t{p.h_in} * p.w_in, out_plane = std::ptrdiff_t{p.h_out} * p.w_out;
  const Tiles tiles = tiles_of<false>(1);
  const bool dense = p.group == 1;
  const std::ptrdiff_t each = dense ? 2 : 1, groups = (out_blocks + each - 1) / each;
  const Activate act{p.activation, p.alpha, p.beta};
  HWY_ALIGN float rest[2 * kMostPixels * kBlock];
  const Range units = share_of(groups * p.h_out * p.n, part, parts);
  for (std::ptrdiff_t u = units.first; u < units.last; ++u) {
    const std::ptrdiff_t n = u / (groups * p.h_out), b = u / p.h_out % groups * each, row = u % p.h_out;
    const int blocks = static_cast<int>(std::min(each, out_blocks - b));
    const float* const x = all_x + n * in_plane * blocks_of(p.c_in) * kBlock;
    float* const y = all_y + ((n * out_blocks + b) * out_plane + row * p.w_out) * kBlock;
    const Phase h = phase_of(row, p.kernel_h, p.stride_h, p.dilation_h, p.pad_top);
    const Range rows = h.inside(p.h_in);
    for (std::ptrdiff_t column = 0; column < std::min(p.stride_w, p.w_out); ++column) {
      const Phase w = phase_of(column, p.kernel_w, p.stride_w, p.dilation_w, p.pad_left);
      const std::ptrdiff_t remainder_h = (row + p.pad_top) % p.stride_h,
                           remainder_w = (column + p.pad_left) % p.stride_w;
      Geometry g{};
      g.c_in = depth;
      g.x_pixel = kBlock;
      g.x_channel = in_plane * kBlock;
      g.x_row = -h.step * p.w_in * kBlock;
      g.x_column = -w.step * kBlock;
      g.w_block = (h.count * w.count * depth + 1) * kBlock;
      g.kernel_w = w.count;
      Tile t{};
      t.w = all_w + ((remainder_h * p.stride_w + remainder_w + (h.before * p.kernel_w + h.count * w.before) * depth) *
                         out_blocks +
                     b * (h.count * w.count * depth + 1)) *
                        kBlock;
      t.valid = kBlock;
      const std::ptrdiff_t pixels = (p.w_out - column + p.stride_w - 1) / p.stride_w, most = tiles.most[blocks];
      const std::ptrdiff_t count = (pixels + most - 1) / most;
      for (std::ptrdiff_t i = 0; i < count; ++i) {
        const std::ptrdiff_t first = pixels * i / count, last = pixels * (i + 1) / count;
        for (int k = 0; k < blocks; ++k) {
          for (std::ptrdiff_t j = 0; j < last - first; ++j) {
            copy_run(t.w + k * g.w_block, rest + (k * kMostPixels + j) * kBlock, kBlock);
          }
        }
        const auto pixels_of = [&](std::ptrdiff_t tap) {  // whose input of this tap exists
          return Range{std::max(first, tap * w.step - w.from), std::min(last, p.w_in + tap * w.step - w.from)};
        };
        const auto run = [&](Range taps_h, Range taps_w, Range of) HWY_ATTR {
          t.x = x + (h.from * p.w_in + w.from + of.first) * kBlock;
          t.rest = rest + (of.first - first) * kBlock;
          if (dense) {
            tiles.tile(blocks, static_cast<int>(of.last - of.first))(g, t, taps_h, taps_w);
            return;
          }
          // A block's channels may belong to several groups: one sum after the other.
          for (std::ptrdiff_t j = of.first; j < of.last; ++j) {
            for (int lane = 0; lane < valid_in(p.c_out, b); ++lane) {
              const std::ptrdiff_t channel = (b * kBlock + lane) / width * depth;
              float sum = rest[(j - first) * kBlock + lane];
              for (std::ptrdiff_t kh = taps_h.first; kh < taps_h.last; ++kh) {
                for (std::ptrdiff_t kw = taps_w.first; kw < taps_w.last; ++kw) {
                  const std::ptrdiff_t pixel = (h.from - kh * h.step) * p.w_in + w.from + j - kw * w.step;
                  const float* const taps = t.w + (1 + (kh * w.count + kw) * depth) * kBlock + lane;
                  for (std::ptrdiff_t c = channel; c < channel + depth; ++c) {
                    const float value = x[(c / kBlock * in_plane + pixel) * kBlock + c % kBlock];
                    sum = __builtin_fmaf(value, taps[(c - channel) * kBlock], sum);
                  }
                }
              }
              rest[(j - first) * kBlock + lane] = sum;
            }
          }
        };
        if (w.count > 0 && pixels_of(0).last == last && pixels_of(w.count - 1).first == first) {
          run(rows, {0, w.count}, {first, last});
        } else {
          for (std::ptrdiff_t kh = rows.first; kh < rows.last; ++kh) {
            for (std::ptrdiff_t kw = 0; kw < w.count; ++kw) {
              if (const Range of = pixels_of(kw); of.first < of.last) run({kh, kh + 1}, {kw, kw + 1}, of);
            }
          }
        }
        for (int k = 0; k < blocks; ++k) {
          float* const from = rest + k * kMostPixels * kBlock;
          activate_all(act, from, from, (last - first) * kBlock);
          clear_holes(from, last - first, valid_in(p.c_out, b + k));
          for (std::ptrdiff_t j = first; j < last; ++j) {
            copy_run(from + (j - first) * kBlock, y + (k * out_plane + column + j * p.stride_w) * kBlock, kBlock);
          }
        }
      }
    }
  }
}

}  // namespace

std::span<const DeviceHalf> conv_table() {
  static constexpr DeviceHalf kHalves[] = {
      {KernelId::kConvDirect, conv_rows<false>},      {KernelId::kConvPointwise, conv_pointwise},
      {KernelId::kConvMapped, conv_pointwise_mapped}, {KernelId::kConvFirst, conv_rows<true>},
      {KernelId::kConvGrouped, conv_grouped},         {KernelId::kConvTranspose, conv_transpose}};
  return kHalves;
}

}  // namespace takt::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // TAKT_TARGET

#if HWY_ONCE
namespace takt::kernels::cpu {
TAKT_TABLE(conv_kernels, conv_table)
}  // namespace takt::kernels::cpu
#endif
