// Unary and binary operations. Over a blocked tensor they run over the holes too, which are cleared again where an
// operation leaves something in them.
#include <cmath>

#include "kernels/cpu/device.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd-inl.h"

#if TAKT_TARGET
HWY_BEFORE_NAMESPACE();
namespace takt::kernels::cpu::HWY_NAMESPACE {
namespace {

const float* input(const Operand* operands, int i) { return reinterpret_cast<const float*>(operands[i].data); }
float* output(const Operand* operands, int i) { return reinterpret_cast<float*>(operands[i].data); }

struct Exp {
  static V of(D d, V x) { return exp_of(d, x); }
};
struct Sqrt {
  static V of(D, V x) { return hn::Sqrt(x); }
};
struct Abs {
  static V of(D, V x) { return hn::Abs(x); }
};
struct Neg {
  static V of(D, V x) { return hn::Neg(x); }
};

struct Erf {
  static V of(D d, V x) { return erf_of(d, x); }
};

template <class Op>
void unary_run(const float* x, float* y, std::ptrdiff_t count) {
  const D d;
  std::ptrdiff_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(Op::of(d, hn::LoadU(d, x + i)), d, y + i);
  if (i < count) {
    Rest rest(x + i, count - i);
    hn::Store(Op::of(d, hn::Load(d, rest.values)), d, rest.values);
    rest.to(y + i, count - i);
  }
}

void unary_all(const UnaryParams& p, const float* x, float* y, std::ptrdiff_t count) {
  switch (p.op) {
    case Unary::kExp: return unary_run<Exp>(x, y, count);
    case Unary::kSqrt: return unary_run<Sqrt>(x, y, count);
    case Unary::kAbs: return unary_run<Abs>(x, y, count);
    case Unary::kNeg: return unary_run<Neg>(x, y, count);
    case Unary::kErf: return unary_run<Erf>(x, y, count);
    case Unary::kActivation: return activate_all({p.activation, p.alpha, p.beta}, x, y, count);
  }
}

// Pieces small enough for the first-level cache, so that a second pass over one costs little, and whole cache lines.
constexpr std::ptrdiff_t kPiece = 2048;

void unary(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<UnaryParams>(params);
  const float* const x = input(operands, 0);
  float* const y = output(operands, 1);
  if (p.blocked == 1) {
    const std::ptrdiff_t blocks = blocks_of(p.c);
    const Range share = share_of(p.n * blocks * p.pixels, part, parts);
    for (std::ptrdiff_t at = share.first; at < share.last;) {
      const std::ptrdiff_t plane = at / p.pixels;
      const std::ptrdiff_t end = std::min({share.last, (plane + 1) * p.pixels, at + kPiece / kBlock});
      unary_all(p, x + at * kBlock, y + at * kBlock, (end - at) * kBlock);
      clear_holes(y + at * kBlock, end - at, valid_in(p.c, plane % blocks));
      at = end;
    }
    return;
  }
  const std::ptrdiff_t count = p.n * std::ptrdiff_t{p.c} * p.pixels;
  const Range pieces = share_of((count + kPiece - 1) / kPiece, part, parts);
  for (std::ptrdiff_t i = pieces.first; i < pieces.last; ++i) {
    unary_all(p, x + i * kPiece, y + i * kPiece, std::min(kPiece, count - i * kPiece));
  }
}

struct Add {
  static V of(V a, V b) { return hn::Add(a, b); }
  static float of(float a, float b) { return a + b; }
};
struct Sub {
  static V of(V a, V b) { return hn::Sub(a, b); }
  static float of(float a, float b) { return a - b; }
};
struct Mul {
  static V of(V a, V b) { return hn::Mul(a, b); }
  static float of(float a, float b) { return a * b; }
};
struct Div {
  static V of(V a, V b) { return hn::Div(a, b); }
  static float of(float a, float b) { return a / b; }
};
// NaN of either operand is the result: of b because no comparison with it holds.
struct Min {
  static V of(V a, V b) { return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b); }
  static float of(float a, float b) { return a < b || std::isnan(a) ? a : b; }
};
struct Max {
  static V of(V a, V b) { return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b); }
  static float of(float a, float b) { return a > b || std::isnan(a) ? a : b; }
};
template <class Op>
struct Swapped {
  static V of(V a, V b) { return Op::of(b, a); }
  static float of(float a, float b) { return Op::of(b, a); }
};

// y[i] = a[i] op b[i * kStep]; kStep 0: one value for all.
template <class Op, int kStep>
void binary_run(const float* a, const float* b, float* y, std::ptrdiff_t count) {
  const D d;
  std::ptrdiff_t i = 0;
  const V one = hn::Set(d, *b);
  for (; i + kLanes <= count; i += kLanes) {
    hn::StoreU(Op::of(hn::LoadU(d, a + i), kStep == 0 ? one : hn::LoadU(d, b + i)), d, y + i);
  }
  for (; i < count; ++i) y[i] = Op::of(a[i], b[i * kStep]);
}

// Pixels of one block with a value for each channel.
template <class Op>
void binary_channels(const float* a, const float* b, float* y, std::ptrdiff_t pixels) {
  const D d;
  for (int v = 0; v < kVectors; ++v) {
    const V value = hn::LoadU(d, b + v * kLanes);
    for (std::ptrdiff_t i = 0; i < pixels; ++i) {
      const std::ptrdiff_t at = i * kBlock + v * kLanes;
      hn::StoreU(Op::of(hn::LoadU(d, a + at), value), d, y + at);
    }
  }
}

template <class Op>
void binary_with(const BinaryParams& p, const Operand* operands, int part, int parts) {
  const float* const a = input(operands, 0);
  const float* const b = input(operands, 1);
  float* const y = output(operands, 2);
  if (p.blocked == 1) {
    const std::ptrdiff_t blocks = blocks_of(p.c);
    const Range share = share_of(p.n * blocks * p.pixels, part, parts);
    for (std::ptrdiff_t i = share.first; i < share.last;) {
      const std::ptrdiff_t plane = i / p.pixels;
      const std::ptrdiff_t end = std::min({share.last, (plane + 1) * p.pixels, i + kPiece / kBlock});
      const std::ptrdiff_t at = i * kBlock, count = (end - i) * kBlock;
      switch (p.second) {
        case Operand2::kSame: binary_run<Op, 1>(a + at, b + at, y + at, count); break;
        case Operand2::kScalar: binary_run<Op, 0>(a + at, b, y + at, count); break;
        case Operand2::kChannel: binary_channels<Op>(a + at, b + plane % blocks * kBlock, y + at, end - i); break;
      }
      clear_holes(y + at, end - i, valid_in(p.c, plane % blocks));
      i = end;
    }
    return;
  }
  if (p.second == Operand2::kChannel) {
    const Range rows = share_of(p.n * std::ptrdiff_t{p.c}, part, parts);
    if (p.pixels == 1) {  // a row of channels is a run
      for (std::ptrdiff_t i = rows.first; i < rows.last;) {
        const std::ptrdiff_t end = std::min(rows.last, (i / p.c + 1) * p.c);
        binary_run<Op, 1>(a + i, b + i % p.c, y + i, end - i);
        i = end;
      }
      return;
    }
    for (std::ptrdiff_t i = rows.first; i < rows.last; ++i) {
      binary_run<Op, 0>(a + i * p.pixels, b + i % p.c, y + i * p.pixels, p.pixels);
    }
    return;
  }
  const std::ptrdiff_t count = p.n * std::ptrdiff_t{p.c} * p.pixels;
  const Range pieces = share_of((count + kPiece - 1) / kPiece, part, parts);
  const std::ptrdiff_t first = pieces.first * kPiece, last = std::min(count, pieces.last * kPiece);
  if (first >= last) return;
  if (p.second == Operand2::kSame) {
    binary_run<Op, 1>(a + first, b + first, y + first, last - first);
  } else {
    binary_run<Op, 0>(a + first, b, y + first, last - first);
  }
}

void binary(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<BinaryParams>(params);
  const bool swapped = p.swapped == 1;
  switch (p.op) {
    case Binary::kAdd: return binary_with<Add>(p, operands, part, parts);
    case Binary::kMul: return binary_with<Mul>(p, operands, part, parts);
    case Binary::kSub:
      return swapped ? binary_with<Swapped<Sub>>(p, operands, part, parts) : binary_with<Sub>(p, operands, part, parts);
    case Binary::kDiv:
      return swapped ? binary_with<Swapped<Div>>(p, operands, part, parts) : binary_with<Div>(p, operands, part, parts);
    case Binary::kMin:
      return swapped ? binary_with<Swapped<Min>>(p, operands, part, parts) : binary_with<Min>(p, operands, part, parts);
    case Binary::kMax:
      return swapped ? binary_with<Swapped<Max>>(p, operands, part, parts) : binary_with<Max>(p, operands, part, parts);
  }
}

// Rows of the last extent; the others are counted like the wheels of an odometer.
template <class Op>
void broadcast_with(const BroadcastParams& p, const Operand* operands, int part, int parts) {
  const float* const a = input(operands, 0);
  const float* const b = input(operands, 1);
  float* const y = output(operands, 2);
  const int inner = p.rank - 1;
  const std::ptrdiff_t length = p.rank == 0 ? 1 : p.dims[inner];
  std::ptrdiff_t rows = 1;
  for (int d = 0; d < inner; ++d) rows *= p.dims[d];
  const Range share = share_of(rows, part, parts);
  const std::ptrdiff_t step_a = p.rank == 0 ? 0 : p.stride_a[inner], step_b = p.rank == 0 ? 0 : p.stride_b[inner];
  for (std::ptrdiff_t row = share.first; row < share.last; ++row) {
    std::ptrdiff_t rest = row, from_a = 0, from_b = 0;
    for (int d = inner - 1; d >= 0; --d) {
      const std::ptrdiff_t i = rest % p.dims[d];
      rest /= p.dims[d];
      from_a += i * p.stride_a[d];
      from_b += i * p.stride_b[d];
    }
    float* const out = y + row * length;
    if (step_a == 1 && step_b == 1) {
      binary_run<Op, 1>(a + from_a, b + from_b, out, length);
    } else if (step_a == 1 && step_b == 0) {
      binary_run<Op, 0>(a + from_a, b + from_b, out, length);
    } else if (step_a == 0 && step_b == 1) {
      binary_run<Swapped<Op>, 0>(b + from_b, a + from_a, out, length);
    } else {
      for (std::ptrdiff_t i = 0; i < length; ++i) out[i] = Op::of(a[from_a + i * step_a], b[from_b + i * step_b]);
    }
  }
}

void binary_broadcast(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<BroadcastParams>(params);
  switch (p.op) {
    case Binary::kAdd: return broadcast_with<Add>(p, operands, part, parts);
    case Binary::kSub: return broadcast_with<Sub>(p, operands, part, parts);
    case Binary::kMul: return broadcast_with<Mul>(p, operands, part, parts);
    case Binary::kDiv: return broadcast_with<Div>(p, operands, part, parts);
    case Binary::kMin: return broadcast_with<Min>(p, operands, part, parts);
    case Binary::kMax: return broadcast_with<Max>(p, operands, part, parts);
  }
}

}  // namespace

std::span<const DeviceHalf> elementwise_table() {
  static constexpr DeviceHalf kHalves[] = {
      {KernelId::kUnary, unary}, {KernelId::kBinary, binary}, {KernelId::kBinaryBroadcast, binary_broadcast}};
  return kHalves;
}

}  // namespace takt::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // TAKT_TARGET

#if HWY_ONCE
namespace takt::kernels::cpu {
TAKT_TABLE(elementwise_kernels, elementwise_table)
}  // namespace takt::kernels::cpu
#endif
