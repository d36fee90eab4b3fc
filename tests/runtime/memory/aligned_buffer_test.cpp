#include "runtime/memory/aligned_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <utility>

#include "runtime/memory/alloc_guard.h"

namespace takt::memory {
namespace {

TEST(AlignedBuffer, IsAlignedAndZero) {
  for (const std::uint64_t bytes : {1, 63, 64, 5000}) {
    auto buffer = AlignedBuffer::create(bytes);
    ASSERT_TRUE(buffer) << buffer.error().message;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % AlignedBuffer::kAlignment, 0U);
    ASSERT_EQ(buffer->span().size(), bytes);
    EXPECT_TRUE(std::ranges::all_of(buffer->span(), [](std::byte b) { return b == std::byte{0}; }));
    buffer->span().back() = std::byte{7};
    const AlignedBuffer moved = *std::move(buffer);
    EXPECT_EQ(moved.span().back(), std::byte{7});
  }
}

TEST(AlignedBuffer, NothingNeedsNoMemory) {
  const auto buffer = AlignedBuffer::create(0);
  ASSERT_TRUE(buffer);
  EXPECT_TRUE(buffer->span().empty());
}

TEST(AlignedBuffer, NoMemoryIsAValue) {
  if (!guard_available()) GTEST_SKIP() << "sanitizers end the process at a request of this size";
  const auto buffer = AlignedBuffer::create(std::uint64_t{1} << 62);
  ASSERT_FALSE(buffer);
  EXPECT_EQ(buffer.error().code, Code::kEnvironment);
  EXPECT_THAT(buffer.error().message, testing::HasSubstr("4611686018427387904 bytes"));
}

}  // namespace
}  // namespace takt::memory
