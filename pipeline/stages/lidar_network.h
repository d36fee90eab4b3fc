// Detection in sweeps by a compiled graph of takt's own operators (docs/operators.md): every step of its plan is a
// phase, the last phase turns boxes into objects.
//
// Inputs: one PointCloud of the LiDAR whose capacity the plan was compiled for, read in place; optionally the EgoMotion
// of the vehicle. It deskews clouds that are not motion compensated and places remembered sweeps: constant velocity and
// turn rate, six degrees of freedom, around the sample's stamp. Without a sample, or with one that is too old, nothing
// is deskewed and history is forgotten. A cloud of another layout is left out, counted, and gives an empty list; the
// state stays then, as it does when a job is not published.
// Output: ObjectList in the vehicle frame at the cloud's stamp.
#pragma once

#include <memory>

#include "pipeline/stages/stage.h"

namespace takt::pipeline {

// Keys of the same name in the `params` node replace the defaults.
struct LidarNetworkConfig {
  float score_min = 0.3F;         // objects must score more; 1: all are left out
  float ego_age_max_ms = 300;     // between the stamps of ego motion and cloud
  float position_sigma_m = 0.3F;  // of a box's centre, per axis
};
LidarNetworkConfig read_lidar_network_config(const YamlNode& params);

// kConfiguration: the inputs do not fit, no plan is given, or the plan lacks an input or output
// (compiler/nets/pillars.h names them) or was compiled for another capacity.
Result<std::unique_ptr<Stage>> create_lidar_network(const StageSpec& spec, const LidarNetworkConfig& config);

}  // namespace takt::pipeline
