// Flat-ground geometry of one camera at a working resolution: pixel <-> ground point of the vehicle frame.
#pragma once

#include <cstdint>
#include <optional>

#include "pipeline/stages/rigid.h"
#include "sensors/rig/rig.h"

namespace takt::pipeline {

// The camera looks along +z of its frame, x right, y down. `scale`: working pixels are scale x scale image pixels.
// Distortion is removed by fixed-point iteration, as the coefficients only model the other direction.
class CameraView {
 public:
  CameraView(const sensors::CameraModel& model, const sensors::Transform& vehicle_from_camera, std::uint32_t scale);

  // Where the ray through a working pixel meets the ground; nothing above the horizon or beyond `range_max_m`.
  [[nodiscard]] std::optional<Point3> ground(float u, float v, float range_max_m) const;
  // Working pixel of a point; nothing behind the camera.
  struct Pixel {
    float u = 0, v = 0;
    float depth = 0;  // along the optical axis, m
  };
  [[nodiscard]] std::optional<Pixel> pixel(const Point3& vehicle) const;
  [[nodiscard]] float focal() const { return static_cast<float>(fy_); }  // working pixels
  [[nodiscard]] Point3 origin() const { return pose_.origin(); }

 private:
  double fx_, fy_, cx_, cy_;
  sensors::CameraModel model_;
  VehicleFromSensor pose_;
};

}  // namespace takt::pipeline
