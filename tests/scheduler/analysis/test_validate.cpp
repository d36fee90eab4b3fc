#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <random>

#include "scheduler/analysis/certificate.h"
#include "scheduler/analysis/validate.h"
#include "scheduler/model/certificate.h"
#include "scheduler/synthesis/synthesis.h"
#include "tests/scheduler/synthesis/problems.h"

namespace takt::sched {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const Schedule& perception_table() {
  static const Schedule schedule = [] {
    const Answer answer = synthesize(test::perception());
    return answer.schedule.value_or(Schedule{});
  }();
  return schedule;
}

// The refusal of the perception table after a change; "accepted" when there is none.
std::string after(
    const std::function<void(Schedule&)>& change, const std::function<void(Problem&)>& other = [](Problem&) {}) {
  Problem problem = test::perception();
  other(problem);
  Schedule schedule = perception_table();
  change(schedule);
  const Status status = validate(problem, schedule);
  if (status) return "accepted";
  EXPECT_EQ(status.error().code, Code::kGate);
  return status.error().message;
}

Slot& slot_of(Schedule& schedule, std::uint32_t stage, std::uint32_t job) {
  for (Slot& slot : schedule.slots) {
    if (slot.stage == stage && slot.job == job) return slot;
  }
  ADD_FAILURE() << "no such slot";
  return schedule.slots.front();
}

void sort_slots(Schedule& schedule) {
  std::sort(schedule.slots.begin(), schedule.slots.end(), [](const Slot& a, const Slot& b) {
    return std::tie(a.start, a.stage, a.job) < std::tie(b.start, b.stage, b.job);
  });
}

TEST(Validate, AcceptsTheTableUnchanged) {
  EXPECT_EQ(after([](Schedule&) {}), "accepted");
}

TEST(Validate, RefusesChoicesThatWereNotDeclared) {
  EXPECT_THAT(after([](Schedule& s) { s.choices.pop_back(); }), HasSubstr("3 stages instead of 4"));
  EXPECT_THAT(after([](Schedule& s) { s.choices[0].rate = 2; }), HasSubstr("'camera_detect' runs 2 times"));
  EXPECT_THAT(after([](Schedule& s) { s.choices[0].variant = 1; }), HasSubstr("unknown variant"));
  EXPECT_THAT(after([](Schedule& s) { s.choices[0].budget.time = milliseconds(7); }), HasSubstr("budget of 7.000 ms"));
}

TEST(Validate, RefusesAnotherClock) {
  EXPECT_THAT(after([](Schedule& s) { s.clock.hyperperiod = milliseconds(200); }), HasSubstr("hyperperiod is 200"));
  EXPECT_THAT(after([](Schedule& s) { s.clock.ticks = 6'000; }), HasSubstr("longer than 1 us"));
  EXPECT_THAT(after([](Schedule& s) { s.clock.ticks = 101'000; }), HasSubstr("no multiple of 1000 x 3"));
}

TEST(Validate, RefusesMissingDoubledAndMisplacedSlots) {
  EXPECT_THAT(after([](Schedule& s) { s.slots.pop_back(); }), HasSubstr("it has 6 slots, its jobs have 7"));
  EXPECT_THAT(after([](Schedule& s) { s.slots.push_back(s.slots.back()); }), HasSubstr("twice"));
  EXPECT_THAT(after([](Schedule& s) { s.slots[0].stage = 9; }), HasSubstr("unknown stage"));
  EXPECT_THAT(after([](Schedule& s) { s.slots[0].job = 9; }), HasSubstr("job number 9"));
  EXPECT_THAT(after([](Schedule& s) { std::swap(s.slots[0], s.slots[1]); }), HasSubstr("out of order"));
  EXPECT_THAT(after([](Schedule& s) { s.slots[0].start -= s.clock.ticks; }), HasSubstr("outside the hyperperiod"));
  EXPECT_THAT(after([](Schedule& s) { s.slots[0].cores = {7}; }), HasSubstr("unknown core"));
  EXPECT_THAT(after([](Schedule& s) { s.slots[0].cores = {0, 1}; }), HasSubstr("its budget is for 1"));
  EXPECT_THAT(after([](Schedule& s) {
                Slot& camera = slot_of(s, 0, 1);
                camera.cores = {1 - camera.cores[0]};
              }),
              HasSubstr("home cores"));
  EXPECT_THAT(after([](Schedule& s) { std::swap(slot_of(s, 0, 0).job, slot_of(s, 0, 1).job); }),
              HasSubstr("does not follow its predecessor"));
}

// Figures that no table has, such as of a file made to harm: refused before anything is computed or laid out with them.
TEST(Validate, RefusesFiguresThatDoNotFit) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(after([](Schedule& s) { s.clock.ticks = kMost / 6000 * 6000; }), HasSubstr("shorter than 1 ns"));
  EXPECT_THAT(after([](Schedule& s) { s.bindings[0].producer_shift = std::numeric_limits<std::int32_t>::min(); }),
              HasSubstr("2147483648 hyperperiods ago"));
  EXPECT_THAT(after([](Schedule& s) { s.choices[0].budget.time = {kMost}; }), HasSubstr("more than 1000 s"));
  // 99000 jobs of 16 segments are promised, seven slots are there.
  const auto promise = [](Budget& budget) { budget.segments.assign(16, {std::nullopt, budget.time, {}, {}}); };
  EXPECT_THAT(after(
                  [&](Schedule& s) {
                    s.clock.ticks = 19'000'000;
                    s.choices[0].rate = 19'000;
                    promise(s.choices[0].budget);
                    s.choices[0].budget.time = s.choices[0].budget.time * 16;
                  },
                  [&](Problem& p) {
                    p.stages[0].rates = {19'000};
                    Budget& budget = p.stages[0].variants[0].budgets[0];
                    promise(budget);
                    budget.time = budget.time * 16;
                    p.sensors[0].phase.reset();
                  }),
              HasSubstr("it has 7 slots"));
}

TEST(Validate, RefusesShortSlotsByTheFigure) {
  EXPECT_THAT(
      after([](Schedule& s) { slot_of(s, 1, 0).end -= 1020; }),
      AllOf(HasSubstr("slot of stage 'lidar_detect', job 0"), HasSubstr("20.501 ms long; w + budget + p is 21.500")));
  // The windows come from the board.
  EXPECT_THAT(after([](Schedule&) {}, [](Problem& p) { p.board.cores[1].wakeup_window = milliseconds(2); }),
              HasSubstr("w + budget + p"));
}

TEST(Validate, RefusesOverlapAlsoAroundTheEndOfTheHyperperiod) {
  EXPECT_THAT(after([](Schedule& s) {
                Slot& radar = slot_of(s, 2, 0);
                const Slot& camera = slot_of(s, 0, 1);
                const Tick length = radar.end - radar.start;
                radar.cores = slot_of(s, 2, 1).cores = camera.cores;
                radar.start = camera.start + 100;
                radar.end = radar.start + length;
                if (radar.start > slot_of(s, 2, 1).start) std::swap(radar.job, slot_of(s, 2, 1).job);
                sort_slots(s);
              }),
              HasSubstr("overlaps"));
  EXPECT_THAT(after([](Schedule& s) {
                // Long enough to run into its own next turn.
                Slot& lidar = slot_of(s, 1, 0);
                lidar.end = lidar.start + s.clock.ticks + 10;
              }),
              HasSubstr("overlaps"));
}

// What bears nothing beside it keeps the clock error to both sides on other cores; on its own core there is one clock.
TEST(Validate, KeepsTheClockErrorAroundWhatRunsAlone) {
  Problem problem = test::single();
  problem.board = test::two_cores(0);
  problem.board.clock_error = microseconds(20);
  problem.stages.push_back(problem.stages[0]);
  problem.stages[1].name = "b";
  problem.stages[0].variants[0].budgets[0].interference = Interference::kNone;
  Schedule schedule;
  schedule.clock = {milliseconds(100), 100'000};
  for (const Stage& stage : problem.stages) schedule.choices.push_back({1, 0, stage.variants[0].budgets[0]});
  const auto with = [&](std::uint32_t core, Tick distance) {
    constexpr Tick kLength = 12'000;
    schedule.slots = {{0, 0, {0}, 20'000, 20'000 + kLength}, {1, 0, {core}, 20'000 + kLength + distance, 0}};
    if (distance < 0) schedule.slots[1].start = 20'000 - kLength + distance;
    schedule.slots[1].end = schedule.slots[1].start + kLength;
    if (distance < 0) std::swap(schedule.slots[0], schedule.slots[1]);
    schedule.bounds = {walk(problem, schedule, 0)};
    const Status status = validate(problem, schedule);
    return status ? "accepted" : status.error().message;
  };
  EXPECT_EQ(with(1, 20), "accepted");
  EXPECT_EQ(with(1, -20), "accepted");
  EXPECT_THAT(with(1, 19), AllOf(HasSubstr("'interference'"), HasSubstr("closer than the clock error")));
  EXPECT_THAT(with(1, -19), HasSubstr("closer than the clock error"));
  EXPECT_EQ(with(0, 0), "accepted");
}

TEST(Validate, RefusesTooLittleSlack) {
  EXPECT_THAT(after([](Schedule&) {},
                    [](Problem& p) {
                      for (Stage& stage : p.stages) stage.slack = milliseconds(60);
                    }),
              HasSubstr("its slack and the board's switch cost are 60.000 ms"));
}

// Behind a slot of a stage without slack, too: its worker loses the core at the slot's end.
TEST(Validate, KeepsTheSwitchCostFreeBehindEverySlot) {
  const auto with = [](Duration free) {
    Problem problem = test::single();
    problem.board.switch_cost = microseconds(800);
    Stage next = problem.stages[0];
    next.name = "next";
    problem.stages[0].slack = milliseconds(1);
    problem.stages.push_back(next);
    problem.chains.clear();
    Schedule schedule;
    schedule.clock = {problem.hyperperiod, ticks_per_hyperperiod(problem.hyperperiod, {1, 1})};
    const Duration length = milliseconds(10);  // w, budget and p
    Tick start = 0;
    for (std::uint32_t stage = 0; stage < 2; ++stage) {
      schedule.choices.push_back({1, 0, problem.stages[stage].variants[0].budgets[0]});
      const Tick end = start + schedule.clock.ticks_up(length) + 2;
      schedule.slots.push_back({.stage = stage, .job = 0, .cores = {0}, .start = start, .end = end});
      start = end + schedule.clock.ticks_up(free);
    }
    const Status status = validate(problem, schedule);
    return status ? std::string("accepted") : status.error().message;
  };
  EXPECT_EQ(with(microseconds(1801)), "accepted");
  EXPECT_THAT(with(microseconds(1798)), AllOf(HasSubstr("rule 'slack'"), HasSubstr("are 1.800 ms")));
}

TEST(Validate, RefusesTooLittleIdleTime) {
  // The LiDAR stage alone takes 21.5 ms of every 100 ms of its core.
  EXPECT_THAT(after([](Schedule&) {},
                    [](Problem& p) {
                      for (Core& core : p.board.cores) core.reserve = 0.8;
                    }),
              AllOf(HasSubstr("rule 'reserve'"), HasSubstr("80.0 %")));
  // 95 ms of 100 ms without any reserve: the kernel would throttle.
  Problem problem = test::single();
  problem.stages[0].variants = {test::variant("full", microseconds(93'500))};
  problem.chains[0].limits[0] = milliseconds(500);
  Schedule schedule;
  schedule.clock = {milliseconds(100), 100'000};
  schedule.choices = {{1, 0, problem.stages[0].variants[0].budgets[0]}};
  schedule.slots = {{0, 0, {0}, 0, 95'010}};
  schedule.bounds = {walk(problem, schedule, 0)};
  EXPECT_THAT(validate(problem, schedule).error().message, HasSubstr("busy for 95.0 % of a second"));
}

// A hyperperiod that does not divide a second: the fullest second holds four of its busy parts and three idle ones.
TEST(Validate, LooksAtTheFullestSecondAndNotAtTheAverage) {
  Problem problem = test::single();
  problem.hyperperiod = milliseconds(540);
  problem.sensors[0].period = milliseconds(540);
  problem.stages[0].variants = {test::variant("full", milliseconds(500))};  // 501.5 of 540: 92.9 % on average
  problem.chains[0].limits[0] = seconds(5);
  Schedule schedule;
  schedule.clock = {milliseconds(540), 540'000};
  schedule.choices = {{1, 0, problem.stages[0].variants[0].budgets[0]}};
  schedule.slots = {{0, 0, {0}, 0, 501'510}};
  schedule.bounds = {walk(problem, schedule, 0)};
  EXPECT_THAT(validate(problem, schedule).error().message, HasSubstr("busy for 96.2 % of a second"));
  EXPECT_NEAR(core_loads(problem, schedule)[0].share, 0.9287, 1e-4);
  EXPECT_NEAR(core_loads(problem, schedule)[0].fullest_second, 0.9615, 1e-4);
}

TEST(Validate, RefusesBindingsThatAreNotExact) {
  EXPECT_THAT(after([](Schedule& s) { s.bindings.pop_back(); }), HasSubstr("no binding"));
  EXPECT_THAT(after([](Schedule& s) { s.bindings.push_back(s.bindings.back()); }), HasSubstr("more bindings"));
  EXPECT_THAT(after([](Schedule& s) { s.bindings[0].producer_stage = 2; }),
              HasSubstr("no earlier job of 'camera_detect'"));
  EXPECT_THAT(after([](Schedule& s) { s.bindings[0].producer_shift -= 1; }),
              HasSubstr("the next one is there as well"));
  // Its own output of the same job (feedback), which is never there at the start.
  EXPECT_THAT(after([](Schedule& s) { s.bindings[3].producer_shift = 0; }), HasSubstr("after the start"));
  // A producer on another core is there only after the clock error.
  EXPECT_THAT(after([](Schedule&) {}, [](Problem& p) { p.board.clock_error = milliseconds(1); }),
              HasSubstr("after the start"));
}

TEST(Validate, RefusesBoundsAndLimits) {
  EXPECT_THAT(after([](Schedule& s) { s.bounds[1].bounds[2].ns -= 1; }),
              AllOf(HasSubstr("'lidar_fusion': age at output is recorded as")));
  EXPECT_THAT(after([](Schedule& s) { s.bounds.pop_back(); }), HasSubstr("2 chains instead of 3"));
  EXPECT_THAT(after([](Schedule&) {}, [](Problem& p) { p.chains[0].limits[1] = milliseconds(100); }),
              AllOf(HasSubstr("chain 'camera_fusion': reaction of"), HasSubstr("above its limit of 100.000 ms")));
  Problem malformed = test::perception();
  malformed.stages.clear();
  EXPECT_EQ(validate(malformed, perception_table()).error().code, Code::kConfiguration);
}

// Jobs may run it at any time: it is there from the start, and a job needs the larger of both arenas.
TEST(Validate, CountsTheMemoryOfTheVariantThatJobsDegradeTo) {
  Problem problem = test::single();
  Stage& stage = problem.stages[0];
  stage.variants.push_back(test::variant("lite", milliseconds(4)));
  stage.overrun = OverrunPolicy::kDegrade;
  stage.degraded_variant = "lite";
  stage.variants[0].resident = 600'000'000;
  stage.variants[1].resident = 500'000'000;
  stage.variants[0].arena = 10'000'000;
  stage.variants[1].arena = 30'000'000;
  const auto with = [&](std::int64_t bytes) {
    problem.board.memory = bytes;
    return synthesize(problem);
  };
  const Answer both = with(1'130'000'000);
  ASSERT_EQ(both.verdict, Verdict::kFeasible) << both.reason;
  EXPECT_EQ(both.schedule->choices[0].variant, 0U);
  EXPECT_TRUE(validate(problem, *both.schedule));
  // One byte less leaves the smaller variant alone, which degrades to itself.
  const Answer one = with(1'129'999'999);
  ASSERT_EQ(one.verdict, Verdict::kFeasible) << one.reason;
  EXPECT_EQ(one.schedule->choices[0].variant, 1U);
  const Status refused = validate(problem, *both.schedule);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("(rule 'memory')"), HasSubstr("1.10 GB stay resident")));
  const Answer none = with(529'999'999);
  ASSERT_EQ(none.verdict, Verdict::kInfeasible);
  ASSERT_TRUE(none.certificate);
  EXPECT_EQ(none.certificate->excess, 1);
  EXPECT_TRUE(check_certificate(problem, *none.certificate));
}

// Every one of these changes breaks one rule of any table, and is refused under that rule's name.
TEST(Validate, RefusesMutationsUnderTheNameOfTheRule) {
  std::map<std::string, int> refused;
  int all = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    Problem problem = test::random_problem(seed, false);
    for (Stage& stage : problem.stages) {
      for (Variant& variant : stage.variants) variant.arena = variant.resident = 1'000'000;
    }
    problem.board.memory = 1'000'000'000;
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
    const auto any = [&](auto& list) -> auto& { return list[random() % list.size()]; };
    mutate("choices", "smaller budget", [&](Problem&, Schedule& s) { return --any(s.choices).budget.time.ns, true; });
    mutate("choices", "unknown rate", [&](Problem&, Schedule& s) { return any(s.choices).rate += 7, true; });
    mutate("clock", "longer hyperperiod", [&](Problem&, Schedule& s) { return s.clock.hyperperiod.ns += 1000, true; });
    mutate("clock", "coarser tick", [&](Problem&, Schedule& s) { return s.clock.ticks /= 2, true; });
    mutate("jobs", "lost slot", [&](Problem&, Schedule& s) {
      s.slots.erase(s.slots.begin() + static_cast<std::ptrdiff_t>(random() % s.slots.size()));
      return true;
    });
    mutate("jobs", "job on another core", [&](Problem&, Schedule& s) {
      Slot& slot = any(s.slots);
      if (s.choices[slot.stage].rate == 1 || slot.cores.size() != 1 || problem.board.cores.size() == 1) return false;
      slot.cores[0] = (slot.cores[0] + 1) % static_cast<std::uint32_t>(problem.board.cores.size());
      return true;
    });
    mutate("windows", "shorter slot", [&](Problem&, Schedule& s) { return any(s.slots).end -= 4, true; });
    mutate("windows", "slower wake-up", [&](Problem& p, Schedule& s) {
      p.board.cores[any(s.slots).cores[0]].wakeup_window = milliseconds(5);
      return true;
    });
    mutate("resources", "slot over its successor", [&](Problem&, Schedule& s) {
      Slot& slot = any(s.slots);
      for (const Slot& other : s.slots) {
        if (&other == &slot || other.cores != slot.cores || other.start <= slot.start) continue;
        slot.end = other.start + 2;
        return true;
      }
      return false;
    });
    mutate("slack", "more slack than there is",
           [&](Problem& p, Schedule& s) { return p.stages[any(s.slots).stage].slack = p.hyperperiod, true; });
    mutate("memory", "smaller board", [&](Problem& p, Schedule&) { return p.board.memory = 1'000'000, true; });
    mutate("reserve", "larger reserve",
           [&](Problem& p, Schedule& s) { return p.board.cores[any(s.slots).cores[0]].reserve = 0.99, true; });
    // The reserve as a whole is still there: its pieces are what is missing.
    mutate("reserve", "slot right behind the one before", [&](Problem&, Schedule& s) {
      Slot& slot = any(s.slots);
      const Slot* before = nullptr;
      for (const Slot& other : s.slots) {
        const bool in_common = std::any_of(other.cores.begin(), other.cores.end(), [&](std::uint32_t core) {
          return std::find(slot.cores.begin(), slot.cores.end(), core) != slot.cores.end();
        });
        if (in_common && other.start < slot.start) before = &other;
      }
      if (before == nullptr || slot.cores.size() != 1 || before->end >= slot.start ||
          problem.board.cores[slot.cores[0]].reserve == 0 || free_behind(problem, before->stage).ns > 0) {
        return false;
      }
      const Tick length = slot.end - slot.start;
      slot.start = before->end;
      slot.end = slot.start + length;
      return true;
    });
    mutate("bindings", "older job",
           [&](Problem&, Schedule& s) { return !s.bindings.empty() && (--any(s.bindings).producer_shift, true); });
    mutate("bindings", "newer job",
           [&](Problem&, Schedule& s) { return !s.bindings.empty() && (++any(s.bindings).producer_shift, true); });
    mutate("bounds", "one nanosecond lower",
           [&](Problem&, Schedule& s) { return --any(s.bounds).bounds[random() % kQuantities].ns, true; });
    mutate("limits", "limit below the bound", [&](Problem& p, Schedule& s) {
      const ChainBound& bound = any(s.bounds);
      const std::size_t q = random() % kQuantities;
      p.chains[bound.chain].limits[q] = bound.bounds[q] - nanoseconds(1);
      return true;
    });
  }
  for (const auto& [name, count] : refused) std::cout << name << ": " << count << " refused\n";
  std::cout << all << " mutations\n";
  EXPECT_EQ(refused.size(), 17u);
  EXPECT_GE(all, 200);
}

// A shift of a slot to a random place is accepted only if a brute-force look at every nanosecond interval agrees.
TEST(Validate, AgreesWithBruteForceOnShiftedSlots) {
  int accepted = 0;
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    Problem problem = test::random_problem(seed, false);
    for (Stage& stage : problem.stages)
      stage.inputs.erase(std::remove_if(stage.inputs.begin(), stage.inputs.end(),
                                        [](const Input& input) { return !input.from_sensor; }),
                         stage.inputs.end());
    problem.chains.clear();  // only resources remain
    const Answer answer = synthesize(problem, {seed, 300});
    if (!answer.schedule) continue;
    std::mt19937_64 random(seed);
    for (int trial = 0; trial < 10; ++trial) {
      Schedule schedule = *answer.schedule;
      Slot& slot = schedule.slots[random() % schedule.slots.size()];
      const Tick length = slot.end - slot.start;
      slot.start = static_cast<Tick>(random() % static_cast<std::uint64_t>(schedule.clock.ticks));
      slot.end = slot.start + length;
      sort_slots(schedule);
      std::map<std::uint32_t, std::uint32_t> jobs;
      for (Slot& each : schedule.slots) each.job = jobs[each.stage]++;
      bool clear = true;
      for (const Slot& a : schedule.slots) {
        for (const Slot& b : schedule.slots) {
          std::int64_t percent = -1;  // the largest reserve of the cores that both use
          for (const std::uint32_t core : a.cores) {
            if (std::find(b.cores.begin(), b.cores.end(), core) == b.cores.end()) continue;
            percent = std::max<std::int64_t>(percent, std::lround(100 * problem.board.cores[core].reserve));
          }
          if (percent < 0) continue;
          const auto leaves_room = [&](const Slot& one, std::uint64_t turn, const Slot& next, std::uint64_t next_turn) {
            const std::int64_t from = schedule.clock.start_at(turn, one.start).ns;
            const std::int64_t to = schedule.clock.end_at(turn, one.end).ns;
            const std::int64_t then = schedule.clock.start_at(next_turn, next.start).ns;
            return then >= to + free_behind(problem, one.stage).ns &&
                   (then - from) * (100 - percent) >= (to - from) * 100;
          };
          for (std::uint64_t turn = 0; turn < 4; ++turn) {
            if (&a == &b && turn == 1) continue;
            clear &= leaves_room(a, 1, b, turn) || leaves_room(b, turn, a, 1);
          }
        }
      }
      const Status status = validate(problem, schedule);
      EXPECT_EQ(status.has_value(), clear) << problem.name << " " << (status ? "" : status.error().message);
      (clear ? accepted : refused) += 1;
    }
  }
  EXPECT_GT(accepted, 50);
  EXPECT_GT(refused, 50);
}

TEST(BudgetScale, IsTheExactEdge) {
  Problem problem = test::single();  // slot w 1 + 8.5 + p 0.5 at tick 0 of 100 ms; 6 % idle; limit 200 ms on latency
  Schedule schedule;
  schedule.clock = {milliseconds(100), 100'000};
  schedule.choices = {{1, 0, problem.stages[0].variants[0].budgets[0]}};
  schedule.slots = {{0, 0, {0}, 0, 10'001}};
  schedule.bounds = {walk(problem, schedule, 0)};
  ASSERT_TRUE(validate(problem, schedule));
  // Idle time stops it at 94 ms: budget 92.499 of 8.5 (the slot is rounded up to a tick of 1 us).
  EXPECT_NEAR(budget_scale(problem, schedule).all, (94.0 - 1.5) / 8.5, 2e-4);
  problem.chains[0].limits[0] = milliseconds(130);  // 100 + slot of at most 30
  EXPECT_NEAR(budget_scale(problem, schedule).all, (30.0 - 1.5) / 8.5, 2e-4);
  EXPECT_NEAR(budget_scale(problem, schedule).stages[0], (30.0 - 1.5) / 8.5, 2e-4);
  problem.chains[0].limits[0] = milliseconds(105);  // already broken: budgets would have to shrink
  EXPECT_NEAR(budget_scale(problem, schedule).all, (5.0 - 1.5) / 8.5, 2e-4);
  problem.chains[0].limits[0] = milliseconds(100);  // no factor helps
  EXPECT_EQ(budget_scale(problem, schedule).all, 0.0);
}

}  // namespace
}  // namespace takt::sched
