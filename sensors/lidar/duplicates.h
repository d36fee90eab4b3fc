// Points that are in a cloud twice: some recordings list every point again, and merged clouds may share some.
#pragma once

#include <cstdint>
#include <vector>

#include "sensors/messages/messages.h"

namespace takt::sensors {

// Points are equal when every field is, bit by bit. The first of equal points stays, the order too.
class DuplicateFilter {
 public:
  explicit DuplicateFilter(std::uint32_t capacity) : order_(capacity), drop_(capacity) {}
  // In place; returns how many were removed. Clouds above the capacity are left as they are (0). Allocates nothing.
  std::uint32_t remove(PointCloud& cloud);

 private:
  std::vector<std::uint32_t> order_;
  std::vector<std::uint8_t> drop_;
};

}  // namespace takt::sensors
