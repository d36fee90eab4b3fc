#include "sensors/logs/decompress.h"

#include <bzlib.h>
#include <lz4frame.h>
#include <zstd.h>

#include <algorithm>

namespace takt::sensors {
namespace {

// What one call of a library did.
struct Step {
  std::size_t consumed = 0, produced = 0;
  bool finished = false;
  std::string error;
};

// Feeds `step(in, room)` until it ends, fails, or makes no progress.
template <class Next>
std::string run(std::span<const std::byte> packed, std::uint64_t limit, std::vector<std::byte>& out, Next&& next) {
  std::size_t filled = 0;
  std::string error;
  for (;;) {
    if (filled == out.size() && filled < limit) {
      const std::uint64_t more = std::max<std::uint64_t>({out.size() * 2, packed.size() * 4, 65536});
      out.resize(static_cast<std::size_t>(std::min(more, limit)));
    }
    const Step step = next(packed, std::span(out).subspan(filled));
    filled += step.produced;
    packed = packed.subspan(step.consumed);
    if (!step.error.empty()) {
      error = step.error;
      break;
    }
    if (step.finished) {
      if (!packed.empty()) error = std::to_string(packed.size()) + " bytes follow the packed data";
      break;
    }
    if (step.consumed == 0 && step.produced == 0) {
      error = filled == limit ? "unpacks to more than " + std::to_string(limit) + " bytes" : "the packed data are cut";
      break;
    }
  }
  out.resize(filled);
  return error;
}

std::string bz2(std::span<const std::byte> packed, std::uint64_t limit, std::vector<std::byte>& out) {
  bz_stream stream{};
  if (BZ2_bzDecompressInit(&stream, 0, 0) != BZ_OK) return "bz2: no memory";
  auto result = run(packed, limit, out, [&](std::span<const std::byte> in, std::span<std::byte> room) {
    constexpr std::size_t kMost = 1U << 30;
    // The library does not write through next_in.
    stream.next_in = const_cast<char*>(reinterpret_cast<const char*>(in.data()));
    stream.avail_in = static_cast<unsigned>(std::min(in.size(), kMost));
    stream.next_out = reinterpret_cast<char*>(room.data());
    stream.avail_out = static_cast<unsigned>(std::min(room.size(), kMost));
    const unsigned in_before = stream.avail_in, out_before = stream.avail_out;
    const int code = BZ2_bzDecompress(&stream);
    Step step{in_before - stream.avail_in, out_before - stream.avail_out, code == BZ_STREAM_END, ""};
    if (code != BZ_OK && code != BZ_STREAM_END) step.error = "bz2: damaged data (code " + std::to_string(code) + ")";
    return step;
  });
  BZ2_bzDecompressEnd(&stream);
  return result;
}

std::string lz4(std::span<const std::byte> packed, std::uint64_t limit, std::vector<std::byte>& out) {
  LZ4F_dctx* context = nullptr;
  if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)) != 0) return "lz4: no memory";
  auto result = run(packed, limit, out, [&](std::span<const std::byte> in, std::span<std::byte> room) {
    std::size_t produced = room.size(), consumed = in.size();
    const std::size_t code = LZ4F_decompress(context, room.data(), &produced, in.data(), &consumed, nullptr);
    if (LZ4F_isError(code) != 0) return Step{0, 0, false, std::string("lz4: ") + LZ4F_getErrorName(code)};
    return Step{consumed, produced, code == 0, ""};
  });
  LZ4F_freeDecompressionContext(context);
  return result;
}

std::string zstd(std::span<const std::byte> packed, std::uint64_t limit, std::vector<std::byte>& out) {
  ZSTD_DCtx* context = ZSTD_createDCtx();
  if (context == nullptr) return "zstd: no memory";
  auto result = run(packed, limit, out, [&](std::span<const std::byte> in, std::span<std::byte> room) {
    ZSTD_inBuffer input{in.data(), in.size(), 0};
    ZSTD_outBuffer output{room.data(), room.size(), 0};
    const std::size_t code = ZSTD_decompressStream(context, &output, &input);
    if (ZSTD_isError(code) != 0) return Step{0, 0, false, std::string("zstd: ") + ZSTD_getErrorName(code)};
    return Step{input.pos, output.pos, code == 0, ""};
  });
  ZSTD_freeDCtx(context);
  return result;
}

}  // namespace

std::string decompress(std::string_view compression, std::span<const std::byte> packed, std::uint64_t limit,
                       std::vector<std::byte>& out) {
  out.clear();
  if (compression == "bz2") return bz2(packed, limit, out);
  if (compression == "lz4") return lz4(packed, limit, out);
  if (compression == "zstd") return zstd(packed, limit, out);
  return "unknown compression '" + std::string(compression.substr(0, 32)) + "'";
}

}  // namespace takt::sensors
