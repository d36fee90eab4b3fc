// The Point Cloud Library as oracle of PCD in both directions: it reads what `takt log export` writes, and takt reads
// what it writes.
#include <gmock/gmock.h>
#include <pcl/io/pcd_io.h>
#include <pcl/point_types.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "runtime/base/file.h"
#include "sensors/logs/encode.h"
#include "sensors/logs/log_export.h"
#include "sensors/logs/mcap_writer.h"
#include "sensors/logs/pcd.h"

namespace takt::sensors {
namespace {

namespace fs = std::filesystem;

std::vector<log::LidarPoint> some_points() {
  std::vector<log::LidarPoint> points;
  for (int i = 0; i < 50; ++i) {
    const auto v = static_cast<float>(i);
    points.push_back({v * 0.1F - 2, -v, 1e-7F * v, v / 50, -1'000'000 * i, static_cast<std::uint16_t>(i % 16)});
  }
  points[7].y = std::numeric_limits<float>::quiet_NaN();
  return points;
}

class PcdByPcl : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("takt-pcd-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
  fs::path folder_;
};

TEST_F(PcdByPcl, ReadsExportedClouds) {
  const std::vector<log::LidarPoint> points = some_points();
  auto writer = McapWriter::create(path("drive.mcap"), {});
  ASSERT_TRUE(writer) << writer.error().message;
  const auto channel =
      writer->add_channel("/lidar/points", "protobuf", *writer->add_schema(*log_schema("foxglove.PointCloud")));
  ASSERT_TRUE(writer->write(*channel, {10}, {5}, 0, encode_lidar({5}, "lidar", points)));
  ASSERT_TRUE(writer->finish());
  for (const bool ascii : {false, true}) {
    ExportOptions options;
    options.ascii = ascii;
    const std::string folder = path(ascii ? "ascii" : "binary");
    ASSERT_TRUE(export_log(path("drive.mcap"), folder, options));
    const std::string file = folder + "/lidar_points/000000_5.pcd";
    pcl::PointCloud<pcl::PointXYZI> cloud;
    ASSERT_EQ(pcl::io::loadPCDFile(file, cloud), 0) << file;
    ASSERT_EQ(cloud.size(), points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
      EXPECT_EQ(cloud[i].x, points[i].x);
      EXPECT_TRUE(cloud[i].y == points[i].y || (std::isnan(cloud[i].y) && std::isnan(points[i].y)));
      EXPECT_EQ(cloud[i].z, points[i].z);
      EXPECT_EQ(cloud[i].intensity, points[i].intensity);
    }
    pcl::PCLPointCloud2 all;
    ASSERT_EQ(pcl::io::loadPCDFile(file, all), 0);
    std::vector<std::string> names;
    for (const auto& field : all.fields) names.push_back(field.name);
    EXPECT_THAT(names, testing::ElementsAre("x", "y", "z", "intensity", "time_offset_ns", "ring"));
    for (std::size_t i = 0; i < points.size(); ++i) {
      std::int32_t time = 0;
      std::uint16_t ring = 0;
      std::memcpy(&time, &all.data[i * all.point_step + all.fields[4].offset], 4);
      std::memcpy(&ring, &all.data[i * all.point_step + all.fields[5].offset], 2);
      EXPECT_EQ(time, points[i].time_ns);
      EXPECT_EQ(ring, points[i].ring);
    }
  }
}

TEST_F(PcdByPcl, WritesCloudsThatTaktReads) {
  pcl::PointCloud<pcl::PointXYZI> cloud;
  for (const log::LidarPoint& p : some_points()) {
    pcl::PointXYZI out;
    out.x = p.x;
    out.y = p.y;
    out.z = p.z;
    out.intensity = p.intensity;
    cloud.push_back(out);
  }
  cloud.is_dense = false;
  ASSERT_EQ(pcl::io::savePCDFileASCII(path("ascii.pcd"), cloud), 0);
  ASSERT_EQ(pcl::io::savePCDFileBinary(path("binary.pcd"), cloud), 0);
  for (const char* name : {"ascii.pcd", "binary.pcd"}) {
    const std::string text = *read_file(path(name));
    const auto read = parse_pcd(text, name);
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_EQ(read->points, cloud.size());
    for (std::size_t i = 0; i < cloud.size(); ++i) {
      // PCL writes text with eight digits.
      EXPECT_NEAR(read->value(i, *read->find("x")), static_cast<double>(cloud[i].x), 1e-6);
      EXPECT_EQ(std::isnan(read->value(i, *read->find("y"))), std::isnan(cloud[i].y));
      EXPECT_NEAR(read->value(i, *read->find("intensity")), static_cast<double>(cloud[i].intensity), 1e-6);
    }
  }
  ASSERT_EQ(pcl::io::savePCDFileBinaryCompressed(path("packed.pcd"), cloud), 0);
  const auto refused = parse_pcd(*read_file(path("packed.pcd")), "packed.pcd");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("binary_compressed"));
}

}  // namespace
}  // namespace takt::sensors
