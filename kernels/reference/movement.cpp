#include "kernels/reference/movement.h"

#include <cstring>

namespace takt::kernels::reference {
namespace {

// Calls visit(flat, strided) for every index of `shape` in row-major order.
template <class Visit>
void each_index(const Shape& shape, const View& view, Visit visit) {
  const std::int64_t elements = shape.elements();
  std::int64_t index[kMaxRank] = {};
  std::int64_t strided = view.offset;
  for (std::int64_t flat = 0; flat < elements; ++flat) {
    visit(flat, strided);
    for (int d = shape.rank - 1; d >= 0; --d) {
      strided += view.strides[d];
      if (++index[d] < shape.dims[d]) break;
      strided -= view.strides[d] * shape.dims[d];
      index[d] = 0;
    }
  }
}

void copy_element(const Tensor& x, std::int64_t from, const Tensor& y, std::int64_t to) {
  const auto size = static_cast<std::int64_t>(size_of(x.dtype));
  std::memcpy(y.as<std::byte>() + to * size, x.as<std::byte>() + from * size, static_cast<std::size_t>(size));
}

}  // namespace

View row_major(const Shape& shape) {
  View view;
  std::int64_t stride = 1;
  for (int d = shape.rank - 1; d >= 0; --d) {
    view.strides[d] = stride;
    stride *= shape.dims[d];
  }
  return view;
}

void read_view(const Tensor& x, const View& view, const Tensor& y) {
  each_index(y.shape, view, [&](std::int64_t flat, std::int64_t strided) { copy_element(x, strided, y, flat); });
}

void write_view(const Tensor& x, const View& view, const Tensor& y) {
  each_index(x.shape, view, [&](std::int64_t flat, std::int64_t strided) { copy_element(x, flat, y, strided); });
}

void read_indexed(const Tensor& x, std::span<const std::vector<std::int64_t>> indices, const void* fill,
                  const Tensor& y) {
  const View view = row_major(x.shape);
  const std::size_t size = size_of(x.dtype);
  for (std::int64_t flat = 0; flat < y.shape.elements(); ++flat) {
    std::int64_t rest = flat;
    std::int64_t from = 0;
    bool inside = true;
    for (int d = y.shape.rank - 1; d >= 0; --d) {
      const std::int64_t i = indices[static_cast<std::size_t>(d)][static_cast<std::size_t>(rest % y.shape.dims[d])];
      rest /= y.shape.dims[d];
      inside = inside && i >= 0;
      from += i * view.strides[d];
    }
    if (inside) {
      copy_element(x, from, y, flat);
    } else {
      std::memcpy(y.as<std::byte>() + static_cast<std::size_t>(flat) * size, fill, size);
    }
  }
}

void gather(const Tensor& x, std::span<const std::int64_t> indices, int axis, const Tensor& y) {
  std::int64_t outer = 1;
  for (int d = 0; d < axis; ++d) outer *= x.shape.dims[d];
  std::size_t inner = size_of(x.dtype);
  for (int d = axis + 1; d < x.shape.rank; ++d) inner *= static_cast<std::size_t>(x.shape.dims[d]);
  if (inner == 0) return;
  auto* out = y.as<std::byte>();
  for (std::int64_t o = 0; o < outer; ++o) {
    for (const std::int64_t i : indices) {
      std::memcpy(out, x.as<std::byte>() + static_cast<std::size_t>(o * x.shape.dims[axis] + i) * inner, inner);
      out += inner;
    }
  }
}

}  // namespace takt::kernels::reference
