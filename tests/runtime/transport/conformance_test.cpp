// What every back end does the same way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <atomic>
#include <chrono>
#include <thread>

#include "runtime/memory/alloc_guard.h"
#include "tests/runtime/transport/specs.h"

namespace takt::transport {
namespace {

using testing::HasSubstr;

class Conformance : public OnBothBackends {};
INSTANTIATE_TEST_SUITE_P(Backends, Conformance, kBothBackends, backend_name);

TEST_P(Conformance, ASubscriberSeesThePublishersMemory) {
  start({topic("/image", 1000, 1, {{"a", 2, 1}, {"b", 2, 1}})});
  auto out = publisher("/image");
  auto a = subscriber("/image", "a");
  auto b = subscriber("/image", "b");
  connect();

  Publisher::Loan loan = out->loan();
  ASSERT_TRUE(loan);
  EXPECT_EQ(loan.header->run, kTestRun);
  EXPECT_EQ(loan.header->schema, 7u);
  EXPECT_EQ(loan.header->job, 0u);
  EXPECT_EQ(loan.header->sources[15].oldest_ns, kNoStamp);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(loan.payload) % kPayloadAlignment, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(loan.header) % alignof(ChunkHeader), 0u);
  loan.header->job = 42;
  loan.header->payload_bytes = 1000;
  // The whole payload and the tail behind it are ours.
  std::memset(loan.payload, 0x5a, 1000 + kTailPadding);
  const ChunkLocation at_loan = out->location(loan);
  EXPECT_EQ(out->publish(loan), at_loan);

  for (Subscriber* in : {a.get(), b.get()}) {
    const ChunkView chunk = in->take();
    ASSERT_TRUE(chunk);
    EXPECT_EQ(chunk.payload, loan.payload);
    EXPECT_EQ(chunk.header, loan.header);
    EXPECT_EQ(chunk.header->job, 42u);
    EXPECT_EQ(chunk.bytes().size(), 1000u);
    EXPECT_TRUE(filled_with(chunk, 0x5a));
    EXPECT_EQ(in->location(chunk), at_loan);
    in->release(chunk);
    EXPECT_FALSE(in->take());
  }
}

TEST_P(Conformance, LocationsOfDifferentChunksDiffer) {
  start({topic("/a", 100, 2, {}), topic("/b", 5000, 1, {})});
  auto a = publisher("/a");
  auto b = publisher("/b");
  const auto first = a->loan();
  const auto second = a->loan();
  const auto third = b->loan();
  ASSERT_TRUE(first && second && third);
  EXPECT_NE(a->location(first), a->location(second));
  EXPECT_NE(a->location(first), b->location(third));
  EXPECT_NE(a->location(second), b->location(third));
  a->discard(second);
  a->discard(first);
  b->discard(third);
}

TEST_P(Conformance, AllChunksLieInTheBlocksThatItNames) {
  start({topic("/a", 100, 2, {}), topic("/b", 5000, 1, {})});
  const auto blocks = transport->memory();
  ASSERT_TRUE(blocks) << blocks.error().message;
  for (const char* name : {"/a", "/b"}) {
    const auto port = publisher(name);
    const Publisher::Loan loan = port->loan();
    ASSERT_TRUE(loan);
    std::byte* const end = loan.payload + port->payload_capacity() + kTailPadding;
    EXPECT_TRUE(std::any_of(blocks->begin(), blocks->end(), [&](std::span<std::byte> block) {
      return loan.payload >= block.data() && end <= block.data() + block.size();
    })) << name;
    port->discard(loan);
  }
  for (const std::span<std::byte> block : *blocks) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data()) % 4096, 0u);
    volatile std::byte& last = block.back();  // all of it is mapped: a device touches every page
    last = last;
  }
}

TEST_P(Conformance, KeepsOrder) {
  start({topic("/t", 64, 1, {{"s", 10, 1}})});
  auto out = publisher("/t");
  auto in = subscriber("/t", "s");
  connect();
  for (std::uint64_t job = 0; job < 10; ++job) publish(*out, job);
  for (std::uint64_t job = 0; job < 10; ++job) {
    const ChunkView chunk = in->take();
    ASSERT_TRUE(chunk);
    EXPECT_EQ(chunk.header->job, job);
    EXPECT_TRUE(filled_with(chunk, job));
    in->release(chunk);
  }
  EXPECT_EQ(in->lost(), 0u);
}

TEST_P(Conformance, AFullQueueDropsItsOldestAndTheLossIsCounted) {
  start({topic("/t", 64, 1, {{"slow", 2, 1}, {"fast", 5, 1}})});
  auto out = publisher("/t");
  auto slow = subscriber("/t", "slow");
  auto fast = subscriber("/t", "fast");
  connect();
  for (std::uint64_t job = 0; job < 5; ++job) publish(*out, job);
  for (const std::uint64_t job : {3u, 4u}) {
    const ChunkView chunk = slow->take();
    ASSERT_TRUE(chunk);
    EXPECT_EQ(chunk.header->job, job);
    slow->release(chunk);
  }
  EXPECT_FALSE(slow->take());
  EXPECT_EQ(slow->lost(), 3u);
  // One subscriber's loss is not another's.
  for (std::uint64_t job = 0; job < 5; ++job) {
    const ChunkView chunk = fast->take();
    ASSERT_TRUE(chunk);
    EXPECT_EQ(chunk.header->job, job);
    fast->release(chunk);
  }
  EXPECT_EQ(fast->lost(), 0u);
}

TEST_P(Conformance, LoansStopAtTheDeclaredNumber) {
  start({topic("/t", 64, 8, {})});
  auto out = publisher("/t");
  std::vector<Publisher::Loan> loans;
  for (int i = 0; i < 8; ++i) {
    loans.push_back(out->loan());
    ASSERT_TRUE(loans.back());
  }
  EXPECT_EQ(out->refused_loans(), 0u);
  EXPECT_FALSE(out->loan());
  EXPECT_EQ(out->refused_loans(), 1u);
  out->discard(loans.back());
  loans.back() = out->loan();
  EXPECT_TRUE(loans.back());
  for (const Publisher::Loan& loan : loans) out->discard(loan);
  EXPECT_EQ(out->refused_loans(), 1u);
}

TEST_P(Conformance, ASubscriberHoldsAtMostWhatItDeclared) {
  start({topic("/t", 64, 1, {{"s", 5, 2}})});
  auto out = publisher("/t");
  auto in = subscriber("/t", "s");
  connect();
  for (std::uint64_t job = 0; job < 4; ++job) publish(*out, job);
  const ChunkView first = in->take();
  const ChunkView second = in->take();
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(in->take());
  in->release(first);
  const ChunkView third = in->take();
  ASSERT_TRUE(third);
  EXPECT_EQ(third.header->job, 2u);
  // What is held stays as it was published.
  EXPECT_TRUE(filled_with(second, 1));
  in->release(second);
  in->release(third);
}

// Every loan open, every queue full, every subscriber holding all it may: the plan still has a chunk.
TEST_P(Conformance, TheWorstCaseFitsThePools) {
  start({topic("/t", 256, 2, {{"a", 3, 2}, {"b", 1, 4}}), topic("/u", 256, 1, {{"c", 2, 2}})});
  auto out = publisher("/t");
  auto other = publisher("/u");
  auto a = subscriber("/t", "a");
  auto b = subscriber("/t", "b");
  auto c = subscriber("/u", "c");
  connect();
  std::vector<ChunkView> held_a;
  std::vector<ChunkView> held_b;
  std::vector<ChunkView> held_c;
  const auto take_all = [](Subscriber& in, std::vector<ChunkView>& held) {
    while (const ChunkView chunk = in.take()) held.push_back(chunk);
  };
  for (std::uint64_t job = 0; job < 200; ++job) {
    const Publisher::Loan open = out->loan();
    ASSERT_TRUE(open) << "job " << job;
    publish(*out, job);
    out->discard(open);
    publish(*other, job);
    // Give one back now and then, so that the held ones differ in age.
    if (job % 7 == 0 && !held_a.empty()) {
      a->release(held_a.front());
      held_a.erase(held_a.begin());
    }
    take_all(*a, held_a);
    take_all(*b, held_b);
    take_all(*c, held_c);
  }
  EXPECT_EQ(held_a.size(), 2u);
  EXPECT_EQ(held_b.size(), 4u);
  EXPECT_EQ(held_c.size(), 2u);
  EXPECT_EQ(held_b.front().header->job, 0u);
  EXPECT_TRUE(filled_with(held_b.front(), 0));
  EXPECT_EQ(out->refused_loans(), 0u);
  for (const PoolUse& use : transport->pool_use()) {
    EXPECT_EQ(use.chunks, transport->pools().pools[0].chunks);
    EXPECT_LE(use.most_used, use.chunks);
    EXPECT_GE(use.used, 2u + 4u + 2u);
  }
  for (const ChunkView& chunk : held_a) a->release(chunk);
  for (const ChunkView& chunk : held_b) b->release(chunk);
  for (const ChunkView& chunk : held_c) c->release(chunk);
}

TEST_P(Conformance, ADestroyedSubscriberGivesItsQueueBack) {
  start({topic("/t", 64, 1, {{"gone", 4, 1}, {"stays", 1, 1}})});
  auto out = publisher("/t");
  auto gone = subscriber("/t", "gone");
  auto stays = subscriber("/t", "stays");
  connect();
  for (std::uint64_t job = 0; job < 4; ++job) publish(*out, job);
  gone.reset();
  for (std::uint64_t job = 4; job < 50; ++job) publish(*out, job);
  EXPECT_EQ(out->refused_loans(), 0u);
  const ChunkView chunk = stays->take();
  ASSERT_TRUE(chunk);
  EXPECT_EQ(chunk.header->job, 49u);
  stays->release(chunk);
  // RouDi takes a port away in its next round, which may be up to 100 ms later.
  for (int i = 0; i < 1000 && transport->pool_use()[0].used > 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_LE(transport->pool_use()[0].used, 2u);
}

TEST_P(Conformance, OnlyPlannedPortsExist) {
  start({topic("/t", 64, 1, {{"s", 1, 1}})});
  auto out = publisher("/t");
  auto in = subscriber("/t", "s");
  const auto unknown = transport->publisher("/typo");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::kInternal);
  EXPECT_EQ(unknown.error().message, "topic '/typo' is not in the plan of the transport");
  EXPECT_EQ(transport->subscriber("/t", "x").error().message, "topic '/t': subscriber 'x' is not declared in the plan");
  EXPECT_EQ(transport->subscriber("/typo", "s").error().message, "topic '/typo' is not in the plan of the transport");
  EXPECT_EQ(transport->publisher("/t").error().message,
            "topic '/t': the publisher was created before; each port is created once");
  EXPECT_EQ(transport->subscriber("/t", "s").error().message,
            "topic '/t': the subscriber 's' was created before; each port is created once");
  EXPECT_TRUE(transport->undeclared_subscribers().empty());
}

TEST_P(Conformance, MissingSubscribersAreNamed) {
  start({topic("/t", 64, 1, {{"here", 1, 1}, {"elsewhere", 1, 1}})});
  auto out = publisher("/t");
  auto in = subscriber("/t", "here");
  const Status connected = transport->wait_connected();
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code, Code::kEnvironment);
  EXPECT_THAT(connected.error().message, HasSubstr("/t"));
  EXPECT_THAT(connected.error().message, HasSubstr("elsewhere"));
  EXPECT_THAT(connected.error().message, testing::Not(HasSubstr("here,")));
}

TEST_P(Conformance, PortsMayOutliveTheTransportObject) {
  start({topic("/t", 64, 1, {{"s", 2, 1}})});
  auto out = publisher("/t");
  auto in = subscriber("/t", "s");
  connect();
  publish(*out, 1);
  transport.reset();
  const ChunkView chunk = in->take();
  ASSERT_TRUE(chunk);
  EXPECT_TRUE(filled_with(chunk, 1));
  in->release(chunk);
}

TEST_P(Conformance, TheTimedPathAllocatesAndCopiesNothing) {
  start({topic("/t", 1 << 20, 2, {{"s", 3, 2}})});
  auto out = publisher("/t");
  auto in = subscriber("/t", "s");
  connect();
  const auto round = [&](std::uint64_t job) {
    const Publisher::Loan loan = out->loan();
    ASSERT_TRUE(loan);
    loan.header->job = job;
    loan.header->payload_bytes = 8;
    out->publish(loan);
    out->discard(out->loan());
    const ChunkView chunk = in->take();
    ASSERT_TRUE(chunk);
    in->release(chunk);
  };
  round(0);
#ifndef TAKT_SANITIZED
  ASSERT_TRUE(memory::guard_available());
#endif
  const memory::ThreadCounters before = memory::thread_counters();
  for (std::uint64_t job = 1; job <= 1000; ++job) round(job);
  const memory::ThreadCounters used = memory::thread_counters() - before;
  EXPECT_EQ(used.allocations, 0u);
  // Headers and bookkeeping may pass through memcpy, a payload of a megabyte may not.
  EXPECT_LT(used.copied_bytes, 1000u * 1024u);
}

TEST_P(Conformance, ThreadsHandOverInOrder) {
  constexpr std::uint64_t kJobs = 20000;
  start({topic("/t", 64, 1, {{"a", 4, 2}, {"b", 16, 1}})});
  auto out = publisher("/t");
  auto a = subscriber("/t", "a");
  auto b = subscriber("/t", "b");
  connect();
  std::atomic<bool> done{false};
  struct Seen {
    std::uint64_t count = 0;
    std::uint64_t errors = 0;
  };
  const auto consume = [&done](Subscriber& in, Seen& seen) {
    std::uint64_t next = 0;
    for (;;) {
      const bool last = done.load(std::memory_order_acquire);
      while (const ChunkView chunk = in.take()) {
        if (chunk.header->job < next || !filled_with(chunk, chunk.header->job)) ++seen.errors;
        next = chunk.header->job + 1;
        ++seen.count;
        in.release(chunk);
      }
      if (last) return;
      std::this_thread::yield();
    }
  };
  Seen seen_a;
  Seen seen_b;
  std::thread thread_a([&] { consume(*a, seen_a); });
  std::thread thread_b([&] { consume(*b, seen_b); });
  for (std::uint64_t job = 0; job < kJobs; ++job) publish(*out, job);
  done.store(true, std::memory_order_release);
  thread_a.join();
  thread_b.join();
  EXPECT_EQ(seen_a.errors, 0u);
  EXPECT_EQ(seen_b.errors, 0u);
  EXPECT_EQ(seen_a.count + a->lost(), kJobs);
  EXPECT_EQ(seen_b.count + b->lost(), kJobs);
  EXPECT_EQ(out->refused_loans(), 0u);
}

// The digest and the report of a run need it to start again in the same process.
TEST_P(Conformance, StartsAgainAfterAnEnd) {
  for (int cycle = 0; cycle < 3; ++cycle) {
    start({topic("/t", 64, 1, {{"s", 2, 1}})});
    auto out = publisher("/t");
    auto in = subscriber("/t", "s");
    connect();
    publish(*out, 5);
    const ChunkView chunk = in->take();
    ASSERT_TRUE(chunk);
    EXPECT_EQ(chunk.header->job, 5u);
    in->release(chunk);
    out.reset();
    in.reset();
    transport.reset();
  }
}

}  // namespace
}  // namespace takt::transport
