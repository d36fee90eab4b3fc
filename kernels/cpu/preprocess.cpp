// takt.Preprocess: kernels/preprocess.h says what is computed. Pixels are fetched one by one, the arithmetic is
// vectors along a row.
#include "kernels/cpu/device.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/preprocess.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd-inl.h"

#if TAKT_TARGET
HWY_BEFORE_NAMESPACE();
namespace takt::kernels::cpu::HWY_NAMESPACE {
namespace {

// Red, green, blue of source pixels of one row.
struct Packed {  // rgb8, bgr8
  const std::uint8_t* row;
  int red;
  Packed(const Preprocess& p, const std::uint8_t* bytes, std::uint32_t y)
      : row(bytes + p.offset + std::uint64_t{y} * p.pitch), red(p.source == PixelSource::kRgb8 ? 0 : 2) {}
  HWY_INLINE void at(std::uint32_t x, int (&rgb)[3]) const {
    const std::uint8_t* const pixel = row + std::size_t{x} * 3;
    rgb[0] = pixel[red];
    rgb[1] = pixel[1];
    rgb[2] = pixel[2 - red];
  }
};

struct Grey {
  const std::uint8_t* row;
  Grey(const Preprocess& p, const std::uint8_t* bytes, std::uint32_t y)
      : row(bytes + p.offset + std::uint64_t{y} * p.pitch) {}
  HWY_INLINE void at(std::uint32_t x, int (&rgb)[3]) const { rgb[0] = rgb[1] = rgb[2] = row[x]; }
};

struct Nv12 {
  const std::uint8_t* row;
  const std::uint8_t* chroma;
  Nv12(const Preprocess& p, const std::uint8_t* bytes, std::uint32_t y)
      : row(bytes + p.offset + std::uint64_t{y} * p.pitch),
        chroma(bytes + p.chroma_offset + std::uint64_t{y / 2} * p.chroma_pitch) {}
  HWY_INLINE void at(std::uint32_t x, int (&rgb)[3]) const {
    const std::uint8_t* const uv = chroma + (x & ~1U);
    const int c = 298 * (row[x] - 16) + 128, d = uv[0] - 128, e = uv[1] - 128;
    rgb[0] = std::clamp((c + 409 * e) >> 8, 0, 255);
    rgb[1] = std::clamp((c - 100 * d - 208 * e) >> 8, 0, 255);
    rgb[2] = std::clamp((c + 516 * d) >> 8, 0, 255);
  }
};

struct Bayer {  // rggb: red at even rows and columns, blue at odd ones
  const std::uint8_t* up;
  const std::uint8_t* row;
  const std::uint8_t* down;
  std::uint32_t last;
  bool red_row;
  Bayer(const Preprocess& p, const std::uint8_t* bytes, std::uint32_t y)
      : last(p.source_width - 1), red_row(y % 2 == 0) {
    const auto line = [&](std::uint32_t i) { return bytes + p.offset + std::uint64_t{i} * p.pitch; };
    up = line(y == 0 ? 1 : y - 1);
    row = line(y);
    down = line(y + 1 == p.source_height ? y - 1 : y + 1);
  }
  HWY_INLINE void at(std::uint32_t x, int (&rgb)[3]) const {
    const std::uint32_t left = x == 0 ? 1 : x - 1, right = x == last ? x - 1 : x + 1;
    const int own = row[x], vertical = up[x] + down[x], horizontal = row[left] + row[right];
    const bool red_column = x % 2 == 0;
    int red_blue[2];  // the colour of this row's mosaic, the other one
    if (red_column == red_row) {
      red_blue[0] = own;
      rgb[1] = (vertical + horizontal + 2) / 4;
      red_blue[1] = (up[left] + up[right] + down[left] + down[right] + 2) / 4;
    } else {
      red_blue[0] = (horizontal + 1) / 2;
      rgb[1] = own;
      red_blue[1] = (vertical + 1) / 2;
    }
    rgb[0] = red_blue[red_row ? 0 : 1];
    rgb[2] = red_blue[red_row ? 1 : 0];
  }
};

// Columns whose taps are computed once and then used for all rows.
constexpr int kTile = 128;
static_assert(kTile % kLanes == 0);

template <class Source>
void picture(const Preprocess& p, const std::uint8_t* bytes, float* y, Range rows) {
  const D d;
  const Placement at = placement(p.fit, p.source_width, p.source_height, p.width, p.height);
  const std::ptrdiff_t plane = std::ptrdiff_t{p.width} * p.height;
  Tap taps[kTile];
  HWY_ALIGN float weight[kTile] = {};
  // Of the two source rows: first and second column, network channels.
  HWY_ALIGN float first[2][3][kTile] = {}, second[2][3][kTile] = {};
  const bool bgr = p.colour == ColourOrder::kBgr;
  for (std::uint32_t x0 = 0; x0 < at.width; x0 += kTile) {
    const int count = static_cast<int>(std::min<std::uint32_t>(kTile, at.width - x0));
    for (int i = 0; i < count; ++i) {
      taps[i] = tap(x0 + static_cast<std::uint32_t>(i), at.width, p.source_width);
      weight[i] = taps[i].weight;
    }
    for (std::ptrdiff_t row = rows.first; row < rows.last; ++row) {
      const Tap ty = tap(static_cast<std::uint32_t>(row), at.height, p.source_height);
      for (int line = 0; line < 2; ++line) {
        const Source source(p, bytes, line == 0 ? ty.first : ty.second);
        for (int i = 0; i < count; ++i) {
          int rgb[3];
          source.at(taps[i].first, rgb);
          for (int c = 0; c < 3; ++c) first[line][c][i] = static_cast<float>(rgb[c]);
          source.at(taps[i].second, rgb);
          for (int c = 0; c < 3; ++c) second[line][c][i] = static_cast<float>(rgb[c]);
        }
      }
      const V fy = hn::Set(d, ty.weight);
      for (int c = 0; c < 3; ++c) {
        const int colour = bgr ? 2 - c : c;
        const V multiply = hn::Set(d, p.multiply[c]), add = hn::Set(d, p.add[c]);
        float* const to = y + c * plane + (row + at.top) * p.width + at.left + x0;
        for (int i = 0; i < count; i += kLanes) {
          const V fx = hn::Load(d, weight + i);
          const V p00 = hn::Load(d, first[0][colour] + i), p10 = hn::Load(d, first[1][colour] + i);
          const V upper = hn::MulAdd(fx, hn::Sub(hn::Load(d, second[0][colour] + i), p00), p00);
          const V lower = hn::MulAdd(fx, hn::Sub(hn::Load(d, second[1][colour] + i), p10), p10);
          const V v = hn::MulAdd(fy, hn::Sub(lower, upper), upper);
          const V out = hn::MulAdd(v, multiply, add);
          if (i + kLanes <= count) {
            hn::StoreU(out, d, to + i);
          } else {
            Rest rest;
            hn::Store(out, d, rest.values);
            rest.to(to + i, count - i);
          }
        }
      }
    }
  }
}

void preprocess(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<Preprocess>(params);
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(operands[0].data);
  auto* const y = reinterpret_cast<float*>(operands[1].data);
  const Placement at = placement(p.fit, p.source_width, p.source_height, p.width, p.height);
  const Range own = share_of(p.height, part, parts);
  // The margins of the rows that are this part's.
  if (at.width != p.width || at.height != p.height) {
    for (int c = 0; c < 3; ++c) {
      const float value = __builtin_fmaf(static_cast<float>(p.pad), p.multiply[c], p.add[c]);
      for (std::ptrdiff_t row = own.first; row < own.last; ++row) {
        float* const to = y + (c * std::ptrdiff_t{p.height} + row) * p.width;
        const bool inside = row >= at.top && row < std::ptrdiff_t{at.top} + at.height;
        const std::uint32_t left = inside ? at.left : p.width, right = inside ? at.left + at.width : p.width;
        for (std::uint32_t x = 0; x < left; ++x) to[x] = value;
        for (std::uint32_t x = right; x < p.width; ++x) to[x] = value;
      }
    }
  }
  const Range rows = {std::max<std::ptrdiff_t>(own.first, at.top) - at.top,
                      std::min<std::ptrdiff_t>(own.last, std::ptrdiff_t{at.top} + at.height) - at.top};
  switch (p.source) {
    case PixelSource::kRgb8:
    case PixelSource::kBgr8: return picture<Packed>(p, bytes, y, rows);
    case PixelSource::kMono8: return picture<Grey>(p, bytes, y, rows);
    case PixelSource::kNv12: return picture<Nv12>(p, bytes, y, rows);
    case PixelSource::kBayerRggb8: return picture<Bayer>(p, bytes, y, rows);
  }
}

}  // namespace

std::span<const DeviceHalf> preprocess_table() {
  static constexpr DeviceHalf kHalves[] = {{KernelId::kPreprocess, preprocess}};
  return kHalves;
}

}  // namespace takt::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // TAKT_TARGET

#if HWY_ONCE
namespace takt::kernels::cpu {
TAKT_TABLE(preprocess_kernels, preprocess_table)
}  // namespace takt::kernels::cpu
#endif
