// Radar detection: Doppler compensated for the motion of the ego vehicle, split into moving and static returns,
// clustered nearest first.
//
// Inputs: one RadarScan, optionally the EgoMotion of the vehicle. Without ego motion nothing can be said about who
// moves: clusters carry a position, no range rate and a low score.
// Output: ObjectList in the vehicle frame at the scan's capture stamp. Serial: a scan holds a few hundred returns.
#pragma once

#include <cstdint>
#include <memory>

#include "pipeline/stages/stage.h"

namespace takt::pipeline {

// Every constant of the stage; keys of the same name in the `params` node replace the defaults.
struct RadarConfig {
  float range_min_m = 0.5F;  // nearer returns come from the bumper
  float range_max_m = 100;
  float height_max_m = 4;             // over the ground; higher returns come from bridges and signs
  float moving_min_mps = 0.7F;        // compensated range rate of a moving return: several times the Doppler resolution
  float gap_m = 2.6F;                 // returns of one vehicle lie this close
  float gap_rate_mps = 1.5F;          // and move alike; wheels and arms spread
  float static_gap_m = 1.2F;          // parked vehicles stand closer to other things than moving ones
  float static_extent_min_m = 0.8F;   // extent of a static cluster that may be a vehicle
  float static_extent_max_m = 6.0F;   // longer: a wall or a rail
  std::uint32_t static_hits_min = 3;  // returns of a static cluster
  float score_moving = 0.6F;          // of a moving cluster of two returns; one: 4/5 of it, many: up to 4/3
  float score_static = 0.2F;          // a radar alone cannot tell a parked car from a bush
  float sigma_range_m = 0.4F;         // where on the vehicle the return came from
  float sigma_azimuth_rad = 0.02F;    // lateral error per metre of range: about 1 degree
};

RadarConfig read_radar_config(const YamlNode& params);

// kConfiguration: the inputs do not fit, or the radar declares no capacity.
Result<std::unique_ptr<Stage>> create_radar_cluster(const StageSpec& spec, const RadarConfig& config);

}  // namespace takt::pipeline
