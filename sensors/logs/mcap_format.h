// Numbers of the MCAP specification (https://mcap.dev/spec) that reader and writer share. All values little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace takt::sensors::mcap {

inline constexpr std::string_view kMagic{"\x89MCAP0\r\n", 8};

// The opening magic, one byte of which may be damaged: such a file can still be read.
inline bool looks_like(std::string_view begin) {
  if (begin.size() < kMagic.size()) return false;
  int different = 0;
  for (std::size_t i = 0; i < kMagic.size(); ++i) different += begin[i] != kMagic[i] ? 1 : 0;
  return different <= 1;
}

enum class Op : std::uint8_t {
  kHeader = 0x01,
  kFooter = 0x02,
  kSchema = 0x03,
  kChannel = 0x04,
  kMessage = 0x05,
  kChunk = 0x06,
  kMessageIndex = 0x07,
  kChunkIndex = 0x08,
  kAttachment = 0x09,
  kAttachmentIndex = 0x0A,
  kStatistics = 0x0B,
  kMetadata = 0x0C,
  kMetadataIndex = 0x0D,
  kSummaryOffset = 0x0E,
  kDataEnd = 0x0F,
};

inline constexpr std::uint64_t kRecordHead = 9;                   // opcode, length
inline constexpr std::uint64_t kFooterRecord = kRecordHead + 20;  // summary start, summary offset start, CRC
inline constexpr std::uint64_t kMessageHead = 22;                 // channel, sequence, log time, publish time

}  // namespace takt::sensors::mcap
