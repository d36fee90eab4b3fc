#include "pipeline/report/ready_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace takt::pipeline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kMs = 1'000'000;

// Two cores. `quick` on core 0 three times in 100 ms, `slow` on core 0 once, `wide` on both twice; wide reads quick.
struct World {
  sched::Problem problem;
  sched::Schedule table;

  World() {
    problem.hyperperiod = milliseconds(100);
    table.clock = {milliseconds(100), 100'000};
    problem.board.cores.resize(2);
    stage("quick", {0}, 3);
    stage("slow", {0}, 1);
    stage("wide", {0, 1}, 2);
    problem.stages[2].inputs = {{"quick", false, 0, false, {}}};
  }
  void stage(const std::string& name, const std::vector<std::uint32_t>& cores, std::uint32_t rate) {
    sched::Stage stage;
    stage.name = name;
    problem.stages.push_back(stage);
    for (std::uint32_t job = 0; job < rate; ++job) {
      table.slots.push_back({static_cast<std::uint32_t>(problem.stages.size() - 1), job, cores, 0, 1});
    }
  }
  [[nodiscard]] ReadyQueue queue(Way way, std::vector<Release> releases) const {
    return {problem, table, way, std::move(releases)};
  }
};

std::vector<std::uint64_t> jobs(std::span<const Release> releases) {
  std::vector<std::uint64_t> out;
  for (const Release& r : releases) out.push_back(r.stage * 100 + r.job);
  return out;
}

TEST(Releases, ComeByPeriodByEverySampleOrByEpoch) {
  World world;
  sched::Sensor sensor;
  sensor.name = "camera";
  sensor.period = nanoseconds(33'333'333);
  sensor.phase = sched::Sensor::Phase{};
  world.problem.sensors = {sensor};
  world.problem.stages[0].inputs = {{"image", true, 0, false, {}}};
  // The third sample comes late, one before the table begins, one behind its end.
  const std::vector<std::vector<std::int64_t>> arrivals{{-3 * kMs, 30 * kMs, 64 * kMs, 99 * kMs, 131 * kMs}};
  std::vector<std::int64_t> quick, wide;
  for (const Release& r : releases(world.problem, world.table, Way::kFifo, 1, arrivals)) {
    if (r.stage == 0) quick.push_back(r.at / kMs);
    if (r.stage == 2) wide.push_back(r.at / kMs);
    EXPECT_EQ(r.deadline - r.at, 100 * kMs / (r.stage == 0 ? 3 : r.stage == 1 ? 1 : 2));
  }
  EXPECT_THAT(quick, ElementsAre(30, 64, 99));
  EXPECT_THAT(wide, ElementsAre(0, 50));
  // Epochs of a third of the hyperperiod, whatever arrives: the second job of `wide` (50 ms) belongs to the second.
  quick.clear(), wide.clear();
  for (const Release& r : releases(world.problem, world.table, Way::kEpoch, 1, arrivals)) {
    if (r.stage == 0) quick.push_back(r.at / kMs);
    if (r.stage == 2) wide.push_back(r.at / kMs);
  }
  EXPECT_THAT(quick, ElementsAre(0, 33, 66));
  EXPECT_THAT(wide, ElementsAre(0, 33));
}

TEST(ReadyQueue, FifoTakesTheEarliestReleaseAndEdfTheEarliestDeadline) {
  const World world;
  for (const Way way : {Way::kFifo, Way::kEdf}) {
    ReadyQueue queue = world.queue(way, {{0, 1, 0, 100}, {1, 0, 0, 34}});
    EXPECT_THAT(queue.release_until(1), IsEmpty());
    EXPECT_THAT(jobs(queue.start_ready()), ElementsAre(way == Way::kFifo ? 100 : 0));
    EXPECT_THAT(jobs(queue.start_ready()), IsEmpty()) << "its core is taken";
    queue.complete(way == Way::kFifo ? 1 : 0);
    EXPECT_THAT(jobs(queue.start_ready()), ElementsAre(way == Way::kFifo ? 0 : 100));
    queue.complete(way == Way::kFifo ? 0 : 1);
    EXPECT_TRUE(queue.over());
  }
}

TEST(ReadyQueue, AJobOnSeveralCoresKeepsLaterOnesOffThem) {
  const World world;
  ReadyQueue queue = world.queue(Way::kFifo, {{0, 0, 0, 9}, {1, 2, 0, 9}, {2, 1, 0, 9}});
  queue.release_until(0);
  EXPECT_THAT(jobs(queue.start_ready()), ElementsAre(0));
  queue.release_until(2);
  EXPECT_THAT(jobs(queue.start_ready()), IsEmpty()) << "core 1 is free, but `wide` needs both, and `slow` came later";
  queue.complete(0);
  EXPECT_THAT(jobs(queue.start_ready()), ElementsAre(200));
}

TEST(ReadyQueue, AQueueHoldsOneJobTheNewest) {
  const World world;
  ReadyQueue queue = world.queue(Way::kFifo, {{0, 0, 0, 9}, {1, 0, 1, 9}, {2, 0, 2, 9}});
  queue.release_until(0);
  EXPECT_THAT(jobs(queue.start_ready()), ElementsAre(0));
  EXPECT_THAT(jobs(queue.release_until(5)), ElementsAre(1));
  queue.complete(0);
  EXPECT_THAT(jobs(queue.start_ready()), ElementsAre(2));
}

TEST(ReadyQueue, AnEpochWaitsForItsProducersAndFallsOutBehindAnUnfinishedOne) {
  const World world;
  ReadyQueue queue = world.queue(Way::kEpoch, {{0, 0, 0, 9}, {0, 2, 0, 9}, {10, 0, 1, 19}, {20, 0, 2, 29}});
  queue.release_until(0);
  EXPECT_THAT(jobs(queue.start_ready()), ElementsAre(0)) << "`wide` waits for `quick`";
  queue.complete(0);
  EXPECT_THAT(jobs(queue.start_ready()), ElementsAre(200));
  EXPECT_THAT(jobs(queue.release_until(12)), ElementsAre(1)) << "the barrier has not been reached";
  queue.complete(2);
  EXPECT_THAT(jobs(queue.start_ready()), IsEmpty());
  EXPECT_THAT(jobs(queue.release_until(20)), IsEmpty());
  EXPECT_THAT(jobs(queue.start_ready()), ElementsAre(2));
}

TEST(ReadyQueue, ACutLeavesWhatWasReleased) {
  const World world;
  ReadyQueue queue = world.queue(Way::kFifo, {{0, 0, 0, 9}, {5, 1, 0, 9}});
  queue.release_until(0);
  queue.cut();
  EXPECT_EQ(queue.next_release(), ReadyQueue::kFar);
  EXPECT_FALSE(queue.over());
  EXPECT_THAT(jobs(queue.start_ready()), ElementsAre(0));
  queue.complete(0);
  EXPECT_TRUE(queue.over());
}

}  // namespace
}  // namespace takt::pipeline
