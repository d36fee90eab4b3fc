// Parameter blocks of the kernels as plans store them: plain members of fixed width, no holes, little-endian.
// Changing one is a new version of its kernel. Extents are positive; every tensor has at most kMaxElements elements.
//
// "blocked" is [N][ceil(C/B)][H][W][B] with B = block_of(target); every kernel that writes a blocked tensor writes zero
// into channels beyond C, and none reads a value of them into a result. "linear" is row-major. Element type f32 unless
// said. An operand in brackets may be absent ({nullptr, 0}).
//
// Arithmetic: what kernels/reference says, bit by bit, on every target and for any number of parts.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/preprocess.h"

namespace takt::kernels::cpu {

// Stored in plans: never renumber, never reuse.
enum class KernelId : std::uint32_t {
  kReorderToBlocked = 1,    // ReorderParams:        linear X, blocked Y
  kReorderToLinear = 2,     // ReorderParams:        blocked X, linear Y
  kConvDirect = 3,          // ConvParams:           blocked X, weights, [residual], blocked Y; group 1
  kConvPointwise = 4,       // ConvParams:           the same; 1x1, stride 1, no padding
  kConvDepthwise = 5,       // ConvParams:           the same; group == c_in == c_out
  kConvFirst = 6,           // ConvParams:           linear X of 1 to 4 channels, otherwise the same; group 1
  kConvGrouped = 7,         // ConvParams:           as kConvDirect, any group
  kMaxPool = 8,             // PoolParams:           blocked X, blocked Y
  kAveragePool = 9,         // PoolParams:           blocked X, blocked Y
  kGlobalAveragePool = 10,  // ReorderParams:        blocked X, blocked Y of 1x1
  kResizeNearest = 11,      // ResizeParams:         blocked X, taps, blocked Y
  kResizeLinear = 12,       // ResizeParams:         blocked X, taps, blocked Y
  kPad = 13,                // PadParams:            blocked X, blocked Y
  kUnary = 14,              // UnaryParams:          X, Y
  kBinary = 15,             // BinaryParams:         A, B, Y
  kBinaryBroadcast = 16,    // BroadcastParams:      linear A, linear B, linear Y
  kChannelGather = 17,      // ChannelGatherParams:  blocked A, [blocked B], channels i32[c_out], blocked Y
  kChannelCopy = 18,        // ChannelCopyParams:    blocked X, blocked Y
  kStridedCopy = 19,        // StridedCopyParams:    X, Y of any element type
  kFill = 20,               // FillParams:           Y of any element type
  kGather = 21,             // GatherParams:         linear X of any element type, indices i32 or i64, linear Y
  kCast = 22,               // CastParams:           X, Y
  kSoftmax = 23,            // SoftmaxParams:        linear X, linear Y
  kSoftmaxChannels = 24,    // ReorderParams:        blocked X, blocked Y
  kReduceMean = 25,         // SoftmaxParams:        linear X, linear Y without the axis
  kGemm = 26,               // GemmParams:           linear A, linear B, [C], linear Y
  kPreprocess = 27,         // kernels::Preprocess:  u8 payload, linear Y f32[1,3,height,width]
  kConvTranspose = 28,      // ConvParams:           blocked X, weights, blocked Y; any group, no residual
  kConvMapped = 30,         // MappedConvParams:     blocked X, weights and channels, [residual], blocked Y; pointwise
  kLayerNorm = 31,          // LayerNormParams:      linear X, [scale], [bias], linear Y
  kReorderToLast = 32,      // ReorderParams:        blocked X, linear Y [n][pixels][c]
  // takt's own operators, parameter blocks in kernels/voxels.h (40 to 49), points.h, pillars.h, boxes.h (50 to 59),
  // tracking.h (60 to 62, 67 to 77); operands in their rows (operators.h).
  kVoxelise = 40,
  kVoxelMean = 41,
  kSparseCells = 42,
  kSparseMap = 43,
  kInverseMap = 44,
  kSparseConv = 45,
  kScatterBev = 46,
  kCloud = 50,
  kDeskew = 51,
  kCrop = 52,
  kSweeps = 53,
  kPillarFeatures = 54,
  kPillarEncode = 55,
  kTopKDecode = 56,
  kCircleNms = 57,
  kAxisAlignedNms = 58,
  kRotatedNms = 59,
  kEgoMotion = 60,
  kDetections = 61,
  kKalmanPredict = 62,
  kGate = 67,
  kAssign = 68,
  kAlign = 69,
  kKalmanUpdate = 70,
  kTrackUpdate = 71,
  kBirth = 72,
  kDeath = 73,
  kTrackOutput = 74,
  kSelect = 63,     // SelectParams: condition (bool of one element), A, B, Y; A where it is true, B where not
  kReference = 64,  // reference::GenericParams: eight inputs, absent ones allowed, and Y, linear; a rare operator by
                    // its reference kernel
  // reference::GenericParams: 8 inputs as kReference, [count] to 4 of them (i32), Y; operands with the dimension that
  // is counted cut to its count (reference/counted.h). kCounting has a second result, the count of Y.
  kCounted = 65,
  kCounting = 66,
};

// Numbered as stored.
enum class Activation : std::int32_t {
  kNone = 0,
  kRelu = 1,
  kClip = 2,   // alpha = lowest, beta = highest
  kLeaky = 3,  // alpha = slope
  kSigmoid = 4,
  kHardSwish = 5,
  kSilu = 6,
  kTanh = 7,
  kHardSigmoid = 8,  // alpha, beta
};

// A kernel over blocked tensors has a second form, for GPUs alone, under this many more: the same parameters, blocked
// tensors hold f16. What is read is widened, what is written is rounded once, to nearest even; between is the
// arithmetic of the first form, in f32. Weights are f16 with a bias in f32; X of kConvFirst and Y of kPreprocess are
// linear and f16; the linear side of a reorder, a scalar B and taps stay f32. kCast: between f32 and f16.
inline constexpr std::uint32_t kF16Form = 256;
constexpr bool is_f16_form(KernelId id) { return static_cast<std::uint32_t>(id) >= kF16Form; }
constexpr KernelId f16_form(KernelId id) { return static_cast<KernelId>(static_cast<std::uint32_t>(id) + kF16Form); }
constexpr KernelId f32_form(KernelId id) {
  return is_f16_form(id) ? static_cast<KernelId>(static_cast<std::uint32_t>(id) - kF16Form) : id;
}

// X and Y of a change of layout, and of kernels that keep the shape or reduce the pixels: n images, c channels,
// `pixels` = h * w.
struct ReorderParams {
  std::int32_t n = 1, c = 1;
  std::int64_t pixels = 1;
};

// Packed weights, see pack_conv(): for every block of B output channels its bias[B] in f32, then
// w[kernel_h][kernel_w][c_in / group][B]; channels beyond c_out are zero.
//
// kConvTranspose: X's element i reaches Y's elements i * stride - pad + k * dilation. Output rows (columns) of one
// remainder of (row + pad) / stride are a phase: they see the same taps. Packed weights, see make_conv_transpose(): for
// every phase of rows, every phase of columns, every block of output channels its bias[B], then its taps as above.
struct ConvParams {
  std::int32_t n = 1, c_in = 1, h_in = 1, w_in = 1;
  std::int32_t c_out = 1, h_out = 1, w_out = 1;
  std::int32_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  std::int32_t pad_top = 0, pad_left = 0;  // below and right follow from h_out and w_out
  std::int32_t group = 1;
  std::int32_t residual = 0;  // 1: the operand is present, of Y's shape, added before the activation; may be Y itself
  Activation activation = Activation::kNone;
  float alpha = 0, beta = 0;
};

// A pointwise convolution that reads its c_in channels wherever they lie among the c_x of X, whose blocks may have
// holes: what a concat, a split or a shuffle made of them moves nothing. Behind the packed weights: i32[c_in], the
// channel of X for each; one outside X reads channel 0.
inline constexpr std::int32_t kMostMappedChannels = 1024;  // c_in
struct MappedConvParams {
  ConvParams conv;
  std::int32_t c_x = 1;
  std::int32_t reserved = 0;
};

struct PoolParams {
  std::int32_t n = 1, c = 1, h_in = 1, w_in = 1, h_out = 1, w_out = 1;
  std::int32_t kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  std::int32_t pad_top = 0, pad_left = 0;
  // Average: 1 counts padding. It ends at pad_bottom and pad_right; taps beyond, where the output extent was rounded
  // up, never count.
  std::int32_t pad_bottom = 0, pad_right = 0;
  std::int32_t count_padding = 0;
  std::int32_t reserved = 0;
};

// taps: kernels::Tap[h_out], then kernels::Tap[w_out], computed when the plan is compiled; indices beyond the input are
// clamped. Nearest takes `first` alone.
struct ResizeParams {
  std::int32_t n = 1, c = 1, h_in = 1, w_in = 1, h_out = 1, w_out = 1;
};

enum class PadMode : std::int32_t { kConstant = 0, kEdge = 1, kReflect = 2 };
// Rows and columns around (never less than none). Reflect: each margin is smaller than its extent.
struct PadParams {
  std::int32_t n = 1, c = 1, h_in = 1, w_in = 1, h_out = 1, w_out = 1;
  std::int32_t top = 0, left = 0;
  PadMode mode = PadMode::kConstant;
  float value = 0;
};

enum class Unary : std::int32_t {
  kActivation = 0,  // the member `activation`
  kExp = 1,
  kSqrt = 2,
  kAbs = 3,
  kNeg = 4,
  kErf = 5,
};
// Any layout: blocked 1 says that X and Y are blocked tensors of n, c, pixels; otherwise their n * c * pixels elements
// lie in a row.
struct UnaryParams {
  Unary op = Unary::kActivation;
  Activation activation = Activation::kNone;
  float alpha = 0, beta = 0;
  std::int32_t blocked = 0;
  std::int32_t n = 1, c = 1;
  std::int32_t reserved = 0;
  std::int64_t pixels = 1;
};

enum class Binary : std::int32_t { kAdd = 0, kSub = 1, kMul = 2, kDiv = 3, kMin = 4, kMax = 5 };
enum class Operand2 : std::int32_t {
  kSame = 0,     // B has A's shape and layout
  kChannel = 1,  // B is [1,C,1,1]: c floats; blocked: ceil(c/B)*B floats (a blocked tensor of one pixel)
  kScalar = 2,   // B is one float
};
// A has Y's shape and layout. swapped 1: Y = B op A.
struct BinaryParams {
  Binary op = Binary::kAdd;
  Operand2 second = Operand2::kSame;
  std::int32_t swapped = 0;
  std::int32_t blocked = 0;
  std::int32_t n = 1, c = 1;
  std::int64_t pixels = 1;
};

// Any broadcast: strides of A and B in elements, 0 where an extent is repeated. dims beyond rank are 1.
struct BroadcastParams {
  Binary op = Binary::kAdd;
  std::int32_t rank = 0;
  std::int64_t dims[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  std::int64_t stride_a[8] = {};
  std::int64_t stride_b[8] = {};
};

// Y's channel i is channel channels[i] of A followed by B; a channel beyond both gives zero.
struct ChannelGatherParams {
  std::int32_t n = 1, c_a = 1;
  std::int32_t c_b = 0;  // 0: B is absent
  std::int32_t c_out = 1;
  std::int64_t pixels = 1;
};

// Channels [from, from + count) of X to [to, to + count) of Y. Other channels of Y in the blocks that are touched are
// kept below `to`, and zero above: parts of a concat are copied in ascending order.
struct ChannelCopyParams {
  std::int32_t n = 1, c_in = 1, c_out = 1;
  std::int32_t from = 0, to = 0, count = 1;
  std::int64_t pixels = 1;
};

// Y[out_offset + sum i_d * stride_out[d]] = X[in_offset + sum i_d * stride_in[d]], in elements of `element_bytes`
// (1, 2, 4 or 8). Slice, concat, expand, transpose of linear tensors. Strides may be negative or 0; those of Y give
// each element of the box another place.
struct StridedCopyParams {
  std::int32_t element_bytes = 4;
  std::int32_t rank = 0;
  std::int64_t dims[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  std::int64_t stride_in[8] = {};
  std::int64_t stride_out[8] = {};
  std::int64_t in_offset = 0, out_offset = 0;
};

struct FillParams {
  std::int32_t element_bytes = 4;
  std::int32_t reserved = 0;
  std::uint64_t value = 0;  // the element's bytes, little-endian
  std::int64_t elements = 1;
};

// X is [outer][axis][inner], Y is [outer][count][inner]. Negative indices count from the end; those that are still out
// of range give zero bytes.
struct GatherParams {
  std::int32_t element_bytes = 4;
  std::int32_t index_bytes = 8;  // 4: i32, 8: i64
  std::int64_t outer = 1, axis = 1, inner = 1, count = 1;
};

// From and to are DType values: f32, i64, i32, u8, bool. Floats to integers toward zero, clamped, NaN to 0; to bool:
// not equal to zero.
struct CastParams {
  std::int32_t from = 1, to = 1;
  std::int64_t elements = 1;
};

// X is [outer][axis][inner].
struct SoftmaxParams {
  std::int64_t outer = 1, axis = 1, inner = 1;
};

// Rows of `axis` neighbouring elements; scale and bias are `axis` floats where their member is 1.
struct LayerNormParams {
  std::int64_t outer = 1, axis = 1;
  float epsilon = 0;
  std::int32_t scale = 0, bias = 0;
  std::int32_t reserved = 0;
};

enum class GemmBias : std::int32_t { kNone = 0, kColumn = 1, kFull = 2, kScalar = 3, kRow = 4 };
// Y[b] = A[b] B[b or shared] + C. A is [m][k], B is [k][n], both row-major. C: kColumn n floats, kRow m floats, kFull
// [m][n] (shared by the batch).
struct GemmParams {
  std::int64_t batch = 1, m = 1, k = 1, n = 1;
  std::int32_t batch_a = 1, batch_b = 1;  // 1: A (B) has the batch dimension; 0: one matrix for all
  GemmBias bias = GemmBias::kNone;
  Activation activation = Activation::kNone;
  float alpha = 0, beta = 0;  // of the activation
};

// Where branches meet. Only the chosen one of A and B is read: the other may hold anything.
struct SelectParams {
  std::int64_t element_bytes = 4;
  std::int64_t elements = 1;
};

template <class T>
inline constexpr bool kIsBlock = std::is_trivially_copyable_v<T>&& std::is_standard_layout_v<T>;
static_assert(kIsBlock<ReorderParams> && sizeof(ReorderParams) == 16);
static_assert(kIsBlock<ConvParams> && sizeof(ConvParams) == 80);
static_assert(kIsBlock<MappedConvParams> && sizeof(MappedConvParams) == 88);
static_assert(kIsBlock<PoolParams> && sizeof(PoolParams) == 72);
static_assert(kIsBlock<ResizeParams> && sizeof(ResizeParams) == 24);
static_assert(kIsBlock<PadParams> && sizeof(PadParams) == 40);
static_assert(kIsBlock<UnaryParams> && sizeof(UnaryParams) == 40);
static_assert(kIsBlock<BinaryParams> && sizeof(BinaryParams) == 32);
static_assert(kIsBlock<BroadcastParams> && sizeof(BroadcastParams) == 200);
static_assert(kIsBlock<ChannelGatherParams> && sizeof(ChannelGatherParams) == 24);
static_assert(kIsBlock<ChannelCopyParams> && sizeof(ChannelCopyParams) == 32);
static_assert(kIsBlock<StridedCopyParams> && sizeof(StridedCopyParams) == 216);
static_assert(kIsBlock<FillParams> && sizeof(FillParams) == 24);
static_assert(kIsBlock<GatherParams> && sizeof(GatherParams) == 40);
static_assert(kIsBlock<CastParams> && sizeof(CastParams) == 16);
static_assert(kIsBlock<SoftmaxParams> && sizeof(SoftmaxParams) == 24);
static_assert(kIsBlock<LayerNormParams> && sizeof(LayerNormParams) == 32);
static_assert(kIsBlock<GemmParams> && sizeof(GemmParams) == 56);
static_assert(kIsBlock<SelectParams> && sizeof(SelectParams) == 16);
static_assert(sizeof(Tap) == 12);

}  // namespace takt::kernels::cpu
