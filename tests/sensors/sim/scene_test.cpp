#include <gtest/gtest.h>

#include <string>

#include "runtime/base/file.h"
#include "sensors/sim/scene.h"

namespace takt::sensors::sim {
namespace {

const char* const kCity = TAKT_SOURCE_DIR "/configs/scenes/city.yaml";

TEST(Scene, ReadsTheShippedOne) {
  const auto scene = load_scene(kCity);
  ASSERT_TRUE(scene) << scene.error().message;
  EXPECT_EQ(scene->duration, seconds(3));
  EXPECT_GE(scene->actors.size(), 25u);
  EXPECT_EQ(scene->actors.front().id, 1u);
  EXPECT_TRUE(scene->rig_file.ends_with("configs/rigs/sim.yaml")) << scene->rig_file;
  EXPECT_GT(scene->buildings.size(), 20u);
}

std::string with(const std::string& from, const std::string& to) {
  std::string text = *read_file(kCity);
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Scene, SaysWhereAndWhatIsWrong) {
  const struct {
    const char *from, *to, *says;
  } cases[] = {
      {"columns: 600", "colums: 600", "did you mean 'columns'"},
      {"type: van", "type: vann", "van"},
      {"radius_m: 130", "radius_m: 5", "below 20 m"},
      {"truth: {period_ms: 50}", "truth: {period_ms: 0}", "period_ms"},
      {"start_s: 1000", "start_s: now", "start_s"},
      {"elevations_deg: [-22, ", "elevations_deg: [-95, ", "elevations_deg"},
  };
  for (const auto& c : cases) {
    const auto scene = parse_scene(with(c.from, c.to), "bad.yaml");
    ASSERT_FALSE(scene) << c.to;
    EXPECT_EQ(scene.error().code, Code::kConfiguration);
    EXPECT_NE(scene.error().message.find("bad.yaml:"), std::string::npos) << scene.error().message;
    EXPECT_NE(scene.error().message.find(c.says), std::string::npos) << scene.error().message;
  }
}

TEST(Scene, ASeedChangesTheBuildingsOnly) {
  const auto a = load_scene(kCity);
  const auto b = parse_scene(with("seed: 20240611", "seed: 5"), kCity);
  ASSERT_TRUE(a && b);
  EXPECT_NE(a->buildings.front().height, b->buildings.front().height);
  EXPECT_EQ(a->actors.front().station, b->actors.front().station);
}

TEST(Scene, AMissingFileIsAnError) {
  const auto scene = load_scene("/nonexistent/scene.yaml");
  ASSERT_FALSE(scene);
  EXPECT_EQ(scene.error().code, Code::kConfiguration);
}

}  // namespace
}  // namespace takt::sensors::sim
