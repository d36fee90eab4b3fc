// What travels: a chunk = fixed header + payload in shared memory (DESIGN section 4.2).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace takt::transport {

// Payloads start on this boundary and are followed by this many readable bytes, so that vector code may load past
// the end of a row without leaving the chunk.
inline constexpr std::size_t kPayloadAlignment = 64;
inline constexpr std::size_t kTailPadding = 64;

inline constexpr std::int64_t kNoStamp = std::numeric_limits<std::int64_t>::min();
inline constexpr std::size_t kMaxSources = 16;

// Oldest and newest capture stamp (SensorTime ns) of one sensor among the data behind this chunk.
struct SourceStamps {
  std::int64_t oldest_ns = kNoStamp;
  std::int64_t newest_ns = kNoStamp;
  friend bool operator==(const SourceStamps&, const SourceStamps&) = default;
};

// Identity and times of a chunk. Fixed size, alignment 8 (iceoryx allows no more for a user header).
// Identity fields, which the digest covers together with the payload: schema, job, capture, sources.
struct ChunkHeader {
  std::uint64_t run = 0;       // random token of the run
  std::uint64_t schedule = 0;  // low half of the digest of the admitted schedule
  std::uint32_t mode = 0;
  std::uint32_t schema = 0;            // payload layout id: sensors/messages and pipeline/messages
  std::uint64_t hyperperiod = 0;       // in which it was produced (stage topics)
  std::uint64_t job = 0;               // absolute job number of the stage, or index of the sample in its log channel
  std::int64_t capture_ns = kNoStamp;  // stamp reference of the sample (sensor topics); newest source otherwise
  std::int64_t arrival_ns = kNoStamp;  // arrival stamp (sensor topics)
  std::int64_t valid_until_ns = kNoStamp;           // table time after which a consumer must treat it as stale
  std::uint64_t payload_bytes = 0;                  // used bytes of the payload; the digest covers exactly these
  std::array<SourceStamps, kMaxSources> sources{};  // by sensor index of the rig
};
static_assert(alignof(ChunkHeader) == 8);

// Where a chunk lies. Equal at publish and take = no copy was made on the way.
struct ChunkLocation {
  std::uint64_t segment = 0;
  std::uint64_t offset = 0;
  friend bool operator==(const ChunkLocation&, const ChunkLocation&) = default;
};

// A view of a chunk that somebody else keeps alive (a loan or a taken sample).
struct ChunkView {
  const ChunkHeader* header = nullptr;
  const std::byte* payload = nullptr;
  explicit operator bool() const { return header != nullptr; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {payload, header->payload_bytes}; }
};

}  // namespace takt::transport
