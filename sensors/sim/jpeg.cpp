#include "sensors/sim/jpeg.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>

#include <jpeglib.h>

#define TAKT_TEXT_(x) #x
#define TAKT_TEXT(x) TAKT_TEXT_(x)

namespace takt::sensors::sim {
namespace {

struct ErrorManager {
  jpeg_error_mgr base;
  std::jmp_buf back;
};
[[noreturn]] void leave(j_common_ptr info) { std::longjmp(reinterpret_cast<ErrorManager*>(info->err)->back, 1); }

// Everything that lives across longjmp is plain data owned by the caller.
bool compress(const std::uint8_t* rgb, std::uint32_t width, std::uint32_t height, int quality, unsigned char** bytes,
              unsigned long* size) {
  jpeg_compress_struct info;
  ErrorManager error;
  info.err = jpeg_std_error(&error.base);
  error.base.error_exit = leave;
  if (setjmp(error.back) != 0) {
    jpeg_destroy_compress(&info);
    return false;
  }
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, bytes, size);
  info.image_width = width;
  info.image_height = height;
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  info.dct_method = JDCT_ISLOW;
  info.optimize_coding = TRUE;
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < height) {
    auto* row = const_cast<JSAMPLE*>(rgb + std::size_t{info.next_scanline} * width * 3);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  return true;
}

}  // namespace

Result<std::string> encode_jpeg(const std::vector<std::uint8_t>& rgb, std::uint32_t width, std::uint32_t height,
                                int quality) {
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const bool done = compress(rgb.data(), width, height, quality, &bytes, &size);
  std::string out;
  if (done) out.assign(reinterpret_cast<const char*>(bytes), size);
  std::free(bytes);
  if (!done) return fail(Code::kInternal, "the JPEG encoder refused a picture");
  return out;
}

std::string jpeg_library() { return "libjpeg-turbo " TAKT_TEXT(LIBJPEG_TURBO_VERSION); }

}  // namespace takt::sensors::sim
