// Changes between modes while tables run: who asks for one, when it comes, and that no job is lost, doubled or bound to
// another one than the tables say.
#include <gtest/gtest.h>
#include <map>
#include <thread>

#include "fake_host.h"

namespace takt::sched {
namespace {

using test::FakeHost;
using test::Records;
using test::spin;
using test::TableBuilder;

// camera -> fusion, radar beside them. Three modes on two cores:
//   day       20 ms: camera twice on core 0, fusion on core 1; radar on core 1
//   night     30 ms: camera three times on core 1, fusion on core 0; no radar; 5 ms of drain
//   coasting  20 ms: fusion without the camera on core 1, radar on core 1
class World {
 public:
  static constexpr std::uint32_t kDay = 0, kNight = 1, kCoasting = 2;

  World() : table(milliseconds(20), 2), fusion_host({&camera_host.output, &radar_host.output}) {
    camera = table.stage("camera", 2, milliseconds(1), milliseconds(1));
    radar = table.stage("radar", 1, milliseconds(1), milliseconds(1));
    fusion = table.stage("fusion", 1, milliseconds(1), milliseconds(1));
    table.problem.stages[fusion].inputs = {input("camera", camera), input("radar", radar)};
    modes.resize(3);
    modes[kDay] = mode("day", {{camera, 2}, {radar, 1}, {fusion, 1}}, 20);
    slot(kDay, camera, 0, {0}, 0, 3);
    slot(kDay, camera, 1, {0}, 10, 13);
    slot(kDay, radar, 0, {1}, 2, 5);
    slot(kDay, fusion, 0, {1}, 14, 17);
    bind(kDay, 0, camera, 1, 0);
    bind(kDay, 1, radar, 0, 0);
    modes[kNight] = mode("night", {{camera, 3}, {fusion, 1}}, 30);
    modes[kNight].entry_drain = milliseconds(5);
    slot(kNight, fusion, 0, {0}, 1, 4);
    slot(kNight, camera, 0, {1}, 2, 5);
    slot(kNight, camera, 1, {1}, 12, 15);
    slot(kNight, camera, 2, {1}, 27, 31);  // ends in the next hyperperiod
    bind(kNight, 0, camera, 1, -1);
    modes[kNight].reads[fusion][1] = 0;
    modes[kCoasting] = mode("coasting", {{radar, 1}, {fusion, 1}}, 20);
    slot(kCoasting, radar, 0, {1}, 2, 5);
    slot(kCoasting, fusion, 0, {1}, 14, 17);
    bind(kCoasting, 1, radar, 0, 0);
    modes[kCoasting].reads[fusion][0] = 0;
    modes[kDay].exits = {kNight, kCoasting};
    modes[kNight].exits = {kDay, kCoasting};
    modes[kCoasting].exits = {kDay};
  }
  std::vector<StageHost*> hosts() { return {&camera_host, &radar_host, &fusion_host}; }
  Result<DispatchResult> run(DispatchOptions options, ModeControl* control, Records& records) {
    options.modes = control;
    return dispatch(table.problem, modes, hosts(), options,
                    [&records](std::size_t, const JobRecord& record) { records(record); });
  }

  // Every job of every mode once, in its place, as often as the changes say.
  void expect_as_planned(const DispatchResult& result, const Records& records) const {
    std::uint64_t number[3] = {0, 0, 0};
    std::map<std::pair<std::uint32_t, std::uint64_t>, JobRecord> all;
    for (const JobRecord& record : records.all()) {
      EXPECT_TRUE(all.emplace(std::pair{record.stage, record.job}, record).second) << "twice";
    }
    std::size_t found = 0;
    auto change = result.changes.begin();
    std::uint32_t mode = kDay;
    TableTime begin{0};
    for (std::uint64_t h = 0; h < result.hyperperiods_run; ++h) {
      if (change != result.changes.end() && change->hyperperiod == h) {
        EXPECT_EQ(change->from, mode);
        mode = change->to;
        begin = begin + modes[mode].entry_drain;
        EXPECT_EQ(change->begin, begin);
        ++change;
      }
      const Schedule& schedule = modes[mode].schedule;
      for (std::uint32_t s = 0; s < schedule.slots.size(); ++s) {
        const Slot& slot = schedule.slots[s];
        const auto record = all.find({slot.stage, number[slot.stage] + slot.job});
        ASSERT_NE(record, all.end()) << slot.stage << " " << number[slot.stage] + slot.job;
        ++found;
        EXPECT_EQ(record->second.mode, mode);
        EXPECT_EQ(record->second.slot, s);
        EXPECT_EQ(record->second.hyperperiod, h);
        EXPECT_EQ(record->second.nominal_start, begin.ns + schedule.clock.start_at(0, slot.start).ns);
        EXPECT_EQ(record->second.slot_end, begin.ns + schedule.clock.end_at(0, slot.end).ns);
      }
      for (std::uint32_t s = 0; s < 3; ++s) number[s] += static_cast<std::uint64_t>(schedule.choices[s].rate);
      begin = begin + schedule.clock.hyperperiod;
    }
    EXPECT_EQ(change, result.changes.end());
    EXPECT_EQ(found, all.size());
  }

  TableBuilder table;
  std::uint32_t camera = 0, radar = 0, fusion = 0;
  std::vector<ModeTable> modes;
  FakeHost camera_host, radar_host, fusion_host;

 private:
  static Input input(const char* name, std::uint32_t stage) {
    Input out;
    out.name = name;
    out.source = stage;
    return out;
  }
  ModeTable mode(const char* name, const std::map<std::uint32_t, std::int64_t>& rates, std::int64_t h) const {
    ModeTable out = only_table(table.problem, table.schedule);
    out.name = name;
    out.schedule.slots.clear();
    out.schedule.clock = {milliseconds(h), h * 1000};
    for (Choice& choice : out.schedule.choices) choice.rate = 0;
    for (const auto& [stage, rate] : rates) out.schedule.choices[stage].rate = rate;
    return out;
  }
  void slot(std::uint32_t mode, std::uint32_t stage, std::uint32_t job, std::vector<std::uint32_t> cores, int start,
            int end) {
    Slot slot;
    slot.stage = stage;
    slot.job = job;
    slot.cores = std::move(cores);
    slot.start = start * 1000;
    slot.end = end * 1000;
    modes[mode].schedule.slots.push_back(std::move(slot));
  }
  void bind(std::uint32_t mode, std::uint32_t input, std::uint32_t producer, std::uint32_t job, int shift) {
    modes[mode].schedule.bindings.push_back({fusion, 0, input, producer, job, shift});
  }
};

DispatchOptions options(bool lockstep, std::uint64_t hyperperiods) {
  DispatchOptions out;
  out.lockstep = lockstep;
  out.hyperperiods = hyperperiods;
  return out;
}

std::vector<std::uint32_t> modes_of(const DispatchResult& result) {
  std::vector<std::uint32_t> out;
  for (const ModeChange& change : result.changes) out.push_back(change.to);
  return out;
}

TEST(Modes, RequestsAreMetAtTheEndOfAHyperperiodOnBothClocks) {
  std::vector<JobRecord> virtual_records;
  for (const bool lockstep : {true, false}) {
    World world;
    std::map<std::uint64_t, std::array<std::int64_t, 2>> bound;  // of fusion, by job
    world.fusion_host.refuse = [&bound](const Job& job) {
      bound[job.number] = {job.bound[0], job.bound[1]};
      return false;
    };
    ModeControl control(world.modes);
    control.ask_at(World::kNight, TableTime{milliseconds(41).ns});     // at 60
    control.ask_at(World::kCoasting, TableTime{milliseconds(80).ns});  // at 95, when the hyperperiod from 65 ends
    control.ask_at(World::kDay, TableTime{milliseconds(96).ns});
    Records records;
    const auto result = world.run(options(lockstep, 8), &control, records);
    ASSERT_TRUE(result) << result.error().message;
    // Day at 0, 20, 40; night at 65; coasting at 95; day at 115, 135, 155 (the length is that of 8 days).
    EXPECT_EQ(modes_of(*result), (std::vector<std::uint32_t>{World::kNight, World::kCoasting, World::kDay}));
    EXPECT_EQ(result->hyperperiods_run, 8U);
    for (const ModeChange& change : result->changes) EXPECT_EQ(change.cause, ModeCause::kRequest);
    world.expect_as_planned(*result, records);
    ASSERT_EQ(bound.size(), 8U);
    // By day the camera's second job of the same hyperperiod, and the radar's.
    EXPECT_EQ(bound[0], (std::array<std::int64_t, 2>{1, 0}));
    EXPECT_EQ(bound[2], (std::array<std::int64_t, 2>{5, 2}));
    // The first at night is bound to a job before it, so it takes the newest of the day; the radar is not read.
    EXPECT_EQ(bound[3], (std::array<std::int64_t, 2>{5, Job::kNotRead}));
    EXPECT_EQ(bound[4], (std::array<std::int64_t, 2>{Job::kNotRead, 3}));
    // Numbers go on: six cameras by the first day, three at night.
    EXPECT_EQ(bound[5], (std::array<std::int64_t, 2>{10, 4}));
    if (lockstep) virtual_records = records.all();
  }
}

TEST(Modes, AFirstJobSeesOnlyWhatHasEndedInTheModeBefore) {
  World world;
  world.modes[World::kDay].schedule.bindings.clear();
  world.modes[World::kDay].schedule.bindings.push_back({world.fusion, 0, 0, world.camera, 1, -1});
  world.modes[World::kDay].schedule.slots[3].start = 500;  // before the last job of the night has ended, at 1 ms
  world.modes[World::kDay].schedule.slots[3].end = 3000;
  world.modes[World::kDay].schedule.slots[2].start = 5000;
  world.modes[World::kDay].schedule.slots[2].end = 8000;
  std::vector<std::int64_t> bound;
  world.fusion_host.refuse = [&bound](const Job& job) {
    bound.push_back(job.bound[0]);
    return false;
  };
  ModeControl control(world.modes);
  control.ask_at(World::kNight, TableTime{milliseconds(10).ns});
  control.ask_at(World::kDay, TableTime{milliseconds(30).ns});
  Records records;
  const auto result = world.run(options(true, 5), &control, records);
  ASSERT_TRUE(result);
  world.expect_as_planned(*result, records);
  // Day: job -1, before the run. Night: the day's second. Day again: not the night's third (job 4), which ends later.
  ASSERT_GE(bound.size(), 4U);
  EXPECT_EQ(bound[0], Job::kFilling);
  EXPECT_EQ(bound[1], 1);
  EXPECT_EQ(bound[2], 3);
  EXPECT_EQ(bound[3], 6);
}

TEST(Modes, AModeIsLeftByItsExitsWhenItsDwellIsOver) {
  World world;
  world.modes[World::kDay].dwell = milliseconds(50);  // 60, in whole hyperperiods
  world.modes[World::kCoasting].dwell = milliseconds(40);
  ModeControl control(world.modes);
  control.ask_at(World::kCoasting, TableTime{0});
  control.ask_at(World::kNight, TableTime{milliseconds(70).ns});  // no exit leads there: it waits for one
  control.ask_at(World::kDay, TableTime{milliseconds(95).ns});    // replaces it
  Records records;
  const auto result = world.run(options(true, 9), &control, records);
  ASSERT_TRUE(result);
  ASSERT_EQ(modes_of(*result), (std::vector<std::uint32_t>{World::kCoasting, World::kDay}));
  EXPECT_EQ(result->changes[0].begin.ns, milliseconds(60).ns);
  EXPECT_EQ(result->changes[1].begin.ns, milliseconds(100).ns);
  world.expect_as_planned(*result, records);
}

TEST(Modes, AnOverrunLeadsIntoTheModeOfItsStageAndBack) {
  World world;
  world.table.problem.stages[world.camera].overrun = OverrunPolicy::kDegrade;
  world.table.problem.stages[world.camera].degraded_mode = "coasting";
  world.table.problem.stages[world.camera].slack = milliseconds(5);  // it keeps its core, whatever else runs
  std::atomic<int> slow{0};
  world.camera_host.work = [&slow](const Job& job, int) {
    if (job.number == 4) {
      spin(milliseconds(5));
      ++slow;
    }
  };
  ModeControl control(world.modes);
  Records records;
  const auto result = world.run(options(false, 20), &control, records);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(slow, 1);
  world.expect_as_planned(*result, records);
  ASSERT_GE(result->changes.size(), 1U);
  const ModeChange& away = result->changes[0];
  EXPECT_EQ(away.to, World::kCoasting);
  EXPECT_EQ(away.cause, ModeCause::kOverrun);
  EXPECT_EQ(away.stage, world.camera);
  // The machine may have made another job overrun before.
  EXPECT_LE(away.job, 4U);
  ASSERT_GE(result->changes.size(), 2U);
  const ModeChange& back = result->changes[1];
  EXPECT_EQ(back.to, World::kDay);
  EXPECT_EQ(back.cause, ModeCause::kRecovered);
  EXPECT_EQ(back.hyperperiod, away.hyperperiod + kDegradedJobs);
}

TEST(Modes, AnOverrunIsMetWhileItsJobStillRunsAndLeftBehindItsEnd) {
  World world;
  world.table.problem.stages[world.camera].overrun = OverrunPolicy::kDegrade;
  world.table.problem.stages[world.camera].degraded_mode = "coasting";
  constexpr int kLonger = 5;  // hyperperiods of the new mode
  std::atomic<int> coasted{0};
  world.radar_host.work = [&coasted](const Job& job, int) { coasted += job.mode == World::kCoasting ? 1 : 0; };
  world.camera_host.work = [&coasted](const Job& job, int) {
    const HostTime give_up = host_now() + seconds(2);
    while (job.number == 4 && coasted < kLonger && host_now() < give_up) std::this_thread::yield();
  };
  ModeControl control(world.modes);
  Records records;
  const auto result = world.run(options(false, 30), &control, records);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_GE(coasted, kLonger);
  ASSERT_GE(result->changes.size(), 1U);
  const ModeChange& away = result->changes[0];
  EXPECT_EQ(away.to, World::kCoasting);
  EXPECT_EQ(away.cause, ModeCause::kOverrun);
  if (away.job != 4) GTEST_SKIP() << "the machine made another job overrun";
  const auto job = std::find_if(records.all().begin(), records.all().end(), [&](const JobRecord& record) {
    return record.stage == world.camera && record.job == away.job;
  });
  ASSERT_NE(job, records.all().end());
  EXPECT_EQ(job->job_class, JobClass::kOverrun);
  EXPECT_GT(job->completion, away.begin.ns + milliseconds(80).ns);
  const std::int64_t left = 30 - job->completion / milliseconds(20).ns;  // hyperperiods behind its end
  if (left < kDegradedJobs + 2) GTEST_SKIP() << "other programs kept its worker waiting";
  ASSERT_GE(result->changes.size(), 2U);
  const ModeChange& back = result->changes[1];
  EXPECT_EQ(back.to, World::kDay);
  EXPECT_EQ(back.cause, ModeCause::kRecovered);
  EXPECT_GT(back.begin.ns, job->completion + milliseconds(20).ns * (std::int64_t{kDegradedJobs} - 1));
}

TEST(Modes, ARealRunWithChangesGivesItsBytesAgain) {
  World wild;
  wild.table.problem.stages[wild.camera].overrun = OverrunPolicy::kDegrade;
  wild.table.problem.stages[wild.camera].degraded_mode = "night";
  wild.camera_host.work = [](const Job& job, int) {
    if (job.number % 7 == 3) spin(milliseconds(4));
  };
  wild.fusion_host.work = [](const Job& job, int) {
    if (job.number % 9 == 4) spin(milliseconds(40));  // over a boundary, into another home
  };
  ModeControl control(wild.modes);
  control.ask_at(World::kCoasting, TableTime{milliseconds(300).ns});
  Records records;
  const auto result = wild.run(options(false, 40), &control, records);
  ASSERT_TRUE(result) << result.error().message;
  wild.expect_as_planned(*result, records);
  ASSERT_GE(result->changes.size(), 1U);

  std::map<std::pair<std::uint32_t, std::uint64_t>, JobRecord> seen;
  for (const JobRecord& record : records.all()) seen[{record.stage, record.job}] = record;
  World again;
  DispatchOptions repeat = options(true, result->hyperperiods_run);
  repeat.reproduce = [&seen](std::uint32_t stage, std::uint64_t job) -> const JobRecord* {
    const auto found = seen.find({stage, job});
    return found == seen.end() ? nullptr : &found->second;
  };
  repeat.repeat_changes = result->changes;
  Records repeated;
  const auto second = again.run(repeat, nullptr, repeated);
  ASSERT_TRUE(second) << second.error().message;
  again.expect_as_planned(*second, repeated);
  ASSERT_EQ(second->changes.size(), result->changes.size());
  for (std::size_t i = 0; i < second->changes.size(); ++i) {
    EXPECT_EQ(second->changes[i].begin, result->changes[i].begin);
    EXPECT_EQ(second->changes[i].cause, result->changes[i].cause);
    EXPECT_EQ(second->changes[i].job, result->changes[i].job);
  }
  ASSERT_EQ(repeated.all().size(), seen.size());
  for (const JobRecord& record : repeated.all()) {
    const JobRecord& before = seen.at({record.stage, record.job});
    EXPECT_EQ(record.output.low, before.output.low) << record.stage << ' ' << record.job;
    EXPECT_EQ(record.published, before.published) << record.stage << ' ' << record.job;
    EXPECT_EQ(record.job_class, before.job_class) << record.stage << ' ' << record.job;
    EXPECT_EQ(record.mode, before.mode);
    EXPECT_EQ(record.nominal_start, before.nominal_start);
  }
}

// ---- who asks, without a run -----------------------------------------------------------------------------------

Turn at(std::uint32_t mode, std::uint64_t in_mode, Duration begin = {}) {
  Turn out;
  out.mode = mode;
  out.in_mode = in_mode;
  out.number = in_mode;
  out.begin = TableTime{begin.ns};
  return out;
}

TEST(ModeControl, ALostDeviceLeadsIntoTheFirstModeThatDoesWithoutAndNeverBack) {
  World world;
  for (ModeTable& mode : world.modes) mode.schedule.choices[world.camera].variant = 1;
  world.modes[World::kNight].schedule.choices[world.camera].variant = 0;
  world.modes[World::kDay].exits = {World::kCoasting, World::kNight};
  ModeControl control(world.modes);
  EXPECT_FALSE(control.choose(at(World::kDay, 1)));
  control.cannot_run(world.camera, 0, 3);  // the day runs variant 1
  EXPECT_FALSE(control.choose(at(World::kDay, 2)));
  control.cannot_run(world.camera, 1, 4);
  const auto change = control.choose(at(World::kDay, 3));
  ASSERT_TRUE(change);
  EXPECT_EQ(change->to, World::kCoasting);  // its table has the camera's variant, but does not run it
  EXPECT_EQ(change->cause, ModeCause::kDevice);
  EXPECT_EQ(change->stage, world.camera);
  EXPECT_EQ(change->job, 4U);
  control.request(World::kDay);
  EXPECT_FALSE(control.choose(at(World::kCoasting, 100)));
  // The first loss holds beside the second.
  world.modes[World::kCoasting].exits = {World::kDay, World::kNight};
  control.request(World::kNight);
  EXPECT_FALSE(control.choose(at(World::kCoasting, 200)));
}

TEST(ModeControl, ALostReferenceLeadsIntoItsModeUntilItIsBack) {
  World world;
  world.modes[World::kDay].lost = World::kCoasting;
  world.modes[World::kCoasting].dwell = milliseconds(60);
  ModeControl control(world.modes);
  bool lost = false;
  control.reference_lost = [&lost](const Turn&) { return lost; };
  EXPECT_FALSE(control.choose(at(World::kDay, 1)));
  lost = true;
  const auto change = control.choose(at(World::kDay, 2));
  ASSERT_TRUE(change);
  EXPECT_EQ(change->to, World::kCoasting);
  EXPECT_EQ(change->cause, ModeCause::kReference);
  EXPECT_FALSE(control.choose(at(World::kCoasting, 5)));
  lost = false;
  EXPECT_FALSE(control.choose(at(World::kCoasting, 2)));
  const auto back = control.choose(at(World::kCoasting, 3));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->to, World::kDay);
  EXPECT_EQ(back->cause, ModeCause::kRecovered);
}

TEST(ModeControl, TheMoreUrgentCauseIsMetFirstAndTheOtherWaits) {
  World world;
  ModeControl control(world.modes);
  control.request(World::kNight);
  control.overran(World::kCoasting, world.camera, 9);
  const auto first = control.choose(at(World::kDay, 1));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->cause, ModeCause::kOverrun);
  EXPECT_EQ(first->job, 9U);
  EXPECT_FALSE(control.choose(at(World::kCoasting, 1)));  // the night is no exit of coasting
  // Another overrun of the mode that runs begins the count anew.
  for (std::uint64_t h = 2; h < 6; ++h) EXPECT_FALSE(control.choose(at(World::kCoasting, h)));
  control.overran(World::kCoasting, world.camera, 10);
  for (std::uint64_t h = 6; h < 6 + kDegradedJobs; ++h) EXPECT_FALSE(control.choose(at(World::kCoasting, h))) << h;
  const auto back = control.choose(at(World::kCoasting, 6 + kDegradedJobs));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->cause, ModeCause::kRecovered);
  const auto then = control.choose(at(World::kDay, 1));
  ASSERT_TRUE(then);
  EXPECT_EQ(then->to, World::kNight);
  EXPECT_EQ(then->cause, ModeCause::kRequest);
}

TEST(ModeControl, AJobThatOverrunsIntoAnotherModeKeepsNobodyHere) {
  World world;
  ModeControl control(world.modes);
  control.overran(World::kCoasting, world.camera, 9);
  ASSERT_TRUE(control.choose(at(World::kDay, 1)));
  control.overruns(World::kNight, world.radar, 4);  // no exit of coasting; it never ends
  for (std::uint64_t h = 1; h < kDegradedJobs; ++h) EXPECT_FALSE(control.choose(at(World::kCoasting, h))) << h;
  const auto back = control.choose(at(World::kCoasting, kDegradedJobs));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->cause, ModeCause::kRecovered);
}

TEST(ModeControl, OfSeveralOverrunsTheFirstIsNamed) {
  World world;
  ModeControl control(world.modes);
  control.overran(World::kCoasting, world.camera, 9);
  control.overran(World::kCoasting, world.radar, 4);
  const auto away = control.choose(at(World::kDay, 1));
  ASSERT_TRUE(away);
  EXPECT_EQ(away->stage, world.camera);
  EXPECT_EQ(away->job, 9U);
}

TEST(ModeControl, WhatLedIntoAModeIsNotOverWhileItsJobRuns) {
  World world;
  ModeControl control(world.modes);
  control.overruns(World::kCoasting, world.camera, 9);
  const auto away = control.choose(at(World::kDay, 1));
  ASSERT_TRUE(away);
  EXPECT_EQ(away->cause, ModeCause::kOverrun);
  EXPECT_EQ(away->job, 9U);
  for (std::uint64_t h = 1; h < 3 * kDegradedJobs; ++h) EXPECT_FALSE(control.choose(at(World::kCoasting, h))) << h;
  control.has_ended(World::kCoasting);
  for (std::uint64_t h = 1; h < kDegradedJobs; ++h) EXPECT_FALSE(control.choose(at(World::kCoasting, 40 + h))) << h;
  const auto back = control.choose(at(World::kCoasting, 60));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->cause, ModeCause::kRecovered);
}

}  // namespace
}  // namespace takt::sched
