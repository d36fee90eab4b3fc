// Rules, no times: what was released runs once or is recorded as dropped, and nothing shares a core.

#include "pipeline/assembly/event_executor.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <map>

#include "tests/scheduler/dispatch/fake_host.h"

namespace takt::pipeline {
namespace {

using sched::JobClass;
using sched::JobRecord;
using sched::test::FakeHost;
using sched::test::Records;
using sched::test::TableBuilder;

// `quick` on core 1 four times in 20 ms, `wide` on both twice, reading quick, `last` on core 0 once, reading wide.
struct World {
  TableBuilder table{milliseconds(20), 2};
  FakeHost quick, wide{{&quick.output}}, last{{&wide.output}};
  std::vector<sched::StageHost*> hosts{&quick, &wide, &last};
  std::array<std::atomic<int>, 2> on_core{};
  std::atomic<int> shared{0};
  bool wide_reads_nothing = false;
  Records records;

  World() {
    table.stage("quick", 4, milliseconds(1));
    table.stage("wide", 2, milliseconds(1));
    table.stage("last", 1, milliseconds(1));
    for (std::uint32_t j = 0; j < 4; ++j) table.slot(0, j, {1}, j * 5, j * 5 + 1);
    for (std::uint32_t j = 0; j < 2; ++j) table.slot(1, j, {0, 1}, j * 10 + 2, j * 10 + 3);
    table.slot(2, 0, {0}, 15, 16);
    table.problem.stages[1].inputs = {{"quick", false, 0, false, {}}};
    table.problem.stages[2].inputs = {{"wide", false, 1, false, {}}};
    quick.work = [this](const sched::Job&, int) { use(1, 300); };
    wide.work = [this](const sched::Job&, int part) { use(static_cast<std::size_t>(part), 500); };
    last.work = [this](const sched::Job&, int) { use(0, 400); };
  }
  void use(std::size_t core, std::int64_t us) {
    if (on_core[core].fetch_add(1) != 0) ++shared;
    const HostTime until = host_now() + microseconds(us);
    while (host_now() < until) {
    }
    --on_core[core];
  }
  [[nodiscard]] sched::ModeTable mode() const {
    sched::ModeTable out = sched::only_table(table.problem, table.schedule);
    if (wide_reads_nothing) out.reads[1][0] = 0;
    return out;
  }
  sched::DispatchResult run(Way way, std::uint64_t hyperperiods, const std::atomic<bool>* stop = nullptr) {
    const auto result =
        run_without_table(table.problem, mode(), {}, hosts, {.way = way, .hyperperiods = hyperperiods, .stop = stop},
                          [this](std::size_t, const JobRecord& record) { records(record); });
    EXPECT_TRUE(result) << result.error().message;
    return result ? *result : sched::DispatchResult{};
  }
};

TEST(EventExecutor, EveryReleaseRunsOnceOrIsRecordedAsDropped) {
  for (const Way way : {Way::kFifo, Way::kEdf, Way::kEpoch}) {
    World world;
    EXPECT_EQ(world.run(way, 10).hyperperiods_run, 10U);
    const std::uint64_t rates[] = {4, 2, 1};
    for (std::uint32_t s = 0; s < 3; ++s) {
      std::vector<JobRecord> of_stage = world.records.of_stage(s);
      EXPECT_EQ(of_stage.size(), 10 * rates[s]) << name_of(way) << s;
      std::sort(of_stage.begin(), of_stage.end(), [](const auto& a, const auto& b) { return a.job < b.job; });
      std::uint64_t ran = 0;
      std::int64_t before = -1;
      for (std::size_t j = 0; j < of_stage.size(); ++j) {
        const JobRecord& record = of_stage[j];
        EXPECT_EQ(record.job, j);
        if (record.job_class == JobClass::kSkipped) {
          EXPECT_EQ(record.reason, sched::Reason::kPreviousRunning);
          continue;
        }
        ++ran;
        EXPECT_EQ(record.published, 1);
        EXPECT_GE(record.actual_start, record.nominal_start);
        EXPECT_GT(record.nominal_start, before) << "jobs of a stage do not overlap";
        EXPECT_GE(record.publication, record.completion);
        before = record.completion;
      }
      EXPECT_GT(ran, 0U);
    }
    EXPECT_EQ(world.wide.runs, 2 * world.wide.publications) << "both parts of every job";
    EXPECT_EQ(world.shared, 0) << "two jobs on one core";
  }
}

// In an epoch `last` comes behind `wide` and `wide` behind `quick`: each sees what was made in its own epoch.
TEST(EventExecutor, EpochsKeepTheOrderOfInputs) {
  World world;
  world.run(Way::kEpoch, 10);
  std::map<std::uint64_t, JobRecord> quick;
  for (const JobRecord& record : world.records.of_stage(0)) quick[record.job] = record;
  for (const JobRecord& record : world.records.of_stage(1)) {
    if (record.published == 0) continue;
    const JobRecord& producer = quick[record.inputs[0].job - 1];
    EXPECT_EQ(producer.job, record.job * 2) << "the job of `quick` that began with it";
    EXPECT_LE(producer.publication, record.nominal_start);
  }
}

TEST(EventExecutor, AJobWhoseInputIsMissingDoesNotRunAndHoldsNobodyUp) {
  World world;
  world.wide.refuse = [](const sched::Job& job) { return job.number % 2 == 0; };
  world.run(Way::kFifo, 5);
  for (const JobRecord& record : world.records.of_stage(1)) {
    if (record.job % 2 == 0 && record.job_class != JobClass::kSkipped) {
      EXPECT_EQ(record.job_class, JobClass::kMissing);
      EXPECT_EQ(record.published, 0);
    }
  }
  EXPECT_GT(world.wide.discards, 0);
  EXPECT_GT(world.wide.publications, 0);
}

// What a mode leaves out is read in no other way either.
TEST(EventExecutor, WhatTheModeDoesNotReadIsNotRead) {
  for (const bool leaves_out : {false, true}) {
    World world;
    world.wide_reads_nothing = leaves_out;
    std::atomic<int> left_out{0};
    world.wide.refuse = [&](const sched::Job& job) {
      left_out += job.bound[0] == sched::Job::kNotRead ? 1 : 0;
      return false;
    };
    world.last.refuse = [](const sched::Job& job) { return job.bound[0] == sched::Job::kNotRead; };
    world.run(Way::kFifo, 5);
    EXPECT_EQ(left_out > 0, leaves_out);
    EXPECT_GT(world.last.publications, 0);
  }
}

TEST(EventExecutor, AStopEndsItEarly) {
  World world;
  const std::atomic<bool> stop{true};
  EXPECT_TRUE(world.run(Way::kEdf, 1'000'000, &stop).stopped);
  EXPECT_LT(world.records.count, 10);
}

}  // namespace
}  // namespace takt::pipeline
