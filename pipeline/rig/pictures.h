// Pictures of a rig for people: LiDAR on image, bird's-eye view, side view. Drawn with OpenCV, kept as RGB bytes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "sensors/messages/messages.h"
#include "sensors/rig/rig.h"

namespace takt::pipeline {

struct Picture {
  int width = 0, height = 0;
  std::vector<std::uint8_t> bgr;  // rows without padding
};

using VehiclePoint = std::array<float, 3>;  // vehicle frame, m

// Extent of the own vehicle, vehicle frame, m: what hits inside come from is the vehicle itself.
struct VehicleBox {
  double x_min = -1.0, x_max = 3.8, y_half = 0.95, z_min = 0.15, z_max = 1.6;
  [[nodiscard]] bool contains(const VehiclePoint& p) const;
};

// The points that fall into the camera's image, coloured by depth along its axis (2 to 60 m), with a scale.
Picture draw_overlay(const sensors::Image& image, const sensors::RigSensor& camera,
                     std::span<const VehiclePoint> points, const std::string& title);

struct RadarMark {
  VehiclePoint position{};
  std::array<float, 2> velocity{};  // along the ray, relative to the sensor, vehicle axes, m/s
};
// From above: x up, 20 m behind to 60 m ahead, 40 m to both sides; points coloured by height (-1 to 3 m).
Picture draw_birdseye(std::span<const VehiclePoint> points, std::span<const RadarMark> radar, const VehicleBox& box,
                      const std::string& title);
// From the right side, points within 4 m of the vehicle's axis: x to the right, z up five times larger; the ground of
// the rig is the line at 0.
Picture draw_side(std::span<const VehiclePoint> points, const VehicleBox& box, const std::string& title);

// Pixel of a point in the camera's frame (x right, y down, z ahead), plumb_bob; false behind the camera or beyond the
// angle up to which the distortion is monotonic.
bool project(const sensors::CameraModel& camera, const std::array<double, 3>& point, double& u, double& v);

// kEnvironment: disk full, rights.
Status write_png(const Picture& picture, const std::string& path);

}  // namespace takt::pipeline
