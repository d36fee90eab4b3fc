// Agreement of all dispatchers on how many hyperperiods are run, in which mode each is, and where in time it begins:
// whoever reaches a boundary first decides for all, so that a stop never cuts a hyperperiod in two and all cores change
// mode and correct their phase alike.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "scheduler/dispatch/futex.h"
#include "scheduler/dispatch/turn.h"
#include "scheduler/model/modes.h"

namespace takt::sched {

class Boundary {
 public:
  struct Limits {
    std::uint64_t turns = 0;                  // at most so many hyperperiods
    Duration length{INT64_MAX};               // none begins so long after the table did, corrections left out
    const std::atomic<bool>* stop = nullptr;  // looked at at every boundary
  };
  // How much later (or, negative, earlier) `next` begins than it says. Asked once for each boundary that ends a
  // hyperperiod of a locked mode.
  using Correction = std::function<Duration(const Turn& next)>;
  // The mode that follows instead of that of `next`. Asked once for each boundary.
  using Change = std::function<std::optional<ModeChange>(const Turn& next)>;

  // `modes` must outlive it; a run begins in the first. Without correction (the table's clock is free) and without
  // change nothing has to be computed at a boundary.
  Boundary(const std::vector<ModeTable>& modes, Limits limits, Correction correction = {}, Change change = {});

  // May hyperperiod h be run? Each dispatcher asks for h = 0, 1, ... in turn until the answer is no, not before
  // decision_at(h) when somebody decides(). Lock-free, but where the others wait for the one that computes.
  bool enter(std::uint64_t h);
  [[nodiscard]] bool decides() const { return decides_; }
  // Of an entered hyperperiod, or without decides() of any.
  [[nodiscard]] Turn turn(std::uint64_t h) const;
  // When the boundary before h > 0 is decided, for h - 1 that has been entered: at the end of h - 1, or where the gap
  // begins there that corrections need.
  [[nodiscard]] TableTime decision_at(std::uint64_t h) const;
  // False when h, whose predecessor has been entered, lies behind the end of the run, whatever is decided.
  [[nodiscard]] bool may_come(std::uint64_t h) const {
    return may_come(h, h == 0 || !decides_ ? Turn{} : turns_[h - 1]);
  }
  // The same where `last`, the hyperperiod before h, is only supposed to be as it is.
  [[nodiscard]] bool may_come(std::uint64_t h, const Turn& last) const;

  // Jobs of a stage before the mode of an entered turn was entered.
  [[nodiscard]] std::uint64_t jobs_before(const Turn& turn, std::uint32_t stage) const {
    return jobs_before_[turn.stay * stages_ + stage];
  }
  // The newest job of `stage` in the mode before that of `turn` whose slot ends by `instant`, or -1.
  [[nodiscard]] std::int64_t newest_before(const Turn& turn, std::uint32_t stage, TableTime instant) const;

  [[nodiscard]] std::uint64_t entered() const { return state_.load() & ~kStopped; }
  [[nodiscard]] bool stopped() const { return (state_.load() & kStopped) != 0; }
  // After the run, of hyperperiods that were entered.
  [[nodiscard]] std::vector<ModeChange> changes() const;

 private:
  static constexpr std::uint64_t kStopped = std::uint64_t{1} << 63;

  [[nodiscard]] const TickClock& clock_of(const Turn& turn) const { return modes_[turn.mode].schedule.clock; }
  [[nodiscard]] bool wants_stop() const {
    return limits_.stop != nullptr && limits_.stop->load(std::memory_order_relaxed);
  }
  // Whoever claimed the boundary before h.
  void decide(std::uint64_t h);
  void change_mode(Turn& next, const ModeChange& change);

  const std::vector<ModeTable>& modes_;
  const Limits limits_;
  const Correction correction_;
  const Change change_;
  const bool decides_;
  const std::size_t stages_;
  std::vector<Turn> turns_;                 // by hyperperiod, where somebody decides
  std::vector<std::uint64_t> jobs_before_;  // by stay and stage
  std::vector<ModeChange> changes_;
  std::atomic<std::uint64_t> claimed_{0};
  Futex decided_;                        // hyperperiods whose turn is known
  std::atomic<std::uint64_t> state_{0};  // hyperperiods entered, and the stop bit
};

}  // namespace takt::sched
