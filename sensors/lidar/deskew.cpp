#include "sensors/lidar/deskew.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace takt::sensors {
namespace {

using Quaternion = std::array<double, 4>;

Quaternion normalised(const Quaternion& q) {
  const double norm = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  return {q[0] / norm, q[1] / norm, q[2] / norm, q[3] / norm};
}
Quaternion mix(const Quaternion& a, const Quaternion& b, double u) {
  return normalised(
      {a[0] + (b[0] - a[0]) * u, a[1] + (b[1] - a[1]) * u, a[2] + (b[2] - a[2]) * u, a[3] + (b[3] - a[3]) * u});
}

// Rotation at share u in [0, 1] of the arc from a to b. The middle of an arc is the normalised sum of its ends; after
// eight halvings the rest is so short that the chord divides it equally (error below 1e-8 of the arc).
Quaternion on_arc(Quaternion a, Quaternion b, double u) {
  if (a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] < 0) b = {-b[0], -b[1], -b[2], -b[3]};
  for (int i = 0; i < 8; ++i) {
    const Quaternion middle = mix(a, b, 0.5);
    u *= 2;
    if (u < 1) {
      b = middle;
    } else {
      a = middle;
      u -= 1;
    }
  }
  return mix(a, b, u);
}

Transform transform_of(const StampedPose& pose) { return Transform::from_quaternion(pose.orientation, pose.position); }

// The motion from `inner` to `end` goes on beyond `end`, at constant speed and turn rate.
Result<Transform> continued(const StampedPose& inner, const StampedPose& end, SensorTime t) {
  double u = static_cast<double>((t - end.stamp).ns) / static_cast<double>((end.stamp - inner.stamp).ns);
  if (!(u <= 16)) return fail(Code::kInput, "the outermost two poses lie too close together to go on from them");
  StampedPose out{t, {}, {}};
  for (std::size_t i = 0; i < 3; ++i) out.position[i] = end.position[i] + (end.position[i] - inner.position[i]) * u;
  Quaternion from = normalised(inner.orientation), to = normalised(end.orientation);
  for (;; u -= 1) {
    const Transform last = Transform::from_quaternion(to, {});
    const Quaternion next = (last * Transform::from_quaternion(from, {}).inverse() * last).quaternion();
    if (u <= 1) {
      out.orientation = on_arc(to, next, u);
      return transform_of(out);
    }
    from = to;
    to = next;
  }
}

std::string ms(Duration d) { return std::to_string(d.ms()) + " ms"; }

}  // namespace

Result<Transform> interpolate_pose(std::span<const StampedPose> poses, SensorTime t, Duration extrapolate) {
  if (poses.empty()) return fail(Code::kInput, "there is no pose to compensate motion with");
  const auto after =
      std::lower_bound(poses.begin(), poses.end(), t, [](const StampedPose& p, SensorTime at) { return p.stamp < at; });
  if (after != poses.end() && after->stamp == t) return transform_of(*after);
  if (after == poses.begin() || after == poses.end()) {
    const Duration gap = after == poses.begin() ? poses.front().stamp - t : t - poses.back().stamp;
    if (gap > extrapolate || poses.size() < 2) {
      return fail(Code::kInput, "the poses " + std::string(after == poses.begin() ? "begin " : "end ") + ms(gap) +
                                    (after == poses.begin() ? " after" : " before") + " a point was measured; " +
                                    ms(extrapolate) + " are allowed");
    }
    const bool front = after == poses.begin();
    return continued(front ? poses[1] : poses[poses.size() - 2], front ? poses[0] : poses[poses.size() - 1], t);
  }
  const StampedPose &a = *(after - 1), &b = *after;
  const double u = static_cast<double>((t - a.stamp).ns) / static_cast<double>((b.stamp - a.stamp).ns);
  StampedPose out{t, {}, on_arc(normalised(a.orientation), normalised(b.orientation), u)};
  for (std::size_t i = 0; i < 3; ++i) out.position[i] = a.position[i] + (b.position[i] - a.position[i]) * u;
  return transform_of(out);
}

Status deskew(PointCloud& cloud, SensorTime stamp, const DeskewSetup& setup, std::span<const StampedPose> poses,
              SensorTime target) {
  if (setup.motion_compensated) {
    return fail(Code::kConfiguration, "the cloud is motion-compensated already: compensating it twice would bend it");
  }
  const std::uint32_t n = cloud.count;
  if (n == 0) return {};
  if (n > 1 && std::all_of(cloud.time_ns(), cloud.time_ns() + n, [](std::int32_t t) { return t == 0; })) {
    return fail(Code::kInput, "the cloud has no times: its motion cannot be compensated");
  }
  const auto [low, high] = std::minmax_element(cloud.time_ns(), cloud.time_ns() + n);
  // The ends first: after that no pose can be missing, and nothing is left half done.
  TAKT_RETURN_IF_ERROR(interpolate_pose(poses, stamp + nanoseconds(*low), setup.extrapolate));
  TAKT_RETURN_IF_ERROR(interpolate_pose(poses, stamp + nanoseconds(*high), setup.extrapolate));
  TAKT_ASSIGN(const Transform world_from_target, interpolate_pose(poses, target, setup.extrapolate));
  const Transform target_from_world = (world_from_target * setup.vehicle_from_sensor).inverse();
  for (std::uint32_t i = 0; i < n; ++i) {
    TAKT_ASSIGN(const Transform world_from_vehicle,
                interpolate_pose(poses, stamp + nanoseconds(cloud.time_ns()[i]), setup.extrapolate));
    const Transform motion = target_from_world * world_from_vehicle * setup.vehicle_from_sensor;
    const auto p = motion.apply({cloud.x()[i], cloud.y()[i], cloud.z()[i]});
    cloud.x()[i] = static_cast<float>(p[0]);
    cloud.y()[i] = static_cast<float>(p[1]);
    cloud.z()[i] = static_cast<float>(p[2]);
  }
  return {};
}

}  // namespace takt::sensors
