#pragma once

#include <cstdint>

#include "kernels/tensor.h"

namespace takt::kernels::reference {

enum class Unary : std::uint8_t { kExp, kSqrt, kAbs, kNeg, kFloor, kCeil, kNot };

// y = f(x), element by element. kExp, kSqrt, kFloor, kCeil: f32, f64; kAbs, kNeg: any number; kNot: bool.
void unary(Unary op, const Tensor& x, const Tensor& y);

// Numbered as stored in plan files: never renumber.
enum class Binary : std::uint8_t {
  kAdd = 0,
  kSub = 1,
  kMul = 2,
  kDiv = 3,
  kMin = 4,
  kMax = 5,
  kPow = 6,
  kMod = 7,    // the sign of the divisor
  kFmod = 8,   // the sign of the dividend
  kPrelu = 9,  // a < 0 ? a * b : a
  kShiftLeft = 10,
  kShiftRight = 11,
  kBitAnd = 12,
  kBitOr = 13,
  kBitXor = 14,
  kEqual = 16,
  kLess = 17,
  kGreater = 18,
  kLessOrEqual = 19,
  kGreaterOrEqual = 20,
  kAnd = 21,
  kOr = 22,
  kXor = 23,
};
constexpr bool is_comparison(Binary op) { return op >= Binary::kEqual; }

// y = a op b with both broadcast to y (aligned at the right, extent 1 repeats); a and b of one type, any but f16
// and bf16. Comparisons write bool. Integers wrap; division truncates. f32 and f64: the IEEE operation; max is a > b ?
// a : b, min a < b ? a : b; pow goes through double and is correct to the last place of f32 or one beside it.
// False when an integer is divided by zero: those elements are 0.
bool binary(Binary op, const Tensor& a, const Tensor& b, const Tensor& y);

// y = condition ? a : b, all broadcast to y; any type.
void where(const Tensor& condition, const Tensor& a, const Tensor& b, const Tensor& y);

// y = x in the type of y, any types. Floating-point values outside an integer type are clamped to it, NaN gives 0; to
// bool: x != 0; to a narrower floating-point type: rounded once, to nearest even.
void cast(const Tensor& x, const Tensor& y);

// y = fma(x, a, b) per channel (dimension 1), a = scale / sqrt(variance + epsilon), b = fma(-mean, a, shift). All f32.
void batch_normalization(const Tensor& x, const Tensor& scale, const Tensor& shift, const Tensor& mean,
                         const Tensor& variance, float epsilon, const Tensor& y);

}  // namespace takt::kernels::reference
