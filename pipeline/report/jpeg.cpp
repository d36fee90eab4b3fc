#include "pipeline/report/jpeg.h"

#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

// jpeglib.h needs size_t and FILE declared before it.
#include <jpeglib.h>

namespace takt::pipeline {
namespace {

// libjpeg reports errors through a callback that must not return.
struct EncoderErrors {
  jpeg_error_mgr manager;  // first: libjpeg sees only this
  std::jmp_buf escape;
  char message[JMSG_LENGTH_MAX];
};

extern "C" void takt_report_jpeg_error(j_common_ptr jpeg) {
  auto* errors = reinterpret_cast<EncoderErrors*>(jpeg->err);
  errors->manager.format_message(jpeg, errors->message);
  std::longjmp(errors->escape, 1);
}

// What the encoder allocates; freed by the caller whatever happens.
struct JpegBytes {
  unsigned char* data = nullptr;
  unsigned long size = 0;
  ~JpegBytes() { std::free(data); }
};

// False with errors.message when the encoder refuses. Nothing with a destructor lives in here: longjmp would skip it.
bool compress(const RgbPicture& picture, int quality, JpegBytes& out, EncoderErrors& errors) {
  jpeg_compress_struct jpeg{};
  jpeg.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = takt_report_jpeg_error;
  if (setjmp(errors.escape) != 0) {
    jpeg_destroy_compress(&jpeg);
    return false;
  }
  jpeg_create_compress(&jpeg);
  jpeg_mem_dest(&jpeg, &out.data, &out.size);
  jpeg.image_width = picture.width;
  jpeg.image_height = picture.height;
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, quality, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    const JSAMPLE* row = picture.pixels.data() + std::size_t{3} * picture.width * jpeg.next_scanline;
    JSAMPROW rows[1] = {const_cast<JSAMPROW>(row)};
    jpeg_write_scanlines(&jpeg, rows, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  return true;
}

}  // namespace

RgbPicture shrunk(const RgbPicture& picture, std::uint32_t most_width) {
  const std::uint32_t factor = most_width == 0 ? 1 : (picture.width + most_width - 1) / most_width;
  if (factor <= 1) return picture;
  RgbPicture out;
  out.width = picture.width / factor;
  out.height = picture.height / factor;
  out.pixels.resize(std::size_t{3} * out.width * out.height);
  for (std::uint32_t y = 0; y < out.height; ++y) {
    for (std::uint32_t x = 0; x < out.width; ++x) {
      for (std::uint32_t c = 0; c < 3; ++c) {
        std::uint32_t sum = 0;
        for (std::uint32_t dy = 0; dy < factor; ++dy) {
          for (std::uint32_t dx = 0; dx < factor; ++dx) {
            sum += picture.pixels[(std::size_t{y * factor + dy} * picture.width + x * factor + dx) * 3 + c];
          }
        }
        out.pixels[(std::size_t{y} * out.width + x) * 3 + c] = static_cast<std::uint8_t>(sum / (factor * factor));
      }
    }
  }
  return out;
}

Result<std::string> encode_jpeg(const RgbPicture& picture, int quality) {
  if (picture.width == 0 || picture.height == 0 ||
      picture.pixels.size() != std::size_t{3} * picture.width * picture.height) {
    return fail(Code::kInternal, "picture without pixels");
  }
  JpegBytes bytes;
  EncoderErrors errors;
  if (!compress(picture, quality, bytes, errors)) {
    return fail(Code::kInternal, std::string("JPEG encoder: ") + errors.message);
  }
  return std::string(reinterpret_cast<const char*>(bytes.data), bytes.size);
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
