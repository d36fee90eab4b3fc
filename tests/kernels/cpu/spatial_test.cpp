// Pools, resize, padding.
#include <gtest/gtest.h>

#include "kernels/reference/movement.h"
#include "kernels/reference/pool.h"
#include "kernels/reference/resize.h"
#include "tests/kernels/cpu/harness.h"

namespace takt::kernels::cpu {
namespace {

TEST(Pool, MaximumAndAverage) {
  Random random(1);
  for (int i = 0; i < 150; ++i) {
    PoolParams p;
    p.n = random.integer(1, 2);
    p.c = random.integer(1, 40);
    p.h_in = random.integer(3, 12);
    p.w_in = random.integer(3, 12);
    p.kernel_h = random.integer(1, 3);
    p.kernel_w = random.integer(1, 3);
    p.stride_h = random.integer(1, 3);
    p.stride_w = random.integer(1, 3);
    p.dilation_h = p.dilation_w = 1;
    p.pad_top = random.integer(0, p.kernel_h - 1);
    p.pad_left = random.integer(0, p.kernel_w - 1);
    p.pad_bottom = random.integer(0, p.kernel_h - 1);
    p.pad_right = random.integer(0, p.kernel_w - 1);
    // Every second one rounded up: the last window may reach beyond the padding.
    const int up = i % 2;
    p.h_out = (p.h_in + p.pad_top + p.pad_bottom - p.kernel_h + up * (p.stride_h - 1)) / p.stride_h + 1;
    p.w_out = (p.w_in + p.pad_left + p.pad_right - p.kernel_w + up * (p.stride_w - 1)) / p.stride_w + 1;
    p.count_padding = random.integer(0, 1);
    const Shape4 in{p.n, p.c, p.h_in, p.w_in}, out{p.n, p.c, p.h_out, p.w_out};
    Floats x = random.values(in.elements(), i % 3 == 0), most(static_cast<std::size_t>(out.elements()));
    Floats mean(most.size());
    const reference::Window window{{p.kernel_h, p.kernel_w}, {p.stride_h, p.stride_w}, {1, 1}, {p.pad_top, p.pad_left}};
    const std::int64_t end[2] = {p.pad_bottom, p.pad_right};
    reference::max_pool2d(tensor_of(x, in), window, tensor_of(most, out));
    reference::average_pool2d(tensor_of(x, in), window, end, p.count_padding == 1, tensor_of(mean, out));
    for (const Target target : targets()) {
      const Bytes input = stored(to_blocked(x, in, target, kNaN));
      expect_run(target, make_call(KernelId::kMaxPool, p), {input}, to_blocked(most, out, target, 0), "maximum");
      expect_run(target, make_call(KernelId::kAveragePool, p), {input}, to_blocked(mean, out, target, 0), "average");
    }
    if (HasFailure()) return;
  }
}

TEST(Pool, DilatedMaximum) {
  Random random(2);
  PoolParams p;
  p.c = 19;
  p.h_in = p.w_in = 11;
  p.kernel_h = p.kernel_w = 3;
  p.dilation_h = 2;
  p.dilation_w = 3;
  p.pad_top = p.pad_left = 2;
  p.h_out = 11 + 4 - 4;
  p.w_out = 11 + 4 - 6;
  const Shape4 in{1, p.c, 11, 11}, out{1, p.c, p.h_out, p.w_out};
  Floats x = random.values(in.elements()), y(static_cast<std::size_t>(out.elements()));
  reference::max_pool2d(tensor_of(x, in), {{3, 3}, {1, 1}, {2, 3}, {2, 2}}, tensor_of(y, out));
  for (const Target target : targets()) {
    expect_run(target, make_call(KernelId::kMaxPool, p), {stored(to_blocked(x, in, target, kNaN))},
               to_blocked(y, out, target, 0), "dilated");
  }
}

TEST(Pool, Global) {
  Random random(3);
  for (const Shape4 in : {Shape4{1, 1, 1, 1}, Shape4{1, 96, 11, 11}, Shape4{2, 37, 3, 5}, Shape4{1, 200, 7, 7}}) {
    const Shape4 out{in.n, in.c, 1, 1};
    Floats x = random.values(in.elements()), y(static_cast<std::size_t>(out.elements()));
    reference::global_average_pool(tensor_of(x, in), tensor_of(y, out));
    const ReorderParams p{static_cast<std::int32_t>(in.n), static_cast<std::int32_t>(in.c), in.h * in.w};
    for (const Target target : targets()) {
      expect_run(target, make_call(KernelId::kGlobalAveragePool, p), {stored(to_blocked(x, in, target, kNaN))},
                 to_blocked(y, out, target, 0), "global average");
    }
  }
}

std::vector<Tap> taps_of(const reference::LinearTable& table) {
  std::vector<Tap> taps;
  for (std::size_t i = 0; i < table.low.size(); ++i) {
    taps.push_back(
        {static_cast<std::uint32_t>(table.low[i]), static_cast<std::uint32_t>(table.high[i]), table.weight[i]});
  }
  return taps;
}

TEST(Resize, Linear) {
  Random random(4);
  for (int i = 0; i < 40; ++i) {
    const Shape4 in{random.integer(1, 2), random.integer(1, 35), random.integer(1, 9), random.integer(1, 9)};
    const Shape4 out{in.n, in.c, random.integer(1, 20), random.integer(1, 20)};
    constexpr reference::Coordinates kModes[] = {reference::Coordinates::kHalfPixel,
                                                 reference::Coordinates::kPytorchHalfPixel,
                                                 reference::Coordinates::kAsymmetric};
    const reference::Coordinates mode = kModes[random.integer(0, 2)];
    const auto axis_of = [&](std::int64_t from, std::int64_t to) {
      reference::ResizeAxis axis;
      axis.in = from;
      axis.out = to;
      axis.scale = static_cast<double>(to) / static_cast<double>(from);
      axis.coordinates = mode;
      return axis;
    };
    const reference::LinearTable rows = reference::linear_table(axis_of(in.h, out.h));
    const reference::LinearTable columns = reference::linear_table(axis_of(in.w, out.w));
    Floats x = random.values(in.elements()), y(static_cast<std::size_t>(out.elements()));
    reference::resize_linear(tensor_of(x, in), rows, columns, 0, tensor_of(y, out));
    const ResizeParams p{static_cast<std::int32_t>(in.n),  static_cast<std::int32_t>(in.c),
                         static_cast<std::int32_t>(in.h),  static_cast<std::int32_t>(in.w),
                         static_cast<std::int32_t>(out.h), static_cast<std::int32_t>(out.w)};
    for (const Target target : targets()) {
      const Call call = make_resize(p, taps_of(rows), taps_of(columns));
      expect_run(target, call, {stored(to_blocked(x, in, target, kNaN)), call.constant}, to_blocked(y, out, target, 0),
                 "linear");
    }
    if (HasFailure()) return;
  }
}

TEST(Resize, NearestIsChosenWhenNoTapIsMixed) {
  Random random(5);
  const Shape4 in{1, 21, 5, 6}, out{1, 21, 10, 9};
  std::vector<std::vector<std::int64_t>> table = {{0}, {}, {}, {}};
  for (std::int64_t c = 0; c < in.c; ++c) table[1].push_back(c);
  const auto axis_of = [](std::int64_t from, std::int64_t to, double scale, reference::Coordinates coordinates) {
    reference::ResizeAxis axis;
    axis.in = from;
    axis.out = to;
    axis.scale = scale;
    axis.coordinates = coordinates;
    return axis;
  };
  table[2] =
      reference::nearest_table(axis_of(5, 10, 2.0, reference::Coordinates::kAsymmetric), reference::Nearest::kFloor);
  table[3] = reference::nearest_table(axis_of(6, 9, 1.5, reference::Coordinates::kHalfPixel),
                                      reference::Nearest::kRoundPreferFloor);
  Floats x = random.values(in.elements()), y(static_cast<std::size_t>(out.elements()));
  const float fill = 0;
  reference::read_indexed(tensor_of(x, in), table, &fill, tensor_of(y, out));
  std::vector<Tap> rows, columns;
  for (const std::int64_t i : table[2])
    rows.push_back({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i), 0});
  for (const std::int64_t i : table[3]) {
    columns.push_back({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i), 0});
  }
  for (const Target target : targets()) {
    const Call call = make_resize({1, 21, 5, 6, 10, 9}, rows, columns);
    EXPECT_EQ(call.id, KernelId::kResizeNearest);
    expect_run(target, call, {stored(to_blocked(x, in, target, kNaN)), call.constant}, to_blocked(y, out, target, 0),
               "nearest");
  }
}

TEST(Resize, DamagedTapsStayInside) {
  const std::vector<Tap> rows(4, Tap{0xffffffffU, 0x80000000U, 0.5F}), columns(3, Tap{77, 0xfffffffeU, 0.25F});
  const Shape4 in{1, 8, 2, 2};
  Floats x(static_cast<std::size_t>(in.elements()), 3.0F);
  for (const Target target : targets()) {
    const Call call = make_resize({1, 8, 2, 2, 4, 3}, rows, columns);
    expect_run(target, call, {stored(to_blocked(x, in, target, kNaN)), call.constant},
               to_blocked(Floats(8 * 12, 3.0F), {1, 8, 4, 3}, target, 0), "damaged taps");
  }
}

TEST(Pad, EveryMode) {
  Random random(6);
  for (int i = 0; i < 60; ++i) {
    PadParams p;
    p.n = random.integer(1, 2);
    p.c = random.integer(1, 35);
    p.h_in = random.integer(1, 7);
    p.w_in = random.integer(1, 7);
    p.mode = static_cast<PadMode>(random.integer(0, 2));
    const bool mirror = p.mode == PadMode::kReflect;
    p.top = random.integer(0, mirror ? p.h_in - 1 : 4);
    p.left = random.integer(0, mirror ? p.w_in - 1 : 4);
    p.h_out = p.top + p.h_in + random.integer(0, mirror ? p.h_in - 1 : 4);
    p.w_out = p.left + p.w_in + random.integer(0, mirror ? p.w_in - 1 : 4);
    p.value = 1.25F;
    const Shape4 in{p.n, p.c, p.h_in, p.w_in}, out{p.n, p.c, p.h_out, p.w_out};
    Floats x = random.values(in.elements()), y(static_cast<std::size_t>(out.elements()));
    const auto source = [&](std::int64_t o, std::int64_t margin, std::int64_t extent) -> std::int64_t {
      const std::int64_t at = o - margin;
      if (at >= 0 && at < extent) return at;
      if (p.mode == PadMode::kConstant) return -1;
      if (p.mode == PadMode::kEdge) return at < 0 ? 0 : extent - 1;
      return at < 0 ? -at : 2 * extent - 2 - at;
    };
    for (std::int64_t o = 0; o < out.elements(); ++o) {
      const std::int64_t column = source(o % out.w, p.left, in.w), row = source(o / out.w % out.h, p.top, in.h);
      y[static_cast<std::size_t>(o)] =
          row < 0 || column < 0 ? p.value
                                : x[static_cast<std::size_t>((o / (out.w * out.h) * in.h + row) * in.w + column)];
    }
    for (const Target target : targets()) {
      expect_run(target, make_call(KernelId::kPad, p), {stored(to_blocked(x, in, target, kNaN))},
                 to_blocked(y, out, target, 0), "pad");
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace takt::kernels::cpu
