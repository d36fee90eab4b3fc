// Watches, on the housekeeping reserve, what the machine does to a run: time that the hypervisor took from a core
// (/proc/stat), and the process being stopped and continued. Timed threads know nothing of it. What it finds is
// evidence beside late starts and overruns (docs/assumptions.md); the assumptions themselves are watched per job.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "pipeline/report/run_data.h"
#include "runtime/base/time.h"

namespace takt::pipeline {

class HostWatch {
 public:
  // `cpus`: of the board's cores, in their order. One watch at a time: it handles SIGCONT while it lives.
  explicit HostWatch(std::vector<int> cpus);
  ~HostWatch();
  HostWatch(const HostWatch&) = delete;
  HostWatch& operator=(const HostWatch&) = delete;

  void start();
  void stop();
  // After stop(): what was found, in table time (table time 0 was at `started`), ascending.
  [[nodiscard]] std::vector<HostStall> stalls(HostTime started, double rate) const;
  // After stop(): CPU time of the watch itself.
  [[nodiscard]] Duration cost() const { return cost_; }

 private:
  struct Found {
    HostTime from, to;
    std::int32_t core = -1;
    Duration lost;
  };
  void loop();

  std::vector<int> cpus_;
  std::vector<Found> found_;
  Duration cost_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

// CPU time that the hypervisor has taken since boot, by CPU, as /proc/stat tells it in clock ticks (10 ms): text of
// that file in, empty where it has no such column.
std::vector<Duration> stolen_times(const std::string& proc_stat, const std::vector<int>& cpus);

}  // namespace takt::pipeline
