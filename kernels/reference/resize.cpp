#include "kernels/reference/resize.h"

#include <algorithm>
#include <cmath>

namespace takt::kernels::reference {

// ONNX operator specification, Resize-19.
double coordinate(const ResizeAxis& a, std::int64_t position) {
  const auto x = static_cast<double>(position);
  const auto in = static_cast<double>(a.in);
  switch (a.coordinates) {
    case Coordinates::kHalfPixel: return (x + 0.5) / a.scale - 0.5;
    case Coordinates::kPytorchHalfPixel: return a.out > 1 ? (x + 0.5) / a.scale - 0.5 : 0.0;
    case Coordinates::kAlignCorners: return a.out > 1 ? x * (in - 1) / (a.length - 1) : 0.0;
    case Coordinates::kAsymmetric: return x / a.scale;
    case Coordinates::kTfHalfPixelForNn: return (x + 0.5) / a.scale;
    case Coordinates::kTfCropAndResize:
      return a.out > 1 ? a.roi_begin * (in - 1) + x * (a.roi_end - a.roi_begin) * (in - 1) / (a.length - 1)
                       : 0.5 * (a.roi_begin + a.roi_end) * (in - 1);
    case Coordinates::kHalfPixelSymmetric: {
      // The extents are rounded; the picture stays centred.
      const double adjustment = static_cast<double>(a.out) / a.length;
      return in / 2 * (1 - adjustment) + (x + 0.5) / a.scale - 0.5;
    }
  }
  return 0;
}

bool outside(const ResizeAxis& a, double x) {
  return a.coordinates == Coordinates::kTfCropAndResize && (x < 0 || x > static_cast<double>(a.in - 1));
}

namespace {

double round_to_index(double x, Nearest nearest) {
  switch (nearest) {
    case Nearest::kRoundPreferFloor: return std::ceil(x - 0.5);
    case Nearest::kRoundPreferCeil: return std::floor(x + 0.5);
    case Nearest::kFloor: return std::floor(x);
    case Nearest::kCeil: return std::ceil(x);
  }
  return x;
}

}  // namespace

std::vector<std::int64_t> nearest_table(const ResizeAxis& axis, Nearest nearest) {
  std::vector<std::int64_t> table(static_cast<std::size_t>(axis.out));
  for (std::int64_t i = 0; i < axis.out; ++i) {
    const double x = coordinate(axis, i);
    const double index = std::clamp(round_to_index(x, nearest), 0.0, static_cast<double>(axis.in - 1));
    table[static_cast<std::size_t>(i)] = outside(axis, x) ? -1 : static_cast<std::int64_t>(index);
  }
  return table;
}

LinearTable linear_table(const ResizeAxis& axis) {
  LinearTable table;
  for (std::int64_t i = 0; i < axis.out; ++i) {
    const double x = coordinate(axis, i);
    const double inside = std::clamp(x, 0.0, static_cast<double>(axis.in - 1));
    const auto low = static_cast<std::int64_t>(inside);
    table.low.push_back(outside(axis, x) ? -1 : low);
    table.high.push_back(std::min(low + 1, axis.in - 1));
    table.weight.push_back(static_cast<float>(inside - static_cast<double>(low)));
  }
  return table;
}

void resize_linear(const Tensor& x, const LinearTable& rows, const LinearTable& columns, float extrapolation,
                   const Tensor& y) {
  const int rank = x.shape.rank;
  const std::int64_t height = x.shape.dims[rank - 2];
  const std::int64_t width = x.shape.dims[rank - 1];
  std::int64_t planes = 1;
  for (int d = 0; d < rank - 2; ++d) planes *= x.shape.dims[d];
  float* out = y.as<float>();
  for (std::int64_t p = 0; p < planes; ++p) {
    const float* plane = x.as<float>() + p * height * width;
    for (std::size_t r = 0; r < rows.low.size(); ++r) {
      for (std::size_t c = 0; c < columns.low.size(); ++c) {
        if (rows.low[r] < 0 || columns.low[c] < 0) {
          *out++ = extrapolation;
          continue;
        }
        const float* upper = plane + rows.low[r] * width;
        const float* lower = plane + rows.high[r] * width;
        const std::int64_t left = columns.low[c];
        const std::int64_t right = columns.high[c];
        const float top = std::fma(columns.weight[c], upper[right] - upper[left], upper[left]);
        const float bottom = std::fma(columns.weight[c], lower[right] - lower[left], lower[left]);
        *out++ = std::fma(rows.weight[r], bottom - top, top);
      }
    }
  }
}

}  // namespace takt::kernels::reference
