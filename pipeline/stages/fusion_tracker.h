// Fusion and tracking: object lists of any subset of camera, LiDAR and radar stages, and the ego motion, to one list of
// tracks at the job's instant. Any input may be missing in any job.
//
// Inputs: ObjectList (kObjectListSchema) of stages behind sensors of the rig, stamped by header.capture_ns, and at most
// one ego sensor (kEgoMotionSchema). Output: TrackList in the vehicle frame at stamp_ns = job.now: confirmed tracks,
// ascending by id; header.sources merges those of the inputs, so a consumer sees the age of every sensor behind it.
//
// All of it but the choice of inputs is a graph (pipeline/models/fusion_graph.h), compiled for the stage's inputs and
// parameters, visible in its plan. The way of one job:
//  1. Inputs: a missing one, or one without a stamp, sets its bit in missing_inputs; a list or ego sample not newer
//     than the last one used from that input sets its bit in repeat_inputs and updates nothing.
//  2. Ego motion: tracks live in an odometry frame, so a turning vehicle turns no track. Without a new sample the
//     vehicle goes on as the last one says; without any, the vehicle frame itself is the frame of the tracks and
//     velocities are relative to the vehicle.
//  3. Lists in stamp order into that frame, read where they lie; kernels/reference/tracking.h has the rules.
//  4. Output: tracks predicted to now and brought into the vehicle frame at now, written where they are published.
//
// What is wrong is left out and counted as repaired: objects that are not finite or beyond range_max_m, ego samples
// that are not finite, lists too late for the tracks or stamped after now.
// State: tensors of the graph; published() makes this job's the current ones, so a job that was given up or skipped
// leaves them where they were. Variants of the stage share them.
#pragma once

#include <memory>
#include <vector>

#include "pipeline/models/fusion_model.h"
#include "pipeline/stages/stage.h"

namespace takt::pipeline {

// All keys are optional; errors are collected in the document:
//   motion (constant_velocity, turn_rate), acceleration_density_m2ps3, turn_density_rad2ps3, initial_speed_sigma_mps,
//   initial_turn_sigma_radps, yaw_sigma_rad, gate_chi2, gate_distance_m, birth_log_odds, confirm_log_odds,
//   confirm_hits, delete_log_odds, coast_ms, tentative_coast_ms, late_limit_ms, duplicate_margin_m,
//   duplicate_speed_mps, range_max_m, ego_jump_limit_m, and the mappings lidar, radar, camera with range_sigma_m,
//   range_sigma_share, bearing_sigma_rad, rate_sigma_mps, surface_offset_m, hit_log_odds, miss_log_odds, class_weight.
FusionModel read_fusion_model(const YamlNode& params);

// What the graph is compiled for: a row for each list input, in their order. Reads inputs and rig of the specification.
// kConfiguration: no list input, a second ego sensor, more than 32 inputs, an input of another kind, or a sensor index
// outside the rig.
Result<std::vector<kernels::ListSource>> fusion_sources(const StageSpec& spec, const FusionModel& model);

// Allocates everything. kConfiguration as above, and when no plan is given or it was compiled for other inputs.
Result<std::unique_ptr<Stage>> create_fusion_tracker(const StageSpec& spec);

}  // namespace takt::pipeline
