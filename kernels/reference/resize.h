// Resize tables and kernels. Tables are computed once per axis, in double, and are what a vectorised kernel uses too.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/tensor.h"

namespace takt::kernels::reference {

// How an output position maps to an input coordinate (ONNX Resize, "coordinate_transformation_mode").
enum class Coordinates : std::uint8_t {
  kHalfPixel,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kTfHalfPixelForNn,
  kTfCropAndResize,
  kHalfPixelSymmetric,
};
enum class Nearest : std::uint8_t { kRoundPreferFloor, kRoundPreferCeil, kFloor, kCeil };

struct ResizeAxis {
  std::int64_t in = 1;
  std::int64_t out = 1;
  double scale = 1;   // as the model states it
  double length = 1;  // in * scale; not whole where `out` was rounded down
  Coordinates coordinates = Coordinates::kHalfPixel;
  double roi_begin = 0;  // kTfCropAndResize, in parts of the extent
  double roi_end = 1;
};

// The input coordinate of an output position, and whether kTfCropAndResize leaves the input there.
double coordinate(const ResizeAxis& axis, std::int64_t position);
bool outside(const ResizeAxis& axis, double coordinate);

// Input index per output position; -1 where kTfCropAndResize leaves the input.
std::vector<std::int64_t> nearest_table(const ResizeAxis& axis, Nearest nearest);

// y = x[low] + weight * (x[high] - x[low]); low == -1 where kTfCropAndResize leaves the input.
struct LinearTable {
  std::vector<std::int64_t> low;
  std::vector<std::int64_t> high;
  std::vector<float> weight;
};
LinearTable linear_table(const ResizeAxis& axis);

// Over the last two axes of f32 x (rank >= 2). Horizontally first: top = fma(wx, x01 - x00, x00), bottom likewise, then
// y = fma(wy, bottom - top, top). `extrapolation` where either index is -1.
void resize_linear(const Tensor& x, const LinearTable& rows, const LinearTable& columns, float extrapolation,
                   const Tensor& y);

}  // namespace takt::kernels::reference
