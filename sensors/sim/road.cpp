#include "sensors/sim/road.h"

#include <cmath>

#include "kernels/reference/elementary.h"

namespace takt::sensors::sim {

Road::Road(const std::vector<RoadSegment>& segments) {
  constexpr double kFar = 1000.0;  // straight continuation at both ends
  Piece piece{-kFar, kFar, 0, -kFar, 0, 0, 1, 0};
  pieces_.push_back(piece);
  for (const RoadSegment& segment : segments) {
    const RoadPoint start = at(length_);
    pieces_.push_back({length_, segment.length, segment.curvature, start.x, start.y, start.heading,
                       kernels::cos(start.heading), kernels::sin(start.heading)});
    length_ += segment.length;
  }
  const RoadPoint end = at(length_);
  pieces_.push_back(
      {length_, kFar, 0, end.x, end.y, end.heading, kernels::cos(end.heading), kernels::sin(end.heading)});
}

RoadPoint Road::at(double station) const {
  const Piece* piece = &pieces_.front();
  for (const Piece& candidate : pieces_) {
    if (candidate.start <= station) piece = &candidate;
  }
  const double s = station - piece->start;
  if (piece->curvature == 0) {
    return {piece->x + s * piece->cosine, piece->y + s * piece->sine, piece->heading, 0};
  }
  const double radius = 1.0 / piece->curvature;
  const double heading = piece->heading + s * piece->curvature;
  return {piece->x + radius * (kernels::sin(heading) - piece->sine),
          piece->y - radius * (kernels::cos(heading) - piece->cosine), heading, piece->curvature};
}

RoadCoordinates Road::locate(double x, double y) const {
  RoadCoordinates best;
  double best_distance = 1e300;
  for (const Piece& piece : pieces_) {
    const double dx = x - piece.x;
    const double dy = y - piece.y;
    double along = dx * piece.cosine + dy * piece.sine;
    double left = dy * piece.cosine - dx * piece.sine;
    if (piece.curvature != 0) {
      // Seen from the arc's centre, at (0, radius) in the frame of the piece's start.
      const double radius = 1.0 / piece.curvature;
      const double sign = radius < 0 ? -1.0 : 1.0;
      const double to_centre = radius - left;
      const double angle = kernels::atan2(along, to_centre * sign);
      const double distance = std::sqrt(along * along + to_centre * to_centre);
      left = radius - sign * distance;
      along = angle * std::fabs(radius);
    }
    const double overshoot = along < 0 ? -along : (along > piece.length ? along - piece.length : 0);
    const double distance = overshoot * 1e3 + std::fabs(left);
    if (distance < best_distance) {
      best_distance = distance;
      best = {piece.start + along, left};
    }
  }
  return best;
}

}  // namespace takt::sensors::sim
