#include "scheduler/dispatch/watchdog.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace takt::sched {

Watchdog::Watchdog(const Problem& problem, const Schedule& schedule, const Boundary& boundary,
                   std::uint64_t hyperperiods, const std::function<void(const WatchdogReport&)>& report)
    : problem_(problem),
      schedule_(schedule),
      boundary_(boundary),
      hyperperiods_(hyperperiods),
      report_(report),
      reached_(problem.board.cores.size()) {
  for (auto& reached : reached_) reached.store(std::numeric_limits<std::int64_t>::min());
  for (const Slot& slot : schedule.slots) {
    // Only the publishing core has something to do at the slot's very end.
    looks_.push_back({slot.end, slot.cores.back()});
  }
  std::sort(looks_.begin(), looks_.end(),
            [](const Look& a, const Look& b) { return std::tie(a.tick, a.core) < std::tie(b.tick, b.core); });
}

bool Watchdog::sleep_until(HostTime instant) {
  return !stop_.wait_until(instant, [](std::uint32_t value) { return value != 0; });
}

void Watchdog::run(const TableClock& clock) {
  WatchdogReport report;
  for (std::uint64_t h = 0; h < hyperperiods_; ++h) {
    for (const Look& look : looks_) {
      // A boundary moves by less than the guard at once, so the newest offset is good enough before that of h is known.
      const TableTime end = schedule_.clock.end_at(h, look.tick) + boundary_.newest_offset();
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
