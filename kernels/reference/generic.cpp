#include "kernels/reference/generic.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/reference/elementary.h"
#include "kernels/reference/elementary_f32.h"
#include "kernels/reference/elementwise.h"
#include "kernels/reference/movement.h"

namespace takt::kernels::reference {
namespace {

constexpr std::int64_t kMostElements = 0x7fffffff;

DType dtype_of(const GenericType& type) { return static_cast<DType>(type.dtype); }
Shape shape_of(const GenericType& type) {
  Shape shape;
  shape.rank = type.rank;
  std::copy(std::begin(type.dims), std::end(type.dims), shape.dims);
  return shape;
}
bool is(const GenericType& type, DType dtype) { return type.dtype == static_cast<std::uint8_t>(dtype); }
bool integer(const GenericType& type) { return is(type, DType::kI64) || is(type, DType::kI32); }
bool present(const GenericType& type) { return type.dtype != 0; }

// A known type with extents from 0 whose product is bounded.
bool possible(const GenericType& type) {
  const bool known = type.dtype >= static_cast<std::uint8_t>(DType::kF32) &&
                     type.dtype <= static_cast<std::uint8_t>(DType::kBool) && !is(type, DType::kF16);
  if (!known || type.rank > kMaxRank) return false;
  std::int64_t elements = 1;
  for (int d = 0; d < type.rank; ++d) {
    if (type.dims[d] < 0 || type.dims[d] > kMostElements) return false;
    if (type.dims[d] > 0 && elements > kMostElements / type.dims[d]) return false;
    elements *= std::max<std::int64_t>(type.dims[d], 1);
  }
  return true;
}

bool inside(std::int64_t value, std::int64_t lowest, std::int64_t highest) {
  return value >= lowest && value <= highest;
}

// --- scalar functions, in double from elementary.h, rounded once

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double log_any(double x) {
  if (std::isnan(x) || x < 0) return kNan;
  if (x == 0) return -kInfinity;
  return std::isinf(x) ? x : log(x);
}
double exp_any(double x) { return std::isnan(x) ? x : exp(x); }

// Abramowitz and Stegun 7.1.5 (series) below 2.5, 7.1.14 (continued fraction) above.
double erf(double x) {
  if (std::isnan(x)) return x;
  const double a = std::fabs(x);
  if (a > 6) return x < 0 ? -1.0 : 1.0;
  const double root_pi = std::sqrt(kPi);
  if (a < 2.5) {
    double term = a;
    double sum = a;
    for (int n = 1; n < 60; ++n) {
      term *= -a * a / n;
      sum += term / (2 * n + 1);
    }
    return std::copysign(2 / root_pi * sum, x);
  }
  double fraction = a;
  for (int n = 60; n > 0; --n) fraction = a + n / 2.0 / fraction;
  return std::copysign(1 - exp(-a * a) / (root_pi * fraction), x);
}

double tanh_any(double x) {
  if (std::fabs(x) < 1e-5) return x;
  if (std::fabs(x) > 20) return std::copysign(1.0, x);
  const double e = exp_any(2 * x);
  return (e - 1) / (e + 1);
}

double softplus(double x) { return x > 30 ? x : x < -17 ? exp_any(x) : log_any(1 + exp_any(x)); }

double circular(Function f, double x) {
  if (!std::isfinite(x)) return f == Function::kAtan ? std::copysign(kPi / 2, x) : kNan;
  switch (f) {
    case Function::kSin: return sin(x);
    case Function::kCos: return cos(x);
    case Function::kTan: return sin(x) / cos(x);
    case Function::kAsin: return std::fabs(x) > 1 ? kNan : atan2(x, std::sqrt((1 - x) * (1 + x)));
    case Function::kAcos: return std::fabs(x) > 1 ? kNan : atan2(std::sqrt((1 - x) * (1 + x)), x);
    default: return atan2(x, 1.0);
  }
}

double hyperbolic(Function f, double x) {
  const bool tiny = std::fabs(x) < 1e-7;
  switch (f) {
    case Function::kSinh: return tiny ? x : (exp_any(x) - exp_any(-x)) / 2;
    case Function::kCosh: return (exp_any(x) + exp_any(-x)) / 2;
    case Function::kAsinh: return tiny ? x : std::copysign(log_any(std::fabs(x) + std::sqrt(x * x + 1)), x);
    case Function::kAcosh: return x < 1 ? kNan : log_any(x + std::sqrt(x * x - 1));
    default: return tiny ? x : 0.5 * log_any((1 + x) / (1 - x));
  }
}

double evaluate(Function f, double x, double a, double b) {
  switch (f) {
    case Function::kLog: return log_any(x);
    case Function::kErf: return erf(x);
    case Function::kRound: return std::nearbyint(x);
    case Function::kSoftplus: return softplus(x);
    case Function::kMish: return x * tanh_any(softplus(x));
    case Function::kGelu: return 0.5 * x * (1 + erf(x / std::sqrt(2.0)));
    case Function::kGeluTanh: return 0.5 * x * (1 + tanh_any(std::sqrt(2 / kPi) * (x + 0.044715 * x * x * x)));
    case Function::kElu: return x < 0 ? a * (exp_any(x) - 1) : x;
    case Function::kSelu: return b * (x > 0 ? x : a * (exp_any(x) - 1));
    case Function::kCelu: return x < 0 ? a * (exp_any(x / a) - 1) : x;
    case Function::kThresholdedRelu: return x > a ? x : 0;
    case Function::kShrink: return x < -b ? x + a : x > b ? x - a : 0;
    case Function::kFloor: return std::floor(x);
    case Function::kCeil: return std::ceil(x);
    case Function::kSin:
    case Function::kCos:
    case Function::kTan:
    case Function::kAsin:
    case Function::kAcos:
    case Function::kAtan: return circular(f, x);
    default: return hyperbolic(f, x);
  }
}

template <class T>
void sign(const Tensor& x, const Tensor& y) {
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
    const T v = x.as<T>()[i];
    y.as<T>()[i] = v > T{} ? T{1} : v < T{} ? static_cast<T>(-1) : v;  // zeros and NaN as they are
  }
}

void function(const GenericParams& p, const Tensor& x, const Tensor& y) {
  const auto f = static_cast<Function>(p.integers[0]);
  if (f == Function::kNot) return unary(Unary::kNot, x, y);
  if (f == Function::kAbs) return unary(Unary::kAbs, x, y);
  if (f == Function::kNeg) return unary(Unary::kNeg, x, y);
  if (f == Function::kSign) {
    switch (x.dtype) {
      case DType::kI64: return sign<std::int64_t>(x, y);
      case DType::kI32: return sign<std::int32_t>(x, y);
      case DType::kI8: return sign<std::int8_t>(x, y);
      case DType::kU8: return sign<std::uint8_t>(x, y);
      default: return sign<float>(x, y);
    }
  }
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
    const float v = x.as<float>()[i];
    if (f == Function::kIsNan) {
      y.as<bool>()[i] = std::isnan(v);
    } else if (f == Function::kIsInf) {
      y.as<bool>()[i] = std::isinf(v) && (v < 0 ? p.numbers[0] : p.numbers[1]) != 0;
    } else {
      y.as<float>()[i] = static_cast<float>(
          evaluate(f, static_cast<double>(v), static_cast<double>(p.numbers[0]), static_cast<double>(p.numbers[1])));
    }
  }
}

// --- reductions

template <class T>
T combine(Reduce kind, T a, T x) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    if (kind == Reduce::kProduct) return static_cast<T>(static_cast<U>(a) * static_cast<U>(x));
    if (kind == Reduce::kSum || kind == Reduce::kMean) return static_cast<T>(static_cast<U>(a) + static_cast<U>(x));
  }
  switch (kind) {
    case Reduce::kProduct: return static_cast<T>(a * x);
    case Reduce::kMax: return x > a ? x : a;
    case Reduce::kMin: return x < a ? x : a;
    default: return static_cast<T>(a + x);
  }
}

// Row-major over x: every result meets its elements in row-major order too; the first one starts a maximum or minimum.
template <class T>
void reduce(Reduce kind, std::int64_t axes, const Tensor& x, const Tensor& y) {
  View view;
  std::int64_t stride = 1;
  std::int64_t count = 1;
  for (int d = x.shape.rank - 1; d >= 0; --d) {
    if ((axes >> d & 1) != 0) {
      count *= x.shape.dims[d];
    } else {
      view.strides[d] = stride;
      stride *= x.shape.dims[d];
    }
  }
  const bool picks = kind == Reduce::kMax || kind == Reduce::kMin;
  T start = kind == Reduce::kProduct ? T{1} : T{};
  if (picks) start = kind == Reduce::kMax ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  if constexpr (std::is_same_v<T, float>) {
    if (picks) start = kind == Reduce::kMax ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity();
  }
  std::fill_n(y.as<T>(), y.shape.elements(), start);
  for (std::int64_t i = 0; i < x.shape.elements(); ++i) {
    std::int64_t rest = i;
    std::int64_t to = 0;
    for (int d = x.shape.rank - 1; d >= 0; --d) {
      to += rest % x.shape.dims[d] * view.strides[d];
      rest /= x.shape.dims[d];
    }
    y.as<T>()[to] = combine<T>(kind, y.as<T>()[to], x.as<T>()[i]);
  }
  if (kind != Reduce::kMean) return;
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
    y.as<T>()[i] = static_cast<T>(y.as<T>()[i] / static_cast<T>(count));
  }
}

// x as [outer][length][inner] along an axis.
struct Lines {
  std::int64_t outer = 1, length = 1, inner = 1;
};
Lines lines_along(const Shape& shape, std::int64_t axis) {
  Lines lines;
  for (int d = 0; d < shape.rank; ++d) {
    (d < axis ? lines.outer : d == axis ? lines.length : lines.inner) *= shape.dims[d];
  }
  return lines;
}

template <class T>
void arg(const GenericParams& p, const Tensor& x, const Tensor& y) {
  const Lines lines = lines_along(x.shape, p.integers[0]);
  const bool smallest = p.integers[2] != 0;
  const bool last = p.integers[3] != 0;
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      const T* line = x.as<T>() + o * lines.length * lines.inner + i;
      std::int64_t best = 0;
      for (std::int64_t k = 1; k < lines.length; ++k) {
        const T value = line[k * lines.inner];
        const T known = line[best * lines.inner];
        const bool better = smallest ? value < known : value > known;
        if (better || (last && value == known)) best = k;
      }
      y.as<std::int64_t>()[o * lines.inner + i] = best;
    }
  }
}

template <class T>
void cumulate(const GenericParams& p, const Tensor& x, const Tensor& y) {
  const Lines lines = lines_along(x.shape, p.integers[0]);
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      const std::int64_t base = o * lines.length * lines.inner + i;
      T sum{};
      for (std::int64_t n = 0; n < lines.length; ++n) {
        const std::int64_t k = base + (p.integers[2] != 0 ? lines.length - 1 - n : n) * lines.inner;
        const T next = combine<T>(Reduce::kSum, sum, x.as<T>()[k]);
        y.as<T>()[k] = p.integers[1] != 0 ? sum : next;
        sum = next;
      }
    }
  }
}

template <class T>
void top_k(const GenericParams& p, const Tensor& x, const Tensor& y, const Tensor& positions) {
  const Lines lines = lines_along(x.shape, p.integers[0]);
  const std::int64_t k = p.integers[1];
  const bool largest = p.integers[2] != 0;
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      const T* line = x.as<T>() + o * lines.length * lines.inner + i;
      std::int64_t before = 0;
      for (std::int64_t n = 0; n < k; ++n) {
        // The best one behind the one before, in the order (value, index): no memory of what has been taken is needed.
        std::int64_t best = -1;
        const T bound = line[before * lines.inner];
        for (std::int64_t at = 0; at < lines.length; ++at) {
          const T value = line[at * lines.inner];
          const bool behind = largest ? value < bound : value > bound;
          if (n > 0 && !behind && !(value == bound && at > before)) continue;
          if (best < 0 || (largest ? value > line[best * lines.inner] : value < line[best * lines.inner])) best = at;
        }
        before = std::max<std::int64_t>(best, 0);  // NaN has no place in an order
        const std::int64_t to = (o * k + n) * lines.inner + i;
        if (y.data != nullptr) y.as<T>()[to] = line[before * lines.inner];
        if (positions.data != nullptr) positions.as<std::int64_t>()[to] = before;
      }
    }
  }
}

// --- indices

// Element `i` of an index tensor, counted from 0; -1 when it is outside.
std::int64_t index_at(const Tensor& indices, std::int64_t i, std::int64_t extent) {
  const std::int64_t given =
      indices.dtype == DType::kI64 ? indices.as<std::int64_t>()[i] : indices.as<std::int32_t>()[i];
  const std::int64_t index = given < 0 ? given + extent : given;
  return index < 0 || index >= extent ? -1 : index;
}

// Loops, not memcpy: copies of a timed thread are counted where memcpy is called (see CMakeLists.txt).
void copy(const Tensor& x, std::int64_t from, const Tensor& y, std::int64_t to, std::int64_t elements) {
  const auto size = static_cast<std::int64_t>(size_of(x.dtype));
  const auto* source = x.as<const std::byte>() + from * size;
  auto* target = y.as<std::byte>() + to * size;
  for (std::int64_t i = 0; i < elements * size; ++i) target[i] = source[i];
}
void clear(const Tensor& y, std::int64_t to, std::int64_t elements) {
  const auto size = static_cast<std::int64_t>(size_of(y.dtype));
  auto* target = y.as<std::byte>() + to * size;
  for (std::int64_t i = 0; i < elements * size; ++i) target[i] = std::byte{0};
}

template <class T>
void scatter_value(Scatter kind, T& to, T value) {
  switch (kind) {
    case Scatter::kReplace: to = value; break;
    case Scatter::kAdd: to = combine<T>(Reduce::kSum, to, value); break;
    case Scatter::kMul: to = combine<T>(Reduce::kProduct, to, value); break;
    case Scatter::kMin: to = combine<T>(Reduce::kMin, to, value); break;
    case Scatter::kMax: to = combine<T>(Reduce::kMax, to, value); break;
  }
}
void scatter_elements(Scatter kind, const Tensor& from, std::int64_t i, const Tensor& to, std::int64_t at,
                      std::int64_t elements) {
  for (std::int64_t e = 0; e < elements; ++e) {
    switch (to.dtype) {
      case DType::kF32: scatter_value(kind, to.as<float>()[at + e], from.as<float>()[i + e]); break;
      case DType::kI64: scatter_value(kind, to.as<std::int64_t>()[at + e], from.as<std::int64_t>()[i + e]); break;
      case DType::kI32: scatter_value(kind, to.as<std::int32_t>()[at + e], from.as<std::int32_t>()[i + e]); break;
      default: copy(from, i + e, to, at + e, 1); break;  // by the rule, kReplace
    }
  }
}

// Offset in `shape` of the element at flat position `i` of `indices`, with its coordinate along `axis` replaced.
std::int64_t replaced(const Shape& indices, std::int64_t i, const Shape& shape, std::int64_t axis, std::int64_t index) {
  const View view = row_major(shape);
  std::int64_t offset = 0;
  for (int d = indices.rank - 1; d >= 0; --d) {
    offset += (d == axis ? index : i % indices.dims[d]) * view.strides[d];
    i /= indices.dims[d];
  }
  return offset;
}

void gather_elements(std::int64_t axis, const Tensor& x, const Tensor& indices, const Tensor& y) {
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
    const std::int64_t index = index_at(indices, i, x.shape.dims[axis]);
    if (index < 0) {
      clear(y, i, 1);
    } else {
      copy(x, replaced(indices.shape, i, x.shape, axis, index), y, i, 1);
    }
  }
}

void scatter(std::int64_t axis, Scatter kind, const Tensor& x, const Tensor& indices, const Tensor& updates,
             const Tensor& y) {
  copy(x, 0, y, 0, x.shape.elements());
  for (std::int64_t i = 0; i < updates.shape.elements(); ++i) {
    const std::int64_t index = index_at(indices, i, x.shape.dims[axis]);
    if (index >= 0) scatter_elements(kind, updates, i, y, replaced(indices.shape, i, x.shape, axis, index), 1);
  }
}

// Where tuple `t` of an index tensor [..., depth] points in x behind `batch` leading dimensions; -1: outside.
std::int64_t tuple_offset(const Tensor& indices, std::int64_t t, const Shape& shape, std::int64_t batch) {
  const View view = row_major(shape);
  const std::int64_t depth = indices.shape.dims[indices.shape.rank - 1];
  std::int64_t offset = 0;
  for (std::int64_t k = 0; k < depth; ++k) {
    const std::int64_t index = index_at(indices, t * depth + k, shape.dims[batch + k]);
    if (index < 0) return -1;
    offset += index * view.strides[batch + k];
  }
  return offset;
}

std::int64_t product(const Shape& shape, std::int64_t from, std::int64_t to) {
  std::int64_t n = 1;
  for (std::int64_t d = from; d < to; ++d) n *= shape.dims[d];
  return n;
}

void gather_nd(std::int64_t batch, const Tensor& x, const Tensor& indices, const Tensor& y) {
  const std::int64_t depth = indices.shape.dims[indices.shape.rank - 1];
  const std::int64_t slice = product(x.shape, batch + depth, x.shape.rank);
  const std::int64_t tuples = product(indices.shape, 0, indices.shape.rank - 1);
  const std::int64_t per_batch = product(indices.shape, batch, indices.shape.rank - 1);
  const std::int64_t batch_size = product(x.shape, batch, x.shape.rank);
  for (std::int64_t t = 0; t < tuples; ++t) {
    const std::int64_t offset = tuple_offset(indices, t, x.shape, batch);
    if (offset < 0) {
      clear(y, t * slice, slice);
    } else {
      copy(x, t / per_batch * batch_size + offset, y, t * slice, slice);
    }
  }
}

void scatter_nd(Scatter kind, const Tensor& x, const Tensor& indices, const Tensor& updates, const Tensor& y) {
  const std::int64_t depth = indices.shape.dims[indices.shape.rank - 1];
  const std::int64_t slice = product(x.shape, depth, x.shape.rank);
  copy(x, 0, y, 0, x.shape.elements());
  for (std::int64_t t = 0; t < product(indices.shape, 0, indices.shape.rank - 1); ++t) {
    const std::int64_t offset = tuple_offset(indices, t, x.shape, 0);
    if (offset >= 0) scatter_elements(kind, updates, t * slice, y, offset, slice);
  }
}

void triangle(const GenericParams& p, const Tensor& x, const Tensor& y) {
  const std::int64_t columns = x.shape.dims[x.shape.rank - 1];
  const std::int64_t rows = x.shape.dims[x.shape.rank - 2];
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
    const std::int64_t above = i % columns - i / columns % rows;  // how far right of the main diagonal
    const bool keep = p.integers[1] != 0 ? above >= p.integers[0] : above <= p.integers[0];
    if (keep) {
      copy(x, i, y, i, 1);
    } else {
      clear(y, i, 1);
    }
  }
}

// Along an axis of f32. Log-softmax: x - m - log(sum of exp(x - m)); hardmax: 1 at the first maximum.
void along(const GenericParams& p, const Tensor& x, const Tensor& y) {
  const Lines lines = lines_along(x.shape, p.integers[0]);
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      const float* in = x.as<float>() + o * lines.length * lines.inner + i;
      float* out = y.as<float>() + o * lines.length * lines.inner + i;
      std::int64_t best = 0;
      for (std::int64_t k = 1; k < lines.length; ++k) {
        if (in[k * lines.inner] > in[best * lines.inner]) best = k;
      }
      const float highest = in[best * lines.inner];
      float sum = 0;
      for (std::int64_t k = 0; k < lines.length; ++k) sum += exp_f32(in[k * lines.inner] - highest);
      const auto log_sum = static_cast<float>(log_any(static_cast<double>(sum)));
      for (std::int64_t k = 0; k < lines.length; ++k) {
        out[k * lines.inner] =
            p.op == Generic::kHardmax ? (k == best ? 1.0F : 0.0F) : in[k * lines.inner] - highest - log_sum;
      }
    }
  }
}

void one_hot(const GenericParams& p, const Tensor& indices, const Tensor& values, const Tensor& y) {
  const Lines lines = lines_along(y.shape, p.integers[0]);
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    for (std::int64_t k = 0; k < lines.length; ++k) {
      for (std::int64_t i = 0; i < lines.inner; ++i) {
        const bool on = index_at(indices, o * lines.inner + i, lines.length) == k;
        copy(values, on ? 1 : 0, y, (o * lines.length + k) * lines.inner + i, 1);
      }
    }
  }
}

// --- shape rules

const char* const kTypes = "an operand has another type than the operator takes";
const char* const kShapes = "the shapes do not fit the operator";
const char* const kOptions = "an attribute is outside its range";

bool known_function(std::int64_t f) { return inside(f, 1, 31); }
bool known_binary(std::int64_t op) { return inside(op, 0, 11) || inside(op, 16, 23); }

const char* infer_function(const GenericParams& p, const GenericType& x, GenericType* y) {
  if (!known_function(p.integers[0])) return kOptions;
  const auto f = static_cast<Function>(p.integers[0]);
  *y = x;
  if (f == Function::kNot) return is(x, DType::kBool) ? nullptr : kTypes;
  if (f == Function::kSign || f == Function::kAbs) return is(x, DType::kBool) ? kTypes : nullptr;
  if (f == Function::kNeg) return is(x, DType::kBool) || is(x, DType::kU8) ? kTypes : nullptr;
  if (f == Function::kIsNan || f == Function::kIsInf) y->dtype = static_cast<std::uint8_t>(DType::kBool);
  return is(x, DType::kF32) ? nullptr : kTypes;
}

// False when the shapes do not broadcast.
bool broadcast(const GenericType& a, GenericType* y) {
  GenericType out = *y;
  out.rank = std::max(a.rank, y->rank);
  for (int d = 0; d < out.rank; ++d) {
    const int in_a = d - (out.rank - a.rank);
    const int in_y = d - (out.rank - y->rank);
    const std::int64_t from_a = in_a < 0 ? 1 : a.dims[in_a];
    const std::int64_t from_y = in_y < 0 ? 1 : y->dims[in_y];
    if (from_a != from_y && from_a != 1 && from_y != 1) return false;
    out.dims[d] = from_a == 1 ? from_y : from_a;
  }
  *y = out;
  return true;
}

const char* infer_binary(const GenericParams& p, GenericType* y) {
  const GenericType& a = p.operands[0];
  const GenericType& b = p.operands[1];
  if (!known_binary(p.integers[0])) return kOptions;
  const auto op = static_cast<Binary>(p.integers[0]);
  const bool logical = op == Binary::kAnd || op == Binary::kOr || op == Binary::kXor;
  const bool shift = op == Binary::kShiftLeft || op == Binary::kShiftRight;
  if (a.dtype != b.dtype || (logical && !is(a, DType::kBool)) || (shift && !is(a, DType::kU8))) return kTypes;
  if (is(a, DType::kBool) && !logical && op != Binary::kEqual) return kTypes;
  *y = a;
  if (!broadcast(b, y)) return kShapes;
  // PRelu broadcasts its slopes alone.
  if (op == Binary::kPrelu && !(shape_of(*y) == shape_of(a))) return kShapes;
  if (is_comparison(op)) y->dtype = static_cast<std::uint8_t>(DType::kBool);
  return nullptr;
}

const char* infer_reduce(const GenericParams& p, const GenericType& x, GenericType* y) {
  const std::int64_t axes = p.integers[1];
  if (!inside(p.integers[0], 1, 5) || !inside(axes, 0, (1 << x.rank) - 1) || !inside(p.integers[2], 0, 1)) {
    return kOptions;
  }
  if (is(x, DType::kBool) || ((is(x, DType::kI8) || is(x, DType::kU8)) && !inside(p.integers[0], 3, 4))) return kTypes;
  *y = x;
  y->rank = 0;
  std::fill(std::begin(y->dims), std::end(y->dims), 0);
  for (int d = 0; d < x.rank; ++d) {
    const bool reduced = (axes >> d & 1) != 0;
    // Sums and products of nothing are 0 and 1; the others have no value.
    if (reduced && x.dims[d] < 1 && inside(p.integers[0], 2, 4)) return kShapes;
    if (!reduced || p.integers[2] != 0) y->dims[y->rank++] = reduced ? 1 : x.dims[d];
  }
  return nullptr;
}

const char* infer_arg(const GenericParams& p, const GenericType& x, GenericType* y) {
  if (!inside(p.integers[0], 0, x.rank - 1) || !inside(p.integers[1], 0, 1)) return kOptions;
  if (is(x, DType::kBool)) return kTypes;
  if (x.dims[p.integers[0]] < 1) return kShapes;
  *y = x;
  y->dtype = static_cast<std::uint8_t>(DType::kI64);
  if (p.integers[1] != 0) {
    y->dims[p.integers[0]] = 1;
    return nullptr;
  }
  for (std::int64_t d = p.integers[0]; d + 1 < x.rank; ++d) y->dims[d] = x.dims[d + 1];
  y->dims[--y->rank] = 0;
  return nullptr;
}

bool number(const GenericType& x) { return is(x, DType::kF32) || integer(x); }

const char* infer_gather_nd(const GenericParams& p, GenericType* y) {
  const GenericType& x = p.operands[0];
  const GenericType& indices = p.operands[1];
  const std::int64_t batch = p.integers[0];
  if (!is(indices, DType::kI64)) return kTypes;
  if (indices.rank < 1 || !inside(batch, 0, std::min<std::int64_t>(x.rank, indices.rank - 1))) return kShapes;
  const std::int64_t depth = indices.dims[indices.rank - 1];
  if (!inside(depth, 1, x.rank - batch)) return kShapes;
  for (std::int64_t d = 0; d < batch; ++d) {
    if (x.dims[d] != indices.dims[d]) return kShapes;
  }
  const std::int64_t rank = indices.rank - 1 + x.rank - batch - depth;
  if (rank > kMaxRank) return kShapes;
  *y = GenericType{};
  y->dtype = x.dtype;
  for (int d = 0; d + 1 < indices.rank; ++d) y->dims[y->rank++] = indices.dims[d];
  for (std::int64_t d = batch + depth; d < x.rank; ++d) y->dims[y->rank++] = x.dims[d];
  return nullptr;
}

const char* infer_scatter(const GenericParams& p, GenericType* y) {
  const GenericType& x = p.operands[0];
  const GenericType& indices = p.operands[1];
  const GenericType& updates = p.operands[2];
  const bool tuples = p.op == Generic::kScatterNd;
  const std::int64_t kind = p.integers[tuples ? 0 : 1];
  if (!inside(kind, 0, 4)) return kOptions;
  if (updates.dtype != x.dtype || !integer(indices) || (kind != 0 && !number(x))) return kTypes;
  *y = x;
  if (!tuples) {
    const std::int64_t axis = p.integers[0];
    if (!inside(axis, 0, x.rank - 1)) return kOptions;
    if (!(shape_of(indices) == shape_of(updates)) || indices.rank != x.rank) return kShapes;
    for (int d = 0; d < x.rank; ++d) {
      if (d != axis && indices.dims[d] > x.dims[d]) return kShapes;
    }
    return nullptr;
  }
  GenericParams gathered = p;
  gathered.integers[0] = 0;
  GenericType slices;
  if (const char* const error = infer_gather_nd(gathered, &slices)) return error;
  return shape_of(slices) == shape_of(updates) ? nullptr : kShapes;
}

const char* infer_one(const GenericParams& p, GenericType* y, GenericType* second) {
  const GenericType& x = p.operands[0];
  const bool axis_inside = inside(p.integers[0], 0, x.rank - 1);
  switch (p.op) {
    case Generic::kFunction: return infer_function(p, x, y);
    case Generic::kBinary: return infer_binary(p, y);
    case Generic::kWhere:
      if (!is(x, DType::kBool) || p.operands[1].dtype != p.operands[2].dtype) return kTypes;
      *y = p.operands[1];
      return broadcast(p.operands[2], y) && broadcast(x, y) ? nullptr : kShapes;
    case Generic::kReduce: return infer_reduce(p, x, y);
    case Generic::kArg: return infer_arg(p, x, y);
    case Generic::kCumSum:
      if (!axis_inside) return kOptions;
      *y = x;
      return number(x) ? nullptr : kTypes;
    case Generic::kGatherElements: {
      const GenericType& indices = p.operands[1];
      if (!axis_inside) return kOptions;
      if (!integer(indices)) return kTypes;
      if (indices.rank != x.rank) return kShapes;
      for (int d = 0; d < x.rank; ++d) {
        if (d != p.integers[0] && indices.dims[d] > x.dims[d]) return kShapes;
      }
      *y = indices;
      y->dtype = x.dtype;
      return nullptr;
    }
    case Generic::kScatterElements:
    case Generic::kScatterNd: return infer_scatter(p, y);
    case Generic::kGatherNd: return infer_gather_nd(p, y);
    case Generic::kTrilu:
      if (!inside(p.integers[0], -kMostElements, kMostElements) || !inside(p.integers[1], 0, 1)) return kOptions;
      *y = x;
      return x.rank >= 2 ? nullptr : kShapes;
    case Generic::kLogSoftmax:
    case Generic::kHardmax:
      if (!axis_inside) return kOptions;
      if (x.dims[p.integers[0]] < 1) return kShapes;
      *y = x;
      return is(x, DType::kF32) ? nullptr : kTypes;
    case Generic::kOneHot: {
      const GenericType& values = p.operands[1];
      if (!inside(p.integers[0], 0, x.rank) || !inside(p.integers[1], 1, kMostElements)) return kOptions;
      if (!integer(x)) return kTypes;
      if (values.rank != 1 || values.dims[0] != 2 || x.rank == kMaxRank) return kShapes;
      *y = x;
      y->dtype = values.dtype;
      y->rank = static_cast<std::uint8_t>(x.rank + 1);
      for (int d = x.rank; d > p.integers[0]; --d) y->dims[d] = x.dims[d - 1];
      y->dims[p.integers[0]] = p.integers[1];
      return nullptr;
    }
    case Generic::kTopK:
      if (!axis_inside) return kOptions;
      if (!number(x)) return kTypes;
      if (!inside(p.integers[1], 1, x.dims[p.integers[0]])) return kShapes;
      *y = x;
      y->dims[p.integers[0]] = p.integers[1];
      *second = *y;
      second->dtype = static_cast<std::uint8_t>(DType::kI64);
      return nullptr;
  }
  return "the operator is unknown";
}

int inputs_of(Generic op) {
  switch (op) {
    case Generic::kBinary:
    case Generic::kGatherElements:
    case Generic::kGatherNd:
    case Generic::kOneHot: return 2;
    case Generic::kWhere:
    case Generic::kScatterElements:
    case Generic::kScatterNd: return 3;
    default: return 1;
  }
}

Tensor tensor(const GenericParams& p, std::byte* const* operands, int i) {
  return {dtype_of(p.operands[i]), shape_of(p.operands[i]), operands[i]};
}

// Calls run(T{}) with the C++ type of a number.
template <class Run>
void with_number(DType dtype, Run run) {
  switch (dtype) {
    case DType::kF32: run(float{}); break;
    case DType::kI64: run(std::int64_t{}); break;
    case DType::kI32: run(std::int32_t{}); break;
    case DType::kI8: run(std::int8_t{}); break;
    case DType::kU8: run(std::uint8_t{}); break;
    default: break;
  }
}

}  // namespace

GenericType generic_type(DType dtype, const Shape& shape) {
  GenericType type;
  type.dtype = static_cast<std::uint8_t>(dtype);
  type.rank = static_cast<std::uint8_t>(shape.rank);
  std::copy_n(shape.dims, shape.rank, type.dims);
  return type;
}

const char* generic_infer(GenericParams* params) {
  const int inputs = inputs_of(params->op);
  for (int i = 0; i < kGenericInputs; ++i) {
    if (present(params->operands[i]) != (i < inputs)) return "the number of inputs is wrong";
    if (i < inputs && !possible(params->operands[i])) return "an operand has an impossible type";
  }
  GenericType y;
  GenericType second;
  if (const char* const error = infer_one(*params, &y, &second)) return error;
  if (!possible(y)) return "the result is too large";
  params->operands[kGenericInputs] = y;
  params->operands[kGenericInputs + 1] = second;
  return nullptr;
}

const char* generic_check(const GenericParams& params, std::span<const std::uint64_t> bytes) {
  GenericParams inferred = params;
  if (bytes.size() != kGenericOperands) return "the number of operands is wrong";
  if (const char* const error = generic_infer(&inferred)) return error;
  if (!present(params.operands[kGenericInputs]) && !present(params.operands[kGenericInputs + 1])) {
    return "no result is named";
  }
  for (int i = 0; i < kGenericOperands; ++i) {
    const GenericType& type = params.operands[i];
    const GenericType& expected = inferred.operands[i];
    if (!present(type) && i >= kGenericInputs) continue;  // a result that this step does not compute
    if (type.dtype != expected.dtype || type.rank != expected.rank ||
        !std::equal(type.dims, type.dims + type.rank, expected.dims)) {
      return "a result has another type than the operator gives";
    }
    if (!present(type)) continue;
    const std::int64_t elements = shape_of(type).elements();
    if (elements < 1) return "an operand is empty";
    if (bytes[static_cast<std::size_t>(i)] < static_cast<std::uint64_t>(elements) * size_of(dtype_of(type))) {
      return "an operand is smaller than the parameters say";
    }
  }
  return nullptr;
}

void generic_run(const GenericParams& p, std::byte* const* operands) {
  const Tensor x = tensor(p, operands, 0);
  const Tensor b = tensor(p, operands, 1);
  const Tensor c = tensor(p, operands, 2);
  const Tensor y = tensor(p, operands, kGenericInputs);
  switch (p.op) {
    case Generic::kFunction: return function(p, x, y);
    case Generic::kBinary: (void)binary(static_cast<Binary>(p.integers[0]), x, b, y); return;
    case Generic::kWhere: return where(x, b, c, y);
    case Generic::kReduce:
      return with_number(
          x.dtype, [&](auto zero) { reduce<decltype(zero)>(static_cast<Reduce>(p.integers[0]), p.integers[1], x, y); });
    case Generic::kArg: return with_number(x.dtype, [&](auto zero) { arg<decltype(zero)>(p, x, y); });
    case Generic::kCumSum: return with_number(x.dtype, [&](auto zero) { cumulate<decltype(zero)>(p, x, y); });
    case Generic::kGatherElements: return gather_elements(p.integers[0], x, b, y);
    case Generic::kScatterElements: return scatter(p.integers[0], static_cast<Scatter>(p.integers[1]), x, b, c, y);
    case Generic::kGatherNd: return gather_nd(p.integers[0], x, b, y);
    case Generic::kScatterNd: return scatter_nd(static_cast<Scatter>(p.integers[0]), x, b, c, y);
    case Generic::kTrilu: return triangle(p, x, y);
    case Generic::kLogSoftmax:
    case Generic::kHardmax: return along(p, x, y);
    case Generic::kOneHot: return one_hot(p, x, b, y);
    case Generic::kTopK:
      return with_number(x.dtype,
                         [&](auto zero) { top_k<decltype(zero)>(p, x, y, tensor(p, operands, kGenericInputs + 1)); });
  }
}

}  // namespace takt::kernels::reference
