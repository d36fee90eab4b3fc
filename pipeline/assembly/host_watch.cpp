#include "pipeline/assembly/host_watch.h"

#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <ctime>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "scheduler/dispatch/table_clock.h"

namespace takt::pipeline {
namespace {

constexpr Duration kLook = milliseconds(50);

// When the process was last continued; 0: never. Written by the signal handler.
std::atomic<std::int64_t> continued_ns{0};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

struct sigaction before_watch;

void on_continued(int) { continued_ns.store(host_now().ns); }

std::string proc_stat() {
  std::ifstream file("/proc/stat");
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::vector<Duration> stolen_times(const std::string& proc_stat, const std::vector<int>& cpus) {
  std::vector<Duration> out(cpus.size());
  const std::int64_t tick_ns = 1'000'000'000 / std::max<long>(1, sysconf(_SC_CLK_TCK));
  std::istringstream text(proc_stat);
  std::string line;
  while (std::getline(text, line)) {
    if (line.rfind("cpu", 0) != 0 || line.size() < 4 || line[3] < '0' || line[3] > '9') continue;
    std::istringstream fields(line.substr(3));
    int cpu = 0;
    std::int64_t value = 0;
    fields >> cpu;
    int column = 0;  // user nice system idle iowait irq softirq steal
    while (column < 8 && fields >> value) ++column;
    if (column < 8) continue;
    for (std::size_t i = 0; i < cpus.size(); ++i) {
      if (cpus[i] == cpu) out[i] = {value * tick_ns};
    }
  }
  return out;
}

HostWatch::HostWatch(std::vector<int> cpus) : cpus_(std::move(cpus)) {
  continued_ns.store(0);
  struct sigaction action {};
  action.sa_handler = &on_continued;
  action.sa_flags = SA_RESTART;
  sigaction(SIGCONT, &action, &before_watch);
}

HostWatch::~HostWatch() {
  stop();
  sigaction(SIGCONT, &before_watch, nullptr);
}

void HostWatch::start() {
  thread_ = std::thread([this] { loop(); });
}

void HostWatch::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void HostWatch::loop() {
  std::vector<Duration> stolen = stolen_times(proc_stat(), cpus_);
  HostTime last = host_now(), before_last = last;
  std::int64_t continued = 0;
  bool end = false;
  while (!end) {
    {
      std::unique_lock lock(mutex_);
      end = wake_.wait_for(lock, std::chrono::nanoseconds(kLook.ns), [this] { return stop_; });
    }
    const HostTime now = host_now();
    const std::int64_t continued_now = continued_ns.load();
    if (continued_now != continued) {
      // It stood still from some moment behind a look until it was continued: behind the last one, or the one before
      // where the signal's handler ran later than the look that followed.
      const HostTime from = HostTime{continued_now} - last < kLook ? before_last : last;
      found_.push_back({from, {continued_now}, -1, HostTime{continued_now} - from});
      continued = continued_now;
    }
    std::vector<Duration> stolen_now = stolen_times(proc_stat(), cpus_);
    for (std::size_t i = 0; i < cpus_.size(); ++i) {
      const Duration lost = stolen_now[i] - stolen[i];
      if (lost.ns > 0) found_.push_back({last, now, static_cast<std::int32_t>(i), lost});
    }
    stolen = std::move(stolen_now);
    before_last = last;
    last = now;
  }
  timespec cpu{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  cost_ = {std::int64_t{cpu.tv_sec} * 1'000'000'000 + cpu.tv_nsec};
}

std::vector<HostStall> HostWatch::stalls(HostTime started, double rate) const {
  const sched::TableClock clock{.origin = started, .rate = rate};
  std::vector<HostStall> out;
  for (const Found& f : found_) {
    const TableTime to = clock.table(f.to);
    if (to.ns >= 0) out.push_back({clock.table(f.from).ns, to.ns, f.core, f.lost});
  }
  return out;
}

}  // namespace takt::pipeline
