#include "kernels/reference/conv.h"

#include <gtest/gtest.h>

#include "tests/kernels/cpu/harness.h"

namespace takt::kernels::cpu {
namespace {

struct Case {
  ConvParams p;
  bool bias = true;
  bool linear_input = false;
  bool hostile = false;
};

// Output extents from the padding at both ends.
ConvParams shaped(int n, int c_in, int h, int w, int c_out, int kernel, int stride, int pad, int dilation, int group) {
  ConvParams p;
  p.n = n;
  p.c_in = c_in;
  p.h_in = h;
  p.w_in = w;
  p.c_out = c_out;
  p.kernel_h = p.kernel_w = kernel;
  p.stride_h = p.stride_w = stride;
  p.dilation_h = p.dilation_w = dilation;
  p.pad_top = p.pad_left = pad;
  p.group = group;
  p.h_out = (h + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
  p.w_out = (w + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
  return p;
}

std::string text(const Case& c) {
  const ConvParams& p = c.p;
  return std::to_string(p.n) + "x" + std::to_string(p.c_in) + "x" + std::to_string(p.h_in) + "x" +
         std::to_string(p.w_in) + " -> " + std::to_string(p.c_out) + "x" + std::to_string(p.h_out) + "x" +
         std::to_string(p.w_out) + " k" + std::to_string(p.kernel_h) + "x" + std::to_string(p.kernel_w) + " s" +
         std::to_string(p.stride_h) + "," + std::to_string(p.stride_w) + " p" + std::to_string(p.pad_top) + "," +
         std::to_string(p.pad_left) + " d" + std::to_string(p.dilation_h) + " g" + std::to_string(p.group) + " act" +
         std::to_string(static_cast<int>(p.activation)) + (p.residual != 0 ? " +r" : "") +
         (c.linear_input ? " linear" : "");
}

void expect_conv(const Case& c, Random& random) {
  const ConvParams& p = c.p;
  const Shape4 in{p.n, p.c_in, p.h_in, p.w_in}, out{p.n, p.c_out, p.h_out, p.w_out};
  Floats x = random.values(in.elements(), c.hostile), y(static_cast<std::size_t>(out.elements()));
  Floats w = random.values(std::int64_t{p.c_out} * (p.c_in / p.group) * p.kernel_h * p.kernel_w, c.hostile);
  Floats bias = random.values(p.c_out, c.hostile), residual = random.values(out.elements(), c.hostile);
  const Shape weights{4, {p.c_out, p.c_in / p.group, p.kernel_h, p.kernel_w}};
  const reference::Window window{
      {p.kernel_h, p.kernel_w}, {p.stride_h, p.stride_w}, {p.dilation_h, p.dilation_w}, {p.pad_top, p.pad_left}};
  reference::conv2d(tensor_of(x, in), tensor_of(w, weights), c.bias ? tensor_of(bias, Shape{1, {p.c_out}}) : Tensor{},
                    p.residual != 0 ? tensor_of(residual, out) : Tensor{}, window, p.group,
                    {static_cast<reference::Activation>(p.activation), p.alpha, p.beta}, tensor_of(y, out));
  for (const Target target : targets()) {
    const Call call = make_conv(p, w.data(), c.bias ? bias.data() : nullptr, c.linear_input, target, kStored);
    const Bytes packed_x = stored(c.linear_input ? x : to_blocked(x, in, target, kNaN));
    const Bytes packed_r = p.residual != 0 ? stored(to_blocked(residual, out, target, kNaN)) : Bytes{};
    const Floats expected = to_blocked(y, out, target, 0.0F);
    expect_run(target, call, {packed_x, call.constant, packed_r}, expected, text(c));
    if (p.residual != 0) {
      expect_result(run(target, call, {packed_x, call.constant, packed_r}, 2, {}, 2), expected,
                    text(c) + " in place on " + name_of(target));
    }
    if (testing::Test::HasFailure()) return;
  }
}

void expect_conv(const Case& c, unsigned seed) {
  Random random(seed);
  expect_conv(c, random);
}

constexpr Activation kAll[] = {Activation::kNone,  Activation::kRelu,    Activation::kClip,
                               Activation::kLeaky, Activation::kSigmoid, Activation::kHardSwish,
                               Activation::kSilu,  Activation::kTanh,    Activation::kHardSigmoid};

TEST(Conv, LayersOfDetectors) {
  expect_conv({shaped(1, 3, 35, 37, 24, 3, 2, 1, 1, 1), true, true}, 1);
  expect_conv({shaped(1, 3, 33, 29, 32, 7, 2, 3, 1, 1), true, true}, 2);
  expect_conv({shaped(1, 48, 22, 22, 48, 1, 1, 0, 1, 1)}, 3);
  expect_conv({shaped(1, 96, 11, 11, 85, 1, 1, 0, 1, 1)}, 4);
  expect_conv({shaped(1, 64, 14, 14, 64, 3, 1, 1, 1, 1)}, 5);
  expect_conv({shaped(1, 33, 15, 13, 40, 3, 2, 1, 1, 1)}, 6);
  expect_conv({shaped(1, 24, 22, 22, 24, 3, 1, 1, 1, 24)}, 7);
  expect_conv({shaped(1, 96, 11, 11, 96, 5, 1, 2, 1, 96)}, 8);
  expect_conv({shaped(1, 40, 22, 21, 40, 3, 2, 1, 1, 40)}, 9);
  expect_conv({shaped(2, 32, 9, 9, 32, 3, 1, 1, 1, 2)}, 10);    // groups of whole blocks
  expect_conv({shaped(1, 12, 9, 9, 18, 3, 1, 1, 1, 3)}, 11);    // and of parts of blocks
  expect_conv({shaped(1, 7, 9, 9, 14, 3, 1, 1, 1, 7)}, 12);     // depth multiplier
  expect_conv({shaped(1, 16, 19, 23, 16, 3, 1, 2, 2, 1)}, 13);  // dilation
  expect_conv({shaped(1, 256, 7, 7, 64, 1, 2, 0, 1, 1)}, 14);   // pointwise with a stride: direct
}

TEST(Conv, EveryActivationWithAndWithoutResidual) {
  unsigned seed = 20;
  for (const Activation activation : kAll) {
    for (const int residual : {0, 1}) {
      for (ConvParams p : {shaped(1, 10, 9, 11, 21, 3, 1, 1, 1, 1), shaped(1, 17, 6, 7, 19, 1, 1, 0, 1, 1),
                           shaped(1, 13, 8, 9, 13, 3, 1, 1, 1, 13), shaped(1, 6, 5, 5, 9, 3, 1, 1, 1, 3)}) {
        p.activation = activation;
        p.alpha = activation == Activation::kClip ? 0.25F : 0.1F;
        p.beta = activation == Activation::kClip ? 2.0F : 0.4F;
        p.residual = residual;
        expect_conv({p}, ++seed);
      }
      ConvParams first = shaped(1, 3, 13, 12, 11, 3, 2, 1, 1, 1);
      first.activation = activation;
      first.beta = 1.0F;
      first.residual = residual;
      expect_conv({first, true, true}, ++seed);
      if (HasFailure()) return;
    }
  }
}

TEST(Conv, EveryWidthUsesItsTile) {
  for (int w = 1; w <= 31; ++w) {
    expect_conv({shaped(1, 5, 3, w, 33, 3, 1, 1, 1, 1)}, static_cast<unsigned>(100 + w));
    expect_conv({shaped(1, 9, 1, w, 16, 1, 1, 0, 1, 1)}, static_cast<unsigned>(200 + w));
    expect_conv({shaped(1, 2, 4, w, 24, 3, 2, 1, 1, 1), true, true}, static_cast<unsigned>(300 + w));
    expect_conv({shaped(1, 17, 3, w, 17, 3, 1, 1, 1, 17)}, static_cast<unsigned>(400 + w));
    if (HasFailure()) return;
  }
}

// Channels in any order, some twice, some never, out of a larger tensor; a number out of range reads channel 0.
TEST(Conv, PointwiseThroughAListOfChannels) {
  Random random(70);
  for (int i = 0; i < 60; ++i) {
    ConvParams p = shaped(random.integer(1, 2), random.integer(1, 40), random.integer(1, 9), random.integer(1, 20),
                          random.integer(1, 40), 1, 1, 0, 1, 1);
    p.residual = random.integer(0, 1);
    p.activation = i % 3 == 0 ? Activation::kRelu : i % 3 == 1 ? Activation::kSilu : Activation::kNone;
    const std::int32_t c_x = random.integer(1, 70);
    std::vector<std::int32_t> channels, valid;
    for (int c = 0; c < p.c_in; ++c) {
      const bool out_of_range = random.integer(0, 19) == 0;
      channels.push_back(out_of_range ? random.integer(0, 1) == 0 ? -1 : c_x : random.integer(0, c_x - 1));
      valid.push_back(out_of_range ? 0 : channels.back());
    }
    const Shape4 whole{p.n, c_x, p.h_in, p.w_in}, in{p.n, p.c_in, p.h_in, p.w_in}, out{p.n, p.c_out, p.h_out, p.w_out};
    const std::int64_t pixels = std::int64_t{p.h_in} * p.w_in;
    Floats x = random.values(whole.elements(), i % 5 == 0), picked, y(static_cast<std::size_t>(out.elements()));
    for (int n = 0; n < p.n; ++n) {
      for (const std::int32_t c : valid) {
        const auto from = x.begin() + (n * c_x + c) * pixels;
        picked.insert(picked.end(), from, from + pixels);
      }
    }
    Floats w = random.values(std::int64_t{p.c_out} * p.c_in), bias = random.values(p.c_out);
    Floats residual = random.values(out.elements());
    reference::conv2d(tensor_of(picked, in), tensor_of(w, Shape{4, {p.c_out, p.c_in, 1, 1}}),
                      tensor_of(bias, Shape{1, {p.c_out}}), p.residual != 0 ? tensor_of(residual, out) : Tensor{},
                      reference::Window{{1, 1}, {1, 1}, {1, 1}, {0, 0}}, 1,
                      {static_cast<reference::Activation>(p.activation), 0, 0}, tensor_of(y, out));
    for (const Target target : targets()) {
      const Call call = make_mapped_conv(p, c_x, channels, w.data(), bias.data(), target, kStored);
      const Bytes packed_r = p.residual != 0 ? stored(to_blocked(residual, out, target, kNaN)) : Bytes{};
      expect_run(target, call, {stored(to_blocked(x, whole, target, kNaN)), call.constant, packed_r},
                 to_blocked(y, out, target, 0.0F), text({p}) + " of " + std::to_string(c_x));
    }
    if (HasFailure()) return;
  }
}

// Kernels, strides, padding and dilation of all kinds, also larger than the picture, where outputs see padding alone.
TEST(Conv, RandomShapes) {
  Random random(7);
  for (int i = 0; i < 220; ++i) {
    Case c;
    ConvParams& p = c.p;
    p.n = random.integer(1, 2);
    p.h_in = random.integer(1, 12);
    p.w_in = random.integer(1, 20);
    p.kernel_h = random.integer(1, 5);
    p.kernel_w = random.integer(1, 5);
    p.stride_h = random.integer(1, 4);
    p.stride_w = random.integer(1, 4);
    p.dilation_h = random.integer(1, 3);
    p.dilation_w = random.integer(1, 3);
    p.pad_top = random.integer(0, 6);
    p.pad_left = random.integer(0, 6);
    p.h_out = random.integer(1, 9);
    p.w_out = random.integer(1, 22);
    const int kind = random.integer(0, 3);
    c.linear_input = kind == 0;
    p.c_in = kind == 0 ? random.integer(1, 4) : random.integer(1, 40);
    p.c_out = random.integer(1, 40);
    if (kind == 2) p.group = p.c_out = p.c_in;
    if (kind == 3) {
      p.group = random.integer(1, 4);
      p.c_in = p.group * random.integer(1, 9);
      p.c_out = p.group * random.integer(1, 9);
    }
    p.activation = kAll[random.integer(0, 8)];
    p.alpha = -0.5F;
    p.beta = 1.5F;
    p.residual = random.integer(0, 1);
    c.bias = random.integer(0, 3) != 0;
    c.hostile = random.integer(0, 3) == 0;
    expect_conv(c, random);
    if (HasFailure()) return;
  }
}

TEST(Conv, HostWeightsOfAnotherTargetArePackedHereToo) {
  // The same parameters give the same bytes whatever machine compiles: packing looks at the target alone.
  const ConvParams p = shaped(1, 3, 8, 8, 10, 3, 1, 1, 1, 1);
  Random random(3);
  const Floats w = random.values(10 * 3 * 9), bias = random.values(10);
  const Call avx2 = make_conv(p, w.data(), bias.data(), true, Target::kAvx2);
  const Call neon = make_conv(p, w.data(), bias.data(), true, Target::kNeon);
  const Call avx512 = make_conv(p, w.data(), bias.data(), true, Target::kAvx512);
  EXPECT_EQ(avx2.constant, neon.constant);
  EXPECT_EQ(avx2.constant.size(), 2U * 28 * 8 * 4);
  EXPECT_EQ(avx512.constant.size(), 1U * 28 * 16 * 4);
  const Floats packed = floats_of(avx512.constant);
  EXPECT_EQ(packed[9], bias[9]);
  EXPECT_EQ(packed[10], 0.0F);
  EXPECT_EQ(packed[16 + (4 * 3 + 2) * 16 + 7], w[(7 * 3 + 2) * 9 + 4]);  // tap (1, 1), channel 2 of output 7
}

// Output extents from the padding at both ends and `extra` at the end.
ConvParams transposed(int n, int c_in, int h, int w, int c_out, int kernel, int stride, int pad, int dilation,
                      int group, int extra = 0) {
  ConvParams p = shaped(n, c_in, h, w, c_out, 1, stride, 0, dilation, group);
  p.kernel_h = p.kernel_w = kernel;
  p.pad_top = p.pad_left = pad;
  p.h_out = (h - 1) * stride + (kernel - 1) * dilation + 1 - 2 * pad + extra;
  p.w_out = (w - 1) * stride + (kernel - 1) * dilation + 1 - 2 * pad + extra;
  return p;
}

void expect_conv_transpose(const Case& c, Random& random) {
  const ConvParams& p = c.p;
  const Shape4 in{p.n, p.c_in, p.h_in, p.w_in}, out{p.n, p.c_out, p.h_out, p.w_out};
  Floats x = random.values(in.elements(), c.hostile), y(static_cast<std::size_t>(out.elements()));
  Floats w = random.values(std::int64_t{p.c_in} * (p.c_out / p.group) * p.kernel_h * p.kernel_w, c.hostile);
  Floats bias = random.values(p.c_out, c.hostile);
  const Shape weights{4, {p.c_in, p.c_out / p.group, p.kernel_h, p.kernel_w}};
  const reference::Window window{
      {p.kernel_h, p.kernel_w}, {p.stride_h, p.stride_w}, {p.dilation_h, p.dilation_w}, {p.pad_top, p.pad_left}};
  reference::conv_transpose2d(tensor_of(x, in), tensor_of(w, weights),
                              c.bias ? tensor_of(bias, Shape{1, {p.c_out}}) : Tensor{}, window, p.group,
                              {static_cast<reference::Activation>(p.activation), p.alpha, p.beta}, tensor_of(y, out));
  for (const Target target : targets()) {
    const Call call = make_conv_transpose(p, w.data(), c.bias ? bias.data() : nullptr, target, kStored);
    std::vector<Bytes> inputs = {stored(to_blocked(x, in, target, kNaN)), call.constant};
    if (f32_form(call.id) == KernelId::kConvPointwise) inputs.emplace_back();
    expect_run(target, call, inputs, to_blocked(y, out, target, 0.0F), "transposed " + text(c));
    if (testing::Test::HasFailure()) return;
  }
}

TEST(ConvTranspose, LayersOfDetectors) {
  Random random(31);
  expect_conv_transpose({transposed(1, 64, 9, 31, 128, 1, 1, 0, 1, 1)}, random);  // pointwise
  expect_conv_transpose({transposed(1, 128, 9, 31, 40, 2, 2, 0, 1, 1)}, random);  // of pillars
  expect_conv_transpose({transposed(1, 32, 5, 17, 128, 4, 4, 0, 1, 1), false}, random);
  expect_conv_transpose({transposed(1, 48, 11, 13, 24, 4, 2, 1, 1, 1)}, random);   // of key points
  expect_conv_transpose({transposed(1, 20, 7, 9, 20, 3, 2, 1, 1, 1, 1)}, random);  // of masks
  expect_conv_transpose({transposed(2, 24, 6, 7, 24, 4, 2, 1, 1, 24)}, random);    // bilinear, each channel alone
  expect_conv_transpose({transposed(1, 12, 6, 7, 18, 3, 3, 0, 2, 3, 2)}, random);
}

TEST(ConvTranspose, EveryActivation) {
  Random random(32);
  for (const Activation activation : kAll) {
    for (const int group : {1, 3}) {
      Case c{transposed(1, 9, 5, 6, 21, 3, 2, 1, 1, group)};
      c.p.activation = activation;
      c.p.alpha = activation == Activation::kClip ? 0.25F : 0.1F;
      c.p.beta = activation == Activation::kClip ? 2.0F : 0.4F;
      expect_conv_transpose(c, random);
      if (HasFailure()) return;
    }
  }
}

// Any extents of Y: also such that no input reaches the last rows and columns, or none at all.
TEST(ConvTranspose, RandomShapes) {
  Random random(33);
  for (int i = 0; i < 300; ++i) {
    Case c;
    ConvParams& p = c.p;
    p.n = random.integer(1, 2);
    p.h_in = random.integer(1, 7);
    p.w_in = random.integer(1, 40);
    p.kernel_h = random.integer(1, 6);
    p.kernel_w = random.integer(1, 6);
    p.stride_h = random.integer(1, 5);
    p.stride_w = random.integer(1, 5);
    p.dilation_h = random.integer(1, 4);
    p.dilation_w = random.integer(1, 4);
    p.pad_top = random.integer(0, 9);
    p.pad_left = random.integer(0, 9);
    p.group = random.integer(0, 3) == 0 ? random.integer(2, 5) : 1;
    p.c_in = p.group * random.integer(1, p.group == 1 ? 40 : 9);
    p.c_out = p.group * random.integer(1, p.group == 1 ? 40 : 9);
    p.h_out = random.integer(1, 30);
    p.w_out = random.integer(1, 90);
    p.activation = random.integer(0, 1) == 0 ? Activation::kNone : Activation::kSilu;
    c.bias = random.integer(0, 1) == 0;
    c.hostile = random.integer(0, 3) == 0;
    expect_conv_transpose(c, random);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace takt::kernels::cpu
