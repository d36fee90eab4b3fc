#include "pipeline/report/rgb_picture.h"

#include <gtest/gtest.h>

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

TEST(RgbPicture, ShrinksByWholeFactors) {
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
