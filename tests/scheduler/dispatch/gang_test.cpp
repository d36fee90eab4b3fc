#include <gtest/gtest.h>
#include <sched.h>
#include <chrono>
#include <ctime>
#include <thread>
#include <vector>

#include "scheduler/dispatch/dispatch.h"

namespace takt::sched {
namespace {

// Both parts write, meet, and read what the other wrote; `cpu` < 0 leaves them where they are.
void expect_parts_meet(int cpu, int rounds) {
  Gang gang(2);
  std::vector<int> written(2, 0);
  std::vector<int> faults(2, 0);
  const auto part = [&](int self) {
    if (cpu >= 0) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(cpu, &set);
      sched_setaffinity(0, sizeof(set), &set);
    }
    const auto mine = static_cast<std::size_t>(self);
    for (int round = 1; round <= rounds; ++round) {
      written[mine] = round;
      EXPECT_TRUE(gang.arrive_and_wait(self));
      faults[mine] += written[1 - mine] != round ? 1 : 0;
      EXPECT_TRUE(gang.arrive_and_wait(self));
    }
  };
  std::thread other(part, 1);
  std::thread first(part, 0);
  other.join();
  first.join();
  EXPECT_EQ(faults[0] + faults[1], 0);
}

TEST(Gang, NoPartRunsAhead) { expect_parts_meet(-1, 2000); }

TEST(Gang, TwoPartsOnOneCpuDoNotStarveEachOther) { expect_parts_meet(0, 100); }

TEST(Gang, OnePartNeverWaits) {
  Gang gang(1);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(gang.arrive_and_wait(0));
  EXPECT_EQ(gang.parts(), 1);
}

TEST(Gang, PartZeroGivesUpForAllWhenAnotherOneDoesNotCome) {
  Gang gang(2);
  gang.begin({.end = host_now() + milliseconds(1), .budget = {}});
  EXPECT_FALSE(gang.arrive_and_wait(0));  // nobody else has come
  EXPECT_FALSE(gang.arrive_and_wait(1));  // and whoever comes later goes no further
  EXPECT_EQ(gang.aborted_at(), 0U);
  gang.begin({});
  std::thread other([&gang] { EXPECT_TRUE(gang.arrive_and_wait(1)); });
  EXPECT_TRUE(gang.arrive_and_wait(0));
  other.join();
  EXPECT_EQ(gang.aborted_at(), Gang::kNever);
}

TEST(Gang, AfterTheSlotPartsStillMeetWithoutSpinning) {
  Gang gang(2);
  gang.begin({});
  gang.end_slot();
  timespec before{};
  timespec after{};
  std::thread other([&] {
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    EXPECT_TRUE(gang.arrive_and_wait(1));
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_TRUE(gang.arrive_and_wait(0));
  other.join();
  const double used_ms = static_cast<double>(after.tv_sec - before.tv_sec) * 1e3 +
                         static_cast<double>(after.tv_nsec - before.tv_nsec) * 1e-6;
  EXPECT_LT(used_ms, 50);  // it waited for 100 ms
}

// The other part's core woke behind the slot, and that part does none of the job.
TEST(Gang, AfterTheSlotPartZeroWaitsForNobody) {
  Gang gang(2);
  gang.begin({.end = host_now(), .budget = {}});
  gang.end_slot();
  EXPECT_FALSE(gang.arrive_and_wait(0));
  EXPECT_EQ(gang.aborted_at(), 0U);
}

TEST(Gang, AStepBeginsOnlyIfItsWorstCaseFitsTheBudget) {
  Gang gang(1);
  gang.begin({.end = {}, .budget = seconds(1000)});
  gang.started(host_now());
  EXPECT_TRUE(gang.arrive_and_wait(0, seconds(500)));
  EXPECT_FALSE(gang.arrive_and_wait(0, seconds(1000)));
  EXPECT_EQ(gang.aborted_at(), 1U);
}

TEST(Gang, ARecordedAbortComesAtItsBoundaryWhateverTheClockSays) {
  Gang gang(1);
  gang.begin({.end = {}, .budget = {}, .abort_at = 2});
  EXPECT_TRUE(gang.arrive_and_wait(0, seconds(1000)));
  EXPECT_TRUE(gang.arrive_and_wait(0));
  EXPECT_FALSE(gang.arrive_and_wait(0));
  EXPECT_EQ(gang.aborted_at(), 2U);
}

}  // namespace
}  // namespace takt::sched
