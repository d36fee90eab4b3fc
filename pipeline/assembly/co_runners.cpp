#include "pipeline/assembly/co_runners.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#include <algorithm>

namespace takt::pipeline {
namespace {

constexpr std::size_t kLineWords = 64 / sizeof(std::uint64_t);
constexpr std::size_t kPiece = std::size_t{1} << 20;  // bytes per call: below a millisecond

// Four times the last-level cache, over all cores; between 16 MiB and 128 MiB a core.
std::size_t block_bytes(std::size_t cores) {
  const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  const std::size_t wanted = 4 * static_cast<std::size_t>(std::max(cache, 0L)) / std::max<std::size_t>(cores, 1);
  return std::clamp(wanted, std::size_t{16} << 20, std::size_t{128} << 20);
}

void settle(int cpu, bool below) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
  const sched_param none{};
  if (below) pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);
}

}  // namespace

CoRunners::CoRunners(const sched::Board& board, int measured_cores, const std::function<void(std::size_t core)>& work) {
  for (std::size_t core = 0; core < board.cores.size(); ++core) {
    const int cpu = board.cores[core].cpu;
    const bool measured = core < static_cast<std::size_t>(measured_cores);
    threads_.emplace_back([this, cpu, core, measured, work] {
      settle(cpu, measured);
      while (!stop_.load(std::memory_order_relaxed)) work(core);
    });
  }
}

CoRunners::~CoRunners() {
  stop_.store(true);
  for (std::thread& thread : threads_) thread.join();
}

MemoryStreams::MemoryStreams(std::size_t cores)
    : blocks_(cores, std::vector<std::uint64_t>(block_bytes(cores) / sizeof(std::uint64_t))), at_(cores, 0) {}

void MemoryStreams::run(std::size_t core) {
  std::vector<std::uint64_t>& block = blocks_[core];
  const std::size_t end = std::min(at_[core] + kPiece / sizeof(std::uint64_t), block.size());
  for (std::size_t i = at_[core]; i < end; i += kLineWords) block[i] = block[i] * 3 + 1;
  at_[core] = end == block.size() ? 0 : end;
}

}  // namespace takt::pipeline
