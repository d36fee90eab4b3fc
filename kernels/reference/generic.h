// Operators that are too rare for a kernel of their own, as one kernel over row-major tensors: an operator number, the
// types of all operands, a few attributes. Correct, not fast; a plan says "reference" for such a step. The shape rule
// is here, so that the compiler infers by it and the loader of a plan checks by it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "kernels/tensor.h"

namespace takt::kernels::reference {

// Numbered as stored in plan files: never renumber, never reuse. integers[] and numbers[] as said.
enum class Generic : std::uint32_t {
  kFunction = 1,         // x; integers: Function; numbers: its constants
  kBinary = 2,           // a, b; integers: Binary
  kWhere = 3,            // condition, a, b
  kReduce = 4,           // x; integers: Reduce, bits of the axes, 1 keeps them
  kArg = 5,              // x; integers: axis, 1 keeps it, 1 takes the minimum, 1 takes the last of equals
  kCumSum = 6,           // x; integers: axis, 1 excludes the element itself, 1 from the end
  kGatherElements = 7,   // x, indices; integers: axis
  kScatterElements = 8,  // x, indices, updates; integers: axis, Scatter
  kGatherNd = 9,         // x, indices; integers: batch dimensions
  kScatterNd = 10,       // x, indices, updates; integers: Scatter
  kTrilu = 11,           // x; integers: diagonal, 1 keeps the upper triangle
  kLogSoftmax = 12,      // x; integers: axis
  kHardmax = 13,         // x; integers: axis
  kOneHot = 14,          // indices, values (off, on); integers: axis of the result, depth
  kTopK = 15,            // x; integers: axis, k, 1 takes the largest; a second output holds the indices
};
// f32 unless said. numbers[] in the order named.
enum class Function : std::int64_t {
  kLog = 1,
  kSin = 2,
  kCos = 3,
  kTan = 4,
  kAsin = 5,
  kAcos = 6,
  kAtan = 7,
  kSinh = 8,
  kCosh = 9,
  kAsinh = 10,
  kAcosh = 11,
  kAtanh = 12,
  kErf = 13,
  kRound = 14,  // halves to even
  kSign = 15,   // any number
  kSoftplus = 16,
  kMish = 17,
  kGelu = 18,             // with erf
  kGeluTanh = 19,         // its approximation by tanh
  kElu = 20,              // alpha
  kSelu = 21,             // alpha, gamma
  kCelu = 22,             // alpha
  kThresholdedRelu = 23,  // alpha
  kShrink = 24,           // bias, lambda
  kIsNan = 25,            // bool
  kIsInf = 26,            // bool; numbers: 1 counts negative ones, 1 positive ones
  kFloor = 27,
  kCeil = 28,
  kNot = 29,  // bool
  kAbs = 30,  // any number
  kNeg = 31,  // any signed number
};
enum class Reduce : std::int64_t { kSum = 1, kMean = 2, kMax = 3, kMin = 4, kProduct = 5 };
enum class Scatter : std::int64_t { kReplace = 0, kAdd = 1, kMul = 2, kMin = 3, kMax = 4 };

inline constexpr int kGenericInputs = 3;
inline constexpr int kGenericOutputs = 2;
inline constexpr int kGenericOperands = kGenericInputs + kGenericOutputs;

struct GenericType {
  std::uint8_t dtype = 0;  // a DType; 0: the operand is absent
  std::uint8_t rank = 0;
  std::uint8_t reserved[6] = {};
  std::int64_t dims[kMaxRank] = {};
};

// The parameter block: inputs first, then outputs.
struct GenericParams {
  Generic op{};
  std::uint32_t reserved = 0;
  GenericType operands[kGenericOperands];
  std::int64_t integers[4] = {};
  float numbers[2] = {};
};
static_assert(sizeof(GenericParams) == 408 && std::is_standard_layout_v<GenericParams>);

GenericType generic_type(DType dtype, const Shape& shape);

// Sets the types of the outputs by those of the inputs. nullptr, or what is wrong with them; never overflows, whatever
// the parameters hold (dims may be 0 here; every product is bounded by 2^31 elements).
const char* generic_infer(GenericParams* params);

// The loader's check: the rule above gives the outputs that the parameters name (of two, one may be left out), no
// tensor is empty, and every operand has the bytes of its type. `bytes`: of the kGenericOperands operands, 0 where
// absent.
const char* generic_check(const GenericParams& params, std::span<const std::uint64_t> bytes);

// Runs checked parameters; of two outputs one may be nullptr. Indices that the data put outside a tensor read 0 and
// write nothing. Allocates nothing.
void generic_run(const GenericParams& params, std::byte* const* operands);

}  // namespace takt::kernels::reference
