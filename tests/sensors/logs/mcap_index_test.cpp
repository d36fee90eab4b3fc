// Reading by the index of the file: the same messages as by scanning, damaged indices, memory, and what survives when a
// file is cut or one byte of it changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <zlib.h>
#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "sensors/logs/crc32.h"
#include "sensors/logs/mcap_chunk.h"
#include "sensors/logs/mcap_reader.h"
#include "sensors/logs/mcap_writer.h"
#include "tests/sensors/logs/log_drain.h"
#include "tests/sensors/logs/mcap_bytes.h"

namespace takt::sensors {
namespace {

using test::drain;
using test::read_bytes;
using test::Seen;
using test::temporary;
using test::write_bytes;
using ::testing::HasSubstr;

std::string property(const LogReader& log, const std::string& key) {
  for (const auto& [name, value] : log.properties()) {
    if (name == key) return value;
  }
  return "";
}

// Chunks of two compressions that overlap in time, arrivals out of order, many ties, two channels of one topic.
std::string overlapping(const std::string& name, int messages = 400, std::uint64_t chunk_bytes = 700) {
  const std::string path = temporary(name);
  auto writer = McapWriter::create(path, {Compression::kLz4, chunk_bytes});
  const auto schema = writer->add_schema({"test.Text", "jsonschema", "{}"});
  const auto a = writer->add_channel("/a", "json", *schema),
             b = writer->add_channel("/b", "json", *schema, {{"k", "v"}}),
             a2 = writer->add_channel("/a", "json", 0, {}, Compression::kNone);
  for (int i = 0; i < messages; ++i) {
    const std::uint16_t channel = i % 5 == 0 ? *a2 : i % 2 == 0 ? *a : *b;
    const std::int64_t arrival = 10'000 + i / 4 * 100 - i % 37 * 60;
    EXPECT_TRUE(
        writer->write(channel, {arrival}, {arrival - i % 3}, static_cast<std::uint32_t>(i),
                      "<" + std::to_string(100'000 + i) + std::string(static_cast<std::size_t>(i % 50), 'x') + ">"));
  }
  EXPECT_TRUE(writer->add_attachment("a.bin", "application/octet-stream", {5}, std::string(5000, 'a')));
  EXPECT_TRUE(writer->add_metadata("drive", {{"place", "here"}, {"car", "one"}}));
  EXPECT_TRUE(writer->finish());
  return path;
}

std::vector<Seen> scanned(const std::string& path) {
  auto reader = open_mcap(path, {}, {.scan = true});
  EXPECT_TRUE(reader);
  EXPECT_EQ(property(**reader, "read by"), "scan");
  return drain(**reader);
}

TEST(Crc32, AgreesWithZlib) {
  std::vector<std::byte> bytes(5000);
  std::uint32_t state = 1;
  for (std::byte& byte : bytes) byte = static_cast<std::byte>((state = state * 1664525 + 1013904223) >> 24);
  for (std::size_t size = 0; size < 400; ++size) {
    for (const std::size_t from : {0u, 1u, 7u}) {
      const auto part = std::span(bytes).subspan(from, size);
      EXPECT_EQ(crc32(0x12345678, part),
                ::crc32_z(0x12345678, reinterpret_cast<const Bytef*>(part.data()), part.size()));
    }
  }
  const std::uint32_t front = crc32(0, std::span(bytes).first(777));
  EXPECT_EQ(crc32(front, std::span(bytes).subspan(777)), crc32(0, bytes));
  EXPECT_EQ(crc32(0, bytes), ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

TEST(McapIndex, GivesWhatAScanGives) {
  const std::string path = overlapping("same.mcap");
  const auto expected = scanned(path);
  ASSERT_EQ(expected.size(), 400u);
  for (const std::uint64_t cache : {std::uint64_t{1}, std::uint64_t{3000}, std::uint64_t{1} << 28}) {
    auto reader = open_mcap(path, {}, {.cache_bytes = cache});
    ASSERT_TRUE(reader);
    EXPECT_EQ(property(**reader, "read by"), "index");
    std::uint64_t announced = 0;
    for (const auto& channel : (*reader)->channels()) announced += channel.messages;
    EXPECT_EQ(announced, 400u);
    EXPECT_EQ((*reader)->span()->first.ns, expected.front().arrival);
    EXPECT_EQ((*reader)->span()->second.ns, expected.back().arrival);
    EXPECT_EQ(drain(**reader), expected);
    EXPECT_TRUE((*reader)->problems().empty()) << (*reader)->problems()[0].kind << (*reader)->problems()[0].detail;
    (*reader)->select({"/b"});
    const auto only = drain(**reader);
    EXPECT_EQ(only.size(), 160u);
    (*reader)->select({});
    EXPECT_EQ(drain(**reader), expected);
  }
}

TEST(McapIndex, OpensWithoutUnpackingChunks) {
  // A chunk that cannot be unpacked is no matter until its messages are due.
  const std::string path = overlapping("lazy.mcap");
  std::string bytes = read_bytes(path);
  bytes[bytes.find("<100000") + 2] = 'X';  // message 0 lies in the chunk without compression
  write_bytes(path, bytes);
  auto reader = open_mcap(path);
  ASSERT_TRUE(reader);
  EXPECT_TRUE((*reader)->problems().empty());
  EXPECT_LT(drain(**reader).size(), 400u);
  ASSERT_EQ((*reader)->problems().size(), 1u);
  EXPECT_EQ((*reader)->problems()[0].kind, "bad CRC");
}

TEST(McapIndex, ChannelsAttachmentsAndMetadata) {
  for (const bool scan : {false, true}) {
    auto reader = open_mcap(overlapping("extras.mcap"), {}, {.scan = scan});
    ASSERT_TRUE(reader);
    const auto& channels = (*reader)->channels();
    ASSERT_EQ(channels.size(), 3u);
    EXPECT_EQ(channels[0].topic, "/a");
    EXPECT_EQ(channels[2].topic, "/a");
    EXPECT_EQ(channels[1].schema_data, "{}");
    EXPECT_EQ(channels[1].schema_encoding, "jsonschema");
    EXPECT_EQ(channels[1].metadata, (std::map<std::string, std::string>{{"k", "v"}}));
    EXPECT_EQ(channels[2].schema, "");
    ASSERT_EQ((*reader)->attachments().size(), 1u);
    EXPECT_EQ((*reader)->attachments()[0].name, "a.bin");
    EXPECT_EQ((*reader)->read_attachment(0).value(), std::string(5000, 'a'));
    EXPECT_FALSE((*reader)->read_attachment(1));
    ASSERT_EQ((*reader)->metadata().size(), 1u);
    EXPECT_EQ((*reader)->metadata()[0].entries.at("place"), "here");
    auto message = (*reader)->next();
    ASSERT_TRUE(message);
    EXPECT_EQ((*message)->sequence, 35u);
  }
}

TEST(McapIndex, DamagedAttachmentIsRefused) {
  const std::string path = overlapping("attachment.mcap");
  std::string bytes = read_bytes(path);
  bytes[bytes.find("aaaaaaaaaa")] = 'b';
  write_bytes(path, bytes);
  auto reader = open_mcap(path);
  ASSERT_TRUE(reader);
  EXPECT_EQ((*reader)->read_attachment(0).error().code, Code::kInput);
}

// An index whose checksum is right but whose content is not, by replacing text in the summary.
std::string with_summary(const std::string& path, const std::function<void(std::string&)>& change) {
  std::string bytes = read_bytes(path);
  const std::size_t footer = bytes.size() - 8 - 29;
  std::uint64_t start = 0;
  std::memcpy(&start, bytes.data() + footer + 9, 8);
  std::string summary = bytes.substr(start, footer - start);
  change(summary);
  bytes.replace(start, footer - start, summary);
  const std::string covered = bytes.substr(start, footer - start + 25);
  const std::uint32_t crc = mcap::crc_of(0, std::as_bytes(std::span(covered)));
  bytes.replace(footer + 25, 4, test::le(crc));
  const std::string out = temporary("lying.mcap");
  write_bytes(out, bytes);
  return out;
}
// Positions of the records of one kind in the summary: of their contents.
std::vector<std::size_t> records_of(const std::string& summary, char op) {
  std::vector<std::size_t> out;
  for (std::size_t at = 0; at < summary.size();) {
    std::uint64_t length = 0;
    std::memcpy(&length, summary.data() + at + 1, 8);
    if (summary[at] == op) out.push_back(at + 9);
    at += 9 + length;
  }
  return out;
}

TEST(McapIndex, AnIndexThatContradictsTheFileIsNotTrusted) {
  const std::string path = overlapping("contradicted.mcap");
  const auto expected = scanned(path);
  const auto check = [&](const char* what, const std::function<void(std::string&)>& change, bool all) {
    SCOPED_TRACE(what);
    auto reader = open_mcap(with_summary(path, change));
    ASSERT_TRUE(reader);
    const auto seen = drain(**reader);
    EXPECT_FALSE((*reader)->problems().empty());
    EXPECT_EQ(property(**reader, "read by"), "scan");
    if (all) {
      EXPECT_EQ(seen, expected);
    } else {  // found too late: in order still, and what is missing is counted
      EXPECT_TRUE(
          std::is_sorted(seen.begin(), seen.end(), [](const Seen& a, const Seen& b) { return a.arrival < b.arrival; }));
      EXPECT_EQ((*reader)->problems().back().kind, "messages out of order");
      (*reader)->rewind();
      EXPECT_EQ(drain(**reader), expected) << "once the file is scanned, everything comes";
    }
  };
  const auto set = [](char op, std::size_t record, std::size_t offset, std::uint64_t value) {
    return
        [=](std::string& summary) { summary.replace(records_of(summary, op).at(record) + offset, 8, test::le(value)); };
  };
  check("fewer messages in the statistics", set('\x0B', 0, 0, 399), true);
  check("a chunk that is not there", set('\x08', 1, 16, 5000), true);
  check("a chunk of another length", set('\x08', 0, 24, 60), true);
  check("a chunk that begins later", set('\x08', 1, 0, 100'000), true);
  check(
      "a chunk that claims a later start, within its end",
      [&](std::string& summary) {
        const std::size_t at = records_of(summary, '\x08').at(3);
        std::uint64_t last = 0;
        std::memcpy(&last, summary.data() + at + 8, 8);
        summary.replace(at, 8, test::le(last));
      },
      false);
}

TEST(McapIndex, WithoutAChecksumTheChunksAreAsked) {
  const std::string path = overlapping("no-crc.mcap");
  const auto expected = scanned(path);
  std::string bytes = read_bytes(path);
  bytes.replace(bytes.size() - 12, 4, std::string(4, '\0'));
  write_bytes(path, bytes);
  auto reader = open_mcap(path);
  ASSERT_TRUE(reader);
  EXPECT_EQ(property(**reader, "read by"), "index");
  EXPECT_EQ(drain(**reader), expected);
  const std::size_t footer = bytes.size() - 8 - 29;
  std::uint64_t start = 0;
  std::memcpy(&start, bytes.data() + footer + 9, 8);
  const std::string summary = bytes.substr(start, footer - start);
  bytes[start + records_of(summary, '\x08').at(2)] ^= 0x10;  // start time of a chunk
  write_bytes(path, bytes);
  reader = open_mcap(path);
  ASSERT_TRUE(reader);
  EXPECT_EQ(property(**reader, "read by"), "scan");
  EXPECT_EQ(drain(**reader), expected);
}

TEST(McapIndex, MessagesOutsideChunksBesideAnIndex) {
  using namespace test;
  // The writer's file with a message between header and data: the index stays right when it is moved along.
  const std::string path = temporary("outside.mcap");
  write_bytes(path, kMagic + header() + channel(1, 0, "/t") + message(1, 30, 3, "c") + message(1, 10, 1, "a") +
                        chunk("", 2 * 31 + 2, message(1, 20, 2, "b") + message(1, 40, 4, "d")) +
                        message(1, 25, 2, "bb") + data_end() + footer());
  auto reader = open_mcap(path);
  ASSERT_TRUE(reader);
  EXPECT_TRUE((*reader)->problems().empty()) << (*reader)->problems()[0].detail;
  std::string order;
  for (const Seen& s : drain(**reader)) order += s.bytes + " ";
  EXPECT_EQ(order, "a b bb c d ");
  EXPECT_EQ(property(**reader, "messages outside chunks"), "yes");
}

TEST(McapIndex, MemoryStaysFlat) {
  // 300 MB of messages in 1 MiB chunks that overlap: only a few are kept.
  const std::string path = temporary("flat.mcap");
  {
    auto writer = McapWriter::create(path, {Compression::kLz4});
    const auto channel = writer->add_channel("/a", "json", 0);
    std::string bytes(10'000, '\0');
    for (int i = 0; i < 30'000; ++i) {
      ASSERT_TRUE(writer->write(*channel, {1'000'000 + i * 1000 - i % 7 * 30'000}, {0}, 0, bytes));
    }
    ASSERT_TRUE(writer->finish());
  }
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  for (const bool scan : {false, true}) {
    auto reader = open_mcap(path, {}, {.scan = scan});
    ASSERT_TRUE(reader);
    std::uint64_t count = 0;
    std::int64_t last = 0;
    for (;;) {
      auto message = (*reader)->next();
      ASSERT_TRUE(message);
      if (!*message) break;
      EXPECT_GE((*message)->arrival.ns, last);
      last = (*message)->arrival.ns;
      ++count;
    }
    EXPECT_EQ(count, 30'000u);
  }
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 20'000) << "kB";
}

TEST(McapIndex, EverythingOverlapsWithinTheMemoryGiven) {
  // 64 MB that all overlap, a reader that may keep 4 MB: chunks are unpacked again, the order holds.
  const std::string path = temporary("overlap.mcap");
  std::vector<std::int64_t> times;
  {
    auto writer = McapWriter::create(path, {Compression::kLz4});
    const auto channel = writer->add_channel("/a", "json", 0);
    std::string bytes(100'000, '\0');
    for (int i = 0; i < 640; ++i) {
      times.push_back(1000 + i % 9 * 1000 + i / 9);
      ASSERT_TRUE(writer->write(*channel, {times.back()}, {0}, 0, bytes));
    }
    ASSERT_TRUE(writer->finish());
  }
  std::sort(times.begin(), times.end());
  auto reader = open_mcap(path, {}, {.cache_bytes = 4 << 20});
  ASSERT_TRUE(reader);
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  for (const std::int64_t time : times) {
    auto message = (*reader)->next();
    ASSERT_TRUE(message && *message);
    EXPECT_EQ((*message)->arrival.ns, time);
  }
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 12'000) << "kB";
  EXPECT_NE(property(**reader, "chunks unpacked again (they overlap in time)"), "");
}

// Where the chunks of a file lie and which messages are in them.
struct ChunkSpan {
  std::size_t begin = 0, end = 0;
  std::set<std::string> bytes;
};
std::vector<ChunkSpan> chunks_of(const std::string& file) {
  std::vector<ChunkSpan> out;
  mcap::Unpacker unpacker;
  for (std::size_t at = 8; file[at] != '\x0F';) {
    std::uint64_t length = 0;
    std::memcpy(&length, file.data() + at + 1, 8);
    if (file[at] == '\x06') {
      ChunkSpan& span = out.emplace_back();
      span.begin = at;
      span.end = at + 9 + length;
      mcap::ChunkHead head;
      const std::string content = file.substr(at + 9, length);
      EXPECT_TRUE(mcap::parse_chunk_head(std::as_bytes(std::span(content)), head));
      mcap::Buffer buffer;
      EXPECT_EQ(unpacker.unpack(head, buffer), "");
      std::uint64_t stopped = 0;
      EXPECT_TRUE(mcap::for_each_record(buffer.bytes(), stopped, [&](mcap::Op, mcap::Bytes content_, std::uint64_t) {
        const auto data = content_.subspan(mcap::kMessageHead);
        span.bytes.emplace(reinterpret_cast<const char*>(data.data()), data.size());
      }));
    }
    at += 9 + length;
  }
  return out;
}

void keeps_undamaged_chunks(const std::string& damaged, const std::vector<ChunkSpan>& chunks,
                            const std::function<bool(const ChunkSpan&)>& is_whole) {
  const std::string path = temporary("survives.mcap");
  write_bytes(path, damaged);
  for (const bool scan : {false, true}) {
    auto reader = open_mcap(path, {}, {.scan = scan});
    if (!reader) {
      EXPECT_EQ(reader.error().code, Code::kInput);
      EXPECT_TRUE(std::none_of(chunks.begin(), chunks.end(), is_whole)) << reader.error().message;
      continue;
    }
    std::set<std::string> found;
    for (Seen& s : drain(**reader)) found.insert(std::move(s.bytes));
    for (const ChunkSpan& chunk : chunks) {
      if (!is_whole(chunk)) continue;
      for (const std::string& bytes : chunk.bytes) {
        EXPECT_TRUE(found.contains(bytes))
            << (scan ? "scan" : "index") << ", chunk at " << chunk.begin << ": " << bytes;
      }
    }
  }
}

TEST(McapDamage, CutAtAThousandOffsetsKeepsEveryWholeChunk) {
  const std::string whole = read_bytes(overlapping("cut-source.mcap"));
  const auto chunks = chunks_of(whole);
  ASSERT_GT(chunks.size(), 15u);
  for (std::size_t i = 0; i < 1000; ++i) {
    const std::size_t cut = whole.size() * i / 1000;
    SCOPED_TRACE("cut at " + std::to_string(cut));
    keeps_undamaged_chunks(whole.substr(0, cut), chunks, [&](const ChunkSpan& c) { return c.end <= cut; });
    if (HasFailure()) return;
  }
}

TEST(McapDamage, AThousandDamagedBytesKeepEveryOtherChunk) {
  const std::string whole = read_bytes(overlapping("damage-source.mcap"));
  const auto chunks = chunks_of(whole);
  for (std::size_t i = 0; i < 1000; ++i) {
    const std::size_t at = whole.size() * i / 1000;
    SCOPED_TRACE("damaged at " + std::to_string(at));
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (i % 2 == 0 ? 0x01 : 0x84));
    keeps_undamaged_chunks(damaged, chunks, [&](const ChunkSpan& c) { return at < c.begin || at >= c.end; });
    if (HasFailure()) return;
  }
}

TEST(McapDamage, CutAndDamagedFilesKeepTheirOtherChunks) {
  // A recorder that was killed, and a damaged byte: no index helps.
  std::string whole = read_bytes(overlapping("both-source.mcap"));
  const auto chunks = chunks_of(whole);
  whole.resize(chunks.back().end);
  for (std::size_t at = chunks.front().begin; at < chunks[4].end; ++at) {
    SCOPED_TRACE("damaged at " + std::to_string(at));
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x84);
    keeps_undamaged_chunks(damaged, chunks, [&](const ChunkSpan& c) { return at + 700 < c.begin || at >= c.end; });
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace takt::sensors
