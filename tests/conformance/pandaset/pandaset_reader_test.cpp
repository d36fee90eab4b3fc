// Damaged clouds of the compact PandaSet form are errors, never crashes.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "tools/convert/pandaset.h"
#include "tools/convert/pandaset_to_mcap.h"

namespace takt::tools {
namespace {

template <class T>
void append(std::string* bytes, T value) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  bytes->append(raw, sizeof(T));
}

std::string two_points() {
  std::string b = "PSL1";
  append<std::uint32_t>(&b, 2);
  append<double>(&b, 99.9);
  append<double>(&b, 100.0);
  append<std::uint32_t>(&b, 0);
  for (const int v : {100, -200, 300, -400, 50, 60}) append(&b, static_cast<std::int16_t>(v));
  append<std::uint16_t>(&b, 0);
  append<std::uint16_t>(&b, 10000);
  for (const char v : {'\x10', '\xff', '\1', '\2'}) b.push_back(v);
  return b;
}

TEST(PandasetSweep, DecodesEveryArray) {
  const auto sweep = decode_sweep(two_points(), "x");
  ASSERT_TRUE(sweep) << sweep.error().message;
  ASSERT_EQ(sweep->size(), 2u);
  EXPECT_EQ(sweep->stamp.ns, 100'000'000'000);
  EXPECT_EQ(sweep->x_cm[1], -200);
  EXPECT_EQ(sweep->y_cm[0], 300);
  EXPECT_EQ(sweep->z_cm[1], 60);
  EXPECT_NEAR(sweep->time_ns[0], -100'000'000, 200);
  EXPECT_NEAR(sweep->time_ns[1], 0, 200);
  EXPECT_EQ(sweep->intensity[1], 255);
}

TEST(PandasetSweep, RefusesEveryCut) {
  const std::string whole = two_points();
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const auto sweep = decode_sweep(whole.substr(0, n), "cut.psl");
    ASSERT_FALSE(sweep) << n;
    EXPECT_EQ(sweep.error().code, Code::kInput);
    EXPECT_NE(sweep.error().message.find("cut.psl"), std::string::npos);
  }
  EXPECT_FALSE(decode_sweep(whole + "x", "long"));
}

TEST(PandasetSweep, RefusesAHugeCount) {
  std::string bytes = two_points();
  const std::uint32_t n = 0xFFFFFFFF;
  std::memcpy(bytes.data() + 4, &n, 4);
  EXPECT_FALSE(decode_sweep(bytes, "x"));
}

TEST(PandasetClasses, KnowsEveryKind) {
  EXPECT_EQ(object_class_of("Car"), 1u);
  EXPECT_EQ(object_class_of("Pedestrian with Object"), 2u);
  EXPECT_EQ(object_class_of("Bicycle"), 3u);
  EXPECT_EQ(object_class_of("Cones"), 4u);
}

TEST(Pandaset, AMissingFolderSaysWhatIsNeeded) {
  const auto set = open_pandaset("/nonexistent");
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().code, Code::kInput);
  EXPECT_NE(set.error().message.find("lidar/00.psl.gz"), std::string::npos);
}

}  // namespace
}  // namespace takt::tools
