// Private to the generic kernel: its entries by family, and what shape rules and loops share. A new operator is a
// number in generic.h and an entry in one of these tables.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "kernels/reference/generic.h"

namespace takt::kernels::reference {

struct GenericEntry {
  Generic op;
  int least, most;  // inputs; those from `least` on may be absent
  // Sets the outputs; `second` only where there are two. nullptr, or what is wrong. The inputs are possible types.
  const char* (*infer)(const GenericParams& p, GenericType* y, GenericType* second);
  // in[kGenericInputs], out[kGenericOutputs]; data == nullptr where absent.
  void (*run)(const GenericParams& p, const Tensor* in, const Tensor* out);
};
std::span<const GenericEntry> generic_elementwise();
std::span<const GenericEntry> generic_reductions();
std::span<const GenericEntry> generic_indexing();
std::span<const GenericEntry> generic_windows();
std::span<const GenericEntry> generic_sampling();
std::span<const GenericEntry> generic_matrices();
std::span<const GenericEntry> generic_counted();
// A count-creating operator; how many there are.
std::int64_t run_creating(const GenericParams& p, const Tensor* in, const Tensor& y);
// Operands as tensors, kGenericOperands of them.
void run_generic(const GenericParams& p, const Tensor* operands);

inline constexpr std::int64_t kMostElements = 0x7fffffff;
inline constexpr const char* kTypes = "an operand has another type than the operator takes";
inline constexpr const char* kShapes = "the shapes do not fit the operator";
inline constexpr const char* kOptions = "an attribute is outside its range";

inline DType dtype_of(const GenericType& type) { return static_cast<DType>(type.dtype); }
inline Shape shape_of(const GenericType& type) {
  Shape shape;
  shape.rank = type.rank;
  std::copy(std::begin(type.dims), std::end(type.dims), shape.dims);
  return shape;
}
inline void set_dtype(GenericType* type, DType dtype) { type->dtype = static_cast<std::uint8_t>(dtype); }
inline bool present(const GenericType& type) { return type.dtype != 0; }
inline bool is(const GenericType& type, DType dtype) { return type.dtype == static_cast<std::uint8_t>(dtype); }
inline bool is_index(const GenericType& type) { return is(type, DType::kI64) || is(type, DType::kI32); }
inline bool is_float(const GenericType& type) { return is(type, DType::kF32) || is(type, DType::kF64); }
inline bool is_stored_only(const GenericType& type) { return is(type, DType::kF16) || is(type, DType::kBF16); }
inline bool is_number(const GenericType& type) { return !is(type, DType::kBool) && !is_stored_only(type); }
inline bool is_unsigned(const GenericType& type) {
  return is(type, DType::kU8) || is(type, DType::kU16) || is(type, DType::kU32) || is(type, DType::kU64);
}
inline bool inside(std::int64_t value, std::int64_t lowest, std::int64_t highest) {
  return value >= lowest && value <= highest;
}

// False when the shapes do not broadcast.
bool broadcast(const GenericType& a, GenericType* y);

// Calls run(T{}) with the C++ type of a number that is computed in.
template <class Run>
void with_number(DType dtype, Run run) {
  switch (dtype) {
    case DType::kF32: run(float{}); break;
    case DType::kF64: run(double{}); break;
    case DType::kI64: run(std::int64_t{}); break;
    case DType::kI32: run(std::int32_t{}); break;
    case DType::kI16: run(std::int16_t{}); break;
    case DType::kI8: run(std::int8_t{}); break;
    case DType::kU64: run(std::uint64_t{}); break;
    case DType::kU32: run(std::uint32_t{}); break;
    case DType::kU16: run(std::uint16_t{}); break;
    case DType::kU8: run(std::uint8_t{}); break;
    default: break;
  }
}
template <class Run>
void with_float(DType dtype, Run run) {
  if (dtype == DType::kF64) {
    run(double{});
  } else {
    run(float{});
  }
}

template <class T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(x);
  return false;
}

// Integers wrap; of floating-point numbers NaN, once met, is the maximum and the minimum.
template <class T>
T combine(Reduce kind, T a, T x) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::conditional_t<sizeof(T) < 4, std::uint32_t, std::make_unsigned_t<T>>;
    if (kind == Reduce::kProduct) return static_cast<T>(static_cast<U>(a) * static_cast<U>(x));
    if (kind == Reduce::kSum || kind == Reduce::kMean) return static_cast<T>(static_cast<U>(a) + static_cast<U>(x));
  }
  switch (kind) {
    case Reduce::kProduct: return static_cast<T>(a * x);
    case Reduce::kMax: return x > a || is_nan(x) ? x : a;
    case Reduce::kMin: return x < a || is_nan(x) ? x : a;
    default: return static_cast<T>(a + x);
  }
}

// x as [outer][length][inner] along an axis.
struct Lines {
  std::int64_t outer = 1, length = 1, inner = 1;
};
inline Lines lines_along(const Shape& shape, std::int64_t axis) {
  Lines lines;
  for (int d = 0; d < shape.rank; ++d) {
    (d < axis ? lines.outer : d == axis ? lines.length : lines.inner) *= shape.dims[d];
  }
  return lines;
}

// Element `i` of an index tensor, counted from 0; -1 when it is outside.
inline std::int64_t index_at(const Tensor& indices, std::int64_t i, std::int64_t extent) {
  const std::int64_t given =
      indices.dtype == DType::kI64 ? indices.as<std::int64_t>()[i] : indices.as<std::int32_t>()[i];
  const std::int64_t index = given < 0 ? given + extent : given;
  return index < 0 || index >= extent ? -1 : index;
}

// Loops, not memcpy: copies of a timed thread are counted where memcpy is called (see CMakeLists.txt).
void copy(const Tensor& x, std::int64_t from, const Tensor& y, std::int64_t to, std::int64_t elements);
void clear(const Tensor& y, std::int64_t to, std::int64_t elements);

}  // namespace takt::kernels::reference
