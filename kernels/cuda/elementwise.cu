// Unary and binary operations on either layout.
#include <cmath>

#include "kernels/cuda/each.h"

namespace takt::kernels::cuda::TAKT_BODY {
namespace {

using cpu::Binary;
using cpu::BinaryParams;
using cpu::BroadcastParams;
using cpu::f16_form;
using cpu::KernelId;
using cpu::Operand2;
using cpu::Unary;
using cpu::UnaryParams;

template <class T>
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
    write<T>(y, i, hole ? 0.0F : of(read<T>(x, i)));
  }
};
template <class T>
int unary(const Call& call) {
  const auto p = load_params<UnaryParams>(call.params);
  const std::int64_t channels = p.blocked == 1 ? blocks_on_host(p.c) * kBlock : p.c;
  return each(form<T>("unary", "unary_f16"), UnaryOf<T>{p, call.operands[0], call.operands[1]},
              p.n * channels * p.pixels, call);
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

template <class T>
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
    if (hole) {
      write<T>(y, i, 0);
      return;
    }
    const float left = read<T>(a, i);
    const float right = p.second == Operand2::kScalar ? *at<const float>(b) : read<T>(b, second);
    write<T>(y, i, p.swapped == 1 ? combine(p.op, right, left) : combine(p.op, left, right));
  }
};
template <class T>
int binary(const Call& call) {
  const auto p = load_params<BinaryParams>(call.params);
  const std::int64_t channels = p.blocked == 1 ? blocks_on_host(p.c) * kBlock : p.c;
  return each(form<T>("binary", "binary_f16"), BinaryOf<T>{p, call.operands[0], call.operands[1], call.operands[2]},
              p.n * channels * p.pixels, call);
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
  static constexpr DeviceHalf kHalves[] = {{KernelId::kUnary, unary<float>},
                                           {KernelId::kBinary, binary<float>},
                                           {KernelId::kBinaryBroadcast, binary_broadcast},
                                           {f16_form(KernelId::kUnary), unary<Half>},
                                           {f16_form(KernelId::kBinary), binary<Half>}};
  return kHalves;
}

}  // namespace takt::kernels::cuda::TAKT_BODY
