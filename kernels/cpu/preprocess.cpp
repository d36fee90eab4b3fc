// takt.Preprocess: kernels/preprocess.h says what is computed. Pixels are fetched one by one or gathered, the
// arithmetic is vectors along a row.
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

using VI = hn::Vec<DI>;

// The bytes behind source pixels of one row, three of each, and what makes them red, green, blue: by vectors where the
// format needs arithmetic.
struct Packed {  // rgb8, bgr8
  const std::uint8_t* row;
  int red;
  Packed(const Preprocess& p, const std::uint8_t* bytes, std::uint32_t y)
      : row(bytes + p.offset + std::uint64_t{y} * p.pitch), red(p.source == PixelSource::kRgb8 ? 0 : 2) {}
  HWY_INLINE void at(std::uint32_t x, std::int32_t& a, std::int32_t& b, std::int32_t& c) const {
    const std::uint8_t* const pixel = row + std::size_t{x} * 3;
    a = pixel[red];
    b = pixel[1];
    c = pixel[2 - red];
  }
  static HWY_INLINE void to_rgb(VI&, VI&, VI&) {}
};

struct Grey {
  const std::uint8_t* row;
  Grey(const Preprocess& p, const std::uint8_t* bytes, std::uint32_t y)
      : row(bytes + p.offset + std::uint64_t{y} * p.pitch) {}
  HWY_INLINE void at(std::uint32_t x, std::int32_t& a, std::int32_t& b, std::int32_t& c) const { a = b = c = row[x]; }
  static HWY_INLINE void to_rgb(VI&, VI&, VI&) {}
};

struct Nv12 {
  const std::uint8_t* row;
  const std::uint8_t* chroma;
  Nv12(const Preprocess& p, const std::uint8_t* bytes, std::uint32_t y)
      : row(bytes + p.offset + std::uint64_t{y} * p.pitch),
        chroma(bytes + p.chroma_offset + std::uint64_t{y / 2} * p.chroma_pitch) {}
  HWY_INLINE void at(std::uint32_t x, std::int32_t& a, std::int32_t& b, std::int32_t& c) const {
    a = row[x];
    b = chroma[x & ~1U];
    c = chroma[(x & ~1U) + 1];
  }
  static HWY_INLINE void to_rgb(VI& a, VI& b, VI& c) {
    const DI di;
    const auto times = [&](VI v, std::int32_t factor) HWY_ATTR { return hn::Mul(v, hn::Set(di, factor)); };
    const auto byte = [&](VI v)
                          HWY_ATTR { return hn::Min(hn::Max(hn::ShiftRight<8>(v), hn::Zero(di)), hn::Set(di, 255)); };
    const VI y = hn::Add(times(hn::Sub(a, hn::Set(di, 16)), 298), hn::Set(di, 128));
    const VI d = hn::Sub(b, hn::Set(di, 128)), e = hn::Sub(c, hn::Set(di, 128));
    a = byte(hn::Add(y, times(e, 409)));
    b = byte(hn::Sub(hn::Sub(y, times(d, 100)), times(e, 208)));
    c = byte(hn::Add(y, times(d, 516)));
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
  HWY_INLINE void at(std::uint32_t x, std::int32_t& red, std::int32_t& green, std::int32_t& blue) const {
    const std::uint32_t left = x == 0 ? 1 : x - 1, right = x == last ? x - 1 : x + 1;
    const int own = row[x], vertical = up[x] + down[x], horizontal = row[left] + row[right];
    const bool red_column = x % 2 == 0;
    int of_row = own, other = 0;  // the colour of this row's mosaic, the other one
    if (red_column == red_row) {
      green = (vertical + horizontal + 2) / 4;
      other = (up[left] + up[right] + down[left] + down[right] + 2) / 4;
    } else {
      of_row = (horizontal + 1) / 2;
      green = own;
      other = (vertical + 1) / 2;
    }
    red = red_row ? of_row : other;
    blue = red_row ? other : of_row;
  }
  static HWY_INLINE void to_rgb(VI&, VI&, VI&) {}
};

// Columns whose taps are computed once and then used for all rows.
constexpr int kTile = 128;
static_assert(kTile % kLanes == 0);

// Three values of each pixel of a tile.
struct Pixels {
  HWY_ALIGN std::int32_t a[kTile] = {}, b[kTile] = {}, c[kTile] = {};
};

// One pixel of each of two source rows and two source columns for every output column of a tile, fetched one by one.
template <class Source>
class Corners {
 public:
  Corners(const Preprocess& p, const std::uint8_t* bytes) : p_(p), bytes_(bytes) {}
  void columns(const Tap* taps, int count) {
    count_ = count;
    for (int i = 0; i < count; ++i) {
      columns_[0][i] = taps[i].first;
      columns_[1][i] = taps[i].second;
    }
  }
  void rows(std::uint32_t first, std::uint32_t second) {
    for (int line = 0; line < 2; ++line) {
      const Source source(p_, bytes_, line == 0 ? first : second);
      for (int side = 0; side < 2; ++side) {
        Pixels& to = pixels_[line][side];
        for (int i = 0; i < count_; ++i) source.at(columns_[side][i], to.a[i], to.b[i], to.c[i]);
      }
    }
  }
  HWY_INLINE void rgb(int line, int side, int i, V (&rgb)[3]) const {
    const DI di;
    const D d;
    const Pixels& from = pixels_[line][side];
    VI a = hn::Load(di, from.a + i), b = hn::Load(di, from.b + i), c = hn::Load(di, from.c + i);
    Source::to_rgb(a, b, c);
    rgb[0] = hn::ConvertTo(d, a);
    rgb[1] = hn::ConvertTo(d, b);
    rgb[2] = hn::ConvertTo(d, c);
  }

 private:
  const Preprocess& p_;
  const std::uint8_t* bytes_;
  int count_ = 0;
  std::uint32_t columns_[2][kTile];
  Pixels pixels_[2][2];
};

// Bytes of a row, four at a time from any place. Those near its end begin up to three bytes earlier, so that nothing
// behind the picture is read, and are shifted back.
using DU = hn::RebindToUnsigned<D>;
class Gather {
 public:
  void set(int i, std::uint32_t at, std::uint32_t row_bytes) {
    const std::uint32_t from = std::min(at, row_bytes - 4);
    offset_[i] = static_cast<std::int32_t>(from);
    shift_[i] = (at - from) * 8;
  }
  HWY_INLINE hn::Vec<DU> from(const std::uint8_t* row, int i) const {
    const DI di;
    const DU du;
    const auto four = hn::GatherOffset(di, reinterpret_cast<const std::int32_t*>(row), hn::Load(di, offset_ + i));
    return hn::Shr(hn::BitCast(du, four), hn::Load(du, shift_ + i));
  }

 private:
  HWY_ALIGN std::int32_t offset_[kTile] = {};
  HWY_ALIGN std::uint32_t shift_[kTile] = {};
};
template <int index>
HWY_INLINE VI byte_of(hn::Vec<DU> bytes) {
  const DU du;
  if constexpr (index > 0) bytes = hn::ShiftRight<index * 8>(bytes);
  return hn::BitCast(DI(), hn::And(bytes, hn::Set(du, 255)));
}

// rgb8 and bgr8 of at least two pixels a row.
class GatheredPacked {
 public:
  GatheredPacked(const Preprocess& p, const std::uint8_t* bytes) : p_(p), bytes_(bytes) {}
  static bool fits(const Preprocess& p) { return p.source_width >= 2; }
  void columns(const Tap* taps, int count) {
    for (int i = 0; i < count; ++i) {
      gather_[0].set(i, taps[i].first * 3, p_.source_width * 3);
      gather_[1].set(i, taps[i].second * 3, p_.source_width * 3);
    }
  }
  void rows(std::uint32_t first, std::uint32_t second) {
    row_[0] = bytes_ + p_.offset + std::uint64_t{first} * p_.pitch;
    row_[1] = bytes_ + p_.offset + std::uint64_t{second} * p_.pitch;
  }
  HWY_INLINE void rgb(int line, int side, int i, V (&rgb)[3]) const {
    const D d;
    const auto bytes = gather_[side].from(row_[line], i);
    const V first = hn::ConvertTo(d, byte_of<0>(bytes)), third = hn::ConvertTo(d, byte_of<2>(bytes));
    const bool red_first = p_.source == PixelSource::kRgb8;
    rgb[0] = red_first ? first : third;
    rgb[1] = hn::ConvertTo(d, byte_of<1>(bytes));
    rgb[2] = red_first ? third : first;
  }

 private:
  const Preprocess& p_;
  const std::uint8_t* bytes_;
  const std::uint8_t* row_[2] = {};
  Gather gather_[2];
};

// nv12 of at least four pixels a row.
class GatheredNv12 {
 public:
  GatheredNv12(const Preprocess& p, const std::uint8_t* bytes) : p_(p), bytes_(bytes) {}
  static bool fits(const Preprocess& p) { return p.source_width >= 4; }
  void columns(const Tap* taps, int count) {
    for (int i = 0; i < count; ++i) {
      for (int side = 0; side < 2; ++side) {
        const std::uint32_t x = side == 0 ? taps[i].first : taps[i].second;
        luma_[side].set(i, x, p_.source_width);
        chroma_[side].set(i, x & ~1U, p_.source_width);
      }
    }
  }
  void rows(std::uint32_t first, std::uint32_t second) {
    for (int line = 0; line < 2; ++line) {
      const Nv12 source(p_, bytes_, line == 0 ? first : second);
      luma_row_[line] = source.row;
      chroma_row_[line] = source.chroma;
    }
  }
  HWY_INLINE void rgb(int line, int side, int i, V (&rgb)[3]) const {
    const D d;
    VI a = byte_of<0>(luma_[side].from(luma_row_[line], i));
    const auto uv = chroma_[side].from(chroma_row_[line], i);
    VI b = byte_of<0>(uv), c = byte_of<1>(uv);
    Nv12::to_rgb(a, b, c);
    rgb[0] = hn::ConvertTo(d, a);
    rgb[1] = hn::ConvertTo(d, b);
    rgb[2] = hn::ConvertTo(d, c);
  }

 private:
  const Preprocess& p_;
  const std::uint8_t* bytes_;
  const std::uint8_t* luma_row_[2] = {};
  const std::uint8_t* chroma_row_[2] = {};
  Gather luma_[2], chroma_[2];
};

template <class FourCorners>
void picture(const Preprocess& p, const std::uint8_t* bytes, float* y, Range rows) {
  const D d;
  const Placement at = placement(p.fit, p.source_width, p.source_height, p.width, p.height);
  const std::ptrdiff_t plane = std::ptrdiff_t{p.width} * p.height;
  Tap taps[kTile];
  HWY_ALIGN float weight[kTile] = {};
  FourCorners corners(p, bytes);
  for (std::uint32_t x0 = 0; x0 < at.width; x0 += kTile) {
    const int count = static_cast<int>(std::min<std::uint32_t>(kTile, at.width - x0));
    for (int i = 0; i < count; ++i) {
      taps[i] = tap(x0 + static_cast<std::uint32_t>(i), at.width, p.source_width);
      weight[i] = taps[i].weight;
    }
    corners.columns(taps, count);
    for (std::ptrdiff_t row = rows.first; row < rows.last; ++row) {
      const Tap ty = tap(static_cast<std::uint32_t>(row), at.height, p.source_height);
      corners.rows(ty.first, ty.second);
      const V fy = hn::Set(d, ty.weight);
      for (int i = 0; i < count; i += kLanes) {
        const V fx = hn::Load(d, weight + i);
        V p00[3], p01[3], p10[3], p11[3];
        corners.rgb(0, 0, i, p00);
        corners.rgb(0, 1, i, p01);
        corners.rgb(1, 0, i, p10);
        corners.rgb(1, 1, i, p11);
        TAKT_UNROLL
        for (int colour = 0; colour < 3; ++colour) {
          const V upper = hn::MulAdd(fx, hn::Sub(p01[colour], p00[colour]), p00[colour]);
          const V lower = hn::MulAdd(fx, hn::Sub(p11[colour], p10[colour]), p10[colour]);
          const V v = hn::MulAdd(fy, hn::Sub(lower, upper), upper);
          const int c = p.colour == ColourOrder::kBgr ? 2 - colour : colour;  // of the network
          const V out = hn::MulAdd(v, hn::Set(d, p.multiply[c]), hn::Set(d, p.add[c]));
          float* const to = y + c * plane + (row + at.top) * p.width + at.left + x0 + i;
          if (i + kLanes <= count) {
            hn::StoreU(out, d, to);
          } else {
            Rest rest;
            hn::Store(out, d, rest.values);
            rest.to(to, count - i);
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
    case PixelSource::kBgr8:
      return GatheredPacked::fits(p) ? picture<GatheredPacked>(p, bytes, y, rows)
                                     : picture<Corners<Packed>>(p, bytes, y, rows);
    case PixelSource::kMono8: return picture<Corners<Grey>>(p, bytes, y, rows);
    case PixelSource::kNv12:
      return GatheredNv12::fits(p) ? picture<GatheredNv12>(p, bytes, y, rows)
                                   : picture<Corners<Nv12>>(p, bytes, y, rows);
    case PixelSource::kBayerRggb8: return picture<Corners<Bayer>>(p, bytes, y, rows);
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
