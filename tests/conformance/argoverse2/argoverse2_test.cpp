// One Argoverse 2 log through the converter and back: all boxes of both sweeps hold exactly the published points.
#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "tests/conformance/read_log.h"
#include "tests/support/test_data.h"
#include "tools/convert/argoverse2.h"

namespace takt::tools {
namespace {

using namespace sensors::test;

TEST(Argoverse2, EveryBoxOfBothSweepsHoldsThePublishedPoints) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/argoverse2/val_7fab2350");
  const std::string path = testing::TempDir() + "argoverse2.mcap";
  const Status status = convert_argoverse2(folder, path);
  ASSERT_TRUE(status) << status.error().message;
  const ReadLog log = read_log(path);
  std::remove(path.c_str());
  EXPECT_TRUE(log.problems.empty());

  const auto& truth = log.topics.at("/truth/takt");
  ASSERT_EQ(truth.size(), 156u);
  EXPECT_EQ(log.topics.at("/ego/takt").size(), 156u);
  std::size_t boxes = 0;
  std::set<std::uint32_t> tracks;
  for (const auto& message : truth) {
    const auto decoded = sensors::decode_truth(message.view());
    ASSERT_TRUE(decoded);
    boxes += decoded->boxes.size();
    for (const auto& box : decoded->boxes) tracks.insert(box.id);
  }
  EXPECT_EQ(boxes, 11364u);
  EXPECT_EQ(tracks.size(), 114u);

  constexpr std::size_t kPoints[] = {99229, 99466}, kInside[] = {9399, 9289};
  const auto& clouds = log.topics.at("/lidar/points");
  ASSERT_EQ(clouds.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto points = positions_of(clouds[i]);
    EXPECT_EQ(points.size(), kPoints[i]);
    EXPECT_GT((clouds[i].arrival - clouds[i].capture).ms(), 100);  // not before its last point
    const auto same =
        std::find_if(truth.begin(), truth.end(), [&](const ReadMessage& m) { return m.capture == clouds[i].capture; });
    ASSERT_NE(same, truth.end());
    const auto decoded = sensors::decode_truth(same->view());
    ASSERT_EQ(decoded->boxes.size(), 81u);
    std::size_t exact = 0, inside = 0;
    for (const auto& box : decoded->boxes) {
      const std::size_t found = points_inside(box, points);
      exact += found == box.lidar_points ? 1 : 0;
      inside += found;
    }
    EXPECT_EQ(exact, 81u);
    EXPECT_EQ(inside, kInside[i]);
  }
  // The vehicle drives forward.
  std::size_t driving = 0, forward = 0;
  for (const auto& message : log.topics.at("/ego/takt")) {
    const auto ego = sensors::decode_ego_motion(message.view());
    ASSERT_TRUE(ego);
    if (std::hypot(ego->velocity[0], ego->velocity[1]) < 1) continue;
    ++driving;
    forward += ego->velocity[0] > 0.95 * std::hypot(ego->velocity[0], ego->velocity[1]) ? 1 : 0;
  }
  std::printf("forward in %zu of %zu moving samples\n", forward, driving);
  EXPECT_EQ(forward, driving);
}

TEST(Argoverse2, AMissingFolderIsAnErrorAndLeavesNothing) {
  const std::string path = testing::TempDir() + "argoverse2_of_nothing.mcap";
  const Status status = convert_argoverse2("/nonexistent", path);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kInput);
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace takt::tools
