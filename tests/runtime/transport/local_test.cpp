// What only the local back end has.
#include <gtest/gtest.h>
#include <atomic>
#include <thread>

#include "tests/runtime/transport/specs.h"

namespace takt::transport {
namespace {

TEST(Local, TwoTransportsLiveSideBySide) {
  auto first = make_transport(spec_of(Backend::kLocal, {topic("/t", 64, 1, {{"s", 1, 1}})}));
  auto second = make_transport(spec_of(Backend::kLocal, {topic("/t", 64, 1, {{"s", 1, 1}})}));
  ASSERT_TRUE(first && second);
  auto out = *(*first)->publisher("/t");
  auto in = *(*first)->subscriber("/t", "s");
  auto other = *(*second)->subscriber("/t", "s");
  publish(*out, 1);
  EXPECT_FALSE(other->take());
  const ChunkView chunk = in->take();
  ASSERT_TRUE(chunk);
  in->release(chunk);
}

TEST(Local, NobodyAttachesFromElsewhere) {
  const auto attached = attach_transport(spec_of(Backend::kLocal, {topic("/t", 64, 1, {})}), "viewer");
  ASSERT_FALSE(attached);
  EXPECT_EQ(attached.error().code, Code::kConfiguration);
}

TEST(Local, RefusesAPlanThatBreaksALimit) {
  const auto transport = make_transport(spec_of(Backend::kLocal, {topic("/t", 64, 9, {})}));
  ASSERT_FALSE(transport);
  EXPECT_EQ(transport.error().code, Code::kConfiguration);
}

TEST(Local, MemoryThatDoesNotExistIsAnErrorValue) {
  TransportSpec spec = spec_of(Backend::kLocal, {topic("/t", 4'000'000'000, 8, {})});
  for (int i = 0; i < 256; ++i) spec.topics[0].subscribers.push_back({"s" + std::to_string(i), 256, 256});
  const auto transport = make_transport(spec);  // 500 TB
  ASSERT_FALSE(transport);
  EXPECT_EQ(transport.error().code, Code::kEnvironment);
}

// A queue of one: publisher and subscriber meet at the same entry all the time.
TEST(Local, DiscardAndTakeRaceForTheSameEntry) {
  constexpr std::uint64_t kJobs = 100000;
  auto transport = *make_transport(spec_of(Backend::kLocal, {topic("/t", 64, 1, {{"s", 1, 1}})}));
  auto out = *transport->publisher("/t");
  auto in = *transport->subscriber("/t", "s");
  std::atomic<bool> done{false};
  std::uint64_t taken = 0;
  std::uint64_t errors = 0;
  std::thread consumer([&] {
    std::uint64_t next = 0;
    for (;;) {
      const bool last = done.load(std::memory_order_acquire);
      while (const ChunkView chunk = in->take()) {
        if (chunk.header->job < next || !filled_with(chunk, chunk.header->job)) ++errors;
        next = chunk.header->job + 1;
        ++taken;
        in->release(chunk);
      }
      if (last) return;
    }
  });
  for (std::uint64_t job = 0; job < kJobs; ++job) publish(*out, job);
  done.store(true, std::memory_order_release);
  consumer.join();
  EXPECT_EQ(errors, 0u);
  EXPECT_EQ(taken + in->lost(), kJobs);
  EXPECT_EQ(out->refused_loans(), 0u);
  EXPECT_EQ(transport->pool_use()[0].used, 0u);
}

}  // namespace
}  // namespace takt::transport
