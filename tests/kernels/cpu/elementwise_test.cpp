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
      x = rounded(std::move(x));
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
        expect_run(target, make_call(KernelId::kUnary, p), {stored(x)}, y, what);
        expect_result(run(target, make_call(KernelId::kUnary, p), {stored(x)}, 2, {}, 0), y, what);
        p.blocked = 1;
        expect_run(target, make_call(KernelId::kUnary, p), {stored(to_blocked(x, s, target, kNaN))},
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
  const auto operand = [&](const Floats& values, bool scalar) {
    return has_f16_form(call.id) && !scalar ? stored(values) : bytes_of(values);
  };
  const Floats &first = swapped ? b : a, &second = swapped ? a : b;
  const std::vector<Bytes> inputs = {operand(first, false), operand(second, second.size() == 1 && first.size() != 1)};
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
          const Bytes packed_b = second == 2 ? bytes_of(b) : stored(to_blocked(b, of_b, target, kNaN));
          expect_run(target, make_call(KernelId::kBinary, p), {stored(to_blocked(a, s, target, kNaN)), packed_b},
                     to_blocked(y, s, target, 0), "blocked binary " + std::to_string(op));
        }
        if (HasFailure()) return;
      }
    }
  }
}

#if defined(TAKT_TEST_F16)
TEST(Cast, BetweenF32AndF16) {
  Random random(4);
  for (const std::int64_t count : {1, 31, 1000}) {
    Floats x;  // not rounded yet
    for (std::int64_t i = 0; i < count; ++i) x.push_back(random.value(true));
    const auto params = [&](DType from, DType to) {
      return CastParams{static_cast<std::int32_t>(from), static_cast<std::int32_t>(to), count};
    };
    for (const Target target : targets()) {
      expect_run(target, make_call(KernelId::kCast, params(DType::kF32, DType::kF16)), {bytes_of(x)}, x, "to f16");
      expect_run(target, make_call(KernelId::kCast, params(DType::kF16, DType::kF32)), {stored(x)}, rounded(x),
                 "from f16");
    }
  }
}
#endif

}  // namespace
}  // namespace takt::kernels::cpu
