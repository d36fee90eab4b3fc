// Unary and binary operations on either layout.
#include <cmath>

#include "kernels/cuda/each.h"

namespace takt::kernels::cuda::TAKT_BODY {
namespace {

using cpu::Binary;
using cpu::BinaryParams;
using cpu::BroadcastParams;
using cpu::KernelId;
using cpu::Operand2;
using cpu::Unary;
using cpu::UnaryParams;

struct UnaryOf {
  UnaryParams p;
  Address x, y;
  TAKT_DEVICE float of(float v) const {
    switch (p.op) {
      case Unary::kExp: return exp_f32(v);
      case Unary::kSqrt: return std::sqrt(v);
      case Unary::kAbs: return std::fabs(v);
      case Unary::kNeg: return -v;
      case Unary::kErf: return erf_f32(v);
      case Unary::kActivation: return activate(p.activation, v, p.alpha, p.beta);
    }
    return v;
  }
  TAKT_DEVICE void operator()(std::int64_t i) const {
    const bool hole = p.blocked == 1 && place_of(i, p.c, p.pixels).hole;
    at<float>(y)[i] = hole ? 0.0F : of(at<const float>(x)[i]);
  }
};
int unary(const Call& call) {
  const auto p = load_params<UnaryParams>(call.params);
  const std::int64_t channels = p.blocked == 1 ? blocks_on_host(p.c) * kBlock : p.c;
  return each("unary", UnaryOf{p, call.operands[0], call.operands[1]}, p.n * channels * p.pixels, call);
}

// NaN of either operand is the result of a minimum and a maximum.
TAKT_DEVICE float combine(Binary op, float a, float b) {
  switch (op) {
    case Binary::kAdd: return a + b;
    case Binary::kSub: return a - b;
    case Binary::kMul: return a * b;
    case Binary::kDiv: return a / b;
    case Binary::kMin: return a < b || a != a ? a : b;
    case Binary::kMax: return a > b || a != a ? a : b;
  }
  return a;
}

struct BinaryOf {
  BinaryParams p;
  Address a, b, y;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    std::int64_t second = i;
    bool hole = false;
    if (p.blocked == 1) {
      const Place to = place_of(i, p.c, p.pixels);
      hole = to.hole;
      if (p.second == Operand2::kChannel) second = to.channel;
    } else if (p.second == Operand2::kChannel) {
      second = i / p.pixels % p.c;
    }
    if (p.second == Operand2::kScalar) second = 0;
    if (hole) {
      at<float>(y)[i] = 0;
      return;
    }
    const float left = at<const float>(a)[i], right = at<const float>(b)[second];
    at<float>(y)[i] = p.swapped == 1 ? combine(p.op, right, left) : combine(p.op, left, right);
  }
};
int binary(const Call& call) {
  const auto p = load_params<BinaryParams>(call.params);
  const std::int64_t channels = p.blocked == 1 ? blocks_on_host(p.c) * kBlock : p.c;
  return each("binary", BinaryOf{p, call.operands[0], call.operands[1], call.operands[2]}, p.n * channels * p.pixels,
              call);
}

struct BroadcastOf {
  BroadcastParams p;
  Address a, b, y;
  TAKT_DEVICE void operator()(std::int64_t i) const {
    std::int64_t rest = i, from_a = 0, from_b = 0;
    for (int d = p.rank - 1; d >= 0; --d) {
      const std::int64_t index = rest % p.dims[d];
      rest /= p.dims[d];
      from_a += index * p.stride_a[d];
      from_b += index * p.stride_b[d];
    }
    at<float>(y)[i] = combine(p.op, at<const float>(a)[from_a], at<const float>(b)[from_b]);
  }
};
int binary_broadcast(const Call& call) {
  const auto p = load_params<BroadcastParams>(call.params);
  std::int64_t count = 1;
  for (int d = 0; d < p.rank; ++d) count *= p.dims[d];
  return each("binary_broadcast", BroadcastOf{p, call.operands[0], call.operands[1], call.operands[2]}, count, call);
}

}  // namespace

std::span<const DeviceHalf> elementwise_kernels() {
  static constexpr DeviceHalf kHalves[] = {
      {KernelId::kUnary, unary}, {KernelId::kBinary, binary}, {KernelId::kBinaryBroadcast, binary_broadcast}};
  return kHalves;
}

}  // namespace takt::kernels::cuda::TAKT_BODY
