// JPEG encoding for simulated drives and reports (libjpeg-turbo, accurate integer DCT: equal bytes for equal library
// versions, see jpeg_library_version()).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/status.h"

namespace takt::sensors {

// RGB8, rows without padding; quality 1..100. kInternal when the size does not fit the pixels, or the encoder refuses
// (a side above 65500 pixels).
Result<std::string> encode_jpeg(std::span<const std::uint8_t> rgb, std::uint32_t width, std::uint32_t height,
                                int quality);

}  // namespace takt::sensors
