// What happens to a worker that does not finish, and that nobody else suffers from it. No test judges a time; they hang
// upon, or would fail for, a worker that keeps its core: it ends only after its neighbour on the same CPU has run.
#include <gtest/gtest.h>

#include <sched.h>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <mutex>

#include "fake_host.h"
#include "runtime/base/foreign_call.h"
#include "tests/support/without_rights.h"

namespace takt::sched {
namespace {

using takt::test::WithoutRights;
using test::FakeHost;
using test::Records;
using test::TableBuilder;
using test::Victim;

#if defined(__SANITIZE_THREAD__)
constexpr bool kSignalsAreDelayed = true;  // TSan runs handlers at the next call that it knows, not in a loop
#else
constexpr bool kSignalsAreDelayed = false;
#endif

// `looping` and `victim` share a core; the slots of `looping` come first.
struct Neighbours {
  Neighbours() : table(milliseconds(20), 1) {
    looping = table.stage("looping", 1, milliseconds(1), milliseconds(1));
    victim = table.stage("victim", 1, milliseconds(2), seconds(60));
    table.slot(looping, 0, {0}, 0, 4);
    table.slot(victim, 0, {0}, 5, 10);
    looping_host.work = [this](const Job& job, int) {
      if (!looper.is(job)) {
        recovered = recovered || job.number > looper.number;
        return;
      }
      // Endless for a dispatcher that does not take the core away; the limit lets the test fail instead of hang.
      const HostTime limit = host_now() + seconds(20);
      while (victim_host.runs < victims_during && host_now() < limit) progress.fetch_add(1, std::memory_order_relaxed);
    };
    victim_host.work = [this](const Job&, int) {
      const std::uint64_t before = progress.load();
      test::spin(milliseconds(1));
      disturbed += progress.load() != before && looping_host.publications == 1 ? 1 : 0;
    };
  }
  std::vector<StageHost*> hosts() { return {&looping_host, &victim_host}; }

  Result<DispatchResult> run(Records& records) {
    DispatchOptions options;
    options.hyperperiods = 2000;
    options.stop = &recovered;
    return test::run(table, hosts(), options, records);
  }

  static constexpr int victims_during = 6;
  TableBuilder table;
  std::uint32_t looping = 0, victim = 0;
  FakeHost looping_host, victim_host;
  std::atomic<std::uint64_t> progress{0};
  std::atomic<int> disturbed{0};
  Victim looper;                       // the job that loops
  std::atomic<bool> recovered{false};  // the looping stage has come to a later job
};

// Jobs of an innocent stage are published, but for those few that come after an own late one, as on a loaded machine;
// if the looping worker kept the core, none would be.
void expect_only_own_lateness(const std::vector<JobRecord>& records) {
  std::size_t missed = 0;
  for (const JobRecord& record : records) {
    if (record.published != 0) continue;
    EXPECT_EQ(record.reason, Reason::kPreviousRunning) << record.job;
    ++missed;
  }
  EXPECT_LE(missed, 1 + records.size() / 4);
}

void expect_isolated(const Neighbours& world, const DispatchResult& result, const Records& records) {
  const auto victim = records.of_stage(world.victim);
  const auto looping = records.of_stage(world.looping);
  test::expect_each_job_once(world.table, world.victim, result.hyperperiods_run, victim);
  test::expect_each_job_once(world.table, world.looping, result.hyperperiods_run, looping);
  expect_only_own_lateness(victim);
  int skipped = 0;
  for (const JobRecord& record : looping) {
    if (record.job == world.looper.number) {
      EXPECT_NE(record.flags & kFlagIsolated, 0U);
      EXPECT_NE(record.flags & kFlagDiscarded, 0U);
      EXPECT_EQ(record.published, 0);
    }
    skipped += record.reason == Reason::kPreviousRunning ? 1 : 0;
  }
  // It skipped while its worker was busy, and only then.
  EXPECT_GE(skipped, Neighbours::victims_during - 2);
  EXPECT_TRUE(world.recovered);
}

TEST(Isolation, AnEndlessLoopIsDemotedAndItsCoreRunsOn) {
  Neighbours world;
  int policy_after = -1;
  const auto loop = world.looping_host.work;
  world.looping_host.work = [&](const Job& job, int part) {
    loop(job, part);
    if (world.recovered) policy_after = sched_getscheduler(0);
  };
  Records records;
  const auto result = world.run(records);
  ASSERT_TRUE(result) << result.error().message;
  if (!result->rights.fifo) GTEST_SKIP() << "not granted here: " << result->rights.refused;
  EXPECT_EQ(result->rights.isolation, "demotion");
  expect_isolated(world, *result, records);
  EXPECT_EQ(policy_after, SCHED_FIFO);  // restored before its next job
}

// Who is released late, because the core's dispatcher stood still, has not overrun: it keeps the core for as long as
// its slot is, so that it does not starve at idle priority behind whatever else the machine runs.
TEST(Isolation, WhoIsReleasedLateKeepsItsCore) {
  TableBuilder table(milliseconds(20), 1);
  const std::uint32_t stage = table.stage("stage", 1, milliseconds(1));
  table.slot(stage, 0, {0}, 0, 4);
  FakeHost host;
  host.refuse = [](const Job& job) {
    if (job.number == 1) test::spin(milliseconds(6));  // in the dispatcher's thread
    return false;
  };
  host.work = [](const Job&, int) { test::spin(microseconds(100)); };
  Records records;
  DispatchOptions options;
  options.hyperperiods = 4;
  const auto result = test::run(table, {&host}, options, records);
  ASSERT_TRUE(result) << result.error().message;
  const auto jobs = records.of_stage(stage);
  ASSERT_EQ(jobs.size(), 4U);
  if (jobs[1].actual_start == kNever) GTEST_SKIP() << "the machine took the job before";
  EXPECT_GE(jobs[1].actual_start, jobs[1].nominal_start + milliseconds(6).ns);
  EXPECT_EQ(jobs[1].flags & kFlagIsolated, 0U);
  EXPECT_NE(jobs[1].flags & kFlagDiscarded, 0U);
}

// Nor has one that was released in time and did not get its core until its slot was over.
TEST(Isolation, WhomTheMachineKeptFromWorkingKeepsItsCore) {
  TableBuilder table(milliseconds(20), 1);
  const std::uint32_t stage = table.stage("stage", 1, milliseconds(1));
  const std::uint32_t holder = table.stage("holder", 1, milliseconds(1));
  table.slot(stage, 0, {0}, 0, 4);
  table.slot(holder, 0, {0}, 1, 2);  // no sound table has it there
  FakeHost host, holder_host;
  holder_host.refuse = [](const Job& job) {
    if (job.number == 1) test::spin(milliseconds(6));  // in the dispatcher's thread, above its workers
    return true;
  };
  host.work = [](const Job&, int) { test::spin(microseconds(1'300)); };
  for (int tries = 0; tries < 20; ++tries) {
    Records records;
    DispatchOptions options;
    options.hyperperiods = 3;
    const auto result = test::run(table, {&host, &holder_host}, options, records);
    ASSERT_TRUE(result) << result.error().message;
    if (!result->rights.fifo) GTEST_SKIP() << "not granted here: " << result->rights.refused;
    const auto jobs = records.of_stage(stage);
    ASSERT_EQ(jobs.size(), 3U);
    const bool kept = jobs[1].actual_start != kNever && jobs[1].completion > jobs[1].nominal_start + milliseconds(7).ns;
    if (kept && (jobs[1].flags & kFlagIsolated) == 0) return;
  }
  ADD_FAILURE() << "it lost its core in 20 runs";
}

// But not the core of the next job.
TEST(Isolation, WhoIsReleasedLateYieldsToTheNextJob) {
  if (kSignalsAreDelayed) GTEST_SKIP() << "this sanitizer delays signals";
  TableBuilder table(milliseconds(40), 1);
  const std::uint32_t late = table.stage("late", 1, milliseconds(1));
  const std::uint32_t next = table.stage("next", 1, milliseconds(1));
  table.slot(late, 0, {0}, 0, 4);
  table.slot(next, 0, {0}, 8, 12);
  FakeHost late_host, next_host;
  std::atomic<bool> next_ran{false};
  late_host.refuse = [](const Job& job) {
    if (job.number == 1) test::spin(milliseconds(6));
    return false;
  };
  late_host.work = [&](const Job& job, int) {
    while (job.number == 1 && !next_ran) {
    }
  };
  next_host.work = [&](const Job& job, int) { next_ran = next_ran || job.number >= 1; };
  Records records;
  DispatchOptions options;
  options.hyperperiods = 3;
  const auto result = test::run(table, {&late_host, &next_host}, options, records);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->stuck.empty());
  const auto jobs = records.of_stage(late);
  ASSERT_EQ(jobs.size(), 3U);
  if (jobs[1].actual_start == kNever) GTEST_SKIP() << "the machine took the job before";
  EXPECT_NE(jobs[1].flags & kFlagIsolated, 0U);
}

TEST(Isolation, WithoutRightsAnEndlessLoopIsParkedAndRunsOnInTheGaps) {
  if (kSignalsAreDelayed) GTEST_SKIP() << "this sanitizer delays signals";
  const WithoutRights without;
  Neighbours world;
  Records records;
  const auto result = world.run(records);
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_FALSE(result->rights.fifo);
  EXPECT_EQ(result->rights.isolation, "parking");
  expect_isolated(world, *result, records);
  // While the neighbour ran, the loop stood still, though both are ordinary threads of one CPU; that it ended all the
  // same shows that it ran in the gaps. A neighbour that was late itself runs on in the gaps too, beside the loop.
  if (!result->rights.affinity) GTEST_SKIP() << "not on one CPU: " << result->rights.refused;
  const auto victim = records.of_stage(world.victim);
  const auto late = std::count_if(victim.begin(), victim.end(),
                                  [](const JobRecord& record) { return (record.flags & kFlagIsolated) != 0; });
  EXPECT_LE(world.disturbed, late);
}

// What a device's driver does: every call takes the one lock that it has.
class Driver {
 public:
  // False: somebody kept the lock for seconds.
  bool call(const std::function<void()>& inside = {}) {
    const ForeignCall call;
    // By this clock: that the other one takes a lock, the thread sanitizer of gcc 12 does not know.
    const std::unique_lock lock(mutex_, std::chrono::system_clock::now() + std::chrono::seconds(5));
    if (lock && inside) inside();
    return lock.owns_lock();
  }

 private:
  std::timed_mutex mutex_;
};

// The worker stands inside the driver when its time is over and the next job is released; its dispatcher calls the
// driver for that one's publication.
struct SharedDriver : Neighbours {
  SharedDriver() {
    looping_host.work = [this, loop = looping_host.work](const Job& job, int part) {
      if (looper.is(job)) {
        driver.call([this] {
          test::spin(milliseconds(8));
          inside = sched_getscheduler(0);
        });
        behind = sched_getscheduler(0);
      }
      loop(job, part);
    };
    victim_host.at_publication = [this] { refused += driver.call() ? 0 : 1; };
  }
  Driver driver;
  std::atomic<int> refused{0}, inside{-1}, behind{-1};
};

void expect_called_back(const SharedDriver& world, const DispatchResult& result, const Records& records) {
  EXPECT_EQ(world.refused, 0);
  expect_isolated(world, result, records);
  for (const JobRecord& record : records.of_stage(world.looping)) {
    EXPECT_EQ((record.flags & kFlagInCall) != 0, record.job == world.looper.number) << record.job;
  }
}

TEST(Isolation, InsideADriverNobodyIsParked) {
  if (kSignalsAreDelayed) GTEST_SKIP() << "this sanitizer delays signals";
  const WithoutRights without;
  SharedDriver world;
  Records records;
  const auto result = world.run(records);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->rights.isolation, "parking");
  expect_called_back(world, *result, records);
}

TEST(Isolation, InsideADriverNobodyIsDemoted) {
  SharedDriver world;
  Records records;
  const auto result = world.run(records);
  ASSERT_TRUE(result) << result.error().message;
  if (!result->rights.fifo) GTEST_SKIP() << "not granted here: " << result->rights.refused;
  expect_called_back(world, *result, records);
  EXPECT_EQ(world.inside, SCHED_FIFO);
  EXPECT_EQ(world.behind, SCHED_IDLE);
}

TEST(Isolation, AGangWhosePartLoopsFreesBothCores) {
  TableBuilder table(milliseconds(20), 2);
  const auto gang = table.stage("gang", 1, milliseconds(1), milliseconds(1));
  const auto first = table.stage("first", 1, milliseconds(1), seconds(60));
  const auto second = table.stage("second", 1, milliseconds(1), seconds(60));
  table.slot(gang, 0, {0, 1}, 0, 4);
  table.slot(first, 0, {0}, 6, 10);
  table.slot(second, 0, {1}, 6, 10);
  FakeHost gang_host, first_host, second_host;
  std::atomic<bool> recovered{false};
  Victim looper;
  // Part 0 loops before the first barrier, at which part 1 waits.
  gang_host.work = [&](const Job& job, int part) {
    if (part != 0) return;
    if (!looper.is(job)) {
      recovered = recovered || job.number > looper.number;
      return;
    }
    const HostTime limit = host_now() + seconds(20);
    while ((first_host.runs < 6 || second_host.runs < 6) && host_now() < limit) {
    }
  };
  Records records;
  DispatchOptions options;
  options.hyperperiods = 2000;
  options.stop = &recovered;
  const auto result = test::run(table, {&gang_host, &first_host, &second_host}, options, records);
  ASSERT_TRUE(result) << result.error().message;
  for (const std::uint32_t stage : {first, second}) {
    test::expect_each_job_once(table, stage, result->hyperperiods_run, records.of_stage(stage));
    expect_only_own_lateness(records.of_stage(stage));
  }
  for (const JobRecord& record : records.of_stage(gang)) {
    if (record.job != looper.number) continue;
    EXPECT_NE(record.flags & kFlagAborted, 0U);  // at the first barrier after the loop
    EXPECT_EQ(record.aborted_at, 0U);
    EXPECT_EQ(record.published, 0);
  }
  EXPECT_TRUE(recovered);
}

void nap() {
  const timespec pause{0, 1'000'000};
  nanosleep(&pause, nullptr);
}

// `looping` never ends a job: in part `part` of `cores`.
void expect_left_behind(std::vector<std::uint32_t> cores, int part, bool lockstep = false, bool naps = false) {
  std::atomic<std::uint64_t> progress{0};
  Victim looper;
  TableBuilder table(milliseconds(20), 2);
  const std::uint32_t looping = table.stage("looping", 1, milliseconds(1)),
                      other = table.stage("other", 1, milliseconds(2), seconds(60));
  table.slot(looping, 0, std::move(cores), 0, 4);
  table.slot(other, 0, {0}, 5, 10);
  Records records;
  {
    FakeHost looping_host, other_host;
    looping_host.work = [&](const Job& job, int of) {
      while (of == part && looper.is(job)) {
        progress.fetch_add(1, std::memory_order_relaxed);
        if (naps) nap();
      }
    };
    DispatchOptions options;
    options.hyperperiods = 6;
    options.wait_for_late = seconds(1);  // the other one comes back, on whatever machine
    options.lockstep = lockstep;
    options.wait_for_job = seconds(1);
    const auto result = test::run(table, {&looping_host, &other_host}, options, records);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->hyperperiods_run, 6U);
    EXPECT_EQ(result->stuck, std::vector<std::uint32_t>{looping});
    EXPECT_FALSE(result->still_inside);
    EXPECT_EQ(looping_host.latches, looping_host.finishes);
  }
  // Its worker executes nothing of the stage any more, whose memory is gone.
  const std::uint64_t before = progress.load();
  EXPECT_GT(before, 0U);
  test::spin(milliseconds(50));
  EXPECT_EQ(progress.load(), before);
  test::expect_each_job_once(table, looping, 6, records.of_stage(looping));
  test::expect_each_job_once(table, other, 6, records.of_stage(other));
  for (const JobRecord& record : records.of_stage(looping)) {
    EXPECT_EQ((record.flags & kFlagStuck) != 0, record.job == looper.number);
    if (record.job == looper.number) {
      EXPECT_NE(record.flags & kFlagOverrun, 0U);
      EXPECT_NE(record.flags & kFlagDiscarded, 0U);
      EXPECT_EQ(record.published, 0);
      EXPECT_GE(record.actual_start, record.nominal_start);
      EXPECT_GT(record.completion, record.slot_end);
    } else if (record.job > looper.number) {
      EXPECT_EQ(record.reason, Reason::kPreviousRunning);
    }
  }
  expect_only_own_lateness(records.of_stage(other));
}

// Threads of this process.
std::ptrdiff_t threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

// Of a gang only the part that does not come back stays, with its thread: the other one's has ended.
TEST(Stuck, APartThatCameBackIsNotLeft) {
  if (kSignalsAreDelayed) GTEST_SKIP() << "this sanitizer delivers no signal to a loop";
  class NoBarrier final : public FakeHost {
   public:
    void run(const Job& job, int part, Gang&) override {
      while (part == 1 && looper.is(job)) looped.fetch_add(1, std::memory_order_relaxed);
    }
    Victim looper;
    std::atomic<std::uint64_t> looped{0};
  };
  const std::ptrdiff_t before = threads();
  TableBuilder table(milliseconds(20), 2);
  const std::uint32_t gang = table.stage("gang", 1, milliseconds(1));
  table.slot(gang, 0, {0, 1}, 0, 4);
  Records records;
  NoBarrier host;
  DispatchOptions options;
  options.hyperperiods = 4;
  options.wait_for_late = milliseconds(1);
  const auto result = test::run(table, {&host}, options, records);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->stuck, std::vector<std::uint32_t>{gang});
  EXPECT_GT(host.looped.load(), 0U);
  EXPECT_EQ(threads(), before + 1);
}

TEST(Stuck, AJobThatNeverEndsIsLeftBehind) {
  if (kSignalsAreDelayed) GTEST_SKIP() << "this sanitizer delivers no signal to a loop";
  expect_left_behind({0}, 0);
}

// Under a sanitizer of threads too: what the worker has written is read when it has stopped, not before.
TEST(Stuck, SoIsOneThatSleeps) { expect_left_behind({0}, 0, false, true); }

// Who does not come back from a driver's call cannot be stopped, and nobody is told that it was; it stops when it does.
TEST(Stuck, InsideADriverItGoesOnUntilItComesOut) {
  if (kSignalsAreDelayed) GTEST_SKIP() << "this sanitizer delivers no signal to a loop";
  TableBuilder table(milliseconds(20), 1);
  const std::uint32_t stage = table.stage("stage", 1, milliseconds(1));
  table.slot(stage, 0, {0}, 0, 4);
  std::atomic<bool> comes_back{false}, came_back{false}, went_on{false};
  FakeHost host;
  Victim looper;
  host.work = [&](const Job& job, int) {
    if (!looper.is(job)) return;
    {
      const ForeignCall call;
      while (!comes_back) {
      }
      came_back = true;
    }
    went_on = true;
  };
  Records records;
  DispatchOptions options;
  options.hyperperiods = 4;
  options.wait_for_late = milliseconds(1);
  const auto result = test::run(table, {&host}, options, records);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->stuck, std::vector<std::uint32_t>{stage});
  EXPECT_TRUE(result->still_inside);
  for (const JobRecord& record : records.of_stage(stage)) {
    if (record.job != looper.number) continue;
    EXPECT_EQ(record.actual_start, record.nominal_start);  // nobody can tell yet
  }
  comes_back = true;
  while (!came_back) nap();
  test::spin(milliseconds(50));
  EXPECT_FALSE(went_on);
}

TEST(Stuck, VirtualTimeDoesNotWaitForEverEither) {
  if (kSignalsAreDelayed) GTEST_SKIP() << "this sanitizer delivers no signal to a loop";
  expect_left_behind({0}, 0, true);
  expect_left_behind({0, 1}, 1, true);
}

TEST(Stuck, SoItIsWithoutRights) {
  if (kSignalsAreDelayed) GTEST_SKIP() << "this sanitizer delivers no signal to a loop";
  const WithoutRights without;
  expect_left_behind({0}, 0);
}

TEST(Stuck, AGangIsLeftWithTheOneWhoWaitsForTheOther) {
  if (kSignalsAreDelayed) GTEST_SKIP() << "this sanitizer delivers no signal to a loop";
  expect_left_behind({0, 1}, 0);
  expect_left_behind({0, 1}, 1);
}

}  // namespace
}  // namespace takt::sched
