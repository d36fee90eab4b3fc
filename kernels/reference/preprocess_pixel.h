// One pixel of a camera's payload as red, green, blue (kernels/preprocess.h says how).
#pragma once

#include <cstdint>

#include "kernels/device_code.h"
#include "kernels/preprocess.h"

namespace takt::kernels::reference {
inline namespace TAKT_SIDE {

struct Pixel {
  std::uint8_t rgb[3];
};

TAKT_FUNCTION std::uint8_t to_byte(int v) { return static_cast<std::uint8_t>(v < 0 ? 0 : v > 255 ? 255 : v); }

TAKT_FUNCTION Pixel nv12(const std::uint8_t* data, const Preprocess& p, std::uint32_t x, std::uint32_t y) {
  const std::uint8_t* chroma = data + p.chroma_offset + std::uint64_t{p.chroma_pitch} * (y / 2) + (x & ~1U);
  const int c = 298 * (data[p.offset + std::uint64_t{p.pitch} * y + x] - 16) + 128;
  const int d = chroma[0] - 128;
  const int e = chroma[1] - 128;
  return {{to_byte((c + 409 * e) >> 8), to_byte((c - 100 * d - 208 * e) >> 8), to_byte((c + 516 * d) >> 8)}};
}

TAKT_FUNCTION Pixel bayer(const std::uint8_t* data, const Preprocess& p, std::uint32_t x, std::uint32_t y) {
  // Mirrored without repeating the border pixel: -1 is 1, width is width - 2.
  const auto at = [&](std::int64_t i, std::int64_t j) {
    const std::int64_t last_x = std::int64_t{p.source_width} - 1;
    const std::int64_t last_y = std::int64_t{p.source_height} - 1;
    i = i < 0 ? -i : i > last_x ? 2 * last_x - i : i;
    j = j < 0 ? -j : j > last_y ? 2 * last_y - j : j;
    return int{data[p.offset + static_cast<std::uint64_t>(j) * p.pitch + static_cast<std::uint64_t>(i)]};
  };
  const std::int64_t i = x;
  const std::int64_t j = y;
  const auto own = static_cast<std::uint8_t>(at(i, j));
  const auto beside = static_cast<std::uint8_t>((at(i - 1, j) + at(i + 1, j) + 1) / 2);
  const auto above = static_cast<std::uint8_t>((at(i, j - 1) + at(i, j + 1) + 1) / 2);
  const auto cross = static_cast<std::uint8_t>((at(i - 1, j) + at(i + 1, j) + at(i, j - 1) + at(i, j + 1) + 2) / 4);
  const auto corners =
      static_cast<std::uint8_t>((at(i - 1, j - 1) + at(i + 1, j - 1) + at(i - 1, j + 1) + at(i + 1, j + 1) + 2) / 4);
  const bool odd_x = (x & 1U) != 0;
  const bool odd_y = (y & 1U) != 0;
  if (!odd_x && !odd_y) return {{own, cross, corners}};  // red
  if (odd_x && odd_y) return {{corners, cross, own}};    // blue
  return odd_x ? Pixel{{beside, own, above}} : Pixel{{above, own, beside}};
}

TAKT_FUNCTION Pixel pixel(const std::uint8_t* data, const Preprocess& p, std::uint32_t x, std::uint32_t y) {
  const std::uint8_t* row = data + p.offset + std::uint64_t{p.pitch} * y;
  switch (p.source) {
    case PixelSource::kRgb8: return {{row[3 * x], row[3 * x + 1], row[3 * x + 2]}};
    case PixelSource::kBgr8: return {{row[3 * x + 2], row[3 * x + 1], row[3 * x]}};
    case PixelSource::kMono8: return {{row[x], row[x], row[x]}};
    case PixelSource::kNv12: return nv12(data, p, x, y);
    case PixelSource::kBayerRggb8: return bayer(data, p, x, y);
  }
  return {};
}

}  // namespace TAKT_SIDE
}  // namespace takt::kernels::reference
