// Delays of sensors as the table's clock shows them.
#pragma once

#include "scheduler/model/model.h"

namespace takt::sched {

// A sensor with its delays in table time. They pass in real time: where a phase lock corrects a boundary between a
// stamp and its arrival, the table sees the sample earlier or later by the correction, and one that would be there just
// in time may miss its latch. Sensors without a phase have none in the table either, so theirs stay as they are.
Sensor in_table_time(const Problem& problem, const Sensor& sensor);

}  // namespace takt::sched
