#include <pcl/ModelCoefficients.h>
#include <pcl/point_cloud.h>
#include <pcl/point_types.h>
#include <pcl/segmentation/sac_segmentation.h>

#include <cmath>

#include "sensors/rig_pcl/cloud.h"
#include "sensors/rig_pcl/rig_pcl.h"

namespace takt::sensors {

bool has_pcl() { return true; }

Result<GroundPlane> fit_ground(std::span<const CloudPoint> points, const GroundOptions& options) {
  constexpr std::size_t kFewest = 50;
  if (points.size() < kFewest) return fail(Code::kInput, "too few points for a plane");
  const auto cloud = to_pcl(points);
  pcl::SACSegmentation<pcl::PointXYZ> segmentation;  // its random numbers start from the same seed every time
  segmentation.setOptimizeCoefficients(true);
  segmentation.setModelType(pcl::SACMODEL_PERPENDICULAR_PLANE);
  segmentation.setMethodType(pcl::SAC_RANSAC);
  segmentation.setAxis(Eigen::Vector3f::UnitZ());
  segmentation.setEpsAngle(options.max_tilt_rad);
  segmentation.setDistanceThreshold(options.distance_m);
  segmentation.setMaxIterations(500);
  segmentation.setProbability(0.999);
  segmentation.setInputCloud(cloud);
  pcl::PointIndices inliers;
  pcl::ModelCoefficients model;
  segmentation.segment(inliers, model);
  if (inliers.indices.size() < kFewest || model.values.size() != 4) {
    return fail(Code::kInput, "no level plane with at least " + std::to_string(kFewest) + " points");
  }
  GroundPlane plane;
  const double sign = model.values[2] < 0 ? -1 : 1;
  for (std::size_t i = 0; i < 3; ++i) plane.normal[i] = sign * static_cast<double>(model.values[i]);
  plane.offset = -sign * static_cast<double>(model.values[3]);
  plane.points = inliers.indices.size();
  double sum = 0;
  for (const int index : inliers.indices) {
    const CloudPoint& p = points[static_cast<std::size_t>(index)];
    double distance = -plane.offset;
    for (std::size_t i = 0; i < 3; ++i) distance += plane.normal[i] * static_cast<double>(p[i]);
    sum += distance * distance;
  }
  plane.rms_m = std::sqrt(sum / static_cast<double>(plane.points));
  return plane;
}

}  // namespace takt::sensors
