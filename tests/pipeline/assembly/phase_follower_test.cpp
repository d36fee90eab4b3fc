#include "pipeline/assembly/phase_follower.h"

#include <gtest/gtest.h>
#include <cmath>
#include <cstdlib>

namespace takt::pipeline {
namespace {

constexpr Duration kPeriod{33'333'333};
constexpr Duration kPhase = milliseconds(5);

// A table of 100 ms, locked to a camera whose clock runs wrong by `drift_ppm` and whose stamps jitter.
struct World {
  World(double drift, Duration jitter) : drift_ppm(drift), stamp_jitter(jitter) {
    problem.hyperperiod = milliseconds(100);
    sched::Sensor camera;
    camera.name = "camera";
    camera.period = kPeriod;
    camera.drift_ppm = 100;
    camera.phase = sched::Sensor::Phase{kPhase, microseconds(60)};
    problem.sensors = {camera};
    problem.phase_lock =
        sched::PhaseLock{.sensor = 0, .gap = milliseconds(1), .filter = microseconds(50), .hold_over = seconds(1)};
    map.to_origin = SensorTime{1'700'000'000'000'000'000};
  }
  // Hyperperiod h as it would begin without another correction.
  [[nodiscard]] sched::Turn turn(std::uint64_t h) const {
    sched::Turn out;
    out.number = out.in_mode = h;
    out.begin = TableTime{static_cast<std::int64_t>(h) * problem.hyperperiod.ns + offset.ns};
    return out;
  }
  // The stamp of sample k, in table time of a free clock.
  [[nodiscard]] std::int64_t stamp(std::int64_t k) const {
    const auto at = static_cast<std::int64_t>(static_cast<double>(k * kPeriod.ns) * (1 + drift_ppm * 1e-6));
    return kPhase.ns + 30'000 + at + (k * 7919 % 3 - 1) * stamp_jitter.ns;
  }
  // Runs hyperperiods [first, last); where samples come, their distance from where they should be, largest of the
  // last 20.
  std::int64_t run(PhaseFollower& follower, std::uint64_t first, std::uint64_t last, bool samples) {
    std::int64_t worst = 0;
    for (std::uint64_t h = first; h < last; ++h) {
      const std::int64_t boundary = static_cast<std::int64_t>(h) * problem.hyperperiod.ns + offset.ns;
      while (stamp(next) < boundary - milliseconds(2).ns) {
        if (samples) follower.latched({stamp(next) + map.to_origin.ns});
        const std::int64_t off = stamp(next) - offset.ns - kPhase.ns - 30'000;
        const std::int64_t error = off - std::llround(static_cast<double>(off) / 1e8 * 3) * kPeriod.ns;
        // The period is rounded to whole nanoseconds: a third of one is left in each hyperperiod.
        if (h + 20 >= last) worst = std::max(worst, std::abs(error));
        ++next;
      }
      const Duration correction = follower.correction(turn(h));
      EXPECT_LE(std::abs(correction.ns),
                sched::largest_correction(*problem.phase_lock, problem.sensors[0], problem.hyperperiod).ns);
      offset += correction;
    }
    return worst;
  }

  const double drift_ppm;
  const Duration stamp_jitter;
  sched::Problem problem;
  ClockMap<TableDomain, SensorDomain> map;
  Duration offset;
  std::int64_t next = 0;
};

TEST(PhaseFollower, ADriftingReferenceStaysWhereTheTableExpectsIt) {
  for (const double drift : {80.0, -80.0, 0.0}) {
    World world(drift, {});
    PhaseFollower follower(world.problem, world.map);
    // After a minute a free clock would be off by 4.8 ms.
    EXPECT_LE(world.run(follower, 1, 600, true), microseconds(20).ns) << drift;
    EXPECT_NEAR(static_cast<double>(world.offset.ns), drift * 1e-6 * 60e9, 40'000) << drift;
    EXPECT_EQ(follower.lost(), 0U);
  }
}

TEST(PhaseFollower, JitterOfStampsHardlyMovesTheTable) {
  World world(0, microseconds(20));
  PhaseFollower follower(world.problem, world.map);
  world.run(follower, 1, 300, true);
  EXPECT_LE(std::abs(world.offset.ns), microseconds(25).ns);
}

TEST(PhaseFollower, WithoutItsReferenceTheTableHoldsOverAndSaysWhenThatEnds) {
  World world(80, {});
  PhaseFollower follower(world.problem, world.map);
  world.run(follower, 1, 300, true);
  // Half a second is within the hold-over; the rate seen last goes on.
  EXPECT_LE(world.run(follower, 300, 305, false), microseconds(30).ns);
  EXPECT_EQ(follower.lost(), 0U);
  world.run(follower, 305, 330, false);
  EXPECT_GT(follower.lost(), 10U);
  // It comes back, and is followed again.
  EXPECT_LE(world.run(follower, 330, 500, true), microseconds(20).ns);
}

TEST(PhaseFollower, BeforeTheFirstSampleNothingIsCorrected) {
  World world(80, {});
  PhaseFollower follower(world.problem, world.map);
  EXPECT_EQ(follower.correction(world.turn(1)), Duration{});
  EXPECT_EQ(follower.correction(world.turn(2)), Duration{});
}

}  // namespace
}  // namespace takt::pipeline
