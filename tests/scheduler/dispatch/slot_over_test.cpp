// A core whose dispatcher wakes so late that the job before it would be done for nothing. The dispatchers are held by
// stages whose latch, which runs in the dispatcher's thread, takes long; a loaded machine may hold them as well, so
// what a run was to bring about may need another one.
#include <gtest/gtest.h>
#include <map>

#include "fake_host.h"

namespace takt::sched {
namespace {

using test::FakeHost;
using test::lockstep;
using test::real_time;
using test::Records;
using test::spin;
using test::TableBuilder;

// Holds its dispatcher in the latch of its second job.
class Holder final : public FakeHost {
 public:
  explicit Holder(Duration time) : time_(time) {}
  bool latch(const Job& job, Duration patience, JobRecord& record) override {
    if (job.number == 1) spin(time_);
    return FakeHost::latch(job, patience, record);
  }

 private:
  const Duration time_;
};

// `stage` once in 10 ms, in its slot from 0 to 7, on core 0 or on both; and on core `held` one that holds the
// dispatcher from 18 ms on, until 28.5 ms: the stage's third slot, from 20 to 27 ms, is over. `behind` reads what it
// published.
struct World {
  explicit World(Duration slack, std::vector<std::uint32_t> cores = {0}, std::uint32_t held = 0)
      : table(milliseconds(10), 2), holder_host(microseconds(10'500)), behind_host({&host.output}) {
    stage = table.stage("stage", 1, milliseconds(5), slack);
    holder = table.stage("holder", 1, milliseconds(1));
    behind = table.stage("behind", 1, milliseconds(1));
    table.slot(stage, 0, std::move(cores), 0, 7);
    table.slot(holder, 0, {held}, 8, 9.5);
    table.slot(behind, 0, {1}, 9, 10);
    host.work = [this](const Job& job, int part) {
      spin(milliseconds(2));
      if (part == 1) second_parts |= 1U << job.number;
    };
  }
  std::vector<StageHost*> hosts() { return {&host, &holder_host, &behind_host}; }
  // The stage's jobs, in order.
  std::vector<JobRecord> run(Records& records) {
    const auto result = test::run(table, hosts(), real_time(kHyperperiods), records);
    EXPECT_TRUE(result) << (result ? "" : result.error().message);
    auto jobs = records.of_stage(stage);
    test::expect_each_job_once(table, stage, kHyperperiods, jobs);
    std::sort(jobs.begin(), jobs.end(), [](const JobRecord& a, const JobRecord& b) { return a.job < b.job; });
    EXPECT_EQ(host.latches, host.finishes);
    EXPECT_EQ(host.publications + host.discards, host.finishes);
    return jobs;
  }

  static constexpr std::uint64_t kHyperperiods = 6, kLost = 2;
  TableBuilder table;
  std::uint32_t stage = 0, holder = 0, behind = 0;
  std::atomic<std::uint32_t> second_parts{0};  // bit j: part 1 of job j ran
  FakeHost host;
  Holder holder_host;
  FakeHost behind_host;
};

template <class Run>
void until(Run run) {
  for (int tries = 0; tries < 20; ++tries) {
    bool happened = false;
    run(happened);
    if (happened || testing::Test::HasFailure()) return;
  }
  ADD_FAILURE() << "it did not happen in 20 runs";
}

bool started(const JobRecord& record) { return record.actual_start != kNever; }

TEST(SlotOver, TheJobIsSkippedAndTheNextOneRuns) {
  until([](bool& happened) {
    World world({});
    Records records;
    const std::vector<JobRecord> jobs = world.run(records);
    const JobRecord& lost = jobs[World::kLost];
    EXPECT_FALSE(started(lost));
    EXPECT_EQ(lost.job_class, JobClass::kSkipped);
    EXPECT_EQ(lost.published, 0);
    if (lost.reason != Reason::kSlotOver) {  // the machine kept the job before from ending
      EXPECT_EQ(lost.reason, Reason::kPreviousRunning);
      return;
    }
    EXPECT_EQ(lost.flags, kFlagLateStart);
    EXPECT_EQ(lost.input_count, 0);
    happened = started(jobs[World::kLost + 1]) && jobs[World::kLost + 1].published != 0;
  });
}

TEST(SlotOver, WhatCanStillBePublishedInItsSlackIsStarted) {
  until([](bool& happened) {
    World world(seconds(60));
    Records records;
    const JobRecord lost = world.run(records)[World::kLost];
    EXPECT_NE(lost.reason, Reason::kSlotOver);
    if (!started(lost)) return;
    EXPECT_GT(lost.actual_start, lost.slot_end);
    EXPECT_EQ(lost.job_class, JobClass::kLateStart);
    EXPECT_EQ(lost.published, 1);
    happened = true;
  });
}

// On the lead's core nobody starts it.
TEST(SlotOver, AGangWhoseLeadIsHeldIsSkippedOnBothCores) {
  until([](bool& happened) {
    World world({}, {0, 1}, 0);
    Records records;
    const std::vector<JobRecord> jobs = world.run(records);
    const JobRecord& lost = jobs[World::kLost];
    EXPECT_FALSE(started(lost));
    EXPECT_EQ(world.second_parts & (1U << World::kLost), 0U);
    happened = lost.reason == Reason::kSlotOver && started(jobs[World::kLost + 1]);
  });
}

// On the other core the lead's part has begun: it is given up, and the part there does nothing of it.
TEST(SlotOver, AGangWhoseOtherCoreIsHeldIsGivenUp) {
  until([](bool& happened) {
    World world({}, {0, 1}, 1);
    Records records;
    const std::vector<JobRecord> jobs = world.run(records);
    const JobRecord& lost = jobs[World::kLost];
    EXPECT_EQ(lost.published, 0);
    if (!started(lost)) return;
    EXPECT_EQ(lost.reason, Reason::kSlotOver);
    EXPECT_EQ(lost.job_class, JobClass::kLateStart);
    EXPECT_NE(lost.flags & kFlagDiscarded, 0U);
    EXPECT_EQ(world.second_parts & (1U << World::kLost), 0U);
    happened = started(jobs[World::kLost + 1]);
  });
}

// Of a job in segments the later one does not begin.
TEST(SlotOver, ALaterSegmentIsGivenUp) {
  until([](bool& happened) {
    TableBuilder table(milliseconds(20), 1);
    const Segment on_core{.unit = {}, .time = milliseconds(1), .guard = {}, .mutexes = {}};
    const std::uint32_t stage = table.stage("stage", 1, {on_core, on_core});
    const std::uint32_t holder = table.stage("holder", 1, milliseconds(1));
    table.slot_of(stage, 0, 0, {0}, 0, 3);
    table.slot(holder, 0, {0}, 4, 6);
    table.slot_of(stage, 0, 1, {0}, 8, 11);
    FakeHost host;
    Holder holder_host(milliseconds(8));
    std::atomic<int> later{0};
    host.work = [&](const Job& job, int) { later += job.number == 1 && job.segment == 1 ? 1 : 0; };
    Records records;
    ASSERT_TRUE(test::run(table, {&host, &holder_host}, real_time(4), records));
    const std::vector<JobRecord> jobs = records.of_stage(stage);
    test::expect_each_job_once(table, stage, 4, jobs);
    EXPECT_EQ(later, 0);
    for (const JobRecord& record : jobs) {
      if (record.job == 1 && started(record)) {
        EXPECT_EQ(record.published, 0);
        EXPECT_EQ(record.segments[1].start, kNever);
        if (record.segments[0].end < record.nominal_start + milliseconds(8).ns) {
          EXPECT_EQ(record.reason, Reason::kSlotOver);
          EXPECT_EQ(record.job_class, JobClass::kLateStart);
        }
      }
      happened = happened || (record.job == 2 && started(record));
    }
  });
}

// The same bytes in virtual time, where nobody is held.
TEST(SlotOver, ReproducingHasTheSameBytes) {
  for (const std::uint32_t held : {0U, 1U}) {
    until([held](bool& happened) {
      World world({}, {0, 1}, held);
      Records records;
      static_cast<void>(world.run(records));
      std::map<std::pair<std::uint32_t, std::uint64_t>, JobRecord> seen;
      for (const JobRecord& record : records.all()) {
        seen[{record.stage, record.job}] = record;
        happened = happened || (record.reason == Reason::kSlotOver && started(record) == (held == 1));
      }
      World again({}, {0, 1}, held);
      Records repeated;
      DispatchOptions options = lockstep(World::kHyperperiods);
      options.reproduce = [&seen](std::uint32_t stage, std::uint64_t job) { return &seen.at({stage, job}); };
      ASSERT_TRUE(test::run(again.table, again.hosts(), options, repeated));
      ASSERT_EQ(repeated.all().size(), seen.size());
      for (const JobRecord& record : repeated.all()) {
        const JobRecord& before = seen.at({record.stage, record.job});
        const auto which = testing::Message() << record.stage << ' ' << record.job;
        EXPECT_EQ(record.output.low, before.output.low) << which;
        EXPECT_EQ(record.published, before.published) << which;
        EXPECT_EQ(record.job_class, before.job_class) << which;
        EXPECT_EQ(record.reason, before.reason) << which;
        EXPECT_EQ(record.flags, before.flags) << which;
        EXPECT_EQ(record.aborted_at, before.aborted_at) << which;
        EXPECT_EQ(record.actual_start, before.actual_start) << which;
        EXPECT_EQ(record.completion, before.completion) << which;
        for (std::size_t i = 0; i < record.input_count; ++i) EXPECT_EQ(record.inputs[i].job, before.inputs[i].job);
      }
    });
  }
}

}  // namespace
}  // namespace takt::sched
