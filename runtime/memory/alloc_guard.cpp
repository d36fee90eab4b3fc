#include "runtime/memory/alloc_guard.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "runtime/memory/counters.h"

namespace takt::memory {

constinit thread_local AtomicCounters counters;

namespace {

struct Entry {
  std::array<char, 32> name{};
  const AtomicCounters* live = nullptr;  // null once the thread has ended
  ThreadCounters at_mark;
  ThreadCounters at_end;
};

std::mutex registry_mutex;
std::array<Entry, 256> registry;
std::size_t registered = 0;

ThreadCounters read(const AtomicCounters& source) {
  return {source.allocations.load(std::memory_order_relaxed), source.copied_bytes.load(std::memory_order_relaxed)};
}

// Keeps the last counts of a marked thread when it ends.
struct Mark {
  Entry* entry = nullptr;
  ~Mark() {
    if (entry == nullptr) return;
    const std::lock_guard lock(registry_mutex);
    entry->at_end = read(counters);
    entry->live = nullptr;
  }
};
thread_local Mark mark;

}  // namespace

ThreadCounters thread_counters() { return read(counters); }

CopiesOfAnother::CopiesOfAnother() : before_(read(counters).copied_bytes) {}

CopiesOfAnother::~CopiesOfAnother() { counters.copied_bytes.store(before_, std::memory_order_relaxed); }

bool guard_available() {
  // Volatile, or the compiler drops the pair of calls and copies in place.
  void* (*volatile allocate)(std::size_t) = std::malloc;
  void* (*volatile copy)(void*, const void*, std::size_t) = std::memcpy;
  const ThreadCounters before = thread_counters();
  const char source[16] = "takt";
  char target[16];
  void* block = allocate(16);
  copy(target, source, sizeof source);
  std::free(block);
  const ThreadCounters moved = thread_counters() - before;
  return moved.allocations >= 1 && moved.copied_bytes >= sizeof source;
}

void mark_timed_thread(const char* name) {
  Entry*& entry = mark.entry;
  const std::lock_guard lock(registry_mutex);
  if (entry == nullptr) {
    if (registered == registry.size()) return;
    entry = &registry[registered++];
    std::strncpy(entry->name.data(), name, entry->name.size() - 1);
    entry->live = &counters;
  }
  entry->at_mark = read(counters);
}

std::vector<TimedThread> timed_threads() {
  std::vector<TimedThread> out;
  const std::lock_guard lock(registry_mutex);
  for (std::size_t i = 0; i < registered; ++i) {
    const Entry& entry = registry[i];
    const ThreadCounters now = entry.live != nullptr ? read(*entry.live) : entry.at_end;
    out.push_back({entry.name.data(), now - entry.at_mark});
  }
  return out;
}

}  // namespace takt::memory
