#include "pipeline/assembly/fault_plan.h"

#include <algorithm>
#include <cstdio>

namespace takt::pipeline {

const char* name_of(SensorFault::Kind kind) { return kSensorKinds[static_cast<std::size_t>(kind)]; }
const char* name_of(DeviceFault::Kind kind) { return kDeviceKinds[static_cast<std::size_t>(kind)]; }
const char* name_of(ProcessFault::Kind kind) { return kProcessKinds[static_cast<std::size_t>(kind)]; }

bool FaultPlan::needs_real_time() const {
  return !stages.empty() || std::any_of(processes.begin(), processes.end(), [](const ProcessFault& fault) {
    return fault.kind != ProcessFault::Kind::kDiskFull && fault.kind != ProcessFault::Kind::kMode;
  });
}

bool FaultPlan::fills_disk() const {
  return std::any_of(processes.begin(), processes.end(),
                     [](const ProcessFault& fault) { return fault.kind == ProcessFault::Kind::kDiskFull; });
}

bool FaultPlan::needs_iceoryx() const {
  return std::any_of(processes.begin(), processes.end(), [](const ProcessFault& fault) {
    return fault.kind == ProcessFault::Kind::kKillClient || fault.kind == ProcessFault::Kind::kKillRoudi;
  });
}

namespace {

// The most jobs of a stage that a run of that length can come to: all of it in the mode in which it runs most often.
std::uint64_t most_jobs(const std::vector<sched::ModeTable>& modes, std::uint32_t stage, Duration length) {
  std::int64_t most = 0;
  for (const sched::ModeTable& mode : modes) {
    const std::int64_t h = mode.schedule.clock.hyperperiod.ns;
    most = std::max(most, (length.ns + h - 1) / h * mode.schedule.choices[stage].rate);
  }
  return static_cast<std::uint64_t>(most);
}

}  // namespace

Status check_reach(const FaultPlan& plan, const sched::Problem& problem, const std::vector<sched::ModeTable>& modes,
                   std::uint64_t hyperperiods, Duration log, Duration table_begins) {
  std::string never;
  const auto tell = [&never](const std::string& where, const std::string& why) {
    never += (never.empty() ? "" : "\n") + where + ": this fault never strikes: " + why;
  };
  const auto in_seconds = [](Duration d) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f s", d.seconds());
    return std::string(text);
  };
  const Duration hyperperiod = modes.front().schedule.clock.hyperperiod;
  const Duration table = hyperperiod * static_cast<std::int64_t>(hyperperiods);
  const auto runs = [&](const std::string& where, std::uint32_t stage) {
    const bool some =
        std::any_of(modes.begin(), modes.end(), [stage](const sched::ModeTable& mode) { return mode.runs(stage); });
    if (!some) tell(where, "no mode runs stage '" + problem.stages[stage].name + "'");
    return some;
  };
  const auto reaches_job = [&](const auto& fault) {
    const std::uint64_t jobs = most_jobs(modes, fault.stage, table);
    if (runs(fault.where, fault.stage) && fault.job >= jobs) {
      tell(fault.where,
           "the run ends with job " + std::to_string(jobs - 1) + " of " + problem.stages[fault.stage].name);
    }
  };
  for (const StageFault& fault : plan.stages) reaches_job(fault);
  for (const DeviceFault& fault : plan.devices) reaches_job(fault);
  for (const SensorFault& fault : plan.sensors) {
    if (fault.from > log) {
      tell(fault.where, "the log lasts " + in_seconds(log));
    } else if (fault.from >= table_begins + table) {
      tell(fault.where, "the run ends " + in_seconds(table_begins + table) + " after the log's first message");
    }
  }
  for (const ProcessFault& fault : plan.processes) {
    if (fault.kind == ProcessFault::Kind::kDiskFull) continue;
    if (fault.kind == ProcessFault::Kind::kKillClient && !runs(fault.where, fault.stage)) continue;
    // A mode is entered where a hyperperiod begins.
    const bool mode = fault.kind == ProcessFault::Kind::kMode;
    const Duration end = mode ? table - hyperperiod + nanoseconds(1) : table;
    if (fault.at < end) continue;
    tell(fault.where, "the run lasts " + in_seconds(table) +
                          (mode ? ", its last hyperperiod begins at " + in_seconds(table - hyperperiod) : ""));
  }
  if (never.empty()) return {};
  return fail(Code::kConfiguration, never);
}

}  // namespace takt::pipeline
