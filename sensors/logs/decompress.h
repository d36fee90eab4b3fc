// Unpacking of whole blocks: bz2, lz4 (frame format), zstd.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace takt::sensors {

// Unpacks as far as the bytes allow, up to `limit` bytes; the buffer grows with what is really there, so that a lying
// size costs nothing. Returns what stopped it, "" when the packed bytes ended as they should.
// `compression`: "bz2", "lz4", "zstd".
std::string decompress(std::string_view compression, std::span<const std::byte> packed, std::uint64_t limit,
                       std::vector<std::byte>& out);

}  // namespace takt::sensors
