#include "pipeline/stages/ego_trajectory.h"

#include <cmath>

#include "kernels/reference/elementary.h"

namespace takt::pipeline {

namespace {

bool finite(const sensors::EgoMotion& m) {
  bool ok = true;
  for (int i = 0; i < 3; ++i) {
    ok = ok && std::isfinite(m.position[i]) && std::isfinite(m.velocity[i]) && std::isfinite(m.angular_velocity[i]);
  }
  double norm2 = 0;
  for (double q : m.orientation) norm2 += q * q;
  return ok && std::isfinite(norm2) && norm2 > 1e-6;
}

double yaw_of(const double (&q)[4]) {
  const double norm2 = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];
  return kernels::atan2(2 * (q[0] * q[3] + q[1] * q[2]), norm2 - 2 * (q[2] * q[2] + q[3] * q[3]));
}

}  // namespace

PlanarTransform::PlanarTransform(const PlanarPose& pose)
    : pose_(pose), c_(kernels::cos(pose.yaw)), s_(kernels::sin(pose.yaw)) {}

void PlanarTransform::direction(double& x, double& y) const {
  const double rx = c_ * x - s_ * y;
  y = s_ * x + c_ * y;
  x = rx;
}
void PlanarTransform::point(double& x, double& y) const {
  direction(x, y);
  x += pose_.x;
  y += pose_.y;
}
void PlanarTransform::inverse_direction(double& x, double& y) const {
  const double rx = c_ * x + s_ * y;
  y = -s_ * x + c_ * y;
  x = rx;
}
void PlanarTransform::inverse_point(double& x, double& y) const {
  x -= pose_.x;
  y -= pose_.y;
  inverse_direction(x, y);
}

PlanarPose EgoTrajectory::extrapolate(const Sample& from, std::int64_t stamp_ns) {
  const double dt = static_cast<double>(stamp_ns - from.stamp_ns) * 1e-9;
  // Heading of the middle of the interval: exact to second order on an arc.
  double dx = from.vx * dt, dy = from.vy * dt;
  PlanarTransform({0, 0, from.pose.yaw + 0.5 * from.rate * dt}).direction(dx, dy);
  return {from.pose.x + dx, from.pose.y + dy, kernels::wrap_angle(from.pose.yaw + from.rate * dt)};
}

bool EgoTrajectory::add(std::int64_t stamp_ns, const sensors::EgoMotion& motion, double jump_limit_m) {
  if (!finite(motion) || (!empty() && stamp_ns <= newest_ns())) return false;
  const PlanarPose world{motion.position[0], motion.position[1], yaw_of(motion.orientation)};
  const auto in_odometry = [&] {
    double dx = world.x - anchor_world_.x, dy = world.y - anchor_world_.y;
    const double turn = anchor_odometry_.yaw - anchor_world_.yaw;
    PlanarTransform({0, 0, turn}).direction(dx, dy);
    return PlanarPose{anchor_odometry_.x + dx, anchor_odometry_.y + dy, kernels::wrap_angle(world.yaw + turn)};
  };
  const PlanarPose expected = pose(stamp_ns);
  PlanarPose local = in_odometry();
  const double ex = local.x - expected.x, ey = local.y - expected.y;
  if (empty() || ex * ex + ey * ey > jump_limit_m * jump_limit_m) {
    anchor_world_ = world;
    anchor_odometry_ = expected;
    local = expected;
  }
  const Sample next{stamp_ns, local, motion.velocity[0], motion.velocity[1], motion.angular_velocity[2]};
  if (count_ == kSamples) {
    samples_[first_] = next;
    first_ = (first_ + 1) % kSamples;
  } else {
    samples_[(first_ + count_) % kSamples] = next;
    ++count_;
  }
  return true;
}

PlanarPose EgoTrajectory::pose(std::int64_t stamp_ns) const {
  if (empty()) return {};
  if (stamp_ns <= sample(0).stamp_ns) return extrapolate(sample(0), stamp_ns);
  if (stamp_ns >= newest_ns()) return extrapolate(sample(count_ - 1), stamp_ns);
  std::size_t i = count_ - 1;
  while (sample(i - 1).stamp_ns > stamp_ns) --i;
  const Sample& a = sample(i - 1);
  const Sample& b = sample(i);
  const double t = static_cast<double>(stamp_ns - a.stamp_ns) / static_cast<double>(b.stamp_ns - a.stamp_ns);
  return {a.pose.x + t * (b.pose.x - a.pose.x), a.pose.y + t * (b.pose.y - a.pose.y),
          kernels::wrap_angle(a.pose.yaw + t * kernels::wrap_angle(b.pose.yaw - a.pose.yaw))};
}

}  // namespace takt::pipeline
