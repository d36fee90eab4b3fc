// PCL as the oracle of the classical LiDAR stage: the ground plane by RANSAC and Euclidean cluster extraction on the
// same cloud must see the same objects at the same places. PCL is used here and nowhere in timed code.
#include <gtest/gtest.h>
#include <pcl/ModelCoefficients.h>
#include <pcl/point_cloud.h>
#include <pcl/point_types.h>
#include <pcl/search/kdtree.h>
#include <pcl/segmentation/extract_clusters.h>
#include <pcl/segmentation/sac_segmentation.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "pandaset_frame.h"
#include "pipeline/stages/ground_grid.h"
#include "synthetic_street.h"
#include "tests/support/test_data.h"

namespace takt::pipeline::testing {
namespace {

struct OracleCluster {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  std::size_t points = 0;
};
struct Oracle {
  float height_at_origin = 0;  // of the ground plane
  std::vector<OracleCluster> clusters;
};

// Obstacles: points between `low` and `high` over the plane, within `range` of the vehicle origin.
Oracle ask_pcl(const std::vector<CloudPoint>& sensor_points, const sensors::RigSensor& sensor, float low, float high,
               float range, double gap) {
  const VehicleFromSensor pose(sensor.vehicle_from_sensor);
  pcl::PointCloud<pcl::PointXYZ>::Ptr cloud(new pcl::PointCloud<pcl::PointXYZ>);
  for (const CloudPoint& p : sensor_points) {
    const Point3 v = pose.point(p.x, p.y, p.z);
    const bool ego = v.x > -1.5F && v.x < 4.2F && std::fabs(v.y) < 1.1F;
    if (!ego && std::hypot(v.x, v.y) < range) cloud->push_back({v.x, v.y, v.z});
  }
  pcl::SACSegmentation<pcl::PointXYZ> segmentation;
  segmentation.setModelType(pcl::SACMODEL_PERPENDICULAR_PLANE);
  segmentation.setAxis({0, 0, 1});
  segmentation.setEpsAngle(0.1);
  segmentation.setMethodType(pcl::SAC_RANSAC);
  segmentation.setDistanceThreshold(0.1);
  segmentation.setMaxIterations(200);
  segmentation.setInputCloud(cloud);
  pcl::ModelCoefficients plane;
  pcl::PointIndices inliers;
  segmentation.segment(inliers, plane);
  Oracle oracle;
  if (plane.values.size() != 4) return oracle;
  const float a = plane.values[0], b = plane.values[1], c = plane.values[2], d = plane.values[3];
  oracle.height_at_origin = -d / c;
  pcl::PointCloud<pcl::PointXYZ>::Ptr obstacles(new pcl::PointCloud<pcl::PointXYZ>);
  for (const auto& p : *cloud) {
    const float height = p.z + (a * p.x + b * p.y + d) / c;
    if (height >= low && height <= high) obstacles->push_back({p.x, p.y, 0});
  }
  pcl::search::KdTree<pcl::PointXYZ>::Ptr tree(new pcl::search::KdTree<pcl::PointXYZ>);
  tree->setInputCloud(obstacles);
  pcl::EuclideanClusterExtraction<pcl::PointXYZ> extraction;
  extraction.setClusterTolerance(gap);
  extraction.setMinClusterSize(10);
  extraction.setMaxClusterSize(1'000'000);
  extraction.setSearchMethod(tree);
  extraction.setInputCloud(obstacles);
  std::vector<pcl::PointIndices> found;
  extraction.extract(found);
  for (const pcl::PointIndices& indices : found) {
    OracleCluster cluster{1e9F, 1e9F, -1e9F, -1e9F, indices.indices.size()};
    for (const int i : indices.indices) {
      const auto& p = (*obstacles)[static_cast<std::size_t>(i)];
      cluster.x0 = std::min(cluster.x0, p.x);
      cluster.x1 = std::max(cluster.x1, p.x);
      cluster.y0 = std::min(cluster.y0, p.y);
      cluster.y1 = std::max(cluster.y1, p.y);
    }
    oracle.clusters.push_back(cluster);
  }
  return oracle;
}

// Does a box of the stage cover the middle of an oracle cluster (within half a metre)?
bool covers(const Object& o, const OracleCluster& cluster) {
  const float dx = (cluster.x0 + cluster.x1) / 2 - o.x, dy = (cluster.y0 + cluster.y1) / 2 - o.y;
  const auto c = static_cast<float>(kernels::cos(o.yaw)), s = static_cast<float>(kernels::sin(o.yaw));
  return std::fabs(c * dx + s * dy) <= o.length / 2 + 0.5F && std::fabs(c * dy - s * dx) <= o.width / 2 + 0.5F;
}

TEST(LidarOracle, SyntheticStreetsHaveTheSameObjects) {
  constexpr std::uint32_t kCapacity = 40'000;
  const sensors::RigSensor sensor = lidar_sensor(kCapacity);
  for (std::uint32_t seed = 1; seed <= 6; ++seed) {
    SplitMix noise(seed);
    std::vector<StreetBox> boxes;
    for (int row = 0; row < 2; ++row) {
      for (int i = 0; i < 4; ++i) {  // 3.5 m apart and more: every clustering separates them
        const float x = -16 + 9.0F * static_cast<float>(i) + noise.uniform(0, 0.9F);
        boxes.push_back(StreetBox::car(x, row == 0 ? -4.5F : 4.5F, noise.uniform(-0.1F, 0.1F)));
      }
    }
    const auto points = scan_street(boxes, sensor, seed);
    const Oracle oracle = ask_pcl(points, sensor, 0.25F, 2.4F, 35, 0.9);
    StageUnderTest stage("lidar_classical", {sensor});
    const Output output = stage.run({make_cloud(points, kCapacity).input()});
    EXPECT_NEAR(oracle.height_at_origin, 0, 0.05);
    ASSERT_GE(oracle.clusters.size(), boxes.size() - 1) << "seed " << seed;
    std::uint32_t vehicles = 0;
    for (const Object& o : output.objects()) vehicles += o.object_class == ObjectClass::kVehicle ? 1 : 0;
    EXPECT_EQ(vehicles, boxes.size()) << "seed " << seed;
    for (const OracleCluster& cluster : oracle.clusters) {
      EXPECT_TRUE(std::any_of(output.objects().begin(), output.objects().end(),
                              [&](const Object& o) { return covers(o, cluster); }))
          << "seed " << seed << ": PCL sees something at " << (cluster.x0 + cluster.x1) / 2 << ", "
          << (cluster.y0 + cluster.y1) / 2;
    }
  }
}

// Clusters of PCL with the size of a vehicle must be vehicles for the stage, too. The street has trees and walls, and
// one plane is a poor ground there: a share, not all.
TEST(LidarOracle, PandaSetHasMostlyTheSameVehicles) {
  TAKT_TEST_DATA_OR_SKIP(folder, "sensors/pandaset_002");
  const sensors::RigSensor sensor = pandaset_lidar();
  const auto points = read_pandaset_points(folder, 0);
  ASSERT_EQ(points.size(), 106'169U);
  const Oracle oracle = ask_pcl(points, sensor, 0.3F, 2.2F, 30, 0.6);
  StageUnderTest stage("lidar_classical", {sensor});
  const Output output = stage.run({make_cloud(points, 120'000).input()});
  int expected = 0, found = 0;
  for (const OracleCluster& cluster : oracle.clusters) {
    const float dx = cluster.x1 - cluster.x0, dy = cluster.y1 - cluster.y0;
    if (cluster.points < 150 || std::max(dx, dy) < 3.5F || std::max(dx, dy) > 6 || std::min(dx, dy) < 1.2F) continue;
    ++expected;
    found += std::any_of(output.objects().begin(), output.objects().end(),
                         [&](const Object& o) { return o.object_class == ObjectClass::kVehicle && covers(o, cluster); })
                 ? 1
                 : 0;
  }
  std::printf("PCL sees %d clusters of vehicle size, the stage has a vehicle at %d of them\n", expected, found);
  EXPECT_GE(expected, 5);
  EXPECT_GE(found, expected * 8 / 10);
}

}  // namespace
}  // namespace takt::pipeline::testing
