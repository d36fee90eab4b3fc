// Over linear tensors: softmax, means, layer normalisation, matrix products. One chain for each result.
#include <cmath>
#include <limits>

#include "kernels/cuda/each.h"

namespace takt::kernels::cuda::TAKT_BODY {
namespace {

using cpu::GemmBias;
using cpu::GemmParams;
using cpu::KernelId;
using cpu::LayerNormParams;
using cpu::SoftmaxParams;

struct Softmax {
  SoftmaxParams p;
  Address x, y;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t start = i / p.inner * p.axis * p.inner + i % p.inner;
    const float* const in = at<const float>(x) + start;
    float* const out = at<float>(y) + start;
    float highest = -std::numeric_limits<float>::infinity();
    for (std::int64_t k = 0; k < p.axis; ++k) highest = in[k * p.inner] > highest ? in[k * p.inner] : highest;
    float sum = 0;
    for (std::int64_t k = 0; k < p.axis; ++k) {
      const float value = exp_f32(in[k * p.inner] - highest);
      out[k * p.inner] = value;
      sum += value;
    }
    for (std::int64_t k = 0; k < p.axis; ++k) out[k * p.inner] /= sum;
  }
};
int softmax(const Call& call) {
  const auto p = load_params<SoftmaxParams>(call.params);
  return each("softmax", Softmax{p, call.operands[0], call.operands[1]}, p.outer * p.inner, call);
}

struct ReduceMean {
  SoftmaxParams p;
  Address x, y;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const float* const in = at<const float>(x) + i / p.inner * p.axis * p.inner + i % p.inner;
    float sum = 0;
    for (std::int64_t k = 0; k < p.axis; ++k) sum += in[k * p.inner];
    at<float>(y)[i] = sum / static_cast<float>(p.axis);
  }
};
int reduce_mean(const Call& call) {
  const auto p = load_params<SoftmaxParams>(call.params);
  return each("reduce_mean", ReduceMean{p, call.operands[0], call.operands[1]}, p.outer * p.inner, call);
}

struct LayerNorm {
  LayerNormParams p;
  Address x, scale, bias, y;
  TAKT_DEVICE void operator()(std::int64_t row) const {
    const float* const in = at<const float>(x) + row * p.axis;
    float* const out = at<float>(y) + row * p.axis;
    float sum = 0;
    for (std::int64_t i = 0; i < p.axis; ++i) sum += in[i];
    const float mean = sum / static_cast<float>(p.axis);
    float squares = 0;
    for (std::int64_t i = 0; i < p.axis; ++i) {
      const float centred = in[i] - mean;
      squares += centred * centred;
    }
    const float factor = 1.0F / std::sqrt(squares / static_cast<float>(p.axis) + p.epsilon);
    for (std::int64_t i = 0; i < p.axis; ++i) {
      float value = (in[i] - mean) * factor;
      if (p.scale == 1) value *= at<const float>(scale)[i];
      if (p.bias == 1) value += at<const float>(bias)[i];
      out[i] = value;
    }
  }
};
int layer_norm(const Call& call) {
  const auto p = load_params<LayerNormParams>(call.params);
  return each("layer_norm", LayerNorm{p, call.operands[0], call.operands[1], call.operands[2], call.operands[3]},
              p.outer, call);
}

struct Gemm {
  GemmParams p;
  Address a, b, c, y;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t column = i % p.n, row = i / p.n % p.m, batch = i / p.n / p.m;
    const float* const left = at<const float>(a) + ((p.batch_a == 1 ? batch * p.m : 0) + row) * p.k;
    const float* const right = at<const float>(b) + (p.batch_b == 1 ? batch * p.k * p.n : 0) + column;
    float sum = 0;
    switch (p.bias) {
      case GemmBias::kNone: break;
      case GemmBias::kScalar: sum = *at<const float>(c); break;
      case GemmBias::kRow: sum = at<const float>(c)[row]; break;
      case GemmBias::kColumn: sum = at<const float>(c)[column]; break;
      case GemmBias::kFull: sum = at<const float>(c)[row * p.n + column]; break;
    }
    for (std::int64_t k = 0; k < p.k; ++k) sum = fma(left[k], right[k * p.n], sum);
    at<float>(y)[i] = activate(p.activation, sum, p.alpha, p.beta);
  }
};
int gemm(const Call& call) {
  const auto p = load_params<GemmParams>(call.params);
  return each("gemm", Gemm{p, call.operands[0], call.operands[1], call.operands[2], call.operands[3]},
              p.batch * p.m * p.n, call);
}

}  // namespace

std::span<const DeviceHalf> linear_kernels() {
  static constexpr DeviceHalf kHalves[] = {{KernelId::kSoftmax, softmax},
                                           {KernelId::kReduceMean, reduce_mean},
                                           {KernelId::kGemm, gemm},
                                           {KernelId::kLayerNorm, layer_norm}};
  return kHalves;
}

}  // namespace takt::kernels::cuda::TAKT_BODY
