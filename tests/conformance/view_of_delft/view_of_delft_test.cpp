// Two real frames: every LiDAR row twice, labels upright in the LiDAR frame, a radar with a mount of its own.
#include <gtest/gtest.h>

#include "runtime/base/file.h"
#include "sensors/logs/kitti_text.h"
#include "tests/conformance/read_log.h"
#include "tests/support/test_data.h"

namespace takt::sensors {
namespace {

using namespace test;

constexpr std::size_t kRows[] = {167772, 189088}, kUnique[] = {83886, 94544}, kReturns[] = {322, 352},
                      kBoxes[] = {15, 24}, kInside[] = {3512, 8950}, kInPicture[] = {273, 295};

TEST(ViewOfDelft, DuplicatesAreDroppedAndTold) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/view_of_delft");
  const ReadLog log = read_log(folder);
  EXPECT_TRUE(log.problems.empty());
  const auto& clouds = log.topics.at("/lidar/points");
  ASSERT_EQ(clouds.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(positions_of(clouds[i]).size(), kUnique[i]);
  std::string notes;
  for (const auto& note : log.notes) notes += note + "\n";
  EXPECT_NE(
      notes.find(std::to_string(kUnique[0] + kUnique[1]) + " of " + std::to_string(kRows[0] + kRows[1]) + " rows"),
      std::string::npos)
      << notes;
  EXPECT_EQ(log.topics.at("/camera/image").size(), 2u);
  EXPECT_EQ(log.topics.at("/ego").size(), 2u);
  EXPECT_EQ(log.topics.at("/ego/takt").size(), 0u);  // the two frames are no neighbours
}

// The published count is over raw rows: twice the points that are kept.
TEST(ViewOfDelft, BoxesHoldThePublishedPointsUnderTheRightYawOnly) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/view_of_delft");
  const ReadLog log = read_log(folder);
  std::size_t right = 0, wrong = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto truth = decode_truth(log.topics.at("/truth/takt")[i].view());
    ASSERT_TRUE(truth);
    ASSERT_EQ(truth->boxes.size(), kBoxes[i]);
    const Transform mount = frame_of(log, "lidar");
    const auto points = moved(positions_of(log.topics.at("/lidar/points")[i]), mount);
    std::size_t inside = 0;
    for (log::TruthBox box : truth->boxes) {
      inside += 2 * points_inside(box, points);
    }
    EXPECT_EQ(inside, kInside[i]);
    right += inside;
    // rotation_y taken as the yaw in the LiDAR frame.
    const char* name = i == 0 ? "00549" : "01047";
    const auto labels = kitti::parse_labels(
        *read_file(folder + "/lidar/training/label_2/" + name + ".txt"), name, false,
        [](std::string kind, std::uint64_t, std::string detail) { ADD_FAILURE() << kind << detail; });
    for (std::size_t k = 0; k < labels.size(); ++k) {
      log::TruthBox box = truth->boxes[k];
      const double half = labels[k].rotation_y / 2;
      box.pose.orientation = {std::cos(half), 0, 0, std::sin(half)};
      wrong += 2 * points_inside(box, points);
    }
  }
  EXPECT_EQ(right, 12462u);
  EXPECT_EQ(wrong, 5894u);
}

TEST(ViewOfDelft, RadarReturnsAreCompleteAndFallIntoThePicture) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/view_of_delft");
  const ReadLog log = read_log(folder);
  const Transform vehicle_from_camera = frame_of(log, "camera");
  const Transform camera_from_radar = vehicle_from_camera.inverse() * frame_of(log, "radar");
  std::size_t standing = 0, all = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto camera = decode_camera_calibration(log.topics.at("/camera/calibration")[i].view());
    ASSERT_TRUE(camera);
    EXPECT_EQ(camera->width, 1936u);
    EXPECT_EQ(camera->height, 1216u);
    auto returns =
        points_of(log.topics.at("/radar/returns")[i], {"x", "y", "z", "range_rate", "range_rate_compensated", "rcs"});
    EXPECT_EQ(returns.size(), kReturns[i]);
    std::size_t inside = 0;
    for (auto& r : returns) {
      for (const auto& [name, value] : r) EXPECT_TRUE(std::isfinite(value)) << name;
      const auto p = camera_from_radar.apply({r["x"], r["y"], r["z"]});
      const double u = camera->fx * p[0] / p[2] + camera->cx, v = camera->fy * p[1] / p[2] + camera->cy;
      inside += p[2] > 0 && u >= 0 && u < camera->width && v >= 0 && v < camera->height ? 1 : 0;
      standing += std::fabs(r["range_rate_compensated"]) < 0.3 ? 1 : 0;
      ++all;
    }
    EXPECT_EQ(inside, kInPicture[i]);
  }
  std::printf("%zu of %zu returns stand still after compensation\n", standing, all);
  EXPECT_GT(standing * 2, all);
  // LiDAR and radar sit in different places.
  const Transform lidar = frame_of(log, "lidar"), radar = frame_of(log, "radar");
  EXPECT_GT(std::fabs(lidar.translation[0] - radar.translation[0]), 1.0);
}

}  // namespace
}  // namespace takt::sensors
