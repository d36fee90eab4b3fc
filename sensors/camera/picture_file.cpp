#include "sensors/camera/picture_file.h"

#include <cstdlib>
#include <optional>
#include <string_view>

#include "runtime/base/file.h"
#include "runtime/base/sizes.h"
#include "sensors/camera/camera_decoder.h"
#include "sensors/logs/encode.h"

namespace takt::sensors {
namespace {

constexpr std::uint32_t kMostPixels = 8192;  // of each extent

struct Size {
  std::uint32_t width = 0, height = 0;
};

std::uint32_t big_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

// Frame header of a JPEG: marker SOFn, length, precision, height, width (ITU-T T.81, B.2.2).
std::optional<Size> jpeg_size(std::string_view file) {
  std::size_t at = 2;
  while (at + 9 <= file.size()) {
    const auto marker = static_cast<unsigned char>(file[at + 1]);
    if (file[at] != '\xff') return std::nullopt;
    if (marker == 0xff) {  // fill byte
      ++at;
      continue;
    }
    const bool frame = marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
    if (frame) return Size{big_endian(file.substr(at + 7, 2)), big_endian(file.substr(at + 5, 2))};
    at += 2 + std::size_t{big_endian(file.substr(at + 2, 2))};
  }
  return std::nullopt;
}

std::optional<Size> size_of(std::string_view file) {
  if (file.starts_with("\xff\xd8\xff")) return jpeg_size(file);
  // PNG: signature, then the IHDR chunk with width and height.
  if (file.starts_with("\x89PNG\r\n\x1a\n") && file.size() >= 24) {
    return Size{big_endian(file.substr(16, 4)), big_endian(file.substr(20, 4))};
  }
  return std::nullopt;
}

}  // namespace

void PictureFile::Free::operator()(std::byte* p) const { std::free(p); }

Result<PictureFile> PictureFile::read(const std::string& path) {
  const Result<std::string> file = read_file(path);
  if (!file) return fail(file.error());
  return parse(std::as_bytes(std::span(*file)), path);
}

Result<PictureFile> PictureFile::parse(std::span<const std::byte> file, const std::string& name) {
  const std::optional<Size> size = size_of({reinterpret_cast<const char*>(file.data()), file.size()});
  if (!size) return fail(Code::kInput, name + ": neither a JPEG nor a PNG picture, or cut in its header");
  if (size->width == 0 || size->height == 0 || size->width > kMostPixels || size->height > kMostPixels) {
    return fail(Code::kInput, name + ": a picture of " + std::to_string(size->width) + "x" +
                                  std::to_string(size->height) + " pixels; 1 to " + std::to_string(kMostPixels) +
                                  " of each are read");
  }
  RigSensor sensor;
  sensor.camera.emplace();
  sensor.camera->width = size->width;
  sensor.camera->height = size->height;
  TAKT_ASSIGN(const auto decoder, make_camera_decoder(sensor));
  PictureFile out;
  out.bytes_ = decoder->payload_capacity();
  const std::uint64_t room = round_up(out.bytes_, 64);
  out.payload_.reset(static_cast<std::byte*>(std::aligned_alloc(64, room)));
  if (!out.payload_) return fail(Code::kEnvironment, name + ": no memory for " + std::to_string(room) + " bytes");
  const std::string message = encode(log::CompressedImage{{}, "", "", file});
  const DecodeReport report = decoder->decode(std::as_bytes(std::span(message)), {out.payload_.get(), room});
  if (!report.ok) return fail(Code::kInput, name + ": " + report.reason);
  return out;
}

}  // namespace takt::sensors
