// Jobs of several segments on units, under mutexes and beside each other; disparity limits; the phase lock: from the
// problem through synthesis to the validator and the walks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <functional>
#include <iostream>
#include <map>
#include <random>

#include "scheduler/analysis/change.h"
#include "scheduler/analysis/explain.h"
#include "scheduler/analysis/validate.h"
#include "scheduler/model/text.h"
#include "scheduler/synthesis/synthesis.h"
#include "tests/scheduler/analysis/simulation.h"
#include "tests/scheduler/synthesis/segments.h"

namespace takt::sched {
namespace {

using testing::AllOf;
using testing::HasSubstr;

void sort_slots(Schedule& schedule) {
  std::sort(schedule.slots.begin(), schedule.slots.end(), [](const Slot& a, const Slot& b) {
    return std::tie(a.start, a.stage, a.job, a.segment) < std::tie(b.start, b.stage, b.job, b.segment);
  });
}

// One stage at 10 Hz: submit 1 ms, copy 2 ms, GPU 5 ms with a guard of 1 ms, complete 1 ms; w = 1 ms, p = 0.5 ms.
Problem one_gpu_job() {
  Problem problem = test::single();
  problem.board.units = test::gpu_board().units;
  problem.stages[0].variants = {test::segmented_variant(
      "gpu", {test::on_cores(milliseconds(1)), test::on_unit(test::kToDevice, milliseconds(2)),
              test::on_unit(test::kGpu, milliseconds(5), milliseconds(1)), test::on_cores(milliseconds(1))})};
  return problem;
}

TEST(Segments, EachHasItsSlotAndTheLastOnePublishes) {
  const Problem problem = one_gpu_job();
  const Answer answer = synthesize(problem);
  ASSERT_EQ(answer.verdict, Verdict::kFeasible) << answer.reason;
  const Schedule& schedule = *answer.schedule;
  ASSERT_TRUE(validate(problem, schedule)) << validate(problem, schedule).error().message;
  ASSERT_EQ(schedule.slots.size(), 4u);
  constexpr std::int64_t kLengthsUs[] = {2000, 3000, 6000, 2500};  // w + budget, the last with p
  for (std::uint32_t i = 0; i < 4; ++i) {
    const Slot& slot = schedule.slots[i];
    EXPECT_EQ(slot.segment, i);
    EXPECT_EQ(slot.cores.empty(), i == 1 || i == 2);
    const std::int64_t ns = schedule.clock.end_at(0, slot.end).ns - schedule.clock.start_at(0, slot.start).ns;
    EXPECT_GE(ns, kLengthsUs[i] * 1000);
    EXPECT_LE(ns, kLengthsUs[i] * 1000 + 2000);
    if (i > 0) {
      EXPECT_EQ(slot.start, schedule.slots[i - 1].end);  // nothing to wait for
    }
  }
  EXPECT_EQ(schedule.slots[1].unit, test::kToDevice);
  EXPECT_EQ(schedule.slots[2].unit, test::kGpu);
  // Latency: a whole period for the sample just missed, then from the first latch to the last publication.
  const Duration span{schedule.clock.end_at(0, schedule.slots[3].end).ns -
                      schedule.clock.start_at(0, schedule.slots[0].start).ns};
  EXPECT_EQ(schedule.bounds[0].bounds[0], span + milliseconds(100));
  EXPECT_EQ(schedule.bounds[0].bounds[0], walk(problem, schedule, 0).bounds[0]);
  // The core is idle while copy and GPU are at work.
  EXPECT_NEAR(core_loads(problem, schedule)[0].share, 0.045, 1e-3);
  const std::vector<UnitLoad> units = unit_loads(problem, schedule);
  EXPECT_NEAR(units[test::kGpu].share, 0.07, 1e-3);  // guard included
  EXPECT_NEAR(units[test::kToHost].share, 0.0, 1e-9);
}

TEST(Segments, BudgetsOfAllSegmentsGrowTogether) {
  const Problem problem = one_gpu_job();
  const Answer answer = synthesize(problem);
  ASSERT_TRUE(answer.schedule);
  // Starts are kept and every segment ends where the next one begins, so nothing may grow.
  EXPECT_NEAR(budget_scale(problem, *answer.schedule).all, 1.0, 1e-3);
  EXPECT_GT(resynthesised_scale(problem, *answer.schedule), 5.0);
}

// Two stages whose GPU segments fill most of the time: the table interleaves submission of one with the GPU of the
// other, which one slot per job could not.
TEST(Segments, AWaitingSegmentLeavesTheCoreToOthers) {
  Problem problem = one_gpu_job();
  problem.stages[0].variants = {test::segmented_variant(
      "gpu", {test::on_cores(milliseconds(4)), test::on_unit(test::kGpu, milliseconds(40), milliseconds(1)),
              test::on_cores(milliseconds(4))})};
  problem.stages.push_back(problem.stages[0]);
  problem.stages[1].name = "b";
  const Answer answer = synthesize(problem);
  ASSERT_EQ(answer.verdict, Verdict::kFeasible) << answer.reason;
  EXPECT_TRUE(validate(problem, *answer.schedule));
}

TEST(Segments, TablesOfRandomProblemsAreValidAndTheirBoundsHold) {
  int feasible = 0;
  int segmented = 0;
  int locked = 0;
  int limited = 0;
  int alone = 0;
  std::uint64_t samples = 0;
  for (std::uint64_t seed = 0; seed < 250; ++seed) {
    const Problem problem = test::random_units(seed);
    ASSERT_TRUE(check(problem)) << problem.name << ": " << check(problem).error().message;
    const Answer answer = synthesize(problem, {seed, 2000});
    EXPECT_EQ(answer.verdict == Verdict::kInfeasible, answer.certificate != nullptr);
    if (answer.verdict != Verdict::kFeasible) continue;
    const Schedule& schedule = *answer.schedule;
    const Status valid = validate(problem, schedule);
    ASSERT_TRUE(valid) << problem.name << ": " << valid.error().message;
    ++feasible;
    locked += problem.phase_lock ? 1 : 0;
    limited += problem.disparities.empty() ? 0 : 1;
    for (const Choice& choice : schedule.choices) {
      segmented += choice.budget.segments.empty() ? 0 : 1;
      alone += choice.budget.interference == Interference::kAny ? 0 : 1;
    }
    EXPECT_GE(budget_scale(problem, schedule).all, 0.999) << problem.name;
    for (std::uint32_t c = 0; c < problem.chains.size(); ++c) {
      test::Simulation simulation(problem, schedule, c, seed);
      test::Simulation::Worst worst;
      for (int run = 0; run < 20; ++run) simulation.run(6, worst);
      samples += worst.samples;
      for (std::size_t q = 0; q < kQuantities; ++q) {
        EXPECT_LE(worst.ns[q], schedule.bounds[c].bounds[q].ns) << problem.name << " " << problem.chains[c].name;
      }
    }
  }
  std::cout << feasible << " tables, " << segmented << " stages with segments, " << alone
            << " that bear less than any, " << locked << " phase locks, " << limited << " with disparity limits, "
            << samples << " samples\n";
  EXPECT_GT(feasible, 100);
  EXPECT_GT(segmented, 100);
  EXPECT_GT(alone, 10);
  EXPECT_GT(locked, 10);
  EXPECT_GE(limited, 5);
}

// Under a phase lock: every boundary corrected as far as it may be, and the reference lost for the whole hold-over. No
// sample is above the bound that says so, and some are above the one that leaves the corrections or the drift out.
TEST(PhaseLock, NoSampleIsAboveTheBoundsWithCorrectionsAndInHoldOver) {
  int tables = 0;
  std::uint64_t samples = 0;
  int corrections_seen = 0;
  int drift_seen = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Problem problem = test::random_units(seed, false);
    if (!problem.phase_lock || problem.hyperperiod > milliseconds(200)) continue;
    const Answer answer = synthesize(problem, {seed, 400});
    if (!answer.schedule) continue;
    ++tables;
    const Schedule& schedule = *answer.schedule;
    Problem unlocked = problem;
    unlocked.phase_lock.reset();  // the same walk without what corrections add
    const Problem held = holding_over(problem);
    const auto whole = static_cast<int>(problem.phase_lock->hold_over.ns / problem.hyperperiod.ns);
    for (std::uint32_t c = 0; c < problem.chains.size(); ++c) {
      const ChainBound bound = walk(problem, schedule, c);
      const ChainBound without = walk(unlocked, schedule, c);
      const ChainBound in_hold_over = walk(held, schedule, c);
      test::Simulation locked(problem, schedule, c, seed);
      locked.correct_the_phase();
      test::Simulation lost(problem, schedule, c, seed);
      lost.correct_the_phase();
      lost.lose_the_reference();
      test::Simulation::Worst worst;
      test::Simulation::Worst worst_lost;
      for (int run = 0; run < 30; ++run) {
        locked.run(6, worst);
        lost.run(whole - 1, worst_lost);
      }
      samples += worst.samples + worst_lost.samples;
      for (std::size_t q = 0; q < kQuantities; ++q) {
        const std::string what =
            problem.name + ", " + problem.chains[c].name + ", " + name_of(static_cast<Quantity>(q));
        EXPECT_LE(worst.ns[q], bound.bounds[q].ns) << what;
        EXPECT_LE(worst_lost.ns[q], in_hold_over.bounds[q].ns) << what << " in hold-over";
        corrections_seen += worst.ns[q] > without.bounds[q].ns ? 1 : 0;
        drift_seen += worst_lost.ns[q] > without.bounds[q].ns ? 1 : 0;
      }
    }
  }
  std::cout << tables << " tables, " << samples << " samples, corrections above " << corrections_seen
            << " bounds without them, hold-over above " << drift_seen << "\n";
  EXPECT_GE(tables, 20);
  EXPECT_GE(corrections_seen, 20);
  EXPECT_GE(drift_seen, 20);
}

TEST(Segments, SameProblemSameTable) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Problem problem = test::random_units(seed);
    const Answer a = synthesize(problem, {seed, 500});
    const Answer b = synthesize(problem, {seed, 500});
    ASSERT_EQ(a.schedule.has_value(), b.schedule.has_value());
    if (!a.schedule) continue;
    EXPECT_EQ(a.schedule->hash(), b.schedule->hash());
  }
}

TEST(Segments, MutationsAreRefusedUnderTheNameOfTheRule) {
  std::map<std::string, int> refused;
  int all = 0;
  for (std::uint64_t seed = 0; seed < 160; ++seed) {
    const Problem problem = test::random_units(seed, false);
    const Answer answer = synthesize(problem, {seed, 500});
    if (!answer.schedule) continue;
    ASSERT_TRUE(validate(problem, *answer.schedule)) << problem.name;
    std::mt19937_64 random(seed);
    const auto mutate = [&](const std::string& rule, const char* name,
                            const std::function<bool(Problem&, Schedule&)>& change) {
      Problem other = problem;
      Schedule schedule = *answer.schedule;
      if (!change(other, schedule)) return;
      sort_slots(schedule);
      const Status status = validate(other, schedule);
      ASSERT_FALSE(status) << problem.name << ": " << name;
      EXPECT_THAT(status.error().message, HasSubstr("(rule '" + rule + "')")) << problem.name << ": " << name;
      ++refused[rule + ": " + name];
      ++all;
    };
    // A random slot that fits, or nullptr.
    const auto any = [&](Schedule& s, const std::function<bool(const Slot&)>& fits) -> Slot* {
      std::vector<Slot*> found;
      for (Slot& slot : s.slots) {
        if (fits(slot)) found.push_back(&slot);
      }
      return found.empty() ? nullptr : found[random() % found.size()];
    };
    const auto on_unit = [](const Slot& slot) { return slot.unit.has_value(); };
    const auto budget_of = [](Problem& p, const Schedule& s, const Slot& slot) -> Budget& {
      const Choice& choice = s.choices[slot.stage];
      for (Budget& budget : p.stages[slot.stage].variants[choice.variant].budgets) {
        if (budget.cores == choice.budget.cores) return budget;
      }
      return p.stages[slot.stage].variants[choice.variant].budgets.front();
    };
    mutate("jobs", "lost segment", [&](Problem&, Schedule& s) {
      Slot* slot = any(s, on_unit);
      if (slot != nullptr) s.slots.erase(s.slots.begin() + (slot - s.slots.data()));
      return slot != nullptr;
    });
    mutate("segments", "on another unit", [&](Problem&, Schedule& s) {
      Slot* slot = any(s, on_unit);
      if (slot == nullptr) return false;
      slot->unit = (*slot->unit + 1) % static_cast<std::uint32_t>(problem.board.units.size());
      return true;
    });
    mutate("segments", "before the one in front of it", [&](Problem&, Schedule& s) {
      Slot* slot = any(s, on_unit);
      if (slot == nullptr) return false;
      const Tick length = slot->end - slot->start;
      for (const Slot& before : s.slots) {
        if (before.stage != slot->stage || before.job != slot->job || before.segment + 1 != slot->segment) continue;
        slot->start = before.end - 2;
        slot->end = slot->start + length;
      }
      return true;
    });
    mutate("choices", "shorter segment", [&](Problem&, Schedule& s) {
      Slot* slot = any(s, on_unit);
      if (slot == nullptr) return false;
      --s.choices[slot->stage].budget.segments[slot->segment].time.ns;
      return true;
    });
    mutate("windows", "shorter slot of a unit", [&](Problem&, Schedule& s) {
      Slot* slot = any(s, on_unit);
      if (slot != nullptr) slot->end -= 4;
      return slot != nullptr;
    });
    mutate("units", "beside another on the unit", [&](Problem& p, Schedule& s) {
      // Every unit's slots at once on one unit: the first two that meet.
      Slot* slot = any(s, on_unit);
      if (slot == nullptr) return false;
      for (Slot& other : s.slots) {
        if (!other.unit || other.unit == slot->unit || other.stage == slot->stage) continue;
        if (other.start % s.clock.ticks >= slot->end % s.clock.ticks ||
            slot->start % s.clock.ticks >= other.end % s.clock.ticks || slot->end >= s.clock.ticks ||
            other.end >= s.clock.ticks)
          continue;
        for (Budget* budget : {&budget_of(p, s, other), &s.choices[other.stage].budget}) {
          budget->segments[other.segment].unit = slot->unit;
          for (Segment& segment : budget->segments) segment.guard = {};
        }
        for (Budget* budget : {&budget_of(p, s, *slot), &s.choices[slot->stage].budget}) {
          for (Segment& segment : budget->segments) segment.guard = {};
        }
        for (Slot& each : s.slots) {
          if (each.stage == other.stage && each.segment == other.segment) each.unit = slot->unit;
        }
        return true;
      }
      return false;
    });
    mutate("guard", "longer than there is room", [&](Problem& p, Schedule& s) {
      Slot* slot = any(s, [&](const Slot& each) {
        return each.unit && problem.board.units[*each.unit].kind == UnitKind::kGpuPartition;
      });
      if (slot == nullptr) return false;
      for (Budget* budget : {&budget_of(p, s, *slot), &s.choices[slot->stage].budget}) {
        budget->segments[slot->segment].guard = p.hyperperiod;
      }
      return true;
    });
    mutate("mutexes", "held by jobs that meet", [&](Problem& p, Schedule& s) {
      // Two jobs that run at the same time take one mutex for all of their arena.
      for (const Slot& a : s.slots) {
        for (const Slot& b : s.slots) {
          if (a.stage == b.stage || a.end > s.clock.ticks || b.end > s.clock.ticks) continue;
          if (a.start >= b.end || b.start >= a.end) continue;
          p.mutexes.push_back({"new"});
          for (const std::uint32_t stage : {a.stage, b.stage}) {
            Variant& variant = p.stages[stage].variants[s.choices[stage].variant];
            variant.arena = 1;
            variant.arena_mutex = static_cast<std::uint32_t>(p.mutexes.size() - 1);
          }
          return true;
        }
      }
      return false;
    });
    mutate("interference", "a budget that bears nothing", [&](Problem& p, Schedule& s) {
      for (const Slot& a : s.slots) {
        for (const Slot& b : s.slots) {
          if (a.stage == b.stage || a.end > s.clock.ticks || b.end > s.clock.ticks) continue;
          if (a.start >= b.end || b.start >= a.end) continue;
          const auto bears = b.unit ? Interference::kCores : Interference::kNone;
          for (Budget* budget : {&budget_of(p, s, a), &s.choices[a.stage].budget}) budget->interference = bears;
          return true;
        }
      }
      return false;
    });
    mutate("gap", "longer than there is room", [&](Problem& p, Schedule&) {
      if (!p.phase_lock) return false;
      p.phase_lock->gap = p.hyperperiod - nanoseconds(1);
      return true;
    });
    mutate("clock", "another tick than the modes share", [&](Problem& p, Schedule& s) {
      p.ticks = 2 * s.clock.ticks;
      return check(p).has_value();
    });
    if (!problem.disparities.empty()) {
      mutate("bounds", "disparity one nanosecond lower",
             [&](Problem&, Schedule& s) { return --s.disparities[0].bound.ns, true; });
      mutate("limits", "limit below the disparity", [&](Problem& p, Schedule& s) {
        p.disparities[0].limit = s.disparities[0].bound - nanoseconds(1);
        return p.disparities[0].limit.ns > 0;
      });
    }
  }
  for (const auto& [name, count] : refused) std::cout << name << ": " << count << " refused\n";
  std::cout << all << " mutations\n";
  EXPECT_EQ(refused.size(), 13u);
  EXPECT_GE(all, 200);
}

// ---- disparity --------------------------------------------------------------------------------------------------

// The newest sample at a latch, delivered by a sensor that is asked for the newest or the oldest stamp it can have.
std::int64_t delivered(const Problem& problem, std::uint32_t index, std::int64_t latch, bool newest,
                       std::mt19937_64& random) {
  const Sensor& sensor = problem.sensors[index];
  std::int64_t best = 0;
  bool any = false;
  const auto offer = [&](std::int64_t stamp) {
    if (!any || (newest ? stamp > best : stamp < best)) best = stamp;
    any = true;
  };
  const auto between = [&](std::int64_t a, std::int64_t b) {
    return a + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(b - a + 1));
  };
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<std::pair<std::int64_t, std::int64_t>> samples;  // stamp, arrival
    if (!sensor.phase) {
      const auto longest =
          static_cast<std::int64_t>(static_cast<double>(sensor.period.ns) * (1.0 + sensor.drift_ppm * 1e-6));
      // A sample that arrives at the latch at the earliest, or one whose successor has just been missed.
      std::int64_t stamp = latch - sensor.delay_min.ns;
      if (!newest) stamp = latch + 1 - sensor.delay_max.ns;
      if (trial % 3 == 2) stamp += between(-sensor.period.ns, sensor.period.ns);
      for (std::int64_t k = -4; k <= 4; ++k) {
        const std::int64_t at = stamp + k * longest;
        samples.emplace_back(at, at + (newest ? sensor.delay_min.ns : sensor.delay_max.ns));
      }
    } else {
      const SamplePattern pattern = *sample_pattern(sensor, problem.hyperperiod);
      const std::int64_t span = pattern.hyperperiods * problem.hyperperiod.ns;
      const std::int64_t around = (latch - sensor.phase->offset.ns) * pattern.samples / span;
      for (std::int64_t k = around - 4 - 2 * sensor.delay_max.ns / sensor.period.ns; k <= around + 3; ++k) {
        const std::int64_t rest = ((k % pattern.samples) + pattern.samples) % pattern.samples;
        __extension__ using Wide = __int128;
        const std::int64_t base = sensor.phase->offset.ns + (k - rest) / pattern.samples * span +
                                  static_cast<std::int64_t>(static_cast<Wide>(rest) * span / pattern.samples);
        const std::int64_t jitter = sensor.phase->jitter.ns;
        std::int64_t stamp = base + (trial % 2 == 0 ? (newest ? jitter : 0) : between(0, jitter));
        std::int64_t delay = newest ? sensor.delay_min.ns : sensor.delay_max.ns;
        // Just in time, or just missed, where that can be.
        const std::int64_t aimed = newest ? latch - sensor.delay_min.ns : latch + 1 - sensor.delay_max.ns;
        if (aimed >= base && aimed <= base + jitter) stamp = aimed;
        if (!newest && base + jitter + sensor.delay_max.ns > latch && base + delay <= latch && trial % 2 == 0) {
          stamp = base + jitter;
        }
        samples.emplace_back(stamp, stamp + delay);
      }
    }
    std::optional<std::int64_t> latched;
    for (const auto& [stamp, arrival] : samples) {
      if (arrival <= latch) latched = stamp;
    }
    if (latched) offer(*latched);
  }
  EXPECT_TRUE(any);
  return best;
}

TEST(Disparity, IsMetByAnAdversaryAndNeverExceeded) {
  int compared = 0;
  int met = 0;
  std::mt19937_64 random(7);
  for (std::uint64_t seed = 0; seed < 20'000 && compared < 60; ++seed) {
    Problem problem = test::random_problem(seed, false);
    if (problem.chains.size() < 2) continue;
    const Chain& a = problem.chains[0];
    const Chain& b = problem.chains[1];
    if (a.stages.back() != b.stages.back() || a.sensor == b.sensor) continue;
    problem.disparities = {{"meeting", a.stages.back(), {0, 1}, problem.hyperperiod * 100}};
    ASSERT_TRUE(check(problem)) << check(problem).error().message;
    const Answer answer = synthesize(problem, {seed, 300});
    if (!answer.schedule) continue;
    const Schedule& schedule = *answer.schedule;
    const Duration bound = walk_disparity(problem, schedule, 0).bound;
    EXPECT_EQ(bound, schedule.disparities[0].bound) << problem.name;
    // Latches of both chains for every job of the stage, by following the bindings.
    const auto latch = [&](const Chain& chain, std::int64_t job) {
      for (std::size_t i = chain.stages.size(); i-- > 1;) {
        const std::int64_t rate = schedule.choices[chain.stages[i]].rate;
        for (const Binding& binding : schedule.bindings) {
          if (binding.stage != chain.stages[i] || binding.producer_stage != chain.stages[i - 1]) continue;
          const std::int64_t turn = (job - (((job % rate) + rate) % rate)) / rate;
          if (binding.job != static_cast<std::uint32_t>(job - turn * rate)) continue;
          job = (turn + binding.producer_shift) * schedule.choices[chain.stages[i - 1]].rate + binding.producer_job;
          break;
        }
      }
      const std::int64_t rate = schedule.choices[chain.stages[0]].rate;
      const std::int64_t rest = ((job % rate) + rate) % rate;
      for (const Slot& slot : schedule.slots) {
        if (slot.stage == chain.stages[0] && slot.job == rest) {
          return schedule.clock.start_at(0, slot.start).ns + (job - rest) / rate * problem.hyperperiod.ns;
        }
      }
      return std::int64_t{0};
    };
    std::int64_t turns = 1;
    for (const Sensor& sensor : problem.sensors) {
      if (sensor.phase) turns = std::lcm(turns, sample_pattern(sensor, problem.hyperperiod)->hyperperiods);
    }
    std::int64_t worst = 0;
    const std::int64_t jobs = schedule.choices[a.stages.back()].rate;
    for (std::int64_t job = 0; job < jobs * std::min<std::int64_t>(turns, 20); ++job) {
      for (const auto& [one, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
        worst = std::max(worst, delivered(problem, one->sensor, latch(*one, job), true, random) -
                                    delivered(problem, other->sensor, latch(*other, job), false, random));
      }
    }
    EXPECT_LE(worst, bound.ns) << problem.name;
    met += worst >= bound.ns - 10 ? 1 : 0;
    ++compared;
  }
  std::cout << met << " of " << compared << " disparities met to 10 ns\n";
  EXPECT_GE(compared, 40);
  EXPECT_GE(met, compared * 9 / 10);
}

TEST(Disparity, ALimitDecidesWhereTheSlotsLie) {
  // Two triggered sensors half a hyperperiod apart: only a table that reads both after the later one meets 60 ms.
  Problem problem = test::perception();
  problem.sensors[0] = test::locked_sensor("camera", 10, milliseconds(0), {}, milliseconds(1), milliseconds(1));
  problem.sensors[1] = test::locked_sensor("lidar", 10, milliseconds(50), {}, milliseconds(1), milliseconds(1));
  problem.stages[0].rates = {1};
  problem.chains[0].limits[0].reset();
  problem.chains[1].limits[0].reset();
  problem.disparities = {{"meeting", 3, {0, 1}, milliseconds(50)}};
  ASSERT_TRUE(check(problem)) << check(problem).error().message;
  const Answer answer = synthesize(problem);
  ASSERT_EQ(answer.verdict, Verdict::kFeasible) << answer.reason;
  EXPECT_LE(answer.schedule->disparities[0].bound, milliseconds(50));
  EXPECT_TRUE(validate(problem, *answer.schedule));
  problem.disparities[0].limit = milliseconds(49);
  const Answer none = synthesize(problem, {1, 3000});
  EXPECT_NE(none.verdict, Verdict::kFeasible);
  EXPECT_THAT(none.reason, HasSubstr("'meeting'"));
}

TEST(Disparity, TwoPathsOfOneSampleAreNotApart) {
  Problem problem = test::single();
  Stage left = test::stage("left", {1}, {test::variant("full", milliseconds(2))});
  left.inputs = {test::from_stage("in", 0)};
  Stage right = left;
  right.name = "right";
  Stage both = test::stage("both", {1}, {test::variant("full", milliseconds(2))});
  both.inputs = {test::from_stage("l", 1), test::from_stage("r", 2)};
  problem.stages.insert(problem.stages.end(), {left, right, both});
  problem.chains = {test::chain("l", 0, {0, 1, 3}), test::chain("r", 0, {0, 2, 3})};
  problem.disparities = {{"same", 3, {0, 1}, milliseconds(1)}};
  const Answer answer = synthesize(problem);
  ASSERT_EQ(answer.verdict, Verdict::kFeasible) << answer.reason;
  EXPECT_EQ(answer.schedule->disparities[0].bound.ns, 0);
}

// ---- phase lock -------------------------------------------------------------------------------------------------

Problem locked_table(Duration gap) {
  Problem problem = test::single();
  problem.sensors[0] =
      test::locked_sensor("s", 10, milliseconds(20), microseconds(100), milliseconds(1), milliseconds(2));
  problem.sensors[0].drift_ppm = 200;
  problem.phase_lock = PhaseLock{0, gap, microseconds(30), seconds(1)};
  return problem;
}

TEST(PhaseLock, AGapBelowDriftAndFilterIsRefused) {
  // 200 ppm of 100 ms and the filter's 30 us.
  EXPECT_TRUE(check(locked_table(microseconds(50))));
  const Status status = check(locked_table(microseconds(50) - nanoseconds(1)));
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, AllOf(HasSubstr("gap of 0.050 ms"), HasSubstr("reserve at least that much")));
  Problem steady = locked_table(microseconds(50));
  steady.sensors[0].phase->jitter = microseconds(49);
  EXPECT_THAT(check(steady).error().message, HasSubstr("phase jitter"));
  Problem none = locked_table(microseconds(50));
  none.sensors[0].phase.reset();
  EXPECT_THAT(check(none).error().message, HasSubstr("has no phase"));
}

TEST(PhaseLock, TheGapStaysFreeAndCorrectionsAreInTheBounds) {
  const Problem problem = locked_table(milliseconds(5));
  const Answer answer = synthesize(problem);
  ASSERT_EQ(answer.verdict, Verdict::kFeasible) << answer.reason;
  EXPECT_LE(answer.schedule->clock.end_at(0, answer.schedule->slots[0].end).ns, 95'000'000);
  EXPECT_TRUE(validate(problem, *answer.schedule));
  Problem unlocked = problem;
  unlocked.phase_lock.reset();
  unlocked.sensors[0].drift_ppm = 0;
  const ChainBound with = walk(problem, *answer.schedule, 0);
  const ChainBound without = walk(unlocked, *answer.schedule, 0);
  for (std::size_t q = 0; q < kQuantities; ++q) {
    const std::int64_t boundaries = without.bounds[q].ns / 100'000'000 + 1;
    EXPECT_EQ(with.bounds[q], without.bounds[q] + microseconds(50) * boundaries);
  }
  // Without its reference the sensor drifts 0.2 ms in a second, either way.
  const ChainBound held = walk(holding_over(problem), *answer.schedule, 0);
  EXPECT_GE(held.bounds[1], with.bounds[1] + microseconds(200));
}

// ---- changes of mode --------------------------------------------------------------------------------------------

TEST(Segments, AChangeWaitsForTheGpu) {
  Problem full = one_gpu_job();
  full.name = "full";
  Problem lite = full;
  lite.name = "lite";
  Schedule schedule = *synthesize(full).schedule;
  // The old job is submitted just before the seam, the GPU works on behind it.
  const Tick shift = schedule.clock.ticks - schedule.slots[1].start;
  Schedule late = schedule;
  for (Slot& slot : late.slots) {
    slot.start += shift;
    slot.end += shift;
  }
  Schedule early = schedule;
  for (Slot& slot : early.slots) {
    slot.start -= schedule.slots[0].start;
    slot.end -= schedule.slots[0].start;
  }
  const Mode from{&full, &late};
  const Mode to{&lite, &early};
  const Status status = validate_change(from, to);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("declare a drain of at least"));
  const Tick end = late.slots.back().end - schedule.clock.ticks;
  const Duration drain{schedule.clock.end_at(0, end).ns};
  EXPECT_TRUE(validate_change(from, to, drain)) << validate_change(from, to, drain).error().message;
  EXPECT_FALSE(validate_change(from, to, drain - nanoseconds(1)));
}

// The table of a problem of one_gpu_job() in which the segments start where the test wants them.
Schedule segments_at(const Problem& problem, const std::vector<Tick>& starts_us) {
  Schedule schedule = *synthesize(problem).schedule;
  for (std::size_t i = 0; i < starts_us.size(); ++i) {
    schedule.slots[i].end += starts_us[i] - schedule.slots[i].start;
    schedule.slots[i].start = starts_us[i];
  }
  schedule.bounds = {walk(problem, schedule, 0)};
  return schedule;
}

// The old job's GPU segment comes 150 ms after the change, when the new table is in its second hyperperiod.
TEST(Segments, AChangeSeesEveryTurnOfTheNextTable) {
  Problem full = one_gpu_job();
  full.name = "full";
  full.hyperperiod = milliseconds(200);
  full.chains[0] = test::chain("c", 0, {0});
  Problem lite = one_gpu_job();
  lite.name = "lite";
  lite.stages[0].name = "other";
  lite.chains[0] = test::chain("c", 0, {0});
  const Schedule late = segments_at(full, {190'000, 192'500, 350'000, 358'000});
  const Schedule quick = segments_at(lite, {40'000, 42'500, 50'000, 60'000});
  ASSERT_TRUE(validate(full, late)) << validate(full, late).error().message;
  ASSERT_TRUE(validate(lite, quick)) << validate(lite, quick).error().message;
  const Mode from{&full, &late};
  const Mode to{&lite, &quick};
  const Status status = validate_change(from, to);
  ASSERT_FALSE(status);
  // Until the old segment, its guard of 1 ms included, is over.
  const Tick end = late.slots[2].end - late.clock.ticks + 1000 - 150'000;
  const Duration drain = microseconds(end) + full.board.clock_error;
  EXPECT_THAT(status.error().message, AllOf(HasSubstr("begins after 150.000 ms"), HasSubstr(ms_text(drain))));
  EXPECT_TRUE(validate_change(from, to, drain)) << validate_change(from, to, drain).error().message;
  EXPECT_FALSE(validate_change(from, to, drain - nanoseconds(1)));
}

// The last old job reaches the GPU 50 ms after the change, and the new table uses it before: but then the guard of the
// job before is not over.
TEST(Segments, AChangeSeesTheGuardOfTheJobBeforeTheLast) {
  Problem full = one_gpu_job();
  full.name = "full";
  full.chains[0] = test::chain("c", 0, {0});
  Problem lite = full;
  lite.name = "lite";
  lite.hyperperiod = milliseconds(200);
  lite.stages[0].name = "other";
  full.stages[0].variants[0].budgets[0].segments[2].guard = milliseconds(90);
  const Schedule late = segments_at(full, {90'000, 92'500, 150'000, 160'000});
  const Schedule quick = segments_at(lite, {5'000, 8'000, 20'000, 30'000});
  ASSERT_TRUE(validate(full, late)) << validate(full, late).error().message;
  ASSERT_TRUE(validate(lite, quick)) << validate(lite, quick).error().message;
  const Mode from{&full, &late};
  const Mode to{&lite, &quick};
  const Status status = validate_change(from, to);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("begins after 20.000 ms"));
  const Tick end = late.slots[2].end - late.clock.ticks + 90'000 - 20'000;  // then the last one's guard is in the way
  const Duration drain = microseconds(end) + full.board.clock_error;
  EXPECT_TRUE(validate_change(from, to, drain)) << validate_change(from, to, drain).error().message;
  EXPECT_FALSE(validate_change(from, to, drain - nanoseconds(1)));
}

}  // namespace
}  // namespace takt::sched
