// Values between pixels: weighted positions along an axis, a grid of points, regions of interest.
#include "kernels/reference/generic_table.h"

namespace takt::kernels::reference {
namespace {

const char* infer_resample(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  const GenericType& x = p.operands[0];
  const GenericType& positions = p.operands[1];
  if (!is_float(x) || !is(positions, DType::kI64) || !is(p.operands[2], DType::kF32)) return kTypes;
  if (!inside(p.integers[0], 0, x.rank - 1)) return kOptions;
  if (positions.rank != 2 || !(shape_of(p.operands[2]) == shape_of(positions))) return kShapes;
  *y = x;
  y->dims[p.integers[0]] = positions.dims[0];
  return nullptr;
}

// y[.., o, ..] = sum over k of weights[o, k] * x[.., positions[o, k], ..]; where the first position is outside, the
// value given for that.
template <class T>
void resample(const GenericParams& p, const Tensor* in, const Tensor& y) {
  const Lines to = lines_along(y.shape, p.integers[0]);
  const std::int64_t extent = in[0].shape.dims[p.integers[0]];
  const std::int64_t taps = in[1].shape.dims[1];
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
    const std::int64_t o = i / to.inner % to.length;
    const T* line = in[0].as<T>() + i / (to.inner * to.length) * extent * to.inner + i % to.inner;
    T sum{};
    bool outside = taps == 0;
    for (std::int64_t k = 0; k < taps; ++k) {
      const std::int64_t at = in[1].as<std::int64_t>()[o * taps + k];
      if (inside(at, 0, extent - 1)) {
        sum = std::fma(static_cast<T>(in[2].as<float>()[o * taps + k]), line[at * to.inner], sum);
      } else {
        outside = outside || k == 0;
      }
    }
    y.as<T>()[i] = outside ? static_cast<T>(p.numbers[0]) : sum;
  }
}

void run_resample(const GenericParams& p, const Tensor* in, const Tensor* out) {
  with_float(in[0].dtype, [&](auto zero) { resample<decltype(zero)>(p, in, out[0]); });
}

const char* infer_grid_sample(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  const GenericType& x = p.operands[0];
  const GenericType& grid = p.operands[1];
  if (!inside(p.integers[0], 0, 2) || !inside(p.integers[1], 0, 2) || !inside(p.integers[2], 0, 1)) return kOptions;
  if (!is_float(x) || !(is(grid, DType::kF32) || grid.dtype == x.dtype)) return kTypes;
  if (x.rank != 4 || grid.rank != 4 || grid.dims[3] != 2 || grid.dims[0] != x.dims[0]) return kShapes;
  if (x.dims[2] < 1 || x.dims[3] < 1) return kShapes;
  *y = x;
  y->dims[2] = grid.dims[1];
  y->dims[3] = grid.dims[2];
  return nullptr;
}

struct Grid {
  Interpolation mode;
  Outside outside;
  bool corners;
};

// A coordinate of [-1, 1] in pixels; far away ones stay finite, so that they convert.
double to_pixels(double x, std::int64_t extent, bool corners) {
  const auto n = static_cast<double>(extent);
  const double at = corners ? (x + 1) / 2 * (n - 1) : ((x + 1) * n - 1) / 2;
  return std::isnan(at) ? -1e9 : std::clamp(at, -1e9, 1e9);
}

// Mirrors x into [lowest, highest].
double reflect(double x, double lowest, double highest) {
  const double range = highest - lowest;
  if (range <= 0) return lowest;
  const double distance = x < lowest ? lowest - x : x - lowest;
  const double turns = std::floor(distance / range);
  const double rest = distance - turns * range;
  const bool back = std::fmod(turns, 2.0) != 0;
  return back ? highest - rest : lowest + rest;
}

double settle(double x, std::int64_t extent, const Grid& g) {
  const auto n = static_cast<double>(extent);
  if (g.outside == Outside::kBorder) return std::clamp(x, 0.0, n - 1);
  if (g.outside == Outside::kReflection) {
    const double half = g.corners ? 0 : 0.5;
    return std::clamp(reflect(x, -half, n - 1 + half), 0.0, n - 1);
  }
  return x;
}

template <class T>
double pixel(const T* image, std::int64_t height, std::int64_t width, std::int64_t r, std::int64_t c) {
  return inside(r, 0, height - 1) && inside(c, 0, width - 1) ? static_cast<double>(image[r * width + c]) : 0.0;
}

// Weights of the four neighbours, Keys' kernel with a = -0.75.
void cubic_weights(double t, double w[4]) {
  constexpr double kA = -0.75;
  const auto near = [&](double s) { return ((kA + 2) * s - (kA + 3)) * s * s + 1; };
  const auto far = [&](double s) { return ((kA * s - 5 * kA) * s + 8 * kA) * s - 4 * kA; };
  w[0] = far(1 + t);
  w[1] = near(t);
  w[2] = near(1 - t);
  w[3] = far(2 - t);
}

template <class T>
double sample(const T* image, std::int64_t height, std::int64_t width, double y, double x, const Grid& g) {
  if (g.mode == Interpolation::kCubic) {
    // Every tap is brought inside by itself.
    const double top = std::floor(y), left = std::floor(x);
    double rows[4], columns[4];
    cubic_weights(y - top, rows);
    cubic_weights(x - left, columns);
    double sum = 0;
    for (int i = 0; i < 4; ++i) {
      double line = 0;
      for (int j = 0; j < 4; ++j) {
        const double r = settle(top - 1 + i, height, g), c = settle(left - 1 + j, width, g);
        line += columns[j] * pixel(image, height, width, static_cast<std::int64_t>(r), static_cast<std::int64_t>(c));
      }
      sum += rows[i] * line;
    }
    return sum;
  }
  y = settle(y, height, g);
  x = settle(x, width, g);
  if (g.mode == Interpolation::kNearest) {
    return pixel(image, height, width, static_cast<std::int64_t>(std::nearbyint(y)),
                 static_cast<std::int64_t>(std::nearbyint(x)));
  }
  const auto r = static_cast<std::int64_t>(std::floor(y)), c = static_cast<std::int64_t>(std::floor(x));
  const double down = y - static_cast<double>(r), right = x - static_cast<double>(c);
  const auto at = [&](std::int64_t i, std::int64_t j) { return pixel(image, height, width, r + i, c + j); };
  return (1 - down) * ((1 - right) * at(0, 0) + right * at(0, 1)) + down * ((1 - right) * at(1, 0) + right * at(1, 1));
}

double element(const Tensor& t, std::int64_t i) {
  return t.dtype == DType::kF64 ? t.as<double>()[i] : static_cast<double>(t.as<float>()[i]);
}

template <class T>
void grid_sample(const GenericParams& p, const Tensor* in, const Tensor& y) {
  const Grid g{static_cast<Interpolation>(p.integers[0]), static_cast<Outside>(p.integers[1]), p.integers[2] != 0};
  const Shape& x = in[0].shape;
  const std::int64_t points = y.shape.dims[2] * y.shape.dims[3];
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
    const std::int64_t image = i / points;
    const std::int64_t at = (image / x.dims[1] * points + i % points) * 2;
    const double column = to_pixels(element(in[1], at), x.dims[3], g.corners);
    const double row = to_pixels(element(in[1], at + 1), x.dims[2], g.corners);
    y.as<T>()[i] =
        static_cast<T>(sample(in[0].as<T>() + image * x.dims[2] * x.dims[3], x.dims[2], x.dims[3], row, column, g));
  }
}

void run_grid_sample(const GenericParams& p, const Tensor* in, const Tensor* out) {
  with_float(in[0].dtype, [&](auto zero) { grid_sample<decltype(zero)>(p, in, out[0]); });
}

const char* infer_roi_align(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  const GenericType& x = p.operands[0];
  const GenericType& rois = p.operands[1];
  const GenericType& images = p.operands[2];
  if (!is(x, DType::kF32) || !is(rois, DType::kF32) || !is(images, DType::kI64)) return kTypes;
  if (x.rank != 4 || rois.rank != 2 || rois.dims[1] != 4 || images.rank != 1 || images.dims[0] != rois.dims[0]) {
    return kShapes;
  }
  if (!inside(p.integers[0], 1, 1 << 14) || !inside(p.integers[1], 1, 1 << 14) || !inside(p.integers[2], 0, 1 << 10) ||
      !inside(p.integers[3], 0, 1) || !inside(p.integers[4], 0, 1)) {
    return kOptions;
  }
  *y = x;
  y->dims[0] = rois.dims[0];
  y->dims[2] = p.integers[0];
  y->dims[3] = p.integers[1];
  return nullptr;
}

// One sample of a region: the four pixels around, each with its weight; none where it lies a pixel or more outside.
struct Corners {
  double value[4] = {};
  double sum = 0;
};
Corners corners_at(const float* image, std::int64_t height, std::int64_t width, double y, double x) {
  Corners out;
  if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width))) return out;
  y = std::max(y, 0.0);
  x = std::max(x, 0.0);
  const std::int64_t top = std::min(static_cast<std::int64_t>(y), height - 1);
  const std::int64_t left = std::min(static_cast<std::int64_t>(x), width - 1);
  const std::int64_t bottom = std::min(top + 1, height - 1), right = std::min(left + 1, width - 1);
  const double down = top + 1 > height - 1 ? 0 : y - static_cast<double>(top);
  const double across = left + 1 > width - 1 ? 0 : x - static_cast<double>(left);
  const std::int64_t at[4] = {top * width + left, top * width + right, bottom * width + left, bottom * width + right};
  const double weight[4] = {(1 - down) * (1 - across), (1 - down) * across, down * (1 - across), down * across};
  for (int i = 0; i < 4; ++i) {
    out.value[i] = weight[i] * static_cast<double>(image[at[i]]);
    out.sum += out.value[i];
  }
  return out;
}

void run_roi_align(const GenericParams& p, const Tensor* in, const Tensor* out) {
  const Shape& x = in[0].shape;
  const Tensor& y = out[0];
  const std::int64_t height = p.integers[0], width = p.integers[1];
  const bool maximum = p.integers[3] != 0, aligned = p.integers[4] != 0;
  const auto scale = static_cast<double>(p.numbers[0]);
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
    const std::int64_t roi = i / (x.dims[1] * height * width);
    const std::int64_t batch = index_at(in[2], roi, x.dims[0]);
    y.as<float>()[i] = 0;
    if (batch < 0) continue;
    const float* image =
        in[0].as<float>() + (batch * x.dims[1] + i / (height * width) % x.dims[1]) * x.dims[2] * x.dims[3];
    const double shift = aligned ? 0.5 : 0;
    double box[4];  // x1, y1, x2, y2
    for (int k = 0; k < 4; ++k) box[k] = static_cast<double>(in[1].as<float>()[roi * 4 + k]) * scale - shift;
    double w = box[2] - box[0], h = box[3] - box[1];
    if (!aligned) {
      w = std::max(w, 1.0);
      h = std::max(h, 1.0);
    }
    if (!std::isfinite(w) || !std::isfinite(h)) continue;
    const double bin_w = w / static_cast<double>(width), bin_h = h / static_cast<double>(height);
    const auto samples = [&](double bin) {
      const std::int64_t fixed = p.integers[2];
      return fixed > 0 ? fixed : static_cast<std::int64_t>(std::clamp(std::ceil(bin), 0.0, 1024.0));
    };
    const std::int64_t rows = samples(bin_h), columns = samples(bin_w);
    double sum = 0;
    double best = -std::numeric_limits<double>::infinity();
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        const auto place = [](double start, double bin, std::int64_t cell, std::int64_t k, std::int64_t n) {
          return start + static_cast<double>(cell) * bin +
                 (static_cast<double>(k) + 0.5) * bin / static_cast<double>(n);
        };
        const Corners corners =
            corners_at(image, x.dims[2], x.dims[3], place(box[1], bin_h, i / width % height, r, rows),
                       place(box[0], bin_w, i % width, c, columns));
        sum += corners.sum;
        for (const double value : corners.value) best = std::max(best, value);
      }
    }
    if (rows * columns == 0) continue;
    y.as<float>()[i] = static_cast<float>(maximum ? best : sum / static_cast<double>(rows * columns));
  }
}

constexpr GenericEntry kEntries[] = {
    {Generic::kResample, 3, 3, infer_resample, run_resample},
    {Generic::kGridSample, 2, 2, infer_grid_sample, run_grid_sample},
    {Generic::kRoiAlign, 3, 3, infer_roi_align, run_roi_align},
};

}  // namespace

std::span<const GenericEntry> generic_sampling() { return kEntries; }

}  // namespace takt::kernels::reference
