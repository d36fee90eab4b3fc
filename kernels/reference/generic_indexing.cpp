// Elements by index: gathers, scatters, triangles, reversed sequences.
#include "kernels/reference/generic_table.h"
#include "kernels/reference/movement.h"

namespace takt::kernels::reference {

void copy(const Tensor& x, std::int64_t from, const Tensor& y, std::int64_t to, std::int64_t elements) {
  const auto size = static_cast<std::int64_t>(size_of(x.dtype));
  const auto* source = x.as<const std::byte>() + from * size;
  auto* target = y.as<std::byte>() + to * size;
  for (std::int64_t i = 0; i < elements * size; ++i) target[i] = source[i];
}
void clear(const Tensor& y, std::int64_t to, std::int64_t elements) {
  const auto size = static_cast<std::int64_t>(size_of(y.dtype));
  auto* target = y.as<std::byte>() + to * size;
  for (std::int64_t i = 0; i < elements * size; ++i) target[i] = std::byte{0};
}

namespace {

template <class T>
void scatter_value(Scatter kind, T& to, T value) {
  switch (kind) {
    case Scatter::kReplace: break;  // whole runs are copied
    case Scatter::kAdd: to = combine<T>(Reduce::kSum, to, value); break;
    case Scatter::kMul: to = combine<T>(Reduce::kProduct, to, value); break;
    case Scatter::kMin: to = combine<T>(Reduce::kMin, to, value); break;
    case Scatter::kMax: to = combine<T>(Reduce::kMax, to, value); break;
  }
}
void scatter_elements(Scatter kind, const Tensor& from, std::int64_t i, const Tensor& to, std::int64_t at,
                      std::int64_t elements) {
  if (kind == Scatter::kReplace) return copy(from, i, to, at, elements);
  with_number(to.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t e = 0; e < elements; ++e) scatter_value(kind, to.as<T>()[at + e], from.as<T>()[i + e]);
  });
}

// Offset in `shape` of the element at flat position `i` of `indices`, with its coordinate along `axis` replaced.
std::int64_t replaced(const Shape& indices, std::int64_t i, const Shape& shape, std::int64_t axis, std::int64_t index) {
  const View view = row_major(shape);
  std::int64_t offset = 0;
  for (int d = indices.rank - 1; d >= 0; --d) {
    offset += (d == axis ? index : i % indices.dims[d]) * view.strides[d];
    i /= indices.dims[d];
  }
  return offset;
}

void gather_elements(std::int64_t axis, const Tensor& x, const Tensor& indices, const Tensor& y) {
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
    const std::int64_t index = index_at(indices, i, x.shape.dims[axis]);
    if (index < 0) {
      clear(y, i, 1);
    } else {
      copy(x, replaced(indices.shape, i, x.shape, axis, index), y, i, 1);
    }
  }
}

void scatter(std::int64_t axis, Scatter kind, const Tensor& x, const Tensor& indices, const Tensor& updates,
             const Tensor& y) {
  copy(x, 0, y, 0, x.shape.elements());
  for (std::int64_t i = 0; i < updates.shape.elements(); ++i) {
    const std::int64_t index = index_at(indices, i, x.shape.dims[axis]);
    if (index >= 0) scatter_elements(kind, updates, i, y, replaced(indices.shape, i, x.shape, axis, index), 1);
  }
}

// Where tuple `t` of an index tensor [..., depth] points in x behind `batch` leading dimensions; -1: outside.
std::int64_t tuple_offset(const Tensor& indices, std::int64_t t, const Shape& shape, std::int64_t batch) {
  const View view = row_major(shape);
  const std::int64_t depth = indices.shape.dims[indices.shape.rank - 1];
  std::int64_t offset = 0;
  for (std::int64_t k = 0; k < depth; ++k) {
    const std::int64_t index = index_at(indices, t * depth + k, shape.dims[batch + k]);
    if (index < 0) return -1;
    offset += index * view.strides[batch + k];
  }
  return offset;
}

std::int64_t product(const Shape& shape, std::int64_t from, std::int64_t to) {
  std::int64_t n = 1;
  for (std::int64_t d = from; d < to; ++d) n *= shape.dims[d];
  return n;
}

void gather_nd(std::int64_t batch, const Tensor& x, const Tensor& indices, const Tensor& y) {
  const std::int64_t depth = indices.shape.dims[indices.shape.rank - 1];
  const std::int64_t slice = product(x.shape, batch + depth, x.shape.rank);
  const std::int64_t tuples = product(indices.shape, 0, indices.shape.rank - 1);
  const std::int64_t per_batch = product(indices.shape, batch, indices.shape.rank - 1);
  const std::int64_t batch_size = product(x.shape, batch, x.shape.rank);
  for (std::int64_t t = 0; t < tuples; ++t) {
    const std::int64_t offset = tuple_offset(indices, t, x.shape, batch);
    if (offset < 0) {
      clear(y, t * slice, slice);
    } else {
      copy(x, t / per_batch * batch_size + offset, y, t * slice, slice);
    }
  }
}

void scatter_nd(Scatter kind, const Tensor& x, const Tensor& indices, const Tensor& updates, const Tensor& y) {
  const std::int64_t depth = indices.shape.dims[indices.shape.rank - 1];
  const std::int64_t slice = product(x.shape, depth, x.shape.rank);
  copy(x, 0, y, 0, x.shape.elements());
  for (std::int64_t t = 0; t < product(indices.shape, 0, indices.shape.rank - 1); ++t) {
    const std::int64_t offset = tuple_offset(indices, t, x.shape, 0);
    if (offset >= 0) scatter_elements(kind, updates, t * slice, y, offset, slice);
  }
}

void triangle(const GenericParams& p, const Tensor& x, const Tensor& y) {
  const std::int64_t columns = x.shape.dims[x.shape.rank - 1];
  const std::int64_t rows = x.shape.dims[x.shape.rank - 2];
  for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
    const std::int64_t above = i % columns - i / columns % rows;  // how far right of the main diagonal
    const bool keep = p.integers[1] != 0 ? above >= p.integers[0] : above <= p.integers[0];
    if (keep) {
      copy(x, i, y, i, 1);
    } else {
      clear(y, i, 1);
    }
  }
}

void one_hot(const GenericParams& p, const Tensor& indices, const Tensor& values, const Tensor& y) {
  const Lines lines = lines_along(y.shape, p.integers[0]);
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    for (std::int64_t k = 0; k < lines.length; ++k) {
      for (std::int64_t i = 0; i < lines.inner; ++i) {
        const bool on = index_at(indices, o * lines.inner + i, lines.length) == k;
        copy(values, on ? 1 : 0, y, (o * lines.length + k) * lines.inner + i, 1);
      }
    }
  }
}

// The first `length` entries along the time axis in reversed order, the others as they are.
void reverse(const GenericParams& p, const Tensor& x, const Tensor& lengths, const Tensor& y) {
  const std::int64_t time = p.integers[0];
  std::int64_t inner = 1;
  for (int d = 2; d < x.shape.rank; ++d) inner *= x.shape.dims[d];
  for (std::int64_t a = 0; a < x.shape.dims[0]; ++a) {
    for (std::int64_t b = 0; b < x.shape.dims[1]; ++b) {
      const std::int64_t t = time == 0 ? a : b;
      const std::int64_t given = lengths.as<std::int64_t>()[time == 0 ? b : a];
      const std::int64_t length = std::clamp<std::int64_t>(given, 0, x.shape.dims[time]);
      const std::int64_t source = t < length ? length - 1 - t : t;
      const std::int64_t from = time == 0 ? source * x.shape.dims[1] + b : a * x.shape.dims[1] + source;
      copy(x, from * inner, y, (a * x.shape.dims[1] + b) * inner, inner);
    }
  }
}

// Elements of x at their places in an otherwise empty result.
void unpool(const Tensor& x, const Tensor& indices, const Tensor& y) {
  clear(y, 0, y.shape.elements());
  for (std::int64_t i = 0; i < x.shape.elements(); ++i) {
    const std::int64_t at = indices.as<std::int64_t>()[i];
    if (inside(at, 0, y.shape.elements() - 1)) copy(x, i, y, at, 1);
  }
}

const char* infer_gather_nd(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  const GenericType& x = p.operands[0];
  const GenericType& indices = p.operands[1];
  const std::int64_t batch = p.integers[0];
  if (!is(indices, DType::kI64)) return kTypes;
  if (indices.rank < 1 || !inside(batch, 0, std::min<std::int64_t>(x.rank, indices.rank - 1))) return kShapes;
  const std::int64_t depth = indices.dims[indices.rank - 1];
  if (!inside(depth, 1, x.rank - batch)) return kShapes;
  for (std::int64_t d = 0; d < batch; ++d) {
    if (x.dims[d] != indices.dims[d]) return kShapes;
  }
  const std::int64_t rank = indices.rank - 1 + x.rank - batch - depth;
  if (rank > kMaxRank) return kShapes;
  *y = GenericType{};
  y->dtype = x.dtype;
  for (int d = 0; d + 1 < indices.rank; ++d) y->dims[y->rank++] = indices.dims[d];
  for (std::int64_t d = batch + depth; d < x.rank; ++d) y->dims[y->rank++] = x.dims[d];
  return nullptr;
}

const char* infer_scatter(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  const GenericType& x = p.operands[0];
  const GenericType& indices = p.operands[1];
  const GenericType& updates = p.operands[2];
  const bool tuples = p.op == Generic::kScatterNd;
  const std::int64_t kind = p.integers[tuples ? 0 : 1];
  if (!inside(kind, 0, 4)) return kOptions;
  if (updates.dtype != x.dtype || !is_index(indices) || (kind != 0 && !is_number(x))) return kTypes;
  *y = x;
  if (!tuples) {
    const std::int64_t axis = p.integers[0];
    if (!inside(axis, 0, x.rank - 1)) return kOptions;
    if (!(shape_of(indices) == shape_of(updates)) || indices.rank != x.rank) return kShapes;
    for (int d = 0; d < x.rank; ++d) {
      if (d != axis && indices.dims[d] > x.dims[d]) return kShapes;
    }
    return nullptr;
  }
  GenericParams gathered = p;
  gathered.integers[0] = 0;
  GenericType slices;
  if (const char* const error = infer_gather_nd(gathered, &slices, nullptr)) return error;
  return shape_of(slices) == shape_of(updates) ? nullptr : kShapes;
}

const char* infer_gather_elements(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  const GenericType& x = p.operands[0];
  const GenericType& indices = p.operands[1];
  if (!inside(p.integers[0], 0, x.rank - 1)) return kOptions;
  if (!is_index(indices)) return kTypes;
  if (indices.rank != x.rank) return kShapes;
  for (int d = 0; d < x.rank; ++d) {
    if (d != p.integers[0] && indices.dims[d] > x.dims[d]) return kShapes;
  }
  *y = indices;
  y->dtype = x.dtype;
  return nullptr;
}

const char* infer_trilu(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  if (!inside(p.integers[0], -kMostElements, kMostElements) || !inside(p.integers[1], 0, 1)) return kOptions;
  *y = p.operands[0];
  return y->rank >= 2 ? nullptr : kShapes;
}

const char* infer_one_hot(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  const GenericType& x = p.operands[0];
  const GenericType& values = p.operands[1];
  if (!inside(p.integers[0], 0, x.rank) || !inside(p.integers[1], 1, kMostElements)) return kOptions;
  if (!is_index(x)) return kTypes;
  if (values.rank != 1 || values.dims[0] != 2 || x.rank == kMaxRank) return kShapes;
  *y = x;
  y->dtype = values.dtype;
  y->rank = static_cast<std::uint8_t>(x.rank + 1);
  for (int d = x.rank; d > p.integers[0]; --d) y->dims[d] = x.dims[d - 1];
  y->dims[p.integers[0]] = p.integers[1];
  return nullptr;
}

const char* infer_reverse(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  const GenericType& x = p.operands[0];
  const GenericType& lengths = p.operands[1];
  if (!inside(p.integers[0], 0, 1) || p.integers[1] != 1 - p.integers[0]) return kOptions;
  if (!is(lengths, DType::kI64)) return kTypes;
  *y = x;
  return x.rank >= 2 && lengths.rank == 1 && lengths.dims[0] == x.dims[p.integers[1]] ? nullptr : kShapes;
}

const char* infer_unpool(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  const GenericType& x = p.operands[0];
  if (!is(p.operands[1], DType::kI64)) return kTypes;
  if (!(shape_of(p.operands[1]) == shape_of(x))) return kShapes;
  if (p.integers[0] != x.rank) return kOptions;
  *y = x;
  for (int d = 0; d < x.rank; ++d) {
    if (!inside(p.integers[1 + d], 0, kMostElements)) return kOptions;
    y->dims[d] = p.integers[1 + d];
  }
  return nullptr;
}

void run_gather_elements(const GenericParams& p, const Tensor* in, const Tensor* out) {
  gather_elements(p.integers[0], in[0], in[1], out[0]);
}
void run_scatter(const GenericParams& p, const Tensor* in, const Tensor* out) {
  scatter(p.integers[0], static_cast<Scatter>(p.integers[1]), in[0], in[1], in[2], out[0]);
}
void run_gather_nd(const GenericParams& p, const Tensor* in, const Tensor* out) {
  gather_nd(p.integers[0], in[0], in[1], out[0]);
}
void run_scatter_nd(const GenericParams& p, const Tensor* in, const Tensor* out) {
  scatter_nd(static_cast<Scatter>(p.integers[0]), in[0], in[1], in[2], out[0]);
}
void run_trilu(const GenericParams& p, const Tensor* in, const Tensor* out) { triangle(p, in[0], out[0]); }
void run_one_hot(const GenericParams& p, const Tensor* in, const Tensor* out) { one_hot(p, in[0], in[1], out[0]); }
void run_reverse(const GenericParams& p, const Tensor* in, const Tensor* out) { reverse(p, in[0], in[1], out[0]); }
void run_unpool(const GenericParams& /*p*/, const Tensor* in, const Tensor* out) { unpool(in[0], in[1], out[0]); }

constexpr GenericEntry kEntries[] = {
    {Generic::kGatherElements, 2, 2, infer_gather_elements, run_gather_elements},
    {Generic::kScatterElements, 3, 3, infer_scatter, run_scatter},
    {Generic::kGatherNd, 2, 2, infer_gather_nd, run_gather_nd},
    {Generic::kScatterNd, 3, 3, infer_scatter, run_scatter_nd},
    {Generic::kTrilu, 1, 1, infer_trilu, run_trilu},
    {Generic::kOneHot, 2, 2, infer_one_hot, run_one_hot},
    {Generic::kReverse, 2, 2, infer_reverse, run_reverse},
    {Generic::kMaxUnpool, 2, 2, infer_unpool, run_unpool},
};

}  // namespace

std::span<const GenericEntry> generic_indexing() { return kEntries; }

}  // namespace takt::kernels::reference
