// One log of Argoverse 2 in compact form as a drive log (Wilson et al., NeurIPS Datasets 2021): CSV tables instead of
// Arrow files, sweeps as rows of 20 bytes (f32 x y z, u8 intensity, u8 laser, u16 0, i32 offset_ns).
//
// The set's ego frame (rear axle, x forward, y left, z up) is taken as the vehicle frame; it lies at the height of the
// axle, not on the road. Points are published in it, moved to the sweep's stamp by the owner.
// Written: /lidar/points, /truth/takt, /truth (all annotated stamps), /ego/takt, /ego, /tf (at each annotated stamp).
// Arrival: a sweep's last point; everything else its stamp. Velocities are differences of poses and of box centres over
// neighbouring stamps.
#pragma once

#include <string>

#include "runtime/base/status.h"

namespace takt::tools {

// kInput with file and line: a table or sweep that cannot be read. kEnvironment: the output cannot be written.
Status convert_argoverse2(const std::string& folder, const std::string& out);

}  // namespace takt::tools
