// From one mode's table to another's. A mode is a complete admitted table; the change comes at the end of a
// hyperperiod, and the next table begins there or a declared drain later. Stages, cores and sensors are the same where
// they have the same name.
#pragma once

#include <string>

#include "scheduler/model/model.h"

namespace takt::sched {

struct Mode {
  const Problem* problem = nullptr;
  const Schedule* schedule = nullptr;
};

// What still runs when the next table begins must not meet its slots: neither on a core, slack included, nor as two
// jobs of one stage. kGate names both slots and the drain that would do. kConfiguration: a negative drain.
Status validate_change(const Mode& from, const Mode& to, Duration drain = {});

// Bounds of a chain that both modes have, over every event and output around the change: at most those of a longer
// drain, at least those of either mode by itself. A consumer of the new table finds the newest output that is there,
// be it of the old table. Locked sensors count with any phase, since the tables' phases differ. kConfiguration when a
// mode lacks the chain or runs it over other stages. Expects tables that validate, by themselves and as a change.
Result<ChainBound> walk_change(const Mode& from, const Mode& to, const std::string& chain, Duration drain = {});

}  // namespace takt::sched
