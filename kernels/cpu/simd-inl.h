// Vectors of the kernels, per target: one block of channels is kVectors full vectors. Included once per target, behind
// hwy/foreach_target.h.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/params.h"
#include "kernels/kernel.h"
#include "kernels/reference/elementary_f32.h"

#if defined(TAKT_KERNELS_CPU_SIMD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TAKT_KERNELS_CPU_SIMD_INL_H
#undef TAKT_KERNELS_CPU_SIMD_INL_H
#else
#define TAKT_KERNELS_CPU_SIMD_INL_H
#endif

#include "hwy/highway.h"

// The targets of plans. The baseline of x86-64 (SSE2) is visited by foreach_target too and builds nothing.
#undef TAKT_TARGET
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
#define TAKT_TARGET 1
#else
#define TAKT_TARGET 0
#endif

// Loops over register tiles: every index must be a constant for the accumulators to stay in registers.
#undef TAKT_UNROLL
#if defined(__clang__)
#define TAKT_UNROLL _Pragma("unroll")
#else
#define TAKT_UNROLL _Pragma("GCC unroll 32")
#endif

#if TAKT_TARGET
HWY_BEFORE_NAMESPACE();
namespace takt::kernels::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<D>;
using V = hn::Vec<D>;

inline constexpr Target kTarget = HWY_TARGET == HWY_AVX3   ? Target::kAvx512
                                  : HWY_TARGET == HWY_AVX2 ? Target::kAvx2
                                                           : Target::kNeon;
inline constexpr int kBlock = block_of(kTarget);  // channels of a block
inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
inline constexpr int kVectors = kBlock / kLanes;  // of a block
static_assert(kVectors * kLanes == kBlock);

template <class Params>
HWY_INLINE Params load_params(const void* params) {
  Params p;
  std::memcpy(&p, params, sizeof(p));
  return p;
}

constexpr std::ptrdiff_t blocks_of(std::ptrdiff_t channels) { return (channels + kBlock - 1) / kBlock; }

// The share of `part` in `count` items: [first, last).
struct Range {
  std::ptrdiff_t first = 0, last = 0;
};
HWY_INLINE Range share_of(std::ptrdiff_t count, int part, int parts) {
  return {count * part / parts, count * (part + 1) / parts};
}

// Elementary functions: kernels/reference/elementary_f32.h, operation by operation.
HWY_INLINE V exp_of(D d, V x) {
  const DI di;
  const V lowest = hn::Set(d, f32::kExpLowest), highest = hn::Set(d, f32::kExpHighest);
  const V rounder = hn::Set(d, f32::kRounder);
  x = hn::IfThenElse(hn::Lt(x, lowest), lowest, x);
  x = hn::IfThenElse(hn::Gt(x, highest), highest, x);
  const V rounded = hn::MulAdd(x, hn::Set(d, f32::kInverseLn2), rounder);
  const auto k = hn::Sub(hn::BitCast(di, rounded), hn::Set(di, static_cast<std::int32_t>(f32::kRounderBits)));
  const V kf = hn::Sub(rounded, rounder);
  V r = hn::MulAdd(kf, hn::Set(d, -f32::kLn2High), x);
  r = hn::MulAdd(kf, hn::Set(d, -f32::kLn2Low), r);
  V p = hn::Set(d, f32::kExp[4]);
  for (int i = 3; i >= 0; --i) p = hn::MulAdd(p, r, hn::Set(d, f32::kExp[i]));
  p = hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), hn::Set(d, 1.0F));
  const auto bias = hn::Set(di, 127);
  const auto half = hn::ShiftRight<1>(k);
  const V first = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const V second = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(k, half), bias)));
  return hn::Mul(hn::Mul(p, first), second);
}

HWY_INLINE V sigmoid_of(D d, V x) {
  const V one = hn::Set(d, 1.0F);
  return hn::Div(one, hn::Add(one, exp_of(d, hn::Neg(x))));
}

HWY_INLINE V tanh_of(D d, V x) {
  const V one = hn::Set(d, 1.0F);
  const V a = hn::Abs(x);
  const V s = hn::Mul(x, x);
  V q = hn::Set(d, f32::kTanh[4]);
  for (int i = 3; i >= 0; --i) q = hn::MulAdd(q, s, hn::Set(d, f32::kTanh[i]));
  const V near = hn::MulAdd(hn::Mul(x, s), q, x);
  const V e = exp_of(d, hn::Add(a, a));
  const V far = hn::CopySign(hn::Sub(one, hn::Div(hn::Set(d, 2.0F), hn::Add(e, one))), x);
  return hn::IfThenElse(hn::Lt(a, hn::Set(d, f32::kTanhSmall)), near, far);
}

HWY_INLINE V erf_of(D d, V x) {
  const V one = hn::Set(d, 1.0F), highest = hn::Set(d, f32::kErfHighest);
  const V s = hn::Mul(x, x);
  V p = hn::Set(d, f32::kErfNear[6]);
  for (int i = 5; i >= 0; --i) p = hn::MulAdd(p, s, hn::Set(d, f32::kErfNear[i]));
  const V near = hn::MulAdd(x, p, x);
  V a = hn::Abs(x);
  const auto small = hn::Lt(a, one);
  a = hn::IfThenElse(hn::Gt(a, highest), highest, a);
  const V t = hn::Div(one, hn::MulAdd(a, hn::Set(d, 0.5F), one));
  V q = hn::Set(d, f32::kErfFar[4]);
  for (int i = 3; i >= 0; --i) q = hn::MulAdd(q, t, hn::Set(d, f32::kErfFar[i]));
  const V far = hn::CopySign(hn::MulAdd(hn::Neg(exp_of(d, hn::Neg(hn::Mul(a, a)))), q, one), x);
  return hn::IfThenElse(small, near, far);
}

// Comparisons and selections rather than Min and Max, whose treatment of NaN and -0 differs between machines.
HWY_INLINE V clip_of(V x, V lowest, V highest) {
  x = hn::IfThenElse(hn::Lt(x, lowest), lowest, x);
  return hn::IfThenElse(hn::Gt(x, highest), highest, x);
}
HWY_INLINE V relu_of(D d, V x) { return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x); }
HWY_INLINE V hard_sigmoid_of(D d, V x, V alpha, V beta) {
  return clip_of(hn::MulAdd(alpha, x, beta), hn::Zero(d), hn::Set(d, 1.0F));
}

template <Activation kind>
HWY_INLINE V activation_of(D d, V x, V alpha, V beta) {
  if constexpr (kind == Activation::kRelu) return relu_of(d, x);
  if constexpr (kind == Activation::kClip) return clip_of(x, alpha, beta);
  if constexpr (kind == Activation::kLeaky) {
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(alpha, x), x);
  }
  if constexpr (kind == Activation::kSigmoid) return sigmoid_of(d, x);
  if constexpr (kind == Activation::kHardSwish) {
    return hn::Mul(x, hard_sigmoid_of(d, x, hn::Set(d, 1.0F / 6.0F), hn::Set(d, 0.5F)));
  }
  if constexpr (kind == Activation::kSilu) return hn::Mul(x, sigmoid_of(d, x));
  if constexpr (kind == Activation::kTanh) return tanh_of(d, x);
  if constexpr (kind == Activation::kHardSigmoid) return hard_sigmoid_of(d, x, alpha, beta);
  return x;
}

struct Activate {
  Activation kind = Activation::kNone;
  float alpha = 0, beta = 0;
};

// The last elements of a run that is no multiple of the lanes go through a buffer, so that nothing beyond is touched.
struct Rest {
  HWY_ALIGN float values[kLanes] = {};
  Rest() = default;
  Rest(const float* from, std::ptrdiff_t count) {
    for (std::ptrdiff_t i = 0; i < count; ++i) values[i] = from[i];
  }
  void to(float* y, std::ptrdiff_t count) const {
    for (std::ptrdiff_t i = 0; i < count; ++i) y[i] = values[i];
  }
};

// Not memcpy: calls of it are counted in timed threads, as copies of payloads.
HWY_INLINE void copy_run(const float* x, float* y, std::ptrdiff_t count) {
  const D d;
  std::ptrdiff_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(hn::LoadU(d, x + i), d, y + i);
  for (; i < count; ++i) y[i] = x[i];
}

// y[i] = f(x[i]); y may be x.
template <Activation kind>
HWY_NOINLINE void activate_run(const float* x, float* y, std::ptrdiff_t count, float alpha, float beta) {
  const D d;
  const V a = hn::Set(d, alpha), b = hn::Set(d, beta);
  std::ptrdiff_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(activation_of<kind>(d, hn::LoadU(d, x + i), a, b), d, y + i);
  if (i < count) {
    Rest rest(x + i, count - i);
    hn::Store(activation_of<kind>(d, hn::Load(d, rest.values), a, b), d, rest.values);
    rest.to(y + i, count - i);
  }
}
HWY_INLINE void activate_all(const Activate& act, const float* x, float* y, std::ptrdiff_t count) {
  switch (act.kind) {
    case Activation::kNone: return activate_run<Activation::kNone>(x, y, count, act.alpha, act.beta);
    case Activation::kRelu: return activate_run<Activation::kRelu>(x, y, count, act.alpha, act.beta);
    case Activation::kClip: return activate_run<Activation::kClip>(x, y, count, act.alpha, act.beta);
    case Activation::kLeaky: return activate_run<Activation::kLeaky>(x, y, count, act.alpha, act.beta);
    case Activation::kSigmoid: return activate_run<Activation::kSigmoid>(x, y, count, act.alpha, act.beta);
    case Activation::kHardSwish: return activate_run<Activation::kHardSwish>(x, y, count, act.alpha, act.beta);
    case Activation::kSilu: return activate_run<Activation::kSilu>(x, y, count, act.alpha, act.beta);
    case Activation::kTanh: return activate_run<Activation::kTanh>(x, y, count, act.alpha, act.beta);
    case Activation::kHardSigmoid: return activate_run<Activation::kHardSigmoid>(x, y, count, act.alpha, act.beta);
  }
}

// Zero into the channels from `valid` on of `pixels` pixels of one block.
HWY_INLINE void clear_holes(float* y, std::ptrdiff_t pixels, int valid) {
  if (valid >= kBlock) return;
  for (std::ptrdiff_t p = 0; p < pixels; ++p) {
    for (int c = valid; c < kBlock; ++c) y[p * kBlock + c] = 0;
  }
}
// Channels of block `b` that are no holes.
HWY_INLINE int valid_in(std::ptrdiff_t channels, std::ptrdiff_t b) {
  return static_cast<int>(std::min<std::ptrdiff_t>(channels - b * kBlock, kBlock));
}

}  // namespace takt::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // TAKT_TARGET
#endif  // include guard
