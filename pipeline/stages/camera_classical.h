// Vehicle detection by plain image processing, until compiled graphs do it: a colour model of the road right ahead,
// per column the first thing that stands on the road, flat-footed runs of columns of the width of a vehicle, checked
// for side edges, symmetry and a dark underside. Precise rather than complete: what it reports stands on the road and
// is as wide as a vehicle; partly hidden vehicles are left to the other sensors.
//
// Idea of the free-space columns: H. Badino, U. Franke, D. Pfeiffer, "The stixel world", DAGM 2009 (here from colour
// instead of stereo); of shadow, edges and symmetry as cues: Z. Sun, G. Bebis, R. Miller, "On-road vehicle detection: a
// review", PAMI 2006.
//
// Input: one Image (RGB, BGR or mono). Output: ObjectList in the vehicle frame at the image's stamp: image box and
// ground position. Variant "lite" works at half the resolution of "full".
#pragma once

#include <cstdint>
#include <memory>

#include "pipeline/stages/stage.h"

namespace takt::pipeline {

// Every constant of the stage; keys of the same name in the `params` node replace the defaults. Lengths that are
// compared with the image are metres on the ground, so that the resolution does not matter.
struct CameraConfig {
  std::uint32_t work_width_px = 640;  // the image is averaged down to about this width (full; lite: half)
  float range_min_m = 4;              // from the camera: nearer lies the bonnet
  float range_max_m = 45;             // one row of 640 pixels is 2 m deep there
  // Road colour: sampled where a vehicle that keeps its distance sees road.
  float road_near_m = 5;
  float road_far_m = 14;
  float road_half_width_m = 1.3F;
  float road_sigmas = 4;       // luminance within so many deviations of the model is road
  float road_luma_floor = 14;  // deviation floor times sigmas, grey levels of 255
  float road_chroma = 12;      // largest difference of (R - G) / 2 and (B - G) / 2
  // Columns.
  float obstacle_height_m = 0.45F;  // a run of other colours this high stands on the road: higher than any marking
  float run_gap_m = 0.12F;          // road-coloured rows that do not end such a run: a grey bumper
  float column_gap_m = 0.25F;       // columns between two parts of one foot: a wheel arch, a plate
  float foot_slope = 0.06F;         // foot of a vehicle: rows within this share of the height of the camera
  // Vehicles.
  float width_min_m = 1.3F;
  float width_max_m = 2.8F;
  float side_width_max_m = 6.0F;
  float vehicle_height_m = 1.5F;
  float vehicle_length_m = 4.4F;
  float vehicle_width_m = 1.85F;
  float edge_reach_m = 0.15F;  // where the sides are looked for, around the ends of the foot
  float edge_min = 10;         // mean horizontal step at the sides, grey levels of 255
  float symmetry_max = 30;     // mean difference of mirrored pixels, grey levels of 255
  float score_min = 0.35F;     // detections below are left out
  float sigma_px = 1.0F;       // error of the foot in working pixels of "full"
};

CameraConfig read_camera_config(const YamlNode& params);

// kConfiguration: the inputs do not fit, the camera has no model, or the variant is unknown.
Result<std::unique_ptr<Stage>> create_camera_classical(const StageSpec& spec, const CameraConfig& config);

}  // namespace takt::pipeline
