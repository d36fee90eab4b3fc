#include "sensors/camera/raw_image.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace takt::sensors {
namespace {

enum class Kind { kColour, kGrey, kBayer, kYuv422, kNv };

struct Layout {
  std::string_view name;
  Kind kind;
  std::uint32_t sample_bytes;  // 1 or 2
  std::uint32_t channels;      // samples per pixel; of the first plane for kNv
  std::uint32_t
      first;  // colour: sample of red. Bayer: red's place, x + 2 y. yuv422: byte of the first Y. NV: byte of U
};
constexpr Layout kLayouts[] = {
    {"rgb8", Kind::kColour, 1, 3, 0},
    {"bgr8", Kind::kColour, 1, 3, 2},
    {"rgba8", Kind::kColour, 1, 4, 0},
    {"bgra8", Kind::kColour, 1, 4, 2},
    {"8UC3", Kind::kColour, 1, 3, 2},
    {"8UC4", Kind::kColour, 1, 4, 2},
    {"rgb16", Kind::kColour, 2, 3, 0},
    {"bgr16", Kind::kColour, 2, 3, 2},
    {"mono8", Kind::kGrey, 1, 1, 0},
    {"8UC1", Kind::kGrey, 1, 1, 0},
    {"mono16", Kind::kGrey, 2, 1, 0},
    {"bayer_rggb8", Kind::kBayer, 1, 1, 0},
    {"bayer_grbg8", Kind::kBayer, 1, 1, 1},
    {"bayer_gbrg8", Kind::kBayer, 1, 1, 2},
    {"bayer_bggr8", Kind::kBayer, 1, 1, 3},
    {"bayer_rggb16", Kind::kBayer, 2, 1, 0},
    {"bayer_grbg16", Kind::kBayer, 2, 1, 1},
    {"bayer_gbrg16", Kind::kBayer, 2, 1, 2},
    {"bayer_bggr16", Kind::kBayer, 2, 1, 3},
    {"yuv422", Kind::kYuv422, 1, 2, 1},
    {"uyvy", Kind::kYuv422, 1, 2, 1},
    {"yuv422_yuy2", Kind::kYuv422, 1, 2, 0},
    {"yuyv", Kind::kYuv422, 1, 2, 0},
    {"nv12", Kind::kNv, 1, 1, 0},
    {"nv21", Kind::kNv, 1, 1, 1},
};

const Layout* find_layout(std::string_view name) {
  for (const Layout& layout : kLayouts) {
    if (layout.name == name) return &layout;
  }
  return nullptr;
}

std::uint8_t byte_of(int value) { return static_cast<std::uint8_t>(std::clamp(value, 0, 255)); }

void write_yuv(int y, int u, int v, std::uint8_t* rgb) {
  const int c = 298 * (y - 16) + 128, d = u - 128, e = v - 128;
  rgb[0] = byte_of((c + 409 * e) >> 8);
  rgb[1] = byte_of((c - 100 * d - 208 * e) >> 8);
  rgb[2] = byte_of((c + 516 * d) >> 8);
}

// sample(x, y) of a mosaic whose red lies at (red_x, red_y) of each square of two by two.
template <class Sample>
void demosaic_with(std::uint32_t red, Image& image, Sample&& sample) {
  const std::uint32_t red_x = red & 1, red_y = red >> 1;
  for (std::uint32_t y = 0; y < image.height; ++y) {
    // Mirrored at the border, which keeps the parity and so the colour.
    const std::uint32_t up = y == 0 ? 1 : y - 1, down = y + 1 == image.height ? y - 1 : y + 1;
    std::uint8_t* rgb = image.row(y);
    for (std::uint32_t x = 0; x < image.width; ++x, rgb += 3) {
      const std::uint32_t left = x == 0 ? 1 : x - 1, right = x + 1 == image.width ? x - 1 : x + 1;
      const int own = sample(x, y);
      const int vertical = sample(x, up) + sample(x, down), horizontal = sample(left, y) + sample(right, y);
      const int own_column = (vertical + 1) / 2, own_row = (horizontal + 1) / 2;
      const bool in_red_row = (y & 1) == red_y;
      if (((x & 1) == red_x) != in_red_row) {  // green
        rgb[0] = byte_of(in_red_row ? own_row : own_column);
        rgb[1] = byte_of(own);
        rgb[2] = byte_of(in_red_row ? own_column : own_row);
        continue;
      }
      const int diagonal = sample(left, up) + sample(right, up) + sample(left, down) + sample(right, down);
      const int across = (diagonal + 2) / 4;
      rgb[0] = byte_of(in_red_row ? own : across);
      rgb[1] = byte_of((vertical + horizontal + 2) / 4);
      rgb[2] = byte_of(in_red_row ? across : own);
    }
  }
}

}  // namespace

std::string convert(const log::RawImage& raw, Image& image, const char*& repaired) {
  const Layout* layout = find_layout(raw.encoding);
  if (layout == nullptr) {
    const bool depth = raw.encoding == "16UC1" || raw.encoding == "32FC1";
    return "the encoding '" + std::string(raw.encoding.substr(0, 40)) +
           (depth ? "' is a depth picture, not a camera's" : "' is not supported");
  }
  if (raw.width != image.width || raw.height != image.height) {
    return "the picture is " + std::to_string(raw.width) + "x" + std::to_string(raw.height) + ", the rig says " +
           std::to_string(image.width) + "x" + std::to_string(image.height);
  }
  const bool pairs = layout->kind == Kind::kYuv422 || layout->kind == Kind::kNv;
  if ((pairs && (raw.width % 2 != 0 || (layout->kind == Kind::kNv && raw.height % 2 != 0))) ||
      (layout->kind == Kind::kBayer && (raw.width < 2 || raw.height < 2))) {
    return std::string(raw.encoding) + " does not go with a size of " + std::to_string(raw.width) + "x" +
           std::to_string(raw.height);
  }
  const std::uint64_t row = std::uint64_t{raw.width} * layout->channels * layout->sample_bytes;
  const std::uint64_t rows = layout->kind == Kind::kNv ? std::uint64_t{raw.height} * 3 / 2 : raw.height;
  std::uint64_t step = raw.step;
  if (step < row && raw.data.size() == row * rows) {
    step = row;
    repaired = "the row step is too small; rows without gaps fill the data exactly";
  }
  if (step < row || step * (rows - 1) + row > raw.data.size()) {
    return "rows of " + std::to_string(row) + " bytes do not fit: step " + std::to_string(raw.step) + ", " +
           std::to_string(rows) + " rows, " + std::to_string(raw.data.size()) + " bytes of data";
  }
  const auto* data = reinterpret_cast<const std::uint8_t*>(raw.data.data());
  // The upper eight bits of a sample of sixteen.
  const std::uint32_t size = layout->sample_bytes, high = size == 2 && !raw.big_endian ? 1 : 0;
  const auto sample = [&](std::uint32_t index, std::uint32_t y) { return data[y * step + index * size + high]; };

  const std::uint32_t bytes = layout->kind == Kind::kGrey ? 1 : 3;
  image.format = layout->kind == Kind::kGrey ? PixelFormat::kMono8 : PixelFormat::kRgb8;
  image.row_pitch = Image::pitch_for(image.width, bytes);
  for (std::uint32_t y = 0; y < image.height; ++y) {
    std::memset(image.row(y) + image.width * bytes, 0, image.row_pitch - image.width * bytes);
  }
  if (layout->kind == Kind::kBayer) {
    demosaic_with(layout->first, image, [&](std::uint32_t x, std::uint32_t y) -> int { return sample(x, y); });
    return "";
  }
  for (std::uint32_t y = 0; y < image.height; ++y) {
    std::uint8_t* to = image.row(y);
    for (std::uint32_t x = 0; x < image.width; ++x, to += bytes) {
      switch (layout->kind) {
        case Kind::kGrey: to[0] = sample(x, y); break;
        case Kind::kColour: {
          const std::uint32_t pixel = x * layout->channels;
          to[0] = sample(pixel + layout->first, y);
          to[1] = sample(pixel + 1, y);
          to[2] = sample(pixel + 2 - layout->first, y);
          break;
        }
        case Kind::kYuv422: {
          const std::uint32_t pair = x / 2 * 4, chroma = 1 - layout->first;
          write_yuv(sample(x * 2 + layout->first, y), sample(pair + chroma, y), sample(pair + chroma + 2, y), to);
          break;
        }
        case Kind::kNv: {
          const std::uint32_t pair = x / 2 * 2, plane = image.height + y / 2;
          write_yuv(sample(x, y), sample(pair + layout->first, plane), sample(pair + 1 - layout->first, plane), to);
          break;
        }
        case Kind::kBayer: break;
      }
    }
  }
  return "";
}

bool demosaic(std::string_view encoding, const std::vector<std::uint8_t>& mosaic, Image& image) {
  const Layout* layout = find_layout(encoding);
  if (layout == nullptr || layout->kind != Kind::kBayer || image.width < 2 || image.height < 2) return false;
  demosaic_with(layout->first, image,
                [&](std::uint32_t x, std::uint32_t y) -> int { return mosaic[std::size_t{y} * image.width + x]; });
  return true;
}

}  // namespace takt::sensors
