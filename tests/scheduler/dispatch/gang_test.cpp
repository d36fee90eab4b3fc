#include <gtest/gtest.h>
#include <sched.h>
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
      gang.arrive_and_wait();
      faults[mine] += written[1 - mine] != round ? 1 : 0;
      gang.arrive_and_wait();
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
  for (int i = 0; i < 10; ++i) gang.arrive_and_wait();
  EXPECT_EQ(gang.parts(), 1);
}

}  // namespace
}  // namespace takt::sched
