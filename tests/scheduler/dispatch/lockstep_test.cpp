#include <gtest/gtest.h>
#include <thread>

#include "fake_host.h"

namespace takt::sched {
namespace {

using test::FakeHost;
using test::lockstep;
using test::Records;
using test::TableBuilder;

// Camera twice per hyperperiod on core 0, LiDAR once on core 1 (or on both), fusion reads both and wraps around.
struct World {
  explicit World(std::size_t k) : table(milliseconds(100), 2), fusion_host({&camera_host.output, &lidar_host.output}) {
    camera = table.stage("camera", 2, milliseconds(10));
    lidar = table.stage("lidar", 1, milliseconds(30));
    fusion = table.stage("fusion", 1, milliseconds(5));
    table.slot(camera, 0, {0}, 0, 12);
    table.slot(camera, 1, {0}, 50, 62);
    if (k == 1) {
      table.slot(lidar, 0, {1}, 15, 47);
    } else {
      table.slot(lidar, 0, {0, 1}, 15, 47);
    }
    table.slot(fusion, 0, {1}, 96, 103);
  }
  std::vector<StageHost*> hosts() { return {&camera_host, &lidar_host, &fusion_host}; }

  TableBuilder table;
  std::uint32_t camera = 0, lidar = 0, fusion = 0;
  FakeHost camera_host, lidar_host, fusion_host;
};

std::uint64_t digest_of(const std::vector<JobRecord>& records) {
  std::uint64_t digest = 0;
  for (const JobRecord& record : records) digest = test::mix(digest, record.output.low);
  return digest;
}

TEST(Lockstep, EveryJobOnceWithVirtualTimes) {
  World world(1);
  Records records;
  const auto result = test::run(world.table, world.hosts(), lockstep(5), records);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->hyperperiods_run, 5U);
  EXPECT_FALSE(result->stopped);
  EXPECT_FALSE(result->rights.fifo);
  ASSERT_EQ(result->core_busy.size(), 2U);
  test::expect_each_job_once(world.table, world.camera, 5, records.of_stage(world.camera));
  test::expect_each_job_once(world.table, world.lidar, 5, records.of_stage(world.lidar));
  test::expect_each_job_once(world.table, world.fusion, 5, records.of_stage(world.fusion));
  std::int64_t last_publication = 0;
  for (const JobRecord& record : records.all()) {
    EXPECT_EQ(record.job_class, JobClass::kOk);
    EXPECT_EQ(record.actual_start, record.nominal_start);
    EXPECT_EQ(record.completion - record.actual_start, world.table.schedule.choices[record.stage].budget.time.ns);
    EXPECT_EQ(record.publication, record.slot_end);
    EXPECT_GE(record.publication, last_publication);  // delivered in virtual-time order
    last_publication = record.publication;
  }
  EXPECT_EQ(world.camera_host.longest_patience, Duration{});  // without limit
  EXPECT_EQ(world.fusion_host.finishes, 5);
  EXPECT_EQ(world.fusion_host.discards, 0);
}

TEST(Lockstep, AConsumerSeesExactlyWhatWasPublishedBeforeItsStart) {
  World world(2);
  Records records;
  ASSERT_TRUE(test::run(world.table, world.hosts(), lockstep(20), records));
  for (const JobRecord& record : records.of_stage(world.fusion)) {
    EXPECT_EQ(record.inputs[0].job, 2 * record.hyperperiod + 2);  // both camera jobs of this hyperperiod
    EXPECT_EQ(record.inputs[1].job, record.hyperperiod + 1);
  }
}

TEST(Lockstep, AStartAtTheProducersSlotEndSeesItsOutput) {
  TableBuilder table(milliseconds(10), 2);
  const auto consumer = table.stage("consumer", 1, milliseconds(1));
  const auto producer = table.stage("producer", 1, milliseconds(1));
  table.slot(producer, 0, {1}, 0, 4);
  table.slot(consumer, 0, {0}, 4, 7);
  FakeHost producer_host;
  FakeHost consumer_host({&producer_host.output});
  Records records;
  ASSERT_TRUE(test::run(table, {&consumer_host, &producer_host}, lockstep(50), records));
  for (const JobRecord& record : records.of_stage(consumer)) EXPECT_EQ(record.inputs[0].job, record.job + 1);
}

TEST(Lockstep, TheMachineDoesNotDecideTheBytes) {
  std::vector<std::uint64_t> digests;
  const auto run = [&digests](std::size_t k) {
    World world(k);
    Records records;
    ASSERT_TRUE(test::run(world.table, world.hosts(), lockstep(50), records));
    digests.push_back(digest_of(records.of_stage(world.fusion)));
  };
  run(1);
  run(1);
  run(2);
  // The same with one hog per CPU, and a stage that dawdles at random places.
  std::atomic<bool> done{false};
  std::vector<std::thread> hogs;
  for (int i = 0; i < 2; ++i) {
    hogs.emplace_back([&done] {
      while (!done) {
      }
    });
  }
  run(1);
  run(2);
  done = true;
  for (auto& hog : hogs) hog.join();
  for (const std::uint64_t digest : digests) EXPECT_EQ(digest, digests.front());
}

TEST(Lockstep, AJobMayTakeAsLongAsItLikes) {
  World world(1);
  world.camera_host.work = [](const Job& job, int) {
    if (job.number == 1) std::this_thread::sleep_for(std::chrono::milliseconds(150));  // longer than the hyperperiod
  };
  Records records;
  ASSERT_TRUE(test::run(world.table, world.hosts(), lockstep(2), records));
  for (const JobRecord& record : records.all()) EXPECT_EQ(record.job_class, JobClass::kOk);
}

TEST(Lockstep, ARefusedJobIsDiscardedFinishedAndRecorded) {
  World world(2);
  world.lidar_host.refuse = [](const Job& job) { return job.number % 2 == 0; };
  Records records;
  ASSERT_TRUE(test::run(world.table, world.hosts(), lockstep(4), records));
  const auto lidar = records.of_stage(world.lidar);
  test::expect_each_job_once(world.table, world.lidar, 4, lidar);
  for (const JobRecord& record : lidar) {
    const bool refused = record.job % 2 == 0;
    EXPECT_EQ(record.job_class, refused ? JobClass::kMissing : JobClass::kOk);
    EXPECT_EQ(record.actual_start == kNever, refused);
    EXPECT_EQ(record.publication == kNever, refused);
    EXPECT_EQ(record.reason, refused ? Reason::kNoSample : Reason::kNone);
  }
  EXPECT_EQ(world.lidar_host.discards, 2);
  EXPECT_EQ(world.lidar_host.finishes, 4);
  EXPECT_EQ(world.lidar_host.publications, 2);
  EXPECT_EQ(world.lidar_host.runs, 4);  // two jobs of two parts
}

TEST(Lockstep, CorrectionsMoveEveryLaterHyperperiodAndNothingInside) {
  TableBuilder table(milliseconds(20), 2);
  const auto stage = table.stage("stage", 2, milliseconds(1));
  table.slot(stage, 0, {0}, 1, 4);
  table.slot(stage, 1, {0}, 11, 14);
  Sensor sensor;
  sensor.name = "camera";
  sensor.period = milliseconds(20);
  sensor.drift_ppm = 1000;  // 20 us in a hyperperiod
  sensor.phase = Sensor::Phase{{}, milliseconds(1)};
  table.problem.sensors = {sensor};
  table.problem.phase_lock =
      PhaseLock{.sensor = 0, .gap = milliseconds(2), .filter = microseconds(10), .hold_over = {}};
  FakeHost host;
  Records records;
  DispatchOptions options = lockstep(4);
  ASSERT_FALSE(test::run(table, {&host}, options, records));  // nobody corrects it
  std::vector<std::uint64_t> asked;
  options.correction = [&asked](const Turn& next) {
    asked.push_back(next.number);
    return next.number == 2 ? -milliseconds(1) : microseconds(25);  // the former is more than the gap holds
  };
  const auto result = test::run(table, {&host}, options, records);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(asked, (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(result->corrections, (std::vector<Duration>{{}, microseconds(25), -microseconds(30), microseconds(25)}));
  const std::int64_t offsets[] = {0, 25'000, -5'000, 20'000};
  for (const JobRecord& record : records.of_stage(stage)) {
    const Slot& slot = table.schedule.slots[record.slot];
    const std::int64_t offset = offsets[record.hyperperiod];
    EXPECT_EQ(record.nominal_start, table.schedule.clock.start_at(record.hyperperiod, slot.start).ns + offset);
    EXPECT_EQ(record.slot_end, table.schedule.clock.end_at(record.hyperperiod, slot.end).ns + offset);
  }
  // The same on the real clock: starts follow the corrections, and never come before them.
  FakeHost real_host;
  Records real_records;
  options.lockstep = false;
  const auto real = test::run(table, {&real_host}, options, real_records);
  ASSERT_TRUE(real) << real.error().message;
  EXPECT_EQ(real->corrections, result->corrections);
  ASSERT_EQ(real_records.all().size(), records.all().size());
  for (const JobRecord& record : real_records.all()) {
    const Slot& slot = table.schedule.slots[record.slot];
    EXPECT_EQ(record.nominal_start,
              table.schedule.clock.start_at(record.hyperperiod, slot.start).ns + offsets[record.hyperperiod]);
    if (record.actual_start != kNever) {
      EXPECT_GE(record.actual_start, record.nominal_start);
    }
  }
}

TEST(Lockstep, AStopEndsAtTheHyperperiodBoundary) {
  World world(1);
  std::atomic<bool> stop{false};
  DispatchOptions options = lockstep(1'000'000);
  options.stop = &stop;
  world.camera_host.work = [&stop](const Job& job, int) {
    if (job.number == 6) stop = true;  // hyperperiod 3
  };
  Records records;
  const auto result = test::run(world.table, world.hosts(), options, records);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->stopped);
  EXPECT_EQ(result->hyperperiods_run, 4U);
  for (std::uint32_t stage = 0; stage < 3; ++stage) {
    test::expect_each_job_once(world.table, stage, result->hyperperiods_run, records.of_stage(stage));
  }
}

TEST(Lockstep, ATableThatTheValidatorWouldRefuseIsRefused) {
  World world(1);
  Records records;
  world.table.schedule.slots[1].cores = {1};  // the camera changes its home core
  const auto moved = test::run(world.table, world.hosts(), lockstep(1), records);
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().code, Code::kInternal);
  EXPECT_NE(moved.error().message.find("camera"), std::string::npos);
  world.table.schedule.slots[1].cores = {7};
  EXPECT_FALSE(test::run(world.table, world.hosts(), lockstep(1), records));
  EXPECT_EQ(records.count, 0);
}

}  // namespace
}  // namespace takt::sched
