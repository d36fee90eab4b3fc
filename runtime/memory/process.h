// Memory figures and rights of this process.
#pragma once

#include <cstdint>

#include "runtime/base/status.h"

namespace takt::memory {

// Resident memory of the process in bytes; 0 when the kernel does not tell. No allocation.
std::uint64_t resident_bytes();

// Page faults of the calling thread since it started. No allocation; one system call.
struct PageFaults {
  std::uint64_t minor = 0;  // served from memory
  std::uint64_t major = 0;  // needed the disk
  friend PageFaults operator-(PageFaults a, PageFaults b) { return {a.minor - b.minor, a.major - b.major}; }
};
PageFaults thread_page_faults();

// Locks all present and future pages into memory. kEnvironment with the reason and the remedy when it is refused.
Status lock_memory();
// The opposite.
void unlock_memory();

}  // namespace takt::memory
