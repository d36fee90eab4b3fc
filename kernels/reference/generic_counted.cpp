// Operators whose result has as many rows as the data decide, and those that otherwise only counted tensors need the
// generic kernel for.
#include "kernels/reference/gemm.h"
#include "kernels/reference/generic_table.h"
#include "kernels/reference/movement.h"
#include "kernels/reference/softmax.h"

namespace takt::kernels::reference {
namespace {

// --- moving

const char* infer_transpose(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  const GenericType& x = p.operands[0];
  *y = x;
  int seen = 0;
  for (int d = 0; d < x.rank; ++d) {
    if (!inside(p.integers[d], 0, x.rank - 1)) return kOptions;
    seen |= 1 << p.integers[d];
    y->dims[d] = x.dims[p.integers[d]];
  }
  return seen == (1 << x.rank) - 1 ? nullptr : kOptions;
}

void run_transpose(const GenericParams& p, const Tensor* in, const Tensor* out) {
  const View from = row_major(in[0].shape);
  View view;
  for (int d = 0; d < in[0].shape.rank; ++d) view.strides[d] = from.strides[p.integers[d]];
  read_view(in[0], view, out[0]);
}

// Start and number of what ONNX's Slice takes of an extent; step != 0.
struct Range {
  std::int64_t start = 0, count = 0;
};
Range range_of(std::int64_t start, std::int64_t end, std::int64_t step, std::int64_t extent) {
  if (start < 0) start += extent;
  if (end < 0) end += extent;
  Range out;
  if (step > 0) {
    out.start = std::clamp<std::int64_t>(start, 0, extent);
    const std::int64_t last = std::clamp<std::int64_t>(end, 0, extent);
    out.count = std::max<std::int64_t>(0, (last - out.start + step - 1) / step);
  } else {
    out.start = std::clamp<std::int64_t>(start, -1, extent - 1);
    const std::int64_t last = std::clamp<std::int64_t>(end, -1, extent - 1);
    out.count = std::max<std::int64_t>(0, (out.start - last - step - 1) / -step);
  }
  return out;
}

constexpr std::int64_t kMostSlices = 4;

const char* infer_slice(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  const GenericType& x = p.operands[0];
  *y = x;
  if (!inside(p.integers[0], 0, kMostSlices)) return kOptions;
  for (std::int64_t s = 0; s < p.integers[0]; ++s) {
    const std::int64_t* const slice = p.integers + 1 + 4 * s;  // axis, start, end, step
    const bool bounded =
        inside(slice[1], -kMostElements, kMostElements) && inside(slice[2], -kMostElements, kMostElements);
    if (!inside(slice[0], 0, x.rank - 1) || !bounded || !inside(slice[3], -kMostElements, kMostElements) ||
        slice[3] == 0) {
      return kOptions;
    }
    y->dims[slice[0]] = range_of(slice[1], slice[2], slice[3], y->dims[slice[0]]).count;
  }
  return nullptr;
}

void run_slice(const GenericParams& p, const Tensor* in, const Tensor* out) {
  View view = row_major(in[0].shape);
  for (std::int64_t s = 0; s < p.integers[0]; ++s) {
    const std::int64_t* const slice = p.integers + 1 + 4 * s;
    view.offset += range_of(slice[1], slice[2], slice[3], in[0].shape.dims[slice[0]]).start * view.strides[slice[0]];
    view.strides[slice[0]] *= slice[3];
  }
  read_view(in[0], view, out[0]);
}

const char* infer_gather(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  const GenericType& x = p.operands[0];
  const GenericType& indices = p.operands[1];
  if (!inside(p.integers[0], 0, x.rank - 1)) return kOptions;
  if (!is_index(indices)) return kTypes;
  if (x.rank - 1 + indices.rank > kMaxRank) return kShapes;
  *y = GenericType{};
  y->dtype = x.dtype;
  for (int d = 0; d < p.integers[0]; ++d) y->dims[y->rank++] = x.dims[d];
  for (int d = 0; d < indices.rank; ++d) y->dims[y->rank++] = indices.dims[d];
  for (std::int64_t d = p.integers[0] + 1; d < x.rank; ++d) y->dims[y->rank++] = x.dims[d];
  return nullptr;
}

void run_gather(const GenericParams& p, const Tensor* in, const Tensor* out) {
  const Lines x = lines_along(in[0].shape, p.integers[0]);
  const std::int64_t count = in[1].shape.elements();
  for (std::int64_t o = 0; o < x.outer; ++o) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t index = index_at(in[1], i, x.length);
      const std::int64_t to = (o * count + i) * x.inner;
      if (index < 0) {
        clear(out[0], to, x.inner);
      } else {
        copy(in[0], (o * x.length + index) * x.inner, out[0], to, x.inner);
      }
    }
  }
}

const char* infer_concat(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  *y = p.operands[0];
  y->count = y->axis = 0;
  if (!inside(p.integers[0], 0, y->rank - 1)) return kOptions;
  for (int i = 1; i < kGenericInputs; ++i) {
    const GenericType& x = p.operands[i];
    if (!present(x)) continue;
    if (x.dtype != y->dtype) return kTypes;
    if (x.rank != y->rank) return kShapes;
    for (int d = 0; d < x.rank; ++d) {
      if (d != p.integers[0] && x.dims[d] != y->dims[d]) return kShapes;
    }
    y->dims[p.integers[0]] += x.dims[p.integers[0]];
  }
  return nullptr;
}

void run_concat(const GenericParams& p, const Tensor* in, const Tensor* out) {
  const Lines y = lines_along(out[0].shape, p.integers[0]);
  std::int64_t at = 0;
  for (int i = 0; i < kGenericInputs; ++i) {
    if (in[i].data == nullptr) continue;
    const Lines x = lines_along(in[i].shape, p.integers[0]);
    const std::int64_t length = std::min(x.length, y.length - at);
    for (std::int64_t o = 0; o < y.outer; ++o) {
      copy(in[i], o * x.length * x.inner, out[0], (o * y.length + at) * y.inner, length * y.inner);
    }
    at += length;
  }
}

// --- numbers

const char* infer_softmax(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  *y = p.operands[0];
  if (!inside(p.integers[0], 0, y->rank - 1)) return kOptions;
  return is(*y, DType::kF32) ? nullptr : kTypes;
}
void run_softmax(const GenericParams& p, const Tensor* in, const Tensor* out) {
  softmax(in[0], static_cast<int>(p.integers[0]), out[0]);
}

const char* infer_clip(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  *y = p.operands[0];
  if (!is_number(*y)) return kTypes;
  for (int i = 1; i < 3; ++i) {
    const GenericType& limit = p.operands[i];
    if (!present(limit)) continue;
    if (limit.dtype != y->dtype) return kTypes;
    if (shape_of(limit).elements() != 1 || limit.count != 0) return kShapes;
  }
  return nullptr;
}
void run_clip(const GenericParams& /*p*/, const Tensor* in, const Tensor* out) {
  with_number(in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t i = 0; i < out[0].shape.elements(); ++i) {
      T v = in[0].as<T>()[i];
      if (in[1].data != nullptr && v < *in[1].as<T>()) v = *in[1].as<T>();
      if (in[2].data != nullptr && v > *in[2].as<T>()) v = *in[2].as<T>();
      out[0].as<T>()[i] = v;
    }
  });
}

const char* infer_gemm(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  const GenericType& a = p.operands[0];
  const GenericType& b = p.operands[1];
  const GenericType& c = p.operands[2];
  if (!inside(p.integers[0], 0, 1) || !inside(p.integers[1], 0, 1)) return kOptions;
  if (!is(a, DType::kF32) || !is(b, DType::kF32) || (present(c) && !is(c, DType::kF32))) return kTypes;
  if (a.rank != 2 || b.rank != 2) return kShapes;
  const std::int64_t depth = a.dims[p.integers[0] != 0 ? 0 : 1];
  if (depth != b.dims[p.integers[1] != 0 ? 1 : 0]) return kShapes;
  *y = GenericType{};
  y->dtype = a.dtype;
  y->rank = 2;
  y->dims[0] = a.dims[p.integers[0] != 0 ? 1 : 0];
  y->dims[1] = b.dims[p.integers[1] != 0 ? 0 : 1];
  if (!present(c)) return nullptr;
  GenericType both = *y;
  return c.rank <= 2 && broadcast(c, &both) && shape_of(both) == shape_of(*y) ? nullptr : kShapes;
}
void run_gemm(const GenericParams& p, const Tensor* in, const Tensor* out) {
  gemm(in[0], in[1], in[2], {p.integers[0] != 0, p.integers[1] != 0, p.numbers[0], p.numbers[1]}, out[0]);
}

// --- as many as the data decide. The runs give how many there are.

// integers[3]: the capacity of the result.
bool capacity_fits(const GenericParams& p, std::int64_t most) {
  return inside(p.integers[3], 1, std::max<std::int64_t>(most, 1));
}

const char* infer_non_zero(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  const GenericType& x = p.operands[0];
  if (is_stored_only(x)) return kTypes;
  if (x.rank < 1) return kShapes;
  if (!capacity_fits(p, shape_of(x).elements())) return kOptions;
  *y = GenericType{};
  set_dtype(y, DType::kI64);
  y->rank = 2;
  y->dims[0] = x.rank;
  y->dims[1] = p.integers[3];
  return nullptr;
}

bool is_zero(const Tensor& x, std::int64_t i) {
  if (x.dtype == DType::kBool) return x.as<std::uint8_t>()[i] == 0;
  bool zero = true;
  with_number(x.dtype, [&](auto type) { zero = x.as<decltype(type)>()[i] == decltype(type){}; });
  return zero;
}

// [rank, count]: the coordinates of elements that are not zero, in row-major order.
std::int64_t non_zero(const GenericParams& p, const Tensor* in, const Tensor& y) {
  const Tensor& x = in[0];
  std::int64_t count = 0;
  const std::int64_t elements = x.shape.elements();
  for (std::int64_t i = 0; i < elements; ++i) count += is_zero(x, i) ? 0 : 1;
  count = std::min(count, p.integers[3]);
  std::int64_t n = 0;
  for (std::int64_t i = 0; i < elements && n < count; ++i) {
    if (is_zero(x, i)) continue;
    std::int64_t rest = i;
    for (int d = x.shape.rank - 1; d >= 0; --d) {
      y.as<std::int64_t>()[d * count + n] = rest % x.shape.dims[d];
      rest /= x.shape.dims[d];
    }
    ++n;
  }
  return count;
}

const char* infer_compress(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  const GenericType& x = p.operands[0];
  const GenericType& condition = p.operands[1];
  if (!inside(p.integers[0], 0, x.rank - 1)) return kOptions;
  if (!is(condition, DType::kBool)) return kTypes;
  if (condition.rank != 1) return kShapes;
  if (!capacity_fits(p, std::min(x.dims[p.integers[0]], condition.dims[0]))) return kOptions;
  *y = x;
  y->count = y->axis = 0;
  y->dims[p.integers[0]] = p.integers[3];
  return nullptr;
}

std::int64_t compress(const GenericParams& p, const Tensor* in, const Tensor& y) {
  const Lines x = lines_along(in[0].shape, p.integers[0]);
  const std::int64_t asked = std::min(x.length, in[1].shape.elements());
  const auto* const condition = in[1].as<const std::uint8_t>();
  std::int64_t count = 0;
  for (std::int64_t k = 0; k < asked; ++k) count += condition[k] != 0 ? 1 : 0;
  count = std::min(count, p.integers[3]);
  for (std::int64_t o = 0; o < x.outer; ++o) {
    std::int64_t n = 0;
    for (std::int64_t k = 0; k < asked && n < count; ++k) {
      if (condition[k] != 0) copy(in[0], (o * x.length + k) * x.inner, y, (o * count + n++) * x.inner, x.inner);
    }
  }
  return count;
}

// integers: axis, 1 sorts, which result (Y, first positions, position in Y of every slice, how often each occurs).
const char* infer_unique(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  const GenericType& x = p.operands[0];
  if (!inside(p.integers[0], 0, x.rank - 1) || !inside(p.integers[1], 0, 1) || !inside(p.integers[2], 0, 3))
    return kOptions;
  if (is_stored_only(x)) return kTypes;
  if (!capacity_fits(p, x.dims[p.integers[0]])) return kOptions;
  *y = x;
  y->count = y->axis = 0;
  if (p.integers[2] == 0) {
    y->dims[p.integers[0]] = p.integers[3];
    return nullptr;
  }
  *y = GenericType{};
  set_dtype(y, DType::kI64);
  y->rank = 1;
  y->dims[0] = p.integers[2] == 2 ? x.dims[p.integers[0]] : p.integers[3];
  return nullptr;
}

template <class T>
int compare_slices(const Tensor& x, const Lines& lines, std::int64_t a, std::int64_t b) {
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      const T u = x.as<T>()[(o * lines.length + a) * lines.inner + i];
      const T v = x.as<T>()[(o * lines.length + b) * lines.inner + i];
      if (u < v) return -1;
      if (v < u) return 1;
    }
  }
  return 0;
}
int compare(const Tensor& x, const Lines& lines, std::int64_t a, std::int64_t b) {
  if (x.dtype == DType::kBool) return compare_slices<std::uint8_t>(x, lines, a, b);
  int order = 0;
  with_number(x.dtype, [&](auto zero) { order = compare_slices<decltype(zero)>(x, lines, a, b); });
  return order;
}

std::int64_t unique(const GenericParams& p, const Tensor* in, const Tensor& y) {
  const Tensor& x = in[0];
  const Lines lines = lines_along(x.shape, p.integers[0]);
  const auto first = [&](std::int64_t k) {
    for (std::int64_t before = 0; before < k; ++before) {
      if (compare(x, lines, before, k) == 0) return false;
    }
    return true;
  };
  std::int64_t count = 0;
  for (std::int64_t k = 0; k < lines.length; ++k) count += first(k) ? 1 : 0;
  count = std::min(count, p.integers[3]);
  std::int64_t last = -1;
  if (p.integers[2] == 2) std::fill_n(y.as<std::int64_t>(), lines.length, std::int64_t{-1});
  for (std::int64_t n = 0; n < count; ++n) {
    // The next one in order: no memory of what has been taken is needed.
    std::int64_t next = -1;
    for (std::int64_t k = p.integers[1] != 0 ? 0 : last + 1; k < lines.length; ++k) {
      if (p.integers[1] == 0) {
        if (!first(k)) continue;
        next = k;
        break;
      }
      if (last >= 0 && compare(x, lines, k, last) <= 0) continue;
      if (next < 0 || compare(x, lines, k, next) < 0) next = k;
    }
    if (next < 0) return n;
    last = next;
    if (p.integers[2] == 0) {
      for (std::int64_t o = 0; o < lines.outer; ++o) {
        copy(x, (o * lines.length + next) * lines.inner, y, (o * count + n) * lines.inner, lines.inner);
      }
    } else if (p.integers[2] == 1) {
      y.as<std::int64_t>()[n] = next;
    } else {
      std::int64_t times = 0;
      for (std::int64_t k = 0; k < lines.length; ++k) {
        if (compare(x, lines, k, next) != 0) continue;
        if (p.integers[2] == 2) y.as<std::int64_t>()[k] = n;
        ++times;
      }
      if (p.integers[2] == 3) y.as<std::int64_t>()[n] = times;
    }
  }
  return count;
}

// boxes f32 [B,S,4], scores f32 [B,C,S], [most per class i64], [IoU f32], [score f32]; integers: 1 has centres and
// extents instead of corners.
const char* infer_nms(const GenericParams& p, GenericType* y, GenericType* /*second*/) {
  const GenericType& boxes = p.operands[0];
  const GenericType& scores = p.operands[1];
  if (!is(boxes, DType::kF32) || !is(scores, DType::kF32)) return kTypes;
  if (boxes.rank != 3 || scores.rank != 3 || boxes.dims[2] != 4 || boxes.dims[0] != scores.dims[0] ||
      boxes.dims[1] != scores.dims[2]) {
    return kShapes;
  }
  for (int i = 2; i < 5; ++i) {
    const GenericType& limit = p.operands[i];
    if (!present(limit)) continue;
    if (!is(limit, i == 2 ? DType::kI64 : DType::kF32)) return kTypes;
    if (shape_of(limit).elements() != 1 || limit.count != 0) return kShapes;
  }
  if (!inside(p.integers[0], 0, 1) || !capacity_fits(p, shape_of(scores).elements())) return kOptions;
  *y = GenericType{};
  set_dtype(y, DType::kI64);
  y->rank = 2;
  y->dims[0] = p.integers[3];
  y->dims[1] = 3;
  return nullptr;
}

struct Corners {
  float top, left, bottom, right;
};
Corners corners(const float* box, bool centres) {
  if (centres) {
    const float w = box[2] / 2, h = box[3] / 2;
    return {box[1] - h, box[0] - w, box[1] + h, box[0] + w};
  }
  return {std::min(box[0], box[2]), std::min(box[1], box[3]), std::max(box[0], box[2]), std::max(box[1], box[3])};
}
float overlap(const Corners& a, const Corners& b) {
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (height <= 0 || width <= 0) return 0;
  const float common = height * width;
  const float both = (a.bottom - a.top) * (a.right - a.left) + (b.bottom - b.top) * (b.right - b.left) - common;
  return both > 0 ? common / both : 0;
}

// Of each image and class the boxes by score, the earlier of equals first; one that overlaps a chosen one more is left
// out.
std::int64_t nms(const GenericParams& p, const Tensor* in, const Tensor& y) {
  const std::int64_t images = in[1].shape.dims[0], classes = in[1].shape.dims[1], spatial = in[1].shape.dims[2];
  const std::int64_t most = in[2].data != nullptr ? *in[2].as<std::int64_t>() : 0;
  const float iou = in[3].data != nullptr ? *in[3].as<float>() : 0;
  auto* const rows = y.as<std::int64_t>();
  std::int64_t count = 0;
  for (std::int64_t b = 0; b < images; ++b) {
    const auto box = [&](std::int64_t i) {
      return corners(in[0].as<float>() + (b * spatial + i) * 4, p.integers[0] != 0);
    };
    for (std::int64_t c = 0; c < classes; ++c) {
      const float* const scores = in[1].as<float>() + (b * classes + c) * spatial;
      const std::int64_t begin = count;
      std::int64_t last = -1;
      while (count - begin < most && count < p.integers[3]) {
        std::int64_t best = -1;
        for (std::int64_t i = 0; i < spatial; ++i) {
          if (std::isnan(scores[i]) || (in[4].data != nullptr && !(scores[i] > *in[4].as<float>()))) continue;
          const bool behind = last < 0 || scores[i] < scores[last] || (scores[i] == scores[last] && i > last);
          if (behind && (best < 0 || scores[i] > scores[best])) best = i;
        }
        if (best < 0) break;
        last = best;
        bool free = true;
        for (std::int64_t n = begin; n < count && free; ++n) free = !(overlap(box(best), box(rows[n * 3 + 2])) > iou);
        if (!free) continue;
        rows[count * 3] = b;
        rows[count * 3 + 1] = c;
        rows[count * 3 + 2] = best;
        ++count;
      }
    }
  }
  return count;
}

// As a plain step: the result is as large as its capacity.
void run_whole(const GenericParams& p, const Tensor* in, const Tensor* out) { (void)run_creating(p, in, out[0]); }

constexpr GenericEntry kEntries[] = {
    {Generic::kTranspose, 1, 1, infer_transpose, run_transpose},
    {Generic::kSlice, 1, 1, infer_slice, run_slice},
    {Generic::kGather, 2, 2, infer_gather, run_gather},
    {Generic::kConcat, 1, kGenericInputs, infer_concat, run_concat},
    {Generic::kSoftmax, 1, 1, infer_softmax, run_softmax},
    {Generic::kClip, 1, 3, infer_clip, run_clip},
    {Generic::kGemm, 2, 3, infer_gemm, run_gemm},
    {Generic::kNonZero, 1, 1, infer_non_zero, run_whole},
    {Generic::kCompress, 2, 2, infer_compress, run_whole},
    {Generic::kUnique, 1, 1, infer_unique, run_whole},
    {Generic::kNms, 2, 5, infer_nms, run_whole},
};

}  // namespace

std::span<const GenericEntry> generic_counted() { return kEntries; }

std::int64_t run_creating(const GenericParams& p, const Tensor* in, const Tensor& y) {
  switch (p.op) {
    case Generic::kNonZero: return non_zero(p, in, y);
    case Generic::kCompress: return compress(p, in, y);
    case Generic::kUnique: return unique(p, in, y);
    case Generic::kNms: return nms(p, in, y);
    default: return 0;
  }
}

}  // namespace takt::kernels::reference
