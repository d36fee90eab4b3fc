#include "pipeline/rig/pictures.h"

#include <png.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include "runtime/base/file.h"

namespace takt::pipeline {
namespace {

constexpr double kDepthMin = 2, kDepthMax = 60;
constexpr double kHeightMin = -1, kHeightMax = 3;

cv::Mat canvas_of(Picture& picture) { return {picture.height, picture.width, CV_8UC3, picture.bgr.data()}; }

Picture blank(int width, int height) {
  Picture picture;
  picture.width = width;
  picture.height = height;
  picture.bgr.assign(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3, 24);
  return picture;
}

// 256 colours from blue (low) over green to red (high).
class Colours {
 public:
  Colours() {
    cv::Mat ramp(1, 256, CV_8UC1);
    for (int i = 0; i < 256; ++i) ramp.at<std::uint8_t>(0, i) = static_cast<std::uint8_t>(i);
    cv::applyColorMap(ramp, table_, cv::COLORMAP_TURBO);
  }
  [[nodiscard]] cv::Scalar at(double share) const {
    const auto& c = table_.at<cv::Vec3b>(0, static_cast<int>(std::clamp(share, 0.0, 1.0) * 255));
    return {static_cast<double>(c[0]), static_cast<double>(c[1]), static_cast<double>(c[2])};
  }

 private:
  cv::Mat table_;
};

void text(cv::Mat& canvas, const std::string& words, cv::Point at, double scale) {
  const int thick = std::max(1, static_cast<int>(std::lround(scale * 2)));
  cv::putText(canvas, words, at, cv::FONT_HERSHEY_SIMPLEX, scale, {0, 0, 0}, thick + 3, cv::LINE_AA);
  cv::putText(canvas, words, at, cv::FONT_HERSHEY_SIMPLEX, scale, {255, 255, 255}, thick, cv::LINE_AA);
}

// A bar of colours with labels at its ends and in the middle.
void legend(cv::Mat& canvas, const Colours& colours, double low, double high, const char* what, double scale) {
  const int width = std::min(canvas.cols / 3, 400), height = static_cast<int>(14 * scale / 0.5);
  const int left = canvas.cols - width - 20, top = canvas.rows - height - static_cast<int>(64 * scale / 0.5);
  for (int i = 0; i < width; ++i) {
    cv::line(canvas, {left + i, top}, {left + i, top + height}, colours.at(static_cast<double>(i) / width), 1);
  }
  cv::rectangle(canvas, {left, top, width, height}, {255, 255, 255}, 1);
  char label[64];
  const int baseline = top + height + static_cast<int>(22 * scale / 0.5);
  std::snprintf(label, sizeof label, "%g", low);
  text(canvas, label, {left, baseline}, scale);
  std::snprintf(label, sizeof label, "%g m", high);
  text(canvas, label, {left + width - static_cast<int>(44 * scale / 0.5), baseline}, scale);
  text(canvas, what, {left + width / 3, baseline}, scale);
}

}  // namespace

bool VehicleBox::contains(const VehiclePoint& p) const {
  const auto x = static_cast<double>(p[0]), y = static_cast<double>(p[1]), z = static_cast<double>(p[2]);
  return x >= x_min && x <= x_max && std::fabs(y) <= y_half && z >= z_min && z <= z_max;
}

bool project(const sensors::CameraModel& camera, const std::array<double, 3>& p, double& u, double& v) {
  if (p[2] < 0.1) return false;
  const double x = p[0] / p[2], y = p[1] / p[2];
  const double r2 = x * x + y * y;
  const auto& d = camera.distortion;
  // Beyond the turning point of r (1 + k1 r^2 + k2 r^4 + k3 r^6) the polynomial folds far points back into the image.
  if (1 + r2 * (3 * d[0] + r2 * (5 * d[1] + r2 * 7 * d[4])) <= 0) return false;
  const double radial = 1 + r2 * (d[0] + r2 * (d[1] + r2 * d[4]));
  u = camera.fx * (x * radial + 2 * d[2] * x * y + d[3] * (r2 + 2 * x * x)) + camera.cx;
  v = camera.fy * (y * radial + d[2] * (r2 + 2 * y * y) + 2 * d[3] * x * y) + camera.cy;
  return true;
}

Picture draw_overlay(const sensors::Image& image, const sensors::RigSensor& camera,
                     std::span<const VehiclePoint> points, const std::string& title) {
  Picture picture = blank(static_cast<int>(image.width), static_cast<int>(image.height));
  cv::Mat canvas = canvas_of(picture);
  const cv::Mat rgb(picture.height, picture.width, CV_8UC3, const_cast<std::uint8_t*>(image.row(0)), image.row_pitch);
  cv::cvtColor(rgb, canvas, cv::COLOR_RGB2BGR);
  canvas = canvas * 0.75;  // so that the points stand out
  const Colours colours;
  const sensors::Transform camera_from_vehicle = camera.vehicle_from_sensor.inverse();
  struct Dot {
    double depth, u, v;
  };
  std::vector<Dot> dots;
  for (const VehiclePoint& p : points) {
    const auto q =
        camera_from_vehicle.apply({static_cast<double>(p[0]), static_cast<double>(p[1]), static_cast<double>(p[2])});
    double u = 0, v = 0;
    if (!project(*camera.camera, q, u, v)) continue;
    if (u < 0 || v < 0 || u >= picture.width || v >= picture.height) continue;
    dots.push_back({q[2], u, v});
  }
  // Near ones last: they hide the far ones, as in the image.
  std::stable_sort(dots.begin(), dots.end(), [](const Dot& a, const Dot& b) { return a.depth > b.depth; });
  const int radius = std::max(1, picture.width / 960);
  for (const Dot& dot : dots) {
    const double share = std::log(std::max(dot.depth, kDepthMin) / kDepthMin) / std::log(kDepthMax / kDepthMin);
    cv::circle(canvas, {static_cast<int>(dot.u), static_cast<int>(dot.v)}, radius, colours.at(1 - share), cv::FILLED,
               cv::LINE_AA);
  }
  const double scale = std::max(0.4, 0.5 * picture.width / 1000.0);
  text(canvas, title, {12, static_cast<int>(48 * scale)}, scale);
  // Red is near: the scale runs the other way round.
  const int width = picture.width / 4, left = picture.width - width - 16,
            top = picture.height - static_cast<int>(70 * scale);
  for (int i = 0; i < width; ++i) {
    cv::line(canvas, {left + i, top}, {left + i, top + static_cast<int>(24 * scale)},
             colours.at(1 - static_cast<double>(i) / width), 1);
  }
  char label[64];
  std::snprintf(label, sizeof label, "depth %g m", kDepthMin);
  text(canvas, label, {left, top + static_cast<int>(60 * scale)}, scale);
  std::snprintf(label, sizeof label, "%g m", kDepthMax);
  text(canvas, label, {left + width - static_cast<int>(90 * scale), top + static_cast<int>(60 * scale)}, scale);
  return picture;
}

Picture draw_birdseye(std::span<const VehiclePoint> points, std::span<const RadarMark> radar, const VehicleBox& box,
                      const std::string& title) {
  constexpr double kScale = 12;  // px per m
  constexpr double kBehind = 20, kAhead = 60, kSide = 40;
  Picture picture = blank(static_cast<int>(2 * kSide * kScale), static_cast<int>((kBehind + kAhead) * kScale));
  cv::Mat canvas = canvas_of(picture);
  const auto at = [&](double x, double y) {
    return cv::Point(static_cast<int>(std::lround((kSide - y) * kScale)),
                     static_cast<int>(std::lround((kAhead - x) * kScale)));
  };
  char label[32];
  for (int x = -20; x <= 60; x += 10) {
    cv::line(canvas, at(x, -kSide), at(x, kSide), x == 0 ? cv::Scalar(90, 90, 90) : cv::Scalar(52, 52, 52), 1);
    std::snprintf(label, sizeof label, "x %d m", x);
    if (x > -20 && x < 60) text(canvas, label, at(x + 0.3, kSide - 0.5), 0.4);
  }
  for (int y = -40; y <= 40; y += 10) {
    cv::line(canvas, at(-kBehind, y), at(kAhead, y), y == 0 ? cv::Scalar(90, 90, 90) : cv::Scalar(52, 52, 52), 1);
    std::snprintf(label, sizeof label, "y %d", y);
    if (y > -40 && y < 40) text(canvas, label, at(-kBehind + 0.5, y - 0.2), 0.4);
  }
  const Colours colours;
  std::vector<VehiclePoint> sorted(points.begin(), points.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a[2] < b[2]; });
  for (const VehiclePoint& p : sorted) {
    const cv::Point q = at(static_cast<double>(p[0]), static_cast<double>(p[1]));
    if (q.x < 1 || q.y < 1 || q.x >= canvas.cols - 1 || q.y >= canvas.rows - 1) continue;
    const double share = (static_cast<double>(p[2]) - kHeightMin) / (kHeightMax - kHeightMin);
    cv::rectangle(canvas, {q.x, q.y, 2, 2}, colours.at(share), cv::FILLED);
  }
  for (const RadarMark& mark : radar) {
    const auto x = static_cast<double>(mark.position[0]), y = static_cast<double>(mark.position[1]);
    cv::circle(canvas, at(x, y), 5, {255, 255, 255}, 1, cv::LINE_AA);
    cv::line(canvas, at(x, y),
             at(x + 0.3 * static_cast<double>(mark.velocity[0]), y + 0.3 * static_cast<double>(mark.velocity[1])),
             {255, 255, 255}, 1, cv::LINE_AA);
  }
  cv::rectangle(canvas, at(box.x_max, box.y_half), at(box.x_min, -box.y_half), {255, 255, 255}, 2);
  cv::arrowedLine(canvas, at(box.x_max, 0), at(box.x_max + 6, 0), {255, 255, 255}, 2, cv::LINE_AA, 0, 0.25);
  text(canvas, "forward", at(box.x_max + 6.5, 2.5), 0.45);
  text(canvas, title, {12, 24}, 0.5);
  if (!radar.empty()) text(canvas, "circles: radar, lines: velocity along the ray, 0.3 s", {12, 46}, 0.45);
  legend(canvas, colours, kHeightMin, kHeightMax, "height", 0.45);
  return picture;
}

Picture draw_side(std::span<const VehiclePoint> points, const VehicleBox& box, const std::string& title) {
  constexpr double kAlong = 14, kUp = 70;  // px per m
  constexpr double kBehind = 20, kAhead = 60, kBelow = 1.5, kAbove = 4, kHalfWidth = 4;
  Picture picture = blank(static_cast<int>((kBehind + kAhead) * kAlong), static_cast<int>((kBelow + kAbove) * kUp));
  cv::Mat canvas = canvas_of(picture);
  const auto at = [&](double x, double z) {
    return cv::Point(static_cast<int>(std::lround((kBehind + x) * kAlong)),
                     static_cast<int>(std::lround((kAbove - z) * kUp)));
  };
  char label[32];
  for (int x = -20; x <= 60; x += 10) {
    cv::line(canvas, at(x, -kBelow), at(x, kAbove), {52, 52, 52}, 1);
    std::snprintf(label, sizeof label, "x %d m", x);
    if (x < 60) text(canvas, label, at(x + 0.2, -kBelow + 0.1), 0.4);
  }
  for (int z = -1; z <= 3; ++z) {
    cv::line(canvas, at(-kBehind, z), at(kAhead, z), z == 0 ? cv::Scalar(255, 255, 255) : cv::Scalar(52, 52, 52), 1);
    std::snprintf(label, sizeof label, "z %d m", z);
    text(canvas, label, at(-kBehind + 0.3, z + 0.05), 0.4);
  }
  const Colours colours;
  for (const VehiclePoint& p : points) {
    const auto x = static_cast<double>(p[0]), y = static_cast<double>(p[1]), z = static_cast<double>(p[2]);
    if (std::fabs(y) > kHalfWidth) continue;
    const cv::Point q = at(x, z);
    if (q.x < 1 || q.y < 1 || q.x >= canvas.cols - 1 || q.y >= canvas.rows - 1) continue;
    cv::rectangle(canvas, {q.x, q.y, 2, 2}, colours.at((z - kHeightMin) / (kHeightMax - kHeightMin)), cv::FILLED);
  }
  cv::rectangle(canvas, at(box.x_min, box.z_max), at(box.x_max, box.z_min), {255, 255, 255}, 1);
  text(canvas, title, {12, 24}, 0.5);
  text(canvas, "white line: the ground of the rig (z = 0); heights five times larger than lengths", {12, 46}, 0.4);
  return picture;
}

Status write_png(const Picture& picture, const std::string& path) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(picture.width);
  png.height = static_cast<png_uint_32>(picture.height);
  png.format = PNG_FORMAT_BGR;
  png_alloc_size_t bytes = 0;
  std::string file;
  if (png_image_write_to_memory(&png, nullptr, &bytes, 0, picture.bgr.data(), 0, nullptr) != 0) {
    file.resize(bytes);
    if (png_image_write_to_memory(&png, file.data(), &bytes, 0, picture.bgr.data(), 0, nullptr) != 0) {
      file.resize(bytes);
      return write_file_atomically(path, file);
    }
  }
  return fail(Code::kInternal, path + ": PNG: " + png.message);
}

}  // namespace takt::pipeline
