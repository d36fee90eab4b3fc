// Makes the worker of a stage do wrong (fault_plan.h).
#pragma once

#include <atomic>
#include <vector>

#include "pipeline/assembly/fault_plan.h"
#include "scheduler/dispatch/dispatch.h"

namespace takt::pipeline {

class StageFaults {
 public:
  // `budgets`: of the stage's jobs, by mode and variant. `end`: of the table, where endless loops end; so they do when
  // `stop` is set.
  StageFaults(std::vector<StageFault> faults, std::vector<std::vector<Duration>> budgets, TableTime end, double rate,
              const std::atomic<bool>* stop)
      : faults_(std::move(faults)), budgets_(std::move(budgets)), end_(end), rate_(rate), stop_(stop) {}

  // Worker 0, behind the work of a job that it began at `began`. Of a job that is to hang it does not return.
  void behind_work(const sched::Job& job, HostTime began) const;

 private:
  std::vector<StageFault> faults_;
  std::vector<std::vector<Duration>> budgets_;
  TableTime end_;
  double rate_;  // table seconds per host second
  const std::atomic<bool>* stop_;
};

}  // namespace takt::pipeline
