// CRC-32C (Castagnoli, polynomial 0x1EDC6F41, reflected; RFC 3720 appendix B.4). By the processor's instruction where
// there is one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace takt::plan {

std::uint32_t crc32c(std::span<const std::byte> bytes);
// The portable form, by table: the same values.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes);

}  // namespace takt::plan
