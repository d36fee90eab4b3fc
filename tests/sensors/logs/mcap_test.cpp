// Writer and reader against each other, damaged files, hand-made files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "sensors/logs/mcap_reader.h"
#include "sensors/logs/mcap_writer.h"
#include "tests/sensors/logs/mcap_bytes.h"

namespace takt::sensors {
namespace {

using test::read_bytes;
using test::temporary;
using test::write_bytes;
using ::testing::HasSubstr;

struct Seen {
  std::string topic;
  std::uint64_t index = 0;
  std::int64_t arrival = 0, capture = 0;
  std::string bytes;
  friend bool operator==(const Seen&, const Seen&) = default;
};
void PrintTo(const Seen& s, std::ostream* out) {
  *out << s.topic << "#" << s.index << " at " << s.arrival << "/" << s.capture << " '" << s.bytes.substr(0, 20) << "'";
}

std::vector<Seen> drain(LogReader& reader) {
  std::vector<Seen> all;
  for (;;) {
    auto message = reader.next();
    if (!message) {
      ADD_FAILURE() << message.error().message;
      return all;
    }
    if (!*message) return all;
    const LogMessage& m = **message;
    all.push_back({m.channel->topic, m.index, m.arrival.ns, m.capture.ns,
                   std::string(reinterpret_cast<const char*>(m.bytes.data()), m.bytes.size())});
  }
}

// Payload k: unique, and found by its text in an uncompressed file.
std::string payload(int k) { return "<payload " + std::to_string(1000 + k) + " of the test>"; }

constexpr int kMessages = 24;

// Three topics in several chunks; arrivals do not ascend, some are equal.
std::string small_file(const std::string& name, Compression compression, std::uint64_t chunk_bytes = 300) {
  const std::string path = temporary(name);
  auto writer = McapWriter::create(path, {compression, chunk_bytes});
  EXPECT_TRUE(writer) << writer.error().message;
  const auto schema = writer->add_schema({"test.Text", "protobuf", "descriptor"});
  EXPECT_EQ(writer->add_schema({"test.Text", "protobuf", "descriptor"}).value(), schema.value());
  const auto a = writer->add_channel("/a", "protobuf", *schema);
  const auto b = writer->add_channel("/b", "protobuf", *schema, {{"key", "value"}}, Compression::kNone);
  const auto c = writer->add_channel("/c", "json", 0);
  for (int k = 0; k < kMessages; ++k) {
    const std::uint16_t channel = k % 3 == 0 ? *a : k % 3 == 1 ? *c : *b;
    const std::int64_t arrival = 1000 + (k / 3) * 100 - (k % 7 == 0 ? 250 : 0);
    EXPECT_TRUE(writer->write(channel, {arrival}, {arrival - 5}, static_cast<std::uint32_t>(k), payload(k)));
  }
  EXPECT_TRUE(writer->add_attachment("note.txt", "text/plain", {1000}, "attached"));
  EXPECT_TRUE(writer->add_metadata("takt", {{"git", "abc"}}));
  const auto status = writer->finish();
  EXPECT_TRUE(status) << status.error().message;
  return path;
}

std::vector<Seen> expected_order() {
  struct Key {
    std::int64_t arrival;
    std::string topic;
    int k;
  };
  std::vector<Key> keys;
  for (int k = 0; k < kMessages; ++k) {
    keys.push_back({1000 + (k / 3) * 100 - (k % 7 == 0 ? 250 : 0), k % 3 == 0 ? "/a" : k % 3 == 1 ? "/c" : "/b", k});
  }
  std::sort(keys.begin(), keys.end(), [](const Key& x, const Key& y) {
    return std::tie(x.arrival, x.topic, x.k) < std::tie(y.arrival, y.topic, y.k);
  });
  std::vector<Seen> out;
  std::map<std::string, std::uint64_t> next;
  for (const Key& key : keys) {
    out.push_back({key.topic, next[key.topic]++, key.arrival, key.arrival - 5, payload(key.k)});
  }
  return out;
}

class EveryCompression : public ::testing::TestWithParam<Compression> {};
INSTANTIATE_TEST_SUITE_P(Mcap, EveryCompression,
                         ::testing::Values(Compression::kNone, Compression::kLz4, Compression::kZstd));

TEST_P(EveryCompression, RoundTripGivesTheTotalOrder) {
  for (const std::uint64_t chunk_bytes : {1u, 300u, 1u << 20}) {
    auto reader = open_log(small_file("roundtrip.mcap", GetParam(), chunk_bytes));
    ASSERT_TRUE(reader) << reader.error().message;
    EXPECT_TRUE((*reader)->problems().empty()) << (*reader)->problems()[0].kind << (*reader)->problems()[0].detail;
    EXPECT_EQ(drain(**reader), expected_order());
    EXPECT_EQ((*reader)->span()->first.ns, expected_order().front().arrival);
    EXPECT_EQ((*reader)->span()->second.ns, expected_order().back().arrival);
    const auto& channels = (*reader)->channels();
    ASSERT_EQ(channels.size(), 3u);
    EXPECT_EQ(channels[0].topic, "/a");
    EXPECT_EQ(channels[0].schema, "test.Text");
    EXPECT_EQ(channels[2].schema, "");
    EXPECT_EQ(channels[2].encoding, "json");
    EXPECT_EQ(channels[0].messages, 8u);
  }
}

TEST_P(EveryCompression, SelectAndRewind) {
  auto reader = open_log(small_file("select.mcap", GetParam()));
  ASSERT_TRUE(reader);
  ASSERT_TRUE((*reader)->next());
  (*reader)->select({"/b"});
  std::vector<Seen> only_b;
  for (const Seen& s : expected_order()) {
    if (s.topic == "/b") only_b.push_back(s);
  }
  EXPECT_EQ(drain(**reader), only_b);
  (*reader)->rewind();
  EXPECT_EQ(drain(**reader), only_b);
  (*reader)->select({});
  EXPECT_EQ(drain(**reader), expected_order());
}

TEST_P(EveryCompression, SmallCacheGivesTheSameMessages) {
  auto reader = open_mcap(small_file("cache.mcap", GetParam()), {}, {.cache_bytes = 1});
  ASSERT_TRUE(reader);
  EXPECT_EQ(drain(**reader), expected_order());
}

TEST_P(EveryCompression, CutAnywhereRecoversEverythingBefore) {
  const std::string whole = read_bytes(small_file("whole.mcap", GetParam()));
  const std::string path = temporary("cut.mcap");
  const auto all = expected_order();
  std::size_t before = 0;
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    SCOPED_TRACE("cut at byte " + std::to_string(cut));
    write_bytes(path, whole.substr(0, cut));
    auto reader = open_log(path);
    if (!reader) {
      EXPECT_EQ(reader.error().code, Code::kInput);
      EXPECT_THAT(reader.error().message, HasSubstr(path));
      EXPECT_EQ(before, 0u);
      continue;
    }
    EXPECT_FALSE((*reader)->problems().empty());
    const auto seen = drain(**reader);
    EXPECT_GE(seen.size(), before) << "a longer file must not give fewer messages";
    before = seen.size();
    for (const Seen& s : seen) {
      EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Seen& o) {
        return o.topic == s.topic && o.bytes == s.bytes && o.arrival == s.arrival && o.capture == s.capture;
      }));
    }
    if (GetParam() == Compression::kNone) {
      // A payload that lies wholly in the file must come back, even from a cut chunk.
      std::size_t there = 0;
      for (int k = 0; k < kMessages; ++k) {
        if (whole.find(payload(k)) + payload(k).size() <= cut) ++there;
      }
      EXPECT_EQ(seen.size(), there);
    }
  }
  EXPECT_EQ(before, all.size());
}

TEST_P(EveryCompression, FlippedByteIsNoticed) {
  const std::string whole = read_bytes(small_file("flip-source.mcap", GetParam()));
  const std::string path = temporary("flip.mcap");
  const auto all = expected_order();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    SCOPED_TRACE("byte " + std::to_string(i));
    std::string bad = whole;
    bad[i] = static_cast<char>(bad[i] ^ 0x41);
    write_bytes(path, bad);
    auto reader = open_log(path);
    if (!reader) {
      EXPECT_EQ(reader.error().code, Code::kInput);
      continue;
    }
    const auto seen = drain(**reader);
    if ((*reader)->problems().empty()) {
      EXPECT_EQ(seen, all) << "damage went unnoticed";
    }
  }
}

TEST(Mcap, BadChunkIsLeftOutAndReadingGoesOn) {
  const std::string path = small_file("bad-chunk.mcap", Compression::kNone);
  std::string bytes = read_bytes(path);
  bytes[bytes.find(payload(0)) + 3] = 'X';
  write_bytes(path, bytes);
  auto reader = open_mcap(path, {}, {.scan = true});
  ASSERT_TRUE(reader);
  ASSERT_GE((*reader)->problems().size(), 1u);
  EXPECT_EQ((*reader)->problems()[0].kind, "bad CRC");
  EXPECT_EQ(bytes[static_cast<std::size_t>((*reader)->problems()[0].offset)], '\x06') << "offset of the chunk record";
  const auto seen = drain(**reader);
  EXPECT_GT(seen.size(), 10u);
  EXPECT_LT(seen.size(), expected_order().size());
}

TEST(Mcap, DamagedLengthResumesAtTheNextIndexedChunk) {
  const std::string path = small_file("resume.mcap", Compression::kNone);
  std::string bytes = read_bytes(path);
  // The first chunk record: its length field becomes huge.
  auto reader = open_log(path);
  bytes[bytes.find(payload(0)) + 3] = 'X';
  write_bytes(path, bytes);
  const std::uint64_t first_chunk = open_mcap(path, {}, {.scan = true}).value()->problems()[0].offset;
  bytes.replace(static_cast<std::size_t>(first_chunk) + 1, 8, std::string(8, '\x7f'));
  write_bytes(path, bytes);
  reader = open_mcap(path, {}, {.scan = true});
  ASSERT_TRUE(reader) << reader.error().message;
  ASSERT_FALSE((*reader)->problems().empty());
  EXPECT_EQ((*reader)->problems()[0].kind, "truncated Chunk");
  EXPECT_EQ((*reader)->problems()[0].offset, first_chunk);
  EXPECT_GT(drain(**reader).size(), 10u);
}

TEST(Mcap, EqualKeysComeInFileOrderAndTopicsByName) {
  const std::string path = temporary("ties.mcap");
  auto writer = McapWriter::create(path);
  ASSERT_TRUE(writer);
  const auto z = writer->add_channel("/z", "json", 0), a = writer->add_channel("/a", "json", 0),
             a2 = writer->add_channel("/a", "json", 0);
  for (const auto& [channel, capture, text] : std::vector<std::tuple<std::uint16_t, std::int64_t, std::string>>{
           {*z, 1, "z1"}, {*a2, 2, "second channel"}, {*a, 2, "first"}, {*a, 2, "second"}, {*a, 1, "earlier"}}) {
    ASSERT_TRUE(writer->write(channel, {7}, {capture}, 0, text));
  }
  ASSERT_TRUE(writer->finish());
  auto reader = open_log(path);
  ASSERT_TRUE(reader);
  std::vector<std::string> order;
  for (const Seen& s : drain(**reader)) order.push_back(s.bytes);
  EXPECT_EQ(order, (std::vector<std::string>{"earlier", "first", "second", "second channel", "z1"}));
}

TEST(Mcap, ReleaseRulesMoveArrivals) {
  const std::string path = temporary("rules.mcap");
  auto writer = McapWriter::create(path);
  ASSERT_TRUE(writer);
  const auto sweep = writer->add_channel("/lidar", "json", 0), picture = writer->add_channel("/camera", "json", 0),
             other = writer->add_channel("/other", "json", 0);
  ASSERT_TRUE(writer->write(*sweep, {1000}, {1000}, 0, "sweep"));  // its last point comes 100 later
  ASSERT_TRUE(writer->write(*picture, {1050}, {1020}, 0, "late enough"));
  ASSERT_TRUE(writer->write(*other, {1060}, {0}, 0, "untouched"));
  ASSERT_TRUE(writer->finish());
  auto reader = open_log(path, {{"/lidar", {100}, std::nullopt}, {"/camera", {10}, std::nullopt}});
  ASSERT_TRUE(reader);
  EXPECT_EQ(drain(**reader), (std::vector<Seen>{{"/camera", 0, 1050, 1020, "late enough"},
                                                {"/other", 0, 1060, 0, "untouched"},
                                                {"/lidar", 0, 1100, 1000, "sweep"}}));
  EXPECT_EQ((*reader)->notes().size(), 1u);
  EXPECT_THAT((*reader)->notes()[0], HasSubstr("1 messages arrived before their last captured byte"));

  reader = open_log(path, {{"/camera", {10}, Duration{500}}});
  ASSERT_TRUE(reader);
  EXPECT_EQ(drain(**reader).back(), (Seen{"/camera", 0, 1520, 1020, "late enough"}));
  EXPECT_THAT((*reader)->notes()[0], HasSubstr("declared 500 ns"));
}

TEST(Mcap, HandMadeWithoutChunksAndSummary) {
  const std::string path = temporary("hand.mcap");
  using namespace test;
  write_bytes(path, kMagic + header() + record(0x90, "private") + schema(0, "ignored") + schema(4, "known") +
                        channel(9, 4, "/t") + message(9, 20, 19, "later") + message(9, 10, 9, "earlier") + footer());
  auto reader = open_log(path);
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_TRUE((*reader)->problems().empty()) << (*reader)->problems()[0].kind;
  EXPECT_EQ((*reader)->channels()[0].schema, "known");
  EXPECT_EQ((*reader)->channels()[0].id, 9u);
  EXPECT_EQ(drain(**reader), (std::vector<Seen>{{"/t", 0, 10, 9, "earlier"}, {"/t", 1, 20, 19, "later"}}));
}

TEST(Mcap, EmptyLogIsFine) {
  const std::string path = temporary("nothing.mcap");
  write_bytes(path, test::kMagic + test::header() + test::footer());
  auto reader = open_log(path);
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_TRUE((*reader)->problems().empty());
  EXPECT_FALSE((*reader)->span());
  EXPECT_TRUE(drain(**reader).empty());
}

struct Damage {
  const char* name;
  std::string middle;  // records between the channel and a good message
  std::string kind;
};
void PrintTo(const Damage& d, std::ostream* out) { *out << d.name; }
class Damaged : public ::testing::TestWithParam<Damage> {};

INSTANTIATE_TEST_SUITE_P(
    Mcap, Damaged,
    ::testing::Values(Damage{"UnknownCompression", test::chunk("lzma", 10, "0123456789"), "unknown compression"},
                      Damage{"HugeChunk", test::chunk("zstd", std::uint64_t{1} << 50, "0123456789"), "chunk too large"},
                      Damage{"NoZstd", test::chunk("zstd", 10, "0123456789"), "bad Chunk"},
                      Damage{"NoLz4", test::chunk("lz4", 10, "0123456789"), "bad Chunk"},
                      Damage{"PlainOfOtherSize", test::chunk("", 11, "0123456789"), "bad Chunk"},
                      Damage{"RecordBeyondChunk", test::chunk("", 9, "\x05" + test::le<std::uint64_t>(1000)),
                             "bad Chunk"},
                      Damage{"WrongCrc", test::chunk("", 3, "abc", 12345), "bad CRC"},
                      Damage{"ShortMessage", test::record(0x05, "short"), "bad Message"},
                      Damage{"YearBeyond", test::message(1, ~std::uint64_t{0}, 0, "x"), "bad Message"},
                      Damage{"UndeclaredChannel", test::message(77, 1, 1, "x"), "unknown channel"},
                      Damage{"ShortSchema", test::record(0x03, "x"), "bad Schema"},
                      Damage{"ShortChannel", test::record(0x04, "xy"), "bad Channel"},
                      Damage{"ShortAttachment", test::record(0x09, "xy"), "bad Attachment"},
                      Damage{"AttachmentCrc", test::record(0x09, "0123456789"), "bad CRC"},
                      Damage{"TopicChanges", test::channel(1, 0, "/another"), "bad Channel"}),
    [](const auto& test_info) { return test_info.param.name; });

TEST_P(Damaged, IsCountedAndTheRestIsRead) {
  const std::string path = temporary("damage.mcap");
  using namespace test;
  write_bytes(path, kMagic + header() + channel(1, 0, "/t") + GetParam().middle + message(1, 5, 4, "good") +
                        data_end() + footer());
  auto reader = open_log(path);
  ASSERT_TRUE(reader) << reader.error().message;
  ASSERT_EQ((*reader)->problems().size(), 1u);
  EXPECT_EQ((*reader)->problems()[0].kind, GetParam().kind);
  EXPECT_EQ(drain(**reader), (std::vector<Seen>{{"/t", 0, 5, 4, "good"}}));
}

TEST(Mcap, LyingChunkSizeCostsNoMemory) {
  // The size announces 1 GiB (the limit), the bytes are few: the buffer grows with what is there.
  const std::string path = temporary("lying.mcap");
  using namespace test;
  write_bytes(path, kMagic + header() + channel(1, 0, "/t") + chunk("zstd", std::uint64_t{1} << 30, "0123") +
                        data_end() + footer());
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  auto reader = open_log(path);
  getrusage(RUSAGE_SELF, &after);
  ASSERT_TRUE(reader);
  EXPECT_EQ((*reader)->problems()[0].kind, "bad Chunk");
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 100'000) << "kB";
}

TEST(OpenLog, SaysWhatIsWrong) {
  const auto message_of = [](const std::string& path) {
    auto reader = open_log(path);
    EXPECT_FALSE(reader) << path;
    if (reader) return std::string();
    EXPECT_EQ(reader.error().code, Code::kInput);
    EXPECT_THAT(reader.error().message, HasSubstr(path));
    return reader.error().message;
  };
  EXPECT_THAT(message_of(temporary("absent.mcap")), HasSubstr("No such file"));
  std::filesystem::create_directory(temporary("empty-folder"));
  EXPECT_THAT(message_of(temporary("empty-folder")), HasSubstr("folder"));
  write_bytes(temporary("empty.mcap"), "");
  EXPECT_THAT(message_of(temporary("empty.mcap")), HasSubstr("is empty"));
  write_bytes(temporary("text.mcap"), "hello, world");
  EXPECT_THAT(message_of(temporary("text.mcap")), HasSubstr("Known: MCAP"));
  write_bytes(temporary("lfs.mcap"), "version https://git-lfs.github.com/spec/v1\n");
  EXPECT_THAT(message_of(temporary("lfs.mcap")), HasSubstr("Git LFS"));
  write_bytes(temporary("magic.mcap"), test::kMagic);
  EXPECT_THAT(message_of(temporary("magic.mcap")), HasSubstr("nothing can be recovered"));
}

TEST(McapWriter, NothingAppearsBeforeFinish) {
  const std::string path = temporary("unfinished.mcap");
  std::filesystem::remove(path);
  {
    auto writer = McapWriter::create(path, {Compression::kNone});
    ASSERT_TRUE(writer);
    const auto channel = writer->add_channel("/t", "json", 0);
    ASSERT_TRUE(writer->write(*channel, {1}, {1}, 0, "text"));
    EXPECT_FALSE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  for (const auto& entry : std::filesystem::directory_iterator(test::temporary_folder())) {
    EXPECT_THAT(entry.path().filename().string(), ::testing::Not(HasSubstr("unfinished.mcap")));
  }
}

TEST(McapWriter, FullDiskIsAnEnvironmentErrorAndLeavesNothing) {
  const std::string path = temporary("full.mcap");
  std::filesystem::remove(path);
  auto writer = McapWriter::create(path, {Compression::kNone, 1000});
  ASSERT_TRUE(writer);
  const auto channel = writer->add_channel("/t", "json", 0);
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  Status status;
  for (int i = 0; i < 100 && status; ++i) status = writer->write(*channel, {i}, {i}, 0, std::string(500, 'x'));
  const Status again = writer->finish();
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, old_handler);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kEnvironment);
  EXPECT_THAT(status.error().message, HasSubstr("full.mcap"));
  ASSERT_FALSE(again) << "a file with a hole must not be finished";
  *writer = McapWriter::create(temporary("other.mcap")).value();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(McapWriter, MistakesOfTheCaller) {
  auto writer = McapWriter::create(temporary("mistakes.mcap"));
  ASSERT_TRUE(writer);
  EXPECT_EQ(writer->add_channel("/t", "json", 5).error().code, Code::kInternal);
  writer = McapWriter::create(temporary("mistakes.mcap"));
  EXPECT_EQ(writer->write(1, {0}, {0}, 0, "").error().code, Code::kInternal);
  writer = McapWriter::create(temporary("mistakes.mcap"));
  const auto channel = writer->add_channel("/t", "json", 0);
  EXPECT_THAT(writer->write(*channel, {-1}, {0}, 0, "").error().message, HasSubstr("before zero"));
  EXPECT_EQ(McapWriter::create("/nonexistent/folder/x.mcap").error().code, Code::kEnvironment);
}

TEST(McapWriter, EqualInputsGiveEqualBytes) {
  EXPECT_EQ(read_bytes(small_file("same1.mcap", Compression::kZstd)),
            read_bytes(small_file("same2.mcap", Compression::kZstd)));
}

}  // namespace
}  // namespace takt::sensors
