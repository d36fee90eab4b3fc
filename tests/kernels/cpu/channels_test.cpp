// Layouts, channels, softmax over channels.
#include <gtest/gtest.h>

#include <numeric>

#include "kernels/reference/softmax.h"
#include "tests/kernels/cpu/harness.h"

namespace takt::kernels::cpu {
namespace {

const Shape4 kShapes[] = {{1, 1, 1, 1},    {1, 3, 17, 19}, {2, 24, 5, 7},  {1, 85, 22, 22},
                          {1, 16, 1, 300}, {3, 33, 2, 9},  {1, 8, 16, 33}, {1, 50, 23, 31}};

ReorderParams params_of(const Shape4& s) {
  return {static_cast<std::int32_t>(s.n), static_cast<std::int32_t>(s.c), s.h * s.w};
}

TEST(Reorder, ThereAndBack) {
  Random random(1);
  for (const Shape4& s : kShapes) {
    const Floats x = random.values(s.elements(), true);
    Floats last(x.size());
    for (std::int64_t i = 0; i < s.elements(); ++i) {
      const std::int64_t plane = s.h * s.w, image = i / (s.c * plane), channel = i / plane % s.c, pixel = i % plane;
      last[static_cast<std::size_t>((image * plane + pixel) * s.c + channel)] = x[static_cast<std::size_t>(i)];
    }
    for (const Target target : targets()) {
      expect_run(target, make_call(KernelId::kReorderToLast, params_of(s)), {stored(to_blocked(x, s, target, kNaN))},
                 last, "channels last");
      expect_run(target, make_call(KernelId::kReorderToBlocked, params_of(s)), {bytes_of(x)},
                 to_blocked(x, s, target, 0), "to blocked");
      expect_run(target, make_call(KernelId::kReorderToLinear, params_of(s)), {stored(to_blocked(x, s, target, kNaN))},
                 x, "to linear");
    }
    if (HasFailure()) return;
  }
}

TEST(Softmax, OverChannels) {
  Random random(2);
  for (const Shape4& s : kShapes) {
    for (const bool hostile : {false, true}) {
      Floats x = random.values(s.elements(), hostile), y(x.size());
      reference::softmax(tensor_of(x, s), 1, tensor_of(y, s));
      for (const Target target : targets()) {
        const Call call = make_call(KernelId::kSoftmaxChannels, params_of(s));
        const Bytes input = stored(to_blocked(x, s, target, kNaN));
        expect_run(target, call, {input}, to_blocked(y, s, target, 0), "softmax");
        expect_result(run(target, call, {input}, 2, {}, 0), to_blocked(y, s, target, 0), "softmax in place");
      }
      if (HasFailure()) return;
    }
  }
}

// Channels of a and b one after the other.
Floats gathered(const Floats& a, const Shape4& sa, const Floats& b, const Shape4& sb,
                const std::vector<std::int32_t>& channels) {
  const std::int64_t plane = sa.h * sa.w;
  Floats y;
  for (std::int64_t n = 0; n < sa.n; ++n) {
    for (const std::int32_t c : channels) {
      for (std::int64_t i = 0; i < plane; ++i) {
        if (c >= 0 && c < sa.c) {
          y.push_back(a[static_cast<std::size_t>((n * sa.c + c) * plane + i)]);
        } else if (c >= sa.c && c < sa.c + sb.c) {
          y.push_back(b[static_cast<std::size_t>((n * sb.c + c - sa.c) * plane + i)]);
        } else {
          y.push_back(0);
        }
      }
    }
  }
  return y;
}

TEST(ChannelGather, ShufflesConcatsAndDamagedLists) {
  Random random(3);
  for (int i = 0; i < 60; ++i) {
    const Shape4 sa{random.integer(1, 2), random.integer(1, 50), random.integer(1, 12), random.integer(1, 40)};
    Shape4 sb = sa;
    sb.c = i % 2 == 0 ? 0 : random.integer(1, 50);
    const auto total = static_cast<int>(sa.c + sb.c);
    std::vector<std::int32_t> channels;
    switch (i % 4) {
      case 0:  // shuffle of two groups
      case 1:
        for (int c = 0; c < total; ++c) channels.push_back(c / 2 + (c % 2) * ((total + 1) / 2));
        break;
      case 2:  // any, some of them outside
        for (int c = random.integer(1, 60); c > 0; --c) channels.push_back(random.integer(-2, total + 2));
        break;
      default:  // concat
        channels.resize(static_cast<std::size_t>(total));
        std::iota(channels.begin(), channels.end(), 0);
    }
    const Floats a = random.values(sa.elements(), true), b = random.values(sb.elements(), true);
    ChannelGatherParams p;
    p.n = static_cast<std::int32_t>(sa.n);
    p.c_a = static_cast<std::int32_t>(sa.c);
    p.c_b = static_cast<std::int32_t>(sb.c);
    p.c_out = static_cast<std::int32_t>(channels.size());
    p.pixels = sa.h * sa.w;
    const Shape4 out{sa.n, p.c_out, sa.h, sa.w};
    const Floats y = gathered(a, sa, b, sb, channels);
    for (const Target target : targets()) {
      const Call call = make_channel_gather(p, channels);
      expect_run(target, call,
                 {stored(to_blocked(a, sa, target, kNaN)),
                  sb.c == 0 ? Bytes{} : stored(to_blocked(b, sb, target, kNaN)), call.constant},
                 to_blocked(y, out, target, 0), "channel gather " + std::to_string(i));
    }
    if (HasFailure()) return;
  }
}

TEST(ChannelCopy, PartsOfAConcatInAscendingOrder) {
  Random random(4);
  for (int i = 0; i < 40; ++i) {
    const Shape4 sa{random.integer(1, 2), random.integer(1, 40), random.integer(1, 5), random.integer(1, 9)};
    Shape4 sb = sa, out = sa;
    sb.c = random.integer(1, 40);
    const std::int32_t from = random.integer(0, static_cast<int>(sb.c) - 1);
    const std::int32_t count = random.integer(1, static_cast<int>(sb.c) - from);
    out.c = sa.c + count;
    const Floats a = random.values(sa.elements()), b = random.values(sb.elements());
    std::vector<std::int32_t> channels;
    for (std::int32_t c = 0; c < sa.c; ++c) channels.push_back(c);
    for (std::int32_t c = 0; c < count; ++c) channels.push_back(static_cast<std::int32_t>(sa.c) + from + c);
    const Floats y = gathered(a, sa, b, sb, channels);
    ChannelCopyParams first, second;
    first.n = second.n = static_cast<std::int32_t>(sa.n);
    first.pixels = second.pixels = sa.h * sa.w;
    first.c_out = second.c_out = static_cast<std::int32_t>(out.c);
    first.c_in = first.count = static_cast<std::int32_t>(sa.c);
    second.c_in = static_cast<std::int32_t>(sb.c);
    second.from = from;
    second.count = count;
    second.to = static_cast<std::int32_t>(sa.c);
    for (const Target target : targets()) {
      for (const int parts : {1, 2, 3}) {
        const Floats expected = to_blocked(y, out, target, 0);
        // Poison where no part has been: the second copy must complete every element.
        const Bytes half = run(target, make_call(KernelId::kChannelCopy, first),
                               {stored(to_blocked(a, sa, target, kNaN))}, parts, stored(Floats(expected.size(), kNaN)));
        expect_run(target, make_call(KernelId::kChannelCopy, second), {stored(to_blocked(b, sb, target, kNaN))},
                   expected, "channel copy", half);
      }
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace takt::kernels::cpu
