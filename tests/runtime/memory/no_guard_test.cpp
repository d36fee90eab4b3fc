// An executable without takt_memory_interpose: nothing is counted, and it says so.
#include <gtest/gtest.h>
#include <memory>

#include "runtime/memory/alloc_guard.h"

TEST(NoGuard, SaysThatItDoesNotCount) {
  EXPECT_FALSE(takt::memory::guard_available());
  const auto block = std::make_unique<int[]>(100);
  EXPECT_NE(block, nullptr);
  EXPECT_EQ(takt::memory::thread_counters().allocations, 0u);
  EXPECT_EQ(takt::memory::thread_counters().copied_bytes, 0u);
}
