// Data sets from synthetic folders in the exact layouts: the licences of the real ones forbid to ship them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "sensors/logs/dataset_log.h"
#include "sensors/logs/decode.h"
#include "sensors/logs/kitti_text.h"
#include "sensors/logs/log_reader.h"
#include "sensors/logs/nuscenes.h"
#include "sensors/logs/pcd.h"
#include "sensors/logs/point_fields.h"
#include "tests/sensors/logs/set_files.h"

namespace takt::sensors {
namespace {

namespace fs = std::filesystem;
using namespace test;

struct Message {
  SensorTime arrival, capture;
  std::string bytes;
  [[nodiscard]] std::span<const std::byte> view() const { return std::as_bytes(std::span(bytes)); }
};
std::map<std::string, std::vector<Message>> read_all(LogReader& log) {
  std::map<std::string, std::vector<Message>> all;
  for (;;) {
    const auto message = log.next();
    EXPECT_TRUE(message) << (message ? "" : message.error().message);
    if (!message || !*message) return all;
    const auto bytes = (*message)->bytes;
    all[(*message)->channel->topic].push_back(
        {(*message)->arrival, (*message)->capture, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}});
  }
}
std::size_t points_in(const Message& message) {
  const auto cloud = decode_point_cloud(message.view());
  EXPECT_TRUE(cloud);
  return cloud ? PointLayout(*cloud).points() : 0;
}
std::string all_notes(const LogReader& log) {
  std::string out;
  for (const auto& note : log.notes()) out += note + "\n";
  return out;
}

const ReportProblem kIgnore = [](std::string, std::uint64_t, std::string) {};

TEST(KittiText, TimestampsKeepTheirNanoseconds) {
  std::vector<LogProblem> problems;
  const auto stamps = kitti::parse_timestamps(
      "2011-09-26 13:02:25.964389445\n\n2011-09-26 13:02:26.1\nnonsense\n2011-09-26 13:02:27\r\n", "t",
      [&](std::string kind, std::uint64_t offset, std::string detail) {
        problems.push_back({kind, offset, detail});
      });
  ASSERT_EQ(stamps.size(), 5u);
  EXPECT_EQ(stamps[0]->ns, 1317042145964389445);
  EXPECT_FALSE(stamps[1]);
  EXPECT_EQ(stamps[2]->ns, 1317042146100000000);
  EXPECT_FALSE(stamps[3]);
  EXPECT_EQ(stamps[4]->ns, 1317042147000000000);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].offset, 53u);
}

TEST(KittiText, CalibrationOfBothSetsIsRead) {
  const std::string p2 = "P2: 700 0 600 45 0 700 180 -0.5 0 0 1 0.005\n";
  const auto object = kitti::calibration_of(
      kitti::parse_values(p2 + "R0_rect: 1 0 0 0 1 0 0 0 1\nTr_velo_to_cam: 0 -1 0 0 0 0 -1 -0.08 1 0 0 -0.27\n"));
  const auto tracking = kitti::calibration_of(
      kitti::parse_values(p2 + "R_rect 1 0 0 0 1 0 0 0 1\nTr_velo_cam 0 -1 0 0 0 0 -1 -0.08 1 0 0 -0.27\n"));
  ASSERT_TRUE(object);
  ASSERT_TRUE(tracking);
  // A point 10 m ahead: the projection of P2 equals that of the colour camera's own frame.
  const auto in_camera = object->camera_from_velodyne.apply({10, 1, -1});
  const auto own = object->picture_from_velodyne().apply({10, 1, -1});
  const double w = in_camera[2] + 0.005;
  EXPECT_NEAR((700 * in_camera[0] + 600 * in_camera[2] + 45) / w, 700 * own[0] / own[2] + 600, 1e-9);
  EXPECT_NEAR((700 * in_camera[1] + 180 * in_camera[2] - 0.5) / w, 700 * own[1] / own[2] + 180, 1e-9);
  EXPECT_EQ(object->camera_from_velodyne.rotation, tracking->camera_from_velodyne.rotation);
  EXPECT_FALSE(kitti::calibration_of(kitti::parse_values("P2: 1 2 3")));
}

TEST(KittiText, DamagedLabelsAreLeftOutWithTheirPlace) {
  const std::string good = "Car 0.00 1 2.04 334.85 178.94 624.50 372.04 1.57 1.50 3.68 -1.17 1.65 7.86 1.90\n";
  std::vector<LogProblem> problems;
  const auto labels = kitti::parse_labels(good + "Car 0.00 x\n" + good, "labels", false,
                                          [&](std::string kind, std::uint64_t offset, std::string detail) {
                                            problems.push_back({kind, offset, detail});
                                          });
  EXPECT_EQ(labels.size(), 2u);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].offset, good.size());
  for (std::size_t n = 0; n <= good.size(); ++n)
    (void)kitti::parse_labels(good.substr(0, n), "cut", n % 2 == 0, kIgnore);
}

TEST(KittiText, ABoxStandsUprightAndLooksAlongItsYaw) {
  // The camera looks ahead from the place of the LiDAR.
  kitti::Values values = kitti::parse_values("T: 0 -1 0 0 0 0 -1 0 1 0 0 0");
  const Transform camera_from_lidar = *kitti::transform_of(values, "T");
  kitti::Label label;
  label.type = "Car";
  label.height = 2;
  label.width = 1.6;
  label.length = 4;
  label.location = {3, 1.5, 10};            // right, down, ahead; bottom centre
  label.rotation_y = -std::acos(-1.0) / 2;  // looks ahead
  const log::Pose pose = kitti::box_pose(label, camera_from_lidar);
  EXPECT_NEAR(pose.position[0], 10, 1e-9);
  EXPECT_NEAR(pose.position[1], -3, 1e-9);
  EXPECT_NEAR(pose.position[2], -0.5, 1e-9);
  const auto ahead = Transform::from_quaternion(pose.orientation, {0, 0, 0}).apply({1, 0, 0});
  EXPECT_NEAR(ahead[0], 1, 1e-9);
  label.rotation_y = 0;  // looks right
  const auto right =
      Transform::from_quaternion(kitti::box_pose(label, camera_from_lidar).orientation, {0, 0, 0}).apply({1, 0, 0});
  EXPECT_NEAR(right[1], -1, 1e-9);
  const auto upright =
      Transform::from_quaternion(kitti::upright_box_pose(label, camera_from_lidar).orientation, {0, 0, 0})
          .apply({1, 0, 0});
  EXPECT_NEAR(upright[1], -1, 1e-9);
}

// One drive with what real ones have: an empty stamp line, a stamp without file, a cut cloud.
TEST(KittiRaw, ADriveWithHolesIsReadAndTold) {
  const Folder folder;
  const std::string drive = "2011_09_26/2011_09_26_drive_0009_sync/";
  folder.write("2011_09_26/calib_velo_to_cam.txt",
               "calib_time: 15-Mar-2012 11:37:16\nR: 0 -1 0 0 0 -1 1 0 0\nT: 0 -0.08 -0.27\n");
  folder.write("2011_09_26/calib_imu_to_velo.txt", "R: 1 0 0 0 1 0 0 0 1\nT: -0.81 0.32 -0.8\n");
  folder.write("2011_09_26/calib_cam_to_cam.txt",
               "R_rect_00: 1 0 0 0 1 0 0 0 1\nP_rect_02: 700 0 600 45 0 700 180 0 0 0 1 0\n");
  const auto stamps = [&](const std::string& name, const char* fraction) {
    std::string text;
    for (int i = 0; i < 5; ++i) text += i == 3 ? "\n" : "2011-09-26 13:00:0" + std::to_string(i) + fraction + "\n";
    folder.write(drive + "velodyne_points/" + name, text);
  };
  stamps("timestamps.txt", ".500000001");
  stamps("timestamps_start.txt", ".450000000");
  stamps("timestamps_end.txt", ".553000000");
  folder.write(drive + "velodyne_points/data/0000000000.bin",
               rows({{10, 0, 0, 0.5F}, {-10, 0.0001F, 0, 1}, {0, -5, 0, 0}}));
  folder.write(drive + "velodyne_points/data/0000000001.bin", rows({{1, 2, 3, 0}}) + "cut");
  folder.write(drive + "velodyne_points/data/0000000004.bin", rows({{1, 2, 3, 0}}));
  std::string oxts_stamps;
  for (int i = 0; i < 3; ++i) {
    oxts_stamps += "2011-09-26 13:00:0" + std::to_string(i) + ".0\n";
    // 10 m/s ahead, turning left by 0.1 rad/s.
    folder.write(drive + "oxts/data/000000000" + std::to_string(i) + ".txt",
                 "49.0 8.4 110 0 0 0 0 10 10 0 0 0 0 9.8 0 0 9.8 0 0 0.1 0 0 0.1 0.05 0.1 4 11 5 5 5\n");
  }
  folder.write(drive + "oxts/timestamps.txt", oxts_stamps);

  auto log = open_log(folder.path(drive));
  ASSERT_TRUE(log) << log.error().message;
  auto topics = read_all(**log);
  const auto& clouds = topics.at("/lidar/velodyne/points");
  ASSERT_EQ(clouds.size(), 3u);
  EXPECT_EQ(clouds[0].capture.ns % 1'000'000'000, 500'000'001);
  EXPECT_EQ((clouds[0].arrival - clouds[0].capture).ns, 52'999'999);  // with its last point
  EXPECT_EQ(points_in(clouds[1]), 1u);
  const auto cloud = decode_point_cloud(clouds[0].view());
  PointLayout layout(*cloud);
  const auto time = layout.find({"time_offset_ns"}, true);
  EXPECT_EQ(time.at(layout.point(0)), 0);               // ahead, at the stamp
  EXPECT_NEAR(time.at(layout.point(1)), -51.5e6, 1e3);  // behind, where the turn begins
  EXPECT_NEAR(time.at(layout.point(2)), 25.75e6, 1);    // right
  ASSERT_EQ((*log)->problems().size(), 1u);
  EXPECT_EQ((*log)->problems()[0].kind, "truncated cloud");
  EXPECT_EQ((*log)->problems()[0].offset, 16u);
  EXPECT_NE(all_notes(**log).find("velodyne_points: 2 frames have no file (2, 3)"), std::string::npos)
      << all_notes(**log);

  const auto& ego = topics.at("/ego/takt");
  ASSERT_EQ(ego.size(), 3u);
  const auto motion = decode_ego_motion(ego[0].view());
  ASSERT_TRUE(motion);
  EXPECT_NEAR(motion->angular_velocity[2], 0.1, 1e-12);
  // The unit sits 0.05 m behind the axle's centre and 0.32 m left of it: v = v_unit + w x r.
  EXPECT_NEAR(motion->velocity[0], 10 + 0.1 * 0.32, 1e-9);
  EXPECT_NEAR(motion->velocity[1], 0.1 * 0.05, 1e-9);
}

TEST(KittiRaw, ACloudWithoutStampIsAProblem) {
  const Folder folder;
  folder.write("d/velodyne_points/timestamps.txt", "2011-09-26 13:00:00.0\n");
  folder.write("d/velodyne_points/data/0000000000.bin", rows({{1, 2, 3, 0}}));
  folder.write("d/velodyne_points/data/0000000001.bin", rows({{1, 2, 3, 0}}));
  const auto log = open_log(folder.path("d"));
  ASSERT_TRUE(log) << log.error().message;
  ASSERT_EQ((*log)->problems().size(), 1u);
  EXPECT_EQ((*log)->problems()[0].kind, "missing stamp");
}

TEST(KittiTracking, OxtsAndCloudsOfASequenceAreStampedAt10Hz) {
  const Folder folder;
  folder.write("training/velodyne/0003/000000.bin", rows({{1, 2, 3, 0}}));
  folder.write("training/velodyne/0003/000002.bin", rows({{1, 2, 3, 0}}));
  folder.write("training/image_02/0003/readme.txt", "");
  folder.write("training/oxts/0003.txt",
               "49.0 8.4 110 0 0 0 0 10 10 0 0 0 0 9.8 0 0 9.8 0 0 0.1 0 0 0.1\nbroken\n"
               "49.0001 8.4 110 0 0 0 0 10 10 0 0 0 0 9.8 0 0 9.8 0 0 0.1 0 0 0.1\n");
  auto log = open_log(folder.path());
  ASSERT_TRUE(log) << log.error().message;
  auto topics = read_all(**log);
  ASSERT_EQ(topics.at("/lidar/velodyne/points").size(), 2u);
  EXPECT_EQ(topics.at("/lidar/velodyne/points")[1].capture.ns, 200'000'000);
  const auto& ego = topics.at("/ego/takt");
  ASSERT_EQ(ego.size(), 2u);
  EXPECT_EQ(ego[1].capture.ns, 200'000'000);
  const auto last = decode_ego_motion(ego[1].view());
  const auto first = decode_ego_motion(ego[0].view());
  EXPECT_NEAR(last->pose.position[1] - first->pose.position[1], 11.13, 0.05);  // 0.0001 degrees north
  ASSERT_EQ((*log)->problems().size(), 1u);
  EXPECT_EQ((*log)->problems()[0].kind, "bad OXTS packet");
}

TEST(DataSets, EmptyAndForeignFoldersAreRefused) {
  const Folder folder;
  folder.write("empty/readme.txt", "");
  const auto none = open_log(folder.path("empty"));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kInput);
  EXPECT_NE(none.error().message.find("KITTI"), std::string::npos) << none.error().message;
  folder.write("hollow/velodyne/readme.txt", "");
  const auto hollow = open_log(folder.path("hollow"));
  ASSERT_FALSE(hollow);
  EXPECT_NE(hollow.error().message.find("KITTI object"), std::string::npos) << hollow.error().message;
  EXPECT_FALSE(open_log(folder.path("nothing") + "#0001"));
}

TEST(DataSets, AFileThatVanishesIsLeftOutAndTold) {
  const Folder folder;
  for (const char* name : {"000000", "000001", "000002"}) {
    folder.write("velodyne/" + std::string(name) + ".bin", rows({{1, 2, 3, 0}}));
  }
  auto log = open_log(folder.path());
  ASSERT_TRUE(log);
  fs::remove(folder.path("velodyne/000001.bin"));
  EXPECT_EQ(read_all(**log).at("/lidar/velodyne/points").size(), 2u);
  ASSERT_EQ((*log)->problems().size(), 1u);
  (*log)->rewind();
  EXPECT_EQ(read_all(**log).at("/lidar/velodyne/points").size(), 2u);
  EXPECT_EQ((*log)->problems().size(), 1u);
}

TEST(DataSets, ReleaseRulesGiveTheArrivals) {
  const Folder folder;
  folder.write("velodyne/000001.bin", rows({{1, 2, 3, 0}}));
  const auto log = open_log(folder.path(), {{"/lidar/velodyne/points", {}, milliseconds(30)}});
  ASSERT_TRUE(log);
  (*log)->select({"/lidar/velodyne/points"});
  const auto message = (*log)->next();
  ASSERT_TRUE(message && *message);
  EXPECT_EQ((**message).arrival.ns, 130'000'000);
}

TEST(ViewOfDelftSet, DuplicatesGoWhateverTheirOrder) {
  const Folder folder;
  const std::string a = rows({{1, 2, 3, 4}}), b = rows({{5, 6, 7, 8}}), c = rows({{1, 2, 3, 5}});
  folder.write("lidar/training/velodyne/00001.bin", a + b + c + a + c + b + a);
  folder.write("radar/training/velodyne/00001.bin", rows({{1, 2, 3, -10, -5, 0.1F, 0}}));
  auto log = open_log(folder.path());
  ASSERT_TRUE(log) << log.error().message;
  auto topics = read_all(**log);
  const auto cloud = decode_point_cloud(topics.at("/lidar/points").at(0).view());
  ASSERT_TRUE(cloud);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(cloud->data.data()), cloud->data.size()), a + b + c);
  EXPECT_NE(all_notes(**log).find("4 of 7 rows"), std::string::npos) << all_notes(**log);
  const auto returns = decode_point_cloud(topics.at("/radar/returns").at(0).view());
  PointLayout layout(*returns);
  EXPECT_FLOAT_EQ(static_cast<float>(layout.find({"range_rate"}, true).at(layout.point(0))), -5);
  EXPECT_FLOAT_EQ(static_cast<float>(layout.find({"rcs"}, true).at(layout.point(0))), -10);
}

TEST(NuScenesRadar, MixedFieldsAndDefaultFilters) {
  std::uint64_t filtered = 0;
  const std::string pcd = radar_pcd(5, {{0, 3, 0}, {7, 3, 0}, {6, 3, 0}, {0, 2, 0}, {0, 3, 1}});
  const auto message = nuscenes_radar_message(pcd, "radar.pcd", {1}, "RADAR_FRONT", filtered);
  ASSERT_TRUE(message) << message.error().message;
  EXPECT_EQ(filtered, 3u);
  const auto cloud = decode_point_cloud(std::as_bytes(std::span(*message)));
  ASSERT_TRUE(cloud);
  PointLayout layout(*cloud);
  ASSERT_EQ(layout.points(), 2u);
  EXPECT_NEAR(layout.find({"range_rate"}, true).at(layout.point(0)), 10, 1e-6);  // (6, 8) along (3, 4)
  EXPECT_NEAR(layout.find({"rcs"}, true).at(layout.point(1)), 7.5, 1e-6);
  EXPECT_NEAR(layout.find({"vx_comp"}, true).at(layout.point(1)), 0.5, 1e-6);
}

TEST(Pcd, CutsGiveTheWholePointsAndDamageGivesAReason) {
  const std::string pcd = radar_pcd(3, {{0, 3, 0}, {1, 3, 0}, {2, 3, 0}});
  const std::size_t head = pcd.size() - 3 * 43;
  for (std::size_t n = 0; n <= pcd.size(); ++n) {
    const auto cloud = parse_pcd(pcd.substr(0, n), "cut.pcd");
    if (n < head - 1) {
      ASSERT_FALSE(cloud) << n;
    } else {
      ASSERT_TRUE(cloud) << n;
      ASSERT_EQ(cloud->points, n < head ? 0 : (n - head) / 43);
      ASSERT_EQ(cloud->announced, 3u);
    }
  }
  for (std::size_t n = 0; n < pcd.size(); ++n) {
    std::string damaged = pcd;
    damaged[n] = static_cast<char>(damaged[n] ^ 0x15);
    if (const auto cloud = parse_pcd(damaged, "damaged.pcd")) {
      for (const PcdField& field : cloud->fields) {
        if (cloud->points > 0) (void)cloud->value(cloud->points - 1, field);
      }
    }
  }
  EXPECT_NE(
      parse_pcd("VERSION 0.7\nFIELDS x\nSIZE 4\nTYPE F\nCOUNT 1\nWIDTH 1\nHEIGHT 1\nPOINTS 1\nDATA binary_compressed\n",
                "p")
          .error()
          .message.find("p:9"),
      std::string::npos);
}

TEST(Pcd, AsciiIsRead) {
  const auto cloud = parse_pcd(
      "VERSION .7\nFIELDS x n\nSIZE 4 1\nTYPE F U\nCOUNT 1 1\nWIDTH 2\nHEIGHT 1\nPOINTS 2\nDATA ascii\n1.5 7\nnan "
      "255\n",
      "p");
  ASSERT_TRUE(cloud) << cloud.error().message;
  ASSERT_EQ(cloud->points, 2u);
  EXPECT_EQ(cloud->value(0, cloud->fields[0]), 1.5);
  EXPECT_TRUE(std::isnan(cloud->value(1, cloud->fields[0])));
  EXPECT_EQ(cloud->value(1, cloud->fields[1]), 255);
  EXPECT_FALSE(parse_pcd("FIELDS x\nSIZE 1\nTYPE U\nWIDTH 1\nHEIGHT 1\nDATA ascii\n256\n", "p"));
}

TEST(Pictures, SizesComeFromTheFirstBytes) {
  const std::string png("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x04\xda\0\0\x01\x77", 24);
  EXPECT_EQ(picture_size(png), (std::array<std::uint32_t, 2>{1242, 375}));
  const std::string jpeg("\xff\xd8\xff\xe0\0\x04xx\xff\xc0\0\x11\x08\x04\xc0\x07\x90", 17);
  EXPECT_EQ(picture_size(jpeg), (std::array<std::uint32_t, 2>{1936, 1216}));
  for (std::size_t n = 0; n < jpeg.size(); ++n) (void)picture_size(jpeg.substr(0, n));
  EXPECT_EQ(picture_size("GIF89a"), (std::array<std::uint32_t, 2>{0, 0}));
}

}  // namespace
}  // namespace takt::sensors
