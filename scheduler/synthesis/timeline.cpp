#include "scheduler/synthesis/timeline.h"

#include <algorithm>

namespace takt::sched {

std::optional<Tick> Timeline::first_fit(Tick from, Tick length) const {
  if (length > ticks_) return std::nullopt;
  if (intervals_.empty()) return from;
  Tick moved = 0;
  while (moved <= ticks_) {
    const Tick at = floor_mod(from + moved, ticks_);
    const auto after = std::upper_bound(intervals_.begin(), intervals_.end(), at,
                                        [](Tick value, const Interval& interval) { return value < interval.start; });
    // The interval that starts at or before `at`, seen around the circle.
    const Interval& before = after == intervals_.begin() ? intervals_.back() : *std::prev(after);
    const Tick before_end = after == intervals_.begin() ? before.end - ticks_ : before.end;
    if (before_end > at) {
      moved += before_end - at;
      continue;
    }
    const Interval& next = after == intervals_.end() ? intervals_.front() : *after;
    const Tick shift = after == intervals_.end() ? ticks_ : 0;
    if (next.start + shift < at + length) {
      moved += next.end + shift - at;
      continue;
    }
    return from + moved;
  }
  return std::nullopt;
}

void Timeline::insert(Tick start, Tick length, std::uint32_t owner) {
  const Tick at = floor_mod(start, ticks_);
  const Interval interval{at, at + length, owner};
  intervals_.insert(std::upper_bound(intervals_.begin(), intervals_.end(), interval,
                                     [](const Interval& a, const Interval& b) { return a.start < b.start; }),
                    interval);
}

void Timeline::erase(std::uint32_t owner) {
  std::erase_if(intervals_, [owner](const Interval& interval) { return interval.owner == owner; });
}

}  // namespace takt::sched
