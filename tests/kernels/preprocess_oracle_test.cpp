// takt.Preprocess against OpenCV: cvtColor, then resize (INTER_LINEAR), then the border, then scale, mean, deviation.
//
// Tolerances in grey levels of 255, before scaling. Same pixels, float resize: 0.05, since OpenCV rounds source
// coordinates to float (2^-13 at column 1000, times a step of 255). Resize of bytes, as most training code does: 1.
// NV12: 2, OpenCV's colour coefficients have more bits. Bayer: OpenCV repeats the inner pixels at the border, so that
// only outputs from pixels further inside are compared.
#include <gtest/gtest.h>

#include <cmath>
#include <opencv2/imgproc.hpp>
#include <random>
#include <vector>

#include "kernels/reference/preprocess.h"

namespace takt::kernels {
namespace {

constexpr std::uint64_t kOffset = 64;

// Payload of one picture and the same picture in OpenCV's hands, as RGB bytes.
struct Picture {
  Preprocess p;
  std::vector<std::uint8_t> payload;
  cv::Mat rgb;
};

// Smooth waves with noise, gradients of every size, within 20..231: OpenCV cuts luminance below 16, which no camera
// sends, before it converts, takt after.
std::uint8_t level(int x, int y, int c, std::mt19937& random) {
  const double wave = 125 + 85 * std::sin(0.11 * x + c) * std::cos(0.07 * y - c);
  return cv::saturate_cast<std::uint8_t>(wave + static_cast<double>(random() % 41) - 20);
}

Picture make(PixelSource source, int width, int height) {
  Picture out;
  std::mt19937 random(static_cast<unsigned>(width * 31 + height) + static_cast<unsigned>(source));
  const bool colour = source == PixelSource::kRgb8 || source == PixelSource::kBgr8;
  const int rows = source == PixelSource::kNv12 ? height * 3 / 2 : height;
  const int row_bytes = width * (colour ? 3 : 1);
  const int pitch = (row_bytes + 63) / 64 * 64;
  out.payload.assign(kOffset + static_cast<std::size_t>(pitch) * static_cast<std::size_t>(rows), 0xEE);
  out.p.source = source;
  out.p.source_width = static_cast<std::uint32_t>(width);
  out.p.source_height = static_cast<std::uint32_t>(height);
  out.p.pitch = static_cast<std::uint32_t>(pitch);
  out.p.offset = kOffset;
  out.p.chroma_offset = kOffset + static_cast<std::uint64_t>(pitch) * static_cast<std::uint64_t>(height);
  out.p.chroma_pitch = static_cast<std::uint32_t>(pitch);
  const cv::Mat raw(rows, row_bytes, CV_8UC1, out.payload.data() + kOffset, static_cast<std::size_t>(pitch));
  for (int y = 0; y < rows; ++y) {
    for (int x = 0; x < row_bytes; ++x) {
      const_cast<std::uint8_t*>(raw.ptr(y))[x] = level(colour ? x / 3 : x, y, colour ? x % 3 : 0, random);
    }
  }
  switch (source) {
    case PixelSource::kRgb8: out.rgb = raw.reshape(3).clone(); break;
    case PixelSource::kBgr8: cv::cvtColor(raw.reshape(3), out.rgb, cv::COLOR_BGR2RGB); break;
    case PixelSource::kMono8: cv::cvtColor(raw, out.rgb, cv::COLOR_GRAY2RGB); break;
    case PixelSource::kNv12: cv::cvtColor(raw.clone(), out.rgb, cv::COLOR_YUV2RGB_NV12); break;
    // OpenCV names the pattern by the second row: BG is RGGB from the corner.
    case PixelSource::kBayerRggb8: cv::cvtColor(raw, out.rgb, cv::COLOR_BayerBG2RGB); break;
  }
  return out;
}

std::vector<float> ours(const Picture& picture) {
  const Preprocess& p = picture.p;
  std::vector<float> out(std::size_t{3} * p.width * p.height, NAN);
  std::vector<std::uint8_t> payload = picture.payload;
  const Tensor in{DType::kU8, {1, {static_cast<std::int64_t>(payload.size())}}, payload.data()};
  const Tensor to{DType::kF32, {4, {1, 3, p.height, p.width}}, out.data()};
  reference::preprocess(in, p, to);
  return out;
}

// Largest difference in grey levels against resizing floats, and against resizing bytes. `margin`: source pixels from
// the border within which nothing is compared.
struct Difference {
  double floats = 0, bytes = 0;
};
Difference compare(const Picture& picture, int margin = 0) {
  const Preprocess& p = picture.p;
  const Placement at = placement(p.fit, p.source_width, p.source_height, p.width, p.height);
  const cv::Size size(static_cast<int>(at.width), static_cast<int>(at.height));
  cv::Mat wide, by_floats, by_bytes;
  picture.rgb.convertTo(wide, CV_32FC3);
  cv::resize(wide, by_floats, size, 0, 0, cv::INTER_LINEAR);
  cv::resize(picture.rgb, by_bytes, size, 0, 0, cv::INTER_LINEAR);
  const auto border = [&](cv::Mat& m) {
    const int bottom = static_cast<int>(p.height - at.height - at.top),
              right = static_cast<int>(p.width - at.width - at.left);
    cv::copyMakeBorder(m, m, static_cast<int>(at.top), bottom, static_cast<int>(at.left), right, cv::BORDER_CONSTANT,
                       cv::Scalar::all(p.pad));
  };
  border(by_floats);
  border(by_bytes);
  const std::vector<float> result = ours(picture);
  Difference worst;
  for (int y = 0; y < by_floats.rows; ++y) {
    for (int x = 0; x < by_floats.cols; ++x) {
      const double sx = (x - static_cast<double>(at.left) + 0.5) * p.source_width / at.width - 0.5;
      const double sy = (y - static_cast<double>(at.top) + 0.5) * p.source_height / at.height - 0.5;
      if (margin > 0 &&
          (sx < margin || sy < margin || sx > p.source_width - margin - 1.0 || sy > p.source_height - margin - 1.0)) {
        continue;
      }
      for (int c = 0; c < 3; ++c) {
        const int from = p.colour == ColourOrder::kRgb ? c : 2 - c;
        const std::size_t i = (static_cast<std::size_t>(c) * p.height + static_cast<std::size_t>(y)) * p.width +
                              static_cast<std::size_t>(x);
        const double level = (double{result[i]} - double{p.add[c]}) / double{p.multiply[c]};
        worst.floats = std::max(worst.floats, std::fabs(level - double{by_floats.at<cv::Vec3f>(y, x)[from]}));
        worst.bytes = std::max(worst.bytes, std::fabs(level - by_bytes.at<cv::Vec3b>(y, x)[from]));
      }
    }
  }
  return worst;
}

struct Case {
  int width, height;                  // of the picture
  std::uint32_t to_width, to_height;  // of the network
};
constexpr Case kCases[] = {{640, 384, 416, 256}, {1920, 1080, 352, 352}, {64, 48, 160, 96},
                           {352, 352, 352, 352}, {1242, 374, 320, 224},  {30, 22, 33, 57}};

void expect_close(PixelSource source, double tolerance, int margin = 0) {
  for (const Case& c : kCases) {
    for (const Fit fit : {Fit::kPlain, Fit::kLetterbox}) {
      Picture picture = make(source, c.width, c.height);
      Preprocess& p = picture.p;
      p.fit = fit;
      p.colour = fit == Fit::kPlain ? ColourOrder::kRgb : ColourOrder::kBgr;
      p.pad = 114;
      p.width = c.to_width;
      p.height = c.to_height;
      for (std::size_t i = 0; i < 3; ++i) {
        p.multiply[i] = 1 / (58.4F - static_cast<float>(i));
        p.add[i] = -2.1F + 0.1F * static_cast<float>(i);
      }
      const Difference worst = compare(picture, margin);
      SCOPED_TRACE(testing::Message() << c.width << "x" << c.height << " to " << c.to_width << "x" << c.to_height
                                      << (fit == Fit::kLetterbox ? " letterbox" : " plain"));
      EXPECT_LE(worst.floats, tolerance);
      EXPECT_LE(worst.bytes, tolerance + 1);
    }
  }
}

TEST(PreprocessOracle, Rgb8) { expect_close(PixelSource::kRgb8, 0.05); }
TEST(PreprocessOracle, Bgr8) { expect_close(PixelSource::kBgr8, 0.05); }
TEST(PreprocessOracle, Mono8) { expect_close(PixelSource::kMono8, 0.05); }
TEST(PreprocessOracle, Nv12) { expect_close(PixelSource::kNv12, 2); }
TEST(PreprocessOracle, BayerRggb8) { expect_close(PixelSource::kBayerRggb8, 0.05, 2); }

// The comparison itself must notice half a pixel, swapped colours and a missing border.
TEST(PreprocessOracle, NoticesOtherGeometryAndColours) {
  Picture picture = make(PixelSource::kRgb8, 640, 384);
  picture.p.width = 416;
  picture.p.height = 256;
  EXPECT_LE(compare(picture).floats, 0.05);
  Picture shifted = picture;
  shifted.p.offset += 3;  // one pixel
  EXPECT_GT(compare(shifted).floats, 10);
  Picture swapped = picture;
  swapped.p.source = PixelSource::kBgr8;
  EXPECT_GT(compare(swapped).floats, 10);
}

TEST(Placement, LetterboxKeepsProportionsAndCentres) {
  const Placement wide = placement(Fit::kLetterbox, 1920, 1080, 416, 416);
  EXPECT_EQ(wide.width, 416U);
  EXPECT_EQ(wide.height, 234U);
  EXPECT_EQ(wide.left, 0U);
  EXPECT_EQ(wide.top, 91U);
  const Placement tall = placement(Fit::kLetterbox, 100, 301, 64, 96);
  EXPECT_EQ(tall.width, 32U) << "31.9 is rounded";
  EXPECT_EQ(tall.height, 96U);
  EXPECT_EQ(tall.left, 16U);
  const Placement thin = placement(Fit::kLetterbox, 16384, 1, 64, 64);
  EXPECT_EQ(thin.height, 1U) << "never empty";
}

}  // namespace
}  // namespace takt::kernels
