#include "pipeline/stages/box_fit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/reference/elementary.h"

namespace takt::pipeline {

BoxFit::BoxFit(float floor_m, std::uint32_t max_points) : floor_m_(floor_m), max_points_(max_points) {
  for (int i = 0; i < kHeadings; ++i) {
    const double heading = kernels::kPi / 2 * i / kHeadings;
    cosine_[static_cast<std::size_t>(i)] = static_cast<float>(kernels::cos(heading));
    sine_[static_cast<std::size_t>(i)] = static_cast<float>(kernels::sin(heading));
  }
}

FittedBox BoxFit::extents(std::span<const float> x, std::span<const float> y, int heading, std::size_t stride,
                          float sensor_x, float sensor_y) const {
  FittedBox box;
  box.heading = static_cast<float>(kernels::kPi / 2 * heading / kHeadings);
  box.cosine = cosine_[static_cast<std::size_t>(heading)];
  box.sine = sine_[static_cast<std::size_t>(heading)];
  box.low[0] = box.high[0] = x[0] * box.cosine + y[0] * box.sine;
  box.low[1] = box.high[1] = y[0] * box.cosine - x[0] * box.sine;
  for (std::size_t i = stride; i < x.size(); i += stride) {
    const float along[2] = {x[i] * box.cosine + y[i] * box.sine, y[i] * box.cosine - x[i] * box.sine};
    for (int axis = 0; axis < 2; ++axis) {
      box.low[axis] = std::min(box.low[axis], along[axis]);
      box.high[axis] = std::max(box.high[axis], along[axis]);
    }
  }
  box.sensor[0] = sensor_x * box.cosine + sensor_y * box.sine;
  box.sensor[1] = sensor_y * box.cosine - sensor_x * box.sine;
  return box;
}

// Algorithm 4 of the paper: each point counts with the inverse of its distance to the nearer of the two visible edges.
float BoxFit::closeness(std::span<const float> x, std::span<const float> y, const FittedBox& box,
                        std::size_t stride) const {
  const float edge[2] = {box.low_faces_sensor(0) ? box.low[0] : box.high[0],
                         box.low_faces_sensor(1) ? box.low[1] : box.high[1]};
  float sum = 0;
  for (std::size_t i = 0; i < x.size(); i += stride) {
    const float d1 = std::fabs(x[i] * box.cosine + y[i] * box.sine - edge[0]);
    const float d2 = std::fabs(y[i] * box.cosine - x[i] * box.sine - edge[1]);
    sum += 1 / std::max(std::min(d1, d2), floor_m_);
  }
  return sum;
}

FittedBox BoxFit::fit(std::span<const float> x, std::span<const float> y, float sensor_x, float sensor_y) const {
  const std::size_t stride = (x.size() + max_points_ - 1) / max_points_;
  const auto score = [&](int heading) {
    return closeness(x, y, extents(x, y, heading, stride, sensor_x, sensor_y), stride);
  };
  int best = 0;
  float best_score = -1;
  const auto consider = [&](int heading) {
    const float s = score(heading);
    if (s > best_score) {
      best_score = s;
      best = heading;
    }
  };
  for (int heading = 0; heading < kHeadings; heading += kCoarse) consider(heading);
  const int centre = best;
  for (int delta = 1 - kCoarse; delta < kCoarse; ++delta) {
    if (delta != 0) consider((centre + delta + kHeadings) % kHeadings);
  }
  return extents(x, y, best, 1, sensor_x, sensor_y);
}

}  // namespace takt::pipeline
