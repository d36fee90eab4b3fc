// Kalman filter of one object on the ground with constant velocity: state x y vx vy in a frame that does not move.
//
// Process noise is white acceleration of spectral density q, in its continuous form (Bar-Shalom, Li, Kirubarajan 2001,
// "Estimation with Applications to Tracking and Navigation", 6.2.2): predicting in two steps equals predicting in one.
#pragma once

#include <array>

namespace takt::pipeline {

// Covariance of a position on the ground, m^2.
struct GroundCovariance {
  double xx = 0, xy = 0, yy = 0;
};

// What one detection says about a state: value = jacobian * state + noise. Row 0, 1: position, m; row 2, where there is
// one: range rate along a ray, m/s.
struct Measurement {
  int rows = 2;
  std::array<std::array<double, 4>, 3> jacobian{};
  std::array<double, 3> value{};
  std::array<std::array<double, 3>, 3> noise{};

  // `lag_s` >= 0: the measurement is older than the state by this much. It is compared with the state taken back to
  // its time, and the acceleration that may have happened in between (density `q`) is added to its noise; the
  // correlation of that noise with the state is neglected, which makes the update more careful, never bolder.
  static Measurement position(double x, double y, const GroundCovariance& noise, double lag_s, double q);
  // Adds v . e = rate; (ex, ey) is a unit vector.
  void add_range_rate(double rate, double ex, double ey, double variance, double lag_s, double q);
};

// How far a measurement lies from a state.
struct Gate {
  double distance2 = 0;        // squared Mahalanobis distance over all rows
  double log_determinant = 0;  // of the covariance of the position residual (rows 0 and 1), ln m^4
};

class TrackFilter {
 public:
  std::array<double, 4> state{};                      // x y (m), vx vy (m/s)
  std::array<std::array<double, 4>, 4> covariance{};  // symmetric, positive semi-definite

  // Moves the state by dt seconds. A negative dt takes the mean back and adds the noise of |dt|.
  void predict(double dt, double q);
  [[nodiscard]] Gate gate(const Measurement& m) const;
  // Joseph form, so that the covariance stays positive semi-definite. False, and nothing changed, when the covariance
  // of the residual is not positive definite.
  bool update(const Measurement& m);
};

}  // namespace takt::pipeline
