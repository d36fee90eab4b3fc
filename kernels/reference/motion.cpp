#include "kernels/reference/motion.h"

namespace takt::kernels::reference {
inline namespace TAKT_SIDE {

namespace {

constexpr int kRows = Measurement::kMostRows;

// Covariance of white acceleration over dt >= 0, per axis: [position, cross; cross, velocity].
struct AxisNoise {
  double position, cross, velocity;
};
TAKT_BOTH AxisNoise process_noise(double dt, double q) { return {q * dt * dt * dt / 3, q * dt * dt / 2, q * dt}; }

// A measurement about a state: what is expected, how that changes with the state, and the noise of what was measured.
template <int states>
struct Observation {
  int rows = 2;
  double jacobian[kRows][states] = {};
  double residual[kRows] = {};
  double noise[kRows][kRows] = {};
};

TAKT_BOTH double dot(const double* a, const double* b, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

template <int states>
TAKT_BOTH void set_noise(const Measurement& m, Observation<states>& o) {
  const AxisNoise drift = process_noise(m.lag, m.q);
  o.noise[0][0] = m.noise_xx + drift.position;
  o.noise[0][1] = o.noise[1][0] = m.noise_xy;
  o.noise[1][1] = m.noise_yy + drift.position;
  if (m.has_rate) o.noise[2][2] = m.rate_variance + drift.velocity;
}

TAKT_BOTH Observation<4> observe(const VelocityFilter& filter, const Measurement& m) {
  Observation<4> o;
  set_noise(m, o);
  o.jacobian[0][0] = o.jacobian[1][1] = 1;
  o.jacobian[0][2] = o.jacobian[1][3] = -m.lag;
  o.residual[0] = m.x - dot(o.jacobian[0], filter.state, 4);
  o.residual[1] = m.y - dot(o.jacobian[1], filter.state, 4);
  if (!m.has_rate) return o;
  o.rows = 3;
  o.jacobian[2][2] = m.ray_x;
  o.jacobian[2][3] = m.ray_y;
  o.residual[2] = m.rate - dot(o.jacobian[2], filter.state, 4);
  return o;
}

TAKT_BOTH Observation<5> observe(const TurnFilter& filter, const Measurement& m) {
  Observation<5> o;
  set_noise(m, o);
  const double c = cos(filter.state[2]), s = sin(filter.state[2]), v = filter.state[3];
  o.jacobian[0][0] = o.jacobian[1][1] = 1;
  o.jacobian[0][2] = m.lag * v * s;
  o.jacobian[0][3] = -m.lag * c;
  o.jacobian[1][2] = -m.lag * v * c;
  o.jacobian[1][3] = -m.lag * s;
  o.residual[0] = m.x - (filter.state[0] - m.lag * v * c);
  o.residual[1] = m.y - (filter.state[1] - m.lag * v * s);
  if (m.has_rate) {
    o.rows = 3;
    o.jacobian[2][2] = v * (m.ray_y * c - m.ray_x * s);
    o.jacobian[2][3] = m.ray_x * c + m.ray_y * s;
    o.residual[2] = m.rate - v * o.jacobian[2][3];
  }
  if (m.has_yaw) {
    const int row = o.rows++;
    o.jacobian[row][2] = 1;
    double turn = wrap_angle(m.yaw - (filter.state[2] - m.lag * filter.state[4]));
    if (std::fabs(turn) > kPi / 2) turn = wrap_angle(turn + kPi);
    o.jacobian[row][4] = -m.lag;
    o.residual[row] = turn;
    o.noise[row][row] = m.yaw_variance;
  }
  return o;
}

// S = HPH' + R and HP.
template <int states>
struct Innovation {
  double covariance[kRows][kRows] = {};
  double hp[kRows][states] = {};
};
template <int states>
TAKT_BOTH Innovation<states> innovation_of(const Filter<states>& filter, const Observation<states>& o) {
  Innovation<states> r;
  for (int i = 0; i < o.rows; ++i) {
    for (int k = 0; k < states; ++k) {
      double sum = 0;
      for (int j = 0; j < states; ++j) sum += o.jacobian[i][j] * filter.covariance[j][k];
      r.hp[i][k] = sum;
    }
  }
  for (int i = 0; i < o.rows; ++i) {
    for (int j = 0; j < o.rows; ++j) {
      double sum = o.noise[i][j];
      for (int k = 0; k < states; ++k) sum += r.hp[i][k] * o.jacobian[j][k];
      r.covariance[i][j] = sum;
    }
  }
  return r;
}

// Lower Cholesky factor of the leading n x n block. False when it is not positive definite.
TAKT_BOTH bool cholesky(const double (&a)[kRows][kRows], int n, double (&l)[kRows][kRows]) {
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

TAKT_BOTH void predict(VelocityFilter& filter, double dt, const TrackerModel& model) {
  filter.state[0] += dt * filter.state[2];
  filter.state[1] += dt * filter.state[3];
  // P = F P F', F adds dt * velocity to position.
  double(&p)[4][4] = filter.covariance;
  for (int a = 0; a < 2; ++a) {
    for (int k = 0; k < 4; ++k) p[a][k] += dt * p[a + 2][k];
  }
  for (int a = 0; a < 2; ++a) {
    for (int k = 0; k < 4; ++k) p[k][a] += dt * p[k][a + 2];
  }
  const AxisNoise noise = process_noise(std::fabs(dt), model.acceleration_density);
  const double cross = dt < 0 ? -noise.cross : noise.cross;
  for (int a = 0; a < 2; ++a) {
    p[a][a] += noise.position;
    p[a][a + 2] += cross;
    p[a + 2][a] += cross;
    p[a + 2][a + 2] += noise.velocity;
  }
}

TAKT_BOTH void predict(TurnFilter& filter, double dt, const TrackerModel& model) {
  double(&x)[5] = filter.state;
  double(&p)[5][5] = filter.covariance;
  // The chord of an arc: its length is dt v sin(h) / h, its direction that of the middle; h is half of the turn.
  const double h = 0.5 * dt * x[4];
  const bool straight = std::fabs(h) < 1e-4;
  const double share = straight ? 1 - h * h / 6 : sin(h) / h;
  const double share_by_h = straight ? -h / 3 : (cos(h) - share) / h;
  const double c = cos(x[2] + h), s = sin(x[2] + h);
  const double chord = dt * x[3] * share;
  const double chord_by_w = dt * x[3] * share_by_h * 0.5 * dt;
  double f[5][5] = {};
  for (int i = 0; i < 5; ++i) f[i][i] = 1;
  f[0][2] = -chord * s;
  f[0][3] = dt * share * c;
  f[0][4] = chord_by_w * c - 0.5 * dt * chord * s;
  f[1][2] = chord * c;
  f[1][3] = dt * share * s;
  f[1][4] = chord_by_w * s + 0.5 * dt * chord * c;
  f[2][4] = dt;
  double fp[5][5] = {};
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 5; ++j) {
      for (int k = 0; k < 5; ++k) fp[i][j] += f[i][k] * p[k][j];
    }
  }
  double next[5][5] = {};
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 5; ++j) {
      for (int k = 0; k < 5; ++k) next[i][j] += fp[i][k] * f[j][k];
    }
  }
  x[0] += chord * c;
  x[1] += chord * s;
  x[2] = wrap_angle(x[2] + dt * x[4]);
  const AxisNoise along = process_noise(std::fabs(dt), model.acceleration_density);
  const AxisNoise turn = process_noise(std::fabs(dt), model.turn_density);
  const double sign = dt < 0 ? -1 : 1;
  next[0][0] += along.position * c * c;
  next[0][1] += along.position * c * s;
  next[1][0] += along.position * c * s;
  next[1][1] += along.position * s * s;
  next[0][3] += sign * along.cross * c;
  next[3][0] += sign * along.cross * c;
  next[1][3] += sign * along.cross * s;
  next[3][1] += sign * along.cross * s;
  next[3][3] += along.velocity;
  next[2][2] += turn.position;
  next[2][4] += sign * turn.cross;
  next[4][2] += sign * turn.cross;
  next[4][4] += turn.velocity;
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 5; ++j) p[i][j] = 0.5 * (next[i][j] + next[j][i]);
  }
}

template <int states>
TAKT_BOTH GateDistance gate(const Filter<states>& filter, const Measurement& m) {
  const Observation<states> o = observe(filter, m);
  const Innovation<states> r = innovation_of(filter, o);
  double l[kRows][kRows] = {};
  if (!cholesky(r.covariance, o.rows, l)) return {1e300, 0};
  GateDistance out;
  double w[kRows] = {};  // L w = residual
  for (int i = 0; i < o.rows; ++i) {
    double sum = o.residual[i];
    for (int k = 0; k < i; ++k) sum -= l[i][k] * w[k];
    w[i] = sum / l[i][i];
    out.distance2 += w[i] * w[i];
  }
  out.log_determinant = 2 * log(l[0][0] * l[1][1]);
  return out;
}

template <int states>
TAKT_BOTH bool update(Filter<states>& filter, const Measurement& m) {
  const Observation<states> o = observe(filter, m);
  const Innovation<states> r = innovation_of(filter, o);
  double l[kRows][kRows] = {};
  if (!cholesky(r.covariance, o.rows, l)) return false;
  // Gain K = P H' S^-1, row by row: S k' = (HP)' column.
  double gain[states][kRows] = {};
  for (int s = 0; s < states; ++s) {
    double w[kRows] = {};
    for (int i = 0; i < o.rows; ++i) {
      double sum = r.hp[i][s];
      for (int k = 0; k < i; ++k) sum -= l[i][k] * w[k];
      w[i] = sum / l[i][i];
    }
    for (int i = o.rows - 1; i >= 0; --i) {
      double sum = w[i];
      for (int k = i + 1; k < o.rows; ++k) sum -= l[k][i] * gain[s][k];
      gain[s][i] = sum / l[i][i];
    }
  }
  for (int s = 0; s < states; ++s) {
    for (int i = 0; i < o.rows; ++i) filter.state[s] += gain[s][i] * o.residual[i];
  }
  // P = (I - KH) P (I - KH)' + K R K'
  double a[states][states] = {};
  for (int i = 0; i < states; ++i) {
    for (int j = 0; j < states; ++j) {
      a[i][j] = i == j ? 1 : 0;
      for (int k = 0; k < o.rows; ++k) a[i][j] -= gain[i][k] * o.jacobian[k][j];
    }
  }
  double ap[states][states] = {};
  for (int i = 0; i < states; ++i) {
    for (int j = 0; j < states; ++j) {
      for (int k = 0; k < states; ++k) ap[i][j] += a[i][k] * filter.covariance[k][j];
    }
  }
  double next[states][states] = {};
  for (int i = 0; i < states; ++i) {
    for (int j = 0; j < states; ++j) {
      for (int k = 0; k < states; ++k) next[i][j] += ap[i][k] * a[j][k];
      for (int k = 0; k < o.rows; ++k) {
        for (int n = 0; n < o.rows; ++n) next[i][j] += gain[i][k] * o.noise[k][n] * gain[j][n];
      }
    }
  }
  for (int i = 0; i < states; ++i) {
    for (int j = 0; j < states; ++j) filter.covariance[i][j] = 0.5 * (next[i][j] + next[j][i]);
  }
  if constexpr (states == 5) filter.state[2] = wrap_angle(filter.state[2]);
  return true;
}

template TAKT_BOTH GateDistance gate(const VelocityFilter& filter, const Measurement& m);
template TAKT_BOTH GateDistance gate(const TurnFilter& filter, const Measurement& m);
template TAKT_BOTH bool update(VelocityFilter& filter, const Measurement& m);
template TAKT_BOTH bool update(TurnFilter& filter, const Measurement& m);

TAKT_BOTH void begin(VelocityFilter& filter, const Detection& d, const TrackerModel& model) {
  filter = {};
  filter.state[0] = d.x;
  filter.state[1] = d.y;
  filter.covariance[0][0] = d.noise_xx;
  filter.covariance[0][1] = filter.covariance[1][0] = d.noise_xy;
  filter.covariance[1][1] = d.noise_yy;
  filter.covariance[2][2] = filter.covariance[3][3] = model.initial_speed_sigma * model.initial_speed_sigma;
}

TAKT_BOTH void begin(TurnFilter& filter, const Detection& d, const TrackerModel& model) {
  filter = {};
  filter.state[0] = d.x;
  filter.state[1] = d.y;
  filter.covariance[0][0] = d.noise_xx;
  filter.covariance[0][1] = filter.covariance[1][0] = d.noise_xy;
  filter.covariance[1][1] = d.noise_yy;
  const bool has_yaw = d.has_box != 0;
  if (has_yaw) filter.state[2] = d.yaw;
  filter.covariance[2][2] = has_yaw ? model.yaw_sigma * model.yaw_sigma : kPi * kPi;
  filter.covariance[3][3] = model.initial_speed_sigma * model.initial_speed_sigma;
  filter.covariance[4][4] = model.initial_turn_sigma * model.initial_turn_sigma;
}

}  // namespace TAKT_SIDE
}  // namespace takt::kernels::reference
