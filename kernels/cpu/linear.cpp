// Computation over linear tensors: softmax and mean along an axis, matrix products.
#include <limits>

#include "kernels/cpu/device.h"
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/linear.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd-inl.h"

#if TAKT_TARGET
HWY_BEFORE_NAMESPACE();
namespace takt::kernels::cpu::HWY_NAMESPACE {
namespace {

const float* input(const Operand* operands, int i) { return reinterpret_cast<const float*>(operands[i].data); }
float* output(const Operand* operands, int i) { return reinterpret_cast<float*>(operands[i].data); }

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// A sum is one chain of additions, in order; the chains of so many rows side by side hide each other's latency.
constexpr int kSide = 8;
template <class Term>
HWY_INLINE void sum_rows(const float* x, std::ptrdiff_t row, std::ptrdiff_t count, int rows, float (&sum)[kSide],
                         Term term) {
  for (float& s : sum) s = 0;
  if (rows == kSide) {
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      TAKT_UNROLL
      for (int s = 0; s < kSide; ++s) sum[s] += term(x[s * row + i]);
    }
    return;
  }
  for (int s = 0; s < rows; ++s) {
    for (std::ptrdiff_t i = 0; i < count; ++i) sum[s] += term(x[s * row + i]);
  }
}

// The largest element of a row; NaN never is. Which of equal ones does not matter to x - largest, but for the sign of
// a zero, whose exponential is 1.
HWY_INLINE float largest_of(const float* x, std::ptrdiff_t count) {
  const D d;
  V most = hn::Set(d, kLowest);
  std::ptrdiff_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const V v = hn::LoadU(d, x + i);
    most = hn::IfThenElse(hn::Gt(v, most), v, most);
  }
  HWY_ALIGN float lanes[kLanes];
  hn::Store(most, d, lanes);
  float result = kLowest;
  for (const float lane : lanes) result = lane > result ? lane : result;
  for (; i < count; ++i) result = x[i] > result ? x[i] : result;
  return result;
}

// At most kSide rows of neighbouring elements.
void softmax_rows(const float* x, float* y, std::ptrdiff_t count, int rows) {
  const D d;
  for (int r = 0; r < rows; ++r) {
    const float* const from = x + r * count;
    float* const to = y + r * count;
    const V most = hn::Set(d, largest_of(from, count));
    std::ptrdiff_t i = 0;
    for (; i + kLanes <= count; i += kLanes) hn::StoreU(exp_of(d, hn::Sub(hn::LoadU(d, from + i), most)), d, to + i);
    if (i < count) {
      Rest rest(from + i, count - i);
      hn::Store(exp_of(d, hn::Sub(hn::Load(d, rest.values), most)), d, rest.values);
      rest.to(to + i, count - i);
    }
  }
  float sum[kSide];
  sum_rows(y, count, count, rows, sum, [](float v) HWY_ATTR { return v; });
  for (int r = 0; r < rows; ++r) {
    float* const to = y + r * count;
    const V s = hn::Set(d, sum[r]);
    std::ptrdiff_t i = 0;
    for (; i + kLanes <= count; i += kLanes) hn::StoreU(hn::Div(hn::LoadU(d, to + i), s), d, to + i);
    for (; i < count; ++i) to[i] /= sum[r];
  }
}

// Elements that are not neighbours: a vector is `width` neighbouring rows.
void softmax_columns(const float* x, float* y, std::ptrdiff_t axis, std::ptrdiff_t inner, std::ptrdiff_t width) {
  const D d;
  const bool whole = width == kLanes;
  const auto load = [&](const float* p)
                        HWY_ATTR { return whole ? hn::LoadU(d, p) : hn::Load(d, Rest(p, width).values); };
  const auto store = [&](V v, float* p) HWY_ATTR {
    if (whole) {
      hn::StoreU(v, d, p);
    } else {
      Rest rest;
      hn::Store(v, d, rest.values);
      rest.to(p, width);
    }
  };
  V most = hn::Set(d, kLowest);
  for (std::ptrdiff_t i = 0; i < axis; ++i) {
    const V v = load(x + i * inner);
    most = hn::IfThenElse(hn::Gt(v, most), v, most);
  }
  V sum = hn::Zero(d);
  for (std::ptrdiff_t i = 0; i < axis; ++i) {
    const V e = exp_of(d, hn::Sub(load(x + i * inner), most));
    sum = hn::Add(sum, e);
    store(e, y + i * inner);
  }
  for (std::ptrdiff_t i = 0; i < axis; ++i) store(hn::Div(load(y + i * inner), sum), y + i * inner);
}

void softmax(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<SoftmaxParams>(params);
  const float* const x = input(operands, 0);
  float* const y = output(operands, 1);
  if (p.inner == 1) {
    const Range own = share_of(p.outer, part, parts);
    for (std::ptrdiff_t i = own.first; i < own.last; i += kSide) {
      softmax_rows(x + i * p.axis, y + i * p.axis, p.axis,
                   static_cast<int>(std::min<std::ptrdiff_t>(kSide, own.last - i)));
    }
    return;
  }
  const std::ptrdiff_t vectors = (p.inner + kLanes - 1) / kLanes;
  const Range own = share_of(p.outer * vectors, part, parts);
  for (std::ptrdiff_t u = own.first; u < own.last; ++u) {
    const std::ptrdiff_t column = u % vectors * kLanes, at = u / vectors * p.axis * p.inner + column;
    softmax_columns(x + at, y + at, p.axis, p.inner, std::min<std::ptrdiff_t>(kLanes, p.inner - column));
  }
}

void reduce_mean(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<SoftmaxParams>(params);
  const D d;
  const float* const x = input(operands, 0);
  float* const y = output(operands, 1);
  const auto divisor = static_cast<float>(p.axis);
  if (p.inner == 1) {
    const Range own = share_of(p.outer, part, parts);
    for (std::ptrdiff_t u = own.first; u < own.last; u += kSide) {
      const auto side = static_cast<int>(std::min<std::ptrdiff_t>(kSide, own.last - u));
      float sum[kSide];
      sum_rows(x + u * p.axis, p.axis, p.axis, side, sum, [](float v) HWY_ATTR { return v; });
      for (int s = 0; s < side; ++s) y[u + s] = sum[s] / divisor;
    }
    return;
  }
  const std::ptrdiff_t vectors = (p.inner + kLanes - 1) / kLanes;
  const Range own = share_of(p.outer * vectors, part, parts);
  for (std::ptrdiff_t u = own.first; u < own.last; ++u) {
    const std::ptrdiff_t column = u % vectors * kLanes;
    const std::ptrdiff_t width = std::min<std::ptrdiff_t>(kLanes, p.inner - column);
    const float* const from = x + u / vectors * p.axis * p.inner + column;
    float* const to = y + u / vectors * p.inner + column;
    V sum = hn::Zero(d);
    for (std::ptrdiff_t i = 0; i < p.axis; ++i) {
      const float* const at = from + i * p.inner;
      sum = hn::Add(sum, width == kLanes ? hn::LoadU(d, at) : hn::Load(d, Rest(at, width).values));
    }
    sum = hn::Div(sum, hn::Set(d, divisor));
    if (width == kLanes) {
      hn::StoreU(sum, d, to);
    } else {
      Rest rest;
      hn::Store(sum, d, rest.values);
      rest.to(to, width);
    }
  }
}

void layer_norm(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<LayerNormParams>(params);
  const D d;
  const float* const scale = p.scale == 1 ? input(operands, 1) : nullptr;
  const float* const bias = p.bias == 1 ? input(operands, 2) : nullptr;
  const auto divisor = static_cast<float>(p.axis);
  const Range own = share_of(p.outer, part, parts);
  for (std::ptrdiff_t u = own.first; u < own.last; u += kSide) {
    const auto side = static_cast<int>(std::min<std::ptrdiff_t>(kSide, own.last - u));
    const float* const x = input(operands, 0) + u * p.axis;
    float* const y = output(operands, 3) + u * p.axis;
    float sum[kSide], squares[kSide];
    sum_rows(x, p.axis, p.axis, side, sum, [](float v) HWY_ATTR { return v; });
    for (int s = 0; s < side; ++s) {
      const float mean = sum[s] / divisor;
      const V m = hn::Set(d, mean);
      const float* const from = x + s * p.axis;
      float* const to = y + s * p.axis;
      std::ptrdiff_t i = 0;
      for (; i + kLanes <= p.axis; i += kLanes) hn::StoreU(hn::Sub(hn::LoadU(d, from + i), m), d, to + i);
      for (; i < p.axis; ++i) to[i] = from[i] - mean;
    }
    sum_rows(y, p.axis, p.axis, side, squares, [](float v) HWY_ATTR { return v * v; });
    for (int s = 0; s < side; ++s) {
      const float factor = 1.0F / __builtin_sqrtf(squares[s] / divisor + p.epsilon);
      const V f = hn::Set(d, factor);
      float* const to = y + s * p.axis;
      std::ptrdiff_t i = 0;
      for (; i + kLanes <= p.axis; i += kLanes) {
        V v = hn::Mul(hn::LoadU(d, to + i), f);
        if (scale != nullptr) v = hn::Mul(v, hn::LoadU(d, scale + i));
        if (bias != nullptr) v = hn::Add(v, hn::LoadU(d, bias + i));
        hn::StoreU(v, d, to + i);
      }
      for (; i < p.axis; ++i) {
        float v = to[i] * factor;
        if (scale != nullptr) v *= scale[i];
        if (bias != nullptr) v += bias[i];
        to[i] = v;
      }
    }
  }
}

// Matrix product: a vector is neighbouring columns of B; a tile of rows times vectors stays in registers over the whole
// reduction. The last columns of a row that is no multiple of the lanes are covered by a vector that overlaps the one
// before, which computes the same values once more; both belong to one unit, since another part may own the next.
constexpr int kRows = HWY_TARGET == HWY_AVX2 ? 6 : 8;

struct Product {
  std::ptrdiff_t k, n;
  GemmBias bias;
  Activate act;
};

template <int kTileRows, int kTileVectors>
HWY_NOINLINE void gemm_tile(const Product& g, const float* a, const float* b, const float* c, float* y) {
  const D d;
  V acc[kTileRows][kTileVectors];
  TAKT_UNROLL
  for (int r = 0; r < kTileRows; ++r) {
    TAKT_UNROLL
    for (int v = 0; v < kTileVectors; ++v) {
      switch (g.bias) {
        case GemmBias::kNone: acc[r][v] = hn::Zero(d); break;
        case GemmBias::kScalar: acc[r][v] = hn::Set(d, *c); break;
        case GemmBias::kRow: acc[r][v] = hn::Set(d, c[r]); break;
        case GemmBias::kColumn: acc[r][v] = hn::LoadU(d, c + v * kLanes); break;
        case GemmBias::kFull: acc[r][v] = hn::LoadU(d, c + r * g.n + v * kLanes); break;
      }
    }
  }
  for (std::ptrdiff_t k = 0; k < g.k; ++k, b += g.n) {
    V weight[kTileVectors];
    TAKT_UNROLL
    for (int v = 0; v < kTileVectors; ++v) weight[v] = hn::LoadU(d, b + v * kLanes);
    TAKT_UNROLL
    for (int r = 0; r < kTileRows; ++r) {
      const V value = hn::Set(d, a[r * g.k + k]);
      TAKT_UNROLL
      for (int v = 0; v < kTileVectors; ++v) acc[r][v] = hn::MulAdd(value, weight[v], acc[r][v]);
    }
  }
  TAKT_UNROLL
  for (int r = 0; r < kTileRows; ++r) {
    TAKT_UNROLL
    for (int v = 0; v < kTileVectors; ++v) hn::StoreU(acc[r][v], d, y + r * g.n + v * kLanes);
  }
  if (g.act.kind != Activation::kNone) {
    for (int r = 0; r < kTileRows; ++r) activate_all(g.act, y + r * g.n, y + r * g.n, kTileVectors * kLanes);
  }
}

using GemmRun = void (*)(const Product&, const float*, const float*, const float*, float*);
template <int kTileVectors, int... rows>
GemmRun gemm_of(int count, std::integer_sequence<int, rows...>) {
  static constexpr GemmRun kRuns[] = {gemm_tile<rows + 1, kTileVectors>...};
  return kRuns[count - 1];
}

// Rows of fewer columns than lanes.
void gemm_narrow(const Product& g, const float* a, const float* b, const float* c, float* y, std::ptrdiff_t rows) {
  for (std::ptrdiff_t r = 0; r < rows; ++r) {
    for (std::ptrdiff_t j = 0; j < g.n; ++j) {
      float sum = 0;
      switch (g.bias) {
        case GemmBias::kNone: break;
        case GemmBias::kScalar: sum = *c; break;
        case GemmBias::kRow: sum = c[r]; break;
        case GemmBias::kColumn: sum = c[j]; break;
        case GemmBias::kFull: sum = c[r * g.n + j]; break;
      }
      for (std::ptrdiff_t k = 0; k < g.k; ++k) sum = __builtin_fmaf(a[r * g.k + k], b[k * g.n + j], sum);
      y[r * g.n + j] = sum;
    }
    activate_all(g.act, y + r * g.n, y + r * g.n, g.n);
  }
}

void gemm(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<GemmParams>(params);
  const Product g{p.k, p.n, p.bias, {p.activation, p.alpha, p.beta}};
  // A unit is a tile: rows fastest, so that the columns of B that a tile reads stay in the cache.
  // Every unit has at least a vector of columns: a remainder below that belongs to the pair before it.
  const std::ptrdiff_t pairs = std::max<std::ptrdiff_t>((p.n + kLanes) / (2 * kLanes), 1),
                       groups = (p.m + kRows - 1) / kRows;
  const Range own = share_of(p.batch * pairs * groups, part, parts);
  for (std::ptrdiff_t u = own.first; u < own.last; ++u) {
    const std::ptrdiff_t batch = u / (pairs * groups), pair = u / groups % pairs, column = pair * 2 * kLanes;
    const std::ptrdiff_t end = pair + 1 == pairs ? p.n : column + 2 * kLanes;
    const std::ptrdiff_t row = p.m * (u % groups) / groups, last_row = p.m * (u % groups + 1) / groups;
    const auto rows = static_cast<int>(last_row - row);
    const float* const a = input(operands, 0) + (p.batch_a == 1 ? batch * p.m * p.k : 0) + row * p.k;
    const float* const b = input(operands, 1) + (p.batch_b == 1 ? batch * p.k * p.n : 0);
    const float* c = input(operands, 2);
    if (p.bias == GemmBias::kRow) c += row;
    if (p.bias == GemmBias::kFull) c += row * p.n;
    float* const y = output(operands, 3) + (batch * p.m + row) * p.n;
    const bool by_column = p.bias == GemmBias::kColumn || p.bias == GemmBias::kFull;
    const auto all = std::make_integer_sequence<int, kRows>();
    const auto run = [&](std::ptrdiff_t at, GemmRun tile)
                         HWY_ATTR { tile(g, a, b + at, by_column ? c + at : c, y + at); };
    if (p.n < kLanes) {
      gemm_narrow(g, a, b, c, y, rows);
    } else {
      const bool two = column + 2 * kLanes <= end;
      run(column, two ? gemm_of<2>(rows, all) : gemm_of<1>(rows, all));
      if (column + (two ? 2 : 1) * kLanes < end) run(end - kLanes, gemm_of<1>(rows, all));
    }
  }
}

}  // namespace

std::span<const DeviceHalf> linear_table() {
  static constexpr DeviceHalf kHalves[] = {{KernelId::kSoftmax, softmax},
                                           {KernelId::kReduceMean, reduce_mean},
                                           {KernelId::kLayerNorm, layer_norm},
                                           {KernelId::kGemm, gemm}};
  return kHalves;
}

}  // namespace takt::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // TAKT_TARGET

#if HWY_ONCE
namespace takt::kernels::cpu {
TAKT_TABLE(linear_kernels, linear_table)
}  // namespace takt::kernels::cpu
#endif
