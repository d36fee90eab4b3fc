// Fusion and tracking: object lists of any subset of camera, LiDAR and radar stages, and the ego motion, to one list of
// tracks at the job's instant. Any input may be missing in any job.
//
// Inputs: ObjectList (kObjectListSchema) of stages behind sensors of the rig, stamped by header.capture_ns, and at most
// one ego sensor (kEgoMotionSchema). Output: TrackList in the vehicle frame at stamp_ns = job.now: confirmed tracks,
// ascending by id; header.sources merges those of the inputs, so a consumer sees the age of every sensor behind it.
//
// The way of one job:
//  1. Inputs: a missing one, or one without a stamp, sets its bit in missing_inputs; a list or ego sample not newer
//     than the last one used from that input sets its bit in repeat_inputs and updates nothing.
//  2. Ego motion: tracks live in an odometry frame (ego_trajectory.h), so a turning vehicle turns no track. Without a
//     new sample the vehicle goes on as the last one says; without any, the vehicle frame itself is the frame of the
//     tracks and velocities are relative to the vehicle.
//  3. Lists in stamp order into that frame, with their noise along and across the ray; tracker.h has the rules.
//  4. Output: tracks predicted to now and brought into the vehicle frame at now.
//
// What is wrong is left out and counted as repaired: objects that are not finite or beyond range_max_m, ego samples
// that are not finite, lists too late for the tracks or stamped after now.
// State: two halves; run() builds the other half from the current one, published() changes them over.
#pragma once

#include <memory>

#include "pipeline/stages/stage.h"
#include "pipeline/stages/tracker.h"

namespace takt::pipeline {

struct FusionParameters {
  TrackerParameters tracker;
  double range_max_m = 150;
  double ego_jump_limit_m = 5;
};

// All keys are optional; errors are collected in the document:
//   acceleration_density_m2ps3, initial_speed_sigma_mps, gate_chi2, gate_distance_m, birth_log_odds, confirm_log_odds,
//   confirm_hits, delete_log_odds, coast_ms, tentative_coast_ms, late_limit_ms, duplicate_margin_m,
//   duplicate_speed_mps, range_max_m, ego_jump_limit_m, and the mappings lidar, radar, camera with
//   range_sigma_m, range_sigma_share, bearing_sigma_rad, rate_sigma_mps, surface_offset_m, hit_log_odds,
//   miss_log_odds, class_weight.
FusionParameters read_fusion_parameters(const YamlNode& params);

// Allocates everything. kConfiguration: no list input, a second ego sensor, more than 32 inputs, an input of another
// kind, or a sensor index outside the rig.
Result<std::unique_ptr<Stage>> create_fusion_tracker(const StageSpec& spec, const FusionParameters& parameters);
Result<std::unique_ptr<Stage>> create_fusion_tracker(const StageSpec& spec, const YamlNode& params);

}  // namespace takt::pipeline
