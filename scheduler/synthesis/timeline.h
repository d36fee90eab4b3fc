// Occupancy of one resource over a hyperperiod that repeats: intervals on a circle of N ticks.
#pragma once

#include <optional>
#include <vector>

#include "scheduler/model/model.h"

namespace takt::sched {

class Timeline {
 public:
  explicit Timeline(Tick ticks) : ticks_(ticks) {}

  // The first start >= `from` (any sign) at which [start, start + length) is free; nullopt when none within one turn.
  [[nodiscard]] std::optional<Tick> first_fit(Tick from, Tick length) const;
  void insert(Tick start, Tick length, std::uint32_t owner);
  void erase(std::uint32_t owner);
  [[nodiscard]] Tick ticks() const { return ticks_; }

  struct Interval {
    Tick start = 0;  // in [0, N)
    Tick end = 0;    // may exceed N
    std::uint32_t owner = 0;
  };
  [[nodiscard]] const std::vector<Interval>& intervals() const { return intervals_; }

 private:
  Tick ticks_;
  std::vector<Interval> intervals_;  // by start, disjoint on the circle
};

// Floor division and the matching remainder in [0, b).
constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
constexpr std::int64_t floor_mod(std::int64_t a, std::int64_t b) { return a - floor_div(a, b) * b; }

}  // namespace takt::sched
