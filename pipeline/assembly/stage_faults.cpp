#include "pipeline/assembly/stage_faults.h"

#include <cerrno>
#include <ctime>

namespace takt::pipeline {

void StageFaults::behind_work(const sched::Job& job, HostTime began) const {
  for (const StageFault& fault : faults_) {
    if (job.number < fault.job || job.number - fault.job >= fault.count) continue;
    if (fault.stall.ns > 0) {
      timespec left{fault.stall.ns / 1'000'000'000, fault.stall.ns % 1'000'000'000};
      while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR) {
      }
      continue;
    }
    const double budget_ns = static_cast<double>(budgets_[job.mode][job.variant].ns);
    HostTime until = began + Duration{static_cast<std::int64_t>(budget_ns * fault.budgets)};
    if (fault.endless) {
      const double left_ns = static_cast<double>((end_ - job.nominal_start).ns) / rate_;
      until = began + Duration{static_cast<std::int64_t>(left_ns)};
    }
    while (fault.hang) static_cast<void>(host_now());
    while (host_now() < until && (stop_ == nullptr || !stop_->load(std::memory_order_relaxed))) {
    }
  }
}

}  // namespace takt::pipeline
