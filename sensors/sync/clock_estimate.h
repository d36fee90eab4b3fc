// The map from a sensor's own clock to the recorder's, from pairs of (stamp, arrival).
//
// arrival - capture = clock offset + drift + delay, and delays are never negative: the offset is the lower envelope of
// the differences. Among all lines below every pair the one with the smallest sum of distances is taken; it is the edge
// of the lower convex hull above the mean stamp (Moon, Skelly, Towsley: Estimation and removal of clock skew from
// network delay measurements, INFOCOM 1999).
#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/status.h"
#include "runtime/base/time.h"

namespace takt::sensors {

struct DeviceDomain {};  // a sensor's own clock
using DeviceClockMap = ClockMap<DeviceDomain, SensorDomain>;

// One message: its stamp as the device gave it, and when the recorder had it, both in ns.
struct StampPair {
  std::int64_t capture_ns = 0;
  std::int64_t arrival_ns = 0;
};

// `delay_min` is the shortest time from stamp to arrival (the rig's), `delay_spread` by how much the shortest delay of
// this log may exceed it. Pairs far below their neighbours (a wrong stamp) are left out; below 10 s of log the rate is
// not observable and taken as 0. The error bound is the largest distance between the line and the best pair of any
// tenth of the log, plus delay_spread. Valid from the first to the last stamp. kInput: fewer than 8 pairs, stamps that
// follow no line within 50 ms, or a drift above 1000 ppm. Pure; O(n log n).
Result<DeviceClockMap> estimate_clock(std::span<const StampPair> pairs, Duration delay_min, Duration delay_spread);

}  // namespace takt::sensors
