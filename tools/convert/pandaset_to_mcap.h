// A PandaSet sequence as a drive log of takt: pictures (bytes kept), clouds (order and axes kept), ego motion from the
// LiDAR poses, truth from the cuboids. Topics, frames, extrinsics and declared delays come from the rig.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/status.h"
#include "sensors/rig/rig.h"
#include "tools/convert/pandaset.h"

namespace takt::tools {

// takt's class of a PandaSet label (pipeline::ObjectClass: 0 unknown, 1 vehicle, 2 pedestrian, 3 cyclist, 4 other).
std::uint32_t object_class_of(const std::string& label);

// Frames 0 .. set.sweeps - 1. The rig has one camera, one LiDAR and an ego sensor, all with declared delays
// (kConfiguration otherwise): the set has no arrival times, so arrival = stamp + declared delay.
Status convert_pandaset(const Pandaset& set, const sensors::Rig& rig, const std::string& out);

}  // namespace takt::tools
