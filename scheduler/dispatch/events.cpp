#include "scheduler/dispatch/events.h"

#include <algorithm>
#include <tuple>

namespace takt::sched {
namespace {

void add(std::vector<Event>& events, Tick tick, Tick ticks, EventKind kind, std::size_t slot) {
  events.push_back({tick % ticks, static_cast<std::uint32_t>(tick / ticks), kind, static_cast<std::uint32_t>(slot)});
}

void sort(std::vector<Event>& events) {
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tie(a.tick, a.kind, a.slot) < std::tie(b.tick, b.kind, b.slot);
  });
}

}  // namespace

Tick publish_tick(const Problem& problem, const Schedule& schedule, const Slot& slot) {
  const Tick window = schedule.clock.ticks_up(problem.board.cores[slot.cores.back()].publish_window);
  return std::max(slot.end - window, slot.start + 1);
}

std::vector<Event> events_of_core(const Problem& problem, const Schedule& schedule, std::uint32_t core) {
  std::vector<Event> events;
  const Tick ticks = schedule.clock.ticks;
  for (std::size_t i = 0; i < schedule.slots.size(); ++i) {
    const Slot& slot = schedule.slots[i];
    if (std::find(slot.cores.begin(), slot.cores.end(), core) == slot.cores.end()) continue;
    add(events, slot.start, ticks, EventKind::kStart, i);
    if (slot.cores.back() != core) continue;
    add(events, publish_tick(problem, schedule, slot), ticks, EventKind::kPublish, i);
    add(events, slot.end, ticks, EventKind::kSlotEnd, i);
  }
  sort(events);
  return events;
}

std::vector<Event> events_of_table(const Schedule& schedule) {
  std::vector<Event> events;
  for (std::size_t i = 0; i < schedule.slots.size(); ++i) {
    add(events, schedule.slots[i].start, schedule.clock.ticks, EventKind::kStart, i);
    add(events, schedule.slots[i].end, schedule.clock.ticks, EventKind::kSlotEnd, i);
  }
  sort(events);
  return events;
}

TableTime instant_of(const Event& event, std::uint64_t hyperperiod, const TickClock& clock) {
  return event.kind == EventKind::kSlotEnd ? clock.end_at(hyperperiod, event.tick)
                                           : clock.start_at(hyperperiod, event.tick);
}

std::uint32_t largest_shift(const std::vector<Event>& events) {
  std::uint32_t largest = 0;
  for (const Event& event : events) largest = std::max(largest, event.shift);
  return largest;
}

}  // namespace takt::sched
