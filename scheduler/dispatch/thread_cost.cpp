#include "scheduler/dispatch/thread_cost.h"

#include <ctime>

#include "runtime/memory/alloc_guard.h"
#include "runtime/memory/process.h"

namespace takt::sched {

ThreadCost ThreadCost::of_this_thread() {
  ThreadCost cost;
  timespec cpu{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  cost.cpu_ns = std::int64_t{cpu.tv_sec} * 1'000'000'000 + cpu.tv_nsec;
  const memory::PageFaults faults = memory::thread_page_faults();
  cost.page_faults = faults.minor + faults.major;
  const memory::ThreadCounters counters = memory::thread_counters();
  cost.copied_bytes = counters.copied_bytes;
  cost.allocations = counters.allocations;
  return cost;
}

}  // namespace takt::sched
