#include "kernels/reference/counted.h"

#include "kernels/reference/generic_table.h"

namespace takt::kernels::reference {
namespace {

constexpr const char* kManyCounts = "its operands have different counts";
constexpr const char* kOtherCount = "the count would become another number";

bool creates(Generic op) {
  return op == Generic::kNonZero || op == Generic::kCompress || op == Generic::kUnique || op == Generic::kNms;
}

// The dimension of the result that a count-creating operator counts; -1: this result has no made count.
std::int64_t made_axis(const GenericParams& p) {
  switch (p.op) {
    case Generic::kNonZero: return 1;
    case Generic::kCompress: return p.integers[0];
    case Generic::kUnique: return p.integers[2] == 0 ? p.integers[0] : p.integers[2] == 2 ? -1 : 0;
    case Generic::kNms: return 0;
    case Generic::kTopK:
    case Generic::kConcat: return p.integers[0];
    case Generic::kSlice: return p.integers[1];
    default: return -1;
  }
}

std::int64_t clamped(std::int64_t count, std::int64_t capacity) { return std::clamp<std::int64_t>(count, 0, capacity); }

}  // namespace

bool takes_counts(Generic op) {
  switch (op) {
    case Generic::kFunction:
    case Generic::kBinary:
    case Generic::kWhere:
    case Generic::kReduce:
    case Generic::kArg:
    case Generic::kCumSum:
    case Generic::kGatherElements:
    case Generic::kGatherNd:
    case Generic::kScatterNd:
    case Generic::kOneHot:
    case Generic::kTopK:
    case Generic::kCast:
    case Generic::kMatMul:
    case Generic::kTranspose:
    case Generic::kSlice:
    case Generic::kGather:
    case Generic::kConcat:
    case Generic::kSoftmax:
    case Generic::kClip:
    case Generic::kGemm:
    case Generic::kNonZero:
    case Generic::kCompress:
    case Generic::kUnique: return true;
    case Generic::kNms: return true;
    default: return false;
  }
}

bool makes_count(const GenericParams& p) {
  if (p.op == Generic::kUnique && p.integers[2] == 2) return false;
  if (creates(p.op)) return true;
  const std::int64_t axis = made_axis(p);
  if (axis < 0) return false;
  const bool whole = p.op == Generic::kSlice && p.integers[0] != 1;
  const int inputs = p.op == Generic::kConcat ? kGenericInputs : 1;
  for (int i = 0; i < inputs && !whole; ++i) {
    if (p.operands[i].count != 0 && p.operands[i].axis == axis) return true;
  }
  return false;
}

const char* counted_infer(GenericParams* p) {
  if (!takes_counts(p->op)) return "the operator takes no counted tensors";
  for (int i = 0; i < kGenericInputs; ++i) {
    const GenericType& in = p->operands[i];
    if (in.count == 0 && in.axis == 0) continue;
    if (in.count > kMostCounts || in.axis >= in.rank || in.dims[in.axis] < 1)
      return "an operand has an impossible count";
  }
  if (const char* const error = generic_infer(p)) return error;
  // One count is made by one cut.
  for (std::int64_t s = 0; p->op == Generic::kSlice && p->integers[0] > 1 && s < p->integers[0]; ++s) {
    if (p->operands[0].count != 0 && p->operands[0].axis == p->integers[1 + 4 * s]) {
      return "the counted dimension is sliced together with others";
    }
  }
  const bool makes = makes_count(*p);
  const std::int64_t made = made_axis(*p);
  for (std::uint8_t slot = 1; slot <= kMostCounts; ++slot) {
    GenericParams more = *p;
    bool used = false;
    for (int i = 0; i < kGenericInputs; ++i) {
      GenericType& in = more.operands[i];
      if (in.count != slot) continue;
      ++in.dims[in.axis];
      used = true;
    }
    if (!used) continue;
    if (generic_infer(&more) != nullptr) return kManyCounts;
    for (int o = kGenericInputs; o < kGenericOperands; ++o) {
      GenericType& out = p->operands[o];
      if (!present(out)) continue;
      if (out.rank != more.operands[o].rank) return kOtherCount;
      for (std::uint8_t d = 0; d < out.rank; ++d) {
        const std::int64_t change = more.operands[o].dims[d] - out.dims[d];
        if (change == 0 || (makes && d == made)) continue;
        if (change != 1) return kOtherCount;
        if (out.count != 0) return kManyCounts;
        out.count = slot;
        out.axis = d;
      }
    }
  }
  if (!makes) return nullptr;
  for (int o = kGenericInputs; o < kGenericOperands; ++o) {
    GenericType& out = p->operands[o];
    if (!present(out)) continue;
    if (out.count != 0 || made >= out.rank) return kManyCounts;
    out.count = kMade;
    out.axis = static_cast<std::uint8_t>(made);
  }
  return nullptr;
}

const char* counted_check(const GenericParams& params, std::span<const std::uint64_t> bytes, bool makes) {
  GenericParams inferred = params;
  for (int o = kGenericInputs; o < kGenericOperands; ++o) inferred.operands[o] = {};
  if (const char* const error = counted_infer(&inferred)) return error;
  if (makes && !makes_count(inferred)) return "the operator makes no count";
  if (bytes.size() != kGenericOperands) return "the number of operands is wrong";
  for (int i = 0; i < kGenericOperands; ++i) {
    const GenericType& type = params.operands[i];
    const GenericType& expected = inferred.operands[i];
    if (!present(type) && i >= kGenericInputs) continue;  // a result that this step does not compute
    bool same_count = type.count == expected.count;
    if (expected.count == kMade && !makes) same_count = type.count >= 1 && type.count <= kMostCounts;
    if (type.dtype != expected.dtype || type.rank != expected.rank || !same_count || type.axis != expected.axis ||
        !std::equal(type.dims, type.dims + type.rank, expected.dims)) {
      return "a result has another type or count than the operator gives";
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

void counted_run(const GenericParams& params, std::byte* const* operands, const std::int32_t* const* counts,
                 std::int32_t* made) {
  GenericParams p = params;
  for (GenericType& type : p.operands) {
    if (type.count < 1 || type.count > kMostCounts) continue;
    const std::int32_t* const count = counts[type.count - 1];
    type.dims[type.axis] = clamped(count != nullptr ? *count : 0, type.dims[type.axis]);
  }
  const bool makes = makes_count(params);
  if (makes && !creates(p.op)) {
    // The shape rule says how many there are: at least 0, at most the capacity.
    const std::int64_t axis = made_axis(p);
    if (p.op == Generic::kTopK) p.integers[1] = std::min(p.integers[1], p.operands[0].dims[axis]);
    GenericParams cut = p;
    const bool some = !(p.op == Generic::kTopK && p.integers[1] == 0) && generic_infer(&cut) == nullptr;
    for (int o = kGenericInputs; o < kGenericOperands; ++o) {
      if (!present(p.operands[o])) continue;
      const std::int64_t capacity = params.operands[o].dims[axis];
      p.operands[o].dims[axis] = some ? clamped(cut.operands[o].dims[axis], capacity) : 0;
      if (made != nullptr) *made = static_cast<std::int32_t>(p.operands[o].dims[axis]);
    }
  }

  Tensor tensors[kGenericOperands];
  std::int64_t results = 0;
  std::int64_t given = 1;
  for (int i = 0; i < kGenericOperands; ++i) {
    const GenericType& type = p.operands[i];
    if (!present(type)) continue;
    // A result whose count another step made keeps its capacity here: the operator itself knows how many there are.
    const bool full = i >= kGenericInputs && creates(p.op);
    tensors[i] = {dtype_of(type), shape_of(full ? params.operands[i] : type), operands[i]};
    if (i >= kGenericInputs) results += tensors[i].shape.elements();
    if (type.count != 0 && i < kGenericInputs) given = std::min(given, tensors[i].shape.elements());
  }
  Tensor* const out = tensors + kGenericInputs;
  if (creates(p.op)) {
    const std::int64_t count = run_creating(p, tensors, out[0]);
    if (made != nullptr) *made = static_cast<std::int32_t>(count);
    return;
  }
  if (results == 0) return;
  const bool of_nothing = p.op == Generic::kArg || (p.op == Generic::kReduce && p.integers[0] == 2);
  if (given == 0 && of_nothing) return clear(out[0], 0, out[0].shape.elements());
  run_generic(p, tensors);
}

}  // namespace takt::kernels::reference
