#include "scheduler/dispatch/events.h"

#include <algorithm>
#include <tuple>

namespace takt::sched {
namespace {

template <class Wanted>
std::vector<Start> starts(const Schedule& schedule, Wanted wanted) {
  std::vector<Start> out;
  for (std::size_t i = 0; i < schedule.slots.size(); ++i) {
    if (wanted(schedule.slots[i])) out.push_back({schedule.slots[i].start, static_cast<std::uint32_t>(i)});
  }
  std::sort(out.begin(), out.end(),
            [](const Start& a, const Start& b) { return std::tie(a.tick, a.slot) < std::tie(b.tick, b.slot); });
  return out;
}

}  // namespace

std::vector<Start> starts_on(const Schedule& schedule, std::uint32_t core) {
  return starts(schedule, [core](const Slot& slot) {
    return std::find(slot.cores.begin(), slot.cores.end(), core) != slot.cores.end();
  });
}

std::vector<Start> starts_of(const Schedule& schedule) {
  return starts(schedule, [](const Slot&) { return true; });
}

Tick publish_tick(const Problem& problem, const Schedule& schedule, const Slot& slot) {
  const Tick window = schedule.clock.ticks_up(problem.board.cores[slot.cores.back()].publish_window);
  return std::max(slot.end - window, slot.start + 1);
}

void Agenda::add(TableTime instant) {
  instants_.insert(std::upper_bound(instants_.begin(), instants_.end(), instant), instant);
}

void Agenda::pass(TableTime now) {
  instants_.erase(instants_.begin(), std::upper_bound(instants_.begin(), instants_.end(), now));
}

}  // namespace takt::sched
