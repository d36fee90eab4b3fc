// The real clock. Machines of tests are loaded and have no real-time kernel: nothing here judges a measured time; what
// is checked is order, exactly-once, and conditions that one record's own times imply.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>
#include <mutex>
#include <set>
#include <thread>

#include "fake_host.h"
#include "scheduler/dispatch/wakeup.h"

namespace takt::sched {
namespace {

using test::FakeHost;
using test::real_time;
using test::Records;
using test::TableBuilder;

template <class Condition>
void wait_for(Condition condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::microseconds(200));
}

// Camera twice on core 0, LiDAR on both cores, fusion wraps around.
struct World {
  World() : table(milliseconds(40), 2), fusion_host({&camera_host.output, &lidar_host.output}) {
    camera = table.stage("camera", 2, milliseconds(4));
    lidar = table.stage("lidar", 1, milliseconds(4));
    fusion = table.stage("fusion", 1, milliseconds(4));
    table.slot(camera, 0, {0}, 0, 6);
    table.slot(lidar, 0, {0, 1}, 8, 14);
    table.slot(camera, 1, {0}, 20, 26);
    table.slot(fusion, 0, {1}, 36, 42);
  }
  std::vector<StageHost*> hosts() { return {&camera_host, &lidar_host, &fusion_host}; }

  TableBuilder table;
  std::uint32_t camera = 0, lidar = 0, fusion = 0;
  FakeHost camera_host, lidar_host, fusion_host;
};

TEST(RealTime, EveryJobOnceAndConsistent) {
  World world;
  Records records;
  const auto result = test::run(world.table, world.hosts(), real_time(15), records);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->hyperperiods_run, 15U);
  for (std::uint32_t stage = 0; stage < 3; ++stage) {
    const auto of_stage = records.of_stage(stage);
    test::expect_each_job_once(world.table, stage, 15, of_stage);
    for (const JobRecord& record : of_stage) {
      if (record.job_class == JobClass::kSkipped) continue;  // only after a stall of the machine
      EXPECT_GE(record.actual_start, record.nominal_start);  // starts never move earlier than the table
      EXPECT_GE(record.completion, record.actual_start);
      EXPECT_GT(record.cpu_ns, 0);
      if (record.published != 0) {
        EXPECT_GE(record.publication, record.completion);
        // Not before end - p.
        EXPECT_GE(record.publication, record.slot_end - milliseconds(1).ns);
      }
    }
  }
  EXPECT_EQ(world.camera_host.latches, world.camera_host.finishes);
  EXPECT_GT(world.fusion_host.publications, 0);
  // The wait for a sample ends with w, and is never zero, which would mean without limit.
  EXPECT_GT(world.camera_host.shortest_patience.ns, 0);
  EXPECT_LE(world.camera_host.longest_patience, milliseconds(1));
}

TEST(RealTime, AConsumerSeesWhatWasPublishedBeforeItsStart) {
  World world;
  Records records;
  ASSERT_TRUE(test::run(world.table, world.hosts(), real_time(15), records));
  const auto camera = records.of_stage(world.camera);
  const auto lidar = records.of_stage(world.lidar);
  const auto published_by = [](const std::vector<JobRecord>& producers, std::int64_t instant) {
    std::uint64_t newest = 0;
    for (const JobRecord& record : producers) {
      if (record.publication != kNever && record.publication <= instant) newest = std::max(newest, record.job + 1);
    }
    return newest;
  };
  int checked = 0;
  for (const JobRecord& record : records.of_stage(world.fusion)) {
    if (record.job_class == JobClass::kSkipped) continue;
    EXPECT_GE(record.inputs[0].job, published_by(camera, record.nominal_start));
    EXPECT_GE(record.inputs[1].job, published_by(lidar, record.nominal_start));
    ++checked;
  }
  EXPECT_GT(checked, 0);
}

TEST(RealTime, ACleanRunHasTheBytesOfLockstep) {
  World world;
  Records records;
  ASSERT_TRUE(test::run(world.table, world.hosts(), real_time(10), records));
  World virtual_world;
  Records virtual_records;
  DispatchOptions options = real_time(10);
  options.lockstep = true;
  ASSERT_TRUE(test::run(virtual_world.table, virtual_world.hosts(), options, virtual_records));
  for (const JobRecord& record : records.all()) {
    if (record.job_class != JobClass::kOk) GTEST_SKIP() << "this machine broke an assumption: no clean run to compare";
  }
  for (std::uint32_t stage = 0; stage < 3; ++stage) {
    const auto real = records.of_stage(stage);
    const auto expected = virtual_records.of_stage(stage);
    ASSERT_EQ(real.size(), expected.size());
    for (std::size_t i = 0; i < real.size(); ++i) EXPECT_EQ(real[i].output.low, expected[i].output.low);
  }
}

// A stage that blocks in its first job until `until` holds, beside one on the other core that goes on.
struct Overrunning {
  explicit Overrunning(Duration slack) : table(milliseconds(20), 2) {
    slow = table.stage("slow", 1, milliseconds(1), slack);
    marker = table.stage("marker", 1, milliseconds(1));
    table.slot(slow, 0, {0}, 0, 4);
    table.slot(marker, 0, {1}, 8, 12);
  }
  std::vector<StageHost*> hosts() { return {&slow_host, &marker_host}; }
  TableBuilder table;
  std::uint32_t slow = 0, marker = 0;
  FakeHost slow_host, marker_host;
};

TEST(RealTime, ALateOutputGoesOutWithinItsSlack) {
  Overrunning world(seconds(60));
  // Done only after the marker, which starts after the slot's end.
  world.slow_host.work = [&world](const Job& job, int) {
    if (job.number == 0) wait_for([&world] { return world.marker_host.runs > 0; });
  };
  Records records;
  ASSERT_TRUE(test::run(world.table, world.hosts(), real_time(6), records));
  const auto slow = records.of_stage(world.slow);
  test::expect_each_job_once(world.table, world.slow, 6, slow);
  for (const JobRecord& record : slow) {
    if (record.job != 0) continue;
    EXPECT_EQ(record.published, 1);
    EXPECT_GT(record.publication, record.slot_end);
    EXPECT_NE(record.flags & kFlagLate, 0U);
    EXPECT_EQ(record.flags & kFlagDiscarded, 0U);
    EXPECT_TRUE(record.job_class == JobClass::kOverrun || record.job_class == JobClass::kLateStart);
  }
  EXPECT_EQ(world.slow_host.discards, 0);
}

TEST(RealTime, AfterTheSlackALateOutputIsDiscardedAndTheNextJobsAreSkipped) {
  Overrunning world(milliseconds(2));
  Records records;
  // Runs until two later jobs of its stage have been skipped, far beyond the slack.
  world.slow_host.work = [&](const Job& job, int) {
    if (job.number == 0) wait_for([&] { return records.of_stage(world.slow).size() >= 2; });
  };
  ASSERT_TRUE(test::run(world.table, world.hosts(), real_time(10), records));
  const auto slow = records.of_stage(world.slow);
  test::expect_each_job_once(world.table, world.slow, 10, slow);
  for (const JobRecord& record : slow) {
    if (record.job == 0) {
      EXPECT_EQ(record.published, 0);
      EXPECT_EQ(record.publication, kNever);
      EXPECT_NE(record.flags & kFlagDiscarded, 0U);
      EXPECT_NE(record.flags & kFlagLate, 0U);
      EXPECT_NE(record.flags & (kFlagOverrun | kFlagLateStart), 0U);
      EXPECT_GT(record.completion, record.slot_end + milliseconds(2).ns);
    } else if (record.job <= 2) {
      EXPECT_EQ(record.job_class, JobClass::kSkipped);
      EXPECT_EQ(record.reason, Reason::kPreviousRunning);
      EXPECT_EQ(record.actual_start, kNever);
    }
  }
  // The table's phase survives: the other core's jobs, and the later ones of this stage, are where the table says.
  test::expect_each_job_once(world.table, world.marker, 10, records.of_stage(world.marker));
  EXPECT_GE(world.slow_host.discards, 1);
  EXPECT_EQ(world.slow_host.latches, world.slow_host.finishes);
}

TEST(RealTime, AGangThatOverrunsSkipsAndRecovers) {
  TableBuilder table(milliseconds(20), 2);
  const auto gang = table.stage("gang", 1, milliseconds(1), milliseconds(2));
  table.slot(gang, 0, {1, 0}, 0, 4);
  FakeHost host;
  Records records;
  host.work = [&](const Job& job, int part) {
    if (job.number == 1 && part == 1) wait_for([&] { return records.count >= 3; });  // job 0 and two skipped
  };
  ASSERT_TRUE(test::run(table, {&host}, real_time(12), records));
  test::expect_each_job_once(table, gang, 12, records.all());
  int published = 0;
  for (const JobRecord& record : records.all()) published += record.published;
  EXPECT_EQ(published, host.publications);
  EXPECT_LE(host.runs, 2 * host.latches);  // who is woken behind slot and slack does none of the job
  EXPECT_EQ(host.latches, host.finishes);
}

// The latch of job 0 lasts until the other dispatcher has stopped waiting for it and gone on with its table.
class SlowLatchHost final : public FakeHost {
 public:
  explicit SlowLatchHost(const FakeHost& marker) : marker_(marker) {}
  bool latch(const Job& job, Duration patience, JobRecord& record) override {
    if (job.number == 0) wait_for([this] { return marker_.runs > 0; });
    return FakeHost::latch(job, patience, record);
  }

 private:
  const FakeHost& marker_;
};

TEST(RealTime, AGangWhoseLatchOutlastsItsSlotStillRunsBothParts) {
  TableBuilder table(milliseconds(20), 2);
  const auto gang = table.stage("gang", 1, milliseconds(1), seconds(60));
  const auto marker = table.stage("marker", 1, milliseconds(1), seconds(60));
  table.slot(gang, 0, {0, 1}, 0, 4);
  table.slot(marker, 0, {1}, 8, 12);
  FakeHost marker_host;
  SlowLatchHost gang_host(marker_host);
  Records records;
  ASSERT_TRUE(test::run(table, {&gang_host, &marker_host}, real_time(5), records));
  const auto of_gang = records.of_stage(gang);
  test::expect_each_job_once(table, gang, 5, of_gang);
  test::expect_each_job_once(table, marker, 5, records.of_stage(marker));
  for (const JobRecord& record : of_gang) {
    if (record.job != 0) continue;
    EXPECT_EQ(record.published, 1);
    EXPECT_EQ(record.job_class, JobClass::kLateStart);
    EXPECT_GT(record.actual_start, record.slot_end);
  }
  EXPECT_EQ(gang_host.runs, 2 * gang_host.latches);
}

TEST(RealTime, ARunEndsOnlyWhenItsLastJobDoes) {
  Overrunning world(seconds(60));
  Records records;
  std::atomic<bool> job_done{false};
  world.slow_host.work = [&](const Job&, int) {
    wait_for([&] { return !records.of_stage(world.marker).empty(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // well after the last event of the table
    job_done = true;
  };
  ASSERT_TRUE(test::run(world.table, world.hosts(), real_time(1), records));
  EXPECT_TRUE(job_done);
  test::expect_each_job_once(world.table, world.slow, 1, records.of_stage(world.slow));
  EXPECT_EQ(world.slow_host.publications, 1);
}

TEST(RealTime, AStopFinishesAndRecordsEveryStartedJob) {
  World world;
  std::atomic<bool> stop{false};
  DispatchOptions options = real_time(1'000'000);
  options.stop = &stop;
  world.lidar_host.work = [&stop](const Job& job, int) {
    if (job.number >= 2) stop = true;
  };
  Records records;
  const auto result = test::run(world.table, world.hosts(), options, records);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->stopped);
  EXPECT_GE(result->hyperperiods_run, 3U);
  EXPECT_LT(result->hyperperiods_run, 1'000'000U);
  for (std::uint32_t stage = 0; stage < 3; ++stage) {
    test::expect_each_job_once(world.table, stage, result->hyperperiods_run, records.of_stage(stage));
  }
  EXPECT_EQ(world.lidar_host.latches, world.lidar_host.finishes);
}

TEST(RealTime, ARefusedGangJobReleasesNoWorker) {
  World world;
  world.lidar_host.refuse = [](const Job& job) { return job.number % 2 == 1; };
  Records records;
  ASSERT_TRUE(test::run(world.table, world.hosts(), real_time(8), records));
  const auto lidar = records.of_stage(world.lidar);
  test::expect_each_job_once(world.table, world.lidar, 8, lidar);
  for (const JobRecord& record : lidar) {
    if (record.job % 2 == 1 && record.job_class != JobClass::kSkipped) {
      EXPECT_EQ(record.job_class, JobClass::kMissing);
    }
  }
  EXPECT_EQ(world.lidar_host.runs % 2, 0);
  EXPECT_EQ(world.lidar_host.latches, world.lidar_host.finishes);
}

TEST(RealTime, AnotherRateKeepsTableTime) {
  World world;
  DispatchOptions options = real_time(8);
  options.rate = 0.5;
  Records records;
  const HostTime before = host_now();
  const auto result = test::run(world.table, world.hosts(), options, records);
  ASSERT_TRUE(result);
  // Half the rate takes at least twice as long: sleeping never ends early.
  EXPECT_GE((host_now() - before).ns, 2 * 7 * milliseconds(40).ns);
  for (std::uint32_t stage = 0; stage < 3; ++stage) {
    test::expect_each_job_once(world.table, stage, 8, records.of_stage(stage));
  }
  options.rate = 0;
  EXPECT_FALSE(test::run(world.table, world.hosts(), options, records));
}

// Policy, priority and CPU of the calling thread.
struct Placement {
  int policy = 0;
  int priority = 0;
  int cpus = 0;
  bool on_cpu(int cpu) const { return cpus == 1 && only == cpu; }
  int only = -1;

  static Placement of_this_thread() {
    Placement placement;
    placement.policy = sched_getscheduler(0);
    sched_param parameters{};
    sched_getparam(0, &parameters);
    placement.priority = parameters.sched_priority;
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof(set), &set);
    placement.cpus = CPU_COUNT(&set);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) placement.only = cpu;
    }
    return placement;
  }
};

class PlacedHost final : public FakeHost {
 public:
  bool latch(const Job& job, Duration patience, JobRecord& record) override {
    latched = Placement::of_this_thread();
    return FakeHost::latch(job, patience, record);
  }
  void run(const Job& job, int part, Gang& gang) override {
    ran[static_cast<std::size_t>(part)] = Placement::of_this_thread();
    FakeHost::run(job, part, gang);
  }
  void publish(const Job& job, JobRecord& record) override {
    published = Placement::of_this_thread();
    FakeHost::publish(job, record);
  }
  Placement latched, published;
  std::array<Placement, 2> ran;
};

TEST(RealTime, ThreadsHaveTheRightsThatTheResultClaims) {
  TableBuilder table(milliseconds(20), 2);
  const auto gang = table.stage("gang", 1, milliseconds(1), seconds(60));
  table.slot(gang, 0, {0, 1}, 0, 8);
  PlacedHost host;
  Records records;
  const auto result = test::run(table, {&host}, real_time(3), records);
  ASSERT_TRUE(result);
  ASSERT_GT(host.publications, 0);
  const RealtimeRights& rights = result->rights;
  EXPECT_EQ(rights.refused.empty(), rights.fifo && rights.affinity && rights.memory_locked) << rights.refused;
  if (rights.fifo) {
    for (const Placement& dispatcher : {host.latched, host.published}) {
      EXPECT_EQ(dispatcher.policy, SCHED_FIFO);
      EXPECT_EQ(dispatcher.priority, 80);
    }
    for (const Placement& worker : host.ran) {
      EXPECT_EQ(worker.policy, SCHED_FIFO);
      EXPECT_EQ(worker.priority, 50);
    }
  }
  if (rights.affinity) {
    EXPECT_TRUE(host.latched.on_cpu(0));
    EXPECT_TRUE(host.published.on_cpu(1));
    EXPECT_TRUE(host.ran[0].on_cpu(0));
    EXPECT_TRUE(host.ran[1].on_cpu(1));
  }
  if (!rights.fifo || !rights.affinity) GTEST_SKIP() << "not granted here: " << rights.refused;
}

TEST(Watchdog, SpeaksOnceInAHyperperiodAndWhenADispatcherIsBehind) {
  // The latch, which runs in the dispatcher, blocks once until the watchdog has said so.
  class BlockingHost final : public FakeHost {
   public:
    bool latch(const Job& job, Duration patience, JobRecord& record) override {
      const HostTime limit = host_now() + seconds(20);
      while (job.number == 2 && trips == 0 && host_now() < limit) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      return FakeHost::latch(job, patience, record);
    }
    std::atomic<std::uint64_t> trips{0};
  };
  TableBuilder table(milliseconds(20), 1);
  const auto stage = table.stage("stage", 1, milliseconds(1), seconds(60));
  table.slot(stage, 0, {0}, 0, 8);
  BlockingHost host;
  Records records;
  std::vector<WatchdogReport> reports;
  reports.reserve(100);
  DispatchOptions options = real_time(6);
  options.watchdog = [&](const WatchdogReport& report) {
    reports.push_back(report);
    if (report.core) host.trips.fetch_add(1);
  };
  std::atomic<bool> ended{false};
  options.ended = &ended;
  const auto result = test::run(table, {&host}, options, records);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(ended);
  EXPECT_GE(result->watchdog_trips, 1U);
  std::uint64_t signs_of_life = 0;
  for (const WatchdogReport& report : reports) {
    signs_of_life += report.core ? 0 : 1;
    if (report.core) {
      EXPECT_LT(report.reached, report.now);
    }
  }
  EXPECT_GE(signs_of_life, 1U);
  EXPECT_LE(signs_of_life, 6U);
}

// Jobs that end early are handed over before their slots end, so nobody wakes there.
TEST(Watchdog, IsSilentWhileTheDispatcherHasNothingToDo) {
  constexpr std::uint64_t kHyperperiods = 30;
  TableBuilder table(milliseconds(20), 1);
  table.problem.board.cores[0].publish_window = milliseconds(4);
  const auto stage = table.stage("stage", 1, milliseconds(1), seconds(60));
  table.slot(stage, 0, {0}, 0, 8);
  FakeHost host;
  Records records;
  DispatchOptions options = real_time(kHyperperiods);
  options.watchdog = [](const WatchdogReport&) {};
  const auto result = test::run(table, {&host}, options, records);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_LT(result->watchdog_trips, kHyperperiods / 2);  // a machine that stands still makes a few
}

TEST(RealTime, WithoutAskingThreadsStayOrdinary) {
  TableBuilder table(milliseconds(20), 1);
  const auto stage = table.stage("stage", 1, milliseconds(1), seconds(60));
  table.slot(stage, 0, {0}, 0, 8);
  PlacedHost host;
  Records records;
  DispatchOptions options = real_time(2);
  options.realtime_rights = false;
  const auto result = test::run(table, {&host}, options, records);
  ASSERT_TRUE(result);
  EXPECT_EQ(host.latched.policy, sched_getscheduler(0));
  EXPECT_FALSE(result->rights.fifo);
  EXPECT_FALSE(result->rights.refused.empty());
}

TEST(RealTime, ABoardWithMoreCoresThanThisMachineStillRuns) {
  World world;
  world.table.problem.board.cores[1].cpu = 1000;  // no such CPU
  Records records;
  const auto result = test::run(world.table, world.hosts(), real_time(5), records);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_FALSE(result->rights.affinity);
  EXPECT_NE(result->rights.refused.find("CPU 1000"), std::string::npos) << result->rights.refused;
  for (std::uint32_t stage = 0; stage < 3; ++stage) {
    test::expect_each_job_once(world.table, stage, 5, records.of_stage(stage));
  }
}

// A figure of a core is from as many wake-ups on a large board as on a small one, in the same time.
TEST(MeasureWakeup, WakesEveryCoreAsOftenWhateverTheirNumber) {
  constexpr std::uint64_t kHyperperiods = 30;
  for (const std::size_t cores : {1U, 2U, 5U, 12U}) {
    TableBuilder board(milliseconds(20), cores);
    for (std::size_t core = 0; core < cores; ++core) board.problem.board.cores[core].cpu = static_cast<int>(core % 2);
    const WakeupTable table = wakeup_table(board.problem.board);
    std::vector<FakeHost> hosts(cores);
    std::vector<StageHost*> stages;
    for (FakeHost& host : hosts) stages.push_back(&host);
    std::vector<std::atomic<std::uint64_t>> jobs(cores);
    const HostTime before = host_now();
    ASSERT_TRUE(dispatch(table.problem, table.schedule, stages, real_time(kHyperperiods),
                         [&](std::size_t core, const JobRecord&) { ++jobs[core]; }));
    EXPECT_GE(host_now() - before, WakeupTable::hyperperiod * (kHyperperiods - 1));
    for (const auto& of_core : jobs) EXPECT_EQ(of_core, kHyperperiods) << cores;
    // Each at an instant of its own, and asleep in between.
    std::set<Tick> starts;
    for (const Slot& slot : table.schedule.slots) {
      starts.insert(slot.start);
      EXPECT_LE(slot.end - slot.start, table.schedule.clock.ticks / 2);
    }
    EXPECT_EQ(starts.size(), cores);
  }
}

TEST(MeasureWakeup, GivesEveryCoreItsErrors) {
  TableBuilder table(milliseconds(20), 2);
  const auto measured = measure_wakeup(table.problem.board, milliseconds(200));
  ASSERT_TRUE(measured) << measured.error().message;
  const WakeupErrors& errors = *measured;
  ASSERT_EQ(errors.p999.size(), 2U);
  ASSERT_EQ(errors.max.size(), 2U);
  for (std::size_t core = 0; core < 2; ++core) {
    EXPECT_GT(errors.p999[core].ns, 0);  // a wake-up is never early
    EXPECT_GT(errors.publish_p999[core].ns, 0);
    EXPECT_GE(errors.max[core], errors.p999[core]);
  }
}

}  // namespace
}  // namespace takt::sched
