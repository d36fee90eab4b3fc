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
                             const ClockMap<TableDomain, SensorDomain>& sensor_from_table,
                             std::vector<Duration> hyperperiods)
    : problem_(problem), map_(sensor_from_table), newest_(kNone), judged_(kNone) {
  const sched::PhaseLock& lock = *problem.phase_lock;
  sched::PhaseLock without_filter = lock;
  without_filter.filter = {};
  const sched::Sensor& sensor = problem.sensors[lock.sensor];
  if (hyperperiods.empty()) hyperperiods.push_back(problem.hyperperiod);
  for (const Duration h : hyperperiods) {
    largest_.push_back(
        {h, sched::largest_correction(lock, sensor, h), sched::largest_correction(without_filter, sensor, h)});
  }
}

void PhaseFollower::latched(SensorTime stamp) {
  std::int64_t seen = newest_.load();
  while (seen < stamp.ns && !newest_.compare_exchange_weak(seen, stamp.ns)) {
  }
}

bool PhaseFollower::silent(const sched::Turn& next) const {
  const sched::PhaseLock& lock = *problem_.phase_lock;
  const std::int64_t newest = newest_.load();
  if (newest == kNone) return false;
  return map_.map_unchecked(next.begin) - SensorTime{newest} > lock.hold_over + problem_.sensors[lock.sensor].period;
}

Duration PhaseFollower::correction(const sched::Turn& next) {
  const sched::PhaseLock& lock = *problem_.phase_lock;
  const sched::Sensor& sensor = problem_.sensors[lock.sensor];
  const Largest& largest = largest_[next.mode];
  if (next.stay != stay_) {
    stay_ = next.stay;
    began_ = next.begin - largest.hyperperiod * static_cast<std::int64_t>(next.in_mode);
    offset_ = estimate_ = rate_ = {};
    judged_ = kNone;
  }
  const std::int64_t newest = newest_.load();
  if (newest == kNone) return {};
  Duration correction = rate_;
  if (newest == judged_) {
    // Held over: the table goes on at the rate seen last.
    if (silent(next)) ++lost_;
  } else {
    const std::int64_t in_table = newest - map_.to_origin.ns + map_.from_origin.ns - began_.ns - offset_.ns;
    const std::int64_t planned = sensor.phase->offset.ns + sensor.phase->jitter.ns / 2;
    const Duration predicted = estimate_ + (judged_ == kNone ? Duration{} : rate_);
    const Duration surprise{centred(in_table - planned, sensor.period.ns) - predicted.ns};
    estimate_ = predicted + Duration{surprise.ns / kAlphaInverse};
    rate_ = std::clamp(rate_ + Duration{surprise.ns / kBetaInverse}, -largest.rate, largest.rate);
    judged_ = newest;
    correction = std::clamp(estimate_, -largest.correction, largest.correction);
    estimate_ = estimate_ - correction;
  }
  offset_ += correction;
  return correction;
}

}  // namespace takt::pipeline
