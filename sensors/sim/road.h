// The road: a centre line of straight pieces and arcs on a flat world, with lanes, parking strips and pavements on
// both sides. Everything in a scene is placed in road coordinates: station (m along the centre line) and offset (m to
// its left). World frame: origin at station 0, x along the road there, z up.
#pragma once

#include <vector>

#include "sensors/sim/vector.h"

namespace takt::sensors::sim {

struct RoadSegment {
  double length = 0;     // m
  double curvature = 0;  // 1/m, positive turns left
};

struct RoadCoordinates {
  double station = 0;
  double offset = 0;
};

// Centre line at one station.
struct RoadPoint {
  double x = 0, y = 0;
  double heading = 0;    // rad, counter-clockwise from world x
  double curvature = 0;  // 1/m
};

class Road {
 public:
  double lane_width = 3.5;               // one lane per direction
  double parking_width = 2.3;            // strip beside each lane
  double pavement_width = 3.0;           // raised by kKerb
  std::vector<double> crossings;         // stations of zebra crossings
  static constexpr double kKerb = 0.12;  // m

  Road() = default;
  explicit Road(const std::vector<RoadSegment>& segments);

  // Stations before 0 and after length() continue the first and last piece straight.
  [[nodiscard]] RoadPoint at(double station) const;
  [[nodiscard]] RoadCoordinates locate(double x, double y) const;
  [[nodiscard]] double length() const { return length_; }
  [[nodiscard]] double edge() const { return lane_width + parking_width; }  // where the kerb stands
  [[nodiscard]] double pavement_edge() const { return edge() + pavement_width; }

 private:
  struct Piece {
    double start = 0, length = 0, curvature = 0;
    double x = 0, y = 0, heading = 0, cosine = 1, sine = 0;
  };
  std::vector<Piece> pieces_;
  double length_ = 0;
};

}  // namespace takt::sensors::sim
