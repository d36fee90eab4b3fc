#include "pipeline/report/rgb_picture.h"

namespace takt::pipeline {

RgbPicture shrunk(const RgbPicture& picture, std::uint32_t most_width) {
  const std::uint32_t factor = most_width == 0 ? 1 : (picture.width + most_width - 1) / most_width;
  if (factor <= 1) return picture;
  RgbPicture out;
  out.width = picture.width / factor;
  out.height = picture.height / factor;
  out.pixels.resize(std::size_t{3} * out.width * out.height);
  for (std::size_t y = 0; y < out.height; ++y) {
    for (std::size_t x = 0; x < out.width; ++x) {
      for (std::uint32_t c = 0; c < 3; ++c) {
        std::uint32_t sum = 0;
        for (std::uint32_t dy = 0; dy < factor; ++dy) {
          for (std::uint32_t dx = 0; dx < factor; ++dx) {
            sum += picture.pixels[((y * factor + dy) * picture.width + x * factor + dx) * 3 + c];
          }
        }
        out.pixels[(y * out.width + x) * 3 + c] = static_cast<std::uint8_t>(sum / (factor * factor));
      }
    }
  }
  return out;
}

std::string data_uri(std::string_view media_type, std::string_view bytes) {
  // RFC 4648, section 4.
  constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out = "data:" + std::string(media_type) + ";base64,";
  out.reserve(out.size() + bytes.size() * 4 / 3 + 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = bytes.size() - i;
    const auto byte = [&](std::size_t k) -> std::uint32_t {
      return k < left ? static_cast<unsigned char>(bytes[i + k]) : 0U;
    };
    const std::uint32_t word = byte(0) << 16 | byte(1) << 8 | byte(2);
    out += kAlphabet[word >> 18 & 63];
    out += kAlphabet[word >> 12 & 63];
    out += left > 1 ? kAlphabet[word >> 6 & 63] : '=';
    out += left > 2 ? kAlphabet[word & 63] : '=';
  }
  return out;
}

}  // namespace takt::pipeline
