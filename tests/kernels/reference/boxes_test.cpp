// Overlaps by their properties, suppression and decoding against the plainest code that can be written.
#include "kernels/reference/boxes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace takt::kernels::reference {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr double kPi = 3.14159265358979323846;
using Box = std::array<float, kBoxColumns>;

Box box(float x, float y, float l, float w, float yaw) { return {x, y, 0, l, w, 1.5F, yaw, 0, 0}; }

class RandomBoxes {
 public:
  explicit RandomBoxes(unsigned seed) : engine_(seed) {}
  float uniform(float low, float high) { return std::uniform_real_distribution<float>(low, high)(engine_); }
  Box next(float spread) {
    return box(uniform(-spread, spread), uniform(-spread, spread), uniform(0.3F, 9), uniform(0.3F, 3), uniform(-4, 4));
  }

 private:
  std::mt19937 engine_;
};

// By counting: the share of a fine grid over a that lies in b.
double counted_iou(const Box& a, const Box& b) {
  constexpr int kSteps = 700;
  int common = 0;
  for (int i = 0; i < kSteps; ++i) {
    for (int j = 0; j < kSteps; ++j) {
      const double u = ((i + 0.5) / kSteps - 0.5) * a[3], v = ((j + 0.5) / kSteps - 0.5) * a[4];
      const double x = a[0] + std::cos(a[6]) * u - std::sin(a[6]) * v - b[0];
      const double y = a[1] + std::sin(a[6]) * u + std::cos(a[6]) * v - b[1];
      const double s = std::cos(b[6]) * x + std::sin(b[6]) * y, t = std::cos(b[6]) * y - std::sin(b[6]) * x;
      common += std::fabs(s) <= b[3] / 2 && std::fabs(t) <= b[4] / 2 ? 1 : 0;
    }
  }
  const double area = double{a[3]} * a[4] * common / (kSteps * kSteps);
  return area / (double{a[3]} * a[4] + double{b[3]} * b[4] - area);
}

TEST(RotatedIou, IsTheShareOfPointsThatLieInBoth) {
  RandomBoxes boxes(1);
  int overlapping = 0;
  for (int i = 0; i < 60; ++i) {
    const Box a = boxes.next(2), b = boxes.next(2);
    const double iou = rotated_iou(a.data(), b.data());
    ASSERT_NEAR(iou, counted_iou(a, b), 4e-3);
    overlapping += iou > 0.05 ? 1 : 0;
  }
  EXPECT_GT(overlapping, 20);
}

TEST(RotatedIou, Properties) {
  RandomBoxes boxes(2);
  for (int i = 0; i < 3000; ++i) {
    const Box a = boxes.next(5), b = boxes.next(5);
    const double iou = rotated_iou(a.data(), b.data());
    ASSERT_GE(iou, 0);
    ASSERT_LE(iou, 1);
    ASSERT_EQ(iou, rotated_iou(b.data(), a.data()));  // bit by bit
    ASSERT_NEAR(rotated_iou(a.data(), a.data()), 1, 1e-15);
    Box turned = b;
    turned[6] += static_cast<float>(kPi);
    ASSERT_NEAR(rotated_iou(a.data(), turned.data()), iou, 1e-6);
    Box sideways = b;
    std::swap(sideways[3], sideways[4]);
    sideways[6] += static_cast<float>(kPi / 2);
    ASSERT_NEAR(rotated_iou(a.data(), sideways.data()), iou, 2e-6);
    // A tiny shift of a box changes it by a tiny amount, also when edges coincide.
    Box shifted = a;
    shifted[0] += 1e-5F;
    shifted[6] += 1e-6F;
    ASSERT_GT(rotated_iou(a.data(), shifted.data()), 1 - 2e-4);
    // Together they may be anywhere.
    Box a_far = a, b_far = b;
    for (int c = 0; c < 2; ++c) {
      a_far[static_cast<std::size_t>(c)] += 1024;
      b_far[static_cast<std::size_t>(c)] += 1024;
    }
    ASSERT_NEAR(rotated_iou(a_far.data(), b_far.data()), iou, 2e-3);
  }
}

TEST(RotatedIou, OfBoxesThatAreNoneIsZero) {
  const Box good = box(0, 0, 4, 2, 0);
  for (const Box& bad : {box(0, 0, -4, 2, 0), box(0, 0, 4, 0, 0), box(kNaN, 0, 4, 2, 0), box(0, 0, 4, 2, kNaN),
                         box(0, 0, std::numeric_limits<float>::infinity(), 2, 0)}) {
    EXPECT_EQ(rotated_iou(good.data(), bad.data()), 0);
    EXPECT_EQ(rotated_iou(bad.data(), bad.data()), 0);
    EXPECT_EQ(axis_aligned_iou(good.data(), bad.data()), 0);
  }
  EXPECT_EQ(rotated_iou(good.data(), box(4, 0, 4, 2, 0).data()), 0);  // they touch
  EXPECT_NEAR(rotated_iou(good.data(), box(2, 0, 4, 2, 0).data()), 1.0 / 3, 1e-15);
  EXPECT_NEAR(rotated_iou(good.data(), box(0, 0, 2, 2, 0).data()), 0.5, 1e-15);  // one inside the other
}

TEST(AxisAlignedIou, TurnsBoxesToTheNearestAxis) {
  const Box a = box(0, 0, 4, 2, 0);
  EXPECT_NEAR(axis_aligned_iou(a.data(), box(0, 0, 4, 2, 0.7F).data()), 1, 1e-15);
  EXPECT_NEAR(axis_aligned_iou(a.data(), box(0, 0, 4, 2, 0.9F).data()), 4.0 / 12, 1e-15);
  EXPECT_NEAR(axis_aligned_iou(a.data(), box(0, 0, 2, 4, 1.5F).data()), 1, 1e-15);
}

struct Suppressed {
  std::vector<float> boxes, scores;
  std::vector<std::int32_t> classes, index;
  std::int32_t kept = -1;
};
Suppressed run_nms(Nearness nearness, const NmsParams& p, const std::vector<Box>& boxes,
                   const std::vector<float>& scores, const std::vector<std::int32_t>& classes) {
  EXPECT_EQ(invalid(p), nullptr);
  const auto n = static_cast<std::size_t>(p.capacity);
  std::vector<float> rows(n * 9, kNaN), room = scores;
  std::vector<std::int32_t> kinds = classes;
  for (std::size_t i = 0; i < boxes.size(); ++i) std::copy(boxes[i].begin(), boxes[i].end(), rows.begin() + 9 * i);
  room.resize(n, 2);  // behind the count: better than all, and never read
  kinds.resize(n, 0);
  Suppressed out{std::vector<float>(n * 9), std::vector<float>(n), std::vector<std::int32_t>(n),
                 std::vector<std::int32_t>(n), -1};
  const auto count = static_cast<std::int32_t>(boxes.size());
  nms(nearness, p,
      {rows.data(), room.data(), kinds.data(), &count, out.boxes.data(), out.scores.data(), out.classes.data(),
       out.index.data(), &out.kept});
  out.index.resize(static_cast<std::size_t>(std::max(out.kept, 0)));
  return out;
}

TEST(Nms, IsTheTextbookOne) {
  for (const Nearness nearness : {Nearness::kCircle, Nearness::kAxisAligned, Nearness::kRotated}) {
    RandomBoxes random(static_cast<unsigned>(nearness) + 10);
    for (int round = 0; round < 30; ++round) {
      const int n = 120;
      std::vector<Box> boxes;
      std::vector<float> scores;
      std::vector<std::int32_t> classes;
      for (int i = 0; i < n; ++i) {
        boxes.push_back(random.next(12));
        scores.push_back(std::floor(random.uniform(0, 20)) / 20);  // with ties
        classes.push_back(i % 3);
      }
      NmsParams p;
      p.capacity = 150;
      p.most = round % 3 == 2 ? 10 : 150;
      p.agnostic = round % 2;
      for (int c = 0; c < 3; ++c) p.limit[c] = nearness == Nearness::kCircle ? 2.0F + static_cast<float>(c) : 0.2F;
      const Suppressed out = run_nms(nearness, p, boxes, scores, classes);

      std::vector<int> order(static_cast<std::size_t>(n));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
        return scores[i] != scores[j] ? scores[i] > scores[j] : classes[i] < classes[j];
      });
      std::vector<std::int32_t> expected;
      for (const int i : order) {
        const Box& candidate = boxes[static_cast<std::size_t>(i)];
        const int kind = classes[static_cast<std::size_t>(i)];
        const bool hit = std::any_of(expected.begin(), expected.end(), [&](std::int32_t j) {
          const Box& other = boxes[static_cast<std::size_t>(j)];
          if (p.agnostic == 0 && classes[static_cast<std::size_t>(j)] != kind) return false;
          if (nearness == Nearness::kCircle) {
            return std::hypot(candidate[0] - other[0], candidate[1] - other[1]) <= p.limit[kind];
          }
          return (nearness == Nearness::kRotated ? rotated_iou(other.data(), candidate.data())
                                                 : axis_aligned_iou(other.data(), candidate.data())) > p.limit[kind];
        });
        if (!hit && static_cast<int>(expected.size()) < p.most) expected.push_back(i);
      }
      ASSERT_EQ(out.index, expected);
      for (std::size_t k = 0; k < expected.size(); ++k) {
        const auto row = static_cast<std::size_t>(expected[k]);
        EXPECT_EQ(out.scores[k], scores[row]);
        EXPECT_EQ(out.classes[k], classes[row]);
        EXPECT_TRUE(std::equal(boxes[row].begin(), boxes[row].end(), out.boxes.begin() + 9 * k));
      }
    }
  }
}

TEST(Nms, BoxesThatAreNoneDoNotStay) {
  NmsParams p;
  p.capacity = 8;
  p.most = 8;
  const Box good = box(50, 0, 4, 2, 0);
  const std::vector<Box> boxes{box(kNaN, 0, 4, 2, 0), good, good, good, box(0, 0, 4, 2, 0)};
  const Suppressed out =
      run_nms(Nearness::kRotated, p, boxes, {1, kNaN, 0.5F, 0.9F, 0.1F}, {0, 0, -1, kMaxBoxClasses, 3});
  EXPECT_EQ(out.index, (std::vector<std::int32_t>{4}));
  const Suppressed none = run_nms(Nearness::kCircle, p, {}, {}, {});
  EXPECT_EQ(none.kept, 0);
}

struct Maps {
  std::vector<float> heat, offset, height, size, rotation, velocity;
};
struct Decoded {
  std::vector<float> boxes, scores;
  std::vector<std::int32_t> classes, cells;
  std::int32_t dropped = -1, count = -1;
};
Maps random_maps(const TopKDecodeParams& p, unsigned seed) {
  RandomBoxes random(seed);
  const auto pixels = static_cast<std::size_t>(p.h * p.w);
  const auto fill = [&](std::size_t channels, float low, float high) {
    std::vector<float> out(channels * pixels);
    for (float& v : out) v = random.uniform(low, high);
    return out;
  };
  Maps m{fill(static_cast<std::size_t>(p.classes), -3, 3),
         fill(2, 0, 1),
         fill(1, -1, 1),
         fill(3, -1, 2),
         fill(2, -1, 1),
         fill(2, -9, 9)};
  for (float& v : m.heat) v = std::floor(v * 4) / 4;  // with ties
  return m;
}
Decoded run_decode(const TopKDecodeParams& p, const Maps& m) {
  EXPECT_EQ(invalid(p), nullptr);
  const auto k = static_cast<std::size_t>(p.k);
  Decoded out{std::vector<float>(k * 9),
              std::vector<float>(k),
              std::vector<std::int32_t>(k),
              std::vector<std::int32_t>(k),
              -1,
              -1};
  top_k_decode(p, {m.heat.data(), m.offset.data(), m.height.data(), m.size.data(), m.rotation.data(),
                   p.velocity == 1 ? m.velocity.data() : nullptr, out.boxes.data(), out.scores.data(),
                   out.classes.data(), out.cells.data(), &out.dropped, &out.count});
  return out;
}

TEST(TopKDecode, TakesTheBestPeaks) {
  for (const int k : {7, 40, 2000}) {
    TopKDecodeParams p;
    p.classes = 3;
    p.h = 17;
    p.w = 23;
    p.k = k;
    p.velocity = 1;
    p.logit_min = -0.5F;
    p.origin[0] = -9;
    p.origin[1] = 4;
    p.cell_m[0] = 0.8F;
    p.cell_m[1] = 0.4F;
    p.yaw_norm_min[1] = 0.3F;
    const Maps m = random_maps(p, 20);
    struct Candidate {
      float logit;
      int category, cell;
    };
    std::vector<Candidate> candidates;
    for (int c = 0; c < p.classes; ++c) {
      for (int cell = 0; cell < p.h * p.w; ++cell) {
        const auto heat = [&](int v, int u) { return m.heat[static_cast<std::size_t>((c * p.h + v) * p.w + u)]; };
        const int y = cell / p.w, x = cell % p.w;
        bool peak = heat(y, x) > p.logit_min;
        for (int v = std::max(0, y - 1); v <= std::min(p.h - 1, y + 1); ++v) {
          for (int u = std::max(0, x - 1); u <= std::min(p.w - 1, x + 1); ++u) {
            if (v * p.w + u < cell) peak = peak && heat(v, u) < heat(y, x);
            if (v * p.w + u > cell) peak = peak && heat(v, u) <= heat(y, x);
          }
        }
        const double norm = std::hypot(m.rotation[static_cast<std::size_t>(cell)],
                                       m.rotation[static_cast<std::size_t>(p.h * p.w + cell)]);
        if (peak && norm >= p.yaw_norm_min[c]) candidates.push_back({heat(y, x), c, cell});
      }
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.logit > b.logit; });
    const Decoded out = run_decode(p, m);
    const std::size_t expected = std::min<std::size_t>(candidates.size(), static_cast<std::size_t>(k));
    ASSERT_EQ(out.count, static_cast<std::int32_t>(expected));
    EXPECT_EQ(out.dropped, static_cast<std::int32_t>(candidates.size() - expected));
    for (std::size_t i = 0; i < expected; ++i) {
      const Candidate& c = candidates[i];
      ASSERT_EQ(out.classes[i], c.category);
      ASSERT_EQ(out.cells[i], c.cell);
      EXPECT_NEAR(out.scores[i], 1 / (1 + std::exp(-c.logit)), 1e-6);
      const float* const b = &out.boxes[9 * i];
      const auto cell = static_cast<std::size_t>(c.cell), pixels = static_cast<std::size_t>(p.h * p.w);
      EXPECT_NEAR(b[0], (static_cast<float>(c.cell % p.w) + m.offset[cell]) * 0.8F - 9, 1e-5);
      EXPECT_NEAR(b[1], (static_cast<float>(c.cell / p.w) + m.offset[pixels + cell]) * 0.4F + 4, 1e-5);
      EXPECT_EQ(b[2], m.height[cell]);
      for (std::size_t d = 0; d < 3; ++d) EXPECT_NEAR(b[3 + d], std::exp(m.size[d * pixels + cell]), 1e-5);
      EXPECT_NEAR(b[6], std::atan2(m.rotation[cell], m.rotation[pixels + cell]), 1e-6);
      EXPECT_EQ(b[7], m.velocity[cell]);
      EXPECT_EQ(b[8], m.velocity[pixels + cell]);
    }
  }
}

TEST(TopKDecode, WhatIsNoNumberIsNoBox) {
  TopKDecodeParams p;
  p.h = p.w = 4;
  p.k = 16;
  Maps m = random_maps(p, 21);
  std::fill(m.heat.begin(), m.heat.end(), -1.0F);
  m.heat[0] = m.heat[2] = m.heat[8] = m.heat[10] = 1;
  EXPECT_EQ(run_decode(p, m).count, 4);
  m.heat[0] = std::numeric_limits<float>::infinity();
  m.offset[2] = kNaN;
  m.size[8] = 1000;  // e^1000 m
  EXPECT_EQ(run_decode(p, m).count, 1);
  std::fill(m.heat.begin(), m.heat.end(), kNaN);
  EXPECT_EQ(run_decode(p, m).count, 0);
}

}  // namespace
}  // namespace takt::kernels::reference
