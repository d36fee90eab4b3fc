// What the tracking operators compute, each part against an independent statement of what it must give.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/reference/assignment.h"
#include "kernels/reference/motion.h"
#include "kernels/reference/tracking.h"
#include "tests/support/hungarian.h"

namespace takt::kernels::reference {
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

VelocityFilter prior() { return {{3, -2, 1, 0.5}, {{4, 0.5, 0, 0}, {0.5, 3, 0, 0}, {0, 0, 25, 1}, {0, 0, 1, 16}}}; }
Matrix4 matrix(const VelocityFilter& f) {
  Matrix4 m{};
  for (int i = 0; i < 4; ++i) std::copy_n(f.covariance[i], 4, m[static_cast<std::size_t>(i)].begin());
  return m;
}
TrackerModel restless(double density) {
  TrackerModel model;
  model.acceleration_density = density;
  return model;
}
struct GroundCovariance {
  double xx, xy, yy;
};
Measurement position(double x, double y, const GroundCovariance& noise, double lag, double q) {
  Measurement m;
  m.x = x;
  m.y = y;
  m.noise_xx = noise.xx;
  m.noise_xy = noise.xy;
  m.noise_yy = noise.yy;
  m.lag = lag;
  m.q = q;
  return m;
}
void add_range_rate(Measurement& m, double rate, double ex, double ey, double variance) {
  m.has_rate = true;
  m.rate = rate;
  m.ray_x = ex;
  m.ray_y = ey;
  m.rate_variance = variance;
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
  VelocityFilter filter = prior();
  double now = 0;
  for (const Sample& s : samples()) {
    predict(filter, s.t - now, restless(0));
    now = s.t;
    Measurement m = position(s.x, s.y, kNoise, 0, 0);
    add_range_rate(m, s.rate, s.ex, s.ey, kRateVariance);
    ASSERT_TRUE(update(filter, m));
  }

  // State at time 0 as unknown: information = P0^-1 + sum H'R^-1 H.
  Matrix4 information = inverse(matrix(prior()));
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
  VelocityFilter a = prior(), b = prior();
  predict(a, 0.07, restless(3));
  predict(a, 0.13, restless(3));
  predict(b, 0.2, restless(3));
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(a.state[i], b.state[i], 1e-12);
    for (int j = 0; j < 4; ++j) EXPECT_NEAR(a.covariance[i][j], b.covariance[i][j], 1e-12);
  }
}

// Without process noise the order in which measurements arrive cannot matter.
TEST(TrackFilter, LateMeasurementEqualsOneInOrder) {
  const std::vector<Sample> all = samples();
  VelocityFilter ordered = prior(), late = prior();
  const auto measure = [](const Sample& s, double lag) {
    Measurement m = position(s.x, s.y, kNoise, lag, 0);
    add_range_rate(m, s.rate, s.ex, s.ey, kRateVariance);
    return m;
  };
  predict(ordered, 0.1, restless(0));
  ASSERT_TRUE(update(ordered, measure(all[0], 0)));
  predict(ordered, 0.2, restless(0));
  ASSERT_TRUE(update(ordered, measure(all[2], 0)));
  predict(late, 0.3, restless(0));
  ASSERT_TRUE(update(late, measure(all[2], 0)));
  ASSERT_TRUE(update(late, measure(all[0], 0.2)));
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(ordered.state[i], late.state[i], 1e-9);
    for (int j = 0; j < 4; ++j) EXPECT_NEAR(ordered.covariance[i][j], late.covariance[i][j], 1e-9);
  }
}

TEST(TrackFilter, LateMeasurementWithAccelerationCountsLess) {
  VelocityFilter calm = prior(), uneasy = prior();
  ASSERT_TRUE(update(calm, position(5, 0, kNoise, 0.2, 0)));
  ASSERT_TRUE(update(uneasy, position(5, 0, kNoise, 0.2, 50)));
  EXPECT_LT(std::fabs(uneasy.state[0] - 3), std::fabs(calm.state[0] - 3));
  EXPECT_GT(uneasy.covariance[0][0], calm.covariance[0][0]);
}

TEST(TrackFilter, GateIsTheMahalanobisDistance) {
  VelocityFilter f = prior();
  const Measurement m = position(4, -1, kNoise, 0, 0);
  const double a = 4 + kNoise.xx, b = 0.5 + kNoise.xy, d = 3 + kNoise.yy, det = a * d - b * b;
  const GateDistance distance = gate(f, m);
  EXPECT_NEAR(distance.distance2, (d - 2 * b + a) / det, 1e-12);  // residual (1, 1)
  EXPECT_NEAR(distance.log_determinant, std::log(det), 1e-12);
}

TEST(TrackFilter, RangeRateMovesVelocityAlongTheRayOnly) {
  VelocityFilter f{{}, {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 36, 0}, {0, 0, 0, 36}}};
  Measurement m = position(0, 0, {1, 0, 1}, 0, 0);
  add_range_rate(m, 10, 0.6, 0.8, 1e-6);
  ASSERT_TRUE(update(f, m));
  EXPECT_NEAR(f.state[2], 6, 1e-3);
  EXPECT_NEAR(f.state[3], 8, 1e-3);
  // Across the ray nothing was learnt.
  const double across = 0.64 * f.covariance[2][2] - 2 * 0.48 * f.covariance[2][3] + 0.36 * f.covariance[3][3];
  EXPECT_NEAR(across, 36, 1e-3);
}

TEST(TrackFilter, RefusesAMeasurementWithoutNoise) {
  VelocityFilter f{};  // covariance zero
  EXPECT_FALSE(update(f, position(1, 1, {0, 0, 0}, 0, 0)));
  for (const double v : f.state) EXPECT_EQ(v, 0);
}

// --- turn rate -----------------------------------------------------------------------------------------------------

TurnFilter on_a_bend() {
  TurnFilter f{};
  const double state[5] = {4, -1, 0.7, 9, 0.5};
  std::copy_n(state, 5, f.state);
  for (int i = 0; i < 5; ++i) f.covariance[i][i] = 0.5 + 0.1 * i;
  f.covariance[0][3] = f.covariance[3][0] = 0.2;
  return f;
}

TEST(TurnFilter, DrivesTheArc) {
  TurnFilter f = on_a_bend();
  predict(f, 1.3, restless(1));
  const double radius = 9 / 0.5;
  EXPECT_NEAR(f.state[0], 4 + radius * (std::sin(0.7 + 0.65) - std::sin(0.7)), 1e-12);
  EXPECT_NEAR(f.state[1], -1 - radius * (std::cos(0.7 + 0.65) - std::cos(0.7)), 1e-12);
  EXPECT_NEAR(f.state[2], 0.7 + 0.65, 1e-12);
  predict(f, -1.3, restless(1));
  EXPECT_NEAR(f.state[0], 4, 1e-12);
  EXPECT_NEAR(f.state[1], -1, 1e-12);
}

TEST(TurnFilter, GoesStraightWithoutAJumpAtSmallTurnRates) {
  for (const double w : {0.0, 1e-9, 1.99e-4 / 0.1, 2.01e-4 / 0.1}) {
    TurnFilter f = on_a_bend();
    f.state[4] = w;
    predict(f, 0.1, restless(0));
    EXPECT_NEAR(f.state[0], 4 + 0.9 * std::cos(0.7 + 0.05 * w), 1e-8);
  }
}

// The covariance must be the one that the Jacobian by differences gives; process noise of both kinds is symmetric.
TEST(TurnFilter, CovarianceFollowsTheJacobian) {
  for (const double w : {0.5, -0.02, 1e-7}) {
    TurnFilter f = on_a_bend();
    f.state[4] = w;
    const double dt = 0.4;
    TrackerModel quiet;
    quiet.acceleration_density = quiet.turn_density = 0;
    double jacobian[5][5];
    for (int k = 0; k < 5; ++k) {
      TurnFilter up = f, down = f;
      up.state[k] += 1e-5;
      down.state[k] -= 1e-5;
      predict(up, dt, quiet);
      predict(down, dt, quiet);
      for (int i = 0; i < 5; ++i) jacobian[i][k] = (up.state[i] - down.state[i]) / 2e-5;
    }
    TurnFilter moved = f;
    predict(moved, dt, quiet);
    for (int i = 0; i < 5; ++i) {
      for (int j = 0; j < 5; ++j) {
        double expected = 0;
        for (int a = 0; a < 5; ++a) {
          for (int b = 0; b < 5; ++b) expected += jacobian[i][a] * f.covariance[a][b] * jacobian[j][b];
        }
        EXPECT_NEAR(moved.covariance[i][j], expected, 1e-6) << i << j;
        EXPECT_EQ(moved.covariance[i][j], moved.covariance[j][i]);
      }
    }
  }
}

// Fed with exact positions and yaws of an arc from a wrong start, it finds speed and turn rate; the yaw may be given
// the other way round.
TEST(TurnFilter, FindsSpeedAndTurnRate) {
  TurnFilter f{};
  TrackerModel model;
  model.acceleration_density = model.turn_density = 0.01;
  Detection d;
  d.noise_xx = d.noise_yy = 0.01;
  d.has_box = 1;
  d.yaw = 0;
  begin(f, d, model);
  for (int n = 1; n <= 60; ++n) {
    const double t = 0.1 * n, radius = 20, a = 0.4 * t;
    predict(f, 0.1, model);
    Measurement m = position(radius * std::sin(a), radius * (1 - std::cos(a)), {0.01, 0, 0.01}, 0, 0);
    m.has_yaw = true;
    m.yaw = wrap_angle(n % 2 == 0 ? a : a + kPi);
    m.yaw_variance = 0.01;
    ASSERT_TRUE(update(f, m));
  }
  EXPECT_NEAR(f.state[3], 8, 0.05);
  EXPECT_NEAR(f.state[4], 0.4, 0.01);
  const GroundVelocity v = velocity_of(f);
  EXPECT_NEAR(v.x, 8 * std::cos(2.4), 0.1);
  EXPECT_NEAR(v.y, 8 * std::sin(2.4), 0.1);
}

// --- assignment ----------------------------------------------------------------------------------------------------

constexpr double kForbidden = std::numeric_limits<double>::infinity();
using Costs = std::vector<std::vector<double>>;

std::vector<int> solve(const Costs& cost, std::size_t columns, double unassigned) {
  std::vector<double> flat;
  for (const auto& row : cost) flat.insert(flat.end(), row.begin(), row.end());
  std::vector<double> scratch((assign_scratch_bytes(cost.size(), columns) + 7) / 8,
                              std::numeric_limits<double>::quiet_NaN());
  std::vector<int> out(cost.size(), 77);
  assign(cost.size(), columns, flat.data(), unassigned, out.data(), reinterpret_cast<std::byte*>(scratch.data()));
  return out;
}

// Total cost; fails where a column is given twice or a pair is not allowed.
double total(const Costs& cost, const std::vector<int>& column_of, double unassigned) {
  double sum = 0;
  std::vector<int> seen;
  for (std::size_t r = 0; r < cost.size(); ++r) {
    const int c = column_of[r];
    if (c == kUnassigned) {
      sum += unassigned;
      continue;
    }
    EXPECT_LT(cost[r][static_cast<std::size_t>(c)], kForbidden);
    seen.push_back(c);
    sum += cost[r][static_cast<std::size_t>(c)];
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end()) << "a column was given twice";
  return sum;
}

// Every subset of pairs, by recursion over the rows.
double brute_force(const Costs& cost, double unassigned, std::size_t row, unsigned used) {
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
  for (int round = 0; round < 2000; ++round) {
    const std::size_t rows = random() % 7, columns = random() % 8;
    // Small whole numbers, so that ties are common; some costs negative, some pairs forbidden.
    Costs cost(rows, std::vector<double>(columns, kForbidden));
    for (auto& row : cost) {
      for (double& c : row) {
        if (random() % 3 != 0) c = static_cast<double>(random() % 9) - 3;
      }
    }
    const double unassigned = static_cast<double>(random() % 6);
    ASSERT_DOUBLE_EQ(total(cost, solve(cost, columns, unassigned), unassigned), brute_force(cost, unassigned, 0, 0));
  }
}

// The Hungarian method of tests/support shares nothing with it.
TEST(Assignment, EqualsAnIndependentSolverOnLargeMatrices) {
  std::mt19937 random(12);
  for (int round = 0; round < 12; ++round) {
    const std::size_t rows = 40 + random() % 89, columns = 60 + random() % 197;
    const unsigned density = round % 3 == 0 ? 1 : round % 3 == 1 ? 4 : 20;  // of allowed pairs: one in so many
    Costs cost(rows, std::vector<double>(columns, kForbidden));
    for (auto& row : cost) {
      for (double& c : row) {
        if (random() % density == 0) c = static_cast<double>(random() % 100000) * 1e-3 - 20;
      }
    }
    const double unassigned = round % 2 == 0 ? 24 : 90;
    const double own = total(cost, solve(cost, columns, unassigned), unassigned);
    const double other = total(cost, takt::testing::hungarian(cost, unassigned), unassigned);
    EXPECT_NEAR(own, other, 1e-9 * (1 + std::fabs(other))) << rows << "x" << columns;
  }
}

TEST(Assignment, TiesGoToTheLowerRowAndColumn) {
  EXPECT_EQ(solve(Costs(3, std::vector<double>(3, 1)), 3, 5), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(solve(Costs(1, std::vector<double>(4, 5)), 4, 5), (std::vector<int>{0})) << "a column before none";
}

TEST(Assignment, NumbersThatAreNoneEndAndAssignNothingTwice) {
  std::mt19937 random(13);
  constexpr double kHostile[] = {kForbidden, -kForbidden, std::numeric_limits<double>::quiet_NaN(), 1e308, -1e308, 0,
                                 1};
  for (int round = 0; round < 300; ++round) {
    Costs cost(1 + random() % 9, std::vector<double>(1 + random() % 9));
    for (auto& row : cost) {
      for (double& c : row) c = kHostile[random() % std::size(kHostile)];
    }
    for (const double unassigned : kHostile) {
      const std::vector<int> column_of = solve(cost, cost[0].size(), unassigned);
      std::vector<int> seen;
      for (const int c : column_of) {
        ASSERT_GE(c, kUnassigned);
        ASSERT_LT(c, static_cast<int>(cost[0].size()));
        if (c != kUnassigned) seen.push_back(c);
      }
      std::sort(seen.begin(), seen.end());
      ASSERT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
    }
  }
}

// --- the vehicle ---------------------------------------------------------------------------------------------------

class Ego {
 public:
  Ego() { std::fill(std::begin(stamps_), std::end(stamps_), kNever); }
  // False when nothing changed.
  bool add(std::int64_t stamp, const EgoReading& reading, double jump_limit) {
    std::int64_t stamps[kEgoSamples];
    EgoSample samples[kEgoRows];
    ego_motion(stamp, reading, jump_limit, stamps_, samples_, stamps, samples);
    const bool changed = !std::equal(std::begin(stamps), std::end(stamps), stamps_);
    std::copy(std::begin(stamps), std::end(stamps), stamps_);
    std::copy(std::begin(samples), std::end(samples), samples_);
    return changed;
  }
  [[nodiscard]] GroundPose pose(std::int64_t stamp) const { return ego_pose(stamps_, samples_, stamp); }

 private:
  std::int64_t stamps_[kEgoSamples];
  EgoSample samples_[kEgoRows] = {};
};

EgoReading motion(double x, double y, double yaw, double speed, double rate) {
  EgoReading m;
  m.position[0] = x;
  m.position[1] = y;
  m.orientation[0] = std::cos(yaw / 2);
  m.orientation[3] = std::sin(yaw / 2);
  m.velocity[0] = speed;
  m.angular_velocity[2] = rate;
  return m;
}

// An arc of radius 20 m: pose at time t.
EgoReading on_arc(double t) {
  const double rate = 0.5, radius = 20, a = rate * t;
  return motion(2e5 + radius * std::sin(a), -3e5 + radius * (1 - std::cos(a)), a, radius * rate, rate);
}

TEST(EgoMotion, FollowsAnArcBetweenAndBeyondItsSamples) {
  Ego ego;
  for (int i = 0; i <= 20; ++i) ASSERT_TRUE(ego.add(i * 50'000'000, on_arc(i * 0.05), 5));
  for (double t : {0.501, 0.73, 0.99, 1.0, 1.1}) {
    const GroundPose p = ego.pose(static_cast<std::int64_t>(t * 1e9));
    EXPECT_NEAR(p.x, 20 * std::sin(0.5 * t), 0.01) << t;
    EXPECT_NEAR(p.y, 20 * (1 - std::cos(0.5 * t)), 0.01) << t;
    EXPECT_NEAR(p.yaw, 0.5 * t, 1e-6) << t;
  }
}

TEST(EgoMotion, JumpOfTheWorldPoseMovesNothing) {
  Ego ego;
  ASSERT_TRUE(ego.add(0, motion(0, 0, 0, 10, 0), 5));
  ASSERT_TRUE(ego.add(100'000'000, motion(100, 50, 1, 10, 0), 5));
  const GroundPose p = ego.pose(200'000'000);
  EXPECT_NEAR(p.x, 2, 1e-9);
  EXPECT_NEAR(p.y, 0, 1e-9);
  EXPECT_NEAR(p.yaw, 0, 1e-9);
}

TEST(EgoMotion, LeavesOutWhatIsOldOrNotFinite) {
  Ego ego;
  ASSERT_TRUE(ego.add(100, on_arc(0), 5));
  EXPECT_FALSE(ego.add(100, on_arc(0), 5));
  EXPECT_FALSE(ego.add(50, on_arc(0), 5));
  EgoReading bad = on_arc(0.1);
  bad.velocity[1] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(ego.add(200, bad, 5));
  bad = on_arc(0.1);
  for (double& q : bad.orientation) q = 0;
  EXPECT_FALSE(ego.add(200, bad, 5));
  EXPECT_NEAR(ego.pose(100).x, 0, 1e-12);
}

TEST(EgoMotion, HostileStampsAreOnlyNumbers) {
  Ego ego;
  EXPECT_FALSE(ego.add(kNever, on_arc(0), 5));
  ASSERT_TRUE(ego.add(kNever + 1, on_arc(0), 5));
  ASSERT_TRUE(ego.add(std::numeric_limits<std::int64_t>::max(), on_arc(1), 5));
  for (const std::int64_t t : {kNever, kNever + 1, std::int64_t{0}, std::numeric_limits<std::int64_t>::max()}) {
    static_cast<void>(ego.pose(t));
  }
}

}  // namespace
}  // namespace takt::kernels::reference
