#include "pipeline/assembly/phase_follower.h"

#include <algorithm>
#include <limits>

namespace takt::pipeline {
namespace {

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();

// Of an exponential filter: a new value counts for a quarter, so that the jitter of single stamps hardly moves the
// table.
constexpr std::int64_t kFilter = 4;

// Into [-period / 2, period / 2).
std::int64_t centred(std::int64_t value, std::int64_t period) {
  const std::int64_t shifted = value + period / 2;
  return shifted - (shifted >= 0 ? shifted / period : -((period - 1 - shifted) / period)) * period - period / 2;
}

}  // namespace

PhaseFollower::PhaseFollower(const sched::Problem& problem,
                             const ClockMap<TableDomain, SensorDomain>& sensor_from_table)
    : problem_(problem), map_(sensor_from_table), newest_(kNone), judged_(kNone) {}

void PhaseFollower::latched(SensorTime stamp) {
  std::int64_t seen = newest_.load();
  while (seen < stamp.ns && !newest_.compare_exchange_weak(seen, stamp.ns)) {
  }
}

Duration PhaseFollower::correction(std::uint64_t h) {
  const sched::PhaseLock& lock = *problem_.phase_lock;
  const sched::Sensor& sensor = problem_.sensors[lock.sensor];
  const std::int64_t newest = newest_.load();
  if (newest == judged_) {
    // Held over: the table runs on as it is. The clock map is that of the run, so this is the time since the last
    // stamp.
    const SensorTime now =
        map_.map_unchecked(TableTime{static_cast<std::int64_t>(h) * problem_.hyperperiod.ns} + offset_);
    if (newest != kNone && now - SensorTime{newest} > lock.hold_over + sensor.period) ++lost_;
    return {};
  }
  judged_ = newest;
  const std::int64_t in_table = newest - map_.to_origin.ns + map_.from_origin.ns - offset_.ns;
  const std::int64_t planned = sensor.phase->offset.ns + sensor.phase->jitter.ns / 2;
  const std::int64_t error = centred(in_table - planned, sensor.period.ns);
  estimate_.ns += (error - estimate_.ns) / kFilter;
  const Duration largest = sched::largest_correction(lock, sensor, problem_.hyperperiod);
  const Duration correction = std::clamp(estimate_, -largest, largest);
  estimate_ = estimate_ - correction;
  offset_ += correction;
  return correction;
}

}  // namespace takt::pipeline
