#include "pipeline/assembly/housekeeping_affinity.h"

#include <pthread.h>

namespace takt::pipeline {

HousekeepingAffinity::HousekeepingAffinity(const sched::Board& board) {
  cpu_set_t reserved;
  CPU_ZERO(&reserved);
  for (const sched::Core& core : board.cores) {
    if (core.reserve > 0) CPU_SET(static_cast<unsigned>(core.cpu), &reserved);
  }
  if (CPU_COUNT(&reserved) == 0 || pthread_getaffinity_np(pthread_self(), sizeof before_, &before_) != 0) return;
  set_ = pthread_setaffinity_np(pthread_self(), sizeof reserved, &reserved) == 0;
}

HousekeepingAffinity::~HousekeepingAffinity() {
  if (set_) pthread_setaffinity_np(pthread_self(), sizeof before_, &before_);
}

}  // namespace takt::pipeline
