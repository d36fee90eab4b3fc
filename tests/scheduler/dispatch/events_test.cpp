#include "scheduler/dispatch/events.h"

#include <gtest/gtest.h>

#include "fake_host.h"
#include "scheduler/dispatch/boundary.h"
#include "scheduler/dispatch/table_clock.h"

#include <thread>

namespace takt::sched {
namespace {

using test::TableBuilder;

TEST(Events, StartsOfACoreAndOfTheTable) {
  TableBuilder table(milliseconds(20), 2);
  const auto late = table.stage("late", 1, milliseconds(3));
  const auto gang = table.stage("gang", 1, milliseconds(3));
  const auto wraps = table.stage("wraps", 1, milliseconds(3));
  table.slot(late, 0, {0}, 5, 10);
  table.slot(gang, 0, {1, 0}, 0, 5);
  table.slot(wraps, 0, {1}, 18, 22.5);
  const auto slots = [](const std::vector<Start>& starts) {
    std::vector<std::uint32_t> out;
    for (const Start& start : starts) out.push_back(start.slot);
    return out;
  };
  EXPECT_EQ(slots(starts_on(table.schedule, 0)), (std::vector<std::uint32_t>{1, 0}));
  EXPECT_EQ(slots(starts_on(table.schedule, 1)), (std::vector<std::uint32_t>{1, 2}));
  const auto all = starts_of(table.schedule);
  EXPECT_EQ(slots(all), (std::vector<std::uint32_t>{1, 0, 2}));
  EXPECT_EQ(all[2].tick, 18'000);
}

TEST(Events, AnAgendaIsInOrderAndForgetsWhatIsOver) {
  Agenda agenda(4);
  for (const std::int64_t at : {30, 10, 20, 10}) agenda.add({.instant = {at}});
  EXPECT_EQ(agenda.first().ns, 10);
  agenda.pass({9});
  EXPECT_EQ(agenda.first().ns, 10);
  agenda.pass({20});
  EXPECT_EQ(agenda.first().ns, 30);
  agenda.pass({100});
  EXPECT_TRUE(agenda.empty());
}

TEST(Events, AnAgendaDropsTheInstantsOfOneJob) {
  Agenda agenda(4);
  for (const std::uint32_t tag : {1, 2}) {
    agenda.add({.instant = {10 * tag}, .tag = tag});
    agenda.add({.instant = {10 * tag + 1}, .tag = tag});
  }
  agenda.drop(nullptr, 1);
  EXPECT_EQ(agenda.first().ns, 20);
  agenda.drop(nullptr, 2);
  EXPECT_TRUE(agenda.empty());
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
  const TickClock& clock = table.schedule.clock;
  __extension__ using Wide = __int128;
  for (const std::uint64_t h : {0ULL, 1ULL, 2ULL, 999'999'999ULL, 80'000'000'000ULL}) {
    const Wide numerator = static_cast<Wide>(33'334) * 100'000'001;
    const Wide base = static_cast<Wide>(h) * 100'000'001;
    const auto down = static_cast<std::int64_t>(base + numerator / 102'000);
    EXPECT_EQ(clock.end_at(h, 33'334).ns, down);
    EXPECT_EQ(clock.start_at(h, 33'334).ns, down + 1);
    // A hyperperiod is whole nanoseconds, so its begin may be taken out of the rounding, as a change of mode does.
    EXPECT_EQ((clock.start_at(h, 0) + (clock.start_at(0, 33'334) - TableTime{0})).ns, down + 1);
    EXPECT_EQ((clock.start_at(h, 0) + (clock.end_at(0, 33'334) - TableTime{0})).ns, down);
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

// One table of one stage, 20 ms.
std::vector<ModeTable> one_mode() {
  TableBuilder table(milliseconds(20), 1);
  table.slot(table.stage("stage", 2, milliseconds(1)), 0, {0}, 1, 4);
  return {only_table(table.problem, table.schedule)};
}

TEST(Boundary, ADispatcherThatIsBehindRunsWhatAnotherHasEntered) {
  std::atomic<bool> stop{false};
  const auto modes = one_mode();
  Boundary boundary(modes, {.turns = 10, .stop = &stop});
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
    const auto modes = one_mode();
    Boundary boundary(modes, {.turns = 1'000'000, .stop = &stop});
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
  const auto modes = one_mode();
  Boundary boundary(modes, {.turns = 1, .stop = &stop});
  EXPECT_TRUE(boundary.enter(0));
  stop = true;
  EXPECT_FALSE(boundary.enter(1));
  EXPECT_FALSE(boundary.stopped());
}

TEST(Boundary, ThreadsAgreeOnModesAndTimesToo) {
  std::vector<ModeTable> modes{one_mode().front(), one_mode().front()};
  modes[1].schedule.clock = {milliseconds(30), 30'000};
  modes[1].schedule.choices[0].rate = 3;
  modes[1].entry_drain = milliseconds(5);
  // Into the second at every third boundary, back at the next.
  const auto change = [](const Turn& next) -> std::optional<ModeChange> {
    ModeChange out;
    out.to = next.number % 3 == 0 ? 1 : 0;
    if (out.to == next.mode) return std::nullopt;
    return out;
  };
  Boundary boundary(modes, {.turns = 1000, .length = seconds(15)}, {}, change);
  std::vector<std::vector<Turn>> seen(3);
  std::vector<std::thread> threads;
  for (auto& turns : seen) {
    threads.emplace_back([&boundary, &turns] {
      for (std::uint64_t h = 0; boundary.may_come(h) && boundary.enter(h); ++h) turns.push_back(boundary.turn(h));
    });
  }
  for (auto& thread : threads) thread.join();
  // The first takes 20 ms, every three behind it 20 + 20 + 5 + 30 ms; the last one begins in time.
  EXPECT_EQ(boundary.entered(), 601U);
  std::uint64_t jobs = 0;
  TableTime begin{0};
  for (const auto& turns : seen) ASSERT_EQ(turns.size(), boundary.entered());
  for (std::uint64_t h = 0; h < boundary.entered(); ++h) {
    const Turn& turn = seen[0][h];
    const std::uint32_t mode = h > 0 && h % 3 == 0 ? 1 : 0;
    if (mode == 1) begin = begin + milliseconds(5);
    EXPECT_EQ(turn.number, h);
    EXPECT_EQ(turn.mode, mode);
    EXPECT_EQ(turn.begin, begin);
    EXPECT_EQ(boundary.jobs_before(turn, 0) + turn.in_mode * (mode == 1 ? 3 : 2), jobs);
    for (const auto& turns : seen) EXPECT_EQ(turns[h].begin, begin);
    begin = begin + modes[mode].schedule.clock.hyperperiod;
    jobs += mode == 1 ? 3 : 2;
  }
}

}  // namespace
}  // namespace takt::sched
