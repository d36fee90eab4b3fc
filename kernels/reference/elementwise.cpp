#include "kernels/reference/elementwise.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/reference/elementary.h"
#include "kernels/reference/elementary_f32.h"
#include "kernels/reference/movement.h"

namespace takt::kernels::reference {
namespace {

// Calls f with a value of the C++ type of `type`, f16 apart (no kernel computes in it).
template <class F>
void with_type(DType type, F f) {
  switch (type) {
    case DType::kF32: f(float{}); break;
    case DType::kI64: f(std::int64_t{}); break;
    case DType::kI32: f(std::int32_t{}); break;
    case DType::kI8: f(std::int8_t{}); break;
    case DType::kU8: f(std::uint8_t{}); break;
    case DType::kBool: f(bool{}); break;
    case DType::kF16: break;
  }
}

// Any byte but zero is true, as inputs and plans may hold them; a bool object may not.
template <class T>
T load(const Tensor& x, std::int64_t i) {
  if constexpr (std::is_same_v<T, bool>) {
    return x.as<std::uint8_t>()[i] != 0;
  } else {
    return x.as<T>()[i];
  }
}

// Strides that read `x` broadcast to `shape`.
View broadcast(const Shape& x, const Shape& shape) {
  const View dense = row_major(x);
  View view;
  for (int d = 0; d < x.rank; ++d) {
    if (x.dims[d] != 1) view.strides[shape.rank - x.rank + d] = dense.strides[d];
  }
  return view;
}

std::int64_t offset_of(std::int64_t flat, const View& view, const Shape& shape) {
  std::int64_t offset = 0;
  for (int d = shape.rank - 1; d >= 0; --d) {
    offset += flat % shape.dims[d] * view.strides[d];
    flat /= shape.dims[d];
  }
  return offset;
}

float pow_f32(float base, float exponent) {
  if (exponent == 2.0F) return base * base;
  if (exponent == 0.5F) return std::sqrt(base);
  if (exponent == 0.0F) return 1.0F;
  const bool whole = std::floor(exponent) == exponent;
  if (std::isnan(base) || std::isnan(exponent) || (base < 0 && !whole)) return std::numeric_limits<float>::quiet_NaN();
  const bool odd = whole && std::fabs(exponent) < 0x1p24F && std::fmod(exponent, 2.0F) != 0;
  const float sign = std::signbit(base) && odd ? -1.0F : 1.0F;
  const float size = std::fabs(base);
  if (size == 1.0F) return sign;
  if (size == 0.0F || std::isinf(size) || std::isinf(exponent)) {
    return sign * ((size > 1.0F) == (exponent > 0) ? std::numeric_limits<float>::infinity() : 0.0F);
  }
  return sign * static_cast<float>(exp(static_cast<double>(exponent) * log(static_cast<double>(size))));
}

// Integers are computed in an unsigned type of at least 32 bits, which wraps, and cut to their own.
template <class T>
T integer_arithmetic(Binary op, T a, T b) {
  using Wide = std::conditional_t<sizeof(T) < 4, std::uint32_t, std::make_unsigned_t<T>>;
  const auto left = static_cast<Wide>(a);
  const auto right = static_cast<Wide>(b);
  const auto cut = [](Wide bits) { return static_cast<T>(bits); };
  const bool minus_one = std::is_signed_v<T> && right == static_cast<Wide>(-1);  // its quotient may not fit
  switch (op) {
    case Binary::kAdd: return cut(left + right);
    case Binary::kSub: return cut(left - right);
    case Binary::kMul: return cut(left * right);
    case Binary::kDiv: return minus_one ? cut(Wide{0} - left) : static_cast<T>(a / b);
    case Binary::kFmod: return minus_one ? T{0} : static_cast<T>(a % b);
    case Binary::kMod: {
      const T rest = minus_one ? T{0} : static_cast<T>(a % b);
      return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
    }
    case Binary::kPow: {
      if (b < 0) return a == 1 ? T{1} : minus_one && a == b ? (b % 2 == 0 ? T{1} : a) : T{0};
      Wide power = 1;
      Wide square = left;
      for (Wide e = right; e != 0; e /= 2, square *= square) power *= e % 2 != 0 ? square : Wide{1};
      return cut(power);
    }
    case Binary::kPrelu: return a < 0 ? cut(left * right) : a;
    case Binary::kShiftLeft: return right < 8 * sizeof(T) ? cut(left << right) : T{0};
    case Binary::kShiftRight: return right < 8 * sizeof(T) ? cut(left >> right) : T{0};
    case Binary::kMin: return a < b ? a : b;
    default: return a > b ? a : b;
  }
}

float float_arithmetic(Binary op, float a, float b) {
  switch (op) {
    case Binary::kAdd: return a + b;
    case Binary::kSub: return a - b;
    case Binary::kMul: return a * b;
    case Binary::kDiv: return a / b;
    case Binary::kPow: return pow_f32(a, b);
    case Binary::kFmod: return std::fmod(a, b);
    case Binary::kMod: {
      const float rest = std::fmod(a, b);
      return rest != 0.0F && (rest < 0.0F) != (b < 0.0F) ? rest + b : rest;
    }
    case Binary::kPrelu: return a < 0.0F ? a * b : a;
    case Binary::kMin: return a < b ? a : b;
    default: return a > b ? a : b;
  }
}

template <class T>
bool compare(Binary op, T a, T b) {
  switch (op) {
    case Binary::kLess: return a < b;
    case Binary::kGreater: return a > b;
    case Binary::kLessOrEqual: return a <= b;
    case Binary::kGreaterOrEqual: return a >= b;
    case Binary::kAnd: return a != T{} && b != T{};
    case Binary::kOr: return a != T{} || b != T{};
    case Binary::kXor: return (a != T{}) != (b != T{});
    default: return a == b;
  }
}

template <class T>
T to_integer(float x) {
  if (std::isnan(x)) return 0;
  if (x <= static_cast<float>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (x >= static_cast<float>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(x);
}

}  // namespace

void unary(Unary op, const Tensor& x, const Tensor& y) {
  with_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
      const T v = load<T>(x, i);
      T& out = y.as<T>()[i];
      if constexpr (std::is_same_v<T, float>) {
        switch (op) {
          case Unary::kExp: out = exp_f32(v); break;
          case Unary::kSqrt: out = std::sqrt(v); break;
          case Unary::kAbs: out = std::fabs(v); break;
          case Unary::kNeg: out = -v; break;
          case Unary::kFloor: out = std::floor(v); break;
          case Unary::kCeil: out = std::ceil(v); break;
          case Unary::kNot: out = v; break;
        }
      } else if constexpr (std::is_same_v<T, bool>) {
        out = op == Unary::kNot ? !v : v;
      } else if constexpr (std::is_signed_v<T>) {
        const bool negate = op == Unary::kNeg || (op == Unary::kAbs && v < 0);
        out = negate ? static_cast<T>(std::make_unsigned_t<T>{} - static_cast<std::make_unsigned_t<T>>(v)) : v;
      } else {
        out = v;
      }
    }
  });
}

bool binary(Binary op, const Tensor& a, const Tensor& b, const Tensor& y) {
  const View view_a = broadcast(a.shape, y.shape);
  const View view_b = broadcast(b.shape, y.shape);
  bool defined = true;
  with_type(a.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
      const T left = load<T>(a, offset_of(i, view_a, y.shape));
      const T right = load<T>(b, offset_of(i, view_b, y.shape));
      if (is_comparison(op)) {
        y.as<bool>()[i] = compare<T>(op, left, right);
      } else if constexpr (std::is_same_v<T, float>) {
        y.as<T>()[i] = float_arithmetic(op, left, right);
      } else if constexpr (!std::is_same_v<T, bool>) {
        const bool divides = op == Binary::kDiv || op == Binary::kMod || op == Binary::kFmod;
        defined = defined && !(divides && right == T{});
        y.as<T>()[i] = divides && right == T{} ? T{} : integer_arithmetic<T>(op, left, right);
      }
    }
  });
  return defined;
}

void where(const Tensor& condition, const Tensor& a, const Tensor& b, const Tensor& y) {
  const View views[3] = {broadcast(condition.shape, y.shape), broadcast(a.shape, y.shape), broadcast(b.shape, y.shape)};
  with_type(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
      const bool first = load<bool>(condition, offset_of(i, views[0], y.shape));
      y.as<T>()[i] = first ? load<T>(a, offset_of(i, views[1], y.shape)) : load<T>(b, offset_of(i, views[2], y.shape));
    }
  });
}

void cast(const Tensor& x, const Tensor& y) {
  with_type(x.dtype, [&](auto from) {
    with_type(y.dtype, [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
        const From v = load<From>(x, i);
        if constexpr (std::is_same_v<To, bool>) {
          y.as<bool>()[i] = v != From{};
        } else if constexpr (std::is_same_v<From, float> && std::is_integral_v<To>) {
          y.as<To>()[i] = to_integer<To>(v);
        } else {
          y.as<To>()[i] = static_cast<To>(v);
        }
      }
    });
  });
}

void batch_normalization(const Tensor& x, const Tensor& scale, const Tensor& shift, const Tensor& mean,
                         const Tensor& variance, float epsilon, const Tensor& y) {
  const std::int64_t channels = x.shape.rank > 1 ? x.shape.dims[1] : 1;
  std::int64_t plane = 1;
  for (int d = 2; d < x.shape.rank; ++d) plane *= x.shape.dims[d];
  for (std::int64_t i = 0; i < x.shape.elements(); ++i) {
    const std::int64_t c = i / plane % channels;
    const float a = scale.as<float>()[c] / std::sqrt(variance.as<float>()[c] + epsilon);
    const float b = std::fma(-mean.as<float>()[c], a, shift.as<float>()[c]);
    y.as<float>()[i] = std::fma(x.as<float>()[i], a, b);
  }
}

}  // namespace takt::kernels::reference
