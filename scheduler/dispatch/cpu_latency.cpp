#include "scheduler/dispatch/cpu_latency.h"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace takt::sched {
namespace {

// An idle core of an x86 machine then polls instead of halting. Halting has a latency of 1 us on paper; on a virtual
// machine the way back through the hypervisor made a median wake-up 20 us later.
constexpr std::int32_t kMicroseconds = 0;

}  // namespace

CpuLatency::CpuLatency() : file_(::open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC)) {
  if (file_ < 0 && errno == ENOENT) return;  // nothing here sleeps deeply: a virtual machine, for example
  if (file_ >= 0 && ::write(file_, &kMicroseconds, sizeof kMicroseconds) == sizeof kMicroseconds) return;
  refused_ = std::string("/dev/cpu_dma_latency: ") + std::strerror(errno) +
             "; cores may sleep deeply and wake up late: give this user write access";
}

CpuLatency::~CpuLatency() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace takt::sched
