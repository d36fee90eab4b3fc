// Keeps a table locked to the stamps of one sensor (DESIGN section 5, "Model"): from where its newest sample lies in
// the table it says by how much the next hyperperiod is to begin later. All figures are whole nanoseconds, and samples
// count as soon as a job has latched them, so that virtual time corrects as real time does.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/base/time.h"
#include "scheduler/model/model.h"

namespace takt::pipeline {

class PhaseFollower {
 public:
  // The problem has a phase lock, and passes its check.
  PhaseFollower(const sched::Problem& problem, const ClockMap<TableDomain, SensorDomain>& sensor_from_table);

  // A job has latched a sample of the reference with this stamp. Any dispatcher thread.
  void latched(SensorTime stamp);
  // Of hyperperiod h > 0, when all jobs before it have latched. One thread at a time, in order of h.
  Duration correction(std::uint64_t h);

  // Hyperperiods that began while the reference was silent for longer than the hold-over.
  [[nodiscard]] std::uint64_t lost() const { return lost_; }

 private:
  const sched::Problem& problem_;
  const ClockMap<TableDomain, SensorDomain>& map_;
  std::atomic<std::int64_t> newest_;  // stamp of the newest sample latched, sensor time
  std::int64_t judged_;               // the newest one that the estimate contains
  Duration offset_;                   // sum of all corrections
  // Filtered: how much later than planned the samples lie, and by how much more with each hyperperiod.
  Duration estimate_, rate_;
  Duration largest_correction_, largest_rate_;
  std::uint64_t lost_ = 0;
};

}  // namespace takt::pipeline
