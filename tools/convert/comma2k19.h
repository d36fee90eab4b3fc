// One segment of comma2k19 as a drive log (Schafer et al., "A Commute in Data: The comma2k19 Dataset", 2018): the front
// radar and the poses. The pictures (video.hevc) are not read.
//
// Radar rows (value.npy: forward m, left m, relative speed m/s, -, -, address, new_track) become scans: a row whose
// address is not above the one before begins a new scan. Its stamp is that of its last row, which is also its arrival.
// Written: /radar/front/returns (foxglove.PointCloud: x y z range_rate rcs, and slot and new_track as told; a slot is
// no track across new_track), /ego/takt, /ego, /tf. RCS is not measured: 0. The world frame is the vehicle's at the
// first pose; positions are those of the camera, since its mount is not told. Stamps are seconds since the device was
// started.
#pragma once

#include <string>

#include "runtime/base/status.h"

namespace takt::tools {

struct Comma2k19Figures {
  std::size_t radar_rows = 0, scans = 0, slots = 0, new_tracks = 0, poses = 0;
  double path_m = 0;      // over the poses
  double can_path_m = 0;  // integral of the CAN speed
};

// kInput with the file: missing, of another type or shape, stamps that go back. kEnvironment: cannot be written.
Result<Comma2k19Figures> convert_comma2k19(const std::string& folder, const std::string& out);

}  // namespace takt::tools
