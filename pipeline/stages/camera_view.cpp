#include "pipeline/stages/camera_view.h"

#include <cmath>

namespace takt::pipeline {

namespace {

struct Plane {
  double x, y;  // at depth 1
};

// plumb_bob: radial k1 k2 k3, tangential p1 p2 (Brown 1966, in OpenCV's order k1 k2 p1 p2 k3).
Plane distort(const sensors::CameraModel& model, Plane p) {
  const auto& [k1, k2, p1, p2, k3] = model.distortion;
  const double r2 = p.x * p.x + p.y * p.y;
  const double radial = 1 + r2 * (k1 + r2 * (k2 + r2 * k3));
  return {p.x * radial + 2 * p1 * p.x * p.y + p2 * (r2 + 2 * p.x * p.x),
          p.y * radial + p1 * (r2 + 2 * p.y * p.y) + 2 * p2 * p.x * p.y};
}

Plane undistort(const sensors::CameraModel& model, Plane distorted) {
  Plane p = distorted;
  for (int i = 0; i < 8; ++i) {
    const Plane d = distort(model, p);
    p = {p.x + distorted.x - d.x, p.y + distorted.y - d.y};
  }
  return p;
}

}  // namespace

// The centre of working pixel 0 lies at image pixel (scale - 1) / 2.
CameraView::CameraView(const sensors::CameraModel& model, const sensors::Transform& vehicle_from_camera,
                       std::uint32_t scale)
    : fx_(model.fx / scale),
      fy_(model.fy / scale),
      cx_((model.cx - (scale - 1) / 2.0) / scale),
      cy_((model.cy - (scale - 1) / 2.0) / scale),
      model_(model),
      pose_(vehicle_from_camera) {}

std::optional<Point3> CameraView::ground(float u, float v, float range_max_m) const {
  const Plane p = undistort(model_, {(u - cx_) / fx_, (v - cy_) / fy_});
  const Point3 ray = pose_.direction(static_cast<float>(p.x), static_cast<float>(p.y), 1);
  const Point3 eye = pose_.origin();
  if (!(ray.z < 0) || !(eye.z > 0)) return std::nullopt;
  const float t = -eye.z / ray.z;
  const float dx = ray.x * t, dy = ray.y * t;
  if (!(dx * dx + dy * dy <= range_max_m * range_max_m)) return std::nullopt;
  return Point3{eye.x + dx, eye.y + dy, 0};
}

std::optional<CameraView::Pixel> CameraView::pixel(const Point3& vehicle) const {
  const Point3 c = pose_.in_sensor(vehicle.x, vehicle.y, vehicle.z);
  if (c.z < 0.1F) return std::nullopt;
  const Plane p = distort(model_, {c.x / c.z, c.y / c.z});
  return Pixel{static_cast<float>(p.x * fx_ + cx_), static_cast<float>(p.y * fy_ + cy_), c.z};
}

}  // namespace takt::pipeline
