#include "scheduler/dispatch/thread_cost.h"

#include <algorithm>
#include <array>
#include <ctime>

#include "runtime/memory/alloc_guard.h"
#include "runtime/memory/process.h"

namespace takt::sched {

ThreadCost ThreadCost::of_this_thread() {
  ThreadCost cost;
  timespec cpu{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  cost.cpu_ns = std::int64_t{cpu.tv_sec} * 1'000'000'000 + cpu.tv_nsec;
  const memory::ThreadUsage usage = memory::thread_usage();
  cost.page_faults = usage.minor_faults + usage.major_faults;
  cost.major_faults = usage.major_faults;
  cost.voluntary_switches = usage.voluntary_switches;
  cost.involuntary_switches = usage.involuntary_switches;
  const memory::ThreadCounters counters = memory::thread_counters();
  cost.copied_bytes = counters.copied_bytes;
  cost.allocations = counters.allocations;
  return cost;
}

Duration ThreadCost::of_a_reading() {
  std::array<std::int64_t, 1000> times{};
  for (std::int64_t& time : times) {
    const HostTime begin = host_now();
    static_cast<void>(of_this_thread());
    time = (host_now() - begin).ns;
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return {times[times.size() / 2]};
}

}  // namespace takt::sched
