// Sparse convolutions: a gathered matrix product for every tap.
#include "kernels/cpu/device.h"
#include "kernels/cpu/operators.h"
#include "kernels/cpu/targets.h"
#include "kernels/voxels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/sparse.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd-inl.h"

#if TAKT_TARGET
HWY_BEFORE_NAMESPACE();
namespace takt::kernels::cpu::HWY_NAMESPACE {
namespace {

// The rows of a result that are worked on together, tap by tap. Of a surface a tap finds about a third of them, enough
// for several register tiles; their sums stay in the first- or second-level cache.
constexpr int kTileRows = 256;
// Sums in registers: kMostVectors columns of vectors times rows, what remains holds the weights and one input value.
constexpr int kRegisters = HWY_TARGET == HWY_AVX2 ? 16 : 32;
constexpr int kMostVectors = HWY_TARGET == HWY_AVX2 ? 2 : 4;
constexpr int rows_in_registers(int vectors) { return std::min((kRegisters - 2 - vectors) / vectors, 14); }

// Whether masked loads and stores leave alone what is masked out; elsewhere they are loads and stores of the whole.
constexpr bool kMasks = kTarget != Target::kNeon;

// y[rows[r]][0 .. vectors) += x[r] * weights over `depth` channels. `rest`: of the last vector only so many columns.
template <int vectors, int count, bool partial>
HWY_INLINE void product(const float* const* HWY_RESTRICT x, const float* HWY_RESTRICT weights, float* HWY_RESTRICT y,
                        const std::int32_t* HWY_RESTRICT rows, std::ptrdiff_t depth, std::ptrdiff_t width,
                        std::ptrdiff_t rest) {
  const D d;
  const auto mask = hn::FirstN(d, static_cast<std::size_t>(rest));
  const auto load = [&](const float* from) HWY_ATTR {
    if constexpr (!partial) return hn::LoadU(d, from);
    if constexpr (kMasks) return hn::MaskedLoad(mask, d, from);
    return hn::Load(d, Rest(from, rest).values);
  };
  V sum[count][vectors];
  TAKT_UNROLL
  for (int r = 0; r < count; ++r) {
    TAKT_UNROLL
    for (int v = 0; v < vectors; ++v) sum[r][v] = load(y + rows[r] * width + v * kLanes);
  }
  const float* in[count];
  TAKT_UNROLL
  for (int r = 0; r < count; ++r) in[r] = x[r];
  for (std::ptrdiff_t c = 0; c < depth; ++c) {
    V w[vectors];
    TAKT_UNROLL
    for (int v = 0; v < vectors; ++v) w[v] = load(weights + c * width + v * kLanes);
    TAKT_UNROLL
    for (int r = 0; r < count; ++r) {
      const V value = hn::Set(d, in[r][c]);
      TAKT_UNROLL
      for (int v = 0; v < vectors; ++v) sum[r][v] = hn::MulAdd(value, w[v], sum[r][v]);
    }
  }
  TAKT_UNROLL
  for (int r = 0; r < count; ++r) {
    TAKT_UNROLL
    for (int v = 0; v < vectors; ++v) {
      float* const to = y + rows[r] * width + v * kLanes;
      if constexpr (!partial) {
        hn::StoreU(sum[r][v], d, to);
      } else if constexpr (kMasks) {
        hn::BlendedStore(sum[r][v], mask, d, to);
      } else {
        Rest row;
        hn::Store(sum[r][v], d, row.values);
        row.to(to, rest);
      }
    }
  }
}

template <int vectors, int count, bool partial>
HWY_NOINLINE void product_of(const float* const* x, const float* weights, float* y, const std::int32_t* rows,
                             std::ptrdiff_t depth, std::ptrdiff_t width, std::ptrdiff_t rest) {
  product<vectors, count, partial>(x, weights, y, rows, depth, width, rest);
}

// The tile with as many rows as there are left.
template <int vectors, bool partial, int count = rows_in_registers(vectors)>
HWY_INLINE void product_rows(int left, const float* const* x, const float* weights, float* y, const std::int32_t* rows,
                             std::ptrdiff_t depth, std::ptrdiff_t width, std::ptrdiff_t rest) {
  if constexpr (count > 0) {
    if (left >= count) return product_of<vectors, count, partial>(x, weights, y, rows, depth, width, rest);
    product_rows<vectors, partial, count - 1>(left, x, weights, y, rows, depth, width, rest);
  }
}

// All rows of a list for columns of so many vectors.
template <int vectors, bool partial>
void product_columns(const float* const* x, const float* weights, float* y, const std::int32_t* rows, int count,
                     std::ptrdiff_t depth, std::ptrdiff_t width, std::ptrdiff_t rest) {
  constexpr int kRows = rows_in_registers(vectors);
  for (int r = 0; r < count; r += kRows) {
    product_rows<vectors, partial>(std::min(count - r, kRows), x + r, weights, y, rows + r, depth, width, rest);
  }
}

// The rows of x that one tap reads for `rows` neighbouring results, and for which of them; returns how many.
HWY_INLINE int list_pairs(const std::int32_t* column, std::int32_t stride, int rows, std::int32_t inputs,
                          std::int32_t* HWY_RESTRICT from, std::int32_t* HWY_RESTRICT to) {
  const DI d;
  const auto lane = hn::Iota(d, 0);
  const auto strides = hn::Mul(lane, hn::Set(d, stride));
  const auto least = hn::Set(d, -1), most = hn::Set(d, inputs);
  int count = 0, r = 0;
  for (; r + kLanes <= rows; r += kLanes) {
    const auto row = hn::GatherIndex(d, column + std::ptrdiff_t{r} * stride, strides);
    const auto known = hn::And(hn::Gt(row, least), hn::Lt(row, most));
    hn::StoreU(hn::Compress(row, known), d, from + count);
    hn::StoreU(hn::Compress(hn::Add(lane, hn::Set(d, r)), known), d, to + count);
    count += static_cast<int>(hn::CountTrue(d, known));
  }
  for (; r < rows; ++r) {
    const std::int32_t row = column[std::ptrdiff_t{r} * stride];
    from[count] = row;
    to[count] = r;
    count += row >= 0 && row < inputs ? 1 : 0;
  }
  return count;
}

void sparse_conv(const void* params, const Operand* operands, int part, int parts) {
  const auto p = load_params<SparseConvParams>(params);
  const auto* const x = reinterpret_cast<const float*>(operands[0].data);
  const auto* const weights = reinterpret_cast<const float*>(operands[1].data);
  const auto* const bias = p.bias == 1 ? reinterpret_cast<const float*>(operands[3].data) : nullptr;
  const auto* const map = reinterpret_cast<const std::int32_t*>(operands[2].data);
  const auto* const residual = p.residual == 1 ? reinterpret_cast<const float*>(operands[4].data) : nullptr;
  auto* const y = reinterpret_cast<float*>(operands[7].data);
  const std::int32_t inputs = rows_of(operands[5], p.inputs);
  const std::ptrdiff_t results = rows_of(operands[6], p.results);
  const std::ptrdiff_t depth = p.c_in, width = p.c_out;
  const Activate act{static_cast<Activation>(p.activation), p.alpha, p.beta};

  const float* in[kTileRows];
  HWY_ALIGN std::int32_t from[kTileRows + kLanes], to[kTileRows + kLanes];  // whole vectors are written

  // Tiles are dealt out in turn: how many cells a tap finds differs from place to place.
  for (std::ptrdiff_t first = std::ptrdiff_t{part} * kTileRows; first < results;
       first += std::ptrdiff_t{parts} * kTileRows) {
    const int rows = static_cast<int>(std::min<std::ptrdiff_t>(results - first, kTileRows));
    float* const tile = y + first * width;
    for (int r = 0; r < rows; ++r) {
      for (std::ptrdiff_t o = 0; o < width; ++o) tile[r * width + o] = bias != nullptr ? bias[o] : 0.0F;
    }
    for (std::ptrdiff_t k = 0; k < p.taps; ++k) {
      const int count = list_pairs(map + first * p.taps + k, p.taps, rows, inputs, from, to);
      for (int r = 0; r < count; ++r) in[r] = x + from[r] * depth;
      const float* const w = weights + k * depth * width;
      std::ptrdiff_t o = 0;
      for (; o + kMostVectors * kLanes <= width; o += kMostVectors * kLanes) {
        product_columns<kMostVectors, false>(in, w + o, tile + o, to, count, depth, width, 0);
      }
      if constexpr (kMostVectors > 2) {
        for (; o + 2 * kLanes <= width; o += 2 * kLanes) {
          product_columns<2, false>(in, w + o, tile + o, to, count, depth, width, 0);
        }
      }
      for (; o + kLanes <= width; o += kLanes) {
        product_columns<1, false>(in, w + o, tile + o, to, count, depth, width, 0);
      }
      if (o < width) product_columns<1, true>(in, w + o, tile + o, to, count, depth, width, width - o);
    }
    if (residual != nullptr) {
      const float* const other = residual + first * width;
      for (std::ptrdiff_t i = 0; i < rows * width; ++i) tile[i] += other[i];
    }
    if (act.kind != Activation::kNone) activate_all(act, tile, tile, rows * width);
  }
}

}  // namespace

std::span<const DeviceHalf> sparse_table() {
  static constexpr DeviceHalf kHalves[] = {{KernelId::kSparseConv, sparse_conv}};
  return kHalves;
}

}  // namespace takt::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // TAKT_TARGET

#if HWY_ONCE
namespace takt::kernels::cpu {
TAKT_TABLE(sparse_kernels, sparse_table)
}  // namespace takt::kernels::cpu
#endif
