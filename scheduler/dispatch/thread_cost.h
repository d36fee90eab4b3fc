// What a thread has used so far; the difference of two readings is what a job cost.
#pragma once

#include <cstdint>

#include "runtime/base/time.h"

namespace takt::sched {

struct ThreadCost {
  std::int64_t cpu_ns = 0;
  std::uint64_t page_faults = 0;
  std::uint64_t major_faults = 0;          // those of them that needed the disk
  std::uint64_t voluntary_switches = 0;    // it waited
  std::uint64_t involuntary_switches = 0;  // another thread was given its core
  std::uint64_t copied_bytes = 0;          // memcpy and memmove; 0 where they are not interposed
  std::uint64_t allocations = 0;           // 0 where they are not counted

  static ThreadCost of_this_thread();
  // How long one reading takes on this machine: the median of a thousand. Not for timed threads.
  static Duration of_a_reading();
  friend ThreadCost operator-(const ThreadCost& a, const ThreadCost& b) {
    return {a.cpu_ns - b.cpu_ns,
            a.page_faults - b.page_faults,
            a.major_faults - b.major_faults,
            a.voluntary_switches - b.voluntary_switches,
            a.involuntary_switches - b.involuntary_switches,
            a.copied_bytes - b.copied_bytes,
            a.allocations - b.allocations};
  }
  ThreadCost& operator+=(const ThreadCost& other) {
    cpu_ns += other.cpu_ns;
    page_faults += other.page_faults;
    major_faults += other.major_faults;
    voluntary_switches += other.voluntary_switches;
    involuntary_switches += other.involuntary_switches;
    copied_bytes += other.copied_bytes;
    allocations += other.allocations;
    return *this;
  }
};

}  // namespace takt::sched
