// What follows an overrun, by policy. Overruns are made by the stages themselves, and a loaded machine may add some:
// what is checked are rules between records, whatever caused them.
#include <gtest/gtest.h>
#include <map>
#include <thread>

#include "fake_host.h"
#include "scheduler/dispatch/stage_run.h"

namespace takt::sched {
namespace {

using test::FakeHost;
using test::real_time;
using test::Records;
using test::spin;
using test::TableBuilder;

// One stage in slots of 12 ms with a budget of 2 ms, for which jobs 2 and 5 take 6 ms.
struct Overrunning {
  explicit Overrunning(OverrunPolicy policy) : table(milliseconds(20), 1) {
    stage = table.stage("stage", 1, milliseconds(2), milliseconds(2));
    table.problem.stages[stage].overrun = policy;
    table.slot(stage, 0, {0}, 0, 12);
    host.work = [](const Job& job, int) {
      if (job.number == 2 || job.number == 5) spin(milliseconds(6));
    };
  }
  std::vector<JobRecord> run(std::uint64_t hyperperiods = 12) {
    const auto result = test::run(table, {&host}, real_time(hyperperiods), records);
    EXPECT_TRUE(result) << (result ? "" : result.error().message);
    auto all = records.all();
    test::expect_each_job_once(table, stage, hyperperiods, all);
    return all;
  }
  TableBuilder table;
  std::uint32_t stage = 0;
  FakeHost host;
  Records records;
};

bool overran(const JobRecord& record) { return (record.flags & kFlagOverrun) != 0; }

// Its home in one mode, and another in the next: what its last job brought upon the next one comes along.
TEST(Policy, FollowsAStageToItsHomeInAnotherMode) {
  FakeHost host;
  StageState state;
  const StagePlan plan{.overrun = OverrunPolicy::kSkipNext,
                       .admitted = {0, {.wakeup_window = milliseconds(1), .budget = milliseconds(1)}},
                       .degraded = {},
                       .degraded_mode = {},
                       .arena = nullptr};
  const SharedByRuns shared{0, &host, {}, &state, nullptr};
  StageRun day(shared, {0}, {plan, std::nullopt}), night(shared, {1}, {std::nullopt, plan});
  std::thread at_day([&] { day.work(0); }), at_night([&] { night.work(0); });
  const auto start = [](StageRun& run, std::uint32_t mode, std::uint64_t number) {
    Job job;
    job.number = number;
    job.mode = mode;
    return run.start(job, TableTime{}, nanoseconds(1), {});
  };
  // Of a job that has started: it takes twice its budget.
  const auto overrun = [](StageRun& run) {
    run.release(0);
    ASSERT_TRUE(run.await_end(host_now() + seconds(20)));
    run.note(TableTime{0}, TableTime{milliseconds(2).ns});
    run.publish();
    run.close();
    run.free();
  };
  const auto reason = [](const JobRecord* skipped) { return skipped == nullptr ? Reason::kNone : skipped->reason; };
  ASSERT_EQ(start(day, 0, 0), nullptr);
  overrun(day);
  EXPECT_EQ(reason(start(night, 1, 1)), Reason::kSkipNext);
  EXPECT_EQ(day.in_flight(), nullptr);
  ASSERT_EQ(start(night, 1, 2), nullptr);
  EXPECT_EQ(day.in_flight(), &night) << "who leads the next job by day may wait for it";
  EXPECT_EQ(reason(start(day, 0, 3)), Reason::kPreviousRunning);
  overrun(night);
  EXPECT_EQ(start(day, 0, 4), nullptr) << "one was skipped meanwhile";
  overrun(day);
  day.quit();
  night.quit();
  at_day.join();
  at_night.join();
}

TEST(Policy, AbortGivesUpAtTheNextStepAndPublishesNothing) {
  Overrunning world(OverrunPolicy::kAbort);
  int aborted = 0;
  int published = 0;
  for (const JobRecord& record : world.run()) {
    published += record.published;
    if ((record.flags & kFlagAborted) == 0) continue;
    ++aborted;
    EXPECT_TRUE(overran(record));
    EXPECT_TRUE(record.job_class == JobClass::kOverrun || record.job_class == JobClass::kLateStart);
    EXPECT_EQ(record.published, 0);
    EXPECT_EQ(record.publication, kNever);
    EXPECT_LE(record.aborted_at, 1U);  // FakeHost has two boundaries
  }
  EXPECT_GE(aborted, 2);
  EXPECT_EQ(published, world.host.publications);
  EXPECT_EQ(world.host.latches, world.host.finishes);
}

TEST(Policy, ContinueLatePublishesAnOverrunThatEndsInItsSlot) {
  Overrunning world(OverrunPolicy::kContinueLate);
  for (const JobRecord& record : world.run()) {
    EXPECT_EQ(record.flags & kFlagAborted & ~kFlagDiscarded, 0U);
    if (record.job == 2 && record.reason == Reason::kNone && record.completion <= record.slot_end) {
      EXPECT_TRUE(overran(record));
      EXPECT_EQ(record.published, 1);
    }
  }
}

TEST(Policy, SkipNextSkipsOneJobAfterEachOverrun) {
  Overrunning world(OverrunPolicy::kSkipNext);
  const auto all = world.run();
  int by_policy = 0;
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i].reason == Reason::kSkipNext) {
      ++by_policy;
      EXPECT_EQ(all[i].job_class, JobClass::kSkipped);
      EXPECT_TRUE(overran(all[i - 1])) << i;
    } else if (overran(all[i - 1])) {
      EXPECT_TRUE(all[i].reason == Reason::kPreviousRunning || all[i].reason == Reason::kSlotOver) << i;
    }
  }
  EXPECT_GE(by_policy, 1);
}

TEST(Policy, DegradeRunsTheOtherVariantUntilEnoughJobsKeptTheirBudget) {
  Overrunning world(OverrunPolicy::kDegrade);
  Stage& stage = world.table.problem.stages[world.stage];
  Budget full, lite;
  full.time = milliseconds(2);
  lite.time = milliseconds(1);
  stage.variants = {{.name = "full", .budgets = {full}}, {.name = "lite", .budgets = {lite}}};
  stage.degraded_variant = "lite";
  std::uint32_t left = 0;
  int degraded = 0;
  for (const JobRecord& record : world.run(2 * kDegradedJobs + 10)) {
    if (record.job_class == JobClass::kSkipped) continue;
    EXPECT_EQ(record.variant, left > 0 ? 1U : 0U) << record.job;
    degraded += static_cast<int>(record.variant);
    // The budget is that of the variant.
    EXPECT_EQ(overran(record),
              record.completion - record.actual_start > stage.variants[record.variant].budgets[0].time.ns);
    if (overran(record)) {
      left = kDegradedJobs;
    } else if (left > 0) {
      --left;
    }
  }
  EXPECT_GE(degraded, static_cast<int>(kDegradedJobs));
}

TEST(Policy, AnArenaInUseSkipsTheOtherStage) {
  TableBuilder table(milliseconds(20), 2);
  const auto first = table.stage("first", 1, milliseconds(2), milliseconds(1));
  const auto second = table.stage("second", 1, milliseconds(2), milliseconds(1));
  table.problem.mutexes = {{"arena"}};
  for (Stage& stage : table.problem.stages) {
    stage.variants = {{.name = "full", .budgets = {}, .resident = 0, .arena = 4096, .arena_mutex = 0}};
  }
  table.slot(first, 0, {0}, 0, 5);
  table.slot(second, 0, {1}, 8, 13);
  FakeHost first_host, second_host;
  Records records;
  first_host.work = [&](const Job& job, int) {
    // Until the other stage has been refused twice.
    const HostTime limit = host_now() + seconds(20);
    while (job.number == 1 && host_now() < limit) {
      int refused = 0;
      for (const JobRecord& record : records.of_stage(second)) refused += record.reason == Reason::kArena ? 1 : 0;
      if (refused >= 2) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  std::atomic<bool> stop{false};
  second_host.work = [&](const Job& job, int) {
    if (job.number >= 4) stop = true;
  };
  DispatchOptions options = real_time(2000);
  options.stop = &stop;
  ASSERT_TRUE(test::run(table, {&first_host, &second_host}, options, records));
  int refused = 0;
  for (const JobRecord& record : records.of_stage(second)) {
    if (record.reason != Reason::kArena) continue;
    ++refused;
    EXPECT_EQ(record.job_class, JobClass::kSkipped);
    EXPECT_EQ(record.published, 0);
  }
  EXPECT_GE(refused, 2);
  EXPECT_GT(second_host.publications, 1);
  EXPECT_EQ(second_host.latches, second_host.finishes);
}

// A producer that overruns in every way, and a consumer whose values depend on what it was given.
struct Eventful {
  Eventful()
      : table(milliseconds(20), 2), consumer_host({&aborting_host.output, &late_host.output, &lite_host.output}) {
    aborting = table.stage("aborting", 1, milliseconds(2), milliseconds(1));
    late = table.stage("late", 1, milliseconds(2), milliseconds(3));
    lite = table.stage("lite", 1, milliseconds(2), milliseconds(1));
    consumer = table.stage("consumer", 1, milliseconds(2), milliseconds(1));
    Budget budget;
    budget.time = milliseconds(2);
    table.problem.stages[aborting].overrun = OverrunPolicy::kAbort;
    table.problem.stages[late].overrun = OverrunPolicy::kSkipNext;
    table.problem.stages[lite].overrun = OverrunPolicy::kDegrade;
    table.problem.stages[lite].variants = {{.name = "full", .budgets = {budget}},
                                           {.name = "lite", .budgets = {budget}}};
    table.problem.stages[lite].degraded_variant = "lite";
    table.slot(aborting, 0, {0}, 0, 4);
    table.slot(late, 0, {1}, 0, 4);
    table.slot(lite, 0, {0}, 8, 12);
    table.slot(consumer, 0, {1}, 14, 18);
  }
  std::vector<StageHost*> hosts() { return {&aborting_host, &late_host, &lite_host, &consumer_host}; }
  TableBuilder table;
  std::uint32_t aborting = 0, late = 0, lite = 0, consumer = 0;
  FakeHost aborting_host, late_host, lite_host, consumer_host;
};

TEST(Reproduce, ARunWithOverrunsGivesItsBytesAgain) {
  Eventful world;
  const auto wild = [](std::uint64_t every, Duration time) {
    return [every, time](const Job& job, int) {
      if (job.number % every == 1) spin(time);
    };
  };
  world.aborting_host.work = wild(5, milliseconds(3));
  world.late_host.work = wild(7, milliseconds(18));  // beyond its slack, into its next slot
  world.lite_host.work = wild(11, milliseconds(3));
  Records records;
  ASSERT_TRUE(test::run(world.table, world.hosts(), real_time(40), records));

  std::map<std::pair<std::uint32_t, std::uint64_t>, JobRecord> seen;
  int aborted = 0, skipped = 0, degraded = 0, discarded = 0;
  for (const JobRecord& record : records.all()) {
    seen[{record.stage, record.job}] = record;
    aborted += (record.flags & kFlagAborted) != 0 ? 1 : 0;
    discarded += (record.flags & kFlagDiscarded) != 0 ? 1 : 0;
    skipped += record.job_class == JobClass::kSkipped ? 1 : 0;
    degraded += static_cast<int>(record.variant);
  }
  EXPECT_GT(aborted, 0);
  EXPECT_GT(skipped, 0);
  EXPECT_GT(degraded, 0);
  EXPECT_GT(discarded, 0);

  Eventful again;  // where nothing takes long
  Records repeated;
  DispatchOptions options = real_time(40);
  options.lockstep = true;
  options.reproduce = [&seen](std::uint32_t stage, std::uint64_t job) -> const JobRecord* {
    const auto found = seen.find({stage, job});
    return found == seen.end() ? nullptr : &found->second;
  };
  ASSERT_TRUE(test::run(again.table, again.hosts(), options, repeated));
  ASSERT_EQ(repeated.all().size(), records.all().size());
  for (const JobRecord& record : repeated.all()) {
    const JobRecord& before = seen.at({record.stage, record.job});
    EXPECT_EQ(record.output.low, before.output.low) << record.stage << ' ' << record.job;
    EXPECT_EQ(record.published, before.published) << record.stage << ' ' << record.job;
    EXPECT_EQ(record.job_class, before.job_class) << record.stage << ' ' << record.job;
    EXPECT_EQ(record.reason, before.reason);
    EXPECT_EQ(record.flags, before.flags) << record.stage << ' ' << record.job;
    EXPECT_EQ(record.variant, before.variant);
    EXPECT_EQ(record.aborted_at, before.aborted_at);
    EXPECT_EQ(record.actual_start, before.actual_start);
    EXPECT_EQ(record.publication, before.publication);
    for (std::size_t i = 0; i < record.input_count; ++i) EXPECT_EQ(record.inputs[i].job, before.inputs[i].job);
  }
}

}  // namespace
}  // namespace takt::sched
