// Pictures are made by libjpeg and libpng here, decoded by takt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <jpeglib.h>

#include "sensors/camera/camera_decoder.h"
#include "sensors/camera/jpeg_encoder.h"
#include "sensors/logs/encode.h"

namespace takt::sensors {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::uint32_t kWidth = 50, kHeight = 20;  // 150 bytes a row: the pitch is 192

RigSensor camera_sensor() {
  RigSensor sensor;
  sensor.name = "front";
  sensor.kind = SensorKind::kCamera;
  sensor.camera = CameraModel{kWidth, kHeight, 100, 100, 25, 10, {}};
  return sensor;
}

std::vector<unsigned char> picture(std::uint32_t width = kWidth, std::uint32_t height = kHeight) {
  std::vector<unsigned char> rgb;
  for (std::uint32_t y = 0; y < height; ++y) {
    for (std::uint32_t x = 0; x < width; ++x) {
      rgb.push_back(static_cast<unsigned char>(x * 5));
      rgb.push_back(static_cast<unsigned char>(y * 12));
      rgb.push_back(static_cast<unsigned char>(x < 25 ? 20 : 220));
    }
  }
  return rgb;
}

std::string jpeg(const std::vector<unsigned char>& pixels, std::uint32_t width = kWidth, int components = 3) {
  jpeg_compress_struct c{};
  jpeg_error_mgr errors{};
  c.err = jpeg_std_error(&errors);
  jpeg_create_compress(&c);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&c, &out, &size);
  c.image_width = width;
  c.image_height = static_cast<JDIMENSION>(pixels.size() / width / static_cast<std::size_t>(components));
  c.input_components = components;
  c.in_color_space = components == 3 ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_set_defaults(&c);
  jpeg_set_quality(&c, 95, TRUE);
  jpeg_start_compress(&c, TRUE);
  std::vector<unsigned char> copy = pixels;
  while (c.next_scanline < c.image_height) {
    JSAMPROW row = copy.data() + std::size_t{c.next_scanline} * width * static_cast<std::size_t>(components);
    jpeg_write_scanlines(&c, &row, 1);
  }
  jpeg_finish_compress(&c);
  jpeg_destroy_compress(&c);
  std::string bytes(reinterpret_cast<char*>(out), size);
  std::free(out);
  return bytes;
}

std::string png(const std::vector<unsigned char>& pixels, std::uint32_t width = kWidth, int format = PNG_FORMAT_RGB) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.format = static_cast<png_uint_32>(format);
  image.width = width;
  image.height = static_cast<png_uint_32>(pixels.size() / (width * PNG_IMAGE_PIXEL_CHANNELS(image.format)));
  png_alloc_size_t size = 0;
  EXPECT_NE(png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr), 0);
  std::string bytes(size, '\0');
  EXPECT_NE(png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels.data(), 0, nullptr), 0);
  return bytes;
}

class CameraDecoderTest : public ::testing::Test {
 protected:
  DecodeReport decode(const std::string& data, std::string_view format = "jpeg") {
    std::memset(payload(), 0xEE, decoder_->payload_capacity());  // a used chunk
    const std::string message = encode(log::CompressedImage{{123}, "camera", format, std::as_bytes(std::span(data))});
    return decoder_->decode(std::as_bytes(std::span(message)), {payload(), decoder_->payload_capacity()});
  }
  std::byte* payload() { return storage_.get(); }
  const Image& image() { return *reinterpret_cast<const Image*>(payload()); }

  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<Decoder> decoder_ = make_camera_decoder(camera_sensor()).value();
  std::unique_ptr<std::byte, Free> storage_{static_cast<std::byte*>(std::aligned_alloc(64, 64 * 100))};
};

TEST_F(CameraDecoderTest, TaktsOwnJpegComesBack) {
  const std::vector<unsigned char> sent = picture();
  const auto bytes = encode_jpeg(sent, kWidth, kHeight, 95);
  ASSERT_TRUE(bytes) << bytes.error().message;
  EXPECT_EQ(*bytes, *encode_jpeg(sent, kWidth, kHeight, 95));
  const auto report = decode(*bytes);
  ASSERT_TRUE(report.ok) << report.reason;
  for (std::uint32_t y = 0; y < kHeight; ++y) {
    for (std::uint32_t x = 0; x < kWidth; ++x) {
      if (x > 16 && x < 32) continue;  // blocks with the edge ring
      for (std::uint32_t c = 0; c < 3; ++c) {
        EXPECT_NEAR(image().row(y)[3 * x + c], sent[(y * kWidth + x) * 3 + c], 12) << x << " " << y << " " << c;
      }
    }
  }
}

TEST(JpegEncoder, RefusesWhatIsNoPicture) {
  EXPECT_FALSE(encode_jpeg({}, 0, 0, 80));
  EXPECT_FALSE(encode_jpeg(std::vector<std::uint8_t>(30), 5, 3, 80)) << "too few pixels";
  const auto wide = encode_jpeg(std::vector<std::uint8_t>(210000), 70000, 1, 80);
  ASSERT_FALSE(wide);
  EXPECT_THAT(wide.error().message, HasSubstr("65500")) << "wider than JPEG allows";
}

TEST_F(CameraDecoderTest, PngIsExactAndPaddingZero) {
  ASSERT_LE(decoder_->payload_capacity(), 6400u);
  const auto rgb = picture();
  const auto report = decode(png(rgb), "jpeg");  // the format field lies, the first bytes decide
  ASSERT_TRUE(report.ok) << report.reason;
  EXPECT_EQ(report.stamp.ns, 123);
  EXPECT_EQ(report.payload_bytes, 64u + 192u * kHeight);
  EXPECT_EQ(image().width, kWidth);
  EXPECT_EQ(image().height, kHeight);
  EXPECT_EQ(image().row_pitch, 192u);
  EXPECT_EQ(image().format, PixelFormat::kRgb8);
  for (std::uint32_t y = 0; y < kHeight; ++y) {
    EXPECT_EQ(std::memcmp(image().row(y), rgb.data() + y * kWidth * 3, kWidth * 3), 0) << y;
    for (std::uint32_t i = kWidth * 3; i < 192; ++i) ASSERT_EQ(image().row(y)[i], 0) << y << " " << i;
  }
  for (std::size_t i = sizeof(Image); i < 64; ++i) EXPECT_EQ(payload()[i], std::byte{0});
}

TEST_F(CameraDecoderTest, JpegIsCloseAndRepeatable) {
  const auto rgb = picture();
  const std::string data = jpeg(rgb);
  ASSERT_TRUE(decode(data).ok) << decode(data).reason;
  const std::string first(reinterpret_cast<const char*>(payload()), decoder_->payload_capacity());
  double error = 0;
  for (std::uint32_t y = 0; y < kHeight; ++y) {
    for (std::uint32_t i = 0; i < kWidth * 3; ++i) error += std::abs(image().row(y)[i] - rgb[y * kWidth * 3 + i]);
    for (std::uint32_t i = kWidth * 3; i < 192; ++i) ASSERT_EQ(image().row(y)[i], 0);
  }
  EXPECT_LT(error / (kWidth * kHeight * 3), 12);
  EXPECT_TRUE(decode(png(rgb)).ok);
  EXPECT_TRUE(decode(data).ok);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(payload()), decoder_->payload_capacity()), first);
}

TEST_F(CameraDecoderTest, GreyBecomesRgb) {
  ASSERT_TRUE(decode(jpeg(std::vector<unsigned char>(kWidth * kHeight, 77), kWidth, 1)).ok);
  EXPECT_EQ(image().row(3)[30], 77);
  EXPECT_EQ(image().row(3)[31], 77);
  ASSERT_TRUE(decode(png(std::vector<unsigned char>(kWidth * kHeight, 78), kWidth, PNG_FORMAT_GRAY)).ok);
  EXPECT_EQ(image().row(3)[32], 78);
}

TEST_F(CameraDecoderTest, CutPictureIsABadFrameAtEveryLength) {
  for (const std::string& whole : {jpeg(picture()), png(picture())}) {
    ASSERT_TRUE(decode(whole).ok);
    for (std::size_t cut = 0; cut + 2 < whole.size(); ++cut) {
      const auto report = decode(whole.substr(0, cut));
      // libpng does not need the closing record once all rows are there.
      if (whole[0] == '\x89' && cut + 12 >= whole.size()) continue;
      ASSERT_FALSE(report.ok) << "cut at byte " << cut << " of " << whole.size();
      ASSERT_FALSE(report.reason.empty());
    }
    EXPECT_TRUE(decode(whole).ok) << "the decoder works on after bad frames";
  }
}

TEST_F(CameraDecoderTest, ReasonsAreClear) {
  const std::string whole = jpeg(picture());
  EXPECT_EQ(decode(whole.substr(0, whole.size() - 50)).reason, "JPEG: Premature end of JPEG file");
  EXPECT_EQ(decode("").reason, "the picture is empty");
  EXPECT_EQ(decode("RIFFxxxxWEBP", "webp").reason,
            "the picture is neither JPEG nor PNG (its format field says 'webp')");
  EXPECT_EQ(decode(jpeg(picture(64, 8), 64)).reason, "the picture is 64x8, the rig says 50x20");
  EXPECT_EQ(decode(png(picture(64, 8), 64)).reason, "the picture is 64x8, the rig says 50x20");
  std::string corrupt = whole;
  for (std::size_t i = whole.size() * 2 / 3; i < whole.size() * 2 / 3 + 40; ++i) corrupt[i] = '\xff';
  EXPECT_THAT(decode(corrupt).reason, StartsWith("JPEG: "));
  std::string bad_png = png(picture());
  bad_png[bad_png.size() / 2] = static_cast<char>(bad_png[bad_png.size() / 2] ^ 0x10);
  EXPECT_THAT(decode(bad_png).reason, StartsWith("PNG: "));
  EXPECT_THAT(
      decoder_->decode(std::as_bytes(std::span("\x12\x7f", 2)), {payload(), decoder_->payload_capacity()}).reason,
      HasSubstr("exceeds the bytes left"));
}

TEST(CameraDecoder, NeedsACamera) {
  RigSensor sensor = camera_sensor();
  sensor.camera.reset();
  EXPECT_EQ(make_camera_decoder(sensor).error().code, Code::kConfiguration);
  EXPECT_THAT(jpeg_library_version(), ::testing::MatchesRegex("libjpeg-turbo [0-9]+\\.[0-9.]+"));
}

}  // namespace
}  // namespace takt::sensors
