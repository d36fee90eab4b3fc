#include "runtime/memory/alloc_guard.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "tests/runtime/memory/shared_library.h"

namespace takt::memory {
namespace {

#ifdef TAKT_SANITIZED
#define NEEDS_GUARD() GTEST_SKIP() << "sanitizers bring their own malloc and memcpy"
#else
#define NEEDS_GUARD() ASSERT_TRUE(guard_available())
#endif

// Hides a pointer's origin from the compiler, which otherwise drops unused allocations and inlines copies.
template <class T>
T opaque(T value) {
  asm volatile("" : "+r"(value) : : "memory");
  return value;
}

TEST(AllocGuard, CountsEveryWayToAllocate) {
  NEEDS_GUARD();
  const ThreadCounters before = thread_counters();
  void* a = opaque(std::malloc(10));
  void* b = opaque(std::calloc(3, 5));
  a = opaque(std::realloc(a, 100));
  void* c = opaque(std::aligned_alloc(64, 128));
  void* d = nullptr;
  ASSERT_EQ(posix_memalign(&d, 64, 100), 0);
  void* e = opaque(memalign(32, 10));
  auto f = std::make_unique<int>(3);
  opaque(f.get());
  EXPECT_EQ((thread_counters() - before).allocations, 7u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(c) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(d) % 64, 0u);
  for (void* block : {a, b, c, d, e}) std::free(block);
}

TEST(AllocGuard, RefusesABadAlignmentLikeTheLibrary) {
  NEEDS_GUARD();
  void* block = nullptr;
  EXPECT_EQ(posix_memalign(&block, opaque(std::size_t{24}), 100), EINVAL);
}

TEST(AllocGuard, CountsInsideASharedLibrary) {
  NEEDS_GUARD();
  const ThreadCounters before = thread_counters();
  std::free(library_allocate(100));
  EXPECT_EQ((thread_counters() - before).allocations, 1u);

  char from[300];
  char to[300];
  std::memset(from, 7, sizeof from);
  const ThreadCounters before_copy = thread_counters();
  library_copy(to, from, 300);
  library_move(to, from, 200);
  EXPECT_EQ((thread_counters() - before_copy).copied_bytes, 500u);
  EXPECT_EQ(to[299], 7);
}

TEST(AllocGuard, CopiesThatStandForAnothersWorkDoNotCount) {
  NEEDS_GUARD();
  char from[300] = {7};
  char to[300];
  const ThreadCounters before = thread_counters();
  {
    const CopiesOfAnother engine;
    library_copy(to, from, 300);
    std::free(library_allocate(100));
  }
  library_copy(to, from, 100);
  EXPECT_EQ((thread_counters() - before).copied_bytes, 100u);
  EXPECT_EQ((thread_counters() - before).allocations, 1u) << "allocations do";
  EXPECT_EQ(to[0], 7);
}

TEST(AllocGuard, CopiesCorrectlyWithOverlap) {
  std::string text = "abcdefghijklmnopqrstuvwxyz";
  library_move(text.data() + 3, text.data(), opaque(std::size_t{10}));
  EXPECT_EQ(text, "abcabcdefghijnopqrstuvwxyz");
  library_move(text.data(), text.data() + 3, opaque(std::size_t{10}));
  EXPECT_EQ(text, "abcdefghijhijnopqrstuvwxyz");
}

TEST(AllocGuard, CountsInAMarkedThread) {
  NEEDS_GUARD();
  std::thread worker([] {
    mark_timed_thread("worker");
    const ThreadCounters start = thread_counters();
    EXPECT_EQ((thread_counters() - start).allocations, 0u);
    std::free(library_allocate(10));
    char from[64] = {};
    char to[64];
    library_copy(to, from, sizeof from);
  });
  worker.join();
  // The counts of a thread outlive it.
  const std::vector<TimedThread> threads = timed_threads();
  const auto found = std::find_if(threads.begin(), threads.end(), [](const auto& t) { return t.name == "worker"; });
  ASSERT_NE(found, threads.end());
  EXPECT_EQ(found->since_mark.allocations, 1u);
  EXPECT_EQ(found->since_mark.copied_bytes, 64u);
}

TEST(AllocGuard, ASecondMarkLeavesTheWarmUpOut) {
  NEEDS_GUARD();
  std::thread worker([] {
    mark_timed_thread("warm");
    for (int i = 0; i < 5; ++i) std::free(library_allocate(10));
    mark_timed_thread("warm");
    for (int i = 0; i < 2; ++i) std::free(library_allocate(10));
  });
  worker.join();
  std::size_t found = 0;
  for (const TimedThread& thread : timed_threads()) {
    if (thread.name != "warm") continue;
    ++found;
    EXPECT_EQ(thread.since_mark.allocations, 2u);
  }
  EXPECT_EQ(found, 1u);
}

TEST(AllocGuard, ThreadsCountApart) {
  NEEDS_GUARD();
  const ThreadCounters before = thread_counters();
  ThreadCounters other;
  std::thread worker([&other] {
    const ThreadCounters start = thread_counters();
    for (int i = 0; i < 1000; ++i) std::free(library_allocate(10));
    other = thread_counters() - start;
  });
  const std::uint64_t own_for_the_thread = (thread_counters() - before).allocations;
  worker.join();
  EXPECT_EQ(other.allocations, 1000u);
  EXPECT_EQ((thread_counters() - before).allocations, own_for_the_thread);
}

TEST(AllocGuard, ALongNameIsCut) {
  std::thread worker([] { mark_timed_thread("a name of far more than thirty-one characters"); });
  worker.join();
  EXPECT_EQ(timed_threads().back().name, "a name of far more than thirty-");
}

}  // namespace
}  // namespace takt::memory
