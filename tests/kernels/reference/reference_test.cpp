// The oracle itself against values worked out by hand and against double precision.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/reference/activation.h"
#include "kernels/reference/conv.h"
#include "kernels/reference/elementary_f32.h"
#include "kernels/reference/elementwise.h"
#include "kernels/reference/gemm.h"
#include "kernels/reference/generic.h"
#include "kernels/reference/movement.h"
#include "kernels/reference/pool.h"
#include "kernels/reference/preprocess.h"
#include "kernels/reference/reduce.h"
#include "kernels/reference/resize.h"
#include "kernels/reference/softmax.h"

namespace takt::kernels::reference {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Array {
  Shape shape;
  std::vector<float> values;
  Array(std::initializer_list<std::int64_t> dims, std::vector<float> v) : values(std::move(v)) {
    for (const std::int64_t d : dims) shape.dims[shape.rank++] = d;
    values.resize(static_cast<std::size_t>(shape.elements()));
  }
  Tensor tensor() { return {DType::kF32, shape, values.data()}; }
};

// Distance in units in the last place of the exact value.
double ulps(float found, double exact) {
  const auto nearest = static_cast<float>(exact);
  const double unit =
      static_cast<double>(std::nextafter(std::fabs(nearest), kInfinity)) - std::fabs(static_cast<double>(nearest));
  return std::fabs(static_cast<double>(found) - exact) / unit;
}

TEST(ElementaryF32, ExpWithinTwoUlpWhereResultsAreNormal) {
  double worst = 0;
  for (float x = -87.0F; x < 88.7F; x += 0.00137F)
    worst = std::max(worst, ulps(exp_f32(x), std::exp(static_cast<double>(x))));
  EXPECT_LT(worst, 2.0);
  RecordProperty("worst_ulp", std::to_string(worst));
  EXPECT_EQ(exp_f32(0.0F), 1.0F);
  EXPECT_EQ(exp_f32(89.0F), kInfinity);
  EXPECT_EQ(exp_f32(kInfinity), kInfinity);
  EXPECT_EQ(exp_f32(-kInfinity), 0.0F);
  EXPECT_EQ(exp_f32(-200.0F), 0.0F);
  EXPECT_TRUE(std::isnan(exp_f32(kNan)));
  EXPECT_TRUE(std::isnan(exp_f32(-kNan)));
}

TEST(ElementaryF32, SigmoidAndTanh) {
  double sigmoid = 0;
  double tanh = 0;
  for (float x = -30.0F; x < 30.0F; x += 0.00071F) {
    const auto exact = static_cast<double>(x);
    sigmoid = std::max(sigmoid, ulps(sigmoid_f32(x), 1 / (1 + std::exp(-exact))));
    if (x != 0.0F) tanh = std::max(tanh, ulps(tanh_f32(x), std::tanh(exact)));
    EXPECT_EQ(tanh_f32(-x), -tanh_f32(x));
  }
  EXPECT_LT(sigmoid, 4.0);
  EXPECT_LT(tanh, 4.0);
  EXPECT_EQ(tanh_f32(0.0F), 0.0F);
  EXPECT_EQ(tanh_f32(kInfinity), 1.0F);
  EXPECT_EQ(tanh_f32(-kInfinity), -1.0F);
  EXPECT_EQ(sigmoid_f32(-kInfinity), 0.0F);
  EXPECT_EQ(sigmoid_f32(kInfinity), 1.0F);
  EXPECT_TRUE(std::isnan(sigmoid_f32(kNan)));
  EXPECT_TRUE(std::isnan(tanh_f32(kNan)));
}

TEST(Activations, KeepNanAndTheSignOfZero) {
  EXPECT_TRUE(std::isnan(activate_f32(Activation::kRelu, kNan, 0, 0)));
  EXPECT_TRUE(std::signbit(activate_f32(Activation::kRelu, -0.0F, 0, 0)));
  EXPECT_EQ(activate_f32(Activation::kRelu, -3.0F, 0, 0), 0.0F);
  EXPECT_EQ(activate_f32(Activation::kClip, 9.0F, 0, 6), 6.0F);
  EXPECT_EQ(activate_f32(Activation::kLeaky, -2.0F, 0.5F, 0), -1.0F);
  EXPECT_EQ(activate_f32(Activation::kHardSwish, 3.0F, 0, 0), 3.0F);
  EXPECT_EQ(activate_f32(Activation::kHardSwish, -3.0F, 0, 0), 0.0F);
  EXPECT_EQ(activate_f32(Activation::kSilu, 0.0F, 0, 0), 0.0F);
}

TEST(Conv, PaddingStrideGroupsBiasResidualActivation) {
  // Two groups of one channel; 3x3 ones; stride 2; padding 1: sums of the neighbourhood.
  Array x({1, 2, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, -1, -2, -3, -4, -5, -6, -7, -8, -9});
  Array w({2, 1, 3, 3}, std::vector<float>(18, 1));
  Array bias({2}, {0.5F, 0});
  Array residual({1, 2, 2, 2}, {0, 0, 0, 1000, 0, 0, 0, 1000});
  Array y({1, 2, 2, 2}, {});
  Window window;
  window.kernel[0] = window.kernel[1] = 3;
  window.stride[0] = window.stride[1] = 2;
  window.pad[0] = window.pad[1] = 1;
  conv2d(x.tensor(), w.tensor(), bias.tensor(), residual.tensor(), window, 2, {Activation::kRelu, 0, 0}, y.tensor());
  EXPECT_THAT(y.values, ElementsAre(12.5F, 16.5F, 24.5F, 1028.5F, 0, 0, 0, 972));
}

TEST(Conv, IsOneChainOfFusedMultiplyAddsFromTheBias) {
  // 1 + 2^-12 squared has more bits than f32: a product rounded on its own would differ from the fused chain.
  const float a = 1 + 0x1p-12F;
  Array x({1, 2, 1, 1}, {a, 3});
  Array w({1, 2, 1, 1}, {a, 0x1p-20F});
  Array bias({1}, {-1});
  Array y({1, 1, 1, 1}, {});
  conv2d(x.tensor(), w.tensor(), bias.tensor(), Tensor{}, Window{}, 1, {}, y.tensor());
  EXPECT_EQ(y.values[0], std::fma(3.0F, 0x1p-20F, std::fma(a, a, -1.0F)));
  EXPECT_NE(y.values[0], 3 * 0x1p-20F + (a * a + -1.0F));
}

TEST(Conv, SkippedPaddingKeepsNegativeZero) {
  Array x({1, 1, 1, 1}, {0});
  Array w({1, 1, 3, 3}, std::vector<float>(9, -1));
  Array bias({1}, {-0.0F});
  Array y({1, 1, 1, 1}, {});
  Window window;
  window.kernel[0] = window.kernel[1] = 3;
  window.pad[0] = window.pad[1] = 1;
  conv2d(x.tensor(), w.tensor(), bias.tensor(), Tensor{}, window, 1, {}, y.tensor());
  EXPECT_TRUE(std::signbit(y.values[0]));  // fma(0, -1, -0) = -0; the eight taps outside would not change it to +0
}

TEST(ConvTranspose, ScattersEveryInput) {
  Array x({1, 1, 2, 2}, {1, 2, 3, 4});
  Array w({1, 1, 2, 2}, {1, 10, 100, 1000});
  Array y({1, 1, 4, 4}, {});
  Window window;
  window.kernel[0] = window.kernel[1] = 2;
  window.stride[0] = window.stride[1] = 2;
  conv_transpose2d(x.tensor(), w.tensor(), Tensor{}, window, 1, {}, y.tensor());
  EXPECT_THAT(y.values, ElementsAre(1, 10, 2, 20, 100, 1000, 200, 2000, 3, 30, 4, 40, 300, 3000, 400, 4000));
}

TEST(Pool, MaximaAndAveragesWithAndWithoutPadding) {
  Array x({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  Array y({1, 1, 2, 2}, {});
  Window window;
  window.kernel[0] = window.kernel[1] = 2;
  window.stride[0] = window.stride[1] = 2;
  window.pad[0] = window.pad[1] = 1;
  max_pool2d(x.tensor(), window, y.tensor());
  EXPECT_THAT(y.values, ElementsAre(1, 3, 7, 9));
  const std::int64_t none[2] = {0, 0};
  average_pool2d(x.tensor(), window, none, false, y.tensor());
  EXPECT_THAT(y.values, ElementsAre(1, 2.5F, 5.5F, 7));
  average_pool2d(x.tensor(), window, none, true, y.tensor());
  EXPECT_THAT(y.values, ElementsAre(0.25F, 1.25F, 2.75F, 7));
}

TEST(Pool, WindowsBeyondThePaddingAreNotCounted) {
  // Rounded up: the last window has one column inside, one in the padding, one beyond it.
  Array x({1, 1, 1, 4}, {1, 2, 3, 4});
  Array y({1, 1, 1, 2}, {});
  Window window;
  window.kernel[1] = 3;
  window.stride[1] = 3;
  const std::int64_t one[2] = {0, 1};
  average_pool2d(x.tensor(), window, one, true, y.tensor());
  EXPECT_THAT(y.values, ElementsAre(2, 2));
}

TEST(Softmax, AlongAnyAxisWithoutOverflow) {
  Array x({2, 2}, {1000, 1000, 0, std::log(3.0F)});
  Array y({2, 2}, {});
  softmax(x.tensor(), 1, y.tensor());
  EXPECT_THAT(y.values, ElementsAre(0.5F, 0.5F, FloatEq(0.25F), FloatEq(0.75F)));
  softmax(x.tensor(), 0, y.tensor());
  EXPECT_THAT(y.values, ElementsAre(1, 1, 0, 0));
}

TEST(Gemm, TransposesScalesAndBroadcasts) {
  Array a({2, 3}, {1, 2, 3, 4, 5, 6});
  Array b({2, 3}, {1, 0, 1, 2, 1, 0});
  Array c({2}, {10, 20});
  Array y({2, 2}, {});
  gemm(a.tensor(), b.tensor(), c.tensor(), {false, true, 2, 0.5F}, y.tensor());
  EXPECT_THAT(y.values, ElementsAre(13, 18, 25, 36));
  Array stack({2, 1, 2}, {1, 2, 3, 4});
  Array matrix({2, 1}, {1, 10});
  Array out({2, 1, 1}, {});
  gemm(stack.tensor(), matrix.tensor(), Tensor{}, {}, out.tensor());
  EXPECT_THAT(out.values, ElementsAre(21, 43));
}

TEST(ReduceMean, OverAnyAxes) {
  Array x({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  Array y({2}, {});
  const bool reduced[kMaxRank] = {true, false, true};
  reduce_mean(x.tensor(), reduced, y.tensor());
  EXPECT_THAT(y.values, ElementsAre(3.5F, 5.5F));
}

TEST(Movement, ViewsReadAndWrite) {
  Array x({2, 3}, {1, 2, 3, 4, 5, 6});
  Array y({3, 2}, {});
  View transposed;
  transposed.strides[0] = 1;
  transposed.strides[1] = 3;
  read_view(x.tensor(), transposed, y.tensor());
  EXPECT_THAT(y.values, ElementsAre(1, 4, 2, 5, 3, 6));
  write_view(y.tensor(), transposed, x.tensor());
  EXPECT_THAT(x.values, ElementsAre(1, 2, 3, 4, 5, 6));
  Array picked({2, 2}, {});
  const std::int64_t columns[] = {2, 0};
  gather(x.tensor(), columns, 1, picked.tensor());
  EXPECT_THAT(picked.values, ElementsAre(3, 1, 6, 4));
}

TEST(Resize, CoordinateModes) {
  const auto table = [](Coordinates mode, std::int64_t in, std::int64_t out, Nearest nearest) {
    const double scale = static_cast<double>(out) / static_cast<double>(in);
    return nearest_table({in, out, scale, static_cast<double>(out), mode}, nearest);
  };
  EXPECT_THAT(table(Coordinates::kAsymmetric, 2, 4, Nearest::kFloor), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(table(Coordinates::kHalfPixel, 2, 4, Nearest::kRoundPreferFloor), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(table(Coordinates::kAlignCorners, 3, 5, Nearest::kRoundPreferCeil), ElementsAre(0, 1, 1, 2, 2));
  EXPECT_THAT(table(Coordinates::kAlignCorners, 3, 5, Nearest::kRoundPreferFloor), ElementsAre(0, 0, 1, 1, 2));
  const LinearTable linear = linear_table({2, 4, 2, 4, Coordinates::kHalfPixel});
  EXPECT_THAT(linear.low, ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(linear.weight, ElementsAre(0, 0.25F, 0.75F, 0));
}

TEST(Elementwise, IntegersWrapAndRefuseDivisionByZero) {
  std::int64_t a = std::numeric_limits<std::int64_t>::min();
  std::int64_t b = -1;
  std::int64_t y = 0;
  const auto tensor = [](std::int64_t* v) { return Tensor{DType::kI64, Shape{}, v}; };
  EXPECT_TRUE(binary(Binary::kDiv, tensor(&a), tensor(&b), tensor(&y)));
  EXPECT_EQ(y, a);
  EXPECT_TRUE(binary(Binary::kAdd, tensor(&a), tensor(&b), tensor(&y)));
  EXPECT_EQ(y, std::numeric_limits<std::int64_t>::max());
  b = 0;
  EXPECT_FALSE(binary(Binary::kDiv, tensor(&a), tensor(&b), tensor(&y)));
}

TEST(Elementwise, PowNearTheExactValue) {
  double worst = 0;
  for (const float base : {0.001F, 0.3F, 1.7F, 12.5F, 900.0F}) {
    for (const float exponent : {-3.3F, -1.0F, 0.1F, 0.5F, 2.0F, 2.5F, 7.0F}) {
      Array a({1}, {base});
      Array b({1}, {exponent});
      Array y({1}, {});
      ASSERT_TRUE(binary(Binary::kPow, a.tensor(), b.tensor(), y.tensor()));
      worst = std::max(worst, ulps(y.values[0], std::pow(static_cast<double>(base), static_cast<double>(exponent))));
    }
  }
  EXPECT_LT(worst, 1.0);
  const auto pow = [](float base, float exponent) {
    Array a({1}, {base});
    Array b({1}, {exponent});
    Array y({1}, {});
    EXPECT_TRUE(binary(Binary::kPow, a.tensor(), b.tensor(), y.tensor()));
    return y.values[0];
  };
  EXPECT_EQ(pow(-2, 3), -8.0F);
  EXPECT_EQ(pow(-2, 2), 4.0F);
  EXPECT_TRUE(std::isnan(pow(-2, 0.3F)));
  EXPECT_EQ(pow(0, 3), 0.0F);
  EXPECT_EQ(pow(0, -3), kInfinity);
  EXPECT_EQ(pow(5, 0), 1.0F);
}

TEST(Elementwise, CastClampsAndDropsNan) {
  Array x({4}, {300.7F, -5.5F, kNan, 1e30F});
  std::uint8_t bytes[4];
  cast(x.tensor(), {DType::kU8, x.shape, bytes});
  EXPECT_THAT(bytes, ElementsAre(255, 0, 0, 255));
  std::int64_t numbers[4];
  cast(x.tensor(), {DType::kI64, x.shape, numbers});
  EXPECT_THAT(numbers, ElementsAre(300, -5, 0, std::numeric_limits<std::int64_t>::max()));
}

TEST(PreprocessReference, ColourOrderScaleAndLetterbox) {
  // A 2x1 picture into 2x2 with a letterbox: one row of picture, one of padding.
  std::uint8_t pixels[] = {10, 20, 30, 40, 50, 60};
  kernels::Preprocess p;
  p.source = PixelSource::kRgb8;
  p.source_width = 2;
  p.source_height = 1;
  p.pitch = 6;
  p.fit = Fit::kLetterbox;
  p.colour = ColourOrder::kBgr;
  p.pad = 100;
  p.width = p.height = 2;
  for (float& multiply : p.multiply) multiply = 2;
  p.add[0] = 1;
  Array y({1, 3, 2, 2}, {});
  preprocess({DType::kU8, Shape{1, {6}}, pixels}, p, y.tensor());
  EXPECT_THAT(y.values, ElementsAre(61, 121, 201, 201, 40, 100, 200, 200, 20, 80, 200, 200));
}

// Results of the numbers where formulas break, by IEEE 754-2019 (9.2.1), which numpy and ONNX follow.
template <class T>
struct Special {
  static constexpr T kNone = std::numeric_limits<T>::quiet_NaN();
  static constexpr T kInf = std::numeric_limits<T>::infinity();
  static constexpr T kTiny = std::numeric_limits<T>::denorm_min();
  static constexpr T kQuarter = static_cast<T>(1.5707963267948966);

  static T run(Generic op, std::int64_t which, std::vector<T> operands) {
    GenericParams p;
    p.op = op;
    std::byte* memory[kGenericOperands] = {};
    for (std::size_t i = 0; i < operands.size(); ++i) {
      p.operands[i] = generic_type(std::is_same_v<T, float> ? DType::kF32 : DType::kF64, {});
      memory[i] = reinterpret_cast<std::byte*>(&operands[i]);
    }
    p.integers[0] = which;
    p.numbers[0] = 0.5F;  // slopes
    EXPECT_EQ(generic_infer(&p), nullptr);
    T result = 77;
    memory[kGenericInputs] = reinterpret_cast<std::byte*>(&result);
    generic_run(p, memory);
    return result;
  }
  static bool same(T a, T b) {
    return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
  }
};
template <class T>
class SpecialValues : public ::testing::Test {};
using FloatTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(SpecialValues, FloatTypes);

TYPED_TEST(SpecialValues, OfFunctions) {
  using T = TypeParam;
  constexpr T kNone = Special<TypeParam>::kNone, kInf = Special<TypeParam>::kInf, kTiny = Special<TypeParam>::kTiny;
  constexpr T kQuarter = Special<TypeParam>::kQuarter;
  constexpr std::size_t kPoints = 7;
  constexpr T kAt[kPoints] = {T{0}, -T{0}, kTiny, -kTiny, kInf, -kInf, kNone};
  const struct {
    const char* name;
    Function f;
    T expected[kPoints];
  } rows[] = {
      {"Exp", Function::kExp, {1, 1, 1, 1, kInf, 0, kNone}},
      {"Log", Function::kLog, {-kInf, -kInf, std::log(kTiny), kNone, kInf, kNone, kNone}},
      {"Sqrt", Function::kSqrt, {0, -T{0}, std::sqrt(kTiny), kNone, kInf, kNone, kNone}},
      {"Sin", Function::kSin, {0, -T{0}, kTiny, -kTiny, kNone, kNone, kNone}},
      {"Cos", Function::kCos, {1, 1, 1, 1, kNone, kNone, kNone}},
      {"Tan", Function::kTan, {0, -T{0}, kTiny, -kTiny, kNone, kNone, kNone}},
      {"Asin", Function::kAsin, {0, -T{0}, kTiny, -kTiny, kNone, kNone, kNone}},
      {"Acos", Function::kAcos, {kQuarter, kQuarter, kQuarter, kQuarter, kNone, kNone, kNone}},
      {"Atan", Function::kAtan, {0, -T{0}, kTiny, -kTiny, kQuarter, -kQuarter, kNone}},
      {"Sinh", Function::kSinh, {0, -T{0}, kTiny, -kTiny, kInf, -kInf, kNone}},
      {"Cosh", Function::kCosh, {1, 1, 1, 1, kInf, kInf, kNone}},
      {"Tanh", Function::kTanh, {0, -T{0}, kTiny, -kTiny, 1, -1, kNone}},
      {"Asinh", Function::kAsinh, {0, -T{0}, kTiny, -kTiny, kInf, -kInf, kNone}},
      {"Acosh", Function::kAcosh, {kNone, kNone, kNone, kNone, kInf, kNone, kNone}},
      {"Atanh", Function::kAtanh, {0, -T{0}, kTiny, -kTiny, kNone, kNone, kNone}},
      {"Erf", Function::kErf, {0, -T{0}, kTiny, -kTiny, 1, -1, kNone}},
      {"Sigmoid", Function::kSigmoid, {0.5, 0.5, 0.5, 0.5, 1, 0, kNone}},
      {"Softplus",
       Function::kSoftplus,
       {std::log(T{2}), std::log(T{2}), std::log(T{2}), std::log(T{2}), kInf, 0, kNone}},
      {"Elu", Function::kElu, {0, -T{0}, kTiny, 0, kInf, -0.5, kNone}},
      {"Leaky", Function::kLeaky, {0, -T{0}, kTiny, -T{0}, kInf, -kInf, kNone}},
      {"Relu", Function::kRelu, {0, -T{0}, kTiny, 0, kInf, 0, kNone}},
      {"Round", Function::kRound, {0, -T{0}, 0, -T{0}, kInf, -kInf, kNone}},
      {"Floor", Function::kFloor, {0, -T{0}, 0, -1, kInf, -kInf, kNone}},
      {"Ceil", Function::kCeil, {0, -T{0}, 1, -T{0}, kInf, -kInf, kNone}},
      {"Abs", Function::kAbs, {0, 0, kTiny, kTiny, kInf, kInf, kNone}},
      {"Neg", Function::kNeg, {-T{0}, 0, -kTiny, kTiny, -kInf, kInf, kNone}},
      {"Sign", Function::kSign, {0, 0, 1, -1, 1, -1, kNone}},
  };
  const auto run = [](Function f, T x) {
    return Special<TypeParam>::run(Generic::kFunction, static_cast<std::int64_t>(f), {x});
  };
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < kPoints; ++i) {
      const T found = run(row.f, kAt[i]);
      EXPECT_TRUE(
          Special<TypeParam>::same(found, row.expected[i]) ||
          (std::isnormal(found) && std::fabs(found / row.expected[i] - 1) < T{4} * std::numeric_limits<T>::epsilon()))
          << row.name << "(" << kAt[i] << ") = " << found << ", not " << row.expected[i];
    }
  }
  EXPECT_EQ(run(Function::kAtanh, 1), kInf);
  EXPECT_EQ(run(Function::kAtanh, -1), -kInf);
  EXPECT_TRUE(std::isnan(run(Function::kAtanh, 2)));
  EXPECT_EQ(run(Function::kRound, T{2.5}), 2);
  EXPECT_TRUE(Special<TypeParam>::same(run(Function::kRound, T{-0.5}), -T{0}));
  // Not infinite before the result is, and no rubbish of a period that was lost.
  constexpr T kMost = std::numeric_limits<T>::max();
  const T last = std::log(kMost);  // of exp
  for (const T x : {last * T{0.999F}, last + T{0.5}}) {
    EXPECT_NEAR(run(Function::kSinh, x) / std::sinh(x), 1, 1e-4);
    EXPECT_NEAR(run(Function::kSinh, -x) / std::sinh(x), -1, 1e-4);
    EXPECT_NEAR(run(Function::kCosh, x) / std::cosh(x), 1, 1e-4);
  }
  EXPECT_NEAR(run(Function::kExp, last * T{0.9999F}) / std::exp(last * T{0.9999F}), 1, 1e-4);
  EXPECT_NEAR(run(Function::kAsinh, -kMost), std::asinh(-kMost), 1e-4);
  EXPECT_NEAR(run(Function::kAcosh, kMost), std::acosh(kMost), 1e-4);
  for (const T x : {T{1e12F}, T{1e20F}, T{-3e38F}, kMost}) {
    EXPECT_NEAR(run(Function::kSin, x), std::sin(x), 1e-6);
    EXPECT_NEAR(run(Function::kCos, x), std::cos(x), 1e-6);
    EXPECT_NEAR(run(Function::kTan, x) / std::tan(x), 1, 1e-5);
  }
}

TYPED_TEST(SpecialValues, OfPairs) {
  using T = TypeParam;
  constexpr T kNone = Special<TypeParam>::kNone, kInf = Special<TypeParam>::kInf, kTiny = Special<TypeParam>::kTiny;
  const struct {
    const char* name;
    Binary op;
    T a, b, expected;
  } rows[] = {
      {"Max", Binary::kMax, kNone, 1, kNone},     {"Max", Binary::kMax, 1, kNone, kNone},
      {"Max", Binary::kMax, kNone, kInf, kNone},  {"Max", Binary::kMax, kInf, kNone, kNone},
      {"Max", Binary::kMax, kNone, kNone, kNone}, {"Max", Binary::kMax, -kInf, kTiny, kTiny},
      {"Min", Binary::kMin, kNone, 1, kNone},     {"Min", Binary::kMin, 1, kNone, kNone},
      {"Min", Binary::kMin, kNone, -kInf, kNone}, {"Min", Binary::kMin, -kInf, kNone, kNone},
      {"Min", Binary::kMin, kNone, kNone, kNone}, {"Min", Binary::kMin, -kInf, -kTiny, -kInf},
      {"Pow", Binary::kPow, -kInf, T{0.5}, kInf}, {"Pow", Binary::kPow, -kInf, T{1.5}, kInf},
      {"Pow", Binary::kPow, -kInf, T{-0.5}, 0},   {"Pow", Binary::kPow, -kInf, kTiny, kInf},
      {"Pow", Binary::kPow, -kInf, 3, -kInf},     {"Pow", Binary::kPow, -kInf, -3, -T{0}},
      {"Pow", Binary::kPow, -kInf, 4, kInf},      {"Pow", Binary::kPow, -kInf, -4, 0},
      {"Pow", Binary::kPow, kInf, T{0.5}, kInf},  {"Pow", Binary::kPow, kInf, T{-0.5}, 0},
      {"Pow", Binary::kPow, -T{0}, T{0.5}, 0},    {"Pow", Binary::kPow, -T{0}, T{1.5}, 0},
      {"Pow", Binary::kPow, -T{0}, 3, -T{0}},     {"Pow", Binary::kPow, -T{0}, -3, -kInf},
      {"Pow", Binary::kPow, -T{0}, -2, kInf},     {"Pow", Binary::kPow, 0, T{-1.5}, kInf},
      {"Pow", Binary::kPow, -2, T{0.3F}, kNone},  {"Pow", Binary::kPow, -2, T{0.5}, kNone},
      {"Pow", Binary::kPow, -1, kInf, 1},         {"Pow", Binary::kPow, -1, -kInf, 1},
      {"Pow", Binary::kPow, T{0.5}, kInf, 0},     {"Pow", Binary::kPow, T{0.5}, -kInf, kInf},
      {"Pow", Binary::kPow, -2, kInf, kInf},      {"Pow", Binary::kPow, 2, -kInf, 0},
      {"Pow", Binary::kPow, 1, kNone, 1},         {"Pow", Binary::kPow, kNone, 0, 1},
      {"Pow", Binary::kPow, kNone, -T{0}, 1},     {"Pow", Binary::kPow, kNone, T{0.5}, kNone},
      {"Pow", Binary::kPow, kNone, 2, kNone},     {"Pow", Binary::kPow, -1, kNone, kNone},
      {"Fmod", Binary::kFmod, kInf, 2, kNone},    {"Fmod", Binary::kFmod, 1, 0, kNone},
      {"Fmod", Binary::kFmod, -5, kInf, -5},      {"Fmod", Binary::kFmod, -T{0}, 2, -T{0}},
      {"Fmod", Binary::kFmod, -4, 2, -T{0}},      {"Fmod", Binary::kFmod, kNone, 2, kNone},
      {"Fmod", Binary::kFmod, 3, kTiny, 0},       {"Fmod", Binary::kFmod, 1, kNone, kNone},
      {"Prelu", Binary::kPrelu, kNone, 2, kNone}, {"Prelu", Binary::kPrelu, -T{0}, 2, -T{0}},
      {"Div", Binary::kDiv, 1, -T{0}, -kInf},     {"Div", Binary::kDiv, 0, 0, kNone},
  };
  for (const auto& row : rows) {
    const T found = Special<TypeParam>::run(Generic::kBinary, static_cast<std::int64_t>(row.op), {row.a, row.b});
    EXPECT_TRUE(Special<TypeParam>::same(found, row.expected))
        << row.name << "(" << row.a << ", " << row.b << ") = " << found << ", not " << row.expected;
  }
}

TEST(SpecialValuesF32, PassClipAndRelu) {
  EXPECT_TRUE(std::isnan(activate_f32(Activation::kRelu, kNan, 0, 0)));
  EXPECT_TRUE(std::isnan(activate_f32(Activation::kClip, kNan, -1, 1)));
  EXPECT_EQ(activate_f32(Activation::kClip, -kInfinity, -1, 1), -1.0F);
}

TEST(Generic, ExtremaOfNanAreNan) {
  for (const std::int64_t kind : {3, 4}) {  // maximum, minimum
    for (std::size_t place = 0; place < 3; ++place) {
      Array x({3}, {1, 2, 3});
      x.values[place] = kNan;
      GenericParams p;
      p.op = Generic::kReduce;
      p.operands[0] = generic_type(DType::kF32, x.shape);
      p.integers[0] = kind;
      p.integers[1] = 1;  // axis 0
      ASSERT_EQ(generic_infer(&p), nullptr);
      float result = 0;
      std::byte* memory[kGenericOperands] = {reinterpret_cast<std::byte*>(x.values.data())};
      memory[kGenericInputs] = reinterpret_cast<std::byte*>(&result);
      generic_run(p, memory);
      EXPECT_TRUE(std::isnan(result)) << kind << " " << place << ": " << result;
    }
  }
}

TEST(Generic, TopKGivesEitherResultAlone) {
  Array x({1, 5}, {3, 9, 3, 1, 9});
  GenericParams p;
  p.op = Generic::kTopK;
  p.operands[0] = generic_type(DType::kF32, x.shape);
  p.integers[0] = 1;
  p.integers[1] = 4;
  p.integers[2] = 1;
  ASSERT_EQ(generic_infer(&p), nullptr);
  float values[4] = {};
  std::int64_t indices[4] = {};
  std::byte* first[kGenericOperands] = {reinterpret_cast<std::byte*>(x.values.data())};
  std::byte* second[kGenericOperands] = {first[0]};
  first[kGenericInputs] = reinterpret_cast<std::byte*>(values);
  second[kGenericInputs + 1] = reinterpret_cast<std::byte*>(indices);
  generic_run(p, first);
  generic_run(p, second);
  EXPECT_THAT(values, ElementsAre(9, 9, 3, 3));
  EXPECT_THAT(indices, ElementsAre(1, 4, 0, 2));
}

// Parameters that the check accepts run inside their operands, whatever they and the data hold. Guards stand around.
TEST(Generic, CheckedParametersStayInsideTheirOperands) {
  constexpr std::size_t kBytes = 2048;
  constexpr std::size_t kGuard = 64;
  std::uint32_t state = 1;
  const auto pick = [&](std::uint32_t n) {
    state = state * 1664525U + 1013904223U;
    return (state >> 12) % n;
  };
  std::size_t accepted = 0;
  std::vector<std::vector<std::byte>> memory(kGenericOperands, std::vector<std::byte>(kBytes + 2 * kGuard));
  for (int round = 0; round < 300000; ++round) {
    GenericParams p;
    p.op = static_cast<Generic>(pick(33));
    const std::uint8_t dtype = static_cast<std::uint8_t>(pick(15));
    const std::uint32_t inputs = 1 + pick(3);
    for (std::uint32_t i = 0; i < inputs; ++i) {
      if (pick(8) == 0) continue;
      p.operands[i].dtype = pick(2) == 0 ? dtype : pick(2) == 0 ? 3 : static_cast<std::uint8_t>(pick(15));
      p.operands[i].rank = static_cast<std::uint8_t>(pick(6));
      for (int d = 0; d < p.operands[i].rank; ++d) p.operands[i].dims[d] = 1 + pick(3);
    }
    for (std::int64_t& value : p.integers) value = pick(40) == 0 ? -1 - pick(100) : pick(24) >> pick(5);
    if (generic_infer(&p) != nullptr) continue;
    const std::vector<std::uint64_t> bytes(kGenericOperands, kBytes);
    if (generic_check(p, bytes) != nullptr) continue;
    ++accepted;
    std::byte* operands[kGenericOperands] = {};
    for (std::size_t i = 0; i < kGenericOperands; ++i) {
      std::fill(memory[i].begin(), memory[i].end(), std::byte{0x5a});
      if (p.operands[i].dtype != 0) operands[i] = memory[i].data() + kGuard;
      const bool truth = p.operands[i].dtype == static_cast<std::uint8_t>(DType::kBool);
      for (std::size_t b = 0; b < kBytes; ++b) {
        memory[i][kGuard + b] = static_cast<std::byte>(truth ? pick(2) : pick(4) == 0 ? pick(256) : 0);
      }
    }
    generic_run(p, operands);
    for (std::size_t i = 0; i < kGenericOperands; ++i) {
      for (std::size_t b = 0; b < kGuard; ++b) {
        ASSERT_EQ(memory[i][b], std::byte{0x5a}) << "operator " << static_cast<int>(p.op);
        ASSERT_EQ(memory[i][kGuard + kBytes + b], std::byte{0x5a}) << "operator " << static_cast<int>(p.op);
      }
    }
  }
  EXPECT_GT(accepted, 1000U);
}

// Inputs of a plan hold what the caller gives: every byte but zero is true, and a result is 0 or 1.
TEST(Elementwise, AnyByteButZeroIsTrue) {
  std::vector<std::uint8_t> truth = {0, 1, 2, 0x80, 0xFF}, other = {0xFF, 2, 1, 0, 4}, out(5), logic(5);
  const Shape shape{1, {5}};
  const Tensor t{DType::kBool, shape, truth.data()}, o{DType::kBool, shape, other.data()};
  const Tensor y{DType::kBool, shape, out.data()}, z{DType::kBool, shape, logic.data()};
  unary(Unary::kNot, t, y);
  EXPECT_THAT(out, ElementsAre(1, 0, 0, 0, 0));
  binary(Binary::kXor, t, o, z);
  EXPECT_THAT(logic, ElementsAre(1, 0, 0, 1, 0));
  binary(Binary::kEqual, t, o, z);
  EXPECT_THAT(logic, ElementsAre(0, 1, 1, 0, 1));
  where(t, t, o, y);
  EXPECT_THAT(out, ElementsAre(1, 1, 1, 1, 1));
  std::vector<std::int32_t> numbers(5);
  cast(t, {DType::kI32, shape, numbers.data()});
  EXPECT_THAT(numbers, ElementsAre(0, 1, 1, 1, 1));
}

TEST(Generic, DamagedParametersAreRefused) {
  GenericParams p;
  p.op = Generic::kGatherElements;
  p.operands[0] = generic_type(DType::kF32, Shape{2, {4, 4}});
  p.operands[1] = generic_type(DType::kI64, Shape{2, {2, 4}});
  ASSERT_EQ(generic_infer(&p), nullptr);
  std::vector<std::uint64_t> bytes(kGenericOperands);
  bytes[0] = bytes[1] = 64;
  bytes[kGenericInputs] = 32;
  EXPECT_EQ(generic_check(p, bytes), nullptr);
  for (const auto damage :
       {+[](GenericParams& d) { d.op = static_cast<Generic>(99); }, +[](GenericParams& d) { d.integers[0] = 7; },
        +[](GenericParams& d) { d.operands[0].rank = 200; },
        +[](GenericParams& d) { d.operands[0].dims[0] = std::int64_t{1} << 62; },
        +[](GenericParams& d) { d.operands[1].dtype = 1; }, +[](GenericParams& d) { d.operands[2] = d.operands[1]; },
        +[](GenericParams& d) { d.operands[kGenericInputs].dims[0] = 3; },
        +[](GenericParams& d) { d.operands[kGenericInputs] = {}; }}) {
    GenericParams damaged = p;
    damage(damaged);
    EXPECT_NE(generic_check(damaged, bytes), nullptr);
  }
  bytes[kGenericInputs] = 31;
  EXPECT_NE(generic_check(p, bytes), nullptr);
}

}  // namespace
}  // namespace takt::kernels::reference
