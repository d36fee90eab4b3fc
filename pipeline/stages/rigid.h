// Rigid transforms for inner loops: the rig's T_vehicle_sensor in single precision.
#pragma once

#include <array>
#include <cstddef>

#include "sensors/rig/rig.h"

namespace takt::pipeline {

struct Point3 {
  float x = 0, y = 0, z = 0;
};

// Maps a point of the sensor frame into the vehicle frame. Vehicle coordinates stay below a few hundred metres, where
// single precision resolves 0.02 mm.
class VehicleFromSensor {
 public:
  explicit VehicleFromSensor(const sensors::Transform& t) {
    for (std::size_t i = 0; i < 9; ++i) r_[i] = static_cast<float>(t.rotation[i]);
    for (std::size_t i = 0; i < 3; ++i) t_[i] = static_cast<float>(t.translation[i]);
  }
  [[nodiscard]] Point3 point(float x, float y, float z) const {
    const Point3 d = direction(x, y, z);
    return {d.x + t_[0], d.y + t_[1], d.z + t_[2]};
  }
  [[nodiscard]] Point3 direction(float x, float y, float z) const {
    return {r_[0] * x + r_[1] * y + r_[2] * z, r_[3] * x + r_[4] * y + r_[5] * z, r_[6] * x + r_[7] * y + r_[8] * z};
  }
  // The inverse of point().
  [[nodiscard]] Point3 in_sensor(float x, float y, float z) const {
    const float dx = x - t_[0], dy = y - t_[1], dz = z - t_[2];
    return {r_[0] * dx + r_[3] * dy + r_[6] * dz, r_[1] * dx + r_[4] * dy + r_[7] * dz,
            r_[2] * dx + r_[5] * dy + r_[8] * dz};
  }
  [[nodiscard]] Point3 origin() const { return {t_[0], t_[1], t_[2]}; }

 private:
  std::array<float, 9> r_{};
  std::array<float, 3> t_{};
};

}  // namespace takt::pipeline
