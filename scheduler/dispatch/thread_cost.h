// What a thread has used so far; the difference of two readings is what a job cost.
#pragma once

#include <cstdint>

namespace takt::sched {

struct ThreadCost {
  std::int64_t cpu_ns = 0;
  std::uint64_t page_faults = 0;
  std::uint64_t copied_bytes = 0;  // memcpy and memmove; 0 where they are not interposed
  std::uint64_t allocations = 0;   // 0 where they are not counted

  static ThreadCost of_this_thread();
  friend ThreadCost operator-(const ThreadCost& a, const ThreadCost& b) {
    return {a.cpu_ns - b.cpu_ns, a.page_faults - b.page_faults, a.copied_bytes - b.copied_bytes,
            a.allocations - b.allocations};
  }
};

}  // namespace takt::sched
