#include "pipeline/assembly/status_topic.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "pipeline/messages/status.h"

namespace takt::pipeline {

StatusTopic::StatusTopic(std::unique_ptr<transport::Publisher> publisher)
    : publisher_(std::move(publisher)), next_(publisher_->loan()) {}

StatusTopic::~StatusTopic() {
  if (next_) publisher_->discard(next_);
}

void StatusTopic::tell(const sched::WatchdogReport& report,
                       const std::vector<std::unique_ptr<PipelineStageHost>>& hosts) {
  if (!next_) next_ = publisher_->loan();
  if (!next_) return;
  auto& status = *reinterpret_cast<RunStatus*>(next_.payload);
  status = {};
  status.now_ns = report.now.ns;
  status.hyperperiod = report.hyperperiod;
  status.trips = report.trips;
  status.reached_ns = report.reached.ns;
  status.late_core = report.core.value_or(kNoCore);
  status.stage_count = static_cast<std::uint32_t>(std::min<std::size_t>(hosts.size(), kMaxStatusStages));
  for (std::uint32_t s = 0; s < status.stage_count; ++s) {
    StageStatus& stage = status.stages[s];
    stage.jobs = hosts[s]->published_jobs();
    stage.valid_until_ns = hosts[s]->valid_until().ns;
    stage.stale = stage.jobs > 0 && report.now > hosts[s]->valid_until() ? 1 : 0;
  }
  next_.header->job = told_++;
  next_.header->hyperperiod = report.hyperperiod;
  next_.header->payload_bytes = sizeof(RunStatus);
  publisher_->publish(next_);
  next_ = publisher_->loan();
}

}  // namespace takt::pipeline
