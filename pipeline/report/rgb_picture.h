// Pictures of the report on their way into it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace takt::pipeline {

// 8-bit RGB, rows without padding.
struct RgbPicture {
  std::uint32_t width = 0, height = 0;
  std::vector<std::uint8_t> pixels;  // 3 * width * height
};

// Shrinks by a whole factor (mean of factor x factor pixels) until the width is at most `most_width`.
RgbPicture shrunk(const RgbPicture& picture, std::uint32_t most_width);

// "data:MEDIA_TYPE;base64,...".
std::string data_uri(std::string_view media_type, std::string_view bytes);

}  // namespace takt::pipeline
