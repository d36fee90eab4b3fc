// The table of kernels, and check(): parameter blocks of damaged and hostile plans are refused, or run inside their
// operands.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kernels/cpu/operators.h"
#include "kernels/reference/counted.h"
#include "kernels/reference/generic.h"
#include "tests/kernels/cpu/harness.h"
#include "tests/kernels/cpu/operator_calls.h"

namespace takt::kernels::cpu {
namespace {

TEST(Table, IsCompleteForEveryTargetAndRunsHereWhereItSaysSo) {
  for (const Target target : {Target::kAvx2, Target::kAvx512, Target::kNeon}) {
    const auto all = kernels_of(target);
    EXPECT_GE(all.size(), 35U);
    std::set<std::string> names;
    std::uint32_t last = 0;
    for (const Kernel& kernel : all) {
      EXPECT_GT(kernel.id, last);
      last = kernel.id;
      names.insert(kernel.name);
      EXPECT_NE(kernel.check, nullptr);
      EXPECT_EQ(find_kernel(target, kernel.id), &kernel);
      EXPECT_LT(kernel.in_place, kernel.operands - kernel.outputs);
      if (unsupported(target) == nullptr) {
        EXPECT_NE(kernel.run, nullptr) << kernel.name << " for " << name_of(target);
      }
    }
    EXPECT_EQ(names.size(), all.size());
    EXPECT_EQ(find_kernel(target, 0), nullptr);
    EXPECT_EQ(find_kernel(target, 39), nullptr);
    EXPECT_EQ(find_kernel(target, static_cast<std::uint32_t>(f16_form(KernelId::kConvDirect))), nullptr);
    EXPECT_EQ(find_kernel(target, 0xffffffff), nullptr);
  }
  EXPECT_EQ(unsupported(best_target()), nullptr);
}

// One small valid call of every kernel.
std::vector<Call> valid_calls() {
  std::vector<Call> calls;
  const ReorderParams reorder{2, 9, 6};
  for (const KernelId id : {KernelId::kReorderToBlocked, KernelId::kReorderToLinear, KernelId::kReorderToLast,
                            KernelId::kGlobalAveragePool, KernelId::kSoftmaxChannels}) {
    calls.push_back(make_call(id, reorder));
  }
  ConvParams conv;
  conv.c_in = 4;
  conv.c_out = 4;
  conv.h_in = conv.w_in = 5;
  conv.h_out = conv.w_out = 5;
  conv.kernel_h = conv.kernel_w = 3;
  conv.pad_top = conv.pad_left = 1;
  conv.residual = 1;
  calls.push_back(make_call(KernelId::kConvDirect, conv));
  calls.push_back(make_call(KernelId::kConvFirst, conv));
  conv.group = 2;
  calls.push_back(make_call(KernelId::kConvGrouped, conv));
  ConvParams transposed = conv;
  transposed.residual = 0;
  calls.push_back(make_call(KernelId::kConvTranspose, transposed));
  conv.group = 4;
  calls.push_back(make_call(KernelId::kConvDepthwise, conv));
  conv.group = 1;
  conv.kernel_h = conv.kernel_w = 1;
  conv.pad_top = conv.pad_left = 0;
  calls.push_back(make_call(KernelId::kConvPointwise, conv));
  MappedConvParams mapped;
  mapped.conv = conv;
  mapped.c_x = 21;
  calls.push_back(make_call(KernelId::kConvMapped, mapped));
  PoolParams pool;
  pool.c = 5;
  pool.h_in = pool.w_in = 6;
  pool.h_out = pool.w_out = 3;
  pool.kernel_h = pool.kernel_w = 2;
  pool.stride_h = pool.stride_w = 2;
  calls.push_back(make_call(KernelId::kMaxPool, pool));
  pool.count_padding = 1;
  calls.push_back(make_call(KernelId::kAveragePool, pool));
  calls.push_back(make_call(KernelId::kResizeNearest, ResizeParams{1, 5, 3, 3, 6, 6}));
  calls.push_back(make_call(KernelId::kResizeLinear, ResizeParams{1, 5, 3, 3, 6, 6}));
  PadParams pad{1, 5, 3, 3, 6, 6, 1, 2, PadMode::kReflect, 0};
  calls.push_back(make_call(KernelId::kPad, pad));
  UnaryParams unary;
  unary.activation = Activation::kSilu;
  unary.blocked = 1;
  unary.c = 5;
  unary.pixels = 7;
  calls.push_back(make_call(KernelId::kUnary, unary));
  BinaryParams binary;
  binary.second = Operand2::kChannel;
  binary.blocked = 1;
  binary.c = 5;
  binary.pixels = 7;
  calls.push_back(make_call(KernelId::kBinary, binary));
  bool swapped = false;
  calls.push_back(make_binary(Binary::kAdd, {2, {7, 1}}, {2, {1, 9}}, {2, {7, 9}}, &swapped));
  calls.push_back(make_call(KernelId::kChannelGather, ChannelGatherParams{1, 5, 6, 11, 7}));
  calls.push_back(make_call(KernelId::kChannelCopy, ChannelCopyParams{1, 9, 20, 2, 7, 5, 6}));
  const int permutation[] = {2, 0, 1};
  calls.push_back(make_transpose({3, {4, 5, 6}}, permutation, DType::kI32));
  calls.push_back(make_call(KernelId::kFill, FillParams{2, 0, 7, 9}));
  calls.push_back(make_call(KernelId::kGather, GatherParams{4, 8, 2, 5, 3, 4}));
  calls.push_back(make_call(KernelId::kCast, CastParams{1, 3, 9}));
  calls.push_back(make_call(KernelId::kSoftmax, SoftmaxParams{2, 5, 3}));
  calls.push_back(make_call(KernelId::kReduceMean, SoftmaxParams{2, 5, 3}));
  GemmParams gemm;
  gemm.batch = 2;
  gemm.m = 3;
  gemm.k = 4;
  gemm.n = 19;
  gemm.bias = GemmBias::kFull;
  calls.push_back(make_call(KernelId::kGemm, gemm));
  Preprocess preprocess;
  preprocess.source = PixelSource::kNv12;
  preprocess.source_width = preprocess.source_height = 8;
  preprocess.pitch = preprocess.chroma_pitch = 8;
  preprocess.chroma_offset = 64;
  preprocess.fit = Fit::kLetterbox;
  preprocess.width = 9;
  preprocess.height = 5;
  calls.push_back(make_call(KernelId::kPreprocess, preprocess));
  reference::GenericParams rare;
  rare.op = reference::Generic::kFunction;
  rare.integers[0] = static_cast<std::int64_t>(reference::Function::kErf);
  rare.operands[0] = rare.operands[reference::kGenericInputs] = reference::generic_type(DType::kF32, {2, {2, 3}});
  calls.push_back(make_call(KernelId::kReference, rare));
  calls.push_back(make_call(KernelId::kLayerNorm, LayerNormParams{3, 5, 1e-5F, 1, 0, 0}));
  rare.operands[0].count = 1;
  reference::counted_infer(&rare);
  calls.push_back(make_call(KernelId::kCounted, rare));
  reference::GenericParams found;
  found.op = reference::Generic::kNonZero;
  found.operands[0] = reference::generic_type(DType::kF32, {2, {2, 3}});
  found.integers[3] = 6;
  reference::counted_infer(&found);
  calls.push_back(make_call(KernelId::kCounting, found));
  calls.push_back(make_call(KernelId::kSelect, SelectParams{2, 21}));
  for (const auto& operators : {voxel_calls(), point_calls(), tracking_calls()}) {
    calls.insert(calls.end(), operators.begin(), operators.end());
  }
  return calls;
}

// On GPUs also in the f16 form.
std::vector<Call> valid_calls(Target target) {
  std::vector<Call> calls = valid_calls();
  for (std::size_t i = 0, f32 = calls.size(); is_cuda(target) && i < f32; ++i) {
    if (!has_f16_form(calls[i].id)) continue;
    Call call = calls[i].id == KernelId::kCast ? make_call(KernelId::kCast, CastParams{1, 2, 9}) : calls[i];
    call.id = f16_form(call.id);
    calls.push_back(std::move(call));
  }
  return calls;
}

TEST(Check, ValidCallsOfEveryKernelPassAndOperandsOfAnotherSizeOrAlignmentDoNot) {
  std::set<KernelId> seen;
  for (const Call& call : valid_calls()) seen.insert(call.id);
  EXPECT_EQ(seen.size(), kernels_of(Target::kAvx2).size());
  alignas(64) std::byte bytes[128];  // never read
  for (const Target target : {Target::kAvx2, Target::kAvx512, Target::kNeon, Target::kCudaSm87}) {
    for (const Call& call : valid_calls(target)) {
      const Kernel* const kernel = find_kernel(target, static_cast<std::uint32_t>(call.id));
      if (kernel == nullptr && is_cuda(target)) continue;
      ASSERT_NE(kernel, nullptr);
      OperandBytes needed;
      ASSERT_EQ(operand_bytes(call.id, call.params.data(), target, &needed), nullptr) << kernel->name;
      std::vector<Operand> operands;
      for (int i = 0; i < kernel->operands; ++i) operands.push_back({nullptr, needed.bytes[i]});
      EXPECT_EQ(kernel->check(call.params.data(), operands, target), nullptr) << kernel->name;
      const OperatorKernel* const own = find_operator_kernel(call.id);
      for (Operand& operand : operands) {
        if (operand.bytes == 0) continue;
        if (own != nullptr && own->is_count(static_cast<int>(&operand - operands.data()))) {
          const Operand count = std::exchange(operand, Operand{});
          EXPECT_EQ(kernel->check(call.params.data(), operands, target), nullptr) << kernel->name;
          operand = count;
        }
        --operand.bytes;
        EXPECT_NE(kernel->check(call.params.data(), operands, target), nullptr) << kernel->name;
        operand.bytes += 65;
        const bool result = operands.data() + operands.size() - &operand <= kernel->outputs;
        const bool whole = result && call.id != KernelId::kStridedCopy;
        EXPECT_EQ(kernel->check(call.params.data(), operands, target) != nullptr, whole) << kernel->name;
        operand.bytes -= 64;
        const std::uint64_t element = needed.element[&operand - operands.data()];
        operand.data = bytes + 64 + element;
        EXPECT_EQ(kernel->check(call.params.data(), operands, target), nullptr) << kernel->name;
        operand.data = bytes + 64 + element / 2;
        EXPECT_EQ(kernel->check(call.params.data(), operands, target) == nullptr, element == 1) << kernel->name;
        operand.data = nullptr;
      }
      operands.pop_back();
      EXPECT_NE(kernel->check(call.params.data(), operands, target), nullptr) << kernel->name;
    }
  }
}

// Windows that begin far behind the input would multiply out beyond 64 bits on their way to "all of it is padding".
TEST(Check, WindowsFarOutsideAreRefused) {
  ConvParams conv;
  conv.w_in = 1 << 30;
  conv.h_out = 1 << 30;
  conv.stride_h = 1 << 24;
  OperandBytes needed;
  for (const KernelId id : {KernelId::kConvDirect, KernelId::kConvFirst, KernelId::kConvDepthwise}) {
    ConvParams p = conv;
    EXPECT_STREQ(operand_bytes(id, &p, Target::kAvx2, &needed), "kernel, stride, dilation or padding out of range");
    p.stride_h = 1;
    p.h_out = 4;
    EXPECT_EQ(operand_bytes(id, &p, Target::kAvx2, &needed), nullptr);
  }
  PoolParams pool;
  pool.w_out = 1 << 30;
  pool.stride_w = 1 << 24;
  EXPECT_NE(operand_bytes(KernelId::kMaxPool, &pool, Target::kAvx2, &needed), nullptr);
}

// Every member of every block at the edges of its range. What check() accepts with operands of at most a megabyte is
// run between guards with such operands; CUDA kernels with every access judged.
TEST(Check, MutatedBlocksAreRefusedOrStayInside) {
  Random random(9);
  int ran = 0, refused = 0;
  const std::int64_t edges[] = {0, 1, -1, 2, 3, 7, 8, 16, 17, 255, 4096, 0x7fffffff, -0x80000000LL, 0x7fffffffffffffff};
  for (const Target target : targets()) {
    for (const Call& valid : valid_calls(target)) {
      const Kernel* const kernel = find_kernel(target, static_cast<std::uint32_t>(valid.id));
      if (kernel == nullptr && kOnCuda) continue;
      for (int i = 0; i < (kOnSimt ? 150 : 3000); ++i) {
        Call call = valid;
        for (int k = random.integer(1, 3); k > 0; --k) {
          const int words = static_cast<int>(call.params.size() / 4);
          const int at = random.integer(0, words - 1) * 4;
          if (random.integer(0, 3) == 0) {
            std::uint32_t word = 0;
            std::memcpy(&word, call.params.data() + at, 4);
            word += static_cast<std::uint32_t>(random.integer(-3, 3));
            std::memcpy(call.params.data() + at, &word, 4);
          } else {
            const std::int64_t edge = edges[random.integer(0, 13)];
            const std::size_t bytes = at % 8 == 0 && at + 8 <= words * 4 && random.integer(0, 1) == 0 ? 8 : 4;
            std::memcpy(call.params.data() + at, &edge, bytes);
          }
        }
        OperandBytes needed;
        if (operand_bytes(call.id, call.params.data(), target, &needed) != nullptr) {
          ++refused;
          continue;
        }
        std::uint64_t most = 0;
        for (int o = 0; o < kernel->operands; ++o) most = std::max(most, needed.bytes[o]);
        if (most > (kOnSimt ? 1U << 15 : 1U << 20)) continue;
        // Strides that write a place twice leave open which element stays: inside, and a race.
        if (valid.id == KernelId::kStridedCopy && kOnSimt) continue;
        // Contents are hostile too: indices and taps of all ones. Nothing is counted, or everything by a count of -1.
        const OperatorKernel* const own = find_operator_kernel(call.id);
        std::vector<Bytes> holds;
        for (int o = 0; o < kernel->operands; ++o) {
          const bool absent = own != nullptr && own->is_count(o) && i % 4 != 0;
          holds.emplace_back(absent ? 0 : needed.bytes[o], std::byte{0xFF});
        }
        CallOperands operands(holds, needed, std::byte{0xFF});
        ASSERT_EQ(kernel->check(call.params.data(), operands.operands, target), nullptr);
        run_kernel(*kernel, call.params.data(), operands, 2);
        for (const Guarded& g : operands.guarded) ASSERT_TRUE(g.intact()) << kernel->name;
        ++ran;
      }
    }
  }
  EXPECT_GT(ran, kOnSimt ? 300 : 1000);
  EXPECT_GT(refused, kOnSimt ? 300 : 1000);
}

// Found by the fuzzer: nobody looks at the type of what is absent, so it may not say anything.
TEST(OperandBytes, WhatIsAbsentSaysNothing) {
  reference::GenericParams p;
  p.op = reference::Generic::kFunction;
  p.integers[0] = static_cast<std::int64_t>(reference::Function::kAbs);
  p.operands[0] = reference::generic_type(DType::kF32, {1, {4}});
  ASSERT_EQ(reference::generic_infer(&p), nullptr);
  for (const KernelId id : {KernelId::kReference, KernelId::kCounted}) {
    OperandBytes bytes;
    EXPECT_EQ(operand_bytes(id, &p, Target::kAvx2, &bytes), nullptr);
    for (const int absent : {1, reference::kGenericInputs - 1, reference::kGenericInputs + 1}) {
      for (const int member : {0, 1, 2}) {
        reference::GenericParams other = p;
        reference::GenericType& type = other.operands[absent];
        (member == 0 ? type.rank : member == 1 ? type.count : type.axis) = 63;
        EXPECT_NE(operand_bytes(id, &other, Target::kAvx2, &bytes), nullptr) << absent << ' ' << member;
      }
    }
  }
}

}  // namespace
}  // namespace takt::kernels::cpu
