#include "pipeline/assembly/host_watch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

namespace takt::pipeline {
namespace {

TEST(HostWatch, ReadsStealByCpu) {
  const std::string text =
      "cpu  10 20 30 40 50 60 70 80 0 0\n"
      "cpu0 1 2 3 4 5 6 7 8 0 0\n"
      "cpu1 1 2 3 4 5 6 7 12 0 0\n"
      "cpu10 1 2 3 4 5 6 7 99 0 0\n"
      "intr 5\n";
  const std::int64_t tick = 1'000'000'000 / sysconf(_SC_CLK_TCK);
  const std::vector<Duration> stolen = stolen_times(text, {1, 0, 7});
  ASSERT_EQ(stolen.size(), 3U);
  EXPECT_EQ(stolen[0].ns, 12 * tick);
  EXPECT_EQ(stolen[1].ns, 8 * tick);
  EXPECT_EQ(stolen[2].ns, 0);                             // no such CPU
  EXPECT_EQ(stolen_times("cpu0 1 2 3\n", {0})[0].ns, 0);  // a kernel without the column
  EXPECT_EQ(stolen_times("", {0})[0].ns, 0);
}

TEST(HostWatch, SeesThatTheProcessWasStopped) {
  HostWatch watch({});
  const HostTime begin = host_now();
  watch.start();
  usleep(60'000);
  const pid_t parent = getpid();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    kill(parent, SIGSTOP);
    usleep(300'000);
    kill(parent, SIGCONT);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  usleep(60'000);
  watch.stop();
  const auto stalls = watch.stalls(begin, 1);
  ASSERT_EQ(stalls.size(), 1U);
  EXPECT_EQ(stalls[0].core, -1);
  EXPECT_GE(stalls[0].lost, milliseconds(290));
  EXPECT_GE(stalls[0].from_ns, 0);
  EXPECT_EQ(stalls[0].to_ns - stalls[0].from_ns, stalls[0].lost.ns);
  EXPECT_GT(watch.cost().ns, 0);
}

}  // namespace
}  // namespace takt::pipeline
