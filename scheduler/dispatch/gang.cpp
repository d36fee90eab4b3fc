#include <thread>

#include "scheduler/dispatch/dispatch.h"

namespace takt::sched {
namespace {

void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// A few microseconds: longer than the usual skew of balanced work, far shorter than a scheduling period.
constexpr int kSpins = 2000;

}  // namespace

void Gang::arrive_and_wait() {
  if (parts_ == 1) return;
  const unsigned generation = generation_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == parts_) {
    arrived_.store(0, std::memory_order_relaxed);
    generation_.store(generation + 1, std::memory_order_release);
    return;
  }
  // The other part may need this very CPU (no pinning, fewer CPUs than the board names): spinning alone would never end
  // under SCHED_FIFO. Yielding also rotates threads of equal real-time priority.
  for (int spin = 0; generation_.load(std::memory_order_acquire) == generation; ++spin) {
    if (spin < kSpins) {
      pause_cpu();
    } else {
      std::this_thread::yield();
    }
  }
}

}  // namespace takt::sched
