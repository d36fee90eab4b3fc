// The parts under the tracker, each against an independent statement of what it must give.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/reference/elementary.h"
#include "pipeline/stages/association.h"
#include "pipeline/stages/ego_trajectory.h"
#include "pipeline/stages/track_filter.h"

namespace takt::pipeline {
namespace {

using Vector4 = std::array<double, 4>;
using Matrix4 = std::array<Vector4, 4>;

// Gauss-Jordan with row pivots: not how the filter solves anything.
Matrix4 inverse(Matrix4 a) {
  Matrix4 b{};
  for (int i = 0; i < 4; ++i) b[i][i] = 1;
  for (int c = 0; c < 4; ++c) {
    int pivot = c;
    for (int r = c + 1; r < 4; ++r) {
      if (std::fabs(a[r][c]) > std::fabs(a[pivot][c])) pivot = r;
    }
    std::swap(a[c], a[pivot]);
    std::swap(b[c], b[pivot]);
    const double scale = 1 / a[c][c];
    for (int k = 0; k < 4; ++k) a[c][k] *= scale, b[c][k] *= scale;
    for (int r = 0; r < 4; ++r) {
      if (r == c) continue;
      const double f = a[r][c];
      for (int k = 0; k < 4; ++k) a[r][k] -= f * a[c][k], b[r][k] -= f * b[c][k];
    }
  }
  return b;
}

TrackFilter prior() {
  TrackFilter f;
  f.state = {3, -2, 1, 0.5};
  f.covariance = {{{4, 0.5, 0, 0}, {0.5, 3, 0, 0}, {0, 0, 25, 1}, {0, 0, 1, 16}}};
  return f;
}

struct Sample {
  double t, x, y, rate, ex, ey;
};
std::vector<Sample> samples() {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(0, 0.3);
  std::vector<Sample> out;
  for (double t : {0.1, 0.15, 0.3, 0.32, 0.6}) {
    const double a = 0.4 + t;
    out.push_back({t, 3 + 4 * t + noise(random), -2 + 1.5 * t + noise(random),
                   4 * std::cos(a) + 1.5 * std::sin(a) + noise(random), std::cos(a), std::sin(a)});
  }
  return out;
}
constexpr GroundCovariance kNoise{0.2, 0.05, 0.4};
constexpr double kRateVariance = 0.25;

// Without process noise the filter must give the weighted least squares solution over all measurements and the prior.
TEST(TrackFilter, EqualsBatchLeastSquares) {
  TrackFilter filter = prior();
  double now = 0;
  for (const Sample& s : samples()) {
    filter.predict(s.t - now, 0);
    now = s.t;
    Measurement m = Measurement::position(s.x, s.y, kNoise, 0, 0);
    m.add_range_rate(s.rate, s.ex, s.ey, kRateVariance, 0, 0);
    ASSERT_TRUE(filter.update(m));
  }

  // State at time 0 as unknown: information = P0^-1 + sum H'R^-1 H.
  Matrix4 information = inverse(prior().covariance);
  Vector4 right{};
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) right[i] += information[i][j] * prior().state[j];
  }
  const double det = kNoise.xx * kNoise.yy - kNoise.xy * kNoise.xy;
  for (const Sample& s : samples()) {
    const Vector4 hx{1, 0, s.t, 0}, hy{0, 1, 0, s.t}, hv{0, 0, s.ex, s.ey};
    for (int i = 0; i < 4; ++i) {
      const double wx = (kNoise.yy * hx[i] - kNoise.xy * hy[i]) / det;
      const double wy = (kNoise.xx * hy[i] - kNoise.xy * hx[i]) / det;
      const double wv = hv[i] / kRateVariance;
      for (int j = 0; j < 4; ++j) information[i][j] += wx * hx[j] + wy * hy[j] + wv * hv[j];
      right[i] += wx * s.x + wy * s.y + wv * s.rate;
    }
  }
  const Matrix4 covariance = inverse(information);
  Vector4 start{};
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) start[i] += covariance[i][j] * right[j];
  }
  const Vector4 end{start[0] + now * start[2], start[1] + now * start[3], start[2], start[3]};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(filter.state[i], end[i], 1e-9);
  EXPECT_NEAR(filter.covariance[2][2], covariance[2][2], 1e-9);
  EXPECT_NEAR(filter.covariance[0][0], covariance[0][0] + 2 * now * covariance[0][2] + now * now * covariance[2][2],
              1e-9);
}

TEST(TrackFilter, PredictingTwiceEqualsPredictingOnce) {
  TrackFilter a = prior(), b = prior();
  a.predict(0.07, 3);
  a.predict(0.13, 3);
  b.predict(0.2, 3);
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(a.state[i], b.state[i], 1e-12);
    for (int j = 0; j < 4; ++j) EXPECT_NEAR(a.covariance[i][j], b.covariance[i][j], 1e-12);
  }
}

// Without process noise the order in which measurements arrive cannot matter.
TEST(TrackFilter, LateMeasurementEqualsOneInOrder) {
  const std::vector<Sample> all = samples();
  TrackFilter ordered = prior(), late = prior();
  const auto measure = [](const Sample& s, double lag) {
    Measurement m = Measurement::position(s.x, s.y, kNoise, lag, 0);
    m.add_range_rate(s.rate, s.ex, s.ey, kRateVariance, lag, 0);
    return m;
  };
  ordered.predict(0.1, 0);
  ASSERT_TRUE(ordered.update(measure(all[0], 0)));
  ordered.predict(0.2, 0);
  ASSERT_TRUE(ordered.update(measure(all[2], 0)));
  late.predict(0.3, 0);
  ASSERT_TRUE(late.update(measure(all[2], 0)));
  ASSERT_TRUE(late.update(measure(all[0], 0.2)));
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(ordered.state[i], late.state[i], 1e-9);
    for (int j = 0; j < 4; ++j) EXPECT_NEAR(ordered.covariance[i][j], late.covariance[i][j], 1e-9);
  }
}

TEST(TrackFilter, LateMeasurementWithAccelerationCountsLess) {
  TrackFilter calm = prior(), restless = prior();
  ASSERT_TRUE(calm.update(Measurement::position(5, 0, kNoise, 0.2, 0)));
  ASSERT_TRUE(restless.update(Measurement::position(5, 0, kNoise, 0.2, 50)));
  EXPECT_LT(std::fabs(restless.state[0] - 3), std::fabs(calm.state[0] - 3));
  EXPECT_GT(restless.covariance[0][0], calm.covariance[0][0]);
}

TEST(TrackFilter, GateIsTheMahalanobisDistance) {
  TrackFilter f = prior();
  const Measurement m = Measurement::position(4, -1, kNoise, 0, 0);
  const double a = 4 + kNoise.xx, b = 0.5 + kNoise.xy, d = 3 + kNoise.yy, det = a * d - b * b;
  const Gate gate = f.gate(m);
  EXPECT_NEAR(gate.distance2, (d - 2 * b + a) / det, 1e-12);  // residual (1, 1)
  EXPECT_NEAR(gate.log_determinant, std::log(det), 1e-12);
}

TEST(TrackFilter, RangeRateMovesVelocityAlongTheRayOnly) {
  TrackFilter f;
  f.covariance = {{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 36, 0}, {0, 0, 0, 36}}};
  Measurement m = Measurement::position(0, 0, {1, 0, 1}, 0, 0);
  m.add_range_rate(10, 0.6, 0.8, 1e-6, 0, 0);
  ASSERT_TRUE(f.update(m));
  EXPECT_NEAR(f.state[2], 6, 1e-3);
  EXPECT_NEAR(f.state[3], 8, 1e-3);
  // Across the ray nothing was learnt.
  const double across = 0.64 * f.covariance[2][2] - 2 * 0.48 * f.covariance[2][3] + 0.36 * f.covariance[3][3];
  EXPECT_NEAR(across, 36, 1e-3);
}

TEST(TrackFilter, RefusesAMeasurementWithoutNoise) {
  TrackFilter f;  // covariance zero
  const TrackFilter before = f;
  EXPECT_FALSE(f.update(Measurement::position(1, 1, {0, 0, 0}, 0, 0)));
  EXPECT_EQ(f.state, before.state);
}

constexpr double kForbidden = 1e12;

// Every subset of pairs, by recursion over the rows.
double brute_force(const std::vector<std::vector<double>>& cost, double unassigned, std::size_t row, unsigned used) {
  if (row == cost.size()) return 0;
  double best = unassigned + brute_force(cost, unassigned, row + 1, used);
  for (std::size_t c = 0; c < cost[row].size(); ++c) {
    if ((used >> c & 1U) != 0 || cost[row][c] >= kForbidden) continue;
    best = std::min(best, cost[row][c] + brute_force(cost, unassigned, row + 1, used | 1U << c));
  }
  return best;
}

TEST(Assignment, EqualsBruteForceOnRandomMatrices) {
  std::mt19937 random(11);
  Assignment assignment(6, 7);
  for (int round = 0; round < 2000; ++round) {
    const std::size_t rows = random() % 7, columns = random() % 8;
    // Small whole numbers, so that ties are common; some costs negative, some pairs forbidden.
    std::vector<std::vector<double>> cost(rows, std::vector<double>(columns, kForbidden));
    assignment.reset(rows, columns);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) {
        if (random() % 3 == 0) continue;
        cost[r][c] = static_cast<double>(random() % 9) - 3;
        assignment.allow(r, c, cost[r][c]);
      }
    }
    const double unassigned = static_cast<double>(random() % 6);
    const auto columns_of = assignment.solve(unassigned);
    ASSERT_EQ(columns_of.size(), rows);
    double sum = 0;
    std::vector<int> seen;
    for (std::size_t r = 0; r < rows; ++r) {
      const int c = columns_of[r];
      if (c == Assignment::kUnassigned) {
        sum += unassigned;
        continue;
      }
      ASSERT_LT(cost[r][c], kForbidden);
      seen.push_back(c);
      sum += cost[r][c];
    }
    std::sort(seen.begin(), seen.end());
    ASSERT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end()) << "a column was given twice";
    ASSERT_DOUBLE_EQ(sum, brute_force(cost, unassigned, 0, 0));
  }
}

TEST(Assignment, TiesGoToTheLowerRowAndColumn) {
  Assignment assignment(3, 3);
  assignment.reset(3, 3);
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t c = 0; c < 3; ++c) assignment.allow(r, c, 1);
  }
  const auto columns = assignment.solve(5);
  EXPECT_EQ(std::vector<int>(columns.begin(), columns.end()), (std::vector<int>{0, 1, 2}));
}

sensors::EgoMotion motion(double x, double y, double yaw, double speed, double rate) {
  sensors::EgoMotion m;
  m.position[0] = x;
  m.position[1] = y;
  m.orientation[0] = std::cos(yaw / 2);
  m.orientation[3] = std::sin(yaw / 2);
  m.velocity[0] = speed;
  m.angular_velocity[2] = rate;
  return m;
}

// An arc of radius 20 m: pose at time t.
sensors::EgoMotion on_arc(double t) {
  const double rate = 0.5, radius = 20, a = rate * t;
  return motion(2e5 + radius * std::sin(a), -3e5 + radius * (1 - std::cos(a)), a, radius * rate, rate);
}

TEST(EgoTrajectory, FollowsAnArcBetweenAndBeyondItsSamples) {
  EgoTrajectory ego;
  for (int i = 0; i <= 20; ++i) ASSERT_TRUE(ego.add(i * 50'000'000, on_arc(i * 0.05), 5));
  for (double t : {0.501, 0.73, 0.99, 1.0, 1.1}) {
    const PlanarPose p = ego.pose(static_cast<std::int64_t>(t * 1e9));
    EXPECT_NEAR(p.x, 20 * std::sin(0.5 * t), 0.01) << t;
    EXPECT_NEAR(p.y, 20 * (1 - std::cos(0.5 * t)), 0.01) << t;
    EXPECT_NEAR(p.yaw, 0.5 * t, 1e-6) << t;
  }
}

TEST(EgoTrajectory, JumpOfTheWorldPoseMovesNothing) {
  EgoTrajectory ego;
  ASSERT_TRUE(ego.add(0, motion(0, 0, 0, 10, 0), 5));
  ASSERT_TRUE(ego.add(100'000'000, motion(100, 50, 1, 10, 0), 5));
  const PlanarPose p = ego.pose(200'000'000);
  EXPECT_NEAR(p.x, 2, 1e-9);
  EXPECT_NEAR(p.y, 0, 1e-9);
  EXPECT_NEAR(p.yaw, 0, 1e-9);
}

TEST(EgoTrajectory, LeavesOutWhatIsOldOrNotFinite) {
  EgoTrajectory ego;
  ASSERT_TRUE(ego.add(100, on_arc(0), 5));
  EXPECT_FALSE(ego.add(100, on_arc(0), 5));
  EXPECT_FALSE(ego.add(50, on_arc(0), 5));
  sensors::EgoMotion bad = on_arc(0.1);
  bad.velocity[1] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(ego.add(200, bad, 5));
  bad = on_arc(0.1);
  for (double& q : bad.orientation) q = 0;
  EXPECT_FALSE(ego.add(200, bad, 5));
  EXPECT_EQ(ego.newest_ns(), 100);
}

TEST(PlanarTransform, InverseUndoes) {
  const PlanarTransform t({3, -4, 1.2});
  double x = 7, y = 8;
  t.point(x, y);
  t.inverse_point(x, y);
  EXPECT_NEAR(x, 7, 1e-12);
  EXPECT_NEAR(y, 8, 1e-12);
}

}  // namespace
}  // namespace takt::pipeline
