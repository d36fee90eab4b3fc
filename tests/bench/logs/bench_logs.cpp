// Figures of log reading, run by tools/bench logs:
//   bench_logs --write FOLDER      small.mcap (1 kB messages) and large.mcap (1 MB messages), lz4, about 256 MB each
//   bench_logs --plain FILE        seconds that liblz4 and the CRC alone take for the chunks of the file
//   bench_logs --read FILE         seconds that takt takes to read every message
//   bench_logs --compare FILE      both, alternating; best of nine
//   bench_logs --flat FOLDER GB    writes a log of that many GB (unpacked), reads it, watches the resident memory
// Output: one line of JSON. Messages look like sensor data: slowly changing numbers with noise.
#include <lz4frame.h>
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "sensors/logs/crc32.h"
#include "sensors/logs/mcap_chunk.h"
#include "sensors/logs/mcap_reader.h"
#include "sensors/logs/mcap_writer.h"

using namespace takt;
using namespace takt::sensors;

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "bench_logs: %s\n", why.c_str());
  std::exit(1);
}

std::uint64_t random_bits() {  // xorshift64* (Vigna 2016)
  static std::uint64_t state = 0x9E3779B97F4A7C15ULL;
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 0x2545F4914F6CDD1DULL;
}

// 16-bit samples of a slow ramp; noise in the lower bits of some of them.
std::string sensor_like(std::size_t bytes) {
  std::string out(bytes, '\0');
  std::uint16_t value = static_cast<std::uint16_t>(random_bits());
  for (std::size_t i = 0; i + 1 < bytes; i += 2) {
    if (i % 64 < 16) value = static_cast<std::uint16_t>(value + (random_bits() & 15));
    std::memcpy(out.data() + i, &value, 2);
  }
  return out;
}

void write_log(const std::string& path, std::size_t message_bytes, std::uint64_t total) {
  auto writer = McapWriter::create(path, {.compression = Compression::kLz4});
  if (!writer) stop(writer.error().message);
  const auto schema = writer->add_schema({"bench.Samples", "jsonschema", "{}"});
  const auto a = writer->add_channel("/a", "json", *schema), b = writer->add_channel("/b", "json", *schema);
  const std::size_t kinds = std::max<std::size_t>(std::size_t{8 << 20} / message_bytes, 2);
  std::vector<std::string> messages;
  for (std::size_t i = 0; i < kinds; ++i) messages.push_back(sensor_like(message_bytes));
  std::int64_t time = 1'000'000'000;
  for (std::uint64_t done = 0, i = 0; done < total; done += message_bytes, ++i, time += 10'000) {
    const auto status =
        writer->write(i % 2 == 0 ? *a : *b, {time}, {time - 5000}, static_cast<std::uint32_t>(i), messages[i % kinds]);
    if (!status) stop(status.error().message);
  }
  if (const auto status = writer->finish(); !status) stop(status.error().message);
}

// Chunk records of a file without damage, in memory.
struct Packed {
  std::vector<std::string> records;
  std::uint64_t unpacked = 0;
};
Packed chunks_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(8);
  Packed out;
  for (;;) {
    char head[9];
    if (!file.read(head, sizeof head)) stop(path + ": no end of the data section");
    std::uint64_t length = 0;
    std::memcpy(&length, head + 1, 8);
    if (head[0] == 0x0F) return out;
    std::string content(length, '\0');
    if (!file.read(content.data(), static_cast<std::streamsize>(length))) stop(path + ": is cut");
    if (head[0] == 0x06) {
      mcap::ChunkHead chunk;
      if (!mcap::parse_chunk_head(std::as_bytes(std::span(content)), chunk)) stop(path + ": bad chunk");
      out.unpacked += chunk.unpacked_bytes;
      out.records.push_back(std::move(content));
    }
  }
}

// liblz4 as its documentation says, one context, one output buffer, and zlib's CRC or the faster one that takt uses.
double plain_seconds(const Packed& packed, bool by_zlib) {
  LZ4F_dctx* context = nullptr;
  LZ4F_createDecompressionContext(&context, LZ4F_VERSION);
  std::vector<char> out;
  const double start = now();
  for (const std::string& record : packed.records) {
    mcap::ChunkHead head;
    mcap::parse_chunk_head(std::as_bytes(std::span(record)), head);
    if (out.size() < head.unpacked_bytes) out.resize(head.unpacked_bytes);
    if (head.compression == "lz4") {
      std::size_t written = head.unpacked_bytes, consumed = head.packed.size();
      if (LZ4F_decompress(context, out.data(), &written, head.packed.data(), &consumed, nullptr) != 0 ||
          written != head.unpacked_bytes) {
        stop("liblz4 did not unpack a chunk in one call");
      }
    } else {
      std::memcpy(out.data(), head.packed.data(), head.packed.size());
    }
    const auto bytes = std::as_bytes(std::span(out).first(head.unpacked_bytes));
    const std::uint32_t crc =
        by_zlib ? static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()))
                : takt::sensors::crc32(0, bytes);
    if (crc != head.crc) stop("CRC differs");
  }
  const double seconds = now() - start;
  LZ4F_freeDecompressionContext(context);
  return seconds;
}

struct Read {
  double seconds = 0;
  std::uint64_t messages = 0, bytes = 0;
};
template <class Each>
Read read_log(const std::string& path, Each&& each) {
  Read out;
  const double start = now();
  const auto log = open_mcap(path);
  if (!log) stop(log.error().message);
  for (;;) {
    const auto message = (*log)->next();
    if (!message) stop(message.error().message);
    if (!*message) break;
    ++out.messages;
    out.bytes += (*message)->bytes.size();
    each(out);
  }
  out.seconds = now() - start;
  if (!(*log)->problems().empty()) stop(path + ": " + (*log)->problems().front().kind);
  return out;
}

double resident_mb() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t size = 0, resident = 0;
  file >> size >> resident;
  return static_cast<double>(resident * 4096) * 1e-6;
}

void compare(const std::string& path) {
  const Packed packed = chunks_of(path);
  double plain = 1e9, fast = 1e9, read = 1e9;
  for (int i = 0; i < 9; ++i) {
    plain = std::min(plain, plain_seconds(packed, true));
    fast = std::min(fast, plain_seconds(packed, false));
    read = std::min(read, read_log(path, [](const Read&) {}).seconds);
  }
  std::printf(
      "{\"plain_s\": %.4f, \"fast_crc_s\": %.4f, \"takt_s\": %.4f, \"ratio\": %.3f, \"share_of_fastest\": %.3f, "
      "\"unpacked_mb\": %.0f, \"chunks\": %zu}\n",
      plain, fast, read, plain / read, fast / read, static_cast<double>(packed.unpacked) * 1e-6, packed.records.size());
}

void flat(const std::string& folder, double gigabytes) {
  const std::string path = folder + "/flat.mcap";
  const auto total = static_cast<std::uint64_t>(gigabytes * 1e9);
  {
    // Zeros with a number in front: gigabytes that take little disk.
    auto writer = McapWriter::create(path, {.compression = Compression::kLz4});
    if (!writer) stop(writer.error().message);
    const auto channel = writer->add_channel("/a", "json", 0), slow = writer->add_channel("/slow", "json", 0);
    std::string message(4096, '\0');
    std::int64_t time = 1'000'000'000;
    for (std::uint64_t done = 0, i = 0; done < total; done += message.size(), ++i, time += 1000) {
      std::memcpy(message.data(), &i, sizeof i);
      // A little out of order, and now and then from a slow recorder.
      const std::int64_t arrival = i % 1000 == 0 ? time - 500'000 : time - static_cast<std::int64_t>(i % 7) * 300;
      const auto status = writer->write(i % 1000 == 0 ? *slow : *channel, {arrival}, {arrival}, 0, message);
      if (!status) stop(status.error().message);
    }
    if (const auto status = writer->finish(); !status) stop(status.error().message);
  }
  const double opened = now();
  {
    const auto log = open_mcap(path);
    if (!log || !(*log)->span()) stop("cannot be opened");
  }
  const double open_seconds = now() - opened;
  double early = 0, most = 0;
  const std::uint64_t count = (total + 4095) / 4096;
  const Read read = read_log(path, [&](const Read& so_far) {
    if (so_far.messages % 4096 != 0) return;
    const double now_mb = resident_mb();
    if (so_far.messages <= count / 20) early = std::max(early, now_mb);
    most = std::max(most, now_mb);
  });
  if (read.messages != count) stop("messages are missing");
  struct stat info {};
  ::stat(path.c_str(), &info);
  std::printf(
      "{\"gb\": %.2f, \"disk_mb\": %.0f, \"open_s\": %.4f, \"read_s\": %.2f, \"early_mb\": %.1f, \"most_mb\": %.1f}\n",
      static_cast<double>(read.bytes) * 1e-9, static_cast<double>(info.st_size) * 1e-6, open_seconds, read.seconds,
      early, most);
  std::filesystem::remove(path);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 2 ? argv[1] : "";
  const std::string where = argc > 2 ? argv[2] : "";
  if (what == "--write") {
    write_log(where + "/small.mcap", 1000, std::uint64_t{256} << 20);
    write_log(where + "/large.mcap", 1'000'000, std::uint64_t{256} << 20);
  } else if (what == "--plain") {
    std::printf("{\"seconds\": %.4f}\n", plain_seconds(chunks_of(where), true));
  } else if (what == "--read") {
    Read best = read_log(where, [](const Read&) {});
    for (int i = 0; i < 4; ++i) best.seconds = std::min(best.seconds, read_log(where, [](const Read&) {}).seconds);
    std::printf("{\"seconds\": %.4f, \"messages\": %llu, \"bytes\": %llu}\n", best.seconds,
                static_cast<unsigned long long>(best.messages), static_cast<unsigned long long>(best.bytes));
  } else if (what == "--compare") {
    compare(where);
  } else if (what == "--flat" && argc > 3) {
    flat(where, std::atof(argv[3]));
  } else {
    std::fprintf(stderr, "usage: bench_logs --write FOLDER | --plain|--read|--compare FILE | --flat FOLDER GB\n");
    return 2;
  }
  return 0;
}
