// Height of the ground around the vehicle on a coarse grid. A plane through the lowest points of the cells (least
// squares with a tightening gate) follows the slope of the street; around it the lowest point of a cell counts as
// ground where it continues the cells nearer to the vehicle, otherwise (only a wall or a roof was hit) the cell
// inherits their height. Grown outward from the vehicle, where the rig says that the ground is 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace takt::pipeline {

struct GroundConfig {
  float cell_m = 2.0F;        // wide enough to catch ground between the rings, small against slopes
  float rise_max_m = 0.15F;   // accepted step up from cell to cell: below the sill of a car
  float drop_max_m = 0.25F;   // accepted step down
  float slope_max = 0.15F;    // steepest street relative to the vehicle; points deeper below are reflections
  float plane_range_m = 40;   // cells that the plane is fitted to
  float plane_gate_m = 0.2F;  // final distance of these cells from the plane
};

class GroundGrid {
 public:
  static constexpr std::int32_t kOutside = -1;
  GroundGrid(const GroundConfig& config, float range_m);  // square of +- range_m around the vehicle origin
  [[nodiscard]] std::int32_t cell_of(float x, float y) const;
  void clear();
  void add(std::int32_t cell, float z);  // any order: a minimum
  void grow();                           // after the last add(): fixes height() of every cell
  [[nodiscard]] float height(std::int32_t cell) const { return height_[static_cast<std::size_t>(cell)]; }

 private:
  GroundConfig config_;
  float range_m_;
  float cells_per_m_;
  std::int32_t side_;
  struct Plane {
    float z = 0, dx = 0, dy = 0;
  };
  [[nodiscard]] float centre(std::int32_t index) const {
    return (static_cast<float>(index) + 0.5F) * config_.cell_m - range_m_;
  }
  [[nodiscard]] float at(const Plane& plane, std::int32_t cell) const {
    return plane.z + plane.dx * centre(cell % side_) + plane.dy * centre(cell / side_);
  }
  [[nodiscard]] Plane fit_plane() const;
  std::vector<float> deepest_;          // per cell: lower points are left out
  std::vector<float> lowest_;           // per cell, infinity without points
  std::vector<float> above_;            // per cell: ground over the plane
  std::vector<float> height_;           // per cell
  std::vector<std::int32_t> outward_;   // cells by distance from the vehicle, then by index
  std::vector<std::int32_t> position_;  // place of a cell in outward_
};

}  // namespace takt::pipeline
