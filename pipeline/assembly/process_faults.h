// Faults of whole processes: helpers that are forked before a run has threads, wait for its table, and strike.
#pragma once

#include <sys/types.h>
#include <atomic>
#include <vector>

#include "pipeline/assembly/fault_plan.h"
#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "runtime/transport/transport.h"

namespace takt::pipeline {

class ProcessFaults {
 public:
  ProcessFaults() = default;
  ~ProcessFaults();  // ends the helpers that are still there
  ProcessFaults(const ProcessFaults&) = delete;
  ProcessFaults& operator=(const ProcessFaults&) = delete;

  // Declares the clients that will be killed (a queue of two chunks, two held), and that RouDi is another process's.
  // Before pools are planned.
  static void declare(const FaultPlan& plan, const std::vector<std::string>& stage_topics,
                      transport::TransportSpec& spec);
  // Before the transport is made. `rate`: table seconds per host second. kEnvironment when no process can be made, or
  // it cannot start RouDi.
  Status prepare(const FaultPlan& plan, const std::vector<std::string>& stage_topics,
                 const transport::TransportSpec& spec, double rate);
  // The transport stands: clients attach. Before Transport::wait_connected().
  void transport_stands();
  // The table has come to this instant just now: faults strike where they lie in it. The first call counts. Any thread;
  // waits for nothing.
  void reached(TableTime instant);
  [[nodiscard]] bool empty() const { return helpers_.empty(); }

 private:
  struct Helper {
    pid_t pid = 0;
    int tell = -1;  // a HostTime when the transport stands, and that of table time 0 when the table has begun
  };
  void tell_all(HostTime what);
  [[nodiscard]] Duration in_host_time(Duration of_table) const;
  std::vector<Helper> helpers_;
  double rate_ = 1;
  std::atomic<bool> began_{false};
};

}  // namespace takt::pipeline
