// Keeps a table locked to the stamps of one sensor (DESIGN section 5, "Model"): from where its newest sample lies in
// the table it says by how much the next hyperperiod is to begin later. All figures are whole nanoseconds, and samples
// count as soon as a job has latched them, so that virtual time corrects as real time does.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "runtime/base/time.h"
#include "scheduler/dispatch/turn.h"
#include "scheduler/model/model.h"

namespace takt::pipeline {

class PhaseFollower {
 public:
  // The problem has a phase lock, and passes its check. `hyperperiods` by mode of the run; none: it has one table.
  PhaseFollower(const sched::Problem& problem, const ClockMap<TableDomain, SensorDomain>& sensor_from_table,
                std::vector<Duration> hyperperiods = {});

  // A job has latched a sample of the reference with this stamp, or it was seen to have arrived at a boundary at which
  // what jobs latched would be silence. Any dispatcher thread.
  void latched(SensorTime stamp);
  // Of a hyperperiod behind one of a locked mode, when all jobs before it have latched. One thread at a time, in order.
  // A locked mode that is entered anew is followed anew, from the first correction on.
  Duration correction(const sched::Turn& next);
  // Is the reference silent for longer than the hold-over, at this boundary? False before its first sample.
  [[nodiscard]] bool silent(const sched::Turn& next) const;

  // Hyperperiods that began while the reference was silent for longer than the hold-over.
  [[nodiscard]] std::uint64_t lost() const { return lost_; }

 private:
  const sched::Problem& problem_;
  const ClockMap<TableDomain, SensorDomain>& map_;
  std::atomic<std::int64_t> newest_;  // stamp of the newest sample latched, sensor time
  std::int64_t judged_;               // the newest one that the estimate contains
  std::uint64_t stay_ = 0;            // which stay in a mode is followed,
  TableTime began_{0};                // when it began,
  Duration offset_;                   // and the sum of its corrections
  // Filtered: how much later than planned the samples lie, and by how much more with each hyperperiod.
  Duration estimate_, rate_;
  struct Largest {
    Duration hyperperiod, correction, rate;
  };
  std::vector<Largest> largest_;  // by mode
  std::uint64_t lost_ = 0;
};

}  // namespace takt::pipeline
