#include "sensors/logs/mcap_chunk.h"

#include <lz4frame.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

namespace takt::sensors::mcap {

std::span<std::byte> Buffer::resize(std::size_t bytes) {
  if (storage.size() < bytes) storage.resize(bytes);
  size = bytes;
  return std::span(storage).first(bytes);
}

bool parse_chunk_head(Bytes content, ChunkHead& head) {
  ByteCursor cursor(content);
  head.first_time = cursor.take<std::uint64_t>();
  head.last_time = cursor.take<std::uint64_t>();
  head.unpacked_bytes = cursor.take<std::uint64_t>();
  head.crc = cursor.take<std::uint32_t>();
  head.compression = cursor.text();
  head.packed_bytes = cursor.take<std::uint64_t>();
  if (!cursor.ok()) return false;
  const Bytes rest = cursor.rest();
  head.packed = rest.first(static_cast<std::size_t>(std::min<std::uint64_t>(head.packed_bytes, rest.size())));
  return true;
}

struct Unpacker::Contexts {
  Contexts() { LZ4F_createDecompressionContext(&lz4, LZ4F_VERSION); }
  Contexts(const Contexts&) = delete;
  Contexts& operator=(const Contexts&) = delete;
  ~Contexts() {
    LZ4F_freeDecompressionContext(lz4);
    ZSTD_freeDCtx(zstd);
  }
  LZ4F_dctx* lz4 = nullptr;
  ZSTD_DCtx* zstd = ZSTD_createDCtx();
};

Unpacker::Unpacker() : contexts_(std::make_unique<Contexts>()) {}
Unpacker::Unpacker(Unpacker&&) noexcept = default;
Unpacker::~Unpacker() = default;

namespace {

// Where the next bytes go: as much as is allocated already, or a sensible step more.
class Room {
 public:
  Room(Buffer& out, std::uint64_t expected, std::uint64_t step) : out_(out), expected_(expected), step_(step) {
    out_.size = 0;
  }
  std::span<std::byte> space() {
    auto& storage = out_.storage;
    if (out_.size == storage.size() && out_.size < expected_) {
      storage.resize(static_cast<std::size_t>(std::min(expected_, std::max<std::uint64_t>(storage.size() * 2, step_))));
    }
    const std::size_t end = static_cast<std::size_t>(std::min<std::uint64_t>(storage.size(), expected_));
    return std::span(storage).subspan(out_.size, end - out_.size);
  }
  void filled(std::size_t bytes) { out_.size += bytes; }

 private:
  Buffer& out_;
  std::uint64_t expected_, step_;
};

}  // namespace

std::string Unpacker::unpack(const ChunkHead& head, Buffer& out) {
  const std::uint64_t expected = head.unpacked_bytes;
  const Bytes packed = head.packed;
  if (head.compression.empty()) {
    const auto to = out.resize(packed.size());
    if (!packed.empty()) std::memcpy(to.data(), packed.data(), packed.size());
    return out.size == expected ? "" : "size differs from the announced " + std::to_string(expected) + " bytes";
  }
  std::string error;
  std::size_t left = packed.size();
  if (head.compression == "zstd") {
    ZSTD_DCtx_reset(contexts_->zstd, ZSTD_reset_session_only);
    Room room(out, expected, std::max<std::uint64_t>(packed.size() * 4, 65536));
    ZSTD_inBuffer input{packed.data(), left, 0};
    for (;;) {
      const auto space = room.space();
      ZSTD_outBuffer output{space.data(), space.size(), 0};
      const std::size_t before = input.pos;
      const std::size_t code = ZSTD_decompressStream(contexts_->zstd, &output, &input);
      room.filled(output.pos);
      if (ZSTD_isError(code) != 0) {
        error = std::string("zstd: ") + ZSTD_getErrorName(code);
        break;
      }
      if (input.pos == before && output.pos == 0) break;  // no progress: done, out of input or out of room
    }
    left = input.size - input.pos;
  } else {
    LZ4F_resetDecompressionContext(contexts_->lz4);
    // LZ4 packs at most 255 bytes into one: room for all of them at once, so that the output never moves and the
    // library need not keep a copy of its last 64 KiB.
    const std::uint64_t most = std::uint64_t{packed.size()} * 255 + 65536;
    LZ4F_decompressOptions_t stable{};
    stable.stableDst = expected <= most || expected <= out.storage.size() ? 1 : 0;
    Room room(out, expected, most);
    const std::byte* in = packed.data();
    for (;;) {
      const auto space = room.space();
      std::size_t written = space.size(), consumed = left;
      const std::size_t code = LZ4F_decompress(contexts_->lz4, space.data(), &written, in, &consumed, &stable);
      if (LZ4F_isError(code) != 0) {
        error = std::string("lz4: ") + LZ4F_getErrorName(code);
        break;
      }
      room.filled(written);
      in += consumed;
      left -= consumed;
      if (written == 0 && consumed == 0) break;
    }
  }
  if (!error.empty()) return error;
  if (left != 0) return "unpacks to more than the announced " + std::to_string(expected) + " bytes";
  if (out.size != expected) {
    return "unpacks to " + std::to_string(out.size) + " instead of " + std::to_string(expected) + " bytes";
  }
  return "";
}

}  // namespace takt::sensors::mcap
