// Functions of one element, of two, and the choice between two.
#include "kernels/reference/elementary.h"
#include "kernels/reference/elementary_f32.h"
#include "kernels/reference/elementwise.h"
#include "kernels/reference/generic_table.h"

namespace takt::kernels::reference {
namespace {

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
    // Until a term no longer changes the sum.
    for (int n = 1; n < 60 && std::fabs(term) > 1e-18; ++n) {
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
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return f == Function::kAtan ? std::copysign(kPi / 2, x) : kNan;
  // Zeros keep their sign and denormal numbers their bits.
  if (std::fabs(x) < 1e-300 && f != Function::kCos && f != Function::kAcos) return x;
  switch (f) {
    case Function::kSin: return sin(x);
    case Function::kCos: return cos(x);
    case Function::kTan: return sin(x) / cos(x);
    case Function::kAsin: return std::fabs(x) > 1 ? kNan : atan2(x, std::sqrt((1 - x) * (1 + x)));
    case Function::kAcos: return std::fabs(x) > 1 ? kNan : atan2(std::sqrt((1 - x) * (1 + x)), x);
    default: return atan2(x, 1.0);
  }
}

// exp(|x|) or x^2 alone would overflow before the result does, or while it does not.
double hyperbolic_of_large(Function f, double x) {
  const double a = std::fabs(x);
  if (f == Function::kAsinh || f == Function::kAcosh) return std::copysign(log_any(a) + log(2.0), x);
  const double root = exp(a / 2);
  return f == Function::kSinh ? std::copysign(root / 2 * root, x) : root / 2 * root;
}

double hyperbolic(Function f, double x) {
  const bool tiny = std::fabs(x) < 1e-7;
  const bool inverse = f == Function::kAsinh || (f == Function::kAcosh && x > 0);
  const bool direct = f == Function::kSinh || f == Function::kCosh;
  if ((inverse && std::fabs(x) > 0x1p500) || (direct && std::fabs(x) > 700)) return hyperbolic_of_large(f, x);
  switch (f) {
    case Function::kSinh: return tiny ? x : (exp_any(x) - exp_any(-x)) / 2;
    case Function::kCosh: return (exp_any(x) + exp_any(-x)) / 2;
    case Function::kAsinh: return tiny ? x : std::copysign(log_any(std::fabs(x) + std::sqrt(x * x + 1)), x);
    case Function::kAcosh: return x < 1 ? kNan : log_any(x + std::sqrt(x * x - 1));
    default: return tiny ? x : 0.5 * log_any((1 + x) / (1 - x));
  }
}

double sigmoid(double x) { return 1 / (1 + exp_any(-x)); }

double evaluate(Function f, double x, double a, double b) {
  switch (f) {
    case Function::kExp: return exp_any(x);
    case Function::kSqrt: return std::sqrt(x);
    case Function::kSigmoid: return sigmoid(x);
    case Function::kTanh: return tanh_any(x);
    case Function::kLeaky: return x < 0 ? a * x : x;
    case Function::kHardSigmoid: return std::clamp(a * x + b, 0.0, 1.0);
    case Function::kHardSwish: return x * std::clamp(x / 6 + 0.5, 0.0, 1.0);
    case Function::kSilu: return x * sigmoid(x);
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

// The functions of any number.
template <class T>
void simple(Function f, const Tensor& x, const Tensor& y) {
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
    const T v = x.as<T>()[i];
    T& out = y.as<T>()[i];
    if (f == Function::kRelu) {
      out = v < T{} ? T{} : v;  // -0 and NaN pass, as in activate_f32
    } else if (f == Function::kSign) {
      out = v > T{} ? T{1} : v < T{} ? static_cast<T>(-1) : static_cast<T>(v + T{});  // +0 of zeros, NaN of NaN
    } else if constexpr (std::is_integral_v<T>) {
      out = static_cast<T>(~v);
    }
  }
}

template <class T>
void elementary(const GenericParams& p, const Tensor& x, const Tensor& y) {
  const auto f = static_cast<Function>(p.integers[0]);
  const auto a = static_cast<double>(p.numbers[0]);
  const auto b = static_cast<double>(p.numbers[1]);
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
    const T v = x.as<T>()[i];
    if (f == Function::kIsNan) {
      y.as<bool>()[i] = std::isnan(v);
    } else if (f == Function::kIsInf) {
      y.as<bool>()[i] = std::isinf(v) && (v < 0 ? a : b) != 0;
    } else if (std::is_same_v<T, float> && f == Function::kErf) {
      y.as<T>()[i] = static_cast<T>(erf_f32(static_cast<float>(v)));
    } else {
      y.as<T>()[i] = static_cast<T>(evaluate(f, static_cast<double>(v), a, b));
    }
  }
}

void run_function(const GenericParams& p, const Tensor* in, const Tensor* out) {
  const auto f = static_cast<Function>(p.integers[0]);
  const Tensor& x = in[0];
  const Tensor& y = out[0];
  switch (f) {
    case Function::kNot: return unary(Unary::kNot, x, y);
    case Function::kAbs: return unary(Unary::kAbs, x, y);
    case Function::kNeg: return unary(Unary::kNeg, x, y);
    case Function::kRelu:
    case Function::kSign:
    case Function::kBitNot: return with_number(x.dtype, [&](auto zero) { simple<decltype(zero)>(f, x, y); });
    default: return with_float(x.dtype, [&](auto zero) { elementary<decltype(zero)>(p, x, y); });
  }
}

const char* infer_function(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  const GenericType& x = p.operands[0];
  if (!inside(p.integers[0], 1, kLastFunction)) return kOptions;
  const auto f = static_cast<Function>(p.integers[0]);
  *y = x;
  if (f == Function::kNot) return is(x, DType::kBool) ? nullptr : kTypes;
  if (f == Function::kSign || f == Function::kAbs || f == Function::kRelu) return is_number(x) ? nullptr : kTypes;
  if (f == Function::kNeg) return is_number(x) && !is_unsigned(x) ? nullptr : kTypes;
  if (f == Function::kBitNot) return is_number(x) && !is_float(x) ? nullptr : kTypes;
  if (f == Function::kIsNan || f == Function::kIsInf) set_dtype(y, DType::kBool);
  return is_float(x) ? nullptr : kTypes;
}

const char* infer_binary(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  const GenericType& a = p.operands[0];
  const GenericType& b = p.operands[1];
  if (!inside(p.integers[0], 0, 14) && !inside(p.integers[0], 16, 23)) return kOptions;
  const auto op = static_cast<Binary>(p.integers[0]);
  const bool logical = op == Binary::kAnd || op == Binary::kOr || op == Binary::kXor;
  const bool shift = op == Binary::kShiftLeft || op == Binary::kShiftRight;
  const bool bits = op == Binary::kBitAnd || op == Binary::kBitOr || op == Binary::kBitXor;
  if (a.dtype != b.dtype || is_stored_only(a)) return kTypes;
  if ((logical && !is(a, DType::kBool)) || (shift && !is_unsigned(a)) || (bits && is_float(a))) return kTypes;
  if (is(a, DType::kBool) && !logical && op != Binary::kEqual) return kTypes;
  *y = a;
  if (!broadcast(b, y)) return kShapes;
  // PRelu broadcasts its slopes alone.
  if (op == Binary::kPrelu && !(shape_of(*y) == shape_of(a))) return kShapes;
  if (is_comparison(op)) set_dtype(y, DType::kBool);
  return nullptr;
}

void run_binary(const GenericParams& p, const Tensor* in, const Tensor* out) {
  (void)binary(static_cast<Binary>(p.integers[0]), in[0], in[1], out[0]);
}

const char* infer_where(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  if (!is(p.operands[0], DType::kBool) || p.operands[1].dtype != p.operands[2].dtype) return kTypes;
  *y = p.operands[1];
  return broadcast(p.operands[2], y) && broadcast(p.operands[0], y) ? nullptr : kShapes;
}

void run_where(const GenericParams& /*p*/, const Tensor* in, const Tensor* out) { where(in[0], in[1], in[2], out[0]); }

const char* infer_cast(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  if (!inside(p.integers[0], 1, kDTypes)) return kOptions;
  *y = p.operands[0];
  set_dtype(y, static_cast<DType>(p.integers[0]));
  return nullptr;
}

void run_cast(const GenericParams& /*p*/, const Tensor* in, const Tensor* out) { cast(in[0], out[0]); }

// How many elements lie between two that have neighbouring parameters along the axis, and how many there are of those.
struct PerAxis {
  std::int64_t inner = 1, count = 1;
};
PerAxis per_axis(const GenericParams& p, const Tensor& x, const Tensor& scale) {
  if (scale.shape.elements() == 1) return {};
  const Lines lines = lines_along(x.shape, p.integers[0]);
  return {lines.inner, lines.length};
}

const char* fits_axis(const GenericParams& p) {
  const GenericType& x = p.operands[0];
  const Shape scale = shape_of(p.operands[1]);
  if (present(p.operands[2]) && !(shape_of(p.operands[2]) == scale)) return kShapes;
  if (scale.rank == 0 || (scale.rank == 1 && scale.dims[0] == 1)) return nullptr;
  if (!inside(p.integers[0], 0, x.rank - 1)) return kOptions;
  return scale.rank == 1 && scale.dims[0] == x.dims[p.integers[0]] ? nullptr : kShapes;
}

bool is_small_integer(const GenericType& t) {
  return is(t, DType::kU8) || is(t, DType::kI8) || is(t, DType::kU16) || is(t, DType::kI16);
}

const char* infer_quantize(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  if (!(is(p.operands[0], DType::kF32) || is(p.operands[0], DType::kI32)) || !is(p.operands[1], DType::kF32)) {
    return kTypes;
  }
  *y = p.operands[0];
  if (!inside(p.integers[1], 1, kDTypes)) return kOptions;
  set_dtype(y, static_cast<DType>(p.integers[1]));
  if (!is_small_integer(*y) || (present(p.operands[2]) && p.operands[2].dtype != y->dtype)) return kTypes;
  return fits_axis(p);
}

// y = saturate(round(x / scale) + zero), halves to even.
template <class X, class Y>
void quantize(const GenericParams& p, const Tensor* in, const Tensor& y) {
  const PerAxis axis = per_axis(p, in[0], in[1]);
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
    const std::int64_t c = i / axis.inner % axis.count;
    const float zero = in[2].data != nullptr ? static_cast<float>(in[2].as<Y>()[c]) : 0.0F;
    const float level = std::nearbyint(static_cast<float>(in[0].as<X>()[i]) / in[1].as<float>()[c]) + zero;
    constexpr auto kLowest = static_cast<float>(std::numeric_limits<Y>::lowest());
    constexpr auto kHighest = static_cast<float>(std::numeric_limits<Y>::max());
    y.as<Y>()[i] = std::isnan(level) ? Y{} : static_cast<Y>(std::clamp(level, kLowest, kHighest));
  }
}

void run_quantize(const GenericParams& p, const Tensor* in, const Tensor* out) {
  with_number(out[0].dtype, [&](auto zero) {
    using Y = decltype(zero);
    if constexpr (sizeof(Y) <= 2) {
      if (in[0].dtype == DType::kF32) {
        quantize<float, Y>(p, in, out[0]);
      } else {
        quantize<std::int32_t, Y>(p, in, out[0]);
      }
    }
  });
}

const char* infer_dequantize(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  const GenericType& x = p.operands[0];
  if (!(is_small_integer(x) || is(x, DType::kI32)) || !is(p.operands[1], DType::kF32)) return kTypes;
  if (present(p.operands[2]) && p.operands[2].dtype != x.dtype) return kTypes;
  *y = x;
  set_dtype(y, DType::kF32);
  return fits_axis(p);
}

// y = (x - zero) * scale; the difference is exact.
void run_dequantize(const GenericParams& p, const Tensor* in, const Tensor* out) {
  const PerAxis axis = per_axis(p, in[0], in[1]);
  with_number(in[0].dtype, [&](auto type) {
    using X = decltype(type);
    if constexpr (std::is_integral_v<X> && sizeof(X) <= 4) {
      for (std::int64_t i = 0; i < out[0].shape.elements(); ++i) {
        const std::int64_t c = i / axis.inner % axis.count;
        const std::int64_t zero = in[2].data != nullptr ? static_cast<std::int64_t>(in[2].as<X>()[c]) : 0;
        const auto level = static_cast<float>(static_cast<std::int64_t>(in[0].as<X>()[i]) - zero);
        out[0].as<float>()[i] = level * in[1].as<float>()[c];
      }
    }
  });
}

constexpr GenericEntry kEntries[] = {
    {Generic::kFunction, 1, 1, infer_function, run_function},
    {Generic::kBinary, 2, 2, infer_binary, run_binary},
    {Generic::kWhere, 3, 3, infer_where, run_where},
    {Generic::kCast, 1, 1, infer_cast, run_cast},
    {Generic::kQuantize, 2, 3, infer_quantize, run_quantize},
    {Generic::kDequantize, 2, 3, infer_dequantize, run_dequantize},
};

}  // namespace

std::span<const GenericEntry> generic_elementwise() { return kEntries; }

}  // namespace takt::kernels::reference
