// What this machine is, and whether its timing can be trusted (DESIGN section 9).
#pragma once

#include <cstdint>
#include <string>

#include "pipeline/report/run_data.h"

namespace takt::pipeline {

// The instruction set class of digests: architecture and takt's numeric version. The kernels of every target give the
// bytes of the scalar reference, so there is one class per architecture.
std::string isa_class();

// Reads the machine's facts; warnings are in words.
Environment read_environment();

// Processor, cores and kernel in one line: what measured budgets belong to.
std::string machine_name();

// CPU time counters of the machine; two readings give the share that a hypervisor took (steal).
struct CpuTimes {
  std::uint64_t total = 0;
  std::uint64_t steal = 0;
};
CpuTimes read_cpu_times();
double steal_share(const CpuTimes& before, const CpuTimes& after);

// Path of the running program.
std::string executable_path();

}  // namespace takt::pipeline
