// What a kernel needs to know of a tensor. Nothing of takt beyond this header is included by kernels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace takt::kernels {

// Element types, numbered as stored in plan files: never renumber.
enum class DType : std::uint8_t {
  kF32 = 1,
  kF16 = 2,  // f16 and bf16 are stored, not computed in
  kI64 = 3,
  kI32 = 4,
  kI8 = 5,
  kU8 = 6,
  kBool = 7,
  kF64 = 8,
  kI16 = 9,
  kU16 = 10,
  kU32 = 11,
  kU64 = 12,
  kBF16 = 13,
};

inline constexpr int kDTypes = 13;

constexpr std::size_t size_of(DType type) {
  switch (type) {
    case DType::kF64:
    case DType::kI64:
    case DType::kU64: return 8;
    case DType::kF32:
    case DType::kI32:
    case DType::kU32: return 4;
    case DType::kF16:
    case DType::kBF16:
    case DType::kI16:
    case DType::kU16: return 2;
    case DType::kI8:
    case DType::kU8:
    case DType::kBool: return 1;
  }
  return 0;
}
const char* name_of(DType type);  // "f32", "i64", ...

inline constexpr int kMaxRank = 8;

// Row-major extents; rank 0 is a scalar of one element.
struct Shape {
  int rank = 0;
  std::int64_t dims[kMaxRank] = {};

  [[nodiscard]] constexpr std::int64_t elements() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= dims[i];
    return n;
  }
  friend constexpr bool operator==(const Shape& a, const Shape& b) {
    if (a.rank != b.rank) return false;
    for (int i = 0; i < a.rank; ++i) {
      if (a.dims[i] != b.dims[i]) return false;
    }
    return true;
  }
};

// How elements lie in memory. block == 0: row-major. Otherwise, rank 4 only, [N][ceil(C/block)][H][W][block]: `block`
// neighbouring channels of one pixel lie together; channels beyond C are holes that hold zero.
struct Layout {
  std::uint8_t block = 0;
  friend constexpr bool operator==(Layout, Layout) = default;
};

// Bytes of a tensor; the caller has bounded the shape (ir::kMaxElements, plan loader).
constexpr std::uint64_t bytes_of(DType type, const Shape& shape, Layout layout) {
  if (layout.block == 0) return static_cast<std::uint64_t>(shape.elements()) * size_of(type);
  const std::int64_t blocks = (shape.dims[1] + layout.block - 1) / layout.block;
  return static_cast<std::uint64_t>(shape.dims[0] * blocks * shape.dims[2] * shape.dims[3]) * layout.block *
         size_of(type);
}

// A row-major tensor in memory, for reference kernels. Owns nothing.
struct Tensor {
  DType dtype = DType::kF32;
  Shape shape;
  void* data = nullptr;

  template <class T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(data);
  }
};

}  // namespace takt::kernels
