// Memory figures and rights of this process.
#pragma once

#include <cstdint>

#include "runtime/base/status.h"

namespace takt::memory {

// Resident memory of the process in bytes; 0 when the kernel does not tell. No allocation.
std::uint64_t resident_bytes();

// What the calling thread has used since it started. No allocation; one system call.
struct ThreadUsage {
  std::uint64_t minor_faults = 0;          // page faults served from memory
  std::uint64_t major_faults = 0;          // page faults that needed the disk
  std::uint64_t voluntary_switches = 0;    // it waited
  std::uint64_t involuntary_switches = 0;  // another thread was given its core
};
ThreadUsage thread_usage();

// Locks all present and future pages into memory. kEnvironment with the reason and the remedy when it is refused.
Status lock_memory();
// The opposite.
void unlock_memory();

}  // namespace takt::memory
