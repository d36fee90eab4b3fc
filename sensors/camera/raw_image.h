// Uncompressed pictures as cameras publish them -> sensors::Image. Integer arithmetic only.
//
// encoding (names of sensor_msgs/image_encodings.h and foxglove.RawImage)            payload
//   rgb8 bgr8 rgba8 bgra8 8UC3 8UC4 (OpenCV: blue first) rgb16 bgr16                 RGB8
//   mono8 8UC1 mono16 (the upper eight bits)                                         mono8
//   bayer_{rggb,bggr,gbrg,grbg}{8,16}: bilinear, borders mirrored                    RGB8
//   yuv422 = uyvy, yuv422_yuy2 = yuyv, nv12, nv21: ITU-R BT.601, 16..235             RGB8
// 16UC1 and 32FC1 are depth, not light: refused.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sensors/logs/log_messages.h"
#include "sensors/messages/messages.h"

namespace takt::sensors {

// Fills `image` (room for RGB8 of its size) with format, pitch and rows, padding zeroed. Returns what is wrong, "" when
// the picture was converted. `repaired` is set when the row step was mended.
std::string convert(const log::RawImage& raw, Image& image, const char*& repaired);

// A mosaic of `image`'s size, rows without gaps, to RGB8. `encoding`: "bayer_rggb8", ... False for any other.
bool demosaic(std::string_view encoding, const std::vector<std::uint8_t>& mosaic, Image& image);

}  // namespace takt::sensors
