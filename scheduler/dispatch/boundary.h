// Agreement of all dispatchers on how many hyperperiods are run: whoever reaches a boundary first decides for all, so
// that a stop never cuts a hyperperiod in two.
#pragma once

#include <atomic>
#include <cstdint>

namespace takt::sched {

class Boundary {
 public:
  Boundary(std::uint64_t hyperperiods, const std::atomic<bool>* stop) : hyperperiods_(hyperperiods), stop_(stop) {}

  // May hyperperiod h be run? Each dispatcher asks for h = 0, 1, ... in turn until the answer is no. Lock-free.
  bool enter(std::uint64_t h) {
    std::uint64_t state = state_.load();
    for (;;) {
      if (h < (state & ~kStopped)) return true;
      if ((state & kStopped) != 0 || h >= hyperperiods_) return false;
      const bool stop = stop_ != nullptr && stop_->load(std::memory_order_relaxed);
      if (state_.compare_exchange_weak(state, stop ? state | kStopped : h + 1)) return !stop;
    }
  }
  [[nodiscard]] std::uint64_t entered() const { return state_.load() & ~kStopped; }
  [[nodiscard]] bool stopped() const { return (state_.load() & kStopped) != 0; }

 private:
  static constexpr std::uint64_t kStopped = std::uint64_t{1} << 63;
  const std::uint64_t hyperperiods_;
  const std::atomic<bool>* const stop_;
  std::atomic<std::uint64_t> state_{0};  // hyperperiods entered, and the stop bit
};

}  // namespace takt::sched
