// Where the threads live that no table plans.
#pragma once

#include <sched.h>

#include "scheduler/model/model.h"

namespace takt::pipeline {

// While it lives, threads that this one creates (RouDi's, feeder, recorder) stay on the cores with a housekeeping
// reserve, whose share of time the admission has kept free for them. Refused affinity changes nothing.
class HousekeepingAffinity {
 public:
  explicit HousekeepingAffinity(const sched::Board& board);
  ~HousekeepingAffinity();
  HousekeepingAffinity(const HousekeepingAffinity&) = delete;
  HousekeepingAffinity& operator=(const HousekeepingAffinity&) = delete;

 private:
  cpu_set_t before_{};
  bool set_ = false;
};

}  // namespace takt::pipeline
