#include "sensors/lidar/merge.h"

#include <algorithm>

namespace takt::sensors {

Result<MergeReport> merge_clouds(std::span<const MergePart> parts, Duration max_disparity, PointCloud& out) {
  if (parts.size() > MergeReport::kMaxParts || max_disparity > seconds(1)) {
    return fail(Code::kConfiguration, "a merged cloud has at most 16 parts, at most a second apart");
  }
  MergeReport report;
  bool any = false;
  SensorTime newest;
  for (const MergePart& part : parts) {
    if (part.cloud == nullptr) continue;
    newest = any ? std::max(newest, part.stamp) : part.stamp;
    any = true;
  }
  if (!any) return fail(Code::kInput, "no part of the merged cloud is there");
  report.stamp = newest;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const MergePart& part = parts[i];
    report.states[i] = part.cloud == nullptr                 ? PartState::kMissing
                       : newest - part.stamp > max_disparity ? PartState::kStale
                                                             : PartState::kMerged;
    if (report.states[i] == PartState::kMerged) {
      report.stamp = std::min(report.stamp, part.stamp);
    } else {
      report.missing |= 1U << i;
    }
  }
  report.disparity = newest - report.stamp;

  out.count = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (report.states[i] != PartState::kMerged) continue;
    const PointCloud& from = *parts[i].cloud;
    const std::int64_t shift = (parts[i].stamp - report.stamp).ns;
    for (std::uint32_t p = 0; p < from.count; ++p) {
      if (out.count == out.capacity) {
        report.dropped += from.count - p;
        break;
      }
      const auto at = parts[i].vehicle_from_sensor.apply({from.x()[p], from.y()[p], from.z()[p]});
      const std::uint32_t to = out.count++;
      out.x()[to] = static_cast<float>(at[0]);
      out.y()[to] = static_cast<float>(at[1]);
      out.z()[to] = static_cast<float>(at[2]);
      out.intensity()[to] = from.intensity()[p];
      out.time_ns()[to] =
          static_cast<std::int32_t>(std::clamp<std::int64_t>(from.time_ns()[p] + shift, INT32_MIN, INT32_MAX));
      out.ring()[to] = static_cast<std::uint16_t>(from.ring()[p] + parts[i].first_ring);
    }
  }
  out.dropped = report.dropped;
  return report;
}

}  // namespace takt::sensors
