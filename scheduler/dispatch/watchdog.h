// Looks from outside whether the dispatchers keep the table: a thread of its own, above them in priority, that takes
// part in nothing (DESIGN section 5). At every slot's end plus guard it checks that the dispatcher of the slot's core
// has come to that instant, and once in a hyperperiod it reports, so that whoever listens sees it alive.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "scheduler/dispatch/boundary.h"
#include "scheduler/dispatch/dispatch.h"
#include "scheduler/dispatch/futex.h"
#include "scheduler/dispatch/table_clock.h"

namespace takt::sched {

class Watchdog {
 public:
  // The guard of a core is its wake-up window: a dispatcher that comes later would start its next slot late.
  Watchdog(const Problem& problem, const std::vector<ModeTable>& modes, const Boundary& boundary,
           const std::function<void(const WatchdogReport&)>& report);

  // Dispatcher of a core: it has come to this instant of the table, with everything before it done. Any thread.
  void reached(std::uint32_t core, TableTime instant) { reached_[core].store(instant.ns, std::memory_order_release); }
  // Its dispatcher has nothing more to do.
  void done(std::uint32_t core) { reached_[core].store(INT64_MAX, std::memory_order_release); }

  // Body of the watchdog's thread, until the table is over or stop().
  void run(const TableClock& clock);
  void stop();
  [[nodiscard]] std::uint64_t trips() const { return trips_; }

 private:
  struct Look {
    Tick tick = 0;  // a slot's end, may be N or more
    std::uint32_t core = 0;
  };
  [[nodiscard]] bool sleep_until(HostTime instant);
  // Hyperperiod h behind `last`. One that no dispatcher has entered in time is taken to begin and to be as if nothing
  // changed.
  [[nodiscard]] Turn turn(std::uint64_t h, const Turn& last, const TableClock& clock);

  const Problem& problem_;
  const std::vector<ModeTable>& modes_;
  const Boundary& boundary_;
  const std::function<void(const WatchdogReport&)>& report_;
  std::vector<std::vector<Look>> looks_;  // by mode, by tick
  Duration guard_;                        // the largest
  std::vector<std::atomic<std::int64_t>> reached_;
  Futex stop_;
  std::uint64_t trips_ = 0;
};

}  // namespace takt::sched
