// Along axes: sums, extrema and their places, orders.
#include "kernels/reference/elementary.h"
#include "kernels/reference/elementary_f32.h"
#include "kernels/reference/generic_table.h"
#include "kernels/reference/movement.h"

namespace takt::kernels::reference {
namespace {

// Row-major over x: every result meets its elements in row-major order too; the first one starts a maximum or minimum.
template <class T>
void reduce(Reduce kind, std::int64_t axes, const Tensor& x, const Tensor& y) {
  View view;
  std::int64_t stride = 1;
  std::int64_t count = 1;
  for (int d = x.shape.rank - 1; d >= 0; --d) {
    if ((axes >> d & 1) != 0) {
      count *= x.shape.dims[d];
    } else {
      view.strides[d] = stride;
      stride *= x.shape.dims[d];
    }
  }
  const bool picks = kind == Reduce::kMax || kind == Reduce::kMin;
  T start = kind == Reduce::kProduct ? T{1} : T{};
  if (picks) start = kind == Reduce::kMax ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  if constexpr (std::is_floating_point_v<T>) {
    if (picks) start = kind == Reduce::kMax ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity();
  }
  std::fill_n(y.as<T>(), y.shape.elements(), start);
  std::int64_t index[kMaxRank] = {};
  std::int64_t to = 0;
  for (std::int64_t i = 0; i < x.shape.elements(); ++i) {
    y.as<T>()[to] = combine<T>(kind, y.as<T>()[to], x.as<T>()[i]);
    for (int d = x.shape.rank - 1; d >= 0; --d) {
      to += view.strides[d];
      if (++index[d] < x.shape.dims[d]) break;
      to -= view.strides[d] * x.shape.dims[d];
      index[d] = 0;
    }
  }
  if (kind != Reduce::kMean) return;
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
    y.as<T>()[i] = static_cast<T>(y.as<T>()[i] / static_cast<T>(count));
  }
}

template <class T>
void arg(const GenericParams& p, const Tensor& x, const Tensor& y) {
  const Lines lines = lines_along(x.shape, p.integers[0]);
  const bool smallest = p.integers[2] != 0;
  const bool last = p.integers[3] != 0;
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      const T* line = x.as<T>() + o * lines.length * lines.inner + i;
      std::int64_t best = 0;
      for (std::int64_t k = 1; k < lines.length; ++k) {
        const T value = line[k * lines.inner];
        const T known = line[best * lines.inner];
        const bool better = smallest ? value < known : value > known;
        if (better || (last && value == known)) best = k;
      }
      y.as<std::int64_t>()[o * lines.inner + i] = best;
    }
  }
}

template <class T>
void cumulate(const GenericParams& p, const Tensor& x, const Tensor& y) {
  const Lines lines = lines_along(x.shape, p.integers[0]);
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      const std::int64_t base = o * lines.length * lines.inner + i;
      T sum{};
      for (std::int64_t n = 0; n < lines.length; ++n) {
        const std::int64_t k = base + (p.integers[2] != 0 ? lines.length - 1 - n : n) * lines.inner;
        const T next = combine<T>(Reduce::kSum, sum, x.as<T>()[k]);
        y.as<T>()[k] = p.integers[1] != 0 ? sum : next;
        sum = next;
      }
    }
  }
}

template <class T>
void top_k(const GenericParams& p, const Tensor& x, const Tensor& y, const Tensor& positions) {
  const Lines lines = lines_along(x.shape, p.integers[0]);
  const std::int64_t k = p.integers[1];
  const bool largest = p.integers[2] != 0;
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      const T* line = x.as<T>() + o * lines.length * lines.inner + i;
      std::int64_t before = 0;
      for (std::int64_t n = 0; n < k; ++n) {
        // The best one behind the one before, in the order (value, index): no memory of what has been taken is needed.
        std::int64_t best = -1;
        const T bound = line[before * lines.inner];
        for (std::int64_t at = 0; at < lines.length; ++at) {
          const T value = line[at * lines.inner];
          const bool behind = largest ? value < bound : value > bound;
          if (n > 0 && !behind && !(value == bound && at > before)) continue;
          if (best < 0 || (largest ? value > line[best * lines.inner] : value < line[best * lines.inner])) best = at;
        }
        before = std::max<std::int64_t>(best, 0);  // NaN has no place in an order
        const std::int64_t to = (o * k + n) * lines.inner + i;
        if (y.data != nullptr) y.as<T>()[to] = line[before * lines.inner];
        if (positions.data != nullptr) positions.as<std::int64_t>()[to] = before;
      }
    }
  }
}

// Along an axis of f32. Log-softmax: x - m - log(sum of exp(x - m)); hardmax: 1 at the first maximum.
void along(const GenericParams& p, const Tensor& x, const Tensor& y) {
  const Lines lines = lines_along(x.shape, p.integers[0]);
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      const float* in = x.as<float>() + o * lines.length * lines.inner + i;
      float* out = y.as<float>() + o * lines.length * lines.inner + i;
      std::int64_t best = 0;
      for (std::int64_t k = 1; k < lines.length; ++k) {
        if (in[k * lines.inner] > in[best * lines.inner]) best = k;
      }
      const float highest = in[best * lines.inner];
      float sum = 0;
      for (std::int64_t k = 0; k < lines.length; ++k) sum += exp_f32(in[k * lines.inner] - highest);
      const auto log_sum = static_cast<float>(log(static_cast<double>(sum)));
      for (std::int64_t k = 0; k < lines.length; ++k) {
        out[k * lines.inner] =
            p.op == Generic::kHardmax ? (k == best ? 1.0F : 0.0F) : in[k * lines.inner] - highest - log_sum;
      }
    }
  }
}

const char* infer_reduce(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  const GenericType& x = p.operands[0];
  const std::int64_t axes = p.integers[1];
  if (!inside(p.integers[0], 1, 5) || !inside(axes, 0, (1 << x.rank) - 1) || !inside(p.integers[2], 0, 1)) {
    return kOptions;
  }
  if (!is_number(x)) return kTypes;
  *y = x;
  y->rank = 0;
  std::fill(std::begin(y->dims), std::end(y->dims), 0);
  for (int d = 0; d < x.rank; ++d) {
    const bool reduced = (axes >> d & 1) != 0;
    // Sums and products of nothing are 0 and 1; the others have no value.
    if (reduced && x.dims[d] < 1 && inside(p.integers[0], 2, 4)) return kShapes;
    if (!reduced || p.integers[2] != 0) y->dims[y->rank++] = reduced ? 1 : x.dims[d];
  }
  return nullptr;
}

const char* infer_arg(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  const GenericType& x = p.operands[0];
  if (!inside(p.integers[0], 0, x.rank - 1) || !inside(p.integers[1], 0, 1)) return kOptions;
  if (!is_number(x)) return kTypes;
  if (x.dims[p.integers[0]] < 1) return kShapes;
  *y = x;
  set_dtype(y, DType::kI64);
  if (p.integers[1] != 0) {
    y->dims[p.integers[0]] = 1;
    return nullptr;
  }
  for (std::int64_t d = p.integers[0]; d + 1 < x.rank; ++d) y->dims[d] = x.dims[d + 1];
  y->dims[--y->rank] = 0;
  return nullptr;
}

bool axis_inside(const GenericParams& p) { return inside(p.integers[0], 0, p.operands[0].rank - 1); }

const char* infer_cum_sum(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  if (!axis_inside(p)) return kOptions;
  *y = p.operands[0];
  return is_number(*y) ? nullptr : kTypes;
}

const char* infer_along(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  if (!axis_inside(p)) return kOptions;
  *y = p.operands[0];
  if (y->dims[p.integers[0]] < 1) return kShapes;
  return is(*y, DType::kF32) ? nullptr : kTypes;
}

const char* infer_top_k(const GenericParams& p, GenericType* y, GenericType* second) {
  const GenericType& x = p.operands[0];
  if (!axis_inside(p)) return kOptions;
  if (!is_number(x)) return kTypes;
  if (!inside(p.integers[1], 1, x.dims[p.integers[0]])) return kShapes;
  *y = x;
  y->dims[p.integers[0]] = p.integers[1];
  *second = *y;
  set_dtype(second, DType::kI64);
  return nullptr;
}

void run_reduce(const GenericParams& p, const Tensor* in, const Tensor* out) {
  with_number(in[0].dtype, [&](auto zero) {
    reduce<decltype(zero)>(static_cast<Reduce>(p.integers[0]), p.integers[1], in[0], out[0]);
  });
}
void run_arg(const GenericParams& p, const Tensor* in, const Tensor* out) {
  with_number(in[0].dtype, [&](auto zero) { arg<decltype(zero)>(p, in[0], out[0]); });
}
void run_cum_sum(const GenericParams& p, const Tensor* in, const Tensor* out) {
  with_number(in[0].dtype, [&](auto zero) { cumulate<decltype(zero)>(p, in[0], out[0]); });
}
void run_top_k(const GenericParams& p, const Tensor* in, const Tensor* out) {
  with_number(in[0].dtype, [&](auto zero) { top_k<decltype(zero)>(p, in[0], out[0], out[1]); });
}
void run_along(const GenericParams& p, const Tensor* in, const Tensor* out) { along(p, in[0], out[0]); }

constexpr GenericEntry kEntries[] = {
    {Generic::kReduce, 1, 1, infer_reduce, run_reduce},   {Generic::kArg, 1, 1, infer_arg, run_arg},
    {Generic::kCumSum, 1, 1, infer_cum_sum, run_cum_sum}, {Generic::kTopK, 1, 1, infer_top_k, run_top_k},
    {Generic::kLogSoftmax, 1, 1, infer_along, run_along}, {Generic::kHardmax, 1, 1, infer_along, run_along},
};

}  // namespace

std::span<const GenericEntry> generic_reductions() { return kEntries; }

}  // namespace takt::kernels::reference
