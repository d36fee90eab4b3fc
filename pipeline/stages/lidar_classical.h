// LiDAR detection without learned weights: deskew, crop, ground removal, clustering seen from above, L-shaped boxes,
// class by size. Own code over fixed capacities; PCL is its oracle in tests only.
//
// Inputs: one PointCloud of a LiDAR, optionally the EgoMotion of the vehicle (used to deskew clouds that are not motion
// compensated: constant velocity and yaw rate over the sweep, to the stamp reference of the cloud).
// Output: ObjectList in the vehicle frame at the cloud's capture stamp.
#pragma once

#include <cstdint>
#include <memory>

#include "pipeline/stages/bev_clusters.h"
#include "pipeline/stages/ground_grid.h"
#include "pipeline/stages/stage.h"

namespace takt::pipeline {

// Every constant of the stage; keys of the same name in the `params` node replace the defaults.
struct LidarConfig {
  // Crop, vehicle frame.
  float range_m = 70;  // half side of the square that is looked at
  // The vehicle itself; its origin lies under the rear axle.
  float ego_rear_m = 1.5F;
  float ego_front_m = 4.2F;
  float ego_half_width_m = 1.1F;
  // Ground and obstacles, heights over the local ground.
  GroundConfig ground;
  float obstacle_low_m = 0.25F;  // above the noise of the ground and most kerbs
  float obstacle_high_m = 2.4F;  // clustering band: above it lie tree crowns and signs that would connect cars
  float raised_max_m = 12.0F;    // points between both say that a cluster goes on above the band
  // Clustering.
  ClusterConfig cluster;
  // Box fit.
  float fit_floor_m = 0.05F;           // d0 of Zhang et al.: about the range noise
  std::uint32_t fit_points_max = 160;  // points of the heading search per cluster
  // Class by size (m). Extents of passenger cars to delivery vans; nominal: EU passenger car.
  float vehicle_length_max_m = 9.0F;
  float vehicle_width_max_m = 3.0F;
  float vehicle_face_min_m = 1.0F;  // a smaller cluster is no vehicle
  float vehicle_top_min_m = 0.6F;
  float vehicle_length_m = 4.4F;
  float vehicle_width_m = 1.85F;
  float vehicle_height_m = 1.6F;
  float rear_face_max_m = 2.4F;  // the longer visible side up to this length is the rear or the front
  float pedestrian_extent_max_m = 1.0F;
  float pedestrian_top_min_m = 1.0F;
  float pedestrian_top_max_m = 2.2F;
  float raised_share = 0.3F;         // of the cells: above it a cluster is a wall, a tree, or a truck that shows
  float raised_length_min_m = 3.8F;  // at least this length
  float raised_width_min_m = 1.4F;   // and width
  float suppress_margin_m = 0.4F;    // around a vehicle: smaller clusters inside are slivers of it
  float score_points = 8;            // points at which the score of a well-shaped cluster reaches one half
};

LidarConfig read_lidar_config(const YamlNode& params);

// kConfiguration: the inputs do not fit, or the LiDAR declares no capacity.
Result<std::unique_ptr<Stage>> create_lidar_classical(const StageSpec& spec, const LidarConfig& config);

}  // namespace takt::pipeline
