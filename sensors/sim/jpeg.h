// JPEG encoding of simulated pictures (libjpeg-turbo, accurate integer DCT: equal bytes for equal library versions).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace takt::sensors::sim {

// RGB8 without padding; quality 1..100. kInternal when the encoder refuses.
Result<std::string> encode_jpeg(const std::vector<std::uint8_t>& rgb, std::uint32_t width, std::uint32_t height,
                                int quality);
// For example "libjpeg-turbo 2.1.5": pictures are comparable byte for byte within one version only.
std::string jpeg_library();

}  // namespace takt::sensors::sim
