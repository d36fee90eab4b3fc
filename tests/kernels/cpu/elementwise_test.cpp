#include "kernels/reference/elementwise.h"

#include <gtest/gtest.h>

#include "kernels/reference/activation.h"
#include "kernels/reference/elementary_f32.h"
#include "tests/kernels/cpu/harness.h"

namespace takt::kernels::cpu {
namespace {

TEST(Unary, EveryOperationInBothLayouts) {
  Random random(1);
  for (int i = 0; i < 9 + 5; ++i) {
    for (const Shape4 s : {Shape4{1, 1, 1, 1}, Shape4{2, 19, 5, 7}, Shape4{1, 24, 50, 31}}) {
      UnaryParams p;
      p.n = static_cast<std::int32_t>(s.n);
      p.c = static_cast<std::int32_t>(s.c);
      p.pixels = s.h * s.w;
      p.op = i < 9 ? Unary::kActivation : static_cast<Unary>(i - 8);
      p.activation = i < 9 ? static_cast<Activation>(i) : Activation::kNone;
      p.alpha = 0.2F;
      p.beta = 0.7F;
      Floats x = random.values(s.elements(), true), y(x.size());
      for (std::size_t k = 0; k < 40 && k < x.size(); ++k) x[k] = -120.0F + 5.3F * static_cast<float>(k);
      if (i < 9) {
        for (std::size_t k = 0; k < x.size(); ++k) {
          y[k] = reference::activate_f32(static_cast<reference::Activation>(i), x[k], p.alpha, p.beta);
        }
      } else if (i == 13) {
        for (std::size_t k = 0; k < x.size(); ++k) y[k] = erf_f32(x[k]);
      } else {
        constexpr reference::Unary kOps[] = {reference::Unary::kExp, reference::Unary::kSqrt, reference::Unary::kAbs,
                                             reference::Unary::kNeg};
        reference::unary(kOps[i - 9], tensor_of(x, s), tensor_of(y, s));
      }
      for (const Target target : targets()) {
        const std::string what = "unary " + std::to_string(i);
        p.blocked = 0;
        expect_run(target, make_call(KernelId::kUnary, p), {bytes_of(x)}, y, what);
        expect_same(floats_of(run(target, make_call(KernelId::kUnary, p), {bytes_of(x)}, 2, {}, 0)), y, what);
        p.blocked = 1;
        expect_run(target, make_call(KernelId::kUnary, p), {bytes_of(to_blocked(x, s, target, kNaN))},
                   to_blocked(y, s, target, 0), what + " blocked");
      }
      if (HasFailure()) return;
    }
  }
}

// What lower.cpp does with a broadcast of linear tensors: the operands in the order that make_binary says.
void expect_binary(Binary op, const Shape& a_shape, const Shape& b_shape, const Shape& y_shape, Random& random) {
  Floats a = random.values(a_shape.elements(), true), b = random.values(b_shape.elements(), true);
  Floats y(static_cast<std::size_t>(y_shape.elements()));
  ASSERT_TRUE(reference::binary(static_cast<reference::Binary>(op), tensor_of(a, a_shape), tensor_of(b, b_shape),
                                tensor_of(y, y_shape)));
  bool swapped = false;
  const Call call = make_binary(op, a_shape, b_shape, y_shape, &swapped);
  const std::vector<Bytes> inputs = {bytes_of(swapped ? b : a), bytes_of(swapped ? a : b)};
  for (const Target target : targets()) {
    expect_run(target, call, inputs, y, "binary " + std::to_string(static_cast<int>(op)));
  }
}

TEST(Binary, LinearBroadcasts) {
  Random random(2);
  const struct {
    Shape a, b, y;
  } kCases[] = {
      {{4, {1, 3, 4, 5}}, {4, {1, 3, 4, 5}}, {4, {1, 3, 4, 5}}},  // same
      {{4, {1, 3, 40, 53}}, {0, {}}, {4, {1, 3, 40, 53}}},        // scalar behind
      {{1, {1}}, {3, {3, 4, 5}}, {3, {3, 4, 5}}},                 // scalar in front: swapped
      {{4, {2, 3, 4, 5}}, {4, {1, 3, 1, 1}}, {4, {2, 3, 4, 5}}},  // channels
      {{3, {3, 1, 1}}, {4, {2, 3, 4, 5}}, {4, {2, 3, 4, 5}}},     // channels in front
      {{2, {7, 33}}, {1, {33}}, {2, {7, 33}}},                    // bias of a row
      {{2, {7, 1}}, {2, {1, 33}}, {2, {7, 33}}},                  // outer product
      {{3, {2, 1, 5}}, {3, {1, 4, 5}}, {3, {2, 4, 5}}},
      {{3, {2, 4, 1}}, {3, {1, 4, 5}}, {3, {2, 4, 5}}},
      {{0, {}}, {0, {}}, {0, {}}},
  };
  for (int op = 0; op <= 5; ++op) {
    for (const auto& c : kCases) expect_binary(static_cast<Binary>(op), c.a, c.b, c.y, random);
    if (HasFailure()) return;
  }
}

TEST(Binary, Blocked) {
  Random random(3);
  for (int op = 0; op <= 5; ++op) {
    for (int second = 0; second <= 2; ++second) {
      for (int swapped = 0; swapped <= 1; ++swapped) {
        const Shape4 s{random.integer(1, 2), random.integer(1, 40), random.integer(1, 30), random.integer(1, 30)};
        BinaryParams p;
        p.op = static_cast<Binary>(op);
        p.second = static_cast<Operand2>(second);
        p.swapped = swapped;
        p.blocked = 1;
        p.n = static_cast<std::int32_t>(s.n);
        p.c = static_cast<std::int32_t>(s.c);
        p.pixels = s.h * s.w;
        const Shape4 of_b = second == 0 ? s : second == 1 ? Shape4{1, s.c, 1, 1} : Shape4{};
        Floats a = random.values(s.elements(), true), b = random.values(of_b.elements(), true);
        Floats y(a.size());
        const Tensor ta = tensor_of(a, s), tb = tensor_of(b, of_b);
        ASSERT_TRUE(reference::binary(static_cast<reference::Binary>(op), swapped == 1 ? tb : ta,
                                      swapped == 1 ? ta : tb, tensor_of(y, s)));
        for (const Target target : targets()) {
          const Bytes packed_b = bytes_of(second == 2 ? b : to_blocked(b, of_b, target, kNaN));
          expect_run(target, make_call(KernelId::kBinary, p), {bytes_of(to_blocked(a, s, target, kNaN)), packed_b},
                     to_blocked(y, s, target, 0), "blocked binary " + std::to_string(op));
        }
        if (HasFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace takt::kernels::cpu
