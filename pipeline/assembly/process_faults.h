// Faults of whole processes: helpers that are forked before a run has threads, wait for its table, and strike.
#pragma once

#include <sys/types.h>
#include <vector>

#include "pipeline/assembly/fault_plan.h"
#include "runtime/base/status.h"
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
  // Before the transport is made. kEnvironment when no process can be made, or it cannot start RouDi.
  Status prepare(const FaultPlan& plan, const std::vector<std::string>& stage_topics,
                 const transport::TransportSpec& spec);
  // The transport stands: clients attach. Before Transport::wait_connected().
  void transport_stands();
  // The table begins about now.
  void begin();

 private:
  struct Helper {
    pid_t pid = 0;
    int tell = -1;  // a byte for each call of transport_stands() and begin()
  };
  void tell_all();
  std::vector<Helper> helpers_;
};

}  // namespace takt::pipeline
