#include "kernels/reference/generic.h"

#include <algorithm>
#include <array>

#include "kernels/reference/generic_table.h"

namespace takt::kernels::reference {
namespace {

constexpr std::size_t kOperators = 75;  // one beyond the highest number

// Entries by number; nullptr where a number is not given to an operator.
const std::array<const GenericEntry*, kOperators>& table() {
  static const std::array<const GenericEntry*, kOperators> entries = [] {
    std::array<const GenericEntry*, kOperators> all{};
    for (const auto family : {generic_elementwise(), generic_reductions(), generic_indexing(), generic_windows(),
                              generic_sampling(), generic_matrices(), generic_counted()}) {
      for (const GenericEntry& entry : family) all[static_cast<std::size_t>(entry.op)] = &entry;
    }
    return all;
  }();
  return entries;
}

const GenericEntry* find(Generic op) {
  const auto number = static_cast<std::size_t>(op);
  return number < kOperators ? table()[number] : nullptr;
}

// A known type with extents from 0 whose product is bounded.
bool possible(const GenericType& type) {
  if (!inside(type.dtype, 1, kDTypes) || type.rank > kMaxRank) return false;
  std::int64_t elements = 1;
  for (int d = 0; d < type.rank; ++d) {
    if (!inside(type.dims[d], 0, kMostElements)) return false;
    if (type.dims[d] > 0 && elements > kMostElements / type.dims[d]) return false;
    elements *= std::max<std::int64_t>(type.dims[d], 1);
  }
  return true;
}

}  // namespace

bool broadcast(const GenericType& a, GenericType* y) {
  GenericType out = *y;
  out.rank = std::max(a.rank, y->rank);
  for (int d = 0; d < out.rank; ++d) {
    const int in_a = d - (out.rank - a.rank);
    const int in_y = d - (out.rank - y->rank);
    const std::int64_t from_a = in_a < 0 ? 1 : a.dims[in_a];
    const std::int64_t from_y = in_y < 0 ? 1 : y->dims[in_y];
    if (from_a != from_y && from_a != 1 && from_y != 1) return false;
    out.dims[d] = from_a == 1 ? from_y : from_a;
  }
  *y = out;
  return true;
}

GenericType generic_type(DType dtype, const Shape& shape) {
  GenericType type;
  type.dtype = static_cast<std::uint8_t>(dtype);
  type.rank = static_cast<std::uint8_t>(shape.rank);
  std::copy_n(shape.dims, shape.rank, type.dims);
  return type;
}

const char* generic_infer(GenericParams* params) {
  const GenericEntry* const entry = find(params->op);
  if (entry == nullptr) return "the operator is unknown";
  for (int i = 0; i < kGenericInputs; ++i) {
    const GenericType& type = params->operands[i];
    if (i < entry->least ? !present(type) : i >= entry->most && present(type)) return "the number of inputs is wrong";
    if (present(type) && !possible(type)) return "an operand has an impossible type";
  }
  GenericType y;
  GenericType second;
  if (const char* const error = entry->infer(*params, &y, &second)) return error;
  y.count = y.axis = second.count = second.axis = 0;  // set by counted_infer
  if (!possible(y) || (present(second) && !possible(second))) return "the result is too large";
  params->operands[kGenericInputs] = y;
  params->operands[kGenericInputs + 1] = second;
  return nullptr;
}

const char* generic_check(const GenericParams& params, std::span<const std::uint64_t> bytes) {
  GenericParams inferred = params;
  if (bytes.size() != kGenericOperands) return "the number of operands is wrong";
  if (const char* const error = generic_infer(&inferred)) return error;
  if (!present(params.operands[kGenericInputs]) && !present(params.operands[kGenericInputs + 1])) {
    return "no result is named";
  }
  for (int i = 0; i < kGenericOperands; ++i) {
    const GenericType& type = params.operands[i];
    const GenericType& expected = inferred.operands[i];
    if (!present(type) && i >= kGenericInputs) continue;  // a result that this step does not compute
    if (type.count != 0 || type.axis != 0) return "a counted operand";
    if (type.dtype != expected.dtype || type.rank != expected.rank ||
        !std::equal(type.dims, type.dims + type.rank, expected.dims)) {
      return "a result has another type than the operator gives";
    }
    if (!present(type)) continue;
    const std::int64_t elements = shape_of(type).elements();
    if (elements < 1) return "an operand is empty";
    if (bytes[static_cast<std::size_t>(i)] < static_cast<std::uint64_t>(elements) * size_of(dtype_of(type))) {
      return "an operand is smaller than the parameters say";
    }
  }
  return nullptr;
}

void generic_run(const GenericParams& p, std::byte* const* operands) {
  Tensor tensors[kGenericOperands];
  for (int i = 0; i < kGenericOperands; ++i) {
    if (present(p.operands[i])) tensors[i] = {dtype_of(p.operands[i]), shape_of(p.operands[i]), operands[i]};
  }
  run_generic(p, tensors);
}

void run_generic(const GenericParams& p, const Tensor* operands) {
  find(p.op)->run(p, operands, operands + kGenericInputs);
}

}  // namespace takt::kernels::reference
