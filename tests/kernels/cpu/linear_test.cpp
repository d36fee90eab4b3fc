// Linear tensors: movement, softmax, mean, matrix product.
#include <gtest/gtest.h>

#include "kernels/reference/activation.h"
#include "kernels/reference/elementwise.h"
#include "kernels/reference/gemm.h"
#include "kernels/reference/movement.h"
#include "kernels/reference/reduce.h"
#include "kernels/reference/softmax.h"
#include "tests/kernels/cpu/harness.h"

namespace takt::kernels::cpu {
namespace {

TEST(Softmax, LinearAxes) {
  Random random(1);
  for (const SoftmaxParams p :
       {SoftmaxParams{1, 1, 1}, SoftmaxParams{7, 85, 1}, SoftmaxParams{2, 80, 484}, SoftmaxParams{3, 5, 37},
        SoftmaxParams{1, 1000, 1}, SoftmaxParams{5, 3, 2}, SoftmaxParams{19, 33, 1}, SoftmaxParams{8, 7, 1}}) {
    Floats x = random.values(p.outer * p.axis * p.inner, true), y(x.size());
    const Shape shape{3, {p.outer, p.axis, p.inner}};
    reference::softmax(tensor_of(x, shape), 1, tensor_of(y, shape));
    for (const Target target : targets()) {
      expect_run(target, make_call(KernelId::kSoftmax, p), {bytes_of(x)}, y, "softmax");
      expect_same(floats_of(run(target, make_call(KernelId::kSoftmax, p), {bytes_of(x)}, 2, {}, 0)), y, "in place");
    }
    Floats mean(static_cast<std::size_t>(p.outer * p.inner));
    const bool reduced[kMaxRank] = {false, true};
    reference::reduce_mean(tensor_of(x, shape), reduced, tensor_of(mean, Shape{2, {p.outer, p.inner}}));
    for (const Target target : targets()) {
      expect_run(target, make_call(KernelId::kReduceMean, p), {bytes_of(x)}, mean, "mean");
    }
    if (HasFailure()) return;
  }
}

TEST(LayerNorm, EveryRestOfRowsAndLanes) {
  Random random(7);
  for (int i = 0; i < 60; ++i) {
    LayerNormParams p;
    p.outer = random.integer(1, 20);
    p.axis = random.integer(1, 70);
    p.epsilon = 1e-5F;
    p.scale = random.integer(0, 1);
    p.bias = random.integer(0, 1);
    const Shape shape{2, {p.outer, p.axis}}, along{1, {p.axis}};
    const bool hostile = i % 5 == 0;
    Floats x = random.values(shape.elements(), hostile), y(x.size());
    Floats scale = random.values(p.scale * p.axis, hostile), bias = random.values(p.bias * p.axis, hostile);
    reference::layer_norm(tensor_of(x, shape), p.scale == 1 ? tensor_of(scale, along) : Tensor{},
                          p.bias == 1 ? tensor_of(bias, along) : Tensor{}, p.epsilon, tensor_of(y, shape));
    const Call call = make_call(KernelId::kLayerNorm, p);
    for (const Target target : targets()) {
      const std::vector<Bytes> inputs = {bytes_of(x), bytes_of(scale), bytes_of(bias)};
      expect_run(target, call, inputs, y, std::to_string(p.outer) + "x" + std::to_string(p.axis));
      expect_same(floats_of(run(target, call, inputs, 2, {}, 0)), y, "in place");
    }
    if (HasFailure()) return;
  }
}

TEST(Gemm, ShapesAndBiases) {
  Random random(2);
  for (int i = 0; i < 120; ++i) {
    GemmParams p;
    p.batch = random.integer(1, 3);
    p.m = random.integer(1, 30);
    p.k = random.integer(1, 40);
    p.n = random.integer(1, 80);
    p.batch_a = random.integer(0, 1);
    p.batch_b = random.integer(0, 1);
    p.bias = static_cast<GemmBias>(random.integer(0, 4));
    p.activation = static_cast<Activation>(random.integer(0, 8));
    p.alpha = 0.1F;
    p.beta = 0.6F;
    const bool hostile = i % 4 == 0;
    const Shape sa{3, {p.batch_a == 1 ? p.batch : 1, p.m, p.k}}, sb{3, {p.batch_b == 1 ? p.batch : 1, p.k, p.n}};
    const Shape sy{3, {p.batch, p.m, p.n}};
    const std::int64_t sizes[] = {0, p.n, p.m * p.n, 1, p.m};
    Floats a = random.values(sa.elements(), hostile), b = random.values(sb.elements(), hostile);
    Floats c = random.values(sizes[static_cast<int>(p.bias)], hostile), y(static_cast<std::size_t>(sy.elements()));
    Tensor bias;
    switch (p.bias) {
      case GemmBias::kNone: break;
      case GemmBias::kColumn: bias = tensor_of(c, Shape{1, {p.n}}); break;
      case GemmBias::kFull: bias = tensor_of(c, Shape{2, {p.m, p.n}}); break;
      case GemmBias::kScalar: bias = tensor_of(c, Shape{0, {}}); break;
      case GemmBias::kRow: bias = tensor_of(c, Shape{2, {p.m, 1}}); break;
    }
    reference::gemm(tensor_of(a, sa), tensor_of(b, sb), bias, {}, tensor_of(y, sy));
    for (float& v : y)
      v = reference::activate_f32(static_cast<reference::Activation>(p.activation), v, p.alpha, p.beta);
    for (const Target target : targets()) {
      expect_run(target, make_call(KernelId::kGemm, p), {bytes_of(a), bytes_of(b), bytes_of(c)}, y,
                 std::to_string(p.m) + "x" + std::to_string(p.k) + "x" + std::to_string(p.n));
    }
    if (HasFailure()) return;
  }
}

TEST(StridedCopy, Transpose) {
  Random random(3);
  for (int i = 0; i < 80; ++i) {
    Shape shape;
    shape.rank = random.integer(0, 5);
    std::vector<int> permutation;
    for (int d = 0; d < shape.rank; ++d) {
      shape.dims[d] = random.integer(1, i % 3 == 0 ? 40 : 6);
      permutation.insert(permutation.begin() + random.integer(0, d), d);
      if (shape.elements() > 100000) shape.dims[d] = 1;
    }
    Floats x = random.values(shape.elements()), y(x.size());
    reference::View view;
    Shape out;
    out.rank = shape.rank;
    const reference::View rows = reference::row_major(shape);
    for (int d = 0; d < out.rank; ++d) {
      out.dims[d] = shape.dims[permutation[static_cast<std::size_t>(d)]];
      view.strides[d] = rows.strides[permutation[static_cast<std::size_t>(d)]];
    }
    reference::read_view(tensor_of(x, shape), view, tensor_of(y, out));
    for (const Target target : targets()) {
      expect_run(target, make_transpose(shape, permutation, DType::kF32), {bytes_of(x)}, y, "transpose");
    }
    if (HasFailure()) return;
  }
}

TEST(StridedCopy, SliceBackwardsAndPlaceInAConcat) {
  // X[1:6, 4::-2] of a 7x5 u8 matrix, written into columns 2 to 4 of a 5x6 one.
  std::vector<std::uint8_t> x(35), expected(30, 0xEE);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint8_t>(i);
  for (std::size_t r = 0; r < 5; ++r) {
    for (std::size_t c = 0; c < 3; ++c) expected[r * 6 + 2 + c] = x[(r + 1) * 5 + 4 - 2 * c];
  }
  const std::int64_t extents[] = {5, 3}, start[] = {1, 4}, step[] = {1, -2}, to[] = {0, 2};
  const Call call = make_copy({2, {7, 5}}, {2, {5, 6}}, DType::kU8, extents, start, step, to);
  for (const Target target : targets()) {
    for (const int parts : {1, 2, 3, 7}) {
      // The box does not reach the last byte of either matrix: the needed sizes are those of the box.
      OperandBytes needed;
      ASSERT_EQ(operand_bytes(call.id, call.params.data(), target, &needed), nullptr);
      EXPECT_EQ(needed.bytes[0], 5U * 5 + 4 + 1);
      EXPECT_EQ(needed.bytes[1], 4U * 6 + 4 + 1);
      Bytes cut = bytes_of_all(x);
      cut.resize(30);
      Bytes y = run(target, call, {cut}, parts, Bytes(29, std::byte{0xEE}));
      y.push_back(std::byte{0xEE});
      EXPECT_EQ(y, bytes_of_all(expected));
    }
  }
}

TEST(Gather, IndicesOfBothTypesAndOutOfRange) {
  const std::vector<std::int64_t> wide = {0, 4, -1, -5, 2, 99, -77};
  const std::vector<std::int32_t> narrow = {0, 4, -1, -5, 2, 99, -77};
  Random random(4);
  GatherParams p;
  p.outer = 3;
  p.axis = 5;
  p.inner = 9;
  p.count = 7;
  const Floats x = random.values(3 * 5 * 9);
  Floats y;
  for (std::size_t o = 0; o < 3; ++o) {
    for (const std::int64_t i : wide) {
      const std::int64_t at = i < 0 ? i + 5 : i;
      for (std::size_t j = 0; j < 9; ++j) {
        y.push_back(at < 0 || at >= 5 ? 0.0F : x[(o * 5 + static_cast<std::size_t>(at)) * 9 + j]);
      }
    }
  }
  for (const Target target : targets()) {
    p.index_bytes = 8;
    expect_run(target, make_call(KernelId::kGather, p), {bytes_of(x), bytes_of_all(wide)}, y, "gather i64");
    p.index_bytes = 4;
    expect_run(target, make_call(KernelId::kGather, p), {bytes_of(x), bytes_of_all(narrow)}, y, "gather i32");
  }
}

TEST(Fill, EveryWidth) {
  for (const Target target : targets()) {
    for (const std::int32_t bytes : {1, 2, 4, 8}) {
      FillParams p;
      p.element_bytes = bytes;
      p.value = 0x0102030405060708U;
      p.elements = 13;
      for (const int parts : {1, 2, 3}) {
        const Bytes got = run(target, make_call(KernelId::kFill, p), {}, parts);
        ASSERT_EQ(got.size(), 13U * static_cast<std::size_t>(bytes));
        for (std::size_t i = 0; i < got.size(); ++i) {
          EXPECT_EQ(got[i], static_cast<std::byte>(8 - i % static_cast<std::size_t>(bytes)));
        }
      }
    }
  }
}

TEST(Cast, FollowsTheReference) {
  Random random(5);
  const DType types[] = {DType::kF32, DType::kI64, DType::kI32, DType::kU8, DType::kBool};
  for (const DType from : types) {
    for (const DType to : types) {
      constexpr std::int64_t kCount = 61;
      Bytes x(static_cast<std::size_t>(kCount) * size_of(from)), y(static_cast<std::size_t>(kCount) * size_of(to));
      for (std::byte& b : x)
        b = static_cast<std::byte>(from == DType::kBool ? random.integer(0, 1) : random.integer(0, 255));
      if (from == DType::kF32) {
        Floats values = random.values(kCount, true);
        values[0] = 3e9F;
        values[1] = -3e9F;
        values[2] = 255.9F;
        values[3] = 9.3e18F;
        values[4] = -0.7F;
        x = bytes_of(values);
      }
      reference::cast({from, Shape{1, {kCount}}, x.data()}, {to, Shape{1, {kCount}}, y.data()});
      const CastParams p{static_cast<std::int32_t>(from), static_cast<std::int32_t>(to), kCount};
      for (const Target target : targets()) {
        for (const int parts : {1, 2, 3}) {
          EXPECT_EQ(run(target, make_call(KernelId::kCast, p), {x}, parts), y)
              << name_of(from) << " to " << name_of(to);
        }
      }
    }
  }
}

}  // namespace
}  // namespace takt::kernels::cpu
