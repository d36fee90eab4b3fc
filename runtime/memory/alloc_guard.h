// Counts heap allocations and bytes copied by memcpy and memmove, per thread (DESIGN sections 4.4 and 12: timed threads
// allocate nothing after warm-up and copy no payload). Counting needs the executable to link takt_memory_interpose,
// which replaces malloc and memcpy for itself and all its shared libraries; otherwise every count stays zero.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace takt::memory {

struct ThreadCounters {
  std::uint64_t allocations = 0;  // calls of malloc, calloc, realloc, aligned_alloc, posix_memalign, memalign
  std::uint64_t copied_bytes =
      0;  // through memcpy, memmove and their checked forms; copies inlined by the compiler are not seen

  friend ThreadCounters operator-(ThreadCounters a, ThreadCounters b) {
    return {a.allocations - b.allocations, a.copied_bytes - b.copied_bytes};
  }
};

// Of the calling thread since it started. Two loads: cheap enough for every job.
ThreadCounters thread_counters();

// While it lives, copies by the calling thread are not counted: they are the work of something else that is simulated
// on it (the copy engine and the kernels of a GPU that is not there).
class CopiesOfAnother {
 public:
  CopiesOfAnother();
  ~CopiesOfAnother();
  CopiesOfAnother(const CopiesOfAnother&) = delete;
  CopiesOfAnother& operator=(const CopiesOfAnother&) = delete;

 private:
  std::uint64_t before_;
};

// Does counting work in this process? Tries it: false without takt_memory_interpose and under sanitizers.
bool guard_available();

// Declares the calling thread to be timed; its counts start from zero now. Call it again after warm-up to leave the
// warm-up out. At most 31 characters of the name are kept, at most 256 threads; allocates only on a thread's first
// call.
void mark_timed_thread(const char* name);

struct TimedThread {
  std::string name;
  ThreadCounters since_mark;
};
// All marked threads in the order of their first mark, ended ones included. Any thread; allocates.
std::vector<TimedThread> timed_threads();

}  // namespace takt::memory
