#include "pipeline/report/jpeg.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "sensors/camera/camera_decoder.h"
#include "sensors/logs/encode.h"
#include "sensors/messages/messages.h"

namespace takt::pipeline {
namespace {

RgbPicture ramp(std::uint32_t width, std::uint32_t height) {
  RgbPicture out{width, height, {}};
  for (std::uint32_t y = 0; y < height; ++y) {
    for (std::uint32_t x = 0; x < width; ++x) {
      out.pixels.push_back(static_cast<std::uint8_t>(x * 255 / width));
      out.pixels.push_back(static_cast<std::uint8_t>(y * 255 / height));
      out.pixels.push_back(90);
    }
  }
  return out;
}

TEST(Jpeg, ComesBackThroughTheCameraDecoder) {
  const RgbPicture picture = ramp(64, 48);
  const auto jpeg = encode_jpeg(picture, 95);
  ASSERT_TRUE(jpeg) << jpeg.error().message;
  sensors::RigSensor sensor;
  sensor.kind = sensors::SensorKind::kCamera;
  sensor.camera = sensors::CameraModel{64, 48, 50, 50, 32, 24, {}};
  const auto decoder = sensors::make_camera_decoder(sensor);
  ASSERT_TRUE(decoder);
  const std::string message =
      sensors::encode(sensors::log::CompressedImage{{1}, "cam", "jpeg", std::as_bytes(std::span(*jpeg))});
  alignas(64) static std::byte payload[64 * 1024];
  ASSERT_LE((*decoder)->payload_capacity(), sizeof payload);
  ASSERT_TRUE((*decoder)->decode(std::as_bytes(std::span(message)), payload).ok);
  const auto& image = *reinterpret_cast<const sensors::Image*>(payload);
  ASSERT_EQ(image.width, 64U);
  for (std::uint32_t y = 0; y < 48; y += 7) {
    for (std::uint32_t x = 0; x < 64; x += 7) {
      for (std::uint32_t c = 0; c < 3; ++c) {
        EXPECT_NEAR(image.row(y)[3 * x + c], picture.pixels[(y * 64 + x) * 3 + c], 12) << x << " " << y << " " << c;
      }
    }
  }
}

TEST(Jpeg, RefusesPicturesWithoutPixels) {
  EXPECT_FALSE(encode_jpeg({}, 80));
  EXPECT_FALSE(encode_jpeg({70000, 1, std::vector<std::uint8_t>(210000)}, 80)) << "wider than JPEG allows";
}

TEST(Jpeg, ShrinksByWholeFactors) {
  const RgbPicture small = shrunk(ramp(100, 50), 40);
  EXPECT_EQ(small.width, 33U);
  EXPECT_EQ(small.height, 16U);
  EXPECT_NEAR(small.pixels[0], (0 + 2 + 5) / 3, 1);
  EXPECT_EQ(shrunk(ramp(30, 20), 40).width, 30U);
}

TEST(DataUri, EncodesEveryLengthOfTail) {
  EXPECT_EQ(data_uri("a/b", ""), "data:a/b;base64,");
  EXPECT_EQ(data_uri("a/b", "f"), "data:a/b;base64,Zg==");
  EXPECT_EQ(data_uri("a/b", "fo"), "data:a/b;base64,Zm8=");
  EXPECT_EQ(data_uri("a/b", "foobar\xff"), "data:a/b;base64,Zm9vYmFy/w==");
}

}  // namespace
}  // namespace takt::pipeline
