// Several LiDARs as one cloud in the vehicle frame. Who is in the set is a function of stamps only, never of when a
// sweep was delivered.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/status.h"
#include "runtime/base/time.h"
#include "sensors/messages/messages.h"
#include "sensors/rig/rig.h"

namespace takt::sensors {

struct MergePart {
  const PointCloud* cloud = nullptr;  // null: no sweep was there
  SensorTime stamp;                   // what the times of its points count from
  Transform vehicle_from_sensor;      // T_vehicle_sensor
  std::uint16_t first_ring = 0;       // added to its rings, so that rings stay apart
};

enum class PartState : std::uint8_t { kMerged, kMissing, kStale };

struct MergeReport {
  static constexpr std::size_t kMaxParts = 16;
  SensorTime stamp;               // of the merged cloud: the earliest stamp in the set
  Duration disparity;             // latest - earliest stamp in the set
  std::uint32_t missing = 0;      // bit i: part i is not in the set
  PartState states[kMaxParts]{};  // why
  std::uint32_t dropped = 0;      // points over the capacity of `out`
};

// Parts in the order given, points in their own; a part older than the newest stamp by more than `max_disparity` is
// stale and left out, as are parts without a cloud: the set is then partial and says so. Over capacity the last points
// are dropped and counted. Points keep their instant: times count from the merged stamp. kInput when no part is left;
// kConfiguration: more than 16 parts, or a max_disparity above a second (times would not fit). Allocates nothing when
// it succeeds.
Result<MergeReport> merge_clouds(std::span<const MergePart> parts, Duration max_disparity, PointCloud& out);

}  // namespace takt::sensors
