#include "sensors/camera/picture_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include <jpeglib.h>

namespace takt::sensors {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t kWidth = 33, kHeight = 21;

std::vector<unsigned char> pixels() {
  std::vector<unsigned char> rgb;
  for (std::uint32_t i = 0; i < 3 * kWidth * kHeight; ++i) rgb.push_back(static_cast<unsigned char>(i * 7));
  return rgb;
}
std::string png() {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = kWidth;
  image.height = kHeight;
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t bytes = 0;
  const auto rgb = pixels();
  png_image_write_to_memory(&image, nullptr, &bytes, 0, rgb.data(), 0, nullptr);
  std::string out(bytes, '\0');
  EXPECT_NE(png_image_write_to_memory(&image, out.data(), &bytes, 0, rgb.data(), 0, nullptr), 0);
  return out;
}
std::string jpeg() {
  jpeg_compress_struct c{};
  jpeg_error_mgr errors{};
  c.err = jpeg_std_error(&errors);
  jpeg_create_compress(&c);
  unsigned char* data = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&c, &data, &size);
  c.image_width = kWidth;
  c.image_height = kHeight;
  c.input_components = 3;
  c.in_color_space = JCS_RGB;
  jpeg_set_defaults(&c);
  jpeg_start_compress(&c, TRUE);
  auto rgb = pixels();
  while (c.next_scanline < kHeight) {
    JSAMPROW row = rgb.data() + std::size_t{3} * kWidth * c.next_scanline;
    jpeg_write_scanlines(&c, &row, 1);
  }
  jpeg_finish_compress(&c);
  jpeg_destroy_compress(&c);
  std::string out(reinterpret_cast<char*>(data), size);
  std::free(data);
  return out;
}

class PictureFileTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  Result<PictureFile> read(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return PictureFile::read(path_);
  }
  std::string path_ = testing::TempDir() + "takt_picture_file_test";
};

TEST_F(PictureFileTest, SizeAndPixelsAreTheFiles) {
  const auto exact = read(png());
  ASSERT_TRUE(exact) << exact.error().message;
  EXPECT_EQ(exact->image().width, kWidth);
  EXPECT_EQ(exact->image().height, kHeight);
  EXPECT_EQ(exact->payload().size(), Image::bytes_for(kWidth, kHeight, 3));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(exact->payload().data()) % 64, 0U);
  const auto rgb = pixels();
  for (std::uint32_t y = 0; y < kHeight; ++y) {
    EXPECT_TRUE(std::equal(exact->image().row(y), exact->image().row(y) + 3 * kWidth, rgb.begin() + 3 * kWidth * y));
  }
  const auto lossy = read(jpeg());
  ASSERT_TRUE(lossy) << lossy.error().message;
  EXPECT_EQ(lossy->image().width, kWidth);
  EXPECT_EQ(lossy->image().height, kHeight);
}

TEST_F(PictureFileTest, CutFilesAreRefusedAtEveryLength) {
  for (const std::string& whole : {png(), jpeg()}) {
    for (std::size_t cut = 0; cut + 13 < whole.size(); ++cut) {
      const auto picture = read(whole.substr(0, cut));
      ASSERT_FALSE(picture) << cut;
      ASSERT_EQ(picture.error().code, Code::kInput);
    }
  }
}

TEST_F(PictureFileTest, OtherFilesAndImpossibleSizesAreNamed) {
  EXPECT_THAT(read("GIF89a and so on").error().message, HasSubstr("neither a JPEG nor a PNG"));
  std::string huge = png();
  huge[16] = '\x7f';  // the upper byte of the width in IHDR
  EXPECT_THAT(read(huge).error().message, HasSubstr("8192"));
  EXPECT_EQ(PictureFile::read(path_ + ".absent").error().code, Code::kInput);
}

}  // namespace
}  // namespace takt::sensors
