// takt.EgoMotion -> sensors::EgoMotion.
#pragma once

#include <memory>

#include "runtime/base/status.h"
#include "sensors/messages/decoder.h"
#include "sensors/rig/rig.h"

namespace takt::sensors {

// kConfiguration when the sensor is of another kind or lacks what the decoder needs.
Result<std::unique_ptr<Decoder>> make_ego_decoder(const RigSensor& sensor);

}  // namespace takt::sensors
