#include "scheduler/dispatch/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <climits>
#include <ctime>

namespace takt::sched {

void Futex::wake_all() { syscall(SYS_futex, &value_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0); }

bool Futex::block(std::uint32_t expected, const HostTime* limit) {
  timespec until{};
  if (limit != nullptr) {
    if (limit->ns <= 0) return false;
    until.tv_sec = limit->ns / 1'000'000'000;
    until.tv_nsec = limit->ns % 1'000'000'000;
  }
  // The bitset form takes an absolute limit; its clock is CLOCK_MONOTONIC.
  const long result = syscall(SYS_futex, &value_, FUTEX_WAIT_BITSET_PRIVATE, expected,
                              limit != nullptr ? &until : nullptr, nullptr, FUTEX_BITSET_MATCH_ANY);
  return !(result == -1 && errno == ETIMEDOUT);
}

}  // namespace takt::sched
