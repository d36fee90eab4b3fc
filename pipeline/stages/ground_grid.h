// Height of the ground around the vehicle on a coarse grid: the lowest point of a cell counts as ground where it
// continues the ground of the cells nearer to the vehicle, otherwise (only a wall or a roof was hit, or a reflection
// from below) the cell inherits their height. Grown outward from the vehicle, where the rig says that the ground is 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace takt::pipeline {

struct GroundConfig {
  float cell_m = 2.0F;       // wide enough to catch ground between the rings, small against slopes
  float rise_max_m = 0.15F;  // accepted step up from cell to cell: below the sill of a car
  float drop_max_m = 0.25F;  // accepted step down
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
  std::vector<float> lowest_;           // per cell, infinity without points
  std::vector<float> height_;           // per cell
  std::vector<std::int32_t> outward_;   // cells by distance from the vehicle, then by index
  std::vector<std::int32_t> position_;  // place of a cell in outward_
};

}  // namespace takt::pipeline
