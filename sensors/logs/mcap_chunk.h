// One MCAP chunk: its head, and its bytes unpacked and checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sensors/logs/byte_cursor.h"
#include "sensors/logs/crc32.h"
#include "sensors/logs/mcap_format.h"

namespace takt::sensors::mcap {

using Bytes = std::span<const std::byte>;

inline std::uint32_t crc_of(std::uint32_t start, Bytes bytes) { return crc32(start, bytes); }

// A buffer that only grows: chunk after chunk without touching fresh pages.
struct Buffer {
  std::vector<std::byte> storage;
  std::size_t size = 0;
  std::span<std::byte> resize(std::size_t bytes);
  [[nodiscard]] Bytes bytes() const { return {storage.data(), size}; }
};

struct ChunkHead {
  std::uint64_t first_time = 0, last_time = 0;  // log times, as announced
  std::uint64_t unpacked_bytes = 0;
  std::uint32_t crc = 0;  // of the unpacked bytes; 0 = none
  std::string_view compression;
  std::uint64_t packed_bytes = 0;  // announced
  Bytes packed;                    // those that are there
};
// The head at the front of a chunk record's content; false when the content is too short for it.
bool parse_chunk_head(Bytes content, ChunkHead& head);

// Keeps the contexts of the decompressors. One thread at a time.
class Unpacker {
 public:
  Unpacker();
  Unpacker(Unpacker&&) noexcept;
  ~Unpacker();
  // Unpacks as far as the bytes allow; the buffer grows with what is really there, so that a lying size costs nothing.
  // Returns what stopped it, "" when exactly head.unpacked_bytes came out.
  std::string unpack(const ChunkHead& head, Buffer& out);

 private:
  struct Contexts;
  std::unique_ptr<Contexts> contexts_;
};

struct MessageHead {
  std::uint16_t channel = 0;
  std::uint32_t sequence = 0;
  std::uint64_t log_time = 0, publish_time = 0;
};
// False when the content is too short; `data` is the rest.
inline bool parse_message(Bytes content, MessageHead& head, Bytes& data) {
  ByteCursor cursor(content);
  head.channel = cursor.take<std::uint16_t>();
  head.sequence = cursor.take<std::uint32_t>();
  head.log_time = cursor.take<std::uint64_t>();
  head.publish_time = cursor.take<std::uint64_t>();
  data = cursor.rest();
  return cursor.ok();
}

// Calls on(op, content, offset of the content) for each record. Returns false when the last one exceeds the bytes;
// `stopped` is then the offset of its content.
template <class On>
bool for_each_record(Bytes bytes, std::uint64_t& stopped, On&& on) {
  ByteCursor cursor(bytes);
  while (!cursor.rest().empty()) {
    const auto op = static_cast<Op>(cursor.take<std::uint8_t>());
    const auto length = cursor.take<std::uint64_t>();
    stopped = bytes.size() - cursor.rest().size();
    const Bytes content = cursor.bytes(length);
    if (!cursor.ok()) return false;
    on(op, content, stopped);
  }
  return true;
}

}  // namespace takt::sensors::mcap
