// Where the vehicle was, is and will be on the ground, from its recent motion samples.
//
// Positions are given in a local odometry frame: its origin and axes are the vehicle's at the first sample, so numbers
// stay small however far the log's world origin lies, and a jump of the world pose (a corrected position fix) moves
// the anchor instead of every track.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sensors/messages/messages.h"

namespace takt::pipeline {

// Pose of the vehicle frame on the ground, m and rad.
struct PlanarPose {
  double x = 0, y = 0, yaw = 0;
};

// A planar rigid transform with its sine and cosine ready.
class PlanarTransform {
 public:
  explicit PlanarTransform(const PlanarPose& pose);
  // From the vehicle frame into the odometry frame.
  void point(double& x, double& y) const;
  void direction(double& x, double& y) const;
  // And back.
  void inverse_point(double& x, double& y) const;
  void inverse_direction(double& x, double& y) const;
  [[nodiscard]] double yaw() const { return pose_.yaw; }

 private:
  PlanarPose pose_;
  double c_, s_;
};

class EgoTrajectory {
 public:
  // Keeps the sample. False, and nothing changed, when its stamp is not later than the newest one or a number is not
  // finite. A pose further than `jump_limit_m` from where the last sample leads to is a jump: the anchor moves.
  bool add(std::int64_t stamp_ns, const sensors::EgoMotion& motion, double jump_limit_m);
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] std::int64_t newest_ns() const { return sample(count_ - 1).stamp_ns; }
  // Linear between two samples; before the oldest and after the newest one with that sample's velocity and yaw rate,
  // for as long as nothing newer comes. The origin when there has been no sample at all.
  [[nodiscard]] PlanarPose pose(std::int64_t stamp_ns) const;

 private:
  static constexpr std::size_t kSamples = 16;  // at 20 Hz: 0.8 s, several times the age of the oldest list used
  struct Sample {
    std::int64_t stamp_ns = 0;
    PlanarPose pose;                  // in the odometry frame
    double vx = 0, vy = 0, rate = 0;  // in the vehicle frame, m/s; rad/s
  };
  [[nodiscard]] const Sample& sample(std::size_t i) const { return samples_[(first_ + i) % kSamples]; }
  static PlanarPose extrapolate(const Sample& from, std::int64_t stamp_ns);

  std::array<Sample, kSamples> samples_{};
  std::size_t first_ = 0, count_ = 0;
  PlanarPose anchor_world_, anchor_odometry_;  // the same place in both frames
};

}  // namespace takt::pipeline
