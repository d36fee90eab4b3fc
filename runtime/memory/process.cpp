#include "runtime/memory/process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

namespace takt::memory {

std::uint64_t resident_bytes() {
  // "size resident shared ..." in pages.
  const int fd = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[128];
  const ssize_t length = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  if (length <= 0) return 0;
  text[length] = '\0';
  const char* second = std::strchr(text, ' ');
  if (second == nullptr) return 0;
  return std::strtoull(second, nullptr, 10) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

ThreadUsage thread_usage() {
  rusage usage{};
  if (::getrusage(RUSAGE_THREAD, &usage) != 0) return {};
  return {static_cast<std::uint64_t>(usage.ru_minflt), static_cast<std::uint64_t>(usage.ru_majflt),
          static_cast<std::uint64_t>(usage.ru_nvcsw), static_cast<std::uint64_t>(usage.ru_nivcsw)};
}

Status lock_memory() {
  if (::mlockall(MCL_CURRENT | MCL_FUTURE) == 0) return {};
  const std::string reason = std::strerror(errno);
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  const std::string allowed =
      limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur / 1024) + " KiB";
  return fail(Code::kEnvironment, "memory cannot be locked: " + reason + " (limit " + allowed +
                                      "); raise it with 'ulimit -l unlimited' or grant CAP_IPC_LOCK");
}

void unlock_memory() { ::munlockall(); }

}  // namespace takt::memory
