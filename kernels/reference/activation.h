// What may follow a convolution inside one kernel, and what elementwise kernels compute: one definition for both.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/reference/elementary_f32.h"

namespace takt::kernels::reference {

enum class Activation : std::uint8_t {
  kNone,
  kRelu,
  kClip,   // alpha: lowest, beta: highest
  kLeaky,  // alpha: slope below zero
  kSigmoid,
  kHardSwish,  // x * hardsigmoid(x) with 1/6 and 1/2
  kSilu,       // x * sigmoid(x)
  kTanh,
  kHardSigmoid,  // alpha * x + beta, clipped to [0, 1]
};

// Comparisons are written so that NaN passes and, for kRelu, -0 stays (one max instruction on x86).
TAKT_FUNCTION float clip_f32(float x, float lowest, float highest) {
  x = x < lowest ? lowest : x;
  return x > highest ? highest : x;
}

TAKT_FUNCTION float activate_f32(Activation activation, float x, float alpha, float beta) {
  switch (activation) {
    case Activation::kNone: return x;
    case Activation::kRelu: return x < 0.0F ? 0.0F : x;
    case Activation::kClip: return clip_f32(x, alpha, beta);
    case Activation::kLeaky: return x < 0.0F ? alpha * x : x;
    case Activation::kSigmoid: return sigmoid_f32(x);
    case Activation::kHardSigmoid: return clip_f32(std::fma(alpha, x, beta), 0.0F, 1.0F);
    case Activation::kHardSwish: return x * clip_f32(std::fma(1.0F / 6.0F, x, 0.5F), 0.0F, 1.0F);
    case Activation::kSilu: return x * sigmoid_f32(x);
    case Activation::kTanh: return tanh_f32(x);
  }
  return x;
}

}  // namespace takt::kernels::reference
