#include "runtime/memory/process.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstring>

namespace takt::memory {
namespace {

constexpr std::size_t kBytes = 32 << 20;

TEST(Process, ResidentMemoryFollowsTouchedPages) {
  const std::uint64_t before = resident_bytes();
  ASSERT_GT(before, 0u);
  void* block = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(block, MAP_FAILED);
  std::memset(block, 1, kBytes);
  EXPECT_GE(resident_bytes(), before + kBytes / 2);
  ::munmap(block, kBytes);
}

TEST(Process, CountsPageFaultsOfThisThread) {
  const ThreadUsage before = thread_usage();
  void* block = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(block, MAP_FAILED);
  // Small pages: a huge page would be one fault.
  ::madvise(block, kBytes, MADV_NOHUGEPAGE);
  std::memset(block, 1, kBytes);
  EXPECT_GE(thread_usage().minor_faults - before.minor_faults, kBytes / (64 << 10));
  ::munmap(block, kBytes);
}

TEST(Process, CountsSwitchesOfThisThread) {
  const ThreadUsage before = thread_usage();
  for (int i = 0; i < 5; ++i) ::usleep(1000);
  const ThreadUsage waited = thread_usage();
  EXPECT_GE(waited.voluntary_switches, before.voluntary_switches + 5);
}

// In a child: limits and rights are given up for good.
TEST(Process, RefusedLockNamesReasonAndRemedy) {
#ifdef TAKT_SANITIZED
  GTEST_SKIP() << "sanitizers ignore mlockall";
#endif
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_MEMLOCK, &none);
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(2);
    const Status status = lock_memory();
    const bool told = !status && status.error().code == Code::kEnvironment &&
                      status.error().message.find("ulimit -l unlimited") != std::string::npos &&
                      status.error().message.find("0 KiB") != std::string::npos;
    ::_exit(told ? 0 : 1);
  }
  int result = 0;
  ::waitpid(child, &result, 0);
  ASSERT_TRUE(WIFEXITED(result));
  EXPECT_EQ(WEXITSTATUS(result), 0);
}

}  // namespace
}  // namespace takt::memory
