// A log without any configuration, as a newcomer brings it: init, schedule, replay, rig check.

#include <gmock/gmock.h>
#include <filesystem>

#include "sensors/rig/rig.h"
#include "tests/integration/program.h"
#include "tests/support/test_data.h"
#include "tools/convert/pandaset.h"
#include "tools/convert/pandaset_to_mcap.h"

namespace {

namespace fs = std::filesystem;
using takt::test::Answer;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kRoot = TAKT_SOURCE_DIR;
const std::string kDrive = kRoot + "/replay_data/city.mcap";

class OwnRig : public takt::test::Program {
 protected:
  // init, schedule, replay in lockstep; the report's JSON.
  std::string bring(const std::string& log) const {
    const Answer init = takt({"init", log, "-o", path("rig")});
    EXPECT_EQ(init.code, 0) << init.err;
    const Answer schedule = takt({"schedule", path("rig/pipeline.yaml")});
    EXPECT_EQ(schedule.code, 0) << schedule.out << schedule.err;
    const Answer replay = takt(
        {"replay", path("rig/pipeline.yaml"), log, "--lockstep", "--transport", "local", "--json", "-o", path("run")});
    EXPECT_EQ(replay.code, 0) << replay.err;
    return replay.out;
  }
};

TEST_F(OwnRig, ShippedDriveWithoutItsConfiguration) {
  const std::string report = bring(kDrive);
  EXPECT_THAT(report, HasSubstr("assumed, not measured"));
  EXPECT_THAT(report, HasSubstr("timing.exposure_ms"));
  EXPECT_THAT(report, Not(HasSubstr("\"violated\": true")));

  const Answer again = takt({"init", kDrive, "-o", path("rig")});
  EXPECT_EQ(again.code, 2) << "files of the user are never overwritten unasked";
  EXPECT_THAT(again.err, HasSubstr("--force"));
  EXPECT_EQ(takt({"init", kDrive, "-o", path("rig"), "--force"}).code, 0);

  const Answer check = takt({"rig", "check", kDrive, "--rig", path("rig/rig.yaml"), "-o", path("check")});
  EXPECT_EQ(check.code, 0) << check.out << check.err;
  EXPECT_TRUE(fs::exists(path("check/birdseye_lidar_top.png")));
  EXPECT_TRUE(fs::exists(path("check/check.json")));
}

TEST_F(OwnRig, BadInputIsToldApart) {
  EXPECT_EQ(takt({"init", path("absent.mcap"), "-o", path("rig")}).code, 3);
  EXPECT_EQ(takt({"init", kRoot + "/README.md", "-o", path("rig")}).code, 3);
  EXPECT_FALSE(fs::exists(path("rig"))) << "nothing is made for a log that cannot be read";
  EXPECT_EQ(takt({"rig", "check", path("absent.mcap"), "-o", path("check")}).code, 3);
  EXPECT_EQ(takt({"rig", "check", kDrive, "--rig", path("absent.yaml"), "-o", path("check")}).code, 4);
  EXPECT_EQ(takt({"rig"}).code, 2);
  EXPECT_EQ(takt({"init", "--help"}).code, 0);
}

TEST_F(OwnRig, PandasetAsMcap) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/pandaset_002");
  const auto rig = takt::sensors::load_rig(kRoot + "/configs/rigs/pandaset.yaml");
  ASSERT_TRUE(rig) << rig.error().message;
  const auto set = takt::tools::open_pandaset(folder);
  ASSERT_TRUE(set) << set.error().message;
  const std::string log = path("pandaset.mcap");
  ASSERT_TRUE(takt::tools::convert_pandaset(*set, *rig, log));
  bring(log);
  const auto estimate = takt::sensors::load_rig(path("rig/rig.yaml"));
  ASSERT_TRUE(estimate) << estimate.error().message;
  ASSERT_EQ(estimate->sensors.size(), 3u);
  for (const auto& truth : rig->sensors) {
    SCOPED_TRACE(truth.name);
    ASSERT_TRUE(estimate->find(truth.name));
    const auto& found = estimate->sensors[*estimate->find(truth.name)];
    EXPECT_EQ(found.kind, truth.kind);
    EXPECT_NEAR(found.period.ms(), truth.period.ms(), 0.1);
    EXPECT_NEAR(found.delay_min().ms(), truth.delay_min().ms(), 0.02);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(found.vehicle_from_sensor.translation[i], truth.vehicle_from_sensor.translation[i], 1e-6);
    }
  }
  EXPECT_EQ(estimate->sensors[*estimate->find("lidar_top")].stamp, takt::sensors::StampReference::kSweepEnd);
}

TEST_F(OwnRig, VelodynePacketsInABag) {
  TAKT_TEST_DATA_OR_SKIP(bag, "sensors/tier4_nebula/velodyne/vlp16/1673400471837873222/1673400471837873222_0.db3");
  const std::string report = bring(bag);
  EXPECT_THAT(report, HasSubstr("assumed, not measured"));
}

}  // namespace
