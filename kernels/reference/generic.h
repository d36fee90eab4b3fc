// Operators that are too rare for a kernel of their own, as one kernel over row-major tensors: an operator number, the
// types of all operands, a few attributes. Correct, not fast; a plan says "reference" for such a step. The shape rule
// is here, so that the compiler infers by it and the loader of a plan checks by it.
//
// One entry for each operator (generic_table.h): its shape rule and its loops. Semantics are those of ONNX, whose
// operator of the same name says them in full (https://onnx.ai/onnx/operators/).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "kernels/tensor.h"

namespace takt::kernels::reference {

// Numbered as stored in plan files: never renumber, never reuse. integers[] and numbers[] as said; [x] may be absent.
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
  kCast = 16,            // x; integers: DType of the result
  kConv = 17,            // x [N,C,D..], w [M,C/group,k..], [bias]; integers: kWindow, group
  kConvTranspose = 18,   // x [N,C,D..], w [C,M/group,k..], [bias]; integers: kWindow, group, output padding
  kPool = 19,        // x [N,C,D..]; integers: kWindow, Pool, 1 rounds extents up, 1 counts indices column by column,
                     // exponent of kLp; kMaxIndices has a second output, i64
  kMatMul = 20,      // a, b of rank 2 and more, batches broadcast
  kResample = 21,    // x, positions i64 [n,k], weights [n,k]; integers: axis; numbers: value where a position is -1
  kGridSample = 22,  // x [N,C,H,W], grid [N,h,w,2]; integers: Interpolation, Outside, 1 aligns corners
  kRoiAlign = 23,    // x [N,C,H,W], rois [R,4], image of each i64 [R]; integers: height, width, samples, 1 takes the
                     // maximum, 1 shifts by half a pixel; numbers: scale
  kReverse = 24,     // x, lengths i64 [batch]; integers: time axis, batch axis (0 and 1 in any order)
  kLrn = 25,         // x [N,C,..]; integers: size; numbers: alpha, beta, bias
  kDet = 26,         // x [..,n,n]
  kMaxUnpool = 27,   // x, indices i64; integers: rank, extents of the result
  kQuantize = 28,    // x, scale, [zero]; integers: axis, DType of the result
  kDequantize = 29,  // x, scale, [zero]; integers: axis
  kRecurrent = 30,   // x [T,B,I], w [D,GH,I], r [D,GH,H], [bias [D,2GH]], [lengths i32 [B]], [first h [D,B,H]],
                     // [first c], [peepholes [D,3H]]; integers: Cell, Direction, Gate activations (3 for each
                     // direction), 1 resets after the product, 1 couples the input and forget gates; numbers: clip
                     // (0: none), alpha and beta of each activation. Y [T+1,D,B,H], of LSTM [T+2,D,B,H]: the hidden
                     // states by time, then the last one, then the last cell state
  // Needed for counted tensors (counted.h); elsewhere these have kernels of their own.
  kTranspose = 64,  // x; integers: the permutation
  kSlice = 65,      // x; integers: how many (at most 4), of each axis, start, end, step
  kGather = 66,     // x, indices; integers: axis
  kConcat = 67,     // x to 8 of them; integers: axis
  kSoftmax = 68,    // x; integers: axis
  kClip = 69,       // x, [lowest], [highest]
  kGemm = 70,       // a, b, [c]; integers: 1 transposes a, 1 transposes b; numbers: alpha, beta
  // As many as the data decide; integers[3]: the capacity of the result, what goes beyond it is left out.
  kNonZero = 71,   // x; i64 [rank, count]
  kCompress = 72,  // x, condition; integers: axis
  kUnique = 73,    // x; integers: axis, 1 sorts, which result
  kNms = 74,       // boxes, scores, [most of a class], [IoU], [score]; integers: 1 has centres and extents
};
// f32 or f64 unless said. numbers[] in the order named.
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
  kExp = 32,
  kSqrt = 33,
  kSigmoid = 34,
  kTanh = 35,
  kRelu = 36,         // any number
  kLeaky = 37,        // alpha
  kHardSigmoid = 38,  // alpha, beta
  kHardSwish = 39,
  kSilu = 40,
  kBitNot = 41,  // any whole number
};
inline constexpr std::int64_t kLastFunction = 41;
enum class Reduce : std::int64_t { kSum = 1, kMean = 2, kMax = 3, kMin = 4, kProduct = 5 };
enum class Scatter : std::int64_t { kReplace = 0, kAdd = 1, kMul = 2, kMin = 3, kMax = 4 };
enum class Pool : std::int64_t { kMax = 0, kMaxIndices = 1, kAverage = 2, kAverageWithPadding = 3, kLp = 4 };
enum class Interpolation : std::int64_t { kNearest = 0, kLinear = 1, kCubic = 2 };
enum class Outside : std::int64_t { kZeros = 0, kBorder = 1, kReflection = 2 };
enum class Cell : std::int64_t { kRnn = 0, kLstm = 1, kGru = 2 };
enum class Direction : std::int64_t { kForward = 0, kReverse = 1, kBoth = 2 };
enum class Gate : std::int64_t {
  kSigmoid = 0,
  kTanh = 1,
  kRelu = 2,
  kAffine = 3,  // alpha, beta
  kLeakyRelu = 4,
  kThresholdedRelu = 5,
  kScaledTanh = 6,
  kHardSigmoid = 7,
  kElu = 8,
  kSoftsign = 9,
  kSoftplus = 10,
};

// kWindow: where the integers of a window over up to three dimensions begin; three of each.
inline constexpr int kMostSpatial = 3;
inline constexpr int kStride = 0;
inline constexpr int kDilation = 3;
inline constexpr int kPadBefore = 6;
inline constexpr int kPadAfter = 9;
inline constexpr int kKernel = 12;  // of a convolution: 0, its weights say it
inline constexpr int kBehindWindow = 15;

inline constexpr int kGenericInputs = 8;
inline constexpr int kGenericOutputs = 2;
inline constexpr int kGenericOperands = kGenericInputs + kGenericOutputs;

struct GenericType {
  std::uint8_t dtype = 0;  // a DType; 0: the operand is absent
  std::uint8_t rank = 0;
  std::uint8_t count = 0;  // counted.h; 0: all are valid
  std::uint8_t axis = 0;
  std::uint8_t reserved[4] = {};
  std::int64_t dims[kMaxRank] = {};
};

// The parameter block: inputs first, then outputs.
struct GenericParams {
  Generic op{};
  std::uint32_t reserved = 0;
  GenericType operands[kGenericOperands];
  std::int64_t integers[20] = {};
  float numbers[14] = {};
};
static_assert(sizeof(GenericParams) == 944 && std::is_standard_layout_v<GenericParams>);

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
