#include <ctime>
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
constexpr std::uint32_t kAbort = 0xFFFF'FFFF;

// One look of a part that waits for another one. The other part may need this very CPU (no pinning, fewer CPUs than the
// board names): spinning alone would never end under SCHED_FIFO. Yielding also rotates threads of equal priority.
class Waiting {
 public:
  explicit Waiting(const std::atomic<bool>& slot_over) : slot_over_(slot_over) {}
  void look_away() {
    if (slot_over_.load(std::memory_order_relaxed)) {
      const timespec pause{0, 1'000'000};
      clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
    } else if (spins_ < kSpins) {
      ++spins_;
      pause_cpu();
    } else {
      std::this_thread::yield();
    }
  }
  // Whether the usual skew is over and reading the clock costs nothing that matters.
  [[nodiscard]] bool long_since() const { return spins_ == kSpins || slot_over_.load(std::memory_order_relaxed); }

 private:
  const std::atomic<bool>& slot_over_;
  int spins_ = 0;
};

}  // namespace

void Gang::begin(const Limits& limits) {
  limits_ = limits;
  boundary_ = 0;
  aborted_at_ = kNever;
  arrived_.store(0, std::memory_order_relaxed);
  word_.store(0, std::memory_order_relaxed);
  slot_over_.store(false, std::memory_order_relaxed);
}

void Gang::resume(const Limits& limits) {
  limits_ = limits;
  slot_over_.store(false, std::memory_order_relaxed);
}

bool Gang::goes_on(Duration next) {
  if (boundary_ == limits_.abort_at) return false;
  if (!limits_.end && !limits_.budget) return true;
  const HostTime now = host_now();
  if (limits_.end && now > *limits_.end) return false;
  return !limits_.budget || now + next - start_ <= *limits_.budget;
}

bool Gang::give_up() {
  aborted_at_ = boundary_;
  word_.store(kAbort, std::memory_order_release);
  return false;
}

bool Gang::arrive_and_wait(int part, Duration next) {
  if (part != 0) {
    const std::uint32_t boundary = word_.load(std::memory_order_acquire);
    if (boundary == kAbort) return false;
    arrived_.fetch_add(1, std::memory_order_acq_rel);
    for (Waiting waiting(slot_over_);;) {
      const std::uint32_t word = word_.load(std::memory_order_acquire);
      if (word == kAbort) return false;
      if (word != boundary) return true;
      waiting.look_away();
    }
  }
  // An abort does not wait for the others: they see it when they come.
  for (Waiting waiting(slot_over_); arrived_.load(std::memory_order_acquire) != parts_ - 1; waiting.look_away()) {
    if (waiting.long_since() && !goes_on({})) return give_up();
  }
  if (!goes_on(next)) return give_up();
  arrived_.store(0, std::memory_order_relaxed);
  ++boundary_;
  word_.store(boundary_, std::memory_order_release);
  return true;
}

}  // namespace takt::sched
