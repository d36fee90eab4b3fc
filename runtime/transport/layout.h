// Private: the layout of a chunk and the limits of the library, shared by the plan and both back ends.
//
//   | library header 40 | ChunkHeader 328 | padding to 64 | payload ... capacity | tail 64 |
#pragma once

#include <cstdint>

#include "runtime/base/sizes.h"
#include "runtime/transport/transport.h"

namespace takt::transport {

// iceoryx 2.0 (iceoryx_posh_deployment.hpp and iceoryx_posh_types.hpp; iceoryx.cpp asserts that they agree). The local
// back end keeps to the same limits, so that a plan that runs on one runs on the other.
namespace limits {
inline constexpr std::uint64_t kLibraryHeader = 40;
inline constexpr std::uint32_t kLoans = 8;
inline constexpr std::uint32_t kQueue = 256;
inline constexpr std::uint32_t kHeld = 256;
inline constexpr std::uint32_t kPools = 32;
inline constexpr std::uint32_t kName = 100;
inline constexpr std::uint32_t kSubscribersPerTopic = 256;
inline constexpr std::uint32_t kPublishers = 512 - 6 - 1;  // 6 used by iceoryx itself, 1 by takt to look at the pools
inline constexpr std::uint32_t kSubscribers = 1024;
}  // namespace limits

// What a loan asks of the library for this payload: the size class before rounding. Overflow-free up to 4 GiB.
constexpr std::uint64_t chunk_bytes(std::uint64_t payload_capacity) {
  const std::uint64_t headers = limits::kLibraryHeader + sizeof(ChunkHeader);
  return round_up(headers + kPayloadAlignment + payload_capacity + kTailPadding, 8);
}

// Chunks of one topic: open loans, those of observers, queued and held ones of every subscriber, and the last chunk
// that the library keeps.
inline std::uint32_t chunk_count(const TopicSpec& topic) {
  std::uint32_t count = topic.loans + 1 + topic.exported;
  for (const SubscriberSpec& subscriber : topic.subscribers) count += subscriber.queue_depth + subscriber.held;
  return count;
}

}  // namespace takt::transport
