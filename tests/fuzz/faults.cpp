// Any text as a fault file: refused with a place, or a plan whose indices fit the pipeline.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "pipeline/assembly/fault_plan.h"

using namespace takt;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const sched::Problem problem = [] {
    sched::Problem out;
    for (const char* name : {"camera_detect", "lidar_detect", "fusion"}) out.stages.emplace_back().name = name;
    for (const char* name : {"camera", "lidar"}) out.chains.emplace_back().name = name;
    for (const char* name : {"camera_front", "lidar_top"}) out.sensors.emplace_back().name = name;
    return out;
  }();
  static const sensors::Rig rig = [] {
    sensors::Rig out;
    for (const char* name : {"camera_front", "lidar_top"}) out.sensors.emplace_back().name = name;
    return out;
  }();
  const auto plan = pipeline::parse_faults({reinterpret_cast<const char*>(data), size}, "fuzz.yaml", problem, rig);
  if (!plan) {
    require(plan.error().code == Code::kConfiguration && !plan.error().message.empty());
    return 0;
  }
  for (const pipeline::StageFault& fault : plan->stages) {
    require(fault.stage < problem.stages.size() && fault.count > 0);
    require((fault.budgets > 0) + (fault.stall.ns > 0) + fault.endless == 1);
  }
  for (const pipeline::SensorFault& fault : plan->sensors)
    require(fault.sensor < rig.sensors.size() && fault.every > 0);
  for (const pipeline::ProcessFault& fault : plan->processes) require(fault.stage < problem.stages.size());
  for (const pipeline::CountExpectation& count : plan->counts) require(count.range.least <= count.range.most);
  require(!check_faults(*plan, problem, nullptr, 0).expectations.empty());
  return 0;
}
