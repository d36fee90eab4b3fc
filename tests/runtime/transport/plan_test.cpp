#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "iceoryx_posh/mepoo/chunk_settings.hpp"
#include "tests/runtime/transport/specs.h"

namespace takt::transport {
namespace {

using testing::HasSubstr;

std::string refusal(TransportSpec spec) {
  const auto plan = plan_pools(spec);
  if (plan) return "accepted";
  EXPECT_EQ(plan.error().code, Code::kConfiguration);
  return plan.error().message;
}
std::string refusal(TopicSpec spec) { return refusal(spec_of(Backend::kLocal, {std::move(spec)})); }

TEST(PoolPlan, ChunkCountCoversLoansQueuesHeldAndTheKeptOne) {
  const auto plan =
      plan_pools(spec_of(Backend::kLocal, {topic("/image", 1000, 2, {{"detect/image", 3, 2}, {"recorder", 10, 4}})}));
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->pools.size(), 1u);
  EXPECT_EQ(plan->pools[0].chunks, 2u + (3u + 2u) + (10u + 4u) + 1u);
  EXPECT_EQ(plan->pools[0].payload_capacity, 1000u);
  // 40 + 328 headers, 64 alignment, 1000 payload, 64 tail, rounded up to 8.
  EXPECT_EQ(plan->pools[0].chunk_bytes, 1496u);
  EXPECT_EQ(plan->user_bytes, 1496u * 22u);
  EXPECT_EQ(plan->management_bytes, 0u);
}

// The class must be what the library asks for, neither less (the loan would go to another pool) nor a cache line more.
TEST(PoolPlan, ClassIsWhatTheLibraryNeeds) {
  for (const std::uint32_t capacity : {1u, 7u, 8u, 63u, 64u, 65u, 1000u, 4194304u, 6220800u, 100000001u}) {
    const auto settings = iox::mepoo::ChunkSettings::create(capacity + kTailPadding, kPayloadAlignment,
                                                            sizeof(ChunkHeader), alignof(ChunkHeader));
    ASSERT_FALSE(settings.has_error());
    const auto plan = plan_pools(spec_of(Backend::kLocal, {topic("/t", capacity, 1, {})}));
    ASSERT_TRUE(plan);
    EXPECT_GE(plan->pools[0].chunk_bytes, settings.value().requiredChunkSize()) << capacity;
    EXPECT_LE(plan->pools[0].chunk_bytes, settings.value().requiredChunkSize() + 8) << capacity;
    EXPECT_EQ(plan->pools[0].chunk_bytes % 8, 0u);
  }
}

TEST(PoolPlan, EveryExportTopicHasAClassOfItsOwnAboveAllTimedOnes) {
  TransportSpec spec =
      spec_of(Backend::kLocal, {topic("/large", 100'000, 1, {{"in", 2, 1}}), topic("/e1", 100, 1, {}),
                                topic("/small", 100, 1, {{"in", 2, 1}}), topic("/e2", 100'000, 1, {})});
  spec.topics[1].exported = 8;
  spec.topics[3].exported = 5;
  const auto refused = plan_pools(spec);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kConfiguration);
  give_export_classes(spec);
  const auto plan = plan_pools(spec);
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_EQ(plan->pools.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(plan->pools[i].topics.size(), 1u);
  EXPECT_EQ(plan->pools[1].topics[0], "/large");
  EXPECT_EQ(plan->pools[2].topics[0], "/e1");
  EXPECT_EQ(plan->pools[3].topics[0], "/e2");
  EXPECT_EQ(plan->pools[2].chunks, 1u + 1u + 8u);
}

TEST(PoolPlan, EqualClassesShareAPoolInAscendingOrder) {
  const auto plan = plan_pools(spec_of(
      Backend::kLocal, {topic("/large", 5000, 1, {}), topic("/a", 100, 1, {{"s", 1, 1}}), topic("/b", 100, 1, {})}));
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->pools.size(), 2u);
  EXPECT_THAT(plan->pools[0].topics, testing::ElementsAre("/a", "/b"));
  EXPECT_EQ(plan->pools[0].chunks, 4u + 2u);
  EXPECT_THAT(plan->pools[1].topics, testing::ElementsAre("/large"));
}

TEST(PoolPlan, IceoryxAddsItsManagementSegment) {
  const auto plan = plan_pools(spec_of(Backend::kIceoryxEmbedded, {topic("/t", 100, 1, {})}));
  ASSERT_TRUE(plan);
  EXPECT_GT(plan->management_bytes, 50'000'000u);
  EXPECT_LT(plan->management_bytes, 100'000'000u);
}

TEST(PoolPlan, RefusalsNameTheTopicAndTheLimit) {
  EXPECT_EQ(refusal(topic("/t", 10, 9, {})),
            "topic '/t': number of chunks the publisher has open at once is 9; the transport allows 1 to 8");
  EXPECT_EQ(refusal(topic("/t", 10, 1, {{"s", 257, 1}})),
            "topic '/t': subscriber 's': queue depth is 257; the transport allows 1 to 256");
  EXPECT_EQ(refusal(topic("/t", 10, 1, {{"s", 1, 257}})),
            "topic '/t': subscriber 's': number of chunks held at once is 257; the transport allows 1 to 256");
  EXPECT_EQ(refusal(topic("/t", 10, 1, {{"s", 1, 0}})),
            "topic '/t': subscriber 's': number of chunks held at once is 0; the transport allows 1 to 256");
  EXPECT_THAT(refusal(topic("/t", 0, 1, {})), HasSubstr("topic '/t': payload capacity in bytes is 0"));
  EXPECT_THAT(refusal(topic("/t", 1ULL << 40, 1, {})), HasSubstr("payload capacity in bytes is 1099511627776"));
  EXPECT_THAT(refusal(topic("/t", ~0ULL, 1, {})), HasSubstr("payload capacity in bytes is 18446744073709551615"));
  EXPECT_THAT(refusal(topic("", 10, 1, {})), HasSubstr("topic name '' has 0 characters"));
  EXPECT_THAT(refusal(topic(std::string(101, 'x'), 10, 1, {})), HasSubstr("has 101 characters"));
  EXPECT_EQ(refusal(topic(std::string(100, 'x'), 10, 1, {})), "accepted");
  EXPECT_EQ(refusal(topic("/t", 10, 1, {{"s", 1, 1}, {"s", 1, 1}})), "topic '/t': subscriber 's' is declared twice");
  EXPECT_EQ(refusal(spec_of(Backend::kLocal, {topic("/t", 10, 1, {}), topic("/t", 20, 1, {})})),
            "topic '/t' is declared twice");
}

TEST(PoolPlan, RefusesMoreThanTheLibraryHas) {
  TransportSpec pools = spec_of(Backend::kLocal, {});
  for (std::uint64_t i = 1; i <= 33; ++i) pools.topics.push_back(topic("/" + std::to_string(i), i * 100, 1, {}));
  EXPECT_THAT(refusal(pools), HasSubstr("33 different payload capacities; the transport has 32 pools"));
  pools.topics.pop_back();
  EXPECT_EQ(refusal(pools), "accepted");

  TransportSpec topics = spec_of(Backend::kLocal, {});
  for (int i = 0; i < 506; ++i) topics.topics.push_back(topic("/" + std::to_string(i), 8, 1, {}));
  EXPECT_THAT(refusal(topics), HasSubstr("506 topics; the transport allows 505"));

  TopicSpec crowded = topic("/t", 8, 1, {});
  for (int i = 0; i < 257; ++i) crowded.subscribers.push_back({"s" + std::to_string(i), 1, 1});
  EXPECT_THAT(refusal(crowded), HasSubstr("257 subscribers; the transport allows 256"));

  TransportSpec many = spec_of(Backend::kLocal, {});
  for (int t = 0; t < 5; ++t) {
    many.topics.push_back(topic("/" + std::to_string(t), 8, 1, {}));
    for (int i = 0; i < 205; ++i) many.topics.back().subscribers.push_back({"s" + std::to_string(i), 1, 1});
  }
  EXPECT_THAT(refusal(many), HasSubstr("1025 subscribers in all; the transport allows 1024"));
}

TEST(PoolPlan, TextAndRouDiConfigurationShowEveryPool) {
  const auto plan = plan_pools(spec_of(Backend::kLocal, {topic("/a", 1000, 1, {}), topic("/b", 2000, 2, {})}));
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->text(), HasSubstr("/a"));
  EXPECT_THAT(plan->text(), HasSubstr("1496"));
  EXPECT_EQ(roudi_config(*plan),
            "[general]\nversion = 1\n\n[[segment]]\n\n"
            "[[segment.mempool]]\nsize = 1456\ncount = 2\n\n"
            "[[segment.mempool]]\nsize = 2456\ncount = 3\n");
}

TEST(SharedMemory, FreeSpaceIsKnown) {
  const auto free = shared_memory_free();
  ASSERT_TRUE(free) << free.error().message;
  EXPECT_GT(*free, 0u);
}

}  // namespace
}  // namespace takt::transport
