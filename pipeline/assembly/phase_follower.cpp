#include "pipeline/assembly/phase_follower.h"

#include <algorithm>
#include <limits>

namespace takt::pipeline {
namespace {

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();

// An alpha-beta filter: it follows a constant drift without lag, and the jitter of single stamps hardly moves the
// table. Gains of the position and of the rate; critically damped for these (beta = alpha^2 / (2 - alpha), rounded).
constexpr std::int64_t kAlphaInverse = 2;
constexpr std::int64_t kBetaInverse = 6;

// Into [-period / 2, period / 2).
std::int64_t centred(std::int64_t value, std::int64_t period) {
  const std::int64_t shifted = value + period / 2;
  return shifted - (shifted >= 0 ? shifted / period : -((period - 1 - shifted) / period)) * period - period / 2;
}

}  // namespace

PhaseFollower::PhaseFollower(const sched::Problem& problem,
                             const ClockMap<TableDomain, SensorDomain>& sensor_from_table)
    : problem_(problem), map_(sensor_from_table), newest_(kNone), judged_(kNone) {
  sched::PhaseLock without_filter = *problem.phase_lock;
  const sched::Sensor& sensor = problem.sensors[without_filter.sensor];
  largest_correction_ = sched::largest_correction(without_filter, sensor, problem.hyperperiod);
  without_filter.filter = {};
  largest_rate_ = sched::largest_correction(without_filter, sensor, problem.hyperperiod);
}

void PhaseFollower::latched(SensorTime stamp) {
  std::int64_t seen = newest_.load();
  while (seen < stamp.ns && !newest_.compare_exchange_weak(seen, stamp.ns)) {
  }
}

Duration PhaseFollower::correction(std::uint64_t h) {
  const sched::PhaseLock& lock = *problem_.phase_lock;
  const sched::Sensor& sensor = problem_.sensors[lock.sensor];
  const std::int64_t newest = newest_.load();
  if (newest == kNone) return {};
  Duration correction = rate_;
  if (newest == judged_) {
    // Held over: the table goes on at the rate seen last.
    const SensorTime now =
        map_.map_unchecked(TableTime{static_cast<std::int64_t>(h) * problem_.hyperperiod.ns} + offset_);
    if (now - SensorTime{newest} > lock.hold_over + sensor.period) ++lost_;
  } else {
    const std::int64_t in_table = newest - map_.to_origin.ns + map_.from_origin.ns - offset_.ns;
    const std::int64_t planned = sensor.phase->offset.ns + sensor.phase->jitter.ns / 2;
    const Duration predicted = estimate_ + (judged_ == kNone ? Duration{} : rate_);
    const Duration surprise{centred(in_table - planned, sensor.period.ns) - predicted.ns};
    estimate_ = predicted + Duration{surprise.ns / kAlphaInverse};
    rate_ = std::clamp(rate_ + Duration{surprise.ns / kBetaInverse}, -largest_rate_, largest_rate_);
    judged_ = newest;
    correction = std::clamp(estimate_, -largest_correction_, largest_correction_);
    estimate_ = estimate_ - correction;
  }
  offset_ += correction;
  return correction;
}

}  // namespace takt::pipeline
