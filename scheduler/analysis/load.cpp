#include "scheduler/analysis/load.h"

#include <algorithm>

namespace takt::sched::analysis {

namespace {

std::vector<std::pair<Tick, Tick>> slots_on(const Schedule& schedule, std::uint32_t core) {
  std::vector<std::pair<Tick, Tick>> out;
  for (const Slot& slot : schedule.slots) {
    if (std::find(slot.cores.begin(), slot.cores.end(), core) != slot.cores.end()) {
      out.emplace_back(slot.start, slot.end);
    }
  }
  return out;
}

}  // namespace

Load::Load(const Schedule& schedule, std::uint32_t core) : Load(schedule.clock, slots_on(schedule, core)) {}

Load::Load(const TickClock& clock, const std::vector<std::pair<Tick, Tick>>& slots)
    : hyperperiod_(clock.hyperperiod.ns) {
  for (const auto& [from, to] : slots) {
    // A later segment of a job may lie in the next hyperperiod.
    const std::int64_t turn = from / clock.ticks * hyperperiod_;
    const std::int64_t start = clock.start_at(0, from).ns - turn;
    const std::int64_t end = clock.end_at(0, to).ns - turn;
    pieces_.emplace_back(start, std::min(end, hyperperiod_));
    if (end > hyperperiod_) pieces_.emplace_back(0, end - hyperperiod_);
  }
  std::sort(pieces_.begin(), pieces_.end());
  for (const auto& [start, end] : pieces_) {
    before_.push_back(busy_);
    busy_ += end - start;
  }
}

std::int64_t Load::busy_until(std::int64_t t) const {
  const std::int64_t turns = t / hyperperiod_;
  const std::int64_t rest = t % hyperperiod_;
  const auto after = std::upper_bound(pieces_.begin(), pieces_.end(), std::pair(rest, INT64_MAX));
  if (after == pieces_.begin()) return turns * busy_;
  const auto last = static_cast<std::size_t>(after - pieces_.begin()) - 1;
  return turns * busy_ + before_[last] + std::min(rest, pieces_[last].second) - pieces_[last].first;
}

std::int64_t Load::fullest(std::int64_t window) const {
  // The fullest window can be moved until it begins with a piece or ends with one.
  std::int64_t most = 0;
  for (const auto& [start, end] : pieces_) {
    most = std::max(most, busy_until(start + window) - busy_until(start));
    const std::int64_t turns = (window - end) / hyperperiod_ + 1;
    const std::int64_t last = end + std::max<std::int64_t>(turns, 0) * hyperperiod_;
    most = std::max(most, busy_until(last) - busy_until(last - window));
  }
  return most;
}

std::int64_t Load::longest_stretch() const {
  std::int64_t longest = 0;
  std::int64_t begin = 0;
  std::int64_t reached = 0;
  for (int turn = 0; turn < 2; ++turn) {
    for (const auto& [piece_start, piece_end] : pieces_) {
      const std::int64_t start = piece_start + turn * hyperperiod_;
      const std::int64_t end = piece_end + turn * hyperperiod_;
      if (start - reached > 1) begin = start;  // one nanosecond is rounding
      reached = end;
      longest = std::max(longest, reached - begin);
    }
  }
  return std::min(longest, hyperperiod_);
}

}  // namespace takt::sched::analysis
