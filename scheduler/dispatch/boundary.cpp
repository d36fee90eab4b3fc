#include "scheduler/dispatch/boundary.h"

#include <algorithm>

namespace takt::sched {

Boundary::Boundary(const std::vector<ModeTable>& modes, Limits limits, Correction correction, Change change)
    : modes_(modes),
      limits_(limits),
      correction_(std::move(correction)),
      change_(std::move(change)),
      decides_(correction_ || change_),
      stages_(modes.front().schedule.choices.size()),
      turns_(decides_ ? limits.turns : 0),
      jobs_before_(stages_ * (change_ ? limits.turns + 1 : 1)) {
  if (change_) changes_.reserve(limits.turns);
}

bool Boundary::enter(std::uint64_t h) {
  if (decides_) {
    if (h >= limits_.turns) return false;
    const auto known = static_cast<std::uint32_t>(h);
    std::uint64_t expected = h;
    if (claimed_.compare_exchange_strong(expected, h + 1)) {
      decide(h);
      decided_.store(known + 1);
      decided_.wake_all();
    } else {
      decided_.wait([known](std::uint32_t decided) { return decided > known; });
    }
    return h < entered();
  }
  std::uint64_t state = state_.load();
  for (;;) {
    if (h < (state & ~kStopped)) return true;
    if ((state & kStopped) != 0 || h >= limits_.turns) return false;
    const bool stop = wants_stop();
    if (state_.compare_exchange_weak(state, stop ? state | kStopped : h + 1)) return !stop;
  }
}

void Boundary::decide(std::uint64_t h) {
  const std::uint64_t state = state_.load();
  if (state != h) return;  // stopped, or over, at an earlier boundary
  Turn next;
  if (h > 0) {
    const Turn& last = turns_[h - 1];
    next = last;
    next.number = h;
    next.begin = last.begin + clock_of(last).hyperperiod;
    next.correction = {};
    ++next.in_mode;
    if (correction_ && modes_[last.mode].phase_lock) next.correction = correction_(next);
    std::optional<ModeChange> change;
    if (change_) change = change_(next);
    if (change) {
      next.correction = {};
      change_mode(next, *change);
    }
    next.begin = next.begin + next.correction;
    next.corrected = last.corrected + next.correction;
    if ((next.begin - TableTime{0}) - next.corrected >= limits_.length) return;
    if (change) changes_.back().begin = next.begin;
  }
  turns_[h] = next;
  state_.store(wants_stop() ? h | kStopped : h + 1);
}

void Boundary::change_mode(Turn& next, const ModeChange& change) {
  const std::vector<Choice>& choices = modes_[next.mode].schedule.choices;
  for (std::size_t s = 0; s < stages_; ++s) {
    jobs_before_[(next.stay + 1) * stages_ + s] =
        jobs_before_[next.stay * stages_ + s] + next.in_mode * static_cast<std::uint64_t>(choices[s].rate);
  }
  changes_.push_back(change);
  changes_.back().hyperperiod = next.number;
  changes_.back().from = next.mode;
  next.mode = change.to;
  next.begin = next.begin + modes_[change.to].entry_drain;
  next.in_mode = 0;
  ++next.stay;
}

Turn Boundary::turn(std::uint64_t h) const {
  if (decides_) return turns_[h];
  Turn out;
  out.number = out.in_mode = h;
  out.begin = modes_.front().schedule.clock.start_at(h, 0);
  return out;
}

TableTime Boundary::decision_at(std::uint64_t h) const {
  const Turn last = turn(h - 1);
  const ModeTable& mode = modes_[last.mode];
  return last.begin + mode.schedule.clock.hyperperiod - (mode.phase_lock ? mode.phase_lock->gap : Duration{});
}

bool Boundary::may_come(std::uint64_t h, const Turn& last) const {
  if (h >= limits_.turns) return false;
  if (h == 0 || !decides_) return true;
  return (last.begin - TableTime{0}) - last.corrected + clock_of(last).hyperperiod < limits_.length;
}

std::int64_t Boundary::newest_before(const Turn& turn, std::uint32_t stage, TableTime instant) const {
  if (turn.stay == 0) return -1;
  for (std::uint64_t h = turn.number - turn.in_mode; h-- > 0;) {
    const Turn& old = turns_[h];
    if (old.stay + 1 != turn.stay) return -1;
    const Schedule& schedule = modes_[old.mode].schedule;
    std::int64_t newest = -1;
    const std::size_t last = std::max<std::size_t>(schedule.choices[stage].budget.segments.size(), 1) - 1;
    for (const Slot& slot : schedule.slots) {
      if (slot.stage != stage || slot.segment != last ||
          old.begin + (schedule.clock.end_at(0, slot.end) - TableTime{0}) > instant)
        continue;
      newest = std::max<std::int64_t>(newest, slot.job);
    }
    const auto rate = static_cast<std::uint64_t>(schedule.choices[stage].rate);
    if (newest >= 0) return static_cast<std::int64_t>(jobs_before(old, stage) + old.in_mode * rate) + newest;
  }
  return -1;
}

std::vector<ModeChange> Boundary::changes() const {
  std::vector<ModeChange> out = changes_;
  std::erase_if(out, [this](const ModeChange& change) { return change.hyperperiod >= entered(); });
  return out;
}

}  // namespace takt::sched
