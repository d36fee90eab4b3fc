// Copies of logs (recover, cut, merge, filter, convert), what info says of them, and exported files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "sensors/logs/encode.h"
#include "sensors/logs/log_export.h"
#include "sensors/logs/log_tools.h"
#include "sensors/logs/mcap_reader.h"
#include "sensors/logs/pcd.h"
#include "tests/sensors/logs/log_drain.h"
#include "tests/sensors/logs/mcap_bytes.h"

namespace takt::sensors {
namespace {

using test::drain;
using test::read_bytes;
using test::Seen;
using test::temporary;
using test::write_bytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Ten messages a second on /a and /b from `begin` seconds on, two static transforms in front.
std::string sample(const std::string& name, std::int64_t begin, int messages = 40) {
  const std::string path = temporary(name);
  auto writer = McapWriter::create(path, {Compression::kZstd, 500, "test-profile"});
  const auto schema = writer->add_schema({"test.Text", "jsonschema", "{}"});
  const auto a = writer->add_channel("/a", "json", *schema), b = writer->add_channel("/b", "json", *schema),
             tf = writer->add_channel("/tf_static", "json", 0);
  const std::int64_t t0 = begin * 1'000'000'000;
  EXPECT_TRUE(writer->write(*tf, {t0}, {t0}, 1, "lidar"));
  EXPECT_TRUE(writer->write(*tf, {t0 + 1}, {t0}, 2, "camera"));
  EXPECT_TRUE(writer->write(*tf, {t0 + 2}, {t0}, 3, "lidar"));
  for (int i = 0; i < messages; ++i) {
    const std::int64_t t = t0 + i / 2 * 100'000'000;
    EXPECT_TRUE(writer->write(i % 2 == 0 ? *a : *b, {t + 5'000'000}, {t}, static_cast<std::uint32_t>(i),
                              "message " + std::to_string(i)));
  }
  EXPECT_TRUE(writer->add_attachment("rig.yaml", "text/yaml", {t0}, "rig: " + name));
  EXPECT_TRUE(writer->add_metadata("drive", {{"name", name}}));
  EXPECT_TRUE(writer->finish());
  return path;
}

std::vector<Seen> all_of(const std::string& path) {
  auto log = open_log(path);
  EXPECT_TRUE(log) << path;
  if (!log) return {};
  auto seen = drain(**log);
  EXPECT_TRUE((*log)->problems().empty());
  return seen;
}

TEST(CopyLog, ConvertKeepsEverything) {
  const std::string in = sample("convert.mcap", 100), out = temporary("converted.mcap");
  for (const auto compression : {Compression::kNone, Compression::kLz4, Compression::kZstd}) {
    CopyOptions options;
    options.compression = compression;
    const auto report = copy_log({in}, out, options);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->messages, 43u);
    EXPECT_EQ(report->verified, 43u);
    EXPECT_EQ(report->attachments, 1u);
    EXPECT_EQ(report->metadata, 1u);
    EXPECT_EQ(all_of(out), all_of(in));
    const auto log = open_log(out);
    EXPECT_EQ((*log)->read_attachment(0).value(), "rig: convert.mcap");
    EXPECT_EQ((*log)->metadata()[0].entries.at("name"), "convert.mcap");
    EXPECT_EQ((*log)->channels()[0].schema_data, "{}");
    EXPECT_THAT((*log)->properties(),
                ::testing::Contains(std::pair<std::string, std::string>("profile", "test-profile")));
  }
}

TEST(CopyLog, CutKeepsTheLastStaticTransforms) {
  const std::string in = sample("cut.mcap", 100), out = temporary("cut-out.mcap");
  CopyOptions options;
  options.start = SensorTime{101'000'000'000};
  options.end = SensorTime{101'205'000'000};
  const auto report = copy_log({in}, out, options);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->static_kept, 2u);
  std::vector<std::string> got;
  for (const Seen& s : all_of(out)) got.push_back(s.topic + " " + s.bytes);
  // Of the two transforms of the LiDAR the last; what arrives at the end itself is in.
  EXPECT_THAT(got, ElementsAre("/tf_static camera", "/tf_static lidar", "/a message 20", "/b message 21",
                               "/a message 22", "/b message 23", "/a message 24", "/b message 25"));
  EXPECT_EQ(all_of(out)[0].arrival, 101'000'000'000);
  EXPECT_EQ(all_of(out)[0].capture, 100'000'000'000);
  options.keep_static = false;
  EXPECT_EQ(copy_log({in}, out, options)->messages, 6u);
}

TEST(CopyLog, FilterByPattern) {
  const std::string in = sample("filter.mcap", 100), out = temporary("filtered.mcap");
  CopyOptions options;
  options.topics = {"/?"};
  options.exclude = {"/b"};
  const auto report = copy_log({in}, out, options);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->messages, 20u);
  for (const Seen& s : all_of(out)) EXPECT_EQ(s.topic, "/a");
  options.exclude = {"/bb"};
  const auto wrong = copy_log({in}, out, options);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Code::kUsage);
  EXPECT_THAT(wrong.error().message, HasSubstr("/b"));
}

TEST(CopyLog, MergeGivesTheOrderOfArrival) {
  const std::string a = sample("merge-a.mcap", 100), b = sample("merge-b.mcap", 101), out = temporary("merged.mcap");
  const auto report = copy_log({a, b}, out, {});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->messages, 86u);
  EXPECT_EQ(report->attachments, 2u);
  const auto seen = all_of(out);
  EXPECT_TRUE(
      std::is_sorted(seen.begin(), seen.end(), [](const Seen& x, const Seen& y) { return x.arrival < y.arrival; }));
  EXPECT_EQ((*open_log(out))->channels().size(), 3u) << "equal channels are one";
}

TEST(CopyLog, RecoverSavesWhatIsWhole) {
  const std::string in = sample("broken.mcap", 100), out = temporary("recovered.mcap");
  std::string bytes = read_bytes(in);
  bytes[400] = static_cast<char>(bytes[400] ^ 0x55);  // inside the first chunk
  bytes.resize(bytes.size() - 100);                   // and the end is missing
  write_bytes(in, bytes);
  auto damaged = open_mcap(in, {}, {.scan = true});
  ASSERT_TRUE(damaged);
  const auto readable = drain(**damaged);
  ASSERT_GT(readable.size(), 10u);
  ASSERT_LT(readable.size(), 43u);
  CopyOptions options;
  options.scan = true;
  const auto report = copy_log({in}, out, options);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->messages, readable.size());
  EXPECT_EQ(report->verified, readable.size());
  EXPECT_GE(report->problems.size(), 2u);
  EXPECT_EQ(report->problems[0].input, in);
  EXPECT_EQ(all_of(out), readable);
}

TEST(CopyLog, NothingHalfWritten) {
  const std::string in = sample("stop.mcap", 100, 2000), out = temporary("stopped.mcap");
  CopyOptions options;
  options.progress = [](std::uint64_t, std::uint64_t, std::uint64_t) { return false; };
  const auto stopped = copy_log({in}, out, options);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Code::kInterrupted);
  // Stopped while it was read back: it was complete, but it was not checked.
  options.progress = [](std::uint64_t, std::uint64_t total, std::uint64_t bytes) {
    return !(total == 2003 && bytes > 22'000);
  };
  EXPECT_FALSE(copy_log({in}, out, options));
  for (const auto& entry : std::filesystem::directory_iterator(test::temporary_folder())) {
    EXPECT_THAT(entry.path().filename().string(), ::testing::Not(HasSubstr("stopped")));
  }
  EXPECT_EQ(copy_log({in}, in, {}).error().code, Code::kUsage);
  EXPECT_EQ(copy_log({temporary("absent.mcap")}, out, {}).error().code, Code::kInput);
}

TEST(InspectLog, RatesGapsSizesAndDelays) {
  const std::string path = temporary("info.mcap");
  auto writer = McapWriter::create(path);
  const auto channel = writer->add_channel("/a", "json", 0), silent = writer->add_channel("/silent", "json", 0);
  ASSERT_TRUE(silent);
  for (int i = 0; i < 101; ++i) {
    if (i >= 50 && i < 53) continue;  // three are missing
    ASSERT_TRUE(writer->write(*channel, {i * 100'000'000LL + (i == 7 ? 20'000'000 : 0)}, {i * 100'000'000LL}, 0,
                              std::string(static_cast<std::size_t>(10 + i), 'x')));
  }
  ASSERT_TRUE(writer->finish());
  const auto log = open_log(path);
  const auto quick = inspect_log(**log, false);
  ASSERT_TRUE(quick);
  EXPECT_EQ(quick->channels[0].messages, 98u);
  EXPECT_NEAR(quick->channels[0].rate_hz, 9.7, 1e-9);
  EXPECT_FALSE(quick->channels[0].first);
  const auto full = inspect_log(**log, true);
  ASSERT_TRUE(full);
  const ChannelFacts& facts = full->channels[0];
  EXPECT_EQ(facts.messages, 98u);
  EXPECT_EQ(facts.smallest, 10u);
  EXPECT_EQ(facts.largest, 110u);
  EXPECT_EQ(facts.gaps, 1u);
  EXPECT_EQ(facts.longest_gap.ns, 400'000'000);
  EXPECT_EQ(facts.longest_gap_at.ns, 5'300'000'000);
  EXPECT_NEAR(static_cast<double>(facts.usual_gap.ns), 1e8, 6e6);
  EXPECT_EQ(facts.most_delay.ns, 20'000'000);
  EXPECT_EQ(facts.least_delay.ns, 0);
  EXPECT_EQ(full->channels[1].messages, 0u);
}

TEST(Export, CloudsComeBackFromPcd) {
  const std::vector<log::LidarPoint> points{{1.5F, -2, 3, 0.25F, 7, 9}, {1e-7F, NAN, 3e9F, 1, -8, 65535}};
  const std::string message = encode_lidar({5}, "lidar", points);
  const std::string path = temporary("clouds.mcap");
  auto writer = McapWriter::create(path);
  const auto schema = writer->add_schema(*log_schema("foxglove.PointCloud"));
  const auto channel = writer->add_channel("/lidar/points", "protobuf", *schema),
             other = writer->add_channel("/x", "json", 0);
  ASSERT_TRUE(writer->write(*channel, {10}, {5}, 0, message));
  ASSERT_TRUE(writer->write(*channel, {20}, {15}, 0, "garbage"));
  ASSERT_TRUE(writer->write(*other, {20}, {15}, 0, "{}"));
  ASSERT_TRUE(writer->finish());
  for (const bool ascii : {false, true}) {
    ExportOptions options;
    options.ascii = ascii;
    const auto report = export_log(path, temporary("export"), options);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->files.at("/lidar/points"), 1u);
    EXPECT_EQ(report->refused.size(), 1u);
    EXPECT_THAT(report->other_topics, ElementsAre("/x"));
    const std::string file = read_bytes(temporary("export") + "/lidar_points/000000_5.pcd");
    EXPECT_THAT(file, HasSubstr("FIELDS x y z intensity time_offset_ns ring\nSIZE 4 4 4 4 4 2\nTYPE F F F F I U\n"));
    const auto cloud = parse_pcd(file, "file");
    ASSERT_TRUE(cloud) << cloud.error().message;
    ASSERT_EQ(cloud->points, 2u);
    EXPECT_EQ(cloud->value(0, *cloud->find("x")), 1.5);
    EXPECT_EQ(static_cast<float>(cloud->value(1, *cloud->find("x"))), 1e-7F);
    EXPECT_TRUE(std::isnan(cloud->value(1, *cloud->find("y"))));
    EXPECT_EQ(static_cast<float>(cloud->value(1, *cloud->find("z"))), 3e9F);
    EXPECT_EQ(cloud->value(1, *cloud->find("time_offset_ns")), -8);
    EXPECT_EQ(cloud->value(1, *cloud->find("ring")), 65535);
  }
}

TEST(Export, RawPicturesBecomePng) {
  std::vector<std::byte> data(2 * 8);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 9);
  log::RawImage raw;
  raw.width = 2;
  raw.height = 2;
  raw.step = 8;  // two bytes of padding per row
  raw.encoding = "bgr8";
  raw.data = data;
  const auto png = png_of(raw);
  ASSERT_TRUE(png) << png.error().message;
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  ASSERT_NE(png_image_begin_read_from_memory(&image, png->data(), png->size()), 0);
  image.format = PNG_FORMAT_RGB;
  std::vector<std::uint8_t> pixels(12);
  ASSERT_NE(png_image_finish_read(&image, nullptr, pixels.data(), 6, nullptr), 0);
  EXPECT_THAT(pixels, ElementsAre(18, 9, 0, 45, 36, 27, 90, 81, 72, 117, 108, 99));
  raw.encoding = "16UC1";
  raw.step = 4;
  const auto depth = png_of(raw);
  ASSERT_TRUE(depth) << depth.error().message;
  EXPECT_EQ((*depth)[24], 16) << "bits of a sample";
  raw.height = 100;
  EXPECT_EQ(png_of(raw).error().code, Code::kInput);
  raw.encoding = "mono8";
  EXPECT_EQ(png_of(raw).error().code, Code::kInput);
}

}  // namespace
}  // namespace takt::sensors
