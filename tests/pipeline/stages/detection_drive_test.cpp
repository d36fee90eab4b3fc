// Recall and precision of each detection stage on the shipped drive, and of the LiDAR stage on recorded PandaSet
// frames. Floors are well below the figures seen, which are printed; they catch a stage that stops working.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "pandaset_frame.h"
#include "simulated_drive.h"
#include "tests/support/test_data.h"

namespace takt::pipeline::testing {
namespace {

using sensors::SensorKind;

void print(const char* what, const DetectionScore& score) {
  std::printf("%-28s recall %.3f precision %.3f, %u of %u found, %u wrong, mean distance %.2f m\n", what,
              score.recall(), score.precision(), score.found, score.expected, score.wrong, score.mean_distance());
}

TEST(DetectionOnTheShippedDrive, LidarFindsVehiclesWithinFortyMetres) {
  SimulatedDrive drive;
  ASSERT_EQ(drive.error(), "");
  StageUnderTest stage("lidar_classical", {drive.sensor(SensorKind::kLidar), drive.sensor(SensorKind::kEgo)});
  ASSERT_EQ(stage.error(), "");
  DetectionScore score;
  drive.each(SensorKind::kLidar, [&](const Chunk& cloud, const Chunk& ego) {
    const Output output = stage.run({cloud.input(), ego.input()}, 2);
    add_frame(score, output.objects(), drive.truth_at(cloud.header.capture_ns).vehicles, 40, 5);
  });
  print("LiDAR, shipped drive", score);
  EXPECT_GT(score.expected, 200U);
  EXPECT_GE(score.recall(), 0.85);
  EXPECT_GE(score.precision(), 0.85);
  EXPECT_LE(score.mean_distance(), 0.6);
}

TEST(DetectionOnTheShippedDrive, CameraIsPreciseAboutWhatItReports) {
  for (const char* variant : {"full", "lite"}) {
    SimulatedDrive drive;
    ASSERT_EQ(drive.error(), "");
    StageUnderTest stage("camera_classical", {drive.sensor(SensorKind::kCamera)}, "{}", variant);
    ASSERT_EQ(stage.error(), "");
    DetectionScore score;
    drive.each(SensorKind::kCamera, [&](const Chunk& image, const Chunk&) {
      const Output output = stage.run({image.input()});
      std::vector<TruthBox> in_view;  // 70 degrees
      for (const TruthBox& box : drive.truth_at(image.header.capture_ns).vehicles) {
        if (box.x > 4 && std::fabs(box.y) < 0.65F * box.x) in_view.push_back(box);
      }
      add_frame(score, output.objects(), in_view, 40, 5);
    });
    print(variant[0] == 'f' ? "camera full, shipped drive" : "camera lite, shipped drive", score);
    EXPECT_GE(score.recall(), 0.25);
    EXPECT_GE(score.precision(), 0.8);
  }
}

// Moving vehicles in the radar's view count as found by a detection within 3 m (it sees the near surface) whose range
// rate is the vehicle's own speed along the ray.
TEST(DetectionOnTheShippedDrive, RadarMeasuresMovingVehicles) {
  SimulatedDrive drive;
  ASSERT_EQ(drive.error(), "");
  StageUnderTest stage("radar_cluster", {drive.sensor(SensorKind::kRadar), drive.sensor(SensorKind::kEgo)});
  ASSERT_EQ(stage.error(), "");
  std::uint32_t expected = 0, found = 0;
  double rate_error = 0;
  drive.each(SensorKind::kRadar, [&](const Chunk& scan, const Chunk& ego) {
    const Output output = stage.run({scan.input(), ego.input()});
    const DriveTruth& truth = drive.truth_at(scan.header.capture_ns);
    for (std::size_t i = 0; i < truth.vehicles.size(); ++i) {
      const TruthBox& box = truth.vehicles[i];
      if (truth.speed[i] < 3 || box.x < 8 || box.x > 40 || std::fabs(box.y) > box.x || box.points < 5) continue;
      ++expected;
      double best = 1;  // m/s
      for (const Object& o : output.objects()) {
        if ((o.flags & kHasRangeRate) == 0 || std::hypot(o.x - box.x, o.y - box.y) > 3.2F) continue;
        const double along = o.ray_x * std::cos(box.yaw) + o.ray_y * std::sin(box.yaw);
        best = std::min(best, std::fabs(o.range_rate - along * truth.speed[i]));
      }
      if (best >= 1) continue;
      ++found;
      rate_error += best;
    }
  });
  std::printf("%-28s recall %.3f, %u of %u found, range rate off by %.2f m/s on average\n", "radar, moving vehicles",
              double(found) / expected, found, expected, rate_error / std::max(found, 1U));
  EXPECT_GT(expected, 50U);
  EXPECT_GE(found, expected / 2);
  EXPECT_LT(rate_error, 0.2 * found);
}

TEST(DetectionOnPandaSet, LidarFindsVehiclesOfADenseStreet) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/pandaset_002");
  StageUnderTest stage("lidar_classical", {pandaset_lidar()});
  ASSERT_EQ(stage.error(), "");
  DetectionScore score;
  for (int frame = 0; frame < 40; frame += 8) {
    const auto points = read_pandaset_points(folder, frame);
    ASSERT_GT(points.size(), 100'000U);
    const Output output = stage.run({make_cloud(points, 120'000).input()});
    EXPECT_EQ(output.list().input_points, points.size());
    add_frame(score, output.objects(), read_pandaset_vehicles(folder, frame), 40, 5);
  }
  print("LiDAR, PandaSet", score);
  EXPECT_GT(score.expected, 100U);
  EXPECT_GE(score.recall(), 0.65);
  EXPECT_GE(score.precision(), 0.7);
}

}  // namespace
}  // namespace takt::pipeline::testing
