#include "scheduler/dispatch/events.h"

#include <gtest/gtest.h>

#include "fake_host.h"
#include "scheduler/dispatch/boundary.h"
#include "scheduler/dispatch/table_clock.h"

#include <thread>

namespace takt::sched {
namespace {

using test::TableBuilder;

TEST(Events, PublicationsComeBeforeTheStartsThatReadThem) {
  TableBuilder table(milliseconds(20), 1);
  const auto producer = table.stage("producer", 1, milliseconds(3));
  const auto consumer = table.stage("consumer", 1, milliseconds(3));
  table.slot(consumer, 0, {0}, 5, 10);  // starts where the producer's slot ends
  table.slot(producer, 0, {0}, 0, 5);

  const auto events = events_of_core(table.problem, table.schedule, 0);
  ASSERT_EQ(events.size(), 6U);
  const auto expect = [&events](std::size_t i, Tick tick, EventKind kind, std::uint32_t slot) {
    EXPECT_EQ(events[i].tick, tick) << i;
    EXPECT_EQ(events[i].kind, kind) << i;
    EXPECT_EQ(events[i].slot, slot) << i;
  };
  expect(0, 0, EventKind::kStart, 1);
  expect(1, 4000, EventKind::kPublish, 1);  // end - p
  expect(2, 5000, EventKind::kSlotEnd, 1);
  expect(3, 5000, EventKind::kStart, 0);
  expect(4, 9000, EventKind::kPublish, 0);
  expect(5, 10000, EventKind::kSlotEnd, 0);
}

TEST(Events, OnlyTheLastCoreOfAGangPublishes) {
  TableBuilder table(milliseconds(20), 2);
  const auto stage = table.stage("gang", 1, milliseconds(3));
  table.slot(stage, 0, {1, 0}, 0, 5);
  const auto on_lead = events_of_core(table.problem, table.schedule, 1);
  ASSERT_EQ(on_lead.size(), 1U);
  EXPECT_EQ(on_lead[0].kind, EventKind::kStart);
  EXPECT_EQ(events_of_core(table.problem, table.schedule, 0).size(), 3U);
}

TEST(Events, ASlotMayWrapAroundTheEnd) {
  TableBuilder table(milliseconds(20), 1);
  const auto stage = table.stage("wraps", 1, milliseconds(3));
  table.slot(stage, 0, {0}, 18, 22.5);
  const auto events = events_of_core(table.problem, table.schedule, 0);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].kind, EventKind::kPublish);
  EXPECT_EQ(events[0].tick, 1500);
  EXPECT_EQ(events[0].shift, 1U);
  EXPECT_EQ(events[1].shift, 1U);
  EXPECT_EQ(events[2].shift, 0U);
  EXPECT_EQ(largest_shift(events), 1U);
  // The same instant, seen from the next hyperperiod.
  EXPECT_EQ(instant_of(events[1], 8, table.schedule.clock), table.schedule.clock.end_at(7, 22500));
}

TEST(Events, APublishWindowLongerThanTheSlotStillComesAfterTheStart) {
  TableBuilder table(milliseconds(20), 1);
  table.problem.board.cores[0].publish_window = milliseconds(50);
  const auto stage = table.stage("short", 1, milliseconds(1));
  table.slot(stage, 0, {0}, 3, 5);
  EXPECT_EQ(publish_tick(table.problem, table.schedule, table.schedule.slots[0]), 3001);
}

// H / N is no whole number of nanoseconds: an accumulated tick would drift by seconds over this many hyperperiods.
TEST(Events, InstantsDoNotDrift) {
  TableBuilder table(nanoseconds(100'000'001), 1);
  table.schedule.clock.ticks = 102'000;
  const Event start{.tick = 33'334, .shift = 0, .kind = EventKind::kStart, .slot = 0};
  const Event end{.tick = 33'334, .shift = 0, .kind = EventKind::kSlotEnd, .slot = 0};
  __extension__ using Wide = __int128;
  for (const std::uint64_t h : {0ULL, 1ULL, 2ULL, 999'999'999ULL, 80'000'000'000ULL}) {
    const Wide numerator = static_cast<Wide>(33'334) * 100'000'001;
    const Wide base = static_cast<Wide>(h) * 100'000'001;
    const auto down = static_cast<std::int64_t>(base + numerator / 102'000);
    EXPECT_EQ(instant_of(end, h, table.schedule.clock).ns, down);
    EXPECT_EQ(instant_of(start, h, table.schedule.clock).ns, down + 1);
  }
}

TEST(TableClock, MapsAbsolutely) {
  const TableClock real{.origin = {1'000}, .rate = 1.0};
  EXPECT_EQ(real.host({500}).ns, 1'500);
  EXPECT_EQ(real.table({1'500}).ns, 500);
  const TableClock fast{.origin = {1'000}, .rate = 4.0};
  EXPECT_EQ(fast.host({4'000}).ns, 2'000);
  EXPECT_EQ(fast.table({2'000}).ns, 4'000);
  EXPECT_EQ(fast.to_host(Duration{400}).ns, 100);
}

TEST(Boundary, ADispatcherThatIsBehindRunsWhatAnotherHasEntered) {
  std::atomic<bool> stop{false};
  Boundary boundary(10, &stop);
  EXPECT_TRUE(boundary.enter(0));
  EXPECT_TRUE(boundary.enter(1));
  stop = true;
  EXPECT_TRUE(boundary.enter(0));  // the other dispatcher
  EXPECT_TRUE(boundary.enter(1));
  EXPECT_FALSE(boundary.enter(2));
  stop = false;  // decided is decided
  EXPECT_FALSE(boundary.enter(2));
  EXPECT_EQ(boundary.entered(), 2U);
  EXPECT_TRUE(boundary.stopped());
}

TEST(Boundary, ThreadsAgree) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<bool> stop{false};
    Boundary boundary(1'000'000, &stop);
    std::array<std::uint64_t, 3> entered{};
    std::vector<std::thread> threads;
    for (auto& count : entered) {
      threads.emplace_back([&boundary, &count] {
        while (boundary.enter(count)) ++count;
      });
    }
    while (boundary.entered() < 100) std::this_thread::yield();
    stop = true;
    for (auto& thread : threads) thread.join();
    for (const std::uint64_t count : entered) EXPECT_EQ(count, boundary.entered());
  }
}

TEST(Boundary, ARunToItsEndWasNotStopped) {
  std::atomic<bool> stop{false};
  Boundary boundary(1, &stop);
  EXPECT_TRUE(boundary.enter(0));
  stop = true;
  EXPECT_FALSE(boundary.enter(1));
  EXPECT_FALSE(boundary.stopped());
}

}  // namespace
}  // namespace takt::sched
