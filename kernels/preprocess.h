// takt.Preprocess: camera pixels to a network's input, f32[1,3,height,width]. Geometry and arithmetic in one place:
// the reference, the kernels and the way back from network to camera pixels (pipeline/models) all use what is said
// here.
//
// Each output pixel takes four source pixels (two rows, two columns), as OpenCV's INTER_LINEAR does: half-pixel
// centres, coordinates clamped to the picture, no averaging when shrinking. Each source pixel is first made three
// bytes:
//   rgb8, bgr8    as they are
//   mono8         the grey level three times
//   nv12          ITU-R BT.601, 16..235, chroma of the 2x2 block: c = 298 (Y-16) + 128, d = U-128, e = V-128;
//                 R = (c + 409 e) >> 8, G = (c - 100 d - 208 e) >> 8, B = (c + 516 d) >> 8, clamped to 0..255
//   bayer_rggb8   bilinear demosaic, neighbours mirrored at the border (x = -1 is x = 1): two neighbours (a+b+1)/2,
//                 four (a+b+c+d+2)/4, integer division
// Then per channel in f32, fx and fy from tap():
//   upper = fma(fx, p01 - p00, p00), lower = fma(fx, p11 - p10, p10), v = fma(fy, lower - upper, upper)
//   output = fma(v, multiply[c], add[c])        c in the colour order of the network
// Outside the placement v = pad.
#pragma once

#include <cstdint>

namespace takt::kernels {

// Numbered as sensors::PixelFormat and as stored in plan files: never renumber.
enum class PixelSource : std::uint32_t { kRgb8 = 1, kBgr8 = 2, kMono8 = 3, kNv12 = 4, kBayerRggb8 = 5 };
enum class Fit : std::uint32_t { kPlain = 0, kLetterbox = 1 };
enum class ColourOrder : std::uint32_t { kRgb = 0, kBgr = 1 };

inline constexpr std::uint32_t kMaxPixels = 16384;  // of each extent, source and network

// The parameter block of the kernel: fixed layout, no holes. Offsets count from the first byte of the input.
struct Preprocess {
  PixelSource source = PixelSource::kRgb8;
  std::uint32_t source_width = 0, source_height = 0;  // pixels; even for nv12, at least 2 for bayer
  std::uint32_t pitch = 0;                            // bytes from row to row
  std::uint64_t offset = 0;                           // of pixel 0
  std::uint64_t chroma_offset = 0;                    // nv12: of the first U
  std::uint32_t chroma_pitch = 0;                     // nv12
  Fit fit = Fit::kPlain;
  ColourOrder colour = ColourOrder::kRgb;
  std::uint32_t pad = 0;                // letterbox: grey level 0..255 around the picture
  std::uint32_t width = 0, height = 0;  // of the network's input
  float multiply[3] = {1, 1, 1};        // scale / std, by network channel
  float add[3] = {0, 0, 0};             // -mean / std
};
static_assert(sizeof(Preprocess) == 80);

// Where the resized picture lies in the network's input.
struct Placement {
  std::uint32_t left = 0, top = 0, width = 0, height = 0;
};

// Plain: everywhere. Letterbox: the largest size of the source's proportions that fits, each extent rounded to the
// nearest whole pixel (halves up, at least 1), in the middle; an odd rest leaves the larger margin right and below.
constexpr Placement placement(Fit fit, std::uint32_t source_width, std::uint32_t source_height, std::uint32_t width,
                              std::uint32_t height) {
  Placement out{0, 0, width, height};
  if (fit == Fit::kPlain) return out;
  const std::uint64_t by_width = std::uint64_t{width} * source_height;
  const std::uint64_t by_height = std::uint64_t{height} * source_width;
  const auto rounded = [](std::uint64_t n, std::uint64_t d) {
    const auto r = static_cast<std::uint32_t>((2 * n + d) / (2 * d));
    return r == 0 ? 1U : r;
  };
  if (by_width <= by_height) {
    out.height = rounded(by_width, source_width);
  } else {
    out.width = rounded(by_height, source_height);
  }
  out.left = (width - out.width) / 2;
  out.top = (height - out.height) / 2;
  return out;
}

// The two source pixels of pixel `i` of `target`, and the weight of the second. Exact integers up to one division.
struct Tap {
  std::uint32_t first = 0, second = 0;
  float weight = 0;
};
constexpr Tap tap(std::uint32_t i, std::uint32_t target, std::uint32_t source) {
  const std::int64_t numerator = (2 * std::int64_t{i} + 1) * source - target;  // of the coordinate; over 2 target
  const std::int64_t denominator = 2 * std::int64_t{target};
  if (numerator <= 0) return {0, 0, 0};
  const std::int64_t index = numerator / denominator;
  if (index >= std::int64_t{source} - 1) return {source - 1, source - 1, 0};
  const std::int64_t rest = numerator - index * denominator;
  return {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index) + 1,
          static_cast<float>(rest) / static_cast<float>(denominator)};
}

}  // namespace takt::kernels
