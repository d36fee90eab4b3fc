// Makes the device of a stage fail it (fault_plan.h).
#pragma once

#include <utility>
#include <vector>

#include "pipeline/assembly/fault_plan.h"
#include "runtime/device/fault.h"
#include "scheduler/dispatch/dispatch.h"

namespace takt::pipeline {

class DeviceFaults {
 public:
  // Of one stage. `device` is what the stage's plan runs on; it outlives this.
  DeviceFaults(std::vector<DeviceFault> faults, device::FaultDevice& device)
      : faults_(std::move(faults)), device_(device) {}

  // Whoever hands the work of a job over, before that.
  void before_work(const sched::Job& job) const {
    for (const DeviceFault& fault : faults_) {
      if (job.number < fault.job || job.number - fault.job >= fault.count) continue;
      switch (fault.kind) {
        case DeviceFault::Kind::kRefuse: device_.reject_next(); break;
        case DeviceFault::Kind::kLose: device_.lose("as the fault file says"); break;
        case DeviceFault::Kind::kHang: device_.hold(true); break;
      }
    }
  }

 private:
  std::vector<DeviceFault> faults_;
  device::FaultDevice& device_;
};

}  // namespace takt::pipeline
