// A 32-bit word that threads wait on. A raw futex, because a timed thread needs three things at once: a wait that takes
// no lock, an absolute CLOCK_MONOTONIC limit (std::atomic::wait has none), and one word that is both the value and the
// thing waited for, so that nothing is ever woken for a state that it cannot see. Operations are sequentially
// consistent: the hand-over between two dispatchers of a gang depends on it.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/base/time.h"

namespace takt::sched {

class Futex {
 public:
  [[nodiscard]] std::uint32_t load() const { return value_.load(); }
  void store(std::uint32_t value) { value_.store(value); }
  std::uint32_t add(std::uint32_t value) { return value_.fetch_add(value) + value; }
  std::uint32_t subtract(std::uint32_t value) { return value_.fetch_sub(value) - value; }
  // Raises the value to at least `value`.
  void raise(std::uint32_t value) {
    std::uint32_t seen = value_.load();
    while (seen < value && !value_.compare_exchange_weak(seen, value)) {
    }
  }
  bool replace(std::uint32_t expected, std::uint32_t value) { return value_.compare_exchange_strong(expected, value); }
  void wake_all();

  // Returns the first value for which `reached` holds.
  template <class Reached>
  std::uint32_t wait(Reached reached) {
    for (;;) {
      const std::uint32_t value = load();
      if (reached(value)) return value;
      block(value, nullptr);
    }
  }
  // The same up to an instant; false when `reached` did not hold by then.
  template <class Reached>
  bool wait_until(HostTime limit, Reached reached) {
    for (;;) {
      const std::uint32_t value = load();
      if (reached(value)) return true;
      if (!block(value, &limit)) return reached(load());
    }
  }

 private:
  // Sleeps while the word holds `expected`; may return early. False when `limit` has passed.
  bool block(std::uint32_t expected, const HostTime* limit);

  std::atomic<std::uint32_t> value_{0};
  static_assert(sizeof(std::atomic<std::uint32_t>) == 4 && std::atomic<std::uint32_t>::is_always_lock_free);
};

}  // namespace takt::sched
