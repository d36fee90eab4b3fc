// Private: the counters that interpose.cpp moves.
#pragma once

#include <atomic>
#include <cstdint>

namespace takt::memory {

// Written by the owning thread only (plain load and store, no locked instruction), read by timed_threads().
struct AtomicCounters {
  std::atomic<std::uint64_t> allocations{0};
  std::atomic<std::uint64_t> copied_bytes{0};
};

extern constinit thread_local AtomicCounters counters;

inline void bump(std::atomic<std::uint64_t>& counter, std::uint64_t by) {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

}  // namespace takt::memory
