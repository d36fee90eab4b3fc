#include "sensors/camera/jpeg_encoder.h"

#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

// jpeglib.h needs size_t and FILE declared before it.
#include <jpeglib.h>

namespace takt::sensors {
namespace {

// libjpeg reports errors through a callback that must not return.
struct EncoderErrors {
  jpeg_error_mgr manager;  // first: libjpeg sees only this
  std::jmp_buf escape;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void leave(j_common_ptr info) {
  auto* errors = reinterpret_cast<EncoderErrors*>(info->err);
  errors->manager.format_message(info, errors->message);
  std::longjmp(errors->escape, 1);
}

// Everything that lives across longjmp is plain data owned by the caller.
bool compress(const std::uint8_t* rgb, std::uint32_t width, std::uint32_t height, int quality, unsigned char** bytes,
              unsigned long* size, EncoderErrors* errors) {
  jpeg_compress_struct info;
  info.err = jpeg_std_error(&errors->manager);
  errors->manager.error_exit = leave;
  if (setjmp(errors->escape) != 0) {
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

Result<std::string> encode_jpeg(std::span<const std::uint8_t> rgb, std::uint32_t width, std::uint32_t height,
                                int quality) {
  if (rgb.empty() || rgb.size() != std::size_t{3} * width * height) {
    return fail(Code::kInternal, "a picture whose pixels do not fit its size");
  }
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  EncoderErrors errors;
  const bool done = compress(rgb.data(), width, height, quality, &bytes, &size, &errors);
  std::string out;
  if (done) out.assign(reinterpret_cast<const char*>(bytes), size);
  std::free(bytes);
  if (!done) return fail(Code::kInternal, std::string("JPEG encoder: ") + errors.message);
  return out;
}

}  // namespace takt::sensors
