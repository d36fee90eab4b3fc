#include "sensors/camera/camera_decoder.h"

#include <png.h>

#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstring>

// jpeglib.h needs size_t and FILE declared before it.
#include <jerror.h>
#include <jpeglib.h>

#include "sensors/camera/raw_image.h"
#include "sensors/logs/channel_messages.h"
#include "sensors/messages/messages.h"

namespace takt::sensors {
namespace {

std::string size_text(std::uint64_t width, std::uint64_t height) {
  return std::to_string(width) + "x" + std::to_string(height);
}

// libjpeg reports errors through callbacks and leaves by longjmp; warnings mean damaged data.
struct JpegErrors {
  jpeg_error_mgr manager;  // first: libjpeg sees only this
  std::jmp_buf escape;
  char message[JMSG_LENGTH_MAX];
};

extern "C" {
void takt_jpeg_error(j_common_ptr jpeg) {
  auto* errors = reinterpret_cast<JpegErrors*>(jpeg->err);
  errors->manager.format_message(jpeg, errors->message);
  std::longjmp(errors->escape, 1);
}
void takt_jpeg_message(j_common_ptr jpeg, int level) {
  auto* errors = reinterpret_cast<JpegErrors*>(jpeg->err);
  if (level >= 0) return;  // trace
  if (errors->manager.num_warnings++ == 0) errors->manager.format_message(jpeg, errors->message);
}
}

class CameraDecoder final : public Decoder {
 public:
  CameraDecoder(const RigSensor& sensor, MessageDecoder<log::CompressedImage> read)
      : Decoder(payload_schema(sensor.kind), sensors::payload_capacity(sensor)),
        read_(std::move(read)),
        width_(sensor.camera->width),
        height_(sensor.camera->height) {
    jpeg_.err = jpeg_std_error(&errors_.manager);
    errors_.manager.error_exit = takt_jpeg_error;
    errors_.manager.emit_message = takt_jpeg_message;
    errors_.message[0] = 0;
    jpeg_create_decompress(&jpeg_);
  }
  CameraDecoder(const CameraDecoder&) = delete;
  CameraDecoder& operator=(const CameraDecoder&) = delete;
  ~CameraDecoder() override { jpeg_destroy_decompress(&jpeg_); }

  DecodeReport decode(std::span<const std::byte> message, std::span<std::byte> payload) override {
    DecodeReport report;
    if (payload.size() < payload_capacity()) {
      report.reason = "the chunk is smaller than the payload";
      return report;
    }
    const auto decoded = read_(message);
    if (!decoded) {
      report.reason = decoded.error().message;
      return report;
    }
    std::memset(payload.data(), 0, 64);
    auto& image = *new (payload.data()) Image;
    image.width = width_;
    image.height = height_;
    image.row_pitch = Image::pitch_for(width_, 3);

    const auto data = decoded->data;
    const auto starts_with = [&](std::string_view magic) {
      return data.size() >= magic.size() && std::memcmp(data.data(), magic.data(), magic.size()) == 0;
    };
    // The first bytes decide; the format field is often wrong in recorded data.
    if (starts_with("\xff\xd8\xff")) {
      report.reason = read_jpeg(data, image);
      if (report.reason.empty() && decoded->format.starts_with("bayer_")) colour(decoded->format, image);
    } else if (starts_with("\x89PNG\r\n\x1a\n")) {
      report.reason = read_png(data, image);
    } else if (data.empty()) {
      report.reason = "the picture is empty";
    } else {
      report.reason = "the picture is neither JPEG nor PNG (its format field says '" +
                      std::string(decoded->format.substr(0, 40)) + "')";
    }
    if (!report.reason.empty()) return report;
    for (std::uint32_t y = 0; y < height_; ++y) std::memset(image.row(y) + width_ * 3, 0, image.row_pitch - width_ * 3);
    report.ok = true;
    report.stamp = decoded->stamp;
    report.payload_bytes = payload_capacity();
    return report;
  }

 private:
  // What is wrong, "" when the picture was read. Nothing with a destructor may live across the longjmp.
  std::string read_jpeg(std::span<const std::byte> data, Image& image) {
    if (!run_jpeg(data, image)) {
      std::string reason = other_size_ ? "the picture is " + size_text(jpeg_.image_width, jpeg_.image_height) +
                                             ", the rig says " + size_text(width_, height_)
                                       : std::string("JPEG: ") + errors_.message;
      jpeg_abort_decompress(&jpeg_);
      return reason;
    }
    return "";
  }

  bool run_jpeg(std::span<const std::byte> data, Image& image) {
    other_size_ = false;
    errors_.manager.num_warnings = 0;
    if (setjmp(errors_.escape) != 0) return false;
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(data.data()), data.size());
    jpeg_read_header(&jpeg_, TRUE);
    if (jpeg_.image_width != width_ || jpeg_.image_height != height_) {
      other_size_ = true;
      return false;
    }
    jpeg_.out_color_space = JCS_RGB;
    jpeg_.dct_method = JDCT_ISLOW;
    jpeg_start_decompress(&jpeg_);
    while (jpeg_.output_scanline < height_) {
      JSAMPROW row = image.row(jpeg_.output_scanline);
      jpeg_read_scanlines(&jpeg_, &row, 1);
      if (errors_.manager.num_warnings != 0) return false;  // damaged: the rest would be guesswork
    }
    jpeg_finish_decompress(&jpeg_);
    return errors_.manager.num_warnings == 0;
  }

  // A mosaic is packed as a grey picture: "bayer_rggb8; jpeg compressed ".
  void colour(std::string_view format, Image& image) {
    if (jpeg_.num_components != 1) return;
    mosaic_.resize(std::size_t{width_} * height_);
    for (std::uint32_t y = 0; y < height_; ++y) {
      for (std::uint32_t x = 0; x < width_; ++x) mosaic_[std::size_t{y} * width_ + x] = image.row(y)[x * 3];
    }
    demosaic(format.substr(0, format.find(';')), mosaic_, image);
  }

  std::string read_png(std::span<const std::byte> data, Image& image) const {
    png_image png{};
    png.version = PNG_IMAGE_VERSION;
    if (png_image_begin_read_from_memory(&png, data.data(), data.size()) == 0)
      return std::string("PNG: ") + png.message;
    if (png.width != width_ || png.height != height_) {
      const std::string size = size_text(png.width, png.height);
      png_image_free(&png);
      return "the picture is " + size + ", the rig says " + size_text(width_, height_);
    }
    png.format = PNG_FORMAT_RGB;
    const png_color black{0, 0, 0};  // behind transparent pixels
    png_image_finish_read(&png, &black, image.row(0), static_cast<png_int_32>(image.row_pitch), nullptr);
    if (PNG_IMAGE_FAILED(png)) return std::string("PNG: ") + png.message;
    return png.warning_or_error == 0 ? "" : std::string("PNG: ") + png.message;
  }

  MessageDecoder<log::CompressedImage> read_;
  std::uint32_t width_, height_;
  std::vector<std::uint8_t> mosaic_;
  jpeg_decompress_struct jpeg_{};
  JpegErrors errors_{};
  bool other_size_ = false;
};

class RawCameraDecoder final : public Decoder {
 public:
  RawCameraDecoder(const RigSensor& sensor, MessageDecoder<log::RawImage> read)
      : Decoder(payload_schema(sensor.kind), sensors::payload_capacity(sensor)),
        read_(std::move(read)),
        width_(sensor.camera->width),
        height_(sensor.camera->height) {}

  DecodeReport decode(std::span<const std::byte> message, std::span<std::byte> payload) override {
    DecodeReport report;
    if (payload.size() < payload_capacity()) {
      report.reason = "the chunk is smaller than the payload";
      return report;
    }
    const auto decoded = read_(message);
    if (!decoded) {
      report.reason = decoded.error().message;
      return report;
    }
    std::memset(payload.data(), 0, 64);
    auto& image = *new (payload.data()) Image;
    image.width = width_;
    image.height = height_;
    report.reason = convert(*decoded, image, report.repaired);
    if (!report.reason.empty()) return report;
    report.ok = true;
    report.stamp = decoded->stamp;
    report.payload_bytes = Image::bytes_for(width_, height_, image.format == PixelFormat::kMono8 ? 1 : 3);
    return report;
  }

 private:
  MessageDecoder<log::RawImage> read_;
  std::uint32_t width_, height_;
};

#define TAKT_TEXT_INNER_(x) #x
#define TAKT_TEXT_(x) TAKT_TEXT_INNER_(x)

}  // namespace

Result<std::unique_ptr<Decoder>> make_camera_decoder(const RigSensor& sensor, const LogChannel& channel) {
  if (sensor.kind != SensorKind::kCamera || !sensor.camera) {
    return fail(Code::kConfiguration, "sensor " + sensor.name + " is no camera with a model");
  }
  if (holds_raw_images(channel)) {
    TAKT_ASSIGN(auto read, raw_image_decoder(channel));
    return std::make_unique<RawCameraDecoder>(sensor, std::move(read));
  }
  TAKT_ASSIGN(auto read, compressed_image_decoder(channel));
  return std::make_unique<CameraDecoder>(sensor, std::move(read));
}

Result<std::unique_ptr<Decoder>> make_camera_decoder(const RigSensor& sensor) {
  return make_camera_decoder(sensor, LogChannel{});
}

std::string jpeg_library_version() { return "libjpeg-turbo " TAKT_TEXT_(LIBJPEG_TURBO_VERSION); }

}  // namespace takt::sensors
