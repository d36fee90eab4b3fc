// Keeps cores out of sleep states that take long to leave (the kernel's interface: PM QoS, Documentation/power/
// pm_qos_interface.rst).
#pragma once

#include <string>

namespace takt::sched {

class CpuLatency {
 public:
  // Holds the request until the end of its life.
  CpuLatency();
  ~CpuLatency();
  CpuLatency(const CpuLatency&) = delete;
  CpuLatency& operator=(const CpuLatency&) = delete;

  // Why the cores may sleep so deeply that they wake up late, in words; "" when they are kept from it, or cannot.
  [[nodiscard]] const std::string& refused() const { return refused_; }

 private:
  int file_;
  std::string refused_;
};

}  // namespace takt::sched
