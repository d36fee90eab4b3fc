// Kalman filters of one object on the ground: prediction, gate and update for each motion model. A filter is a motion
// row (kernels/tracking.h).
//
// Constant velocity: x y vx vy, process noise white acceleration of spectral density q in its continuous form
// (Bar-Shalom, Li, Kirubarajan 2001, "Estimation with Applications to Tracking and Navigation", 6.2.2): predicting in
// two steps equals predicting in one. Turn rate (CTRV, ibid. 11.7): x y yaw v w, extended Kalman filter; the arc is
// exact, the noise of acceleration acts along the yaw of its middle.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/device_code.h"
#include "kernels/reference/elementary.h"
#include "kernels/tracking.h"

namespace takt::kernels::reference {
inline namespace TAKT_SIDE {

template <int states>
struct Filter {
  double state[states];
  double covariance[states][states];  // symmetric, positive semi-definite
};
using VelocityFilter = Filter<4>;
using TurnFilter = Filter<5>;
static_assert(sizeof(VelocityFilter) == sizeof(double) * motion_columns(MotionModel::kConstantVelocity));
static_assert(sizeof(TurnFilter) == sizeof(double) * motion_columns(MotionModel::kTurnRate));

// What one detection says: position; a range rate along a unit ray where there is one; a yaw, known up to a half turn,
// where there is one and the model has it.
struct Measurement {
  static constexpr int kMostRows = 4;
  double x = 0, y = 0;
  double noise_xx = 0, noise_xy = 0, noise_yy = 0;
  // >= 0: older than the state by this much. It is compared with the state taken back to its time, and the acceleration
  // that may have happened in between (density q) is added to its noise; the correlation of that noise with the state
  // is neglected, which makes the update more careful, never bolder.
  double lag = 0, q = 0;
  bool has_rate = false;
  double rate = 0, ray_x = 0, ray_y = 0, rate_variance = 0;
  bool has_yaw = false;
  double yaw = 0, yaw_variance = 0;
};

// How far a measurement lies from a state.
struct GateDistance {
  double distance2 = 0;        // squared Mahalanobis distance over all rows; 1e300 where it cannot be said
  double log_determinant = 0;  // of the covariance of the position residual, ln m^4
};

// Moves the state by dt seconds. A negative dt takes the mean back and adds the noise of |dt|.
TAKT_BOTH void predict(VelocityFilter& filter, double dt, const TrackerModel& model);
TAKT_BOTH void predict(TurnFilter& filter, double dt, const TrackerModel& model);

template <int states>
TAKT_BOTH GateDistance gate(const Filter<states>& filter, const Measurement& m);
// Joseph form, so that the covariance stays positive semi-definite. False, and nothing changed, when the covariance of
// the residual is not positive definite.
template <int states>
TAKT_BOTH bool update(Filter<states>& filter, const Measurement& m);

// A filter that knows a detection and nothing else.
TAKT_BOTH void begin(VelocityFilter& filter, const Detection& d, const TrackerModel& model);
TAKT_BOTH void begin(TurnFilter& filter, const Detection& d, const TrackerModel& model);

struct GroundVelocity {
  double x = 0, y = 0;
};
TAKT_FUNCTION GroundVelocity velocity_of(const VelocityFilter& f) { return {f.state[2], f.state[3]}; }
TAKT_FUNCTION GroundVelocity velocity_of(const TurnFilter& f) {
  return {f.state[3] * cos(f.state[2]), f.state[3] * sin(f.state[2])};
}

}  // namespace TAKT_SIDE
}  // namespace takt::kernels::reference
