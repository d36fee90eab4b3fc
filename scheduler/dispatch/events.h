// The instants at which a dispatcher has something to do: the starts of a hyperperiod, which the table lists, and the
// ends of what has begun, which may lie in the next hyperperiod or in the next mode. No threads.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/model/model.h"

namespace takt::sched {

struct Start {
  Tick tick = 0;  // [0, N)
  std::uint32_t slot = 0;
};

// Starts of every job on `core`, or of all cores, by (tick, slot): of its first slot, as later segments follow those
// before them.
std::vector<Start> starts_on(const Schedule& schedule, std::uint32_t core);
std::vector<Start> starts_of(const Schedule& schedule);

// By slot: of a job's first one the slots of all its segments, in order; empty for later ones.
std::vector<std::vector<std::uint32_t>> segments_by_slot(const Schedule& schedule);

// When the publisher of a job whose last slot this is wakes: end - p of the last core, but after the start. May be N or
// more.
Tick publish_tick(const Problem& problem, const Schedule& schedule, const Slot& last);

class StageRun;

// What a dispatcher still has to wake for, in order. Allocates nothing up to its capacity.
class Agenda {
 public:
  struct Entry {
    TableTime instant;
    const StageRun* stage = nullptr;  // the job that it is about
    std::uint32_t tag = 0;
  };

  explicit Agenda(std::size_t capacity) { entries_.reserve(capacity); }
  void add(const Entry& entry);
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] TableTime first() const { return entries_.front().instant; }
  // Everything up to `now` is over.
  void pass(TableTime now);
  // That job is over: nobody has to wake for it any more, as every wake-up costs its core.
  void drop(const StageRun* stage, std::uint32_t tag);

 private:
  std::vector<Entry> entries_;  // ascending
};

}  // namespace takt::sched
