// What the watchdog tells on its topic (pipeline/messages/status.h).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "pipeline/assembly/stage_host.h"
#include "runtime/transport/transport.h"
#include "scheduler/dispatch/dispatch.h"

namespace takt::pipeline {

// Its next chunk is always there already.
class StatusTopic {
 public:
  explicit StatusTopic(std::unique_ptr<transport::Publisher> publisher);
  ~StatusTopic();
  StatusTopic(const StatusTopic&) = delete;
  StatusTopic& operator=(const StatusTopic&) = delete;

  // Watchdog's thread.
  void tell(const sched::WatchdogReport& report, const std::vector<std::unique_ptr<PipelineStageHost>>& hosts);

 private:
  std::unique_ptr<transport::Publisher> publisher_;
  transport::Publisher::Loan next_;
  std::uint64_t told_ = 0;
};

}  // namespace takt::pipeline
