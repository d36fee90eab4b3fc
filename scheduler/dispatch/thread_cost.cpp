#include "scheduler/dispatch/thread_cost.h"

#include <sys/resource.h>
#include <ctime>

namespace takt::sched {

ThreadCost ThreadCost::of_this_thread() {
  ThreadCost cost;
  timespec cpu{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  cost.cpu_ns = std::int64_t{cpu.tv_sec} * 1'000'000'000 + cpu.tv_nsec;
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  cost.page_faults = static_cast<std::uint64_t>(usage.ru_minflt + usage.ru_majflt);
  return cost;
}

}  // namespace takt::sched
