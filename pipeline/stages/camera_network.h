// Detection in pictures by a compiled network: every step of its plan is a phase, the last phase turns output tensors
// into boxes and stands them on flat ground.
//
// Input: one Image of the size and format that the plan was compiled for; anything else is left out, counted, and gives
// an empty list. Output: ObjectList at the image's stamp with image boxes, and a ground position where the foot of the
// box lies on visible ground within range. Needs no compiler: plan and contract are given.
#pragma once

#include <memory>

#include "pipeline/models/contract.h"
#include "pipeline/stages/stage.h"
#include "sensors/messages/messages.h"
#include "sensors/rig/rig.h"

namespace takt::pipeline {

// Keys of the same name in the `params` node replace the defaults.
struct NetworkConfig {
  float range_max_m = 60;   // from the camera: farther boxes have no position (a row of pixels is too deep there)
  float foot_sigma_px = 2;  // error of the lower edge of a box, camera pixels
};
NetworkConfig read_network_config(const YamlNode& params);

// How pictures of a camera lie in their chunks: sensors::Image with rows from byte 64 on.
CameraPicture picture_of(const sensors::CameraModel& camera, sensors::PixelFormat format);

// kConfiguration: the inputs do not fit, no plan is given, or plan and contract do not fit each other or the camera.
Result<std::unique_ptr<Stage>> create_camera_network(const StageSpec& spec, const NetworkConfig& config);

}  // namespace takt::pipeline
