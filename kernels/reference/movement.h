// Kernels that only move elements, of any type: transpose, slice, expand, concat and split are strided views; pad and
// nearest resize are an index per output position and axis.
#pragma once

#include <span>
#include <vector>

#include "kernels/tensor.h"

namespace takt::kernels::reference {

// Element `offset` + sum of index * stride, in elements.
struct View {
  std::int64_t offset = 0;
  std::int64_t strides[kMaxRank] = {};
};
View row_major(const Shape& shape);

// y[i] = x[view(i)] for every index i of y.
void read_view(const Tensor& x, const View& view, const Tensor& y);
// y[view(i)] = x[i] for every index i of x.
void write_view(const Tensor& x, const View& view, const Tensor& y);

// y[i] = x[indices[0][i0], indices[1][i1], ...]; where any index is -1, y[i] = the element at `fill`.
void read_indexed(const Tensor& x, std::span<const std::vector<std::int64_t>> indices, const void* fill,
                  const Tensor& y);

// y = x with dimension `axis` replaced by the dimensions of `indices`, each in [0, extent).
void gather(const Tensor& x, std::span<const std::int64_t> indices, int axis, const Tensor& y);

}  // namespace takt::kernels::reference
