// L-shaped box fit on the ground plane: X. Zhang, W. Xu, C. Dong, J. Dolan, "Efficient L-shape fitting for vehicle
// detection using laser scanners", IEEE Intelligent Vehicles Symposium 2017: search over the heading, closeness
// criterion. One deviation: the two edges of a candidate are those that face the sensor (only they can be seen), where
// the paper takes the nearer of both by distance.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace takt::pipeline {

// A rectangle on the ground, axis 1 at `heading` in [0, pi/2), axis 2 a quarter turn further.
struct FittedBox {
  float heading = 0;     // rad
  float cosine = 1;      // of the heading
  float sine = 0;        //
  float low[2] = {};     // m, smallest coordinate along axis 1 and 2
  float high[2] = {};    // m, largest
  float sensor[2] = {};  // m, the sensor along the two axes
  [[nodiscard]] float extent(int axis) const { return high[axis] - low[axis]; }
  // Does the low (true) or the high edge of an axis face the sensor?
  [[nodiscard]] bool low_faces_sensor(int axis) const { return 2 * sensor[axis] < low[axis] + high[axis]; }
};

class BoxFit {
 public:
  // `floor_m`: distances below it count as this close (d0 of the paper); `max_points`: larger clusters are thinned with
  // a fixed stride for the search, extents always use every point.
  BoxFit(float floor_m, std::uint32_t max_points);
  // x, y: points of one cluster (not empty), in one frame with the sensor at (sensor_x, sensor_y). A pure function.
  [[nodiscard]] FittedBox fit(std::span<const float> x, std::span<const float> y, float sensor_x, float sensor_y) const;

 private:
  static constexpr int kHeadings = 180;  // half a degree: 2 cm at the end of a 4.5 m car
  static constexpr int kCoarse = 8;      // first pass every 4 degrees, second pass between the neighbours of the best
  [[nodiscard]] FittedBox extents(std::span<const float> x, std::span<const float> y, int heading, std::size_t stride,
                                  float sensor_x, float sensor_y) const;
  [[nodiscard]] float closeness(std::span<const float> x, std::span<const float> y, const FittedBox& box,
                                std::size_t stride) const;
  float floor_m_;
  std::uint32_t max_points_;
  std::array<float, kHeadings> cosine_{};
  std::array<float, kHeadings> sine_{};
};

}  // namespace takt::pipeline
