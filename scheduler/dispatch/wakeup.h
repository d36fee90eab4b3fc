// The table by which measure_wakeup() finds out how late a board's cores start jobs and publish.
#pragma once

#include "scheduler/dispatch/dispatch.h"

namespace takt::sched {

// One empty stage per core, each once in `hyperperiod`: how often a core is woken does not depend on how many there
// are. Their starts are spread over that time.
struct WakeupTable {
  static constexpr Duration hyperperiod = milliseconds(2);
  Problem problem;
  Schedule schedule;
};
WakeupTable wakeup_table(const Board& board);

}  // namespace takt::sched
