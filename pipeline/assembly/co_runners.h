// Load beside a measured stage: interference classes of `takt profile`.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "scheduler/model/model.h"

namespace takt::pipeline {

// One thread on every core of the board, while it lives. On the cores of the measured stage it runs below everything
// else, so that it only spoils the caches between two jobs; on the others it competes for memory and the last-level
// cache at ordinary priority. `work` is called again and again, with the number of the core; it should take about a
// millisecond.
class CoRunners {
 public:
  CoRunners(const sched::Board& board, int measured_cores, const std::function<void(std::size_t core)>& work);
  ~CoRunners();
  CoRunners(const CoRunners&) = delete;
  CoRunners& operator=(const CoRunners&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

// Reads and writes blocks of memory much larger than what the core's share of the last-level cache holds, in strides
// that use each cache line once.
class MemoryStreams {
 public:
  explicit MemoryStreams(std::size_t cores);
  void run(std::size_t core);

 private:
  std::vector<std::vector<std::uint64_t>> blocks_;
  std::vector<std::size_t> at_;
};

}  // namespace takt::pipeline
