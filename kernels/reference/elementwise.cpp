#include "kernels/reference/elementwise.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/reference/elementary.h"
#include "kernels/reference/elementary_f32.h"
#include "kernels/reference/movement.h"
#include "kernels/reference/narrow_float.h"

namespace takt::kernels::reference {
namespace {

// Calls f with a value of the C++ type of `type`, f16 and bf16 apart (no kernel computes in them).
template <class F>
void with_type(DType type, F f) {
  switch (type) {
    case DType::kF32: f(float{}); break;
    case DType::kI64: f(std::int64_t{}); break;
    case DType::kI32: f(std::int32_t{}); break;
    case DType::kI8: f(std::int8_t{}); break;
    case DType::kU8: f(std::uint8_t{}); break;
    case DType::kBool: f(bool{}); break;
    case DType::kF64: f(double{}); break;
    case DType::kI16: f(std::int16_t{}); break;
    case DType::kU16: f(std::uint16_t{}); break;
    case DType::kU32: f(std::uint32_t{}); break;
    case DType::kU64: f(std::uint64_t{}); break;
    case DType::kF16:
    case DType::kBF16: break;
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

// Calls visit(i, offsets) for every element i of `shape` in row-major order, with its offset in each of the views.
template <int n, class Visit>
void each_element(const Shape& shape, const View (&views)[n], Visit visit) {
  std::int64_t index[kMaxRank] = {};
  std::int64_t at[n] = {};
  const std::int64_t elements = shape.elements();
  for (std::int64_t i = 0; i < elements; ++i) {
    visit(i, at);
    for (int d = shape.rank - 1; d >= 0; --d) {
      const bool over = ++index[d] == shape.dims[d];
      for (int v = 0; v < n; ++v) at[v] += views[v].strides[d] * (over ? 1 - shape.dims[d] : 1);
      if (!over) break;
      index[d] = 0;
    }
  }
}

// Special values as in IEEE 754-2019, 9.2.1.
template <class F>
F power(F base, F exponent) {
  constexpr F kInfinity = std::numeric_limits<F>::infinity();
  if (exponent == F{2}) return base * base;
  if (exponent == F{0.5} && std::isfinite(base)) return std::sqrt(base + F{0});  // of either zero +0
  if (exponent == F{0} || base == F{1}) return F{1};
  if (std::isnan(base) || std::isnan(exponent)) return std::numeric_limits<F>::quiet_NaN();
  const bool whole = std::floor(exponent) == exponent;
  if (base < 0 && !whole && !std::isinf(base)) return std::numeric_limits<F>::quiet_NaN();
  // Beyond 2^digits every number is even.
  const bool odd = whole && std::fabs(exponent) < F{0x1p53} && std::fmod(exponent, F{2}) != 0;
  const F sign = std::signbit(base) && odd ? F{-1} : F{1};
  const F size = std::fabs(base);
  if (size == F{1}) return sign;
  if (size == F{0} || std::isinf(size) || std::isinf(exponent)) {
    return sign * ((size > F{1}) == (exponent > 0) ? kInfinity : F{0});
  }
  return sign * static_cast<F>(exp(static_cast<double>(exponent) * log(static_cast<double>(size))));
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
    case Binary::kBitAnd: return cut(left & right);
    case Binary::kBitOr: return cut(left | right);
    case Binary::kBitXor: return cut(left ^ right);
    case Binary::kMin: return a < b ? a : b;
    default: return a > b ? a : b;
  }
}

// NaN of either operand is the result, the first before the second.
template <class F>
F float_arithmetic(Binary op, F a, F b) {
  switch (op) {
    case Binary::kAdd: return a + b;
    case Binary::kSub: return a - b;
    case Binary::kMul: return a * b;
    case Binary::kDiv: return a / b;
    case Binary::kPow: return power(a, b);
    case Binary::kFmod: return std::fmod(a, b);
    case Binary::kMod: {
      const F rest = std::fmod(a, b);
      return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    }
    case Binary::kPrelu: return a < 0 ? a * b : a;
    case Binary::kMin: return a < b || std::isnan(a) ? a : b;
    default: return a > b || std::isnan(a) ? a : b;
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

// The limits of T as F may lie one beyond it: a number there is clamped, never converted.
template <class T, class F>
T to_integer(F x) {
  if (std::isnan(x)) return 0;
  if (x <= static_cast<F>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (x >= static_cast<F>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(x);
}

template <class From, class To>
To convert(From v) {
  if constexpr (std::is_same_v<To, bool>) {
    return v != From{};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return to_integer<To>(v);
  } else {
    return static_cast<To>(v);
  }
}

// The format of a type that is only stored; nullptr for all others.
const NarrowFormat* narrow_format(DType type) {
  return type == DType::kF16 ? &kHalf : type == DType::kBF16 ? &kBfloat : nullptr;
}

}  // namespace

void unary(Unary op, const Tensor& x, const Tensor& y) {
  with_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
      const T v = load<T>(x, i);
      T& out = y.as<T>()[i];
      if constexpr (std::is_floating_point_v<T>) {
        switch (op) {
          case Unary::kExp:
            if constexpr (std::is_same_v<T, float>) {
              out = exp_f32(v);
            } else {
              out = std::isnan(v) ? v : exp(v);
            }
            break;
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
  const View views[2] = {broadcast(a.shape, y.shape), broadcast(b.shape, y.shape)};
  bool defined = true;
  with_type(a.dtype, [&](auto zero) {
    using T = decltype(zero);
    each_element(y.shape, views, [&](std::int64_t i, const std::int64_t* at) {
      const T left = load<T>(a, at[0]);
      const T right = load<T>(b, at[1]);
      if (is_comparison(op)) {
        y.as<bool>()[i] = compare<T>(op, left, right);
      } else if constexpr (std::is_floating_point_v<T>) {
        y.as<T>()[i] = float_arithmetic<T>(op, left, right);
      } else if constexpr (!std::is_same_v<T, bool>) {
        const bool divides = op == Binary::kDiv || op == Binary::kMod || op == Binary::kFmod;
        defined = defined && !(divides && right == T{});
        y.as<T>()[i] = divides && right == T{} ? T{} : integer_arithmetic<T>(op, left, right);
      }
    });
  });
  return defined;
}

void where(const Tensor& condition, const Tensor& a, const Tensor& b, const Tensor& y) {
  const View views[3] = {broadcast(condition.shape, y.shape), broadcast(a.shape, y.shape), broadcast(b.shape, y.shape)};
  const bool stored = y.dtype == DType::kF16 || y.dtype == DType::kBF16;  // as bits
  with_type(stored ? DType::kU16 : y.dtype, [&](auto zero) {
    using T = decltype(zero);
    each_element(y.shape, views, [&](std::int64_t i, const std::int64_t* at) {
      y.as<T>()[i] = load<bool>(condition, at[0]) ? load<T>(a, at[1]) : load<T>(b, at[2]);
    });
  });
}

void cast(const Tensor& x, const Tensor& y) {
  const NarrowFormat* const from_narrow_type = narrow_format(x.dtype);
  const NarrowFormat* const to_narrow_type = narrow_format(y.dtype);
  const auto store = [&](std::int64_t i, auto v) {
    using From = decltype(v);
    if (to_narrow_type != nullptr) {
      y.as<std::uint16_t>()[i] = to_narrow(static_cast<double>(v), *to_narrow_type);
      return;
    }
    with_type(y.dtype, [&](auto zero) {
      using To = decltype(zero);
      y.as<To>()[i] = convert<From, To>(v);
    });
  };
  if (from_narrow_type != nullptr) {
    for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
      store(i, from_narrow(x.as<std::uint16_t>()[i], *from_narrow_type));
    }
    return;
  }
  with_type(x.dtype, [&](auto zero) {
    using From = decltype(zero);
    for (std::int64_t i = 0; i < y.shape.elements(); ++i) store(i, load<From>(x, i));
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
