#include <pcl/filters/voxel_grid.h>
#include <pcl/registration/gicp.h>

#include <cmath>

#include "sensors/rig_pcl/cloud.h"
#include "sensors/rig_pcl/rig_pcl.h"

namespace takt::sensors {
namespace {

pcl::PointCloud<pcl::PointXYZ>::Ptr thinned(std::span<const CloudPoint> points, double voxel_m) {
  pcl::PointCloud<pcl::PointXYZ>::Ptr out(new pcl::PointCloud<pcl::PointXYZ>);
  pcl::VoxelGrid<pcl::PointXYZ> grid;
  const auto leaf = static_cast<float>(voxel_m);
  grid.setLeafSize(leaf, leaf, leaf);
  grid.setInputCloud(to_pcl(points));
  grid.filter(*out);
  return out;
}

}  // namespace

Result<Registration> register_clouds(std::span<const CloudPoint> target, std::span<const CloudPoint> source,
                                     const Transform& guess, const RegistrationOptions& options) {
  const auto thin_target = thinned(target, options.voxel_m);
  const auto thin_source = thinned(source, options.voxel_m);
  if (thin_target->size() < 100 || thin_source->size() < 100) {
    return fail(Code::kInput, "too few points to register two sweeps");
  }
  pcl::GeneralizedIterativeClosestPoint<pcl::PointXYZ, pcl::PointXYZ> gicp;
  gicp.setInputTarget(thin_target);
  gicp.setInputSource(thin_source);
  gicp.setMaxCorrespondenceDistance(options.reach_m);
  gicp.setMaximumIterations(options.iterations);
  Eigen::Matrix4f start = Eigen::Matrix4f::Identity();
  for (int r = 0; r < 3; ++r) {
    for (int c = 0; c < 3; ++c) start(r, c) = static_cast<float>(guess.rotation[static_cast<std::size_t>(3 * r + c)]);
    start(r, 3) = static_cast<float>(guess.translation[static_cast<std::size_t>(r)]);
  }
  pcl::PointCloud<pcl::PointXYZ> moved;
  gicp.align(moved, start);
  if (!gicp.hasConverged()) return fail(Code::kInput, "the registration of two sweeps did not converge");
  const Eigen::Matrix4f found = gicp.getFinalTransformation();
  Registration out;
  for (int r = 0; r < 3; ++r) {
    for (int c = 0; c < 3; ++c) out.target_from_source.rotation[static_cast<std::size_t>(3 * r + c)] = found(r, c);
    out.target_from_source.translation[static_cast<std::size_t>(r)] = found(r, 3);
  }
  // Back onto the rotations exactly: single precision drifts when motions are chained.
  out.target_from_source =
      Transform::from_quaternion(out.target_from_source.quaternion(), out.target_from_source.translation);
  out.rms_m = std::sqrt(gicp.getFitnessScore(options.reach_m * options.reach_m));
  return out;
}

}  // namespace takt::sensors
