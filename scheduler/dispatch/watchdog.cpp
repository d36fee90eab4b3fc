#include "scheduler/dispatch/watchdog.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "scheduler/dispatch/events.h"

namespace takt::sched {

Watchdog::Watchdog(const Problem& problem, const std::vector<ModeTable>& modes, const Boundary& boundary,
                   const std::function<void(const WatchdogReport&)>& report)
    : problem_(problem),
      modes_(modes),
      boundary_(boundary),
      report_(report),
      looks_(modes.size()),
      reached_(problem.board.cores.size()) {
  for (auto& reached : reached_) reached.store(std::numeric_limits<std::int64_t>::min());
  for (const Core& core : problem.board.cores) guard_ = std::max(guard_, core.wakeup_window);
  for (std::size_t m = 0; m < modes.size(); ++m) {
    // Only the publishing core has something to do at the very end of a slot of its jobs, those of units included.
    const std::vector<Slot>& slots = modes[m].schedule.slots;
    for (const std::vector<std::uint32_t>& job : segments_by_slot(modes[m].schedule)) {
      for (const std::uint32_t slot : job) looks_[m].push_back({slots[slot].end, slots[job.front()].cores.back()});
    }
    std::sort(looks_[m].begin(), looks_[m].end(),
              [](const Look& a, const Look& b) { return std::tie(a.tick, a.core) < std::tie(b.tick, b.core); });
  }
}

bool Watchdog::sleep_until(HostTime instant) {
  return !stop_.wait_until(instant, [](std::uint32_t value) { return value != 0; });
}

Turn Watchdog::turn(std::uint64_t h, const Turn& last, const TableClock& clock) {
  if (!boundary_.decides()) return boundary_.turn(h);
  Turn next = last;
  if (h > 0) next.begin = next.begin + modes_[last.mode].schedule.clock.hyperperiod;
  static_cast<void>(sleep_until(clock.host(next.begin + guard_)));
  return h < boundary_.entered() ? boundary_.turn(h) : next;
}

void Watchdog::run(const TableClock& clock) {
  WatchdogReport report;
  Turn turn;
  for (std::uint64_t h = 0; boundary_.may_come(h, turn); ++h) {
    turn = this->turn(h, turn, clock);
    const TickClock& ticks = modes_[turn.mode].schedule.clock;
    for (const Look& look : looks_[turn.mode]) {
      const TableTime end = turn.begin + (ticks.end_at(0, look.tick) - TableTime{0});
      const Duration guard = problem_.board.cores[look.core].wakeup_window;
      if (!sleep_until(clock.host(end + guard))) return;
      // A watchdog that is woken late itself, as all threads of a stalled machine are, gives the dispatcher, which is
      // below it, the same guard again before it says anything.
      if (reached_[look.core].load(std::memory_order_acquire) >= end.ns) continue;
      if (!sleep_until(host_now() + clock.to_host(guard))) return;
      const std::int64_t reached = reached_[look.core].load(std::memory_order_acquire);
      if (reached >= end.ns) continue;
      ++trips_;
      report.now = clock.table(host_now());
      report.hyperperiod = h;
      report.trips = trips_;
      report.core = look.core;
      report.reached = {reached};
      if (report_) report_(report);
    }
    report.now = clock.table(host_now());
    report.hyperperiod = h;
    report.trips = trips_;
    report.core.reset();
    if (report_) report_(report);
  }
}

void Watchdog::stop() {
  stop_.store(1);
  stop_.wake_all();
}

}  // namespace takt::sched
