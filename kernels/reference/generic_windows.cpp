// Windows over images of one to three dimensions: convolutions, pools; and the window over channels of LRN.
#include "kernels/reference/elementary.h"
#include "kernels/reference/generic_table.h"

namespace takt::kernels::reference {
namespace {

constexpr std::int64_t kMostWindow = 1 << 16;  // strides, dilations, pads, kernel extents

// A window in three dimensions; leading ones of fewer are 1.
struct Window {
  std::int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  std::int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, before[3] = {0, 0, 0}, after[3] = {0, 0, 0};

  [[nodiscard]] std::int64_t pixels() const { return in[0] * in[1] * in[2]; }
  [[nodiscard]] std::int64_t results() const { return out[0] * out[1] * out[2]; }
  [[nodiscard]] std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
};

Window window_of(const GenericParams& p, const Shape& x, const Shape& y, const Shape* weights) {
  Window w;
  const int spatial = x.rank - 2;
  for (int i = 0; i < spatial; ++i) {
    const int d = 3 - spatial + i;
    w.in[d] = x.dims[2 + i];
    w.out[d] = y.dims[2 + i];
    w.kernel[d] = weights != nullptr ? weights->dims[2 + i] : p.integers[kKernel + i];
    w.stride[d] = p.integers[kStride + i];
    w.dilation[d] = p.integers[kDilation + i];
    w.before[d] = p.integers[kPadBefore + i];
    w.after[d] = p.integers[kPadAfter + i];
  }
  return w;
}

bool usable(const GenericParams& p, int spatial) {
  for (int i = 0; i < spatial; ++i) {
    if (!inside(p.integers[kStride + i], 1, kMostWindow) || !inside(p.integers[kDilation + i], 1, kMostWindow) ||
        !inside(p.integers[kPadBefore + i], 0, kMostWindow) || !inside(p.integers[kPadAfter + i], 0, kMostWindow)) {
      return false;
    }
  }
  return true;
}

// Input position of a tap of result `o`; -1 outside the input.
std::int64_t tap_at(const Window& w, int d, std::int64_t o, std::int64_t k) {
  const std::int64_t i = o * w.stride[d] - w.before[d] + k * w.dilation[d];
  return i < w.in[d] ? std::max<std::int64_t>(i, -1) : -1;
}

// Calls tap(position in the image, flat tap) for every tap of a result that lies in the image.
template <class Tap>
void each_tap(const Window& w, const std::int64_t o[3], Tap tap) {
  for (std::int64_t a = 0; a < w.kernel[0]; ++a) {
    const std::int64_t i = tap_at(w, 0, o[0], a);
    if (i < 0) continue;
    for (std::int64_t b = 0; b < w.kernel[1]; ++b) {
      const std::int64_t j = tap_at(w, 1, o[1], b);
      if (j < 0) continue;
      for (std::int64_t c = 0; c < w.kernel[2]; ++c) {
        const std::int64_t k = tap_at(w, 2, o[2], c);
        if (k >= 0) tap((i * w.in[1] + j) * w.in[2] + k, (a * w.kernel[1] + b) * w.kernel[2] + c);
      }
    }
  }
}

// Calls result(o) for every result of one image in row-major order.
template <class Result>
void each_result(const Window& w, Result result) {
  for (std::int64_t i = 0; i < w.results(); ++i) {
    const std::int64_t o[3] = {i / (w.out[1] * w.out[2]), i / w.out[2] % w.out[1], i % w.out[2]};
    result(i, o);
  }
}

template <class T>
T multiply_add(T a, T b, T sum) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fma(a, b, sum);
  } else {
    return combine<T>(Reduce::kSum, sum, combine<T>(Reduce::kProduct, a, b));
  }
}

bool computes(const GenericType& x) { return is_float(x) || is(x, DType::kI32); }

const char* infer_conv(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  const GenericType& x = p.operands[0];
  const GenericType& w = p.operands[1];
  const GenericType& bias = p.operands[2];
  const std::int64_t group = p.integers[kBehindWindow];
  if (!computes(x) || w.dtype != x.dtype || (present(bias) && bias.dtype != x.dtype)) return kTypes;
  if (!inside(x.rank, 3, 2 + kMostSpatial) || w.rank != x.rank) return kShapes;
  if (!usable(p, x.rank - 2) || !inside(group, 1, kMostElements)) return kOptions;
  if (w.dims[0] < 1 || w.dims[0] % group != 0 || x.dims[1] % group != 0 || w.dims[1] != x.dims[1] / group) {
    return kShapes;
  }
  if (present(bias) && !(bias.rank == 1 && bias.dims[0] == w.dims[0])) return kShapes;
  *y = x;
  y->dims[1] = w.dims[0];
  for (int i = 0; i < x.rank - 2; ++i) {
    if (!inside(w.dims[2 + i], 1, kMostWindow)) return kShapes;
    const std::int64_t reach = (w.dims[2 + i] - 1) * p.integers[kDilation + i] + 1;
    const std::int64_t free = x.dims[2 + i] + p.integers[kPadBefore + i] + p.integers[kPadAfter + i] - reach;
    if (free < 0) return "the window is larger than the padded input";
    y->dims[2 + i] = free / p.integers[kStride + i] + 1;
  }
  return nullptr;
}

// As kernels/reference/conv.h says: taps in row-major order, channels innermost.
template <class T>
void conv(const GenericParams& p, const Tensor* in, const Tensor& y) {
  const Tensor& x = in[0];
  const Window w = window_of(p, x.shape, y.shape, &in[1].shape);
  const std::int64_t filters = y.shape.dims[1];
  const std::int64_t channels = x.shape.dims[1];
  const std::int64_t per_group = in[1].shape.dims[1];
  const std::int64_t filters_per_group = filters / p.integers[kBehindWindow];
  T* out = y.as<T>();
  for (std::int64_t n = 0; n < y.shape.dims[0]; ++n) {
    for (std::int64_t m = 0; m < filters; ++m) {
      const T* images = x.as<T>() + (n * channels + m / filters_per_group * per_group) * w.pixels();
      const T* filter = in[1].as<T>() + m * per_group * w.taps();
      each_result(w, [&](std::int64_t, const std::int64_t o[3]) {
        T sum = in[2].data != nullptr ? in[2].as<T>()[m] : T{};
        each_tap(w, o, [&](std::int64_t at, std::int64_t tap) {
          for (std::int64_t c = 0; c < per_group; ++c) {
            sum = multiply_add<T>(images[c * w.pixels() + at], filter[c * w.taps() + tap], sum);
          }
        });
        *out++ = sum;
      });
    }
  }
}

void run_conv(const GenericParams& p, const Tensor* in, const Tensor* out) {
  if (in[0].dtype == DType::kI32) return conv<std::int32_t>(p, in, out[0]);
  with_float(in[0].dtype, [&](auto zero) { conv<decltype(zero)>(p, in, out[0]); });
}

const char* infer_conv_transpose(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  const GenericType& x = p.operands[0];
  const GenericType& w = p.operands[1];
  const GenericType& bias = p.operands[2];
  const std::int64_t group = p.integers[kBehindWindow];
  if (!is_float(x) || w.dtype != x.dtype || (present(bias) && bias.dtype != x.dtype)) return kTypes;
  if (!inside(x.rank, 3, 2 + kMostSpatial) || w.rank != x.rank) return kShapes;
  if (!usable(p, x.rank - 2) || !inside(group, 1, kMostWindow)) return kOptions;
  if (w.dims[0] != x.dims[1] || x.dims[1] % group != 0 || w.dims[1] < 1) return kShapes;
  *y = x;
  y->dims[1] = w.dims[1] * group;
  if (present(bias) && !(bias.rank == 1 && bias.dims[0] == y->dims[1])) return kShapes;
  for (int i = 0; i < x.rank - 2; ++i) {
    if (!inside(w.dims[2 + i], 1, kMostWindow)) return kShapes;
    const std::int64_t extra = p.integers[kBehindWindow + 1 + i];
    if (!inside(extra, 0, kMostWindow) || x.dims[2 + i] < 1) return kOptions;
    const std::int64_t reach = (w.dims[2 + i] - 1) * p.integers[kDilation + i] + 1;
    y->dims[2 + i] = (x.dims[2 + i] - 1) * p.integers[kStride + i] + extra + reach - p.integers[kPadBefore + i] -
                     p.integers[kPadAfter + i];
    if (y->dims[2 + i] < 1) return "the padding leaves nothing";
  }
  return nullptr;
}

// The input position whose window puts tap k on result o; -1: none.
std::int64_t source_of(const Window& w, int d, std::int64_t o, std::int64_t k) {
  const std::int64_t at = o + w.before[d] - k * w.dilation[d];
  return at < 0 || at % w.stride[d] != 0 || at / w.stride[d] >= w.in[d] ? -1 : at / w.stride[d];
}

template <class T>
void conv_transpose(const GenericParams& p, const Tensor* in, const Tensor& y) {
  const Tensor& x = in[0];
  const Window w = window_of(p, x.shape, y.shape, &in[1].shape);
  const std::int64_t group = p.integers[kBehindWindow];
  const std::int64_t per_group = x.shape.dims[1] / group;
  const std::int64_t filters_per_group = in[1].shape.dims[1];
  T* out = y.as<T>();
  for (std::int64_t n = 0; n < y.shape.dims[0]; ++n) {
    for (std::int64_t m = 0; m < y.shape.dims[1]; ++m) {
      const std::int64_t first = m / filters_per_group * per_group;
      each_result(w, [&](std::int64_t, const std::int64_t o[3]) {
        T sum = in[2].data != nullptr ? in[2].as<T>()[m] : T{};
        for (std::int64_t tap = 0; tap < w.taps(); ++tap) {
          const std::int64_t i = source_of(w, 0, o[0], tap / (w.kernel[1] * w.kernel[2]));
          const std::int64_t j = source_of(w, 1, o[1], tap / w.kernel[2] % w.kernel[1]);
          const std::int64_t k = source_of(w, 2, o[2], tap % w.kernel[2]);
          if (i < 0 || j < 0 || k < 0) continue;
          for (std::int64_t c = first; c < first + per_group; ++c) {
            const T value = x.as<T>()[(n * x.shape.dims[1] + c) * w.pixels() + (i * w.in[1] + j) * w.in[2] + k];
            sum = std::fma(value, in[1].as<T>()[(c * filters_per_group + m % filters_per_group) * w.taps() + tap], sum);
          }
        }
        *out++ = sum;
      });
    }
  }
}

void run_conv_transpose(const GenericParams& p, const Tensor* in, const Tensor* out) {
  with_float(in[0].dtype, [&](auto zero) { conv_transpose<decltype(zero)>(p, in, out[0]); });
}

const char* infer_pool(const GenericParams& p, GenericType* y, GenericType* second) {
  const GenericType& x = p.operands[0];
  const std::int64_t kind = p.integers[kBehindWindow];
  if (!inside(kind, 0, 4) || !inside(p.integers[kBehindWindow + 1], 0, 1) ||
      !inside(p.integers[kBehindWindow + 2], 0, 1) || !inside(p.integers[kBehindWindow + 3], 0, kMostWindow)) {
    return kOptions;
  }
  if (!is_number(x) || (kind > 1 && !is_float(x))) return kTypes;
  if (!inside(x.rank, 3, 2 + kMostSpatial)) return kShapes;
  if (!usable(p, x.rank - 2)) return kOptions;
  if (kind == static_cast<std::int64_t>(Pool::kLp) && p.integers[kBehindWindow + 3] < 1) return kOptions;
  *y = x;
  for (int i = 0; i < x.rank - 2; ++i) {
    const std::int64_t kernel = p.integers[kKernel + i];
    if (!inside(kernel, 1, kMostWindow)) return kOptions;
    const std::int64_t reach = (kernel - 1) * p.integers[kDilation + i] + 1;
    const std::int64_t before = p.integers[kPadBefore + i], after = p.integers[kPadAfter + i];
    const std::int64_t stride = p.integers[kStride + i];
    const std::int64_t extent = x.dims[2 + i];
    const std::int64_t free = extent + before + after - reach;
    if (free < 0 || extent == 0 || before >= reach || after >= reach) {
      return "the window does not fit the padded input";
    }
    const bool up = p.integers[kBehindWindow + 1] != 0;
    y->dims[2 + i] = (free + (up ? stride - 1 : 0)) / stride + 1;
    // The last window begins inside the input or the padding in front of it.
    if (up && (y->dims[2 + i] - 1) * stride >= extent + before) --y->dims[2 + i];
  }
  if (kind == static_cast<std::int64_t>(Pool::kMaxIndices)) {
    *second = *y;
    set_dtype(second, DType::kI64);
  }
  return nullptr;
}

// Position in an image counted column by column: the first dimension runs fastest.
std::int64_t by_columns(const Window& w, std::int64_t at) {
  const std::int64_t i = at / (w.in[1] * w.in[2]), j = at / w.in[2] % w.in[1], k = at % w.in[2];
  return i + (j + k * w.in[1]) * w.in[0];
}

template <class T>
void max_pool(const GenericParams& p, const Tensor& x, const Tensor& y, const Tensor& indices) {
  const Window w = window_of(
      p, x.shape,
      shape_of(p.operands[kGenericInputs].dtype != 0 ? p.operands[kGenericInputs] : p.operands[kGenericInputs + 1]),
      nullptr);
  const T lowest = std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
  for (std::int64_t image = 0; image < x.shape.dims[0] * x.shape.dims[1]; ++image) {
    const T* pixels = x.as<T>() + image * w.pixels();
    each_result(w, [&](std::int64_t i, const std::int64_t o[3]) {
      T best = lowest;
      std::int64_t place = 0;
      bool any = false;
      each_tap(w, o, [&](std::int64_t at, std::int64_t) {
        if (any && !(pixels[at] > best)) return;
        best = any || pixels[at] > best ? pixels[at] : best;
        place = at;
        any = true;
      });
      if (y.data != nullptr) y.as<T>()[image * w.results() + i] = best;
      if (indices.data == nullptr) return;
      const bool columns = p.integers[kBehindWindow + 2] != 0;
      indices.as<std::int64_t>()[image * w.results() + i] =
          image * w.pixels() + (columns ? by_columns(w, place) : place);
    });
  }
}

// Taps of result o along one dimension that lie in the input or its declared padding.
std::int64_t padded_taps(const Window& w, int d, std::int64_t o) {
  std::int64_t taps = 0;
  for (std::int64_t k = 0; k < w.kernel[d]; ++k) {
    if (o * w.stride[d] - w.before[d] + k * w.dilation[d] < w.in[d] + w.after[d]) ++taps;
  }
  return taps;
}

double raised(double x, std::int64_t exponent) {
  return exponent == 1 ? x : exponent == 2 ? x * x : x == 0 ? 0 : exp(static_cast<double>(exponent) * log(x));
}

template <class T>
void sum_pool(const GenericParams& p, const Tensor& x, const Tensor& y) {
  const Window w = window_of(p, x.shape, y.shape, nullptr);
  const auto kind = static_cast<Pool>(p.integers[kBehindWindow]);
  const std::int64_t exponent = p.integers[kBehindWindow + 3];
  for (std::int64_t image = 0; image < x.shape.dims[0] * x.shape.dims[1]; ++image) {
    const T* pixels = x.as<T>() + image * w.pixels();
    each_result(w, [&](std::int64_t i, const std::int64_t o[3]) {
      T sum{};
      double powers = 0;
      std::int64_t count = 0;
      each_tap(w, o, [&](std::int64_t at, std::int64_t) {
        sum += pixels[at];
        if (kind == Pool::kLp) powers += raised(std::fabs(static_cast<double>(pixels[at])), exponent);
        ++count;
      });
      if (kind == Pool::kAverageWithPadding) {
        count = padded_taps(w, 0, o[0]) * padded_taps(w, 1, o[1]) * padded_taps(w, 2, o[2]);
      }
      T& out = y.as<T>()[image * w.results() + i];
      if (kind != Pool::kLp) {
        out = sum / static_cast<T>(count);
      } else if (exponent <= 2) {
        out = static_cast<T>(exponent == 1 ? powers : std::sqrt(powers));
      } else {
        out = static_cast<T>(powers == 0 ? 0 : exp(log(powers) / static_cast<double>(exponent)));
      }
    });
  }
}

void run_pool(const GenericParams& p, const Tensor* in, const Tensor* out) {
  if (p.integers[kBehindWindow] <= static_cast<std::int64_t>(Pool::kMaxIndices)) {
    return with_number(in[0].dtype, [&](auto zero) { max_pool<decltype(zero)>(p, in[0], out[0], out[1]); });
  }
  with_float(in[0].dtype, [&](auto zero) { sum_pool<decltype(zero)>(p, in[0], out[0]); });
}

const char* infer_lrn(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  *y = p.operands[0];
  if (!is_float(*y)) return kTypes;
  if (y->rank < 2) return kShapes;
  return inside(p.integers[0], 1, kMostWindow) ? nullptr : kOptions;
}

// x / (bias + alpha / size * (sum of squares over `size` channels around))^beta.
template <class T>
void lrn(const GenericParams& p, const Tensor& x, const Tensor& y) {
  const Lines lines = lines_along(x.shape, 1);
  const std::int64_t size = p.integers[0];
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
    const std::int64_t c = i / lines.inner % lines.length;
    const std::int64_t first = std::max<std::int64_t>(c - (size - 1) / 2, 0);
    const std::int64_t last = std::min<std::int64_t>(c + size / 2, lines.length - 1);
    double squares = 0;
    for (std::int64_t k = first; k <= last; ++k) {
      const auto v = static_cast<double>(x.as<T>()[i + (k - c) * lines.inner]);
      squares += v * v;
    }
    const double base =
        static_cast<double>(p.numbers[2]) + static_cast<double>(p.numbers[0]) / static_cast<double>(size) * squares;
    const double scale = base > 0 ? exp(static_cast<double>(p.numbers[1]) * log(base)) : 1;
    y.as<T>()[i] = static_cast<T>(static_cast<double>(x.as<T>()[i]) / scale);
  }
}

void run_lrn(const GenericParams& p, const Tensor* in, const Tensor* out) {
  with_float(in[0].dtype, [&](auto zero) { lrn<decltype(zero)>(p, in[0], out[0]); });
}

constexpr GenericEntry kEntries[] = {
    {Generic::kConv, 2, 3, infer_conv, run_conv},
    {Generic::kConvTranspose, 2, 3, infer_conv_transpose, run_conv_transpose},
    {Generic::kPool, 1, 1, infer_pool, run_pool},
    {Generic::kLrn, 1, 1, infer_lrn, run_lrn},
};

}  // namespace

std::span<const GenericEntry> generic_windows() { return kEntries; }

}  // namespace takt::kernels::reference
