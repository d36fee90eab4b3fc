// Points as PCL wants them.
#pragma once

#include <pcl/point_cloud.h>
#include <pcl/point_types.h>

#include <span>

#include "sensors/rig_pcl/rig_pcl.h"

namespace takt::sensors {

inline pcl::PointCloud<pcl::PointXYZ>::Ptr to_pcl(std::span<const CloudPoint> points) {
  pcl::PointCloud<pcl::PointXYZ>::Ptr cloud(new pcl::PointCloud<pcl::PointXYZ>);
  cloud->reserve(points.size());
  for (const CloudPoint& p : points) cloud->push_back({p[0], p[1], p[2]});
  return cloud;
}

}  // namespace takt::sensors
