// Busy time of one core in windows of any length, around the circle. Private to the analysis.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "scheduler/model/model.h"

namespace takt::sched::analysis {

class Load {
 public:
  Load(const Schedule& schedule, std::uint32_t core);
  // Of slots from a start to an end, in ticks.
  Load(const TickClock& clock, const std::vector<std::pair<Tick, Tick>>& slots);
  // Nanoseconds per hyperperiod.
  [[nodiscard]] std::int64_t busy() const { return busy_; }
  // Most busy nanoseconds in any window of that length.
  [[nodiscard]] std::int64_t fullest(std::int64_t window) const;
  // Longest stretch without idle time; all of the hyperperiod when there is none.
  [[nodiscard]] std::int64_t longest_stretch() const;

 private:
  // Busy time in [0, t) of the endlessly repeated table, t >= 0.
  [[nodiscard]] std::int64_t busy_until(std::int64_t t) const;
  std::int64_t hyperperiod_;
  std::int64_t busy_ = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> pieces_;  // disjoint, ascending, inside one hyperperiod
  std::vector<std::int64_t> before_;                           // busy time before each piece
};

}  // namespace takt::sched::analysis
