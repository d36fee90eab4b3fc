// Real frames in KITTI's layouts: counts, and boxes that are in the right place only under the right conventions.
#include <gtest/gtest.h>

#include <set>

#include "runtime/base/file.h"
#include "sensors/logs/kitti_text.h"
#include "tests/conformance/read_log.h"
#include "tests/support/test_data.h"

namespace takt::sensors {
namespace {

using namespace test;

const ReportProblem kNoProblem = [](std::string kind, std::uint64_t, std::string detail) {
  ADD_FAILURE() << kind << ": " << detail;
};

struct FrameFigures {
  int frame;
  std::size_t points, in_range, pillars, voxels;
};
constexpr FrameFigures kFrames[] = {{0, 20285, 20237, 3385, 16775}, {1, 18630, 18279, 6816, 15449},
                                    {2, 20210, 19831, 3105, 14809}, {4, 19063, 18048, 7516, 15283},
                                    {6, 19473, 18629, 5626, 15052}, {8, 17238, 16897, 3947, 13048}};

// Cells of the points in range. The published pillars come from single-precision bounds and sizes, the voxels from
// double-precision ones; both divide in double precision.
std::size_t cells(const std::vector<std::array<double, 3>>& points, double low_y, double xy, double z) {
  std::set<std::array<int, 3>> found;
  for (const auto& p : points) {
    const auto index = [](double v, double low, double size) { return static_cast<int>(std::floor((v - low) / size)); };
    found.insert({index(p[0], 0, xy), index(p[1], low_y, xy), index(p[2], -3, z)});
  }
  return found.size();
}

TEST(KittiClouds, SixFramesHaveThePublishedCounts) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/cuda_pointpillars_kitti");
  const ReadLog log = read_log(folder);
  EXPECT_TRUE(log.problems.empty());
  const auto& clouds = log.topics.at("/lidar/velodyne/points");
  ASSERT_EQ(clouds.size(), std::size(kFrames));
  for (std::size_t i = 0; i < clouds.size(); ++i) {
    const auto& want = kFrames[i];
    EXPECT_EQ(clouds[i].capture.ns, want.frame * std::int64_t{100'000'000});
    const auto points = positions_of(clouds[i]);
    EXPECT_EQ(points.size(), want.points) << want.frame;
    std::vector<std::array<double, 3>> inside;
    for (const auto& p : points) {
      const auto x = static_cast<float>(p[0]), y = static_cast<float>(p[1]), z = static_cast<float>(p[2]);
      if (x >= 0 && x < 69.12F && y >= -39.68F && y < 39.68F && z >= -3 && z < 1) inside.push_back(p);
    }
    EXPECT_EQ(inside.size(), want.in_range) << want.frame;
    EXPECT_EQ(cells(inside, static_cast<double>(-39.68F), static_cast<double>(0.16F), 4), want.pillars) << want.frame;
    EXPECT_EQ(cells(inside, -39.68, 0.05, 0.1), want.voxels) << want.frame;
  }
  ASSERT_EQ(log.topics.at("/truth/takt").size(), 2u);  // frames 1 and 8 have labels
  EXPECT_EQ(decode_truth(log.topics.at("/truth/takt")[1].view())->boxes.size(), 6u);
}

// The reference detector's boxes in the camera frame against the same boxes in the LiDAR frame, which it lists too.
TEST(KittiClouds, BoxesOfTheCameraFrameLandWhereTheLidarFrameHasThem) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/cuda_pointpillars_kitti");
  const auto calibration = kitti::calibration_of(kitti::parse_values(*read_file(folder + "/calib/2011_09_26.txt")));
  ASSERT_TRUE(calibration);
  std::size_t compared = 0;
  for (const char* frame : {"000001", "000008"}) {
    const auto camera =
        kitti::parse_labels(*read_file(folder + "/pred/" + std::string(frame) + ".txt"), frame, false, kNoProblem);
    // x y z (centre) l w h yaw class score
    std::vector<std::vector<double>> lidar;
    const std::string text = *read_file(folder + "/pred_velo/" + std::string(frame) + ".txt");
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const auto row = kitti::parse_values("row: " + text.substr(at, end - at));
      if (!row.empty() && row.at("row").size() == 9) lidar.push_back(row.at("row"));
      at = end + 1;
    }
    ASSERT_FALSE(lidar.empty());
    for (const auto& label : camera) {
      const log::Pose pose = kitti::box_pose(label, calibration->camera_from_velodyne);
      double best = 1e9, turn = 0;
      for (const auto& row : lidar) {
        const double d = std::hypot(row[0] - pose.position[0], row[1] - pose.position[1], row[2] - pose.position[2]);
        if (d >= best) continue;
        best = d;
        const auto& q = pose.orientation;
        turn = std::remainder(2 * std::atan2(q[3], q[0]) - row[6], 2 * std::acos(-1.0));
      }
      EXPECT_LT(best, 0.1) << frame << " " << label.type;
      EXPECT_LT(std::fabs(turn), 0.05) << frame << " " << label.type;
      ++compared;
    }
  }
  std::printf("%zu boxes compared\n", compared);
  EXPECT_GE(compared, 10u);
}

TEST(KittiObject, SixCarsOfFrame8HoldTheirPointsAndFitTheReferenceDetections) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/cuda_pointpillars_kitti");
  const ReadLog log = read_log(folder);
  const auto truth = decode_truth(log.topics.at("/truth/takt")[1].view());
  ASSERT_TRUE(truth);
  const auto points = moved(positions_of(log.topics.at("/lidar/velodyne/points")[5]), frame_of(log, "velodyne"));
  constexpr std::size_t kWant[] = {1424, 1940, 878, 668, 53, 164};
  ASSERT_EQ(truth->boxes.size(), std::size(kWant));
  for (std::size_t i = 0; i < std::size(kWant); ++i) {
    EXPECT_EQ(truth->boxes[i].object_class, 1u);
    EXPECT_EQ(points_inside(truth->boxes[i], points), kWant[i]) << i;
  }
  const auto cars = kitti::parse_labels(*read_file(folder + "/label_2/000008.txt"), "label", false, kNoProblem);
  const auto found = kitti::parse_labels(*read_file(folder + "/pcdet/000008.txt"), "pcdet", false, kNoProblem);
  std::size_t matched = 0;
  for (const auto& car : cars) {
    if (car.type != "Car") continue;
    for (const auto& d : found) {
      // On the ground; the texts are rounded to a centimetre.
      const double gap = std::hypot(car.location[0] - d.location[0], car.location[2] - d.location[2]);
      if (d.type == "Car" && gap < 0.345) {
        ++matched;
        break;
      }
    }
  }
  EXPECT_EQ(matched, 6u);
}

TEST(KittiObject, Frame8OfAnotherSourceIsTheSame) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/mmdet3d_kitti_000008");
  const ReadLog log = read_log(folder);
  ASSERT_EQ(log.topics.at("/lidar/velodyne/points").size(), 1u);
  EXPECT_EQ(positions_of(log.topics.at("/lidar/velodyne/points")[0]).size(), 17238u);
  ASSERT_EQ(log.topics.at("/camera/image_2/image").size(), 1u);
  const auto picture = decode_compressed_image(log.topics.at("/camera/image_2/image")[0].view());
  ASSERT_TRUE(picture);
  EXPECT_EQ(picture->format, "png");
  const auto size = picture_size({reinterpret_cast<const char*>(picture->data.data()), picture->data.size()});
  EXPECT_EQ(size, (std::array<std::uint32_t, 2>{1242, 375}));
  const auto labels = kitti::parse_labels(*read_file(folder + "/label_000008.txt"), "labels", false, kNoProblem);
  std::size_t cars = 0, ignored = 0;
  for (const auto& label : labels) (label.type == "Car" ? cars : ignored) += 1;
  EXPECT_EQ(cars, 6u);
  EXPECT_EQ(ignored, 4u);
}

TEST(KittiObject, VerySmallCloudsAreRead) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/mmdet3d_testdata");
  const ReadLog kitti = read_log(folder + "/kitti");
  ASSERT_EQ(kitti.topics.at("/lidar/velodyne/points").size(), 1u);
  EXPECT_EQ(positions_of(kitti.topics.at("/lidar/velodyne/points")[0]).size(), 800u);
  EXPECT_EQ(kitti.topics.at("/camera/image_2/image").size(), 2u);
  const ReadLog semantic = read_log(folder + "/semantickitti/sequences/00");
  ASSERT_EQ(semantic.topics.at("/lidar/velodyne/points").size(), 1u);
  EXPECT_EQ(positions_of(semantic.topics.at("/lidar/velodyne/points")[0]).size(), 50u);
}

struct SequenceFigures {
  const char* name;
  std::size_t frames, rows, cars, pedestrians, cyclists, pictures;
};
constexpr SequenceFigures kSequences[] = {{"0001", 447, 4271, 89, 3, 0, 2}, {"0006", 270, 1446, 11, 0, 0, 0},
                                          {"0012", 78, 354, 2, 1, 1, 0},    {"0013", 340, 2410, 2, 42, 8, 0},
                                          {"0016", 209, 4145, 4, 19, 5, 2}, {"0018", 339, 1794, 18, 0, 0, 0}};

TEST(KittiTracking, SixSequencesHaveThePublishedFramesRowsAndTracks) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/kitti_tracking_ab3dmot");
  std::size_t frames = 0, rows = 0;
  for (const auto& want : kSequences) {
    const ReadLog log = read_log(folder + "#" + want.name);
    EXPECT_TRUE(log.problems.empty()) << want.name;
    const auto& truth = log.topics.at("/truth/takt");
    EXPECT_EQ(truth.size(), want.frames) << want.name;
    frames += truth.size();
    const auto pictures = log.topics.find("/camera/image_2/image");
    EXPECT_EQ(pictures == log.topics.end() ? 0 : pictures->second.size(), want.pictures) << want.name;
    const auto labels =
        kitti::parse_labels(*read_file(folder + "/label_02/" + want.name + ".txt"), want.name, true, kNoProblem);
    EXPECT_EQ(labels.size(), want.rows) << want.name;
    rows += labels.size();
    std::size_t boxes = 0, with_box = 0;
    std::map<std::string, std::set<int>> tracks;
    for (const auto& label : labels) {
      with_box += label.has_box() ? 1 : 0;
      tracks[label.type].insert(label.track);
    }
    for (const auto& message : truth) boxes += decode_truth(message.view())->boxes.size();
    EXPECT_EQ(boxes, with_box) << want.name;
    EXPECT_EQ(tracks["Car"].size(), want.cars) << want.name;
    EXPECT_EQ(tracks["Pedestrian"].size(), want.pedestrians) << want.name;
    EXPECT_EQ(tracks["Cyclist"].size(), want.cyclists) << want.name;
  }
  EXPECT_EQ(frames, 1683u);
  EXPECT_EQ(rows, 14420u);
}

TEST(KittiTracking, ASequenceMustBeNamed) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/kitti_tracking_ab3dmot");
  const auto log = open_log(folder);
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().code, Code::kInput);
  EXPECT_NE(log.error().message.find("#0001"), std::string::npos) << log.error().message;
  EXPECT_NE(log.error().message.find("0018"), std::string::npos);
  EXPECT_FALSE(open_log(folder + "#0002"));
}

}  // namespace
}  // namespace takt::sensors
