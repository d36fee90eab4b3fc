// The instants at which a dispatcher has something to do, merged into one list per hyperperiod. Pure; no threads.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/model/model.h"

namespace takt::sched {

// In this order at one tick: publications come before the starts that read them.
enum class EventKind : std::uint8_t {
  kPublish,  // slot end - p: the dispatcher wakes to publish
  kSlotEnd,  // last instant at which publication is in time
  kStart,    // nominal start
};

// An event of the slot's job in hyperperiod h - shift falls into hyperperiod h (slots may wrap around the table's end).
struct Event {
  Tick tick = 0;  // [0, N)
  std::uint32_t shift = 0;
  EventKind kind = EventKind::kStart;
  std::uint32_t slot = 0;
};

// When the publisher of a slot wakes: end - p of the last core, but after the start. May be N or more.
Tick publish_tick(const Problem& problem, const Schedule& schedule, const Slot& slot);

// Real time: what the dispatcher of `core` does. Starts of every slot on the core, publications of those it publishes.
std::vector<Event> events_of_core(const Problem& problem, const Schedule& schedule, std::uint32_t core);

// Lockstep: starts and slot ends of all cores.
std::vector<Event> events_of_table(const Schedule& schedule);

// Instant of an event in hyperperiod `hyperperiod`: starts and wake-ups rounded up, slot ends rounded down.
TableTime instant_of(const Event& event, std::uint64_t hyperperiod, const TickClock& clock);

// Largest shift of the list: how many hyperperiods must be walked after the last start.
std::uint32_t largest_shift(const std::vector<Event>& events);

}  // namespace takt::sched
