// Agreement of all dispatchers on how many hyperperiods are run, and on where in time each begins: whoever reaches a
// boundary first decides for all, so that a stop never cuts a hyperperiod in two and all cores correct their phase
// alike.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/base/time.h"
#include "scheduler/dispatch/futex.h"

namespace takt::sched {

class Boundary {
 public:
  // How much later (or, negative, earlier) hyperperiod h begins than a whole one after h - 1. Asked once for each h >
  // 0.
  using Correction = std::function<Duration(std::uint64_t h)>;

  // An empty `correction`: the table's clock is free.
  Boundary(std::uint64_t hyperperiods, const std::atomic<bool>* stop, Correction correction = {})
      : hyperperiods_(hyperperiods),
        stop_(stop),
        correction_(std::move(correction)),
        offsets_(correction_ ? hyperperiods + 1 : 0) {}

  // May hyperperiod h be run? Each dispatcher asks for h = 0, 1, ... in turn until the answer is no. Lock-free, but
  // with corrections, where the others wait for the one that computes it.
  bool enter(std::uint64_t h) {
    if (correction_) correct(h);
    std::uint64_t state = state_.load();
    for (;;) {
      if (h < (state & ~kStopped)) return true;
      if ((state & kStopped) != 0 || h >= hyperperiods_) return false;
      const bool stop = stop_ != nullptr && stop_->load(std::memory_order_relaxed);
      if (state_.compare_exchange_weak(state, stop ? state | kStopped : h + 1)) return !stop;
    }
  }
  [[nodiscard]] bool corrects() const { return static_cast<bool>(correction_); }
  // Sum of all corrections up to the begin of hyperperiod h, which has been entered.
  [[nodiscard]] Duration offset(std::uint64_t h) const {
    return corrects() && h < offsets_.size() ? offsets_[h] : Duration{};
  }
  // That of the newest hyperperiod entered. Any thread.
  [[nodiscard]] Duration newest_offset() const { return {newest_offset_.load(std::memory_order_relaxed)}; }

  [[nodiscard]] std::uint64_t entered() const { return state_.load() & ~kStopped; }
  [[nodiscard]] bool stopped() const { return (state_.load() & kStopped) != 0; }

 private:
  static constexpr std::uint64_t kStopped = std::uint64_t{1} << 63;

  void correct(std::uint64_t h) {
    if (h >= offsets_.size()) return;
    const auto number = static_cast<std::uint32_t>(h);
    std::uint32_t expected = number;
    if (claimed_.compare_exchange_strong(expected, number + 1)) {
      offsets_[h] = h == 0 ? Duration{} : offsets_[h - 1] + correction_(h);
      newest_offset_.store(offsets_[h].ns, std::memory_order_relaxed);
      corrected_.store(number + 1);
      corrected_.wake_all();
    } else {
      corrected_.wait([number](std::uint32_t corrected) { return corrected > number; });
    }
  }

  const std::uint64_t hyperperiods_;
  const std::atomic<bool>* const stop_;
  const Correction correction_;
  std::vector<Duration> offsets_;  // by hyperperiod
  std::atomic<std::uint32_t> claimed_{0};
  Futex corrected_;  // hyperperiods whose offset is known
  std::atomic<std::int64_t> newest_offset_{0};
  std::atomic<std::uint64_t> state_{0};  // hyperperiods entered, and the stop bit
};

}  // namespace takt::sched
