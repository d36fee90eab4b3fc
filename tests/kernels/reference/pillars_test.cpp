// Features of pillars by hand, and the fused layer against features, product, activation and maximum apart.
#include "kernels/reference/pillars.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace takt::kernels::reference {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::int64_t key(std::int64_t z, std::int64_t y, std::int64_t x) { return z << 42 | y << 21 | x; }

struct Grouped {
  std::vector<float> points;
  std::vector<std::int64_t> cells;
  std::vector<std::int32_t> ends, members;
  std::int32_t point_count = 0, pillar_count = 0, member_count = 0;

  [[nodiscard]] PillarOperands operands() const {
    return {points.data(), cells.data(), ends.data(), members.data(), &point_count, &pillar_count, &member_count};
  }
  // Room behind the counts, full of what must not be read.
  void poison(const PillarParams& p) {
    point_count = static_cast<std::int32_t>(points.size() / 5);
    pillar_count = static_cast<std::int32_t>(cells.size());
    member_count = static_cast<std::int32_t>(members.size());
    points.resize(static_cast<std::size_t>(p.points) * 5, kNaN);
    cells.resize(static_cast<std::size_t>(p.pillars), -1);
    ends.resize(static_cast<std::size_t>(p.pillars), 0x7fffffff);
    members.resize(static_cast<std::size_t>(p.members), 0x7fffffff);
  }
};

Grouped random_groups(const PillarParams& p, int pillars, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> unit(0, 1);
  std::uniform_int_distribution<int> points(1, p.most + 3);
  Grouped g;
  for (int v = 0; v < pillars; ++v) {
    const int x = v % 5, y = v / 5;
    g.cells.push_back(key(0, y, x));
    for (int i = points(engine); i > 0; --i) {
      g.members.push_back(static_cast<std::int32_t>(g.points.size() / 5));
      for (const double low : {p.min[0] + x * p.size[0], p.min[1] + y * p.size[1], p.min[2]}) {
        g.points.push_back(static_cast<float>(low) + unit(engine) * 0.3F);
      }
      g.points.push_back(unit(engine));
      g.points.push_back(0.1F);
    }
    g.ends.push_back(static_cast<std::int32_t>(g.members.size()));
  }
  g.poison(p);
  return g;
}

PillarParams grid(std::int32_t most, std::int32_t columns, std::int32_t centre, std::int32_t channels = 0) {
  PillarParams p;
  p.points = 400;
  p.pillars = 40;
  p.members = 400;
  p.most = most;
  p.columns = columns;
  p.centre = centre;
  p.channels = channels;
  p.min[0] = -2;
  p.min[1] = 1;
  p.min[2] = -3;
  p.size[0] = p.size[1] = 0.32;
  p.size[2] = 4;
  EXPECT_EQ(invalid(p), nullptr);
  return p;
}

TEST(PillarFeatures, AreThoseOfThePaper) {
  const PillarParams p = grid(8, 5, 3);
  Grouped g;
  g.points = {-1.9F, 1.1F, 0, 0.5F, 0.1F, -1.7F, 1.3F, 1, 0.25F, 0};
  g.members = {1, 0};
  g.cells = {key(0, 0, 0)};
  g.ends = {2};
  g.poison(p);
  std::vector<float> out(40 * 8 * 11, kNaN);
  pillar_features(p, g.operands(), out.data(), 0, 1);
  const std::vector<float> first{-1.7F, 1.3F, 1, 0.25F, 0, 0.1F, 0.1F, 0.5F, 0.14F, 0.14F, 2};
  const std::vector<float> second{-1.9F, 1.1F, 0, 0.5F, 0.1F, -0.1F, -0.1F, -0.5F, -0.06F, -0.06F, 1};
  for (std::size_t f = 0; f < 11; ++f) {
    EXPECT_NEAR(out[f], first[f], 1e-6) << f;
    EXPECT_NEAR(out[11 + f], second[f], 1e-6) << f;
    EXPECT_EQ(out[22 + f], 0);
  }
  EXPECT_EQ(out[7 * 11 + 10], 0);
  EXPECT_TRUE(std::isnan(out[8 * 11]));  // the next pillar is none
}

TEST(PillarEncode, IsFeaturesProductActivationAndMaximum) {
  for (const auto& [columns, centre] : {std::pair{4, 2}, std::pair{4, 3}, std::pair{5, 3}}) {
    const PillarParams p = grid(5, columns, centre, 24), plain = grid(5, columns, centre);
    const Grouped g = random_groups(p, 33, static_cast<unsigned>(columns * centre));
    const auto features = static_cast<std::size_t>(takt::kernels::pillar_features(p));
    std::mt19937 engine(9);
    std::uniform_real_distribution<float> weight(-1, 1);
    std::vector<float> weights(features * 24), bias(24);
    for (float& w : weights) w = weight(engine);
    for (float& b : bias) b = weight(engine);
    std::vector<float> rows(40 * 5 * features, kNaN), encoded(40 * 24, kNaN);
    for (int part = 0; part < 3; ++part) pillar_features(plain, g.operands(), rows.data(), part, 3);
    for (int part = 0; part < 2; ++part) {
      pillar_encode(p, g.operands(), weights.data(), bias.data(), encoded.data(), part, 2);
    }
    for (std::size_t v = 0; v < 33; ++v) {
      for (std::size_t c = 0; c < 24; ++c) {
        float expected = 0;
        for (std::size_t i = 0; i < 5; ++i) {
          double sum = bias[c];
          for (std::size_t f = 0; f < features; ++f)
            sum += double{rows[(v * 5 + i) * features + f]} * weights[f * 24 + c];
          expected = std::max(expected, static_cast<float>(sum));
        }
        ASSERT_NEAR(encoded[v * 24 + c], expected, 2e-6) << v << " " << c;
      }
    }
    EXPECT_TRUE(std::isnan(encoded[33 * 24]));
  }
}

TEST(PillarFeatures, HostileGroupsReadNothingOutside) {
  const PillarParams p = grid(5, 4, 3);
  Grouped g = random_groups(p, 33, 3);
  std::mt19937_64 engine(4);
  std::vector<float> out(40 * 5 * 10);
  for (int round = 0; round < 200; ++round) {
    g.ends[engine() % 33] = static_cast<std::int32_t>(engine());
    g.members[engine() % 400] = static_cast<std::int32_t>(engine());
    g.cells[engine() % 33] = static_cast<std::int64_t>(engine());
    (round % 2 == 0 ? g.pillar_count : g.member_count) = static_cast<std::int32_t>(engine());
    pillar_features(p, g.operands(), out.data(), 0, 1);
  }
}

}  // namespace
}  // namespace takt::kernels::reference
