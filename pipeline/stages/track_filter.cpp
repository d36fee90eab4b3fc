#include "pipeline/stages/track_filter.h"

#include <cmath>

#include "kernels/reference/elementary.h"

namespace takt::pipeline {

namespace {

using Matrix3 = std::array<std::array<double, 3>, 3>;
using Matrix4 = std::array<std::array<double, 4>, 4>;

// Covariance of white acceleration over dt >= 0, per axis: [position, cross; cross, velocity].
struct AxisNoise {
  double position, cross, velocity;
};
AxisNoise process_noise(double dt, double q) { return {q * dt * dt * dt / 3, q * dt * dt / 2, q * dt}; }

// Residual z - Hx and its covariance S = HPH' + R.
struct Residual {
  std::array<double, 3> value{};
  Matrix3 covariance{};
  std::array<std::array<double, 4>, 3> hp{};  // HP
};

Residual residual_of(const TrackFilter& filter, const Measurement& m) {
  Residual r;
  for (int i = 0; i < m.rows; ++i) {
    double predicted = 0;
    for (int k = 0; k < 4; ++k) {
      predicted += m.jacobian[i][k] * filter.state[k];
      double sum = 0;
      for (int j = 0; j < 4; ++j) sum += m.jacobian[i][j] * filter.covariance[j][k];
      r.hp[i][k] = sum;
    }
    r.value[i] = m.value[i] - predicted;
  }
  for (int i = 0; i < m.rows; ++i) {
    for (int j = 0; j < m.rows; ++j) {
      double sum = m.noise[i][j];
      for (int k = 0; k < 4; ++k) sum += r.hp[i][k] * m.jacobian[j][k];
      r.covariance[i][j] = sum;
    }
  }
  return r;
}

// Lower Cholesky factor of the leading n x n block. False when it is not positive definite.
bool cholesky(const Matrix3& a, int n, Matrix3& l) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j <= i; ++j) {
      double sum = a[i][j];
      for (int k = 0; k < j; ++k) sum -= l[i][k] * l[j][k];
      if (i == j) {
        if (!(sum > 0)) return false;
        l[i][i] = std::sqrt(sum);
      } else {
        l[i][j] = sum / l[j][j];
      }
    }
  }
  return true;
}

}  // namespace

Measurement Measurement::position(double x, double y, const GroundCovariance& noise, double lag_s, double q) {
  Measurement m;
  m.rows = 2;
  m.value = {x, y, 0};
  m.jacobian[0] = {1, 0, -lag_s, 0};
  m.jacobian[1] = {0, 1, 0, -lag_s};
  const double drift = process_noise(lag_s, q).position;
  m.noise[0] = {noise.xx + drift, noise.xy, 0};
  m.noise[1] = {noise.xy, noise.yy + drift, 0};
  return m;
}

void Measurement::add_range_rate(double rate, double ex, double ey, double variance, double lag_s, double q) {
  rows = 3;
  value[2] = rate;
  jacobian[2] = {0, 0, ex, ey};
  noise[2] = {0, 0, variance + process_noise(lag_s, q).velocity};
}

void TrackFilter::predict(double dt, double q) {
  state[0] += dt * state[2];
  state[1] += dt * state[3];
  // P = F P F', F adds dt * velocity to position.
  Matrix4& p = covariance;
  for (int a = 0; a < 2; ++a) {
    for (int k = 0; k < 4; ++k) p[a][k] += dt * p[a + 2][k];
  }
  for (int a = 0; a < 2; ++a) {
    for (int k = 0; k < 4; ++k) p[k][a] += dt * p[k][a + 2];
  }
  const AxisNoise noise = process_noise(std::fabs(dt), q);
  const double cross = dt < 0 ? -noise.cross : noise.cross;
  for (int a = 0; a < 2; ++a) {
    p[a][a] += noise.position;
    p[a][a + 2] += cross;
    p[a + 2][a] += cross;
    p[a + 2][a + 2] += noise.velocity;
  }
}

Gate TrackFilter::gate(const Measurement& m) const {
  const Residual r = residual_of(*this, m);
  Matrix3 l{};
  if (!cholesky(r.covariance, m.rows, l)) return {1e300, 0};
  Gate gate;
  std::array<double, 3> w{};  // L w = residual
  for (int i = 0; i < m.rows; ++i) {
    double sum = r.value[i];
    for (int k = 0; k < i; ++k) sum -= l[i][k] * w[k];
    w[i] = sum / l[i][i];
    gate.distance2 += w[i] * w[i];
  }
  gate.log_determinant = 2 * kernels::log(l[0][0] * l[1][1]);
  return gate;
}

bool TrackFilter::update(const Measurement& m) {
  const Residual r = residual_of(*this, m);
  Matrix3 l{};
  if (!cholesky(r.covariance, m.rows, l)) return false;
  // Gain K = P H' S^-1, row by row: S k' = (HP)' column.
  std::array<std::array<double, 3>, 4> gain{};
  for (int s = 0; s < 4; ++s) {
    std::array<double, 3> w{};
    for (int i = 0; i < m.rows; ++i) {
      double sum = r.hp[i][s];
      for (int k = 0; k < i; ++k) sum -= l[i][k] * w[k];
      w[i] = sum / l[i][i];
    }
    for (int i = m.rows - 1; i >= 0; --i) {
      double sum = w[i];
      for (int k = i + 1; k < m.rows; ++k) sum -= l[k][i] * gain[s][k];
      gain[s][i] = sum / l[i][i];
    }
  }
  for (int s = 0; s < 4; ++s) {
    for (int i = 0; i < m.rows; ++i) state[s] += gain[s][i] * r.value[i];
  }
  // P = (I - KH) P (I - KH)' + K R K'
  Matrix4 a{};
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      a[i][j] = i == j ? 1 : 0;
      for (int k = 0; k < m.rows; ++k) a[i][j] -= gain[i][k] * m.jacobian[k][j];
    }
  }
  Matrix4 ap{};
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      for (int k = 0; k < 4; ++k) ap[i][j] += a[i][k] * covariance[k][j];
    }
  }
  Matrix4 next{};
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      for (int k = 0; k < 4; ++k) next[i][j] += ap[i][k] * a[j][k];
      for (int k = 0; k < m.rows; ++k) {
        for (int n = 0; n < m.rows; ++n) next[i][j] += gain[i][k] * m.noise[k][n] * gain[j][n];
      }
    }
  }
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) covariance[i][j] = 0.5 * (next[i][j] + next[j][i]);
  }
  return true;
}

}  // namespace takt::pipeline
