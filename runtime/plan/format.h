// Private: the fixed head of a plan file (docs/plan_format.md).
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace takt::plan {

inline constexpr char kMagic[8] = {'T', 'A', 'K', 'T', 'P', 'L', 'A', 'N'};

// Little-endian, as every target is.
static_assert(std::endian::native == std::endian::little);
struct Head {
  char magic[8];
  std::uint32_t version;
  std::uint32_t zero;
  std::uint64_t file_bytes;
  std::uint64_t metadata_offset;
  std::uint64_t metadata_bytes;
  std::uint32_t metadata_crc;
  std::uint32_t zeros[4];
  std::uint32_t head_crc;  // of the bytes before it
};
static_assert(sizeof(Head) == 64 && std::is_trivially_copyable_v<Head>);

}  // namespace takt::plan
