#include "pipeline/assembly/environment.h"

#include <limits.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>

#include "runtime/base/file.h"
#include "runtime/transport/transport.h"
#include "sensors/camera/camera_decoder.h"

namespace takt::pipeline {
namespace {

// First line of a small system file, "" when there is none.
std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("model name", 0) == 0 || line.rfind("Model", 0) == 0) {
      const std::size_t colon = line.find(':');
      if (colon != std::string::npos && colon + 2 <= line.size()) return line.substr(colon + 2);
    }
  }
  return "unknown";
}

// Cores that the control group grants, 0 when it sets no limit (version 2, then version 1).
double cgroup_quota() {
  std::string quota;
  double period = 0;
  std::istringstream v2(first_line("/sys/fs/cgroup/cpu.max"));
  if (v2 >> quota >> period && quota != "max" && period > 0) return std::stod(quota) / period;
  const std::string v1 = first_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  const std::string v1_period = first_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (!v1.empty() && !v1_period.empty() && v1[0] != '-') return std::stod(v1) / std::stod(v1_period);
  return 0;
}

}  // namespace

std::string isa_class() {
#if defined(__x86_64__)
  return "x86_64-scalar-numeric1";
#elif defined(__aarch64__)
  return "aarch64-scalar-numeric1";
#else
  return "other-scalar-numeric1";
#endif
}

Environment read_environment() {
  Environment env;
  utsname name{};
  uname(&name);
  env.host = name.nodename;
  env.kernel = std::string(name.sysname) + " " + name.release + " " + name.version;
  env.preempt_rt = std::string(name.version).find("PREEMPT_RT") != std::string::npos;
  env.cpu_model = cpu_model();
  env.isa_class = isa_class();
  env.cores = static_cast<int>(std::thread::hardware_concurrency());
  env.clock_source = first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  env.governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  env.compiler = "g++ " __VERSION__;
  env.jpeg_library = sensors::jpeg_library_version();
  env.cgroup_quota_cores = cgroup_quota();
  if (const auto free = transport::shared_memory_free()) env.shared_memory_free = *free;
  if (!env.preempt_rt) {
    env.warnings.push_back("generic kernel (no PREEMPT_RT): single wake-ups may be late by milliseconds");
  }
  if (env.governor.empty()) {
    env.warnings.push_back("the CPU frequency governor cannot be read (virtual machine?): clocks are not known");
  } else if (env.governor != "performance") {
    env.warnings.push_back("CPU frequency governor is '" + env.governor + "', not 'performance'");
  }
  if (env.cgroup_quota_cores > 0 && env.cgroup_quota_cores < env.cores) {
    std::array<char, 96> text{};
    std::snprintf(text.data(), text.size(), "a control group grants %.1f of %d cores: threads are throttled",
                  env.cgroup_quota_cores, env.cores);
    env.warnings.emplace_back(text.data());
  }
  return env;
}

std::string machine_name() {
  utsname name{};
  uname(&name);
  return cpu_model() + ", " + std::to_string(std::thread::hardware_concurrency()) + " core(s), " + name.sysname + " " +
         name.release;
}

CpuTimes read_cpu_times() {
  std::istringstream line(first_line("/proc/stat"));
  std::string label;
  line >> label;
  CpuTimes times;
  std::uint64_t value = 0;
  for (int column = 0; column < 8 && line >> value; ++column) {  // user nice system idle iowait irq softirq steal
    times.total += value;
    if (column == 7) times.steal = value;
  }
  return times;
}

double steal_share(const CpuTimes& before, const CpuTimes& after) {
  const std::uint64_t total = after.total - before.total;
  return total == 0 ? 0.0 : static_cast<double>(after.steal - before.steal) / static_cast<double>(total);
}

std::string executable_path() {
  std::array<char, PATH_MAX> path{};
  const ssize_t n = readlink("/proc/self/exe", path.data(), path.size() - 1);
  return n > 0 ? std::string(path.data(), static_cast<std::size_t>(n)) : "takt";
}

}  // namespace takt::pipeline
