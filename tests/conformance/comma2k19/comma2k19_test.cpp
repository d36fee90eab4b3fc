// A minute of real front radar on CAN, through the converter and back; and damaged .npy files.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <set>

#include "tests/conformance/read_log.h"
#include "tests/support/test_data.h"
#include "tools/convert/comma2k19.h"
#include "tools/convert/npy.h"

namespace takt::tools {
namespace {

using namespace sensors::test;

TEST(Comma2k19, RadarAndPathHaveThePublishedFigures) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/comma2k19_example1");
  const std::string path = testing::TempDir() + "comma2k19.mcap";
  const auto figures = convert_comma2k19(folder, path);
  ASSERT_TRUE(figures) << figures.error().message;
  const ReadLog log = read_log(path);
  std::remove(path.c_str());
  EXPECT_EQ(figures->radar_rows, 10100u);
  EXPECT_EQ(figures->slots, 14u);
  EXPECT_EQ(figures->new_tracks, 131u);
  EXPECT_EQ(figures->poses, 1200u);
  EXPECT_NEAR(figures->path_m, 1011.8, 0.05);
  EXPECT_NEAR(figures->can_path_m, 1003.8, 0.05);

  std::size_t rows = 0, new_tracks = 0;
  std::set<int> slots;
  double least = 1e9, most = 0, left = -1e9, right = 1e9;
  for (const auto& message : log.topics.at("/radar/front/returns")) {
    for (auto& r : points_of(message, {"x", "y", "range_rate", "slot", "new_track"})) {
      ++rows;
      new_tracks += r["new_track"] != 0 ? 1 : 0;
      slots.insert(static_cast<int>(r["slot"]));
      least = std::min(least, r["x"]);
      most = std::max(most, r["x"]);
      left = std::max(left, r["y"]);
      right = std::min(right, r["y"]);
    }
  }
  EXPECT_EQ(rows, 10100u);
  EXPECT_EQ(new_tracks, 131u);
  EXPECT_EQ(*slots.begin(), 528);
  EXPECT_EQ(*slots.rbegin(), 541);
  EXPECT_NEAR(least, 9.58, 0.01);
  EXPECT_NEAR(most, 184.3, 0.05);
  EXPECT_NEAR(right, -6.84, 0.01);
  EXPECT_NEAR(left, 7.16, 0.01);

  double speed = 0, along = 0;
  const auto& ego = log.topics.at("/ego/takt");
  ASSERT_EQ(ego.size(), 1200u);
  for (const auto& message : ego) {
    const auto e = sensors::decode_ego_motion(message.view());
    ASSERT_TRUE(e);
    const double v = std::hypot(e->velocity[0], e->velocity[1], e->velocity[2]);
    speed += v / 1200;
    along += e->velocity[0] / 1200;
  }
  EXPECT_NEAR(speed, 16.87, 0.01);
  EXPECT_GT(along, 0.98 * speed);  // the camera looks ahead
}

std::string npy(const std::string& shape, std::size_t values) {
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(118, ' ');
  header.back() = '\n';
  std::string bytes("\x93NUMPY\x01\x00\x76\x00", 10);
  bytes += header;
  for (std::size_t i = 0; i < values; ++i) {
    const auto v = static_cast<double>(i);
    bytes.append(reinterpret_cast<const char*>(&v), 8);
  }
  return bytes;
}

TEST(Npy, ShapesAreRead) {
  const auto flat = parse_npy(npy("(3,)", 3), "x");
  ASSERT_TRUE(flat) << flat.error().message;
  EXPECT_EQ(flat->rows, 3u);
  EXPECT_EQ(flat->at(2), 2.0);
  const auto table = parse_npy(npy("(2, 3)", 6), "x");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->at(1, 2), 5.0);
}

TEST(Npy, DamageIsRefused) {
  const std::string whole = npy("(2, 3)", 6);
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const auto cut = parse_npy(whole.substr(0, n), "cut.npy");
    ASSERT_FALSE(cut) << n;
    EXPECT_EQ(cut.error().code, Code::kInput);
  }
  EXPECT_FALSE(parse_npy(npy("(2, 3, 1)", 6), "x"));
  EXPECT_FALSE(parse_npy(npy("(9223372036854775807, 3)", 6), "x"));
  for (std::size_t n = 0; n < whole.size(); ++n) {
    std::string damaged = whole;
    damaged[n] = static_cast<char>(damaged[n] ^ 0x20);
    (void)parse_npy(damaged, "damaged");  // a value or an error, never a crash
  }
}

}  // namespace
}  // namespace takt::tools
