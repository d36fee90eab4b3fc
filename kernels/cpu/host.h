// Host halves of the CPU kernels: everything that is decided when a plan is compiled, for any target on any machine.
// Portable, allocation only in the vectors returned, the same bytes everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/cpu/params.h"
#include "kernels/kernel.h"
#include "kernels/tensor.h"

namespace takt::kernels::cpu {

// A step without its operands' places. `constant` are the bytes of the operand `constant_operand` (packed weights,
// taps, channel lists); -1: none.
struct Call {
  KernelId id{};
  std::vector<std::byte> params;
  std::vector<std::byte> constant;
  int constant_operand = -1;
};

// A call from a parameter block that needs no more thought.
template <class Params>
Call make_call(KernelId id, const Params& params) {
  static_assert(kIsBlock<Params>);
  Call call;
  call.id = id;
  call.params.resize(sizeof(Params));
  std::memcpy(call.params.data(), &params, sizeof(Params));
  return call;
}

// Bytes of every operand that run() touches (0 for an absent one) and the size of the elements that it reads or writes
// there, in the order of the table in params.h; nullptr, or what is wrong with the parameters. check() of every kernel
// is this and a comparison.
inline constexpr int kMaxOperands = 24;
struct OperandBytes {
  std::uint64_t bytes[kMaxOperands] = {};
  std::uint64_t element[kMaxOperands];
  constexpr OperandBytes() {
    for (std::uint64_t& size : element) size = sizeof(float);
  }
};
const char* operand_bytes(KernelId id, const void* params, Target target, OperandBytes* out);

// Floating-point operations (a multiply-add counts 2) of valid parameters. Taps in padding count, holes do not.
std::uint64_t flops_of(KernelId id, const void* params);

// The kernel of a convolution: params.group, extents, strides decide. `linear_input`: X is linear, for kConvFirst
// (group 1, at most 4 input channels); every other kernel wants X blocked. Y is always blocked.
// weights: f32 [c_out][c_in / group][kernel_h][kernel_w]; bias: c_out floats or nullptr (zero).
// `stored`: what blocked tensors and weights hold, f32, or f16 for the f16 form (weights rounded to nearest even).
Call make_conv(const ConvParams& params, const float* weights, const float* bias, bool linear_input, Target target,
               DType stored = DType::kF32);
// A pointwise one (params.c_in channels) of a blocked X with c_x channels; channels.size() == c_in.
Call make_mapped_conv(const ConvParams& params, std::int32_t c_x, std::span<const std::int32_t> channels,
                      const float* weights, const float* bias, Target target, DType stored = DType::kF32);
constexpr bool is_pointwise(const ConvParams& p) {
  return p.group == 1 && p.kernel_h == 1 && p.kernel_w == 1 && p.stride_h == 1 && p.stride_w == 1 && p.pad_top == 0 &&
         p.pad_left == 0 && p.h_out == p.h_in && p.w_out == p.w_in;
}
// Whether a convolution may take its input linear.
constexpr bool takes_linear_input(const ConvParams& p) { return p.group == 1 && p.c_in <= 4; }
// Transposed: weights f32 [c_in][c_out / group][kernel_h][kernel_w]. One tap with stride 1 is kConvPointwise.
Call make_conv_transpose(const ConvParams& params, const float* weights, const float* bias, Target target,
                         DType stored = DType::kF32);
std::vector<std::byte> pack_conv(const ConvParams& params, const float* weights, const float* bias, Target target,
                                 DType stored);
// Whether a kernel has an f16 form.
bool has_f16_form(KernelId id);
// Values as a tensor of that type holds them: f32, or f16 rounded to nearest even.
std::vector<std::byte> stored_as(DType stored, std::span<const float> values);

// rows.size() == h_out, columns.size() == w_out. Nearest when every weight is 0.
Call make_resize(const ResizeParams& params, std::span<const Tap> rows, std::span<const Tap> columns);

// channels.size() == params.c_out.
Call make_channel_gather(const ChannelGatherParams& params, std::span<const std::int32_t> channels);

// Transpose of a linear tensor: extent d of the result is extent permutation[d] of `shape`.
Call make_transpose(const Shape& shape, std::span<const int> permutation, DType dtype);
// The box of `extents` that starts at `in_start` of a linear X and goes in steps (ONNX Slice: any step but 0), written
// from `out_start` of a linear Y. A concat is one such copy for each part.
Call make_copy(const Shape& in, const Shape& out, DType dtype, std::span<const std::int64_t> extents,
               std::span<const std::int64_t> in_start, std::span<const std::int64_t> in_step,
               std::span<const std::int64_t> out_start);

// A op B with ONNX broadcasting of linear tensors (ranks may differ); `out` is the broadcast shape. Chooses kBinary
// where B (or A, swapped) is a scalar or has A's shape, else kBinaryBroadcast. `swapped` says that the operands must be
// given in the order B, A.
Call make_binary(Binary op, const Shape& a, const Shape& b, const Shape& out, bool* swapped);

}  // namespace takt::kernels::cpu
