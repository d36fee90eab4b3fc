// Private: the fixed head of a bundle and its directory (docs/bundle_format.md).
#pragma once

#include <cstdint>
#include <type_traits>

namespace takt::pipeline::bundle {

inline constexpr char kMagic[8] = {'T', 'A', 'K', 'T', 'B', 'N', 'D', 'L'};
inline constexpr std::uint64_t kAlignment = 64;  // of sections: plans are read where they lie

enum class SectionKind : std::uint32_t { kManifest = 1, kModes, kStages, kRig, kTransport, kArenas, kPlan };
inline constexpr std::uint32_t kFixedSections = 6;  // one of each kind before the plans
inline constexpr std::uint32_t kMostPlans = 1024;

struct Head {
  char magic[8];
  std::uint32_t version;
  std::uint32_t sections;
  std::uint64_t file_bytes;
  std::uint32_t directory_crc;
  std::uint32_t zeros[8];
  std::uint32_t head_crc;  // of the bytes before it
};
static_assert(sizeof(Head) == 64 && std::is_trivially_copyable_v<Head>);

struct Entry {
  SectionKind kind;
  std::uint32_t crc;  // CRC-32C of the section
  std::uint64_t offset;
  std::uint64_t bytes;
};
static_assert(sizeof(Entry) == 24 && std::is_trivially_copyable_v<Entry>);

}  // namespace takt::pipeline::bundle
