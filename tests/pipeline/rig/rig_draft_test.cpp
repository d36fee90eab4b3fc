#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/rig/draft.h"
#include "runtime/base/yaml.h"

namespace takt::pipeline {
namespace {

using sensors::RigSensor;
using sensors::SensorKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

RigSensor sensor(const std::string& name, SensorKind kind, double rate_hz) {
  RigSensor s;
  s.name = name;
  s.kind = kind;
  s.period = Duration{static_cast<std::int64_t>(1e9 / rate_hz)};
  s.capacity = 1000;
  if (kind == SensorKind::kCamera) {
    s.camera = sensors::CameraModel{640, 384, 460, 460, 320, 192, {}};
    s.vehicle_from_sensor = sensors::Transform::from_quaternion({0.5, -0.5, 0.5, -0.5}, {1, 0, 1});
  }
  return s;
}

sensors::Rig rig_of(std::vector<RigSensor> list) {
  sensors::Rig rig;
  rig.name = "test";
  rig.sensors = std::move(list);
  return rig;
}

TEST(DraftPipeline, MostUsefulSensorsFirst) {
  RigSensor rear = sensor("rear", SensorKind::kCamera, 30);
  rear.vehicle_from_sensor = sensors::Transform::from_quaternion({0.5, -0.5, -0.5, 0.5}, {-1, 0, 1});
  const auto draft =
      draft_pipeline(rig_of({rear, sensor("front", SensorKind::kCamera, 30), sensor("top", SensorKind::kLidar, 10),
                             sensor("radar", SensorKind::kRadar, 20), sensor("ego", SensorKind::kEgo, 100)}),
                     "rig.yaml", "board.yaml", "heading");
  ASSERT_TRUE(draft) << draft.error().message;
  EXPECT_THAT(draft->sensors, ElementsAre("top", "front", "radar", "rear"));
  EXPECT_TRUE(draft->notes.empty());
  EXPECT_THAT(draft->yaml, HasSubstr("rates_hz: [30, 10]"));
  EXPECT_THAT(draft->yaml, HasSubstr("hyperperiod_ms: 100"));
  EXPECT_TRUE(YamlDocument::parse(draft->yaml, "pipeline.yaml"));
}

TEST(DraftPipeline, SlowSensorsStretchTheHyperperiod) {
  const auto draft =
      draft_pipeline(rig_of({sensor("top", SensorKind::kLidar, 2), sensor("c", SensorKind::kCamera, 12)}), "rig.yaml",
                     "board.yaml", "");
  ASSERT_TRUE(draft);
  EXPECT_THAT(draft->yaml, HasSubstr("hyperperiod_ms: 500"));
  EXPECT_THAT(draft->yaml, HasSubstr("rates_hz: [2]"));
  EXPECT_THAT(draft->yaml, HasSubstr("rates_hz: [12, 6, 4]"));
}

TEST(DraftPipeline, TooManySensorsAreNamed) {
  std::vector<RigSensor> many;
  for (int i = 0; i < 9; ++i) many.push_back(sensor("radar" + std::to_string(i), SensorKind::kRadar, 20));
  const auto draft = draft_pipeline(rig_of(many), "rig.yaml", "board.yaml", "");
  ASSERT_TRUE(draft);
  EXPECT_EQ(draft->sensors.size(), 7u);
  ASSERT_EQ(draft->notes.size(), 2u);
  EXPECT_THAT(draft->notes[0], HasSubstr("radar8"));
}

TEST(DraftPipeline, NothingToDetectWith) {
  const auto draft = draft_pipeline(rig_of({sensor("ego", SensorKind::kEgo, 100)}), "rig.yaml", "board.yaml", "");
  ASSERT_FALSE(draft);
  EXPECT_EQ(draft.error().code, Code::kConfiguration);
}

}  // namespace
}  // namespace takt::pipeline
